"""All documents in one order, and how often each says a word."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import cached_property
from itertools import accumulate, chain, pairwise, repeat
from math import floor, frexp, log, log1p
from operator import add, eq, mul, sub
from typing import Final, NamedTuple, Self, TypeVar

from smp_git.search import planes
from smp_git.search.planes import Planes
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
_NORM_BASE: Final = _OWN * _SATURATION * (1 - _LENGTH_WEIGHT)
_NORM_SLOPE: Final = _OWN * _SATURATION * _LENGTH_WEIGHT
_LEAST: Final = _LENGTH_FLOOR * _OWN
# How many counts are kept, per document: some 10 MB for ten thousand documents.
_KEPT_COUNTS: Final = 20
_DAY_SECONDS: Final = 86_400
_EPOCH: Final = date(1970, 1, 1).toordinal()

# The unit of sums in planes, a power of two: a thousandth of a rare word's weight.
_UNIT_BITS: Final = 9
UNIT: Final = 2.0**-_UNIT_BITS
# Shares of a word's weight are kept in eight bits, and so are the weights themselves.
_BITS: Final = 8
# The mean length may grow by so much before shares are computed anew.
_MEAN_STEP: Final = 1 / 64
# How far the eight bits of shares and of weights, and the step, may fall short together.
_SHORT: Final = 2.0**-_BITS + _MEAN_STEP / 4 + 2.0 ** (1 - _BITS) + 1e-6

# A word is asked for as such and as a name, in one corpus and among several.
_KEPT_WEIGHTS: Final = 4

T = TypeVar("T")


class Scale(NamedTuple):
    """What a word's value depends on besides the document: how many there are, how long."""

    documents: int
    mean: float

    @classmethod
    def of(cls, corpora: Iterable[Corpus]) -> Self:
        """Return the scale of several corpora taken as one."""
        known = list(corpora)
        documents = sum(len(each.ids) for each in known)
        return cls(documents, max(1, sum(each.length for each in known)) / max(1, documents))

    @property
    def step(self) -> int:
        """The mean length, in steps of its logarithm, so that it seldom changes."""
        return floor(log(self.mean) / log1p(_MEAN_STEP) - 1e-9)

    def rarity(self, holders: int) -> float:
        """Return the weight of a word that so many documents hold."""
        return log(1 + (self.documents - holders + 0.5) / (holders + 0.5))

    def norm(self, length: int) -> float:
        """Return the count that earns a text of `length` half of a word's weight.

        Both are in tenths.
        """
        return _NORM_BASE + _NORM_SLOPE / self.mean * max(length, _LEAST)

    def norms(self, lengths: Iterable[int]) -> list[float]:
        """Return the norm of each length."""
        base, slope, least = _NORM_BASE, _NORM_SLOPE / self.mean, _LEAST
        return [base + slope * (length if length > least else least) for length in lengths]

    def value(self, weight: float, count: int, length: int) -> float:
        """Return what a word said `count` times adds to a text of `length` words."""
        return weight * (count * _OWN) / (count * _OWN + self.norm(length * _OWN))


class Word:
    """How often each document says a word or matches a pattern, in tenths.

    `holders` documents do so themselves; others may be lent it.
    """

    __slots__ = ("_members", "_shares", "_step", "_values", "counts", "holders")

    def __init__(self, counts: Mapping[int, int], holders: int) -> None:
        self.counts = counts
        self.holders = holders
        self._members: int | None = None
        self._step: int | None = None
        self._shares: Planes = []
        self._values: dict[tuple[int, int], Planes] = {}

    def members(self, size: int) -> int:
        """Return the places of the documents, of which there are `size`, as a set."""
        if self._members is None:
            self._members = planes.members_of(self.counts, size)
        return self._members

    def values(self, weight: float, scale: Scale, lengths: Sequence[int]) -> Planes:
        """Return what the word adds to each sum, rounded down, in units of `UNIT`."""
        step = scale.step
        if step != self._step:
            self._step, self._shares, self._values = step, self._shared(step, lengths), {}
        share, exponent = frexp(weight)
        factor = int(share * (1 << _BITS))
        known = self._values.get((factor, exponent))
        if known is None:
            drop = 2 * _BITS - exponent - _UNIT_BITS
            known = [0] * -drop + planes.times(self._shares, factor, max(0, drop))
            if len(self._values) >= _KEPT_WEIGHTS:
                self._values.clear()
            self._values[factor, exponent] = known
        return known

    def _shared(self, step: int, lengths: Sequence[int]) -> Planes:
        """Return the shares of the word's weight that documents get, in eight bits."""
        base, slope, least = _NORM_BASE, _NORM_SLOPE / (1 + _MEAN_STEP) ** step, _LEAST
        one = 1 << _BITS
        held = [
            int(one * count / (count + base + slope * (length if length > least else least)))
            for count, length in zip(
                self.counts.values(), map(lengths.__getitem__, self.counts), strict=True
            )
        ]
        shares = bytearray(len(lengths))
        for place, share in zip(self.counts, held, strict=True):
            shares[place] = share
        return planes.spread(bytes(shares))


