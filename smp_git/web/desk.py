"""Sessions of the page: opened when first looked at, closed when they are gone or others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from smp_git.model.errors import SessionNotFoundError, SmpError
from smp_git.session import Session
from smp_git.store import Store
from smp_git.web.views.sessions import Broken
from smp_git.write.handle import GLOBAL

# A person has looked at a page for so long before anything is typed.
_PAUSE_SECONDS: Final = 0.4


class _Opened(NamedTuple):
    """An open session, and what tells its folder from another one at the same place."""

    session: Session
    folder: tuple[int, int]


class OpenSessions:
    """The sessions of a store, for threads that look at the same time."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._known: dict[str, _Opened] = {}
        # Somebody may still be looking at one of these.
        self._gone: list[Session] = []
        self._opening = threading.Lock()
        self._warming: dict[Session, threading.Thread] = {}
        self._closing = threading.Event()

    def get(self, name: str) -> Session:
        """Return a session by its whole name; raise SessionNotFoundError."""
        with self._opening:
            found = self._known.get(name)
            if found is not None and found.folder != _folder(found.session):
                # Deleted, archived, or replaced by another one of this name.
                self._gone.append(self._known.pop(name).session)
                found = None
            if found is None:
                found = self._known[name] = self._open(name)
            return found.session

    def _open(self, name: str) -> _Opened:
        if name != GLOBAL and self.store.find_session(name) != name:
            raise SessionNotFoundError(f"no session {name}")
        if name == GLOBAL and not (self.store.path / GLOBAL).is_dir():
            raise SessionNotFoundError("nothing applies to all sessions yet")
        session = self.store.session(name)
        return _Opened(session, _folder(session))

    def names(self) -> tuple[str, ...]:
        """Return the names of the sessions, the global one last."""
        shared = (GLOBAL,) if (self.store.path / GLOBAL / ".git").is_dir() else ()
        return (*self.store.sessions(), *shared)

    def every(self) -> Iterator[Session | Broken]:
        """Yield the sessions that open, and what is to be said of the others."""
        for name in self.names():
            try:
                yield self.get(name)
            except SmpError as error:
                yield Broken(id=name, message=error.message, hint=error.hint)

    def is_warm(self, session: Session) -> bool:
        """Return whether the caches of a session are filled; if not, begin to fill them."""
        with self._opening:
            thread = self._warming.get(session)
            if thread is None:
                thread = threading.Thread(target=self._warm, args=(session,), daemon=True)
                self._warming[session] = thread
                thread.start()
            return not thread.is_alive()

    def _warm(self, session: Session) -> None:
        """Let search and histories be ready when somebody asks; the page that is asked for goes first."""
        if self._closing.wait(_PAUSE_SECONDS):
            return
        with suppress(SmpError):
            session.query("a", limit=1)
            session.query(where=[("contested", "exists", True)], limit=0)
            for hit in session.query(limit=1):
                session.history(hit.id)

    def close(self) -> None:
        """Close every session."""
        self._closing.set()
        for thread in self._warming.values():
            thread.join()
        with self._opening:
            for session in (*self._gone, *(each.session for each in self._known.values())):
                _close(session)
            self._known.clear()
        self.store.close()


def _folder(session: Session) -> tuple[int, int]:
    with suppress(OSError):
        found = (session.path / ".git").stat()
        return found.st_dev, found.st_ino
    return 0, 0


def _close(session: Session) -> None:
    with suppress(SmpError):
        session.close()
