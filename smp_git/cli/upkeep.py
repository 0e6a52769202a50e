"""Commands that look after a store: maintenance, checks, repairs, hooks."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smp_git.cli.app import command
from smp_git.cli.common import emit, folder
from smp_git.cli.git_hooks import do
from smp_git.cli.place import name_of, session_of, store_of
from smp_git.cli.screen import pairs
from smp_git.cli.terminal import counted, note, say
from smp_git.git.layout import OWN
from smp_git.model.errors import InvalidError

if TYPE_CHECKING:
    from smp_git.keep.maintenance import Maintained

if TYPE_CHECKING:
    pass


@command(example="smp maintain --all-sessions --dry-run")
def maintain(
    ctx: typer.Context,
    all_sessions: Annotated[
        bool, typer.Option("--all-sessions", help="Every session of the store, and its trash")
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
        text = schedule([program, "--root", str(store.path), "maintain", "--all-sessions"])
        return emit(ctx, {"schedule": text}, text.rstrip(), copied=True)
    done = store.maintain(None if all_sessions else name_of(ctx, store), dry_run=dry_run)
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
    kinds = ", ".join(counted(count, name) for name, count in found.kinds.items())
    rows = [("sessions", states or "none"), ("memories", kinds or "none")]
    rows += [(name, _metric(value)) for name, value in found.metrics.items()]
    emit(ctx, found.as_json(), lambda: pairs(rows))
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
    copy: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="A copy that may have it: a session's folder, an archive, a bundle, a repository",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing")
    ] = False,
) -> None:
    """Repair a session from what remains of it

    Also one that does not open. What is damaged is stored again from the checked-out
    files, another copy in the repository, --from or a remote. Of what nobody has, the
    version before takes the place, or it is taken out of the session and its history;
    what is known of it and the broken bytes are kept in .git/smp/damaged until the next
    deletion. A session whose archive is damaged becomes active again.
    """
    store = store_of(ctx)
    found = store.repair(name_of(ctx, store), copy=copy, dry_run=dry_run)
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
        str, typer.Argument(metavar="[list|install|remove]", help="list, install or remove")
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
    lines = "\n".join(f"{name}  {state}" for name, state in found.hooks.items())
    emit(ctx, found.as_json(), lines, changes=action != "list")
    own = [name for name, state in found.hooks.items() if state == OWN]
    if own and action == "install":
        note(
            f"left alone, because they are your own: {', '.join(own)}; let them call smp hook NAME"
        )


def _session_folder(ctx: typer.Context) -> Path:
    with session_of(ctx) as session:
        return session.path
