"""Priorities and relevance of the rows of a catalogue."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from smp_git.ask.catalogue import (
    Catalogue,
    Group,
    Place,
    Row,
    bits_of,
    group_of,
    place_of,
    slots_of,
)
from smp_git.model.decay import Decayed, Facts, Preset, importance, priority
from smp_git.model.relevance import (
    Scored,
    Weights,
    access_score,
    product_relevance,
    recency_boost,
    relevance,
    time_score,
)
from smp_git.read.counts import Access

# More than sums in another order differ by.
_ROUNDING = 1e-9


class Scale(NamedTuple):
    """Everything that a score depends on besides the memory."""

    now: datetime
    preset: Preset
    weights: Weights
    product: bool
    accesses: Mapping[str, Access]


def facts_of(row: Row, access: Access | None, *, superseded: bool) -> Facts:
    """Return what decay has to know of a memory."""
    entry = row.entry
    return Facts(
        kind=row.kind,
        created_at=row.at,
        last_access_at=access.last_at if access else None,
        accesses=access.times if access else 0,
        base_priority=entry.importance,
        severity=entry.severity,
        impact=entry.impact,
        confidence=entry.basis,
        is_pinned=bool(entry.pinned),
        is_resolved=entry.status == "resolved",
        is_superseded=superseded,
    )


class Ranking:
    """Priorities of one catalogue on one scale."""

    def __init__(self, catalogue: Catalogue, scale: Scale) -> None:
        self._catalogue = catalogue
        self._scale = scale
        weights = scale.weights
        self._weights = weights.text + weights.time + weights.importance + weights.access
        self._importance: dict[Group, float] = {}
        self._unused = access_score(None, scale.now)

    def decayed(self, row: Row) -> Decayed:
        """Return a memory's priority with its arithmetic."""
        return priority(self.facts(row), self._scale.now, self._scale.preset)

    def access(self, row: Row) -> Access | None:
        """Return how often a memory was read, and when last."""
        return self._scale.accesses.get(row.entry.id)

    def facts(self, row: Row) -> Facts:
        """Return what decay has to know of a memory."""
        access = self._scale.accesses.get(row.entry.id)
        return facts_of(row, access, superseded=self._catalogue.is_superseded(row))

    def scored(self, row: Row, decayed: Decayed, text: float) -> Scored:
        """Return how well a memory answers, given how well its text does."""
        scale = self._scale
        access = scale.accesses.get(row.entry.id)
        touched = access.last_at if access else row.at
        weight = importance(self.facts(row))
        if scale.product:
            return product_relevance(
                base=weight,
                decay=decayed.factor,
                recency=recency_boost(touched, scale.now),
                match=text,
            )
        return relevance(
            text=text,
            time=time_score(decayed.factor, row.at, scale.now),
            importance=weight,
            access=access_score(access.last_at if access else None, scale.now),
            weights=scale.weights,
        )

    def most(self, row: Row, text: float) -> float:
        """Return a score that `scored` does not exceed, at a small part of its cost."""
        scale, weights = self._scale, self._scale.weights
        if scale.product:
            return math.inf
        group = group_of(row)
        known = self._importance.get(group)
        if known is None:
            known = self._importance[group] = importance(self.facts(row))
        access = scale.accesses.get(row.entry.id)
        used = access_score(access.last_at, scale.now) if access else self._unused
        total = (
            weights.text * text
            + weights.time * time_score(1.0, row.at, scale.now)
            + weights.importance * known
            + weights.access * used
        )
        return total / self._weights + _ROUNDING

    def by_priority(self, members: int) -> Iterator[tuple[Row, Decayed]]:
        """Yield the members, highest priority first, superseded ones last.

        Within a group priorities fall with age, whatever the time is; so only as many
        are computed as are asked for. What was read, or is replaced, is ranked by itself.
        """
        apart = self._apart()
        inside = membership(members & ~apart)
        streams = [
            self._group(places, inside)
            for group, places in self._catalogue.groups.items()
            if places and self._may_hold(group, members)
        ]
        streams.append(iter(sorted(self._placed(row) for row in self._rows(members & apart))))
        for placed in heapq.merge(*streams):
            yield placed.row, placed.decayed

    def _may_hold(self, group: Group, members: int) -> bool:
        """Whether some members may be of a group: looking through it costs far more."""
        kind, _, _, severity, _, _, status = group
        sets = self._catalogue.sets
        return bool(
            members & sets.get(("kind", kind))
            and (severity is None or members & sets.get(("severity", severity)))
            and (status is None or members & sets.get(("status", status)))
        )

    def at_least(self, members: int, least: float) -> int:
        """Return the members whose priority is not below `least`."""
        apart = self._apart()
        kept = [row.slot for row in self._rows(members & apart) if self.decayed(row).value >= least]
        for places in self._catalogue.groups.values():
            kept += [slot for _, _, slot in places[: self._reach(places, least)]]
        return members & bits_of(kept)

    def _reach(self, places: list[Place], least: float) -> int:
        """Return how many of a group's places reach a priority."""
        low, high = 0, len(places)
        while low < high:
            middle = (low + high) // 2
            if self._alone(places[middle][2]).value >= least:
                low = middle + 1
            else:
                high = middle
        return low

    def _alone(self, slot: int) -> Decayed:
        """Return the priority that a memory has in its group, unread and not replaced."""
        row = self._catalogue.row(slot)
        facts = facts_of(row, None, superseded=row.entry.status == "superseded")
        return priority(facts, self._scale.now, self._scale.preset)

    def _apart(self) -> int:
        known = self._catalogue.by_id
        read = [known[name] for name in self._scale.accesses if name in known]  # type: ignore[index]
        return bits_of([*read, *self._catalogue.replaced_slots()])

    def _rows(self, members: int) -> Iterator[Row]:
        return (self._catalogue.row(slot) for slot in slots_of(members))

    def _group(self, places: Iterable[Place], inside: Callable[[int], bool]) -> Iterator[_Placed]:
        for _, _, slot in places:
            if inside(slot):
                yield self._placed(self._catalogue.row(slot))

    def _placed(self, row: Row) -> _Placed:
        decayed = self.decayed(row)
        age, key, _ = place_of(row)
        behind = self._catalogue.is_superseded(row)
        return _Placed((behind, -decayed.value, age, key), row, decayed)


class _Placed(NamedTuple):
    """A memory behind the key that orders it among others, which no other has."""

    order: tuple[bool, float, int, tuple[int, int, str]]
    row: Row
    decayed: Decayed


def membership(members: int) -> Callable[[int], bool]:
    """Return a test of whether a slot is in a set, faster than asking its bits."""
    data = members.to_bytes((members.bit_length() + 7) // 8, "little")
    last = len(data) * 8

    def inside(slot: int) -> bool:
        return slot < last and bool(data[slot >> 3] >> (slot & 7) & 1)

    return inside
