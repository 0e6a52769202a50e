"""Start of the page: on this machine alone, for who has the link."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from smp_git.integrations import loopback
from smp_git.store import Store
from smp_git.web import render


class Showing(NamedTuple):
    """What a page is to show and in whose name it writes; `session` is where it begins."""

    port: int = 0
    session: str | None = None
    agent: str | None = None
    read_only: bool = False


def serve(store: Store, wanted: Showing, tell: Callable[[str], None]) -> None:
    """Serve the page until the process is told to stop; `tell` gets the link that opens it."""
    render.check_installed("the page", "starlette", "uvicorn")
    from smp_git.web import app  # noqa: PLC0415 - an extra
    from smp_git.web.desk import OpenSessions  # noqa: PLC0415
    from smp_git.web.door import Door  # noqa: PLC0415
    from smp_git.web.visit import WebSite  # noqa: PLC0415

    door, sessions = Door(), OpenSessions(store)
    if wanted.session is not None:
        # One that does not open is told here, not on the page.
        sessions.get(wanted.session)
    site = WebSite(
        store,
        sessions,
        door,
        store.clock,
        agent=wanted.agent,
        read_only=wanted.read_only,
        start=wanted.session or "",
    )
    render.prepare()
    with loopback.listening(wanted.port) as listener:
        place = loopback.address(listener)
        tell(door.link(place))
        loopback.run(loopback.guarded(app.make(site), place, door.admit), listener)