def shortfall(weights: Iterable[float]) -> float:
    """Return by how much the sums of so many rounded values may fall short."""
    return sum(weight * _SHORT + UNIT for weight in weights)


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
        self.lengths = self._weighted_lengths()
        self.length = sum(self.lengths)
        self._words: dict[tuple[Term, bool] | Pattern, Word] = {}
        self._kept = 0

    @cached_property
    def digests(self) -> list[bytes]:
        """The digest of each document's text."""
        return self._column(lambda segment: segment.digests)

    @cached_property
    def days(self) -> Mapping[int, list[int]]:
        """The places of the documents of each day, by its ordinal in the calendar."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        for place, seconds in enumerate(self._seconds):
            found[_EPOCH + seconds // _DAY_SECONDS].append(place)
        return found

    def on(self, days: Iterable[int]) -> int:
        """Return the places of the documents of some days, as a set."""
        places = chain.from_iterable(self.days.get(day, ()) for day in days)
        return planes.members_of(places, len(self.ids))

    @cached_property
    def years(self) -> range:
        """The years from the first document to the last."""
        if not self._seconds:
            return range(0)
        ends = (min(self._seconds), max(self._seconds))
        first, last = (date.fromordinal(_EPOCH + end // _DAY_SECONDS).year for end in ends)
        return range(first, last + 1)

    @cached_property
    def voices(self) -> Mapping[tuple[str, str], int]:
        """The places of each pair of speaker and role, as a set."""
        found: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for place, voice in enumerate(self._column(lambda segment: segment.voices)):
            found[voice].append(place)
        return {voice: planes.members_of(at, len(self.ids)) for voice, at in found.items()}

    def spoken(self, names: frozenset[str]) -> int:
        """Return the places of the documents by these speakers, or in these roles, as a set."""
        members = 0
        for voice, at in self.voices.items():
            if not names.isdisjoint(voice):
                members |= at
        return members

    @cached_property
    def place_of(self) -> Mapping[str, int]:
        """The place of each document, by id."""
        return {name: place for place, name in enumerate(self.ids)}

    def members(self, ids: Iterable[str]) -> int:
        """Return the places of those of some documents that are there, as a set."""
        known = self.place_of
        return planes.members_of((known[name] for name in ids if name in known), len(known))

    def word(self, term: Term, *, lending: bool) -> Word:
        """Return how often documents say a word, with or without what neighbours lend."""
        return self._known((term, lending), lambda: self._word(term, lending=lending))

    def pattern(self, pattern: Pattern) -> Word:
        """Return how often documents hold a phrase or a prefix."""
        return self._known(pattern, lambda: self._matched(pattern))

    def rarity(self, term: Term) -> int:
        """Return how many documents hold a word."""
        return sum(segment.frequency(term) for segment in self._segments)

    def own_count(self, term: Term, place: int) -> int:
        """Return how often a document says a word itself, in tenths."""
        number = bisect_right(self._firsts, self._order[place]) - 1
        slot = self._order[place] - self._firsts[number]
        return _OWN * self._segments[number].count(term, slot)

    def _known(self, key: tuple[Term, bool] | Pattern, make: Callable[[], Word]) -> Word:
        known = self._words.get(key)
        if known is None:
            known = make()
            self._kept += len(known.counts)
            while self._kept > _KEPT_COUNTS * len(self.ids) and self._words:
                self._kept -= len(self._words.pop(next(iter(self._words))).counts)
            self._words[key] = known
        return known

    def _matched(self, pattern: Pattern) -> Word:
        counts = {
            places[slot]: _OWN * count
            for places, segment in zip(self._places, self._segments, strict=True)
            for slot, count in segment.occurrences(pattern).items()
        }
        return Word(counts, len(counts))

    def _word(self, term: Term, *, lending: bool) -> Word:
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
        holders = len(found)
        if lending:
            self._lend(found, zip(lenders, heads, strict=True))
        return Word(found, holders)

    def _lend(self, counts: dict[int, int], lent: Iterable[tuple[int, int]]) -> None:
        """Add to `counts` what the documents in `lent` give their neighbours."""
        sittings = self._sittings
        for place, head in lent:
            sitting = sittings[place]
            for step, share in _SHARES:
                neighbour = place + step
                if sittings[neighbour] == sitting:
                    counts[neighbour] = counts.get(neighbour, 0) + share * head

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
