"""One request: what is asked for, by which form, and how the answer is put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from starlette.responses import HTMLResponse, RedirectResponse, Response

from smp_git.model.errors import InvalidError, SmpError
from smp_git.model.memory import KINDS, CommitId
from smp_git.read.history import Version
from smp_git.session import Session
from smp_git.store import Store
from smp_git.web import render
from smp_git.web.desk import OpenSessions
from smp_git.web.door import Door
from smp_git.web.links import PageLinks
from smp_git.web.look import Look, look
from smp_git.web.views.memory import FieldDelta

_LONGEST_QUERY: Final = 4_000


class WebSite(NamedTuple):
    """What a server shows, to whom it opens, and in whose name it writes."""

    store: Store
    sessions: OpenSessions
    door: Door
    clock: Callable[[], datetime]
    agent: str | None = None
    read_only: bool = False
    start: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What each page says around its content."""

    store: str
    now: datetime
    token: str
    read_only: bool
    session: str = ""
    name: str = ""
    head: str = ""
    asked: str = ""
    version: Version | None = None
    done: Version | None = None
    text: str = ""
    seen: str = ""
    writes: bool = False
    kinds: tuple[str, ...] = tuple(KINDS)
    old: str = ""
    new: str = ""


class ProblemView(NamedTuple):
    """What went wrong, and where to go from there."""

    title: str
    message: str
    hint: str | None
    changed: tuple[FieldDelta, ...]
    ways: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request, taken apart; `form` is empty unless something was sent."""

    site: WebSite
    path: Mapping[str, str]
    query: Mapping[str, str]
    form: Mapping[str, str] = field(default_factory=dict)
    now: datetime

    def asked(self, name: str) -> str:
        """Return a part of the query; raise InvalidError for one that nobody types."""
        text = self.query.get(name, "").strip()
        if len(text) > _LONGEST_QUERY:
            raise InvalidError(
                f"{name} has {len(text):,} characters", hint=f"{_LONGEST_QUERY:,} are enough"
            )
        return text

    def number(self, name: str) -> int:
        """Return a number from 1 that the query gives, 1 if it gives none."""
        text = self.asked(name)
        if not text:
            return 1
        # Nobody turns more pages.
        if text.isdecimal() and len(text) < 7 and int(text):  # noqa: PLR2004 - see above
            return int(text)
        raise InvalidError(f"{name} must be a number from 1, not {text[:40]!r}")

    @property
    def session(self) -> Session:
        """The session that is asked for."""
        return self.site.sessions.get(self.path["session"])

    def look(self) -> Look:
        """Return the session as it is, or as it was when asked so."""
        return look(self.session, self.now, self.asked("at"))

    @property
    def links(self) -> PageLinks:
        """The addresses on this page."""
        return PageLinks(
            root=self.site.door.root,
            name=self.path.get("session", ""),
            at=self.query.get("at", "").strip(),
        )

    def show(
        self,
        template: str,
        view: object,
        *,
        name: str = "",
        seen: Look | None = None,
        version_of: str = "",
        status: int = 200,
        **more: str,
    ) -> Response:
        """Return a page, in its frame."""
        past = seen is not None and seen.is_past
        frame = Frame(
            store=str(self.site.store.path),
            now=self.now,
            token=self.site.door.token,
            read_only=self.site.read_only,
            session=self.path.get("session", ""),
            name=name,
            head=seen.at if seen and not past else "",
            asked=seen.asked if seen and past else "",
            version=seen.version if seen and past else None,
            done=self._done(),
            seen=version_of,
            writes=seen is not None and not past and not self.site.read_only,
            **more,  # type: ignore[arg-type]
        )
        return self.part(template, view, frame, status=status)

    def part(self, template: str, view: object, page: object, *, status: int = 200) -> Response:
        """Return what a template makes; names of files may hold what is no text."""
        text = render.page(template, page=page, to=self.links, view=view)
        return HTMLResponse(text.encode("utf-8", "backslashreplace"), status_code=status)

    def _done(self) -> Version | None:
        """Return the commit that a write made before this page, as the session tells it."""
        commit = self.query.get("done", "")
        if "session" in self.path and len(commit) == 40 and commit.isalnum():  # noqa: PLR2004 - a whole commit id
            with suppress(SmpError):
                return self.session.version(commit)
        return None

    def go(self, where: str, commit: CommitId | None = None) -> Response:
        """Return the way to another page, after something was written."""
        mark = "&" if "?" in where else "?"
        return RedirectResponse(f"{where}{mark}done={commit}" if commit else where, status_code=303)
