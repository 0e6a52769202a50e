"""Commands about stores, sessions and their Git hooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smp_git.cli.app import command
from smp_git.cli.common import emit, folder, setting
from smp_git.cli.inputs import fields_from
from smp_git.cli.options import By, Reason
from smp_git.cli.person import actor, person
from smp_git.cli.place import current, make_current, name_of, session_of, store_of
from smp_git.cli.screen import due, in_bytes, pairs, table, when, wrapped
from smp_git.cli.terminal import counted, note, paint
from smp_git.integrations.notes import FILE as NOTES
from smp_git.integrations.notes import write_notes
from smp_git.keep.info import SessionInfo
from smp_git.model.checks import as_text
from smp_git.model.errors import NotStoreError
from smp_git.model.memory import Value
from smp_git.model.names import PLACE
from smp_git.model.times import format_time
from smp_git.store import Store
from smp_git.write.hand_edits import HandEdit

if TYPE_CHECKING:
    from smp_git.read.archives import Archived


@command(example="smp init")
def init(
    ctx: typer.Context,
    path: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="Folder of the store; .bmad/sessions by default"),
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
        typer.Argument(
            metavar="[SESSION]", help="Id of the session; made from the date if omitted"
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Who the session is for, and who writes; as Git says, else the system, if omitted",
        ),
    ] = None,
    agent: Annotated[
        list[str], typer.Option("--agent", metavar="AGENT", help="An agent that takes part")
    ] = [],  # noqa: B006 - typer copies it
    context: Annotated[
        list[str],
        typer.Option(
            "--context", metavar="KEY=VALUE", help="What it is about, e.g. project_name=Shop"
        ),
    ] = [],  # noqa: B006
    tag: Annotated[
        list[str], typer.Option("--tag", metavar="TAG", help="A tag of the session")
    ] = [],  # noqa: B006
) -> None:
    """Create a session and use it in this terminal

    Prints its id. Also creates the store if there is none here.
    """
    store = _store_or_new(ctx)
    made = store.create_session(
        session,
        user=person() if user is None else user,
        agents=agent,
        context=fields_from(context),
        tags=tag,
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
        str, typer.Argument(metavar="SESSION", help="Session id, or a unique prefix of it")
    ],
    default: Annotated[
        bool,
        typer.Option("--default", help="Choose it for whoever chose no other: agents, CI, cron"),
    ] = False,
) -> None:
    """Choose the session that commands in this terminal use"""
    store = store_of(ctx)
    name = store.find_session(session)
    make_current(store, name, everywhere=default)
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
    rows = [_row(info, here) for info in found]
    if everything:
        kept, gone = store.archived_sessions(), store.deleted_sessions()
        value["archived"] = [{"id": each.session, **each.said} for each in kept]
        value["deleted"] = [
            {"id": each.session_id, "deadline": format_time(each.recovery_deadline)}
            for each in gone
        ]
        rows += [
            (
                f"  {each.session}",
                _when_archived(each),
                "archived",
            )
            for each in kept
        ]
        rows += [(f"  {each.session_id}", when(each.deleted_at), "deleted") for each in gone]
    lines = [(*row, "")[:4] for row in rows]
    head = ("SESSION", "WRITTEN", "STATE", "MEMORIES")
    emit(
        ctx, value, lambda: table(head, lines, heads=False), empty="no sessions; smp new makes one"
    )
    for problem in problems:
        note(problem)


def _row(info: SessionInfo, here: str | None) -> tuple[str, ...]:
    mark, name = ("*", paint("green", info.id)) if info.id == here else (" ", info.id)
    noun = "memory" if info.memories == 1 else "memories"
    return f"{mark} {name}", when(info.last_written_at), info.state, f"{info.memories:,} {noun}"


@command(example='smp archive shop --reason "the shop is finished"')
def archive(
    ctx: typer.Context,
    session: Annotated[
        str | None,
        typer.Argument(metavar="[SESSION]", help="Session id; the current one if omitted"),
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
    done = store.archive_session(name, reason, by=actor(ctx, by))
    size = done.number("original_size_bytes")
    emit(ctx, {"id": name, **done.said}, f"archived {name}\n  {size:,} bytes before")


@command(example="smp unarchive shop")
def unarchive(
    ctx: typer.Context,
    session: Annotated[
        str, typer.Argument(metavar="SESSION", help="Session id, or a unique prefix of it")
    ],
    reason: Reason = None,
    by: By = None,
) -> None:
    """Restore an archived session"""
    place = store_of(ctx).unarchive_session(session, reason, by=actor(ctx, by))
    emit(ctx, {"id": place.name, "path": str(place)}, place.name)


@command(example="smp status")
def status(ctx: typer.Context) -> None:
    """Show the session, its branch, edits by hand, remotes and size

    What is asked for attention is named with the command that deals with it.
    """
    with session_of(ctx) as session:
        found, edited = session.info(), session.hand_edits()
        branch, (latest, *_) = session.current_branch, session.log(limit=1)
        commits = len(session.log())
    value: dict[str, object] = {
        "session": found.id,
        "user": found.user,
        "store": str(Path(found.path).parent.parent),
        "branch": branch,
        "commits": commits,
        "latest": latest.as_json(),
        "counts": dict(found.counts),
        "hand_edits": [each.as_json() for each in edited],
        "remotes": [each.as_json() for each in found.remotes],
        "size_bytes": found.size_bytes,
        "quota_bytes": found.quota_bytes,
        "problems": list(found.problems),
    }
    user = f", for {found.user}" if found.user else ""
    rows = [
        ("session", f"{paint('bold', found.id)}{user}"),
        (
            "branch",
            f"{branch}, {counted(commits, 'commit')}, last write {when(latest.at)} by {latest.agent}",
        ),
        ("memories", _kinds(found.counts) or "none"),
        *_several("by hand", map(_hand_edit, edited), "no edits"),
        *_several("remotes", map(str, found.remotes), "none"),
        ("size", f"{in_bytes(found.size_bytes)} of {in_bytes(found.quota_bytes)}"),
        ("store", str(value["store"])),
        *(("problem", paint("red", problem)) for problem in found.problems),
    ]
    emit(ctx, value, lambda: "\n".join(wrapped(f"{name:<9}  {text}", 0, 11) for name, text in rows))
    if edited:
        note("smp commit takes the edits by hand in")


def _kinds(counts: Mapping[str, int]) -> str:
    return ", ".join(counted(count, kind) for kind, count in counts.items())


def _several(name: str, lines: Iterable[str], none: str) -> list[tuple[str, str]]:
    """Return rows of which the first alone has the name."""
    found = list(lines) or [none]
    return [(name, found[0]), *(("", each) for each in found[1:])]


def _hand_edit(edit: HandEdit) -> str:
    style = {"added": "green", "removed": "red"}.get(edit.change, "yellow")
    return f"{paint(style, edit.change)} {paint('cyan', edit.id)}  {edit.path}"


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
        ("created", due(found.created_at)),
        ("last write", due(found.last_written_at)),
        ("state", f"{found.state}, last used {when(found.last_access)}"),
        ("memories", _kinds(found.counts) or "none"),
        ("agents", _agents(found)),
        (
            "size",
            f"{found.size_bytes:,} bytes, {found.quota_percent:.0f} % of {found.quota_bytes:,}",
        ),
        ("decay", _decay(found.decay)),
        *(("setting", f"{name}: {as_text(value)}") for name, value in found.overrides.items()),
        *(("remote", str(remote)) for remote in found.remotes),
        *(("problem", problem) for problem in found.problems),
    ]
    if found.kept_aside:
        rows.append(("aside", f"{found.kept_aside} lost memories and files, in .git/smp/damaged"))
    if found.last_compaction:
        rows.append(("compacted", due(found.last_compaction)))
    if found.user:
        rows.insert(2, ("user", found.user))
    return pairs(rows)


def _agents(found: SessionInfo) -> str:
    """Return who wrote, and how much; then who was named and has not written yet."""
    wrote = {each.agent: f"{each.agent} ({each.memories})" for each in found.participants}
    silent = [f"{name} (0)" for name in found.agents if name not in wrote]
    return ", ".join([*wrote.values(), *silent]) or "none"


def _decay(said: Mapping[str, Value]) -> str:
    """Return how the priority of memories falls, as the settings say it."""
    if said.get("enabled") is False:
        return "off"
    rest = {name: value for name, value in said.items() if name not in ("enabled", "preset")}
    more = f", {as_text(rest)}" if rest else ""
    return f"{said.get('preset', 'default')}{more}"


def _when_archived(each: Archived) -> str:
    at = each.text("last_access")
    return when(at) if at else ""
