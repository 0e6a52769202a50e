"""Commands about stores, sessions and their Git hooks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smp_git.cli.app import command
from smp_git.cli.common import asker, emit, folder, setting
from smp_git.cli.inputs import fields_from
from smp_git.cli.options import By, Reason
from smp_git.cli.place import current, make_current, name_of, session_of, store_of
from smp_git.cli.terminal import note
from smp_git.integrations.notes import FILE as NOTES
from smp_git.integrations.notes import write_notes
from smp_git.keep.opening import SessionInfo
from smp_git.keep.stores import PLACE
from smp_git.model.checks import as_text
from smp_git.model.errors import NotStoreError
from smp_git.model.times import format_time
from smp_git.store import Store

if TYPE_CHECKING:
    pass

if TYPE_CHECKING:
    pass


@command(example="smp init")
def init(
    ctx: typer.Context,
    path: Annotated[
        Path | None, typer.Argument(help="Folder of the store; .bmad/sessions by default")
    ] = None,
    agents_md: Annotated[
        bool,
        typer.Option("--agents-md", help="Tell agents of it in AGENTS.md, in the current folder"),
    ] = False,
) -> None:
    """Create a store

    A store is a folder of sessions. It keeps itself out of the Git repository of the
    project around it.
    """
    root = setting(ctx, "root", "SMP_ROOT")
    place = path or (Path(root) if root else PLACE)
    store = Store.init(folder(ctx) / place)
    if agents_md and write_notes(folder(ctx)):
        note(f"wrote {folder(ctx) / NOTES}")
    emit(ctx, {"path": str(store.path)}, str(store.path))


@command(example="smp new shop --user ada --agent architect --context project_name=Shop")
def new(
    ctx: typer.Context,
    session: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="Id of the session; made from the date if omitted"),
    ] = None,
    user: Annotated[str | None, typer.Option(help="Who the session is for")] = None,
    agent: Annotated[list[str], typer.Option(help="An agent that takes part")] = [],  # noqa: B006 - typer copies it
    context: Annotated[list[str], typer.Option(help="name=value, e.g. project_name=Shop")] = [],  # noqa: B006
    tag: Annotated[list[str], typer.Option(help="A tag of the session")] = [],  # noqa: B006
) -> None:
    """Create a session and use it in this terminal

    Prints its id. Also creates the store if there is none here.
    """
    store = _store_or_new(ctx)
    made = store.create_session(
        session, user=user, agents=agent, context=fields_from(context), tags=tag
    )
    with made:
        make_current(store, made.id)
        emit(ctx, {"id": made.id, "path": str(made.path)}, made.id)


def _store_or_new(ctx: typer.Context) -> Store:
    try:
        return store_of(ctx)
    except NotStoreError:
        root = setting(ctx, "root", "SMP_ROOT")
        return Store.init(folder(ctx) / (Path(root) if root else PLACE))


@command(example="smp use session-2026")
def use(
    ctx: typer.Context,
    session: Annotated[
        str, typer.Argument(metavar="ID", help="Session id, or a unique prefix of it")
    ],
) -> None:
    """Choose the session that commands in this terminal use"""
    store = store_of(ctx)
    name = store.find_session(session)
    make_current(store, name)
    emit(ctx, {"id": name}, name)


AllOfThem = Annotated[
    bool, typer.Option("--all", help="The archived and the deleted ones too, and global")
]


@command(example="smp sessions --json")
def sessions(ctx: typer.Context, everything: AllOfThem = False) -> None:
    """List the sessions in the store

    Each with its state: created, active, idle, decaying; with --all, archived and
    deleted ones too.
    """
    store = store_of(ctx)
    here = current(store)
    found, problems = store.infos()
    value: dict[str, object] = {
        "sessions": [{**info.as_json(), "current": info.id == here} for info in found],
        "total": len(found),
        "problems": list(problems),
    }
    lines = [_line(info, here) for info in found]
    if everything:
        kept, gone = store.archived_sessions(), store.deleted_sessions()
        value["archived"] = [{"id": each.session, **each.said} for each in kept]
        value["deleted"] = [
            {"id": each.session_id, "deadline": format_time(each.recovery_deadline)}
            for each in gone
        ]
        lines += [f"  {each.session}  {each.text('last_access')}  archived" for each in kept]
        lines += [f"  {each.session_id}  {format_time(each.deleted_at)}  deleted" for each in gone]
    emit(ctx, value, lambda: "\n".join(lines))
    for problem in problems:
        note(problem)


def _line(info: SessionInfo, here: str | None) -> str:
    mark = "*" if info.id == here else " "
    noun = "memory" if info.memories == 1 else "memories"
    at = format_time(info.last_written_at)
    return f"{mark} {info.id}  {at}  {info.state}  {info.memories} {noun}"


@command(example='smp archive shop --reason "the shop is finished"')
def archive(
    ctx: typer.Context,
    session: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Session id; the current one if omitted")
    ] = None,
    reason: Reason = None,
    by: By = None,
) -> None:
    """Archive a session

    Makes one compressed file of it, with its whole history, and a summary, which
    smp query --all-sessions searches. smp unarchive restores it as it was.
    """
    store = store_of(ctx)
    name = store.find_session(session) if session else name_of(ctx, store)
    done = store.archive_session(name, reason, by=asker(ctx, by))
    size = done.number("original_size_bytes")
    emit(ctx, {"id": name, **done.said}, f"archived {name}\n  {size:,} bytes before")


@command(example="smp unarchive shop")
def unarchive(
    ctx: typer.Context,
    session: Annotated[
        str, typer.Argument(metavar="ID", help="Session id, or a unique prefix of it")
    ],
    reason: Reason = None,
    by: By = None,
) -> None:
    """Restore an archived session"""
    place = store_of(ctx).unarchive_session(session, reason, by=asker(ctx, by))
    emit(ctx, {"id": place.name, "path": str(place)}, place.name)


@command(example="smp info")
def info(ctx: typer.Context) -> None:
    """Show an overview of a session"""
    with session_of(ctx) as session:
        found = session.info()
    emit(ctx, found.as_json(), lambda: _glance(found))


def _glance(found: SessionInfo) -> str:
    rows = [
        ("session", found.id),
        ("path", found.path),
        ("created", format_time(found.created_at)),
        ("last write", format_time(found.last_written_at)),
        ("state", f"{found.state}, last used {format_time(found.last_access)}"),
        (
            "memories",
            ", ".join(f"{count} {kind}" for kind, count in found.counts.items()) or "none",
        ),
        ("agents", ", ".join(f"{p.agent} ({p.memories})" for p in found.participants) or "none"),
        (
            "size",
            f"{found.size_bytes:,} bytes, "
            f"{100 * found.size_bytes / found.quota_bytes:.0f} % of {found.quota_bytes:,}",
        ),
        *(("setting", f"{name}: {as_text(value)}") for name, value in found.overrides.items()),
        *(("remote", str(remote)) for remote in found.remotes),
        *(("problem", problem) for problem in found.problems),
    ]
    if found.last_compaction:
        rows.append(("compacted", format_time(found.last_compaction)))
    if found.user:
        rows.insert(2, ("user", found.user))
    return "\n".join(f"{name:<11} {value}" for name, value in rows)
