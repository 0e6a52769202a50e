"""All documents in one order, and how much each word tells about them."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import cached_property
from itertools import accumulate, chain, pairwise, repeat
from math import log
from operator import mul
from typing import Final, NamedTuple, TypeVar

from smp_git.search.questions import Pattern
from smp_git.search.segments import LENT_WORDS, Segment, Term

# BM25's own constants. These and the ones below were chosen on one set of conversations
# and confirmed on another; recall moves by less than its error when one moves by a quarter.
_SATURATION: Final = 1.2
_LENGTH_WEIGHT: Final = 0.75
# Below this many words a text is not more to the point for being shorter.
_LENGTH_FLOOR: Final = 40
# Weights of a neighbour's words in tenths (.4, .2): whole numbers sum alike in any order.
_OWN: Final = 10
_NEIGHBOURS: Final = ((1, 4), (2, 2))
_PAUSE_SECONDS: Final = 6 * 3600
# Some 30 MB; a word takes about a millisecond to compute again.
_KEPT_IMPACTS: Final = 400_000
_DAY_SECONDS: Final = 86_400
_EPOCH: Final = date(1970, 1, 1).toordinal()

T = TypeVar("T")


class Impacts(NamedTuple):
    """What one word or pattern adds to the scores of the documents at some places.

    A document never gets more than `weight`, the more the rarer the word is.
    """

    weight: float
    places: list[int]
    values: list[float]


class Corpus:
    """The documents of many segments, ordered by kind, sitting, time and id.

    A document's place in the order does not depend on how the documents are spread over
    segments, and nothing else does.
    """

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._segments = segments
        keys = list(chain.from_iterable(each.keys for each in segments))
        self._order = sorted(range(len(keys)), key=keys.__getitem__)
        self._firsts = [0, *accumulate(len(each.keys) for each in segments)]
        self._places = self._places_by_segment()
        self.ids = self._column(lambda segment: segment.ids)
        self._seconds = self._column(lambda segment: segment.seconds)
        self._sittings = self._numbered_sittings()
        lengths = self._weighted_lengths()
        mean = max(1, sum(lengths)) / max(1, len(lengths))
        self._norm_base = _OWN * _SATURATION * (1 - _LENGTH_WEIGHT)
        self._norm_slope = _OWN * _SATURATION * _LENGTH_WEIGHT / mean
        self._norms = list(map(self._norm, lengths))
        self._impacts: dict[tuple[Term, bool], Impacts] = {}
        self._kept_impacts = 0

    @cached_property
    def days(self) -> list[int]:
        """The day of each document, as its ordinal in the calendar."""
        return [_EPOCH + seconds // _DAY_SECONDS for seconds in self._seconds]

    @cached_property
    def years(self) -> range:
        """The years from the first document to the last."""
        if not self.days:
            return range(0)
        first, last = date.fromordinal(min(self.days)), date.fromordinal(max(self.days))
        return range(first.year, last.year + 1)

    @cached_property
    def voices(self) -> Mapping[tuple[str, str], list[int]]:
        """The places of each pair of speaker and role."""
        found: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for place, voice in enumerate(self._column(lambda segment: segment.voices)):
            found[voice].append(place)
        return found

    @cached_property
    def place_of(self) -> Mapping[str, int]:
        """The place of each document, by id."""
        return {name: place for place, name in enumerate(self.ids)}

    def word(self, term: Term, *, lending: bool) -> Impacts:
        """Return what a word adds to the scores, with or without what neighbours lend."""
        known = self._impacts.get((term, lending))
        if known is None:
            known = self._word(term, lending=lending)
            if self._kept_impacts > _KEPT_IMPACTS:
                self._impacts.clear()
                self._kept_impacts = 0
            self._kept_impacts += len(known.places)
            self._impacts[term, lending] = known
        return known

    def pattern(self, pattern: Pattern) -> Impacts:
        """Return what a phrase or prefix adds to the documents that hold it."""
        counts = {
            places[slot]: _OWN * count
            for places, segment in zip(self._places, self._segments, strict=True)
            for slot, count in segment.occurrences(pattern).items()
        }
        return self._impacts_of(counts, self._weight(len(counts)))

    def rarity(self, term: Term) -> int:
        """Return a number that is smaller the rarer a word is, faster than its weight."""
        return sum(segment.frequency(term) for segment in self._segments)

    def own_value(self, term: Term, place: int) -> float:
        """Return what a word adds to one score when nothing is lent."""
        number = bisect_right(self._firsts, self._order[place]) - 1
        slot = self._order[place] - self._firsts[number]
        count = self._segments[number].count(term, slot)
        weight = self.word(term, lending=True).weight
        return weight * count * _OWN / (count * _OWN + self._norms[place])

    def value(self, weight: float, count: int, length: int) -> float:
        """Return what a word said `count` times adds to a text of `length` words."""
        return weight * count * _OWN / (count * _OWN + self._norm(length * _OWN))

    def _word(self, term: Term, *, lending: bool) -> Impacts:
        at: list[int] = []
        said: list[int] = []
        lent: list[int] = []
        for places, segment in zip(self._places, self._segments, strict=True):
            postings = segment.postings(term)
            at += map(places.__getitem__, postings.slots)
            said += postings.counts
            lent += postings.lent
        counts: dict[int, int] = {}
        for place, count in zip(at, said, strict=True):
            counts[place] = counts.get(place, 0) + _OWN * count
        weight = self._weight(len(counts))
        if lending:
            self._lend(counts, [pair for pair in zip(at, lent, strict=True) if pair[1]])
        return self._impacts_of(counts, weight)

    def _lend(self, counts: dict[int, int], lent: Iterable[tuple[int, int]]) -> None:
        """Add to `counts` what the documents in `lent` give their neighbours."""
        sittings = self._sittings
        for place, head in lent:
            sitting = sittings[place]
            for step, share in _NEIGHBOURS:
                for neighbour in (place - step, place + step):
                    if sittings[neighbour] == sitting:
                        counts[neighbour] = counts.get(neighbour, 0) + share * head

    def _weight(self, documents: int) -> float:
        rest = len(self.ids) - documents
        return log(1 + (rest + 0.5) / (documents + 0.5))

    def _impacts_of(self, counts: Mapping[int, int], weight: float) -> Impacts:
        norms = self._norms
        values = [weight * n / (n + norms[place]) for place, n in counts.items()]
        return Impacts(weight, list(counts), values)

    def _column(self, column: Callable[[Segment], Iterable[T]]) -> list[T]:
        """Return what each segment says of its documents, in the order of the corpus."""
        values = list(chain.from_iterable(map(column, self._segments)))
        return [values[number] for number in self._order]

    def _places_by_segment(self) -> list[list[int]]:
        places = [0] * len(self._order)
        for place, number in enumerate(self._order):
            places[number] = place
        return [places[first:end] for first, end in pairwise(self._firsts)]

    def _numbered_sittings(self) -> list[int]:
        """Return a number per document, the same for the turns of one sitting.

        Two more at the end stand for the neighbours that the first and the last
        documents do not have.
        """
        groups = self._column(lambda segment: segment.groups)
        number = 0
        numbers = []
        before, then = None, 0
        for group, now in zip(groups, self._seconds, strict=True):
            paused = group == "" and now - then > _PAUSE_SECONDS
            if group is None or group != before or paused:
                number += 1
            numbers.append(number)
            before, then = group, now
        return [*numbers, -1, -2]

    def _weighted_lengths(self) -> list[int]:
        """Return the length of each document in tenths of words, with what it is lent."""
        own = self._column(lambda segment: segment.lengths)
        sittings = self._sittings[: len(own)]
        lent = [min(length, LENT_WORDS) for length in own]
        lengths = [_OWN * length for length in own]
        for step, share in _NEIGHBOURS:
            pairs = zip(sittings, sittings[step:], strict=False)
            shares = [share * (one == other) for one, other in pairs]
            before = chain(repeat(0, step), map(mul, shares, lent))
            after = chain(map(mul, shares, lent[step:]), repeat(0, step))
            lengths = list(map(sum, zip(lengths, before, after, strict=False)))
        return lengths

    def _norm(self, length: int) -> float:
        """Return the count that earns a text of `length` half of a word's weight.

        Both are in tenths.
        """
        return self._norm_base + self._norm_slope * max(length, _LENGTH_FLOOR * _OWN)
