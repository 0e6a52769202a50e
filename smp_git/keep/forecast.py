"""Forecast of a memory: how its priority falls if nobody uses it, and what happens when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from smp_git.ask.catalogue import Catalogue, Row
from smp_git.ask.desk import Desk
from smp_git.ask.ranking import facts_of
from smp_git.keep.compact import DECAYED
from smp_git.keep.preserved import Preserved
from smp_git.keep.retention import deadline, is_strict
from smp_git.model.decay import Decayed, Facts, Preset, priority
from smp_git.model.memory import MemoryId
from smp_git.model.relevance import scales
from smp_git.model.results import Result
from smp_git.model.settings import Settings
from smp_git.read.snapshot import Snapshot
from smp_git.write.handle import Handle

POINTS: Final = 60
_SOONEST, _LATEST = timedelta(days=30), timedelta(days=365)
# Nobody plans further ahead.
_HORIZON: Final = timedelta(days=10 * 365)
# Room behind the last event.
_MARGIN: Final = 1.2
_EXACT: Final = timedelta(minutes=1)
# Differences below this are not shown.
_STILL: Final = 0.0005


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastPoint(Result):
    """The priority at one moment; `unfloored` is what no floor raises, by which compaction goes."""

    at: datetime
    priority: float
    unfloored: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastEvent(Result):
    """Something that happens to a memory if nobody uses it: `floor`, `compaction` or `retention`.

    `kept_by` is the rule that keeps it from being taken all the same.
    """

    at: datetime
    what: str
    priority: float
    kept_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast(Result):
    """How the priority of a memory falls from its last use on, and what happens when.

    `lasting` says why it does not fall at all, if it does not. `last_use` is its creation
    if nobody read it.

    >>> forecast = session.forecast("DEC-0001")
    >>> forecast.points[-1].priority <= forecast.priority
    True
    """

    id: MemoryId
    at: datetime
    priority: float
    lasting: str
    last_use: datetime
    uses: int
    points: tuple[ForecastPoint, ...]
    events: tuple[ForecastEvent, ...]


def forecasts(
    desk: Desk, ids: Iterable[str], now: datetime | None, points: int = POINTS
) -> tuple[Forecast, ...]:
    """Return how the priorities of memories fall if nobody uses them from now on."""
    moment = now or desk.handle.clock()

    def answer(snapshot: Snapshot) -> tuple[Forecast, ...]:
        names = [snapshot.find(each) for each in ids]
        with desk.asking(snapshot, moment) as side:
            courses = _Courses.of(desk.handle, snapshot, side.catalogue, moment)
            return tuple(_forecast(courses.course(name), moment, points) for name in names)

    return desk.handle.read(None, answer)


class _Course(NamedTuple):
    """The priority of a memory as a function of time, without further use."""

    row: Row
    facts: Facts
    preset: Preset
    settings: Settings
    preserved: Preserved

    def at(self, moment: datetime) -> Decayed:
        """Return the priority at a moment."""
        return priority(self.facts, moment, self.preset)

    def kept_by(self, moment: datetime) -> str:
        """Return the rule that keeps it from compaction then, empty if none does."""
        return self.preserved.at(moment).rule(self.row)


class _Courses(NamedTuple):
    """What the courses of all memories of a session have in common."""

    handle: Handle
    catalogue: Catalogue
    preset: Preset
    preserved: Preserved

    @classmethod
    def of(
        cls, handle: Handle, snapshot: Snapshot, catalogue: Catalogue, now: datetime
    ) -> _Courses:
        """Return what is common to the memories of a snapshot."""
        settings = handle.settings
        preset = scales(settings.decay, settings.relevance, settings.file).preset
        return cls(handle, catalogue, preset, Preserved(handle, snapshot, now, catalogue))

    def course(self, name: MemoryId) -> _Course:
        """Return the course of one memory."""
        row = self.catalogue.row(self.catalogue.by_id[name])
        superseded = self.catalogue.is_superseded(row)
        facts = facts_of(row, self.handle.accesses.of(name), superseded=superseded)
        return _Course(row, facts, self.preset, self.handle.settings, self.preserved)


def _forecast(course: _Course, now: datetime, points: int) -> Forecast:
    facts = course.facts
    start = max(facts.created_at, facts.last_access_at or facts.created_at)
    events = sorted(_events(course, now), key=lambda each: each.at)
    end = max([now + _SOONEST, *(now + (each.at - now) * _MARGIN for each in events)])
    return Forecast(
        id=course.row.entry.id,
        at=now,
        priority=course.at(now).value,
        lasting=_lasting(course, now),
        last_use=start,
        uses=facts.accesses,
        points=tuple(_points(course, (min(start, now), now, min(end, now + _LATEST)), points)),
        events=tuple(events),
    )


def _points(
    course: _Course, ends: tuple[datetime, datetime, datetime], number: int
) -> Iterator[ForecastPoint]:
    """Yield the course at even distances; now, between the ends, is one of them."""
    start, now, end = ends
    step = (end - start) / number
    moments = {start + step * place for place in range(number + 1)} | {now}
    for moment in sorted(moments):
        found = course.at(moment)
        yield ForecastPoint(at=moment, priority=found.value, unfloored=found.unfloored)


def _lasting(course: _Course, now: datetime) -> str:
    """Return why the priority does not fall, empty if it does."""
    steps = {step.name: step for step in course.at(now).steps}
    return steps["rate"].note if steps["rate"].value == 0 else ""


def _events(course: _Course, now: datetime) -> Iterator[ForecastEvent]:
    settings, limit = course.settings, course.at(now + _HORIZON * 10).value
    at = _first(now, lambda moment: course.at(moment).value <= limit + _STILL)
    if at is not None and at > now:
        yield ForecastEvent(at=at, what="floor", priority=limit)
    at = _first(now, lambda moment: course.at(moment).unfloored < DECAYED)
    if at is not None and settings.compaction_preset == "default":
        value = course.at(at).value
        yield ForecastEvent(at=at, what="compaction", priority=value, kept_by=course.kept_by(at))
    at = deadline(settings, course.facts.kind, course.facts.created_at)
    if at is not None:
        rule = "" if is_strict(settings) else course.kept_by(at)
        value = course.at(at).value
        yield ForecastEvent(at=at, what="retention", priority=value, kept_by=rule)


def _first(now: datetime, holds: Callable[[datetime], bool]) -> datetime | None:
    """Return the first moment from now on at which something holds that goes on to hold."""
    if holds(now):
        return now
    early, late = now, now + _HORIZON
    if not holds(late):
        return None
    while late - early > _EXACT:
        middle = early + (late - early) / 2
        early, late = (early, middle) if holds(middle) else (middle, late)
    return late
