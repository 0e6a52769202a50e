"""All documents in one order: who says a word, how much that counts, and who stands next to whom."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import Any, Final

from smp_git.ask.text.batches import SHORT, Batch, worth
from smp_git.ask.text.questions import Pattern

_TURN: Final = "turn"
# The share that a turn lends to those next to it, or if it asks something to the one after;
# to those two away half of that. A long answer does not drown a short turn.
_LENT: Final = 0.3
_LENT_BY_QUESTION: Final = 0.6
_PAUSE_SECONDS: Final = 6 * 3600
_YEAR_SECONDS: Final = 31_556_952

# What a word is worth by the place of a document, from 0 to 1.
Values = Mapping[int, float]


class Index:
    """The documents of some pages of batches, ordered by kind, sitting, time and id."""

    def __init__(self, batches: Sequence[Batch], pages: Sequence[Sequence[range]]) -> None:
        self._batches, self._pages = batches, pages
        read: list[list[Any]] = [[] for _ in range(8)]
        for batch, some in zip(batches, pages, strict=True):
            for column, every in zip(read, batch.columns, strict=True):
                for page in some:
                    column += every[page.start : page.stop]
        order = _order(read[0], read[1], read[2], read[5])
        ids, kinds, sittings, speakers, roles, seconds, asks, lengths = (
            list(map(column.__getitem__, order)) for column in read
        )
        self.ids: list[str] = ids
        self.seconds: list[int] = seconds
        self.voices: list[list[str]] = [speakers, roles]
        self._asks: list[int] = asks
        self._lengths: list[int] = lengths
        # Where the documents of each batch stand, -1 for those of pages that are not used.
        self._places = [[-1] * len(batch.columns[0]) for batch in batches]
        places = iter(sorted(order, key=order.__getitem__))
        for of_batch, some in zip(self._places, pages, strict=True):
            for page in some:
                of_batch[page.start : page.stop] = islice(places, len(page))
        # The number of each turn's sitting, and for all else one of its own, beyond the ends too.
        self._sittings = list(range(-len(order), 2))
        for place in range(bisect_left(kinds, _TURN) + 1, bisect_right(kinds, _TURN)):
            is_paused = seconds[place] - seconds[place - 1] > _PAUSE_SECONDS
            same = sittings[place] == sittings[place - 1]
            if same and not (is_paused and sittings[place] == ""):
                self._sittings[place] = self._sittings[place - 1]
        self._listeners: dict[int, list[tuple[int, float]]] = {}

    @cached_property
    def names(self) -> set[str]:
        """The speakers and roles."""
        return {*chain.from_iterable(self.voices)} - {""}

    @cached_property
    def years(self) -> range:
        """The years in which something was said, and one more on either side."""
        # They are not of one length.
        first, last = (pick(self.seconds, default=0) // _YEAR_SECONDS for pick in (min, max))
        return range(1969 + first, 1972 + last)

    @cached_property
    def place_of(self) -> Mapping[str, int]:
        """The place of each document, by id."""
        return {name: place for place, name in enumerate(self.ids)}

    @cached_property
    def blobs(self) -> list[str]:
        """The blob of each document."""
        several = zip(self._places, self._batches, strict=True)
        known = dict(
            chain.from_iterable(zip(at, batch.blobs, strict=False) for at, batch in several)
        )
        return [known[place] for place in range(len(self.ids))]

    def neighbours(self, place: int) -> list[tuple[int, float]]:
        """Return the places of the turns that borrow from a document, and which share."""
        known = self._listeners.get(place)
        if known is None:
            before = _LENT * min(1.0, SHORT / max(1, self._lengths[place]))
            after = before * _LENT_BY_QUESTION / _LENT if self._asks[place] else before
            shares = ((-2, before / 2), (-1, before), (1, after), (2, after / 2))
            own = self._sittings[place]
            known = [(place + step, s) for step, s in shares if self._sittings[place + step] == own]
            self._listeners[place] = known
        return known

    # What is said

    def words(self, stems: Iterable[str]) -> dict[str, dict[int, float]]:
        """Return what some stems are worth in each document that says them, read all at once."""
        found: dict[str, dict[int, float]] = {each: {} for each in stems}
        for batch, places in zip(self._batches, self._places, strict=True):
            for stem, slots, values in batch.postings(found):
                found[stem].update(zip(map(places.__getitem__, slots), values, strict=True))
        for own in found.values():
            own.pop(-1, None)
        return found

    def pattern(self, pattern: Pattern) -> Values:
        """Return what a phrase or a wildcard is worth in each document that holds it."""
        counts = ((at, len(pattern.finder.findall(text))) for at, text in self._texts)
        return {at: worth(count, self._lengths[at]) for at, count in counts if count}

    def lent(self, own: Values) -> Values:
        """Return what a word is worth more by what neighbours lend, where it is said little or not."""
        lent: defaultdict[int, float] = defaultdict(float)
        # In order, so that sums do not depend on how documents are spread over batches.
        for place in sorted(own.keys() & self._lenders):
            for at, share in self.neighbours(place):
                lent[at] += share * own[place]
        return {at: (1 - own.get(at, 0.0)) * min(1.0, value) for at, value in lent.items()}

    @cached_property
    def _lenders(self) -> set[int]:
        """The places of the documents that have neighbours."""
        several = enumerate(pairwise(self._sittings))
        joined = {place for place, (one, other) in several if one == other}
        return joined | {place + 1 for place in joined}

    @cached_property
    def _texts(self) -> list[tuple[int, str]]:
        """The place and the words of each document."""
        several = zip(self._batches, self._places, self._pages, strict=True)
        return [
            found
            for batch, places, pages in several
            for page in pages
            if page
            for found in zip(places[page.start : page.stop], batch.texts(page), strict=True)
        ]


def _order(ids: list[str], kinds: list[str], sittings: list[str], seconds: list[int]) -> list[int]:
    """Return where documents stand by kind, sitting, time and id, turn-9999 before turn-10000."""
    order = list(range(len(ids)))
    lengths = list(map(len, ids))
    # One after the other: at each of ten thousand tuples the garbage collector would look.
    columns: tuple[list[Any], ...] = (ids, lengths, seconds, sittings, kinds)
    for column in columns:
        order.sort(key=column.__getitem__)
    return order
