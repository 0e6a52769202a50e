"""Sessions of a server: opened when first asked for, each as the agent of the server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from smp_git.agents.agent import Agent
from smp_git.model.errors import RefusedError, SessionNotFoundError, SmpError
from smp_git.session import Session
from smp_git.store import Store

# The session of somebody who has none yet.
_FIRST = "memory"


class Offer(NamedTuple):
    """What a server offers: a store, and how far it lets a client go."""

    store: Store
    session: str | None = None
    agent: str = "assistant"
    requirements: Path | None = None
    read_only: bool = False


class Open(NamedTuple):
    """A session, and the agent that reads and writes it."""

    session: Session
    agent: Agent


class Sessions:
    """The sessions of a store, for threads that ask at the same time."""

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        self._open: dict[str, Open] = {}
        self._opening = threading.Lock()

    def names(self) -> tuple[str, ...]:
        """Return the sessions that a client may use."""
        known = self.offer.store.sessions()
        own = self.offer.session
        return known if own is None else tuple(name for name in known if name == own)

    def get(self, name: str | None, *, writing: bool = False) -> Open:
        """Return a session by its name, or the server's own; made when first written to."""
        if writing and self.offer.read_only:
            raise RefusedError("this server is read-only", hint="start smp mcp without --read-only")
        with self._opening:
            wanted = self._wanted(name, writing=writing)
            found = self._open.get(wanted)
            if found is not None and found.session.path.is_dir():
                return found
            session = self.offer.store.session(wanted)
            agent = session.agent(self.offer.agent, self.offer.requirements)
            self._open[session.id] = Open(session, agent)
            return self._open[session.id]

    def _wanted(self, name: str | None, *, writing: bool) -> str:
        store, own = self.offer.store, self.offer.session
        if own is not None and name not in (None, own):
            raise RefusedError(f"this server is for session {own}", hint="leave session out")
        wanted = own or name
        if wanted is not None:
            with suppress(SessionNotFoundError):
                return store.find_session(wanted)
            if wanted != own or not writing:
                known = ", ".join(store.sessions()) or "none yet"
                raise SessionNotFoundError(f"no session {wanted}", hint=f"sessions: {known}")
        else:
            names = store.sessions()
            if len(names) == 1:
                return names[0]
            if names:
                raise SessionNotFoundError(
                    f"the store has {len(names)} sessions, so name one", hint=", ".join(names)
                )
        if not writing:
            raise SessionNotFoundError("nothing is remembered yet", hint="call remember first")
        store.create_session(wanted or _FIRST, agents=[self.offer.agent]).close()
        return wanted or _FIRST

    def opened(self) -> Iterator[Open]:
        """Yield the sessions that are open."""
        yield from list(self._open.values())

    def close(self) -> None:
        """Close every session."""
        while self._open:
            with suppress(SmpError):
                self._open.popitem()[1].session.close()
