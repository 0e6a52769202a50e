"""The highest sums of weighted words, without adding what cannot matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from heapq import nlargest
from itertools import accumulate
from typing import Final, NamedTuple

# Sums are rounded differently in another order; a bound must not fall short for that.
_SLACK: Final = 1 + 1e-9


class Impacts(NamedTuple):
    """What one word or pattern adds to the scores of documents, by their places.

    A document gets at most `most`, which is below `weight`: the more the rarer the word.
    """

    weight: float
    most: float
    values: Mapping[int, float]


class Weighted(NamedTuple):
    """A word, and how much it counts in a question."""

    impacts: Impacts
    weight: float

    @property
    def most(self) -> float:
        """The most that the word adds to any score."""
        return self.impacts.most * self.weight

    def add_to(self, scores: list[float]) -> None:
        """Add to the scores of all places."""
        if self.weight == 1:
            # Most words weigh 1, and the product takes a third of the time.
            for place, value in self.impacts.values.items():
                scores[place] += value
            return
        for place, value in self.impacts.values.items():
            scores[place] += self.weight * value


class _Sums:
    """Sums by place, of which only the `limit` highest are wanted."""

    def __init__(self, limit: int, raised: Set[int], factor: float) -> None:
        self._limit = limit
        self._raised = raised
        self._factor = factor if raised else 1.0
        self._least = 0.0
        self.values: dict[int, float] = {}

    def add(self, word: Weighted) -> None:
        """Add a word wherever it is said."""
        weight = word.weight
        if not self.values and weight == 1:
            self.values = dict(word.impacts.values)
            return
        values = self.values
        get = values.get
        for place, value in word.impacts.values.items():
            values[place] = get(place, 0.0) + weight * value

    def add_to_known(self, word: Weighted) -> None:
        """Add a word to the places that are left."""
        said, weight = word.impacts.values.get, word.weight
        self.values = {
            place: value + weight * said(place, 0.0) for place, value in self.values.items()
        }

    def can_miss(self, rest: float) -> bool:
        """Return whether a place without a sum is out if it gets no more than `rest`."""
        return rest * self._factor * _SLACK < self._least

    def raise_bar(self) -> None:
        """Find a score that so many places are known to reach."""
        values = self.values
        raised = [values[place] for place in values.keys() & self._raised]
        for factor, sums in ((1.0, values.values()), (self._factor, raised)):
            reached = nlargest(self._limit, sums)
            if len(reached) == self._limit:
                self._least = max(self._least, reached[-1] * factor)

    def drop(self, rest: float) -> None:
        """Drop the places that are out even if they get all of `rest`."""
        needed = self._least / _SLACK - rest
        needed_if_raised = self._least / self._factor / _SLACK - rest
        raised = self._raised
        self.values = {
            place: value
            for place, value in self.values.items()
            if value >= needed or (value >= needed_if_raised and place in raised)
        }


def best_sums(
    words: Sequence[Weighted],
    limit: int,
    raised: Set[int] = frozenset(),
    factor: float = 1.0,
) -> dict[int, float]:
    """Return the sums at the `limit` best places, and perhaps at some others.

    Places in `raised` count `factor` times. Each sum is added up in the order of
    `words`, and so is the same number as without pruning.
    """
    order = sorted(words, key=lambda word: -word.most)
    # What all words from each on add at most.
    rests = [*accumulate((word.most for word in reversed(order)), initial=0.0)][::-1]
    sums = _Sums(limit, raised, factor)
    added = 0
    for word, rest in zip(order, rests, strict=False):
        # The bar is no higher than what was added so far.
        if rests[0] - rest > rest:
            sums.raise_bar()
        if sums.can_miss(rest):
            break
        sums.add(word)
        added += 1
    for word, rest in zip(order[added:], rests[added:], strict=False):
        sums.drop(rest)
        sums.add_to_known(word)
        sums.raise_bar()
    sums.raise_bar()
    sums.drop(0.0)
    return {place: _sum(words, place) for place in sums.values}


def _sum(words: Sequence[Weighted], place: int) -> float:
    total = 0.0
    for word in words:
        total += word.weight * word.impacts.values.get(place, 0.0)
    return total
