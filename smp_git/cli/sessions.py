"""Commands about stores, sessions and their Git hooks."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smp_git.cli.app import (
    asker,
    command,
    current,
    emit,
    fields_from,
    folder,
    make_current,
    name_of,
    session_of,
    setting,
    store_of,
)
from smp_git.cli.git_hooks import do
from smp_git.cli.terminal import counted, note, say
from smp_git.format import yamlfile
from smp_git.git.layout import OWN
from smp_git.integrations.notes import FILE as NOTES
from smp_git.integrations.notes import write_notes
from smp_git.keep.opening import SessionInfo
from smp_git.keep.stores import PLACE
from smp_git.model.checks import as_text
from smp_git.model.errors import InvalidError, NotStoreError
from smp_git.model.settings import row_of
from smp_git.model.times import format_time
from smp_git.store import Store

if TYPE_CHECKING:
    from smp_git.keep.maintenance import Maintained

if TYPE_CHECKING:
    from smp_git.keep.configure import Configured


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
Reason = Annotated[str | None, typer.Option(help="Why; kept in the audit log")]
By = Annotated[str | None, typer.Option(help="Who requested it [env: SMP_AGENT]")]


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


@command(example="smp config set trash_days=90")
def config(
    ctx: typer.Context,
    action: Annotated[
        str, typer.Argument(metavar="[ACTION]", help="list, get, set or unset")
    ] = "list",
    name: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="Names, or for set NAME=VALUE")
    ] = None,
    here: Annotated[
        bool, typer.Option("--here", help="For the session of this terminal alone; so does -s ID")
    ] = False,
) -> None:
    """Show or change settings

    They are those of the store, or with -s ID of one session, which override the
    store's. Each is shown with where it is set.
    """
    given = name or []
    in_session = here or setting(ctx, "session") is not None
    with session_of(ctx) if in_session else nullcontext(store_of(ctx)) as place:
        if action in ("set", "unset"):
            changes = fields_from(given) if action == "set" else dict.fromkeys(given)
            if not changes:
                raise InvalidError("nothing to change", hint="smp config set NAME=VALUE")
            place.configure(changes)
            given = list(changes)
        elif action not in ("list", "get") or (action == "get") != bool(given):
            raise InvalidError(
                f"smp config does not {' '.join([action, *given])}",
                hint="smp config list, get NAME, set NAME=VALUE or unset NAME",
            )
        every = place.configuration()
    known = {each.name: each for each in every}
    shown = [known[row_of(each, action).name] for each in given] if given else list(every)
    value: dict[str, object] = {"settings": [each.as_json() for each in shown]}
    emit(ctx, value, lambda: _settings(shown, named=action != "get"))


def _settings(shown: Sequence[Configured], *, named: bool) -> str:
    if not named:
        return "\n".join(map(str, shown))
    wide = max(len(each.name) for each in shown)
    return "\n".join(
        f"{each.name:<{wide}}  {each}" + (f"  ({each.source})" if each.source != "default" else "")
        for each in shown
    )


@command(hidden=True, example="smp override redaction=off")
def override(
    ctx: typer.Context,
    setting: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=VALUE...", help="A setting for this session only; null removes it"
        ),
    ],
) -> None:
    """Set settings of a session, as smp config --here set does"""
    with session_of(ctx) as session:
        change = session.override(fields_from(setting))
        emit(ctx, change.as_json(), yamlfile.written(session.metadata.settings))


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


@command(example="smp maintain --all --dry-run")
def maintain(
    ctx: typer.Context,
    everything: Annotated[
        bool, typer.Option("--all", help="Every session of the store, and its trash")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done")] = False,
    print_schedule: Annotated[
        bool,
        typer.Option(
            "--print-schedule", help="Print a systemd timer, a launchd agent and a line for cron"
        ),
    ] = False,
) -> None:
    """Do what is due: once a day, from a timer or by hand

    Deletes memories past their retention (with auto_purge), makes deletions past their
    deadline final, checks indexes, makes vectors, packs Git's objects, and archives
    sessions that were not used for long. A second run finds nothing to do. Exits with 9
    if a session could not be maintained.
    """
    store = store_of(ctx)
    if print_schedule:
        from smp_git.keep.schedules import schedule  # noqa: PLC0415 - only for this

        program = shutil.which("smp") or "smp"
        text = schedule([program, "--root", str(store.path), "maintain", "--all"])
        return emit(ctx, {"schedule": text}, text.rstrip())
    done = store.maintain(None if everything else name_of(ctx, store), dry_run=dry_run)
    emit(ctx, done.as_json(), lambda: _maintained(done))
    for each in done.notes:
        note(each)
    for name, error in done.failed.items():
        say(f"smp: {name}: {error.message}", err=True)
    if done.failed:
        raise typer.Exit(9)
    return None


def _maintained(done: Maintained) -> str:
    lines = [
        f"{each.session}  {each.step}  {each.count:,}  {each.message}" for each in done.actions
    ]
    would = "would be done" if done.dry_run else "done"
    return "\n".join(lines) or f"nothing {would} in {counted(done.sessions, 'session')}"


@command(example="smp stats --json")
def stats(ctx: typer.Context) -> None:
    """Show the metrics of the store

    Sessions, memories and bytes are counted; how long writes and queries took, locks
    that were held for too long, and damage are what log.jsonl tells.
    """
    found = store_of(ctx).stats()
    states = ", ".join(f"{count} {name}" for name, count in found.states.items())
    kinds = ", ".join(f"{count:,} {name}" for name, count in found.kinds.items())
    rows = [("sessions", states or "none"), ("memories", kinds or "none")]
    rows += [(name, _metric(value)) for name, value in found.metrics.items()]
    width = max(len(name) for name, _ in rows)
    emit(ctx, found.as_json(), "\n".join(f"{name:<{width}}  {value}" for name, value in rows))
    for name, error in found.failed.items():
        note(f"{name}: {error.message}")


def _metric(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_metric(each)}" for name, each in value.items())
    return "none" if value is None else f"{value:,}"


@command(example="smp check")
def check(ctx: typer.Context) -> None:
    """Check that a session is sound

    Exits with 9 if it is not.
    """
    with session_of(ctx) as session:
        problems = session.check()
    emit(
        ctx,
        {"problems": [problem.as_json() for problem in problems]},
        lambda: "\n".join(problem.message for problem in problems) or "sound",
    )
    if find_spec("_sqlite3") is None:
        note("this Python has no sqlite3: queries work, but each process indexes anew")
    if problems:
        raise typer.Exit(9)


@command(example="smp repair --dry-run")
def repair(
    ctx: typer.Context,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing")
    ] = False,
) -> None:
    """Repair a session from what remains of it

    Also one that does not open. What is damaged is stored again from the checked-out
    files, another copy in the repository, or a remote. Of what nobody has, the version
    before takes the place, or it is taken out of the session and its history; what is
    known of it and the broken bytes are kept in .git/smp/damaged until the next deletion.
    """
    store = store_of(ctx)
    found = store.repair(name_of(ctx, store), dry_run=dry_run)
    value: dict[str, object] = {"repairs": [each.as_json() for each in found], "dry_run": dry_run}
    emit(ctx, value, lambda: "\n".join(each.message for each in found) or "nothing to repair")


@command(hidden=True, example="smp hook pre-commit")
def hook(
    name: Annotated[str, typer.Argument(help="The hook that Git runs")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Arguments from Git")] = None,
) -> None:
    """Run a Git hook in the repository of this folder."""
    raise typer.Exit(do(name, arguments or []))


@command(example="smp hooks install --server /srv/memory/shop.git")
def hooks(
    ctx: typer.Context,
    action: Annotated[
        str, typer.Argument(metavar="[ACTION]", help="list, install or remove")
    ] = "list",
    server: Annotated[
        Path | None,
        typer.Option(
            "--server",
            metavar="PATH",
            help="Use the bare repository on a server instead of a session",
        ),
    ] = None,
) -> None:
    """List, install or remove the hooks of a session or server

    Hooks make plain Git safe in a session (git commit, merge, pull, rebase and push),
    and check what a server accepts. A new session has them. Your own hooks are left
    alone.
    """
    from smp_git.keep.hooks import install  # noqa: PLC0415 - a hook starts fast

    session, bare = {
        "list": (install.state, install.state_on_server),
        "install": (install.install, install.install_on_server),
        "remove": (install.remove, install.remove_from_server),
    }.get(action, (None, None))
    if session is None or bare is None:
        raise InvalidError(f"smp hooks does not {action}", hint="smp hooks list, install or remove")
    found = bare(folder(ctx) / server) if server else session(_session_folder(ctx))
    emit(ctx, found.as_json(), "\n".join(f"{name}  {state}" for name, state in found.hooks.items()))
    own = [name for name, state in found.hooks.items() if state == OWN]
    if own and action == "install":
        note(
            f"left alone, because they are your own: {', '.join(own)}; let them call smp hook NAME"
        )


def _session_folder(ctx: typer.Context) -> Path:
    with session_of(ctx) as session:
        return session.path
