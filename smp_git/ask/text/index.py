"""All documents in one order, and how often each says a word."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from itertools import chain
from typing import Final, NamedTuple, TypeVar

from smp_git.ask.text.batches import (
    COUNT_MASK,
    COUNT_SHIFT,
    EARLY_MASK,
    LENT_WORDS,
    SLOT_SHIFT,
    TURN,
    Batch,
)
from smp_git.ask.text.questions import Pattern, fits
from smp_git.ask.text.words import stem

# Weights of words, in tenths: a document's own, and those of the turns before and after
# it, a turn and two turns away. What follows a question answers it, and is lent more.
OWN: Final = 10
_LENT: Final = {1: 4, 2: 2}
_LENT_BY_QUESTION: Final = {1: 6, 2: 3}
_PAUSE_SECONDS: Final = 6 * 3600
# Words that are kept, some 10 bytes for each document that holds one; and words that a
# wildcard stands for, the shortest first.
_KEPT_WORDS: Final = 96
_MOST_EXPANDED: Final = 256
_DAY_SECONDS: Final = 86_400

T = TypeVar("T")
_EPOCH: Final = date(1970, 1, 1).toordinal()


class Word(NamedTuple):
    """Counts of a word by document: its own, and in tenths with what neighbours lend it."""

    own: Mapping[int, int]
    counts: Mapping[int, int]


class Index:
    """The documents of some pages of batches, ordered by kind, sitting, time and id."""

    def __init__(self, batches: Sequence[Batch], slots: Sequence[Iterable[range]]) -> None:
        self._batches = batches
        every = [(n, list(chain.from_iterable(some))) for n, some in enumerate(slots)]
        keys = [batches[n].keys[slot] for n, some in every for slot in some]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        self._slots = _in_order(order, (some for _, some in every))
        self._homes = _in_order(order, ([n] * len(some) for n, some in every))
        self.ids = self._column(lambda batch: batch.ids)
        self._seconds = self._column(lambda batch: batch.seconds)
        self._voices = self._column(lambda batch: batch.voices)
        self._asks = self._column(lambda batch: batch.asks)
        self._places: list[dict[int, int]] = [{} for _ in batches]
        for place, (batch, slot) in enumerate(zip(self._homes, self._slots, strict=True)):
            self._places[batch][slot] = place
        self._sittings = self._numbered(self._column(lambda batch: batch.sittings))
        self.lengths = self._weighted(self._column(lambda batch: batch.lengths))
        self.length = sum(self.lengths)
        self._words: dict[str | Pattern, Word] = {}
        self._numbers: tuple[float, list[float]] = -1.0, []

    def _column(self, column: Callable[[Batch], Sequence[T]]) -> list[T]:
        known = [column(batch) for batch in self._batches]
        return [known[n][slot] for n, slot in zip(self._homes, self._slots, strict=True)]

    def _numbered(self, sittings: Iterable[tuple[str, str]]) -> list[int]:
        """Return a number per document, the same for the turns of one sitting.

        Two more at the end stand for the neighbours that the first and last do not have.
        """
        numbers, number, before, until = [], 0, ("", ""), 0
        for sitting, seconds in zip(sittings, self._seconds, strict=True):
            is_paused = not sitting[1] and seconds > until
            number += sitting[0] != TURN or sitting != before or is_paused
            before, until = sitting, seconds + _PAUSE_SECONDS
            numbers.append(number)
        return [*numbers, -1, -2]

    def _weighted(self, own: Sequence[int]) -> list[int]:
        """Return the length of each document in tenths of words, with what it is lent."""
        lengths = [OWN * length for length in own]
        for step, share in _LENT.items():
            for place, sitting in enumerate(self._sittings[step:-2]):
                if sitting == self._sittings[place]:
                    later = place + step
                    lent = _LENT_BY_QUESTION[step] if self._asks[place] else share
                    lengths[later] += lent * min(LENT_WORDS, own[place])
                    lengths[place] += share * min(LENT_WORDS, own[later])
        return lengths

    def neighbours(self, place: int) -> list[int]:
        """Return the places of the turns that lend a document words, the nearest first."""
        around = (place - 1, place + 1, place - 2, place + 2)
        return [at for at in around if self._sittings[at] == self._sittings[place]]

    # What is said

    def word(self, wanted: str) -> Word:
        """Return how often documents say a stem."""
        return self._kept(wanted, lambda: self._word(wanted))

    def pattern(self, pattern: Pattern) -> Word:
        """Return how often documents hold a phrase, or words that fit a wildcard."""
        return self._kept(pattern, lambda: self._matched(pattern))

    def _kept(self, key: str | Pattern, make: Callable[[], Word]) -> Word:
        known = self._words.pop(key, None) or make()
        while len(self._words) >= _KEPT_WORDS:
            del self._words[next(iter(self._words))]
        self._words[key] = known
        return known

    def _word(self, wanted: str) -> Word:
        own: dict[int, int] = {}
        early: list[tuple[int, int]] = []
        for batch, places in zip(self._batches, self._places, strict=True):
            for posting in batch.postings(wanted):
                place = places.get(posting >> SLOT_SHIFT)
                if place is not None:
                    own[place] = posting >> COUNT_SHIFT & COUNT_MASK
                    if posting & EARLY_MASK:
                        early.append((place, posting & EARLY_MASK))
        counts = {place: OWN * count for place, count in own.items()}
        for place, count in early:
            self._lend(place, count, counts)
        return Word(own, counts)

    def _lend(self, place: int, count: int, counts: dict[int, int]) -> None:
        sittings = self._sittings
        forward = _LENT_BY_QUESTION if self._asks[place] else _LENT
        for step, share in _LENT.items():
            before, after = place - step, place + step
            if sittings[before] == sittings[place]:
                counts[before] = counts.get(before, 0) + share * count
            if sittings[after] == sittings[place]:
                counts[after] = counts.get(after, 0) + forward[step] * count

    def _matched(self, pattern: Pattern) -> Word:
        meant = [self._expanded(word) for word in pattern.words]
        stems = [set(map(stem, each)) for each in meant]
        own: dict[int, int] = {}
        for batch, places in zip(self._batches, self._places, strict=True):
            holders = [
                {posting >> SLOT_SHIFT for each in wanted for posting in batch.postings(each)}
                for wanted in stems
            ]
            slots = sorted(set.intersection(*holders) & places.keys())
            for slot, text in zip(slots, batch.texts(slots), strict=True):
                count = _times(meant, text)
                if count:
                    own[places[slot]] = count
        return Word(own, {place: OWN * count for place, count in own.items()})

    def _expanded(self, word: str) -> set[str]:
        """Return the words that a part of a pattern stands for."""
        if not {"*", "?"} & set(word):
            return {word}
        found = filter(fits(word), self._vocabulary)
        return set(sorted(found, key=lambda each: (len(each), each))[:_MOST_EXPANDED])

    @cached_property
    def _vocabulary(self) -> set[str]:
        return set(chain.from_iterable(batch.words() for batch in self._batches))

    def pairs(
        self, pairs: Iterable[tuple[str, str]], places: Iterable[int]
    ) -> Iterator[tuple[int, set[tuple[str, str]]]]:
        """Yield documents with those of some pairs of stems that stand side by side there."""
        by_batch: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for place in places:
            by_batch[self._homes[place]].append((self._slots[place], place))
        for batch, found in by_batch.items():
            held = self._batches[batch].pairs(pairs, [slot for slot, _ in found])
            yield from zip((place for _, place in found), held, strict=True)

    def per_document(self, key: float, make: Callable[[], list[float]]) -> list[float]:
        """Return a number for each document, kept while the key is the same."""
        if self._numbers[0] != key:
            self._numbers = key, make()
        return self._numbers[1]

    # Who and when

    @cached_property
    def days(self) -> Mapping[int, list[int]]:
        """The places of the documents of each day, by its ordinal in the calendar."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        for place, seconds in enumerate(self._seconds):
            found[_EPOCH + seconds // _DAY_SECONDS].append(place)
        return found

    @cached_property
    def names(self) -> Mapping[str, list[int]]:
        """The places of the documents of each speaker and of each role."""
        by_voice: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for place, voice in enumerate(self._voices):
            by_voice[voice].append(place)
        found: defaultdict[str, list[int]] = defaultdict(list)
        for names, places in by_voice.items():
            for name in {*names} - {""}:
                found[name] += places
        return found

    @cached_property
    def place_of(self) -> Mapping[str, int]:
        """The place of each document, by id."""
        return {name: place for place, name in enumerate(self.ids)}


def _times(meant: Sequence[set[str]], text: Sequence[str]) -> int:
    """Return how often words that are meant stand side by side in a text."""
    if len(meant) == 1:
        # Four times as fast, and what is asked at each key while somebody types.
        return sum(map(meant[0].__contains__, text))
    runs = zip(*(text[step:] for step in range(len(meant))), strict=False)
    return sum(all(map(set.__contains__, meant, run)) for run in runs)


def _in_order(order: Iterable[int], several: Iterable[Iterable[T]]) -> list[T]:
    values = list(chain.from_iterable(several))
    return [values[at] for at in order]
