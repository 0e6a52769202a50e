"""The store and the session that a command is about."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import typer

from smp_git.cli.common import folder, setting
from smp_git.cli.screen import exact
from smp_git.cli.terminal import note
from smp_git.git.disk import reporting
from smp_git.model.errors import (
    InvalidError,
    NotFoundError,
    NotStoreError,
    SessionArchivedError,
    SessionNotFoundError,
)
from smp_git.model.ids import is_id, short_id
from smp_git.session import Session
from smp_git.store import Store

# The sessions that this call has opened.
in_use: Final[list[Session]] = []
# What an abbreviated commit looks like.
_HEX: Final = re.compile(r"[0-9a-f]{4,40}")
# So many sentences about damage are read; more are not.
_TOLD: Final = 10
# Beside the choices of terminals, which have other names.
_DEFAULT: Final = "default"


def store_of(ctx: typer.Context) -> Store:
    """Open the store: `--root`, `SMP_ROOT`, or the nearest from the folder up."""
    root = setting(ctx, "root", "SMP_ROOT")
    here = folder(ctx)
    if root:
        return Store.open(here / root)
    for place in (here, *here.parents):
        try:
            return Store.open(place)
        except NotStoreError:
            continue
    raise NotStoreError(f"no store in {here} or above", hint="smp init makes one")


def session_of(ctx: typer.Context) -> Session:
    """Open the session on its branch: `--branch`, `SMP_BRANCH`, the terminal's, or main."""
    store = store_of(ctx)
    session = _open(ctx, store)
    given = setting(ctx, "branch", "SMP_BRANCH")
    branch = given or _chosen_branch(store, session.id)
    if not branch:
        return session
    try:
        session.switch(branch)
    except NotFoundError as error:
        session.close()
        hint = error.hint if given else "it was chosen in this terminal; smp switch main goes back"
        raise NotFoundError(error.message, hint=hint) from None
    return session


@contextmanager
def reached(ctx: typer.Context) -> Iterator[Session]:
    """Open the session, from its archive if it is archived, into which it goes back."""
    try:
        session = session_of(ctx)
    except SessionArchivedError as error:
        with store_of(ctx).within_archive(str(error.session_id)) as archived:
            yield archived
        note(f"session {error.session_id} is archived again")
        return
    with session:
        yield session


def main_of(ctx: typer.Context) -> Session:
    """Open the session: `-s`, `SMP_SESSION`, the terminal's current one, or the only one."""
    return _open(ctx, store_of(ctx))


def is_memory(session: Session, text: str) -> bool:
    """Whether an argument is an id; an abbreviated commit may look like one."""
    if not is_id(text) and short_id(text) is None:
        return False
    return not _HEX.fullmatch(text) or session.full_id(text) in session


def tell_beginning(session: Session, moment: str | None) -> None:
    """Tell that a time is before the session, so that what is meant is its beginning."""
    if moment is None or (first := session.version(moment)).parents:
        return
    # A revision is no time.
    with suppress(InvalidError):
        if not session.log(until=moment, limit=1):
            note(f"session {session.id} began at {exact(first.at)}, so this is its beginning")


def tell_damage(session: Session) -> None:
    """Tell what could not be read, each once."""
    found = session.passed_over
    for each in found[:_TOLD]:
        note(each)
    if len(found) > _TOLD:
        note(f"and {len(found) - _TOLD} more; smp check names them")


def _open(ctx: typer.Context, store: Store) -> Session:
    """Open the session that is meant, and tell what plain Git took off it, once."""
    session = store.session(name_of(ctx, store))
    in_use.append(session)
    for each in session.news():
        note(each)
    return session


def name_of(ctx: typer.Context, store: Store) -> str:
    """Return the session that is meant: `-s`, `SMP_SESSION`, the terminal's, or the only one."""
    named = setting(ctx, "session", "SMP_SESSION") or current(store)
    if named:
        return named
    known = store.sessions()
    if len(known) == 1:
        return known[0]
    if not known:
        raise NotFoundError(f"the store at {store.path} has no session", hint="smp new makes one")
    raise NotFoundError(
        f"{len(known)} sessions, and none is current in this terminal",
        hint="name one with -s ID, or choose one with smp use ID, for good with --default",
    )


def make_current(
    store: Store, session_id: str, branch: str = "", *, everywhere: bool = False
) -> None:
    """Let commands of this terminal, or of all without a choice, mean a session and its branch."""
    place = store.path / ".current"
    with reporting(f"which session this terminal uses, in {place}"):
        place.mkdir(mode=0o700, exist_ok=True)
        name = _DEFAULT if everywhere else _terminal()
        (place / name).write_text(f"{session_id}\n{branch}\n")
    if not everywhere:
        _tell_reach(store, session_id, branch)


def _tell_reach(store: Store, session_id: str, branch: str) -> None:
    """Say what a choice does not do where there is no terminal, if that makes a difference."""
    if any(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        return
    if branch:
        note(f"no terminal here, so other shells stay on main; --branch {branch} names the branch")
    elif len(store.sessions()) > 1 and _said(store, _DEFAULT)[0] != session_id:
        note(
            f"no terminal here, so other shells do not use {session_id};"
            f" smp use --default {session_id} makes them"
        )


def current(store: Store) -> str | None:
    """Return the session that this terminal's commands mean, or None."""
    name = _chosen(store)[0]
    try:
        return store.find_session(name) if name else None
    except SessionArchivedError as error:
        return error.session_id
    except SessionNotFoundError:
        return None


def _chosen_branch(store: Store, session_id: str) -> str | None:
    """Return the branch of a session that this terminal's commands mean, or None."""
    session, branch = _chosen(store)
    return branch or None if session == session_id else None


def _chosen(store: Store) -> tuple[str, str]:
    """Return the session and the branch of this terminal, else of all, empty if none were chosen."""
    session, branch = _said(store, _terminal())
    return (session, branch) if session else _said(store, _DEFAULT)


def _said(store: Store, name: str) -> tuple[str, str]:
    try:
        lines = (store.path / ".current" / name).read_text().split("\n")
    except OSError:
        return "", ""
    return lines[0], lines[1] if lines[1:] else ""


def _terminal() -> str:
    """Return what tells this terminal from others: its session of processes and when it began."""
    if not hasattr(os, "getsid"):
        return os.environ.get("WT_SESSION", "console")
    leader = os.getsid(0)
    try:
        # The 22nd field is the start time, so that a number used again is another terminal.
        started = Path(f"/proc/{leader}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        started = "0"
    return f"{sys.platform}-{leader}-{started}"
