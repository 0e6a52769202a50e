"""The timeline: what was said, found and decided, day by day, the newest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Final, NamedTuple

from smp_git.ask.overviews import Bucket
from smp_git.ask.request import QueryParts
from smp_git.model.given import as_kinds
from smp_git.model.memory import Memory
from smp_git.web.charts import Strip, is_young, strip
from smp_git.web.look import Look
from smp_git.web.wording import day

PAGE: Final = 60


class Narrowing(NamedTuple):
    """What of a session is wanted; empty means all."""

    kind: str = ""
    agent: str = ""
    tag: str = ""
    since: str = ""
    until: str = ""

    @property
    def parts(self) -> QueryParts:
        """The same as parts of a query."""
        parts: QueryParts = {}
        if self.kind:
            parts["kinds"] = as_kinds([self.kind])
        if self.agent:
            parts["agents"] = [self.agent]
        if self.tag:
            parts["tags"] = [self.tag]
        if self.since:
            parts["since"] = self.since
        if self.until:
            parts["until"] = self.until
        return parts

    @property
    def said(self) -> Mapping[str, str]:
        """What is given, by name."""
        return {name: value for name, value in self._asdict().items() if value}


class Day(NamedTuple):
    """One day, and its memories in order."""

    name: str
    memories: tuple[Memory, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A page of the timeline, and what it can be narrowed to."""

    days: tuple[Day, ...]
    total: int
    page: int
    pages: int
    activity: Strip | None
    wanted: Narrowing
    agents: tuple[str, ...]
    tags: tuple[str, ...]
    problems: tuple[str, ...]


def timeline(look: Look, wanted: Narrowing, page: int = 1) -> Timeline:
    """Return a page of the timeline."""
    session, at = look.session, look.at
    parts: QueryParts = {**wanted.parts, "sort": ["-created_at"], "limit": PAGE}
    parts["offset"] = PAGE * (page - 1)
    found = session.query(at=at, now=look.now, **parts)
    return Timeline(
        days=tuple(days([hit.memory for hit in found])),
        total=found.total,
        page=page,
        pages=-(-found.total // PAGE),
        activity=activity(look),
        wanted=wanted,
        agents=tuple(sorted(each.agent for each in session.agents(at=at))),
        tags=tuple(sorted(each.topic for each in session.topics(at=at))),
        problems=found.problems,
    )


def activity(look: Look, by_day: Sequence[Bucket] | None = None) -> Strip | None:
    """Return the drawing of when memories were written: by day, at first by hour."""
    found = look.session.timeline(by="day", at=look.at) if by_day is None else by_day
    if is_young(found):
        return strip(look.session.timeline(by="hour", at=look.at), "hour")
    return strip(found)


def days(memories: Sequence[Memory]) -> Iterator[Day]:
    """Yield memories that are in the order of time, day by day."""

    def when(memory: Memory) -> str:
        at: datetime = memory.created_at
        return day(at)

    for name, found in groupby(memories, key=when):
        yield Day(name, tuple(found))
