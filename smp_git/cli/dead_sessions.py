"""Commands that delete whole sessions, and bring them back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from smp_git.cli.app import command
from smp_git.cli.common import asker, emit
from smp_git.cli.options import By, Reason, Yes, confirm
from smp_git.cli.person import actor
from smp_git.cli.place import store_of
from smp_git.cli.proof import FOUND, left_lines
from smp_git.cli.screen import due
from smp_git.cli.terminal import note

if TYPE_CHECKING:
    pass
SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="Full id of the session")]


@command("delete-session", example="smp delete-session shop --reason finished")
def delete_session(
    ctx: typer.Context, session: SessionId, reason: Reason = None, by: By = None
) -> None:
    """Delete a whole session

    Moves it unchanged to the store's trash. It can be restored until its deadline.
    """
    done = store_of(ctx).delete_session(session, reason, by=asker(ctx, by))
    emit(
        ctx,
        done.as_json(),
        f"deleted {done.session}\n  restorable until {due(done.deadline)}; smp undelete-session {done.session}",
    )
    for remote in done.remotes:
        note(f"a copy may be left at the remote {remote}")


@command("undelete-session", example="smp undelete-session shop")
def undelete_session(
    ctx: typer.Context, session: SessionId, reason: Reason = None, by: By = None
) -> None:
    """Restore a deleted session"""
    store = store_of(ctx)
    with store.undelete_session(session, by=actor(ctx, by), reason=reason) as back:
        emit(ctx, {"id": back.id, "path": str(back.path)}, back.id)


@command("purge-session", example="smp purge-session shop --yes")
def purge_session(
    ctx: typer.Context, session: SessionId, reason: Reason = None, by: By = None, yes: Yes = False
) -> None:
    """Destroy a deleted session

    Everything deleted from it earlier is destroyed too. This is final. Exits with 9 if
    a copy is left whose record cannot be read and which may belong to another deleted
    session of that name.
    """
    store = store_of(ctx)
    left = store.purge_session(session, reason=reason, by=actor(ctx, by), dry_run=not yes)
    value = {"dry_run": not yes, "session": session, "left": [each.as_json() for each in left]}
    lines = left_lines(f"{each.deletion}, whose record cannot be read: {each.why}" for each in left)
    what = f"purged {session}" if yes else f"would purge session {session}"
    emit(ctx, value, "\n".join((what, *lines)))
    confirm(yes=yes)
    if left:
        raise typer.Exit(FOUND)
