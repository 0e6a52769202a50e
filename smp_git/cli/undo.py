"""Commands that go back, and the commit of edits by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from smp_git.cli.app import command
from smp_git.cli.common import asker, emit
from smp_git.cli.options import Agent, Yes, confirm
from smp_git.cli.place import is_memory, session_of, tell_beginning
from smp_git.cli.terminal import counted, in_counts, note
from smp_git.session import Session
from smp_git.write.writer import Change


def show_change(ctx: typer.Context, session: Session, change: Change) -> None:
    """Print what an undo, a rollback or a commit by hand did."""
    done = in_counts((touch.verb or "add", touch.id) for touch in change.touches)
    emit(ctx, change.as_json(), done or "nothing to do")
    note_left(session, change.left)


def note_left(session: Session, paths: Iterable[str]) -> None:
    """Tell which files were left alone because a person had edited them."""
    for path in paths:
        note(
            f"{session.path / path} has an uncommitted edit and was left unchanged; smp commit merges both"
        )


@command(example="smp undo DEC-42")
def undo(
    ctx: typer.Context,
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID|REV]",
            help="Only the latest change of this memory, or what this commit did",
        ),
    ] = None,
    agent: Agent = None,
) -> None:
    """Undo the latest write, or that of a memory or commit

    Makes a new commit; the history keeps both. Run it again to undo the write before
    that; smp redo takes it back. What was deleted comes back with smp restore.
    """
    with session_of(ctx) as session:
        is_id = what is not None and is_memory(session, what)
        part = {} if what is None else {"id" if is_id else "revision": what}
        show_change(ctx, session, session.undo(agent=asker(ctx, agent), **part))


@command(example="smp redo")
def redo(ctx: typer.Context, agent: Agent = None) -> None:
    """Take the latest undo back

    Only at once: after another write there is nothing to redo.
    """
    with session_of(ctx) as session:
        show_change(ctx, session, session.redo(agent=asker(ctx, agent)))


@command(example="smp rollback HEAD~3 DEC-42")
def rollback(
    ctx: typer.Context,
    revision: Annotated[
        str, typer.Argument(metavar="REV|TIME", help="HEAD~3, a commit, or '2 days ago'")
    ],
    memory: Annotated[str | None, typer.Argument(metavar="[ID]", help="Only this memory")] = None,
    agent: Agent = None,
    yes: Yes = False,
) -> None:
    """Return the session, or one memory, to an earlier state

    Makes a new commit. Deleted memories stay deleted. A time before the session began is
    its beginning; a rollback to before the first memory wants --yes.
    """
    with session_of(ctx) as session:
        tell_beginning(session, revision)
        if memory is None:
            _confirm_emptying(session, revision, yes=yes)
        show_change(ctx, session, session.rollback(revision, memory, agent=asker(ctx, agent)))


def _confirm_emptying(session: Session, revision: str, *, yes: bool) -> None:
    """Raise RefusedError unless a return to before the first memory is confirmed."""
    if session.version(revision).parents or session.memories(at=revision):
        return
    if gone := session.memories():
        confirm(
            f"there was no memory then: this would remove {counted(len(gone), 'memory')}", yes=yes
        )


@command(example="smp commit --agent ada")
def commit(ctx: typer.Context, agent: Agent = None) -> None:
    """Check edits made by hand, and commit them

    If a file does not parse, it is named with the line, and nothing is committed.
    """
    with session_of(ctx) as session:
        show_change(ctx, session, session.commit(agent=asker(ctx, agent)))
