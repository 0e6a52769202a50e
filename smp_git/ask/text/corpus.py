"""All documents in one order, and how often each says a word."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import cached_property
from itertools import accumulate, chain, pairwise, repeat
from math import ceil, exp, floor, log, log1p
from operator import add, eq, mul, sub
from typing import Any, Final, NamedTuple, Self, TypeVar

from smp_git.ask.text import lanes
from smp_git.ask.text.questions import Pattern
from smp_git.ask.text.segments import LENT_WORDS, Gathered, Segment, Term

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
_NORM_BASE: Final = _OWN * _SATURATION * (1 - _LENGTH_WEIGHT)
_NORM_SLOPE: Final = _OWN * _SATURATION * _LENGTH_WEIGHT
_LEAST: Final = _LENGTH_FLOOR * _OWN
# Words of a corpus that are kept: some 5 MB for ten thousand documents.
_KEPT_WORDS: Final = 128
# A text that says a word more often says it so often.
_MOST_COUNTED: Final = 6_000
_DAY_SECONDS: Final = 86_400
_EPOCH: Final = date(1970, 1, 1).toordinal()

# Logarithms are added as bytes; the greatest count that has one, and the least.
_BYTE: Final = 255
_LEAST_COUNT: Final = min(share for _, share in _NEIGHBOURS)
# The mean length may grow by so much before all is reckoned anew.
_MEAN_STEP: Final = 1 / 64
# A share beyond the last step, and what numbers lose that are rounded a last time.
_LAST_SHARE: Final = 1 / 128
# Gauges of a corpus that are kept: its own, and those of the corpora that it is among.
_KEPT: Final = 2

T = TypeVar("T")


class CorpusScale(NamedTuple):
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


class Gauge:
    """Reckons what a word is worth in every document at once, a little short.

    That is weight * count / (count + norm), and depends on the difference of two
    logarithms. Rounded to steps they fit a byte together: so one addition of long integers
    and a table make the values of all documents.
    """

    def __init__(self, scale: CorpusScale, lengths: Sequence[int]) -> None:
        mean = (1 + _MEAN_STEP) ** scale.step
        self._slope = _NORM_SLOPE / mean
        self._lengths = lengths
        least, most = self._norm(_LEAST), self._norm(max(lengths, default=0))
        counts, norms = log(_BYTE / _LEAST_COUNT), log(most / least)
        # Two steps are lost to rounding, and 0 stands for what is not said.
        self._step = (counts + norms) / (_BYTE - 3)
        top = ceil(norms / self._step)
        # The length up to which a norm is rounded up to each step.
        ends = [(least * exp(n * self._step) - _NORM_BASE) / self._slope for n in range(top)]
        self._norms = int.from_bytes(
            [top - bisect_left(ends, length) for length in lengths], "little"
        )
        self._steps = bytes(map(self._rounded, range(_BYTE + 1)))
        self._least = log(_LEAST_COUNT / least) - (top + 1) * self._step
        self._shares = [
            0.0,
            *(1 / (1 + exp(-self._least - n * self._step)) for n in range(1, _BYTE + 1)),
        ]

    def _norm(self, length: int) -> float:
        return _NORM_BASE + self._slope * max(length, _LEAST)

    def _rounded(self, count: int) -> int:
        """Return the logarithm of a count in whole steps; 0 for what is not said."""
        return 1 + floor(log(count / _LEAST_COUNT) / self._step) if count >= _LEAST_COUNT else 0

    def read(self, counts: Sequence[int]) -> bytes:
        """Return for each document which share of a word's weight it gets, as a number."""
        low, high = bytes_of(counts)
        steps = int.from_bytes(low.translate(self._steps), "little") + self._norms
        said = int.from_bytes(lanes.nonzero(low), "little")
        found = (steps & said).to_bytes(len(low), "little")
        if not high.strip(b"\0"):
            return found
        numbers = bytearray(found)
        for place in lanes.places_of(high):
            numbers[place] = self._number(counts[place] / self._norm(self._lengths[place]))
        return bytes(numbers)

    def _number(self, times: float) -> int:
        """Return the number of the share of a count that is so many times the norm."""
        return max(1, min(_BYTE, floor((log(times) - self._least) / self._step)))

    def values(self, numbers: bytes, weight: float) -> int:
        """Return what a word of this weight adds to the sums, rounded down."""
        values = [int(weight * share) for share in self._shares]
        low = numbers.translate(bytes([value & 255 for value in values]))
        high = numbers.translate(bytes([value >> 8 for value in values]))
        return lanes.joined(low, high)

    def shortfall(self, weights: Iterable[float]) -> float:
        """Return by how much the sums of such words may fall short."""
        share = self._step / 2 + _MEAN_STEP / 4 + _LAST_SHARE
        return sum(weight * share + 1 for weight in weights)


def bytes_of(counts: Sequence[int]) -> tuple[bytes, bytes]:
    """Return the low bytes of some counts, and the high ones."""
    every = bytes(memoryview(counts).cast("B"))  # type: ignore[arg-type]
    return (every[0::2], every[1::2]) if sys.byteorder == "little" else (every[1::2], every[0::2])


