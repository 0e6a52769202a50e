"""All documents in one order, and how much each word tells about them."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import date
from functools import cached_property
from itertools import accumulate, chain, pairwise, repeat
from math import log
from operator import add, eq, mul, sub
from typing import Final, TypeVar

from smp_git.search.pruning import Impacts
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
_SHARES: Final = tuple((sign * step, share) for step, share in _NEIGHBOURS for sign in (-1, 1))
_PAUSE_SECONDS: Final = 6 * 3600
# Some 30 MB; a word takes about a millisecond to compute again.
_KEPT_IMPACTS: Final = 400_000
_DAY_SECONDS: Final = 86_400
_EPOCH: Final = date(1970, 1, 1).toordinal()

T = TypeVar("T")


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
        base, slope, floor = self._norm_base, self._norm_slope, _LENGTH_FLOOR * _OWN
        # As `_norm` has it; ten thousand calls would take longer than all else here.
        self._norms = [base + slope * (n if n > floor else floor) for n in lengths]
        self._impacts: dict[tuple[Term, bool], Impacts] = {}
        self._kept_impacts = 0
        self._spoken: dict[frozenset[str], Set[int]] = {}

    @cached_property
    def digests(self) -> list[bytes]:
        """The digest of each document's text."""
        return self._column(lambda segment: segment.digests)

    @cached_property
    def days(self) -> list[int]:
        """The day of each document, as its ordinal in the calendar."""
        return [_EPOCH + seconds // _DAY_SECONDS for seconds in self._seconds]

    @cached_property
    def years(self) -> range:
        """The years from the first document to the last."""
        if not self._seconds:
            return range(0)
        ends = (min(self._seconds), max(self._seconds))
        first, last = (date.fromordinal(_EPOCH + end // _DAY_SECONDS).year for end in ends)
        return range(first, last + 1)

    @cached_property
    def voices(self) -> Mapping[tuple[str, str], list[int]]:
        """The places of each pair of speaker and role."""
        found: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for place, voice in enumerate(self._column(lambda segment: segment.voices)):
            found[voice].append(place)
        return found

    def spoken(self, voices: frozenset[str]) -> Set[int]:
        """Return the places of the documents by these speakers, or in these roles."""
        known = self._spoken.get(voices)
        if known is None:
            named = [at for voice, at in self.voices.items() if not voices.isdisjoint(voice)]
            known = self._spoken[voices] = frozenset().union(*named)
        return known

    @cached_property
    def place_of(self) -> Mapping[str, int]:
        """The place of each document, by id."""
        return {name: place for place, name in enumerate(self.ids)}

    def word(self, term: Term, *, lending: bool) -> Impacts:
        """Return what a word adds to the scores, with or without what neighbours lend."""
        known = self._impacts.get((term, lending))
        if known is None:
            known = self._word(term, lending=lending)
            self._kept_impacts += len(known.values)
            while self._kept_impacts > _KEPT_IMPACTS and self._impacts:
                oldest = self._impacts.pop(next(iter(self._impacts)))
                self._kept_impacts -= len(oldest.values)
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
        counts: list[int] = []
        lenders: list[int] = []
        heads: list[int] = []
        for places, segment in zip(self._places, self._segments, strict=True):
            said, lent = segment.postings(term)
            at += map(places.__getitem__, said.slots)
            counts += said.counts
            lenders += map(places.__getitem__, lent.slots)
            heads += lent.counts
        found = dict(zip(at, map(_OWN.__mul__, counts), strict=True))
        weight = self._weight(len(found))
        if lending:
            self._lend(found, zip(lenders, heads, strict=True))
        return self._impacts_of(found, weight)

    def _lend(self, counts: dict[int, int], lent: Iterable[tuple[int, int]]) -> None:
        """Add to `counts` what the documents in `lent` give their neighbours."""
        sittings = self._sittings
        for place, head in lent:
            sitting = sittings[place]
            for step, share in _SHARES:
                neighbour = place + step
                if sittings[neighbour] == sitting:
                    counts[neighbour] = counts.get(neighbour, 0) + share * head

    def _weight(self, documents: int) -> float:
        rest = len(self.ids) - documents
        return log(1 + (rest + 0.5) / (documents + 0.5))

    def _impacts_of(self, counts: Mapping[int, int], weight: float) -> Impacts:
        norms = self._norms
        values = {place: weight * n / (n + norms[place]) for place, n in counts.items()}
        return Impacts(weight, max(values.values(), default=0.0), values)

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
        seconds = self._seconds
        pauses = chain((0,), map(sub, seconds[1:], seconds))
        begins = [
            group is None or group != before or (group == "" and pause > _PAUSE_SECONDS)
            for before, group, pause in zip(chain((None,), groups), groups, pauses, strict=False)
        ]
        return [*accumulate(begins), -1, -2]

    def _weighted_lengths(self) -> list[int]:
        """Return the length of each document in tenths of words, with what it is lent."""
        own = self._column(lambda segment: segment.lengths)
        heads = [length if length < LENT_WORDS else LENT_WORDS for length in own]
        lengths = list(map(_OWN.__mul__, own))
        for step, share in _NEIGHBOURS:
            shares = [
                share if same else 0 for same in map(eq, self._sittings, self._sittings[step:])
            ]
            before = chain(repeat(0, step), map(mul, shares, heads))
            after = map(mul, shares, chain(heads[step:], repeat(0, step)))
            lengths = list(map(add, map(add, lengths, before), after))
        return lengths

    def _norm(self, length: int) -> float:
        """Return the count that earns a text of `length` half of a word's weight.

        Both are in tenths.
        """
        return self._norm_base + self._norm_slope * max(length, _LENGTH_FLOOR * _OWN)
