"""Bisection: the write after which an answer is wrong, found in log₂ n looks at the past."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Unpack

from smp_git.ask.answer import Answer
from smp_git.ask.desk import Desk
from smp_git.ask.overviews import Summary
from smp_git.ask.request import QueryParts
from smp_git.git.references import is_ancestor
from smp_git.model.errors import DamagedError, InvalidRevisionError, RefusedError
from smp_git.model.ids import parse_path, sort_key
from smp_git.model.memory import CommitId, Memory, MemoryId
from smp_git.model.results import Result
from smp_git.read.history import version_of
from smp_git.read.snapshot import Snapshot


class View:
    """A session as it was after one commit; it can be asked, not written to.

    Every view of one search takes the same moment for now, so that only writes differ.

    >>> changed = session.edit("DEC-0001", text="Use PKCE", agent="veritas")
    >>> session.bisect(lambda view: view.query("OAuth").total > 0).agent
    'veritas'
    """

    def __init__(self, snapshot: Snapshot, desk: Desk, now: datetime) -> None:
        self._snapshot = snapshot
        self._desk = desk
        self._now = now

    @property
    def commit(self) -> CommitId:
        """The commit."""
        return self._snapshot.id

    @property
    def at(self) -> datetime:
        """The time of the commit."""
        return self._snapshot.commit.time

    def get(self, memory_id: str) -> Memory:
        """Return a memory by its id or a unique abbreviation (`DEC-42`)."""
        return self._snapshot.get(self._snapshot.find(memory_id))

    def memories(self, kind: str | None = None) -> tuple[Memory, ...]:
        """Return the memories of a kind, or all, sorted by kind and number."""
        return tuple(self._snapshot.memories(kind))

    def query(
        self,
        text: str | None = None,
        *,
        spec: Mapping[str, object] | None = None,
        **parts: Unpack[QueryParts],
    ) -> Answer:
        """Return the memories that answer, as `Session.query` does."""
        asked = self._desk.asked(text, spec, parts, self._now)
        return self._desk.answer(self._snapshot, asked, self._now)

    def aggregate(
        self, *measures: str, text: str | None = None, **parts: Unpack[QueryParts]
    ) -> Mapping[str, object]:
        """Return counts and measures such as `"count:kind"` of what matches."""
        asked: QueryParts = {**parts, "aggregations": measures or ("count:kind",), "limit": 0}
        return self.query(text, **asked).aggregations

    def summary(self) -> Summary:
        """Return the session in a few lines of its own words."""
        return self._desk.summary(self._snapshot, self._now)


Condition = Callable[[View], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit(Result):
    """The first write after which a condition no longer holds.

    >>> held = session.bisect(lambda view: "rationale" not in view.get("DEC-0001").fields, good="HEAD~1")
    >>> (held.agent, held.touched)
    ('ada', ('DEC-0001',))
    """

    commit: CommitId
    at: datetime
    agent: str
    subject: str
    touched: tuple[MemoryId, ...]
    steps: int


def culprit(
    good: Snapshot | None, bad: Snapshot, look: Callable[[CommitId], View], condition: Condition
) -> Culprit:
    """Return the first write up to `bad` after which the condition fails.

    Looked at are the commits on the first-parent way to `bad`, so that a merge counts
    as one. Without `good` a commit at which the condition holds is searched backwards.
    """
    way = _way(bad, good)
    known: dict[int, bool] = {}

    def holds(place: int) -> bool:
        if place not in known:
            known[place] = _answer(condition, look(way[place]))
        return known[place]

    _check_ends(way, holds, given=good is not None)
    found = first_failing(holds, *_ends(holds, len(way)))
    return _told(bad, way[found], len(known))


def first_failing(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return a place above `low` at which `holds` turns false; it is true there, false at `high`."""
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return high


def _way(bad: Snapshot, good: Snapshot | None) -> Sequence[CommitId]:
    """Return the commits from `good`, or the first, to `bad`, oldest first."""
    repository, way = bad.repository, [bad.id]
    while way[-1] != (good.id if good else None):
        parents = repository.commit(way[-1]).parents
        if not parents:
            break
        # The parents of a merge are in no order of their own.
        leading = (
            [each for each in parents if good and is_ancestor(repository, good.id, each)]
            if len(parents) > 1
            else []
        )
        way.append(leading[0] if leading else parents[0])
    if good is not None and way[-1] != good.id:
        raise InvalidRevisionError(
            f"{good.id[:12]} is not among the writes that led to {bad.id[:12]}",
            hint="the good end must be an earlier revision of the same branch; smp log lists them",
        )
    return way[::-1]


def _check_ends(way: Sequence[CommitId], holds: Callable[[int], bool], *, given: bool) -> None:
    if holds(len(way) - 1):
        raise RefusedError(
            f"the condition holds at the bad end, {way[-1][:12]}",
            hint="there is nothing to find; name an earlier bad end, or invert the condition",
        )
    if given and not holds(0):
        raise RefusedError(
            f"the condition does not hold at the good end, {way[0][:12]}",
            hint="name a revision at which it holds",
        )


def _ends(holds: Callable[[int], bool], count: int) -> tuple[int, int]:
    """Return a place at which the condition holds, and a later one at which it does not."""
    low, high, step = 0, count - 1, 1
    if holds(low):
        return low, high
    while (place := count - 1 - step) > 0:
        if holds(place):
            return place, high
        high, step = place, step * 2
    raise RefusedError(
        f"the condition held at none of the revisions that were looked at, back to the first of {count}",
        hint="name a revision at which it held as the good end",
    )


def _answer(condition: Condition, view: View) -> bool:
    try:
        return bool(condition(view))
    except DamagedError:
        raise
    except Exception as error:
        error.add_note(f"raised by the condition at commit {view.commit}")
        raise


def _told(bad: Snapshot, name: CommitId, steps: int) -> Culprit:
    repository = bad.repository
    commit = repository.commit(name)
    before = repository.commit(commit.parents[0]).tree
    places = [parse_path(path) for path, _, _ in repository.changes(before, commit.tree)]
    version = version_of(commit)
    return Culprit(
        commit=name,
        at=version.at,
        agent=version.agent,
        subject=version.subject,
        touched=tuple(sorted({place.text for place in places if place}, key=sort_key)),
        steps=steps,
    )