class Word:
    """How often each document says a word or matches a pattern, in tenths, by place.

    `holders` documents do so themselves; others may be lent it.
    """

    __slots__ = ("_read", "_values", "counts", "holders")

    def __init__(self, counts: Sequence[int], holders: int) -> None:
        self.counts = counts
        self.holders = holders
        self._read: dict[Gauge, bytes] = {}
        self._values: dict[tuple[Gauge, float], int] = {}

    def values(self, weight: float, gauge: Gauge) -> int:
        """Return what the word adds to each sum, rounded down."""
        known = self._values.get((gauge, weight))
        if known is None:
            _make_room(self._values)
            known = self._values[gauge, weight] = gauge.values(self._numbers(gauge), weight)
        return known

    def _numbers(self, gauge: Gauge) -> bytes:
        known = self._read.get(gauge)
        if known is None:
            _make_room(self._read)
            known = self._read[gauge] = gauge.read(self.counts)
        return known

    def members(self) -> bytes:
        """Return the documents that say the word or are lent it, as a set."""
        low, high = bytes_of(self.counts)
        return lanes.either(map(lanes.nonzero, (low, high)), len(low))


def _make_room(kept: dict[Any, Any]) -> None:
    if len(kept) >= _KEPT:
        kept.clear()


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
        self._gauges: dict[int, Gauge] = {}

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

    def on(self, days: Iterable[int]) -> bytes:
        """Return the places of the documents of some days, as a set."""
        places = chain.from_iterable(self.days.get(day, ()) for day in days)
        return lanes.members_of(places, len(self.ids))

    @cached_property
    def years(self) -> range:
        """The years from the first document to the last."""
        if not self._seconds:
            return range(0)
        ends = (min(self._seconds), max(self._seconds))
        first, last = (date.fromordinal(_EPOCH + end // _DAY_SECONDS).year for end in ends)
        return range(first, last + 1)

    @cached_property
    def voices(self) -> Mapping[tuple[str, str], bytes]:
        """The places of each pair of speaker and role, as a set."""
        found: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for place, voice in enumerate(self._column(lambda segment: segment.voices)):
            found[voice].append(place)
        return {voice: lanes.members_of(at, len(self.ids)) for voice, at in found.items()}

    def spoken(self, names: frozenset[str]) -> bytes:
        """Return the places of the documents by these speakers, or in these roles, as a set."""
        named = [at for voice, at in self.voices.items() if not names.isdisjoint(voice)]
        return lanes.either(named, len(self.ids))

    @cached_property
    def place_of(self) -> Mapping[str, int]:
        """The place of each document, by id."""
        return {name: place for place, name in enumerate(self.ids)}

    def members(self, ids: Iterable[str]) -> bytes:
        """Return the places of those of some documents that are there, as a set."""
        known = self.place_of
        return lanes.members_of((known[name] for name in ids if name in known), len(known))

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
            while len(self._words) >= _KEPT_WORDS:
                del self._words[next(iter(self._words))]
            known = self._words[key] = make()
        return known

    def gauge(self, scale: CorpusScale) -> Gauge:
        """Return what reckons the values of words on a scale."""
        known = self._gauges.get(scale.step)
        if known is None:
            _make_room(self._gauges)
            known = self._gauges[scale.step] = Gauge(scale, self.lengths)
        return known

    def _matched(self, pattern: Pattern) -> Word:
        counts = self._no_counts()
        holders = 0
        for places, segment in zip(self._places, self._segments, strict=True):
            for slot, count in segment.occurrences(pattern).items():
                counts[places[slot]] = _OWN * min(count, _MOST_COUNTED)
                holders += 1
        return Word(counts, holders)

    def _word(self, term: Term, *, lending: bool) -> Word:
        said, lent = Gathered([], []), Gathered([], [])
        for places, segment in zip(self._places, self._segments, strict=True):
            segment.gather(term, places, said, lent if lending else None)
        total = _OWN * _lanes(self._counts(said))
        if lent.places:
            total += self._lent(_lanes(self._counts(lent)))
        return Word(_unlaned(total, len(self.ids)), len(said.places))

    def _counts(self, gathered: Gathered) -> array[int]:
        """Return the counts of all documents, by place."""
        counts = self._no_counts()
        places, found = gathered
        if found and max(found) > _MOST_COUNTED:
            found = [min(count, _MOST_COUNTED) for count in found]
        # The fastest loop there is.
        deque(map(counts.__setitem__, places, found), maxlen=0)
        return counts

    def _lent(self, heads: int) -> int:
        """Return what the documents with these counts give their neighbours."""
        total = 0
        for (step, share), same in zip(_NEIGHBOURS, self._same_sittings, strict=True):
            bits = step * lanes.BITS
            total += share * ((heads << bits & same) + (heads >> bits & same >> bits))
        return total

    @cached_property
    def _same_sittings(self) -> list[int]:
        """For each distance, where the document so far back is of the same sitting."""
        every = self._sittings[:-2]
        return [
            _lanes(
                array(
                    "H",
                    [
                        *repeat(0, min(step, len(every))),
                        *(lanes.MOST * (a == b) for a, b in zip(every, every[step:], strict=False)),
                    ],
                )
            )
            for step, _ in _NEIGHBOURS
        ]

    def _no_counts(self) -> array[int]:
        return array("H", bytes(len(self.ids) * lanes.BYTES))

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


def _lanes(counts: array[int]) -> int:
    return int.from_bytes(_little(counts).tobytes(), "little")


def _unlaned(found: int, count: int) -> array[int]:
    return _little(array("H", found.to_bytes(count * lanes.BYTES, "little")))


def _little(counts: array[int]) -> array[int]:
    """Return counts whose bytes have the order that integers are made in."""
    if sys.byteorder == "big":
        counts = counts[:]
        counts.byteswap()
    return counts
