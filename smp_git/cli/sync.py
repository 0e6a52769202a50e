"""Commands that share sessions with other machines."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from smp_git.cli.app import command
from smp_git.cli.common import asker, emit
from smp_git.cli.options import By
from smp_git.cli.place import make_current, session_of, store_of
from smp_git.cli.progress import PROGRESS, listener
from smp_git.cli.terminal import counted, note, say
from smp_git.model.errors import InvalidError

if TYPE_CHECKING:
    from smp_git.keep.syncing import Synced
    from smp_git.sync.remotes import SyncResult

RemoteName = Annotated[
    str | None,
    typer.Argument(
        metavar="[REMOTE]", help="Name of a remote; defaults to origin, or to the only one"
    ),
]
Ask = Annotated[bool, typer.Option("--ask", help="Allow Git's credential helpers to ask")]
Accept = Annotated[
    bool, typer.Option("--accept", help="Accept a remote that went back to an earlier state")
]


def _asking(ask: bool) -> AbstractContextManager[None]:
    """Leave the terminal to whoever may ask for a password."""
    return PROGRESS.hidden() if ask else nullcontext()


@command(example="smp clone git@host:memory/shop.git")
def clone(
    ctx: typer.Context,
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS",
            help="Address of a remote, or a session id if the store sets a remote pattern",
        ),
    ],
    session: Annotated[
        str | None,
        typer.Argument(metavar="[SESSION]", help="Id of the session here; defaults to its own"),
    ] = None,
    ask: Ask = False,
) -> None:
    """Clone a session and use it in this terminal"""
    store = store_of(ctx)
    with _asking(ask), store.clone(address, session, ask=ask, progress=listener()) as made:
        make_current(store, made.id)
        emit(ctx, {"id": made.id, "path": str(made.path)}, made.id)


@command(example="smp remote add origin git@host:memory/shop.git")
def remote(
    ctx: typer.Context,
    action: Annotated[
        str, typer.Argument(metavar="[list|add|remove]", help="list, add or remove")
    ] = "list",
    name: Annotated[
        str | None, typer.Argument(metavar="[REMOTE]", help="Name of the remote")
    ] = None,
    address: Annotated[
        str | None,
        typer.Argument(
            metavar="[ADDRESS]", help="A path, or what git clone takes: ssh, https, file"
        ),
    ] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Make an empty repository at a path that has none")
    ] = False,
) -> None:
    """List the remotes of a session, add one, or remove one"""
    given = (action, name is not None, address is not None)
    with session_of(ctx) as session:
        if given == ("list", False, False):
            states = session.remote_states()
            return emit(
                ctx,
                {"remotes": [each.as_json() for each in states]},
                lambda: "\n".join(map(str, states)) or "none",
                changes=False,
            )
        if given == ("add", True, True) and name and address:
            made = session.add_remote(name, address, create=create)
            return emit(
                ctx,
                {"name": made.name, "address": made.address.text},
                f"{made.name}  {made.address.text}",
            )
        if given == ("remove", True, False) and name:
            session.remove_remote(name)
            return emit(ctx, {"name": name}, name)
    raise InvalidError(
        f"smp remote {action} takes other arguments",
        hint="smp remote; smp remote add NAME ADDRESS; smp remote remove NAME",
    )


@command(example="smp sync")
def sync(
    ctx: typer.Context,
    remote: RemoteName = None,
    all_sessions: Annotated[
        bool, typer.Option("--all-sessions", help="Every session in the store that has this remote")
    ] = False,
    accept: Accept = False,
    ask: Ask = False,
    by: By = None,
) -> None:
    """Sync a session with a remote: fetch, merge, push

    Reports success only when the remote itself confirms what it has. Memories changed
    on both sides are merged field by field; smp conflicts lists the decisions made.
    """
    if all_sessions:
        return _sync_all(ctx, remote, asker(ctx, by), ask=ask)
    with session_of(ctx) as session, _asking(ask):
        result = session.sync(
            remote, agent=asker(ctx, by), accept=accept, ask=ask, progress=listener()
        )
    for sentence in result.notes:
        note(sentence)
    return emit(ctx, result.as_json(), lambda: _said(result))


def _sync_all(ctx: typer.Context, remote: str | None, by: str | None, *, ask: bool) -> None:
    """Sync several sessions at a time; one that fails does not keep the others back."""
    with _asking(ask):
        done = store_of(ctx).sync(remote, agent=by, ask=ask, progress=listener())
    for name, result in done.results.items():
        for sentence in result.notes:
            note(f"{name}: {sentence}")
    emit(
        ctx,
        {
            "sessions": {name: result.as_json() for name, result in done.results.items()},
            "failed": {name: error.as_json() for name, error in done.failed.items()},
        },
        lambda: _summary(done),
    )
    for name, error in done.failed.items():
        say(f"smp: {name}: {error.message}", err=True)
        if error.hint:
            say(f"hint: {error.hint}", err=True)
    if done.failed:
        raise typer.Exit(max(error.exit_status for error in done.failed.values()))


def _summary(done: Synced) -> str:
    """Return a line for each session that moved, and one for all."""
    if not done.results and not done.failed:
        return "no session has a remote"
    moved = [
        f"{name}: {_said(result)}" for name, result in done.results.items() if _has_moved(result)
    ]
    count = f"{counted(len(done.results), 'session')} in sync"
    fetched = sum(each.fetched for each in done.results.values())
    pushed = sum(each.pushed for each in done.results.values())
    failed = f", {len(done.failed)} failed" if done.failed else ""
    return "\n".join([*moved, f"{count}: {fetched} in, {pushed} out{failed}"])


def _has_moved(result: SyncResult) -> bool:
    return bool(
        result.fetched
        or result.pushed
        or result.merged
        or result.contested
        or result.rewritten
        or result.replaced
    )


@command(example="smp fetch")
def fetch(
    ctx: typer.Context,
    remote: RemoteName = None,
    accept: Accept = False,
    ask: Ask = False,
    by: By = None,
) -> None:
    """Fetch from a remote without merging"""
    with session_of(ctx) as session, _asking(ask):
        result = session.fetch(
            remote, agent=asker(ctx, by), accept=accept, ask=ask, progress=listener()
        )
    emit(ctx, result.as_json(), lambda: _said(result))


@command(example="smp push")
def push(ctx: typer.Context, remote: RemoteName = None, ask: Ask = False, by: By = None) -> None:
    """Push to a remote

    Refused if the remote has commits that are not here; smp sync merges them and
    pushes.
    """
    with session_of(ctx) as session, _asking(ask):
        result = session.push(remote, agent=asker(ctx, by), ask=ask, progress=listener())
    emit(ctx, result.as_json(), lambda: _said(result))


def _said(result: SyncResult) -> str:
    parts = [
        f"{result.fetched} in, {result.pushed} out",
        f"merged {', '.join(result.merged)}" if result.merged else "",
        f"{counted(len(result.contested), 'field')} contested (smp conflicts)"
        if result.contested
        else "",
        f"deleted here too: {', '.join(result.rewritten)}" if result.rewritten else "",
        "history there replaced" if result.replaced else "",
    ]
    head = f" at {result.advertised[:12]}" if result.advertised else ""
    return f"{result.remote}: {'; '.join(part for part in parts if part)}{head}"
