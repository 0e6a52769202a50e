"""Commands about branches, merges and tags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from smp_git.cli.app import command
from smp_git.cli.common import asker, emit
from smp_git.cli.inputs import fields_from
from smp_git.cli.options import Agent, Id
from smp_git.cli.place import main_of, make_current, session_of, store_of
from smp_git.cli.screen import exact, table, when
from smp_git.cli.terminal import note, paint
from smp_git.cli.values import as_words
from smp_git.model.errors import InvalidError
from smp_git.model.memory import COMMENTS
from smp_git.write.branches import Branch, Contested

if TYPE_CHECKING:
    from smp_git.remove.delete import Dropped
    from smp_git.write.merge.join import MergeResult


BranchName = Annotated[str, typer.Argument(metavar="BRANCH", help="A branch")]


@command(example="smp branch try/redis")
def branch(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[BRANCH]", help="The branch to create or drop")
    ] = None,
    drop: Annotated[
        bool, typer.Option("--drop", help="Drop the branch; what only it held can be restored")
    ] = False,
    discard: Annotated[bool, typer.Option("--discard", help="With --drop: keep no copy")] = False,
    agent: Agent = None,
) -> None:
    """List the branches, create one, or drop one

    A new branch starts from the current one. Work on it with --branch NAME, or make it
    current in this terminal with smp switch. The session folder always shows main.
    """
    if (drop or discard) and (name is None or not drop):
        raise InvalidError("--drop needs a branch, and --discard needs --drop")
    with session_of(ctx) as session:
        if name is None:
            found = session.branches()
            value: dict[str, object] = {
                "branches": [each.as_json() for each in found],
                "total": len(found),
            }
            head = ("BRANCH", "COMMIT", "WHEN")
            return emit(
                ctx,
                value,
                lambda: table(head, [*map(_branch, found)], heads=False),
                changes=False,
            )
        if drop:
            gone = session.drop_branch(name, discard=discard, by=asker(ctx, agent))
            return emit(ctx, gone.as_json(), lambda: _dropped(gone))
        session.branch(name).close()
        made = next(each for each in session.branches() if each.name == name)
    return emit(ctx, made.as_json(), made.name)


def _branch(found: Branch) -> tuple[str, ...]:
    mark, name = ("*", paint("green", found.name)) if found.is_current else (" ", found.name)
    return f"{mark} {name}", paint("yellow", found.commit[:9]), when(found.written_at)


def _dropped(gone: Dropped) -> str:
    lines = [f"dropped {gone.name} at {gone.commit[:9]}"]
    if gone.ids:
        lines.append(f"can be restored: {', '.join(gone.ids)}")
    return "\n".join(lines)


@command(example="smp switch try/redis")
def switch(ctx: typer.Context, name: BranchName) -> None:
    """Choose the branch that commands in this terminal use

    Other terminals are not affected. The session folder always shows main.
    """
    with main_of(ctx) as session:
        session.switch(name)
        make_current(store_of(ctx), session.id, "" if name == "main" else name)
    emit(ctx, {"branch": name}, name)


@command(example="smp merge try/redis")
def merge(ctx: typer.Context, name: BranchName, agent: Agent = None) -> None:
    """Merge another branch into the current one

    Changes to different fields of a memory are combined. If both sides changed the same
    field, the newer value is kept; smp conflicts shows the other.
    """
    with session_of(ctx) as session:
        result = session.merge(name, agent=asker(ctx, agent))
        folder = session.path
    emit(ctx, result.as_json(), lambda: _merged(result))
    for path in result.left:
        note(
            f"{folder / path} has an uncommitted edit and was left unchanged; smp commit merges both"
        )


def _merged(result: MergeResult) -> str:
    lines = [f"{touch.verb or 'add'} {touch.id}" for touch in result.touches]
    lines += [
        f"comments from one side of {each.id} were not kept; they are in the history"
        if each.field == COMMENTS
        else f"contested {each.id}: {each.field}, kept {as_words(each.kept)}"
        for each in result.contested
    ]
    return "\n".join(lines) or "nothing to do"


@command(example="smp tag before-launch")
def tag(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The tag to create")] = None,
    at: Annotated[
        str, typer.Option("--at", metavar="REV|TIME", help="The revision it names")
    ] = "HEAD",
    move: Annotated[bool, typer.Option("--move", help="Move a tag that is there already")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the tag")] = False,
) -> None:
    """List the tags, tag a commit, or move or remove a tag

    A tag works wherever a revision does: smp show DEC-42 --at before-launch. A tag that
    is moved or removed is so on the remotes with the next sync, unless somebody else
    moved it there.
    """
    if (move or remove) and (name is None or (move and remove)):
        raise InvalidError("--move and --remove need a tag, and exclude each other")
    with session_of(ctx) as session:
        if name is None:
            found = session.tags()
            value: dict[str, object] = {
                "tags": [each.as_json() for each in found],
                "total": len(found),
            }
            rows = [(each.name, paint("yellow", each.commit[:9])) for each in found]
            return emit(
                ctx,
                value,
                lambda: table(("TAG", "COMMIT"), rows, heads=False),
                empty="no tags",
                changes=False,
            )
        made = session.remove_tag(name) if remove else session.tag(name, at, move=move)
    return emit(ctx, made.as_json(), made.name)


@command(example="smp conflicts")
def conflicts(ctx: typer.Context) -> None:
    """List unresolved values that lost in merges"""
    with session_of(ctx) as session:
        found = session.conflicts()
    value: dict[str, object] = {
        "conflicts": [each.as_json() for each in found],
        "total": len(found),
    }
    emit(ctx, value, lambda: "\n".join(map(_conflict, found)), empty="nothing is contested")


def _conflict(found: Contested) -> str:
    lost = "a value in the history" if found.in_history else as_words(found.value)
    return f"{found.id}  {found.field}: kept {as_words(found.kept)}, not {lost} from {found.replica or 'a person'}, {exact(found.at)}"


@command("resolve-conflict", example="smp resolve-conflict DEC-42 impact --take k3fq")
def resolve_conflict(
    ctx: typer.Context,
    memory: Id,
    field: Annotated[str | None, typer.Argument(metavar="[FIELD]", help="Only this field")] = None,
    take: Annotated[
        str | None, typer.Option(metavar="REPLICA", help="Keep the value from this replica")
    ] = None,
    value: Annotated[
        str | None, typer.Option(metavar="VALUE", help="Keep this value; valid JSON is parsed")
    ] = None,
    agent: Agent = None,
) -> None:
    """Resolve a contested memory

    The current value is kept unless you choose another.
    """
    given = fields_from([f"value={value}"])["value"] if value is not None else None
    with session_of(ctx) as session:
        made = session.resolve_conflict(
            memory, field, take=take, value=given, agent=asker(ctx, agent)
        )
    emit(ctx, made.as_json(), made.id)
