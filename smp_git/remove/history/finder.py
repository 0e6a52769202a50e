"""Which of many texts stand in another one, at a cost that hardly grows with their number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import compress
from typing import Final

from smp_git.remove.history.needles import LONGEST, Phrase, size_of, words

# Fewer texts are searched faster one by one.
_FEW: Final = 24
# A text of so many bytes holds, wherever it stands, eight that begin at a multiple of eight.
SHORTEST: Final = 15
_WIDTH: Final = 8
# So much of a text is taken apart into words at a time.
_PART: Final = 1 << 20

# Eight bytes as a number, with each text that has them and their place in it.
_Anchors = dict[int, list[tuple[int, bytes]]]


class TextFinder:
    """Looks for texts of at least `SHORTEST` bytes."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        self._texts = tuple(texts)
        self._anchors = _anchors(self._texts) if len(self._texts) > _FEW else None

    def __bool__(self) -> bool:
        return bool(self._texts)

    def found(self, data: bytes) -> set[bytes]:
        """Return the texts that stand in `data`."""
        if self._anchors is None:
            return {text for text in self._texts if text in data}
        return set(_at_anchors(data, self._anchors))

    def is_in(self, data: bytes) -> bool:
        """Whether any of the texts stands in `data`."""
        if self._anchors is None:
            return any(text in data for text in self._texts)
        return next(_at_anchors(data, self._anchors), None) is not None


def _at_anchors(data: bytes, anchors: _Anchors) -> Iterator[bytes]:
    """Yield the texts that stand around a place where eight bytes of theirs do."""
    numbers = _numbers(data, 0)
    for place in compress(range(len(numbers)), map(anchors.__contains__, numbers)):
        for offset, text in anchors[numbers[place]]:
            at = place * _WIDTH - offset
            if at >= 0 and data.startswith(text, at):
                yield text


def _anchors(texts: tuple[bytes, ...]) -> _Anchors:
    """Return for each text, and each way it can lie, eight bytes that few others have."""
    shared = Counter(n for text in texts for shift in range(_WIDTH) for n in _numbers(text, shift))
    found: _Anchors = {}
    for text in texts:
        for shift in range(_WIDTH):
            numbers = _numbers(text, shift)
            rarest = min(range(len(numbers)), key=lambda place: shared[numbers[place]])
            found.setdefault(numbers[rarest], []).append((shift + rarest * _WIDTH, text))
    return found


def _numbers(text: bytes, shift: int) -> memoryview:
    """Return eight bytes and eight bytes of a text as numbers, from `shift` on."""
    stop = shift + (len(text) - shift) // _WIDTH * _WIDTH
    return memoryview(text)[shift:stop].cast("Q")


class PhraseFinder:
    """Looks for phrases: long ones as texts of words with one space between, short ones by a word."""

    def __init__(self, phrases: Iterable[Phrase]) -> None:
        wanted = set(phrases)
        self._long = {_set(each): each for each in wanted if size_of(each) + 2 >= SHORTEST}
        self._texts = TextFinder(self._long)
        self._anchors: dict[bytes, list[Phrase]] = {}
        for each in wanted.difference(self._long.values()):
            self._anchors.setdefault(max(each, key=_rarity), []).append(each)
        # Where none of these is, none of few phrases is, and nothing need be taken apart.
        self._marks = {max(each, key=_rarity) for each in wanted} if len(wanted) <= _FEW else set()
        longest = max(map(size_of, wanted), default=0)
        # Around what is new so much is looked at besides: what is between words counts too.
        self.reach = min(2 * longest + 64, LONGEST) if wanted else 0

    def __bool__(self) -> bool:
        return bool(self.reach)

    def found(self, data: bytes) -> set[Phrase]:
        """Return the phrases that stand in `data`."""
        return set(self._each(data))

    def is_in(self, data: bytes) -> bool:
        """Whether any of the phrases stands in `data`."""
        return next(self._each(data), None) is not None

    def _each(self, data: bytes) -> Iterator[Phrase]:
        if not self or self._is_far_from(data):
            return
        for at in range(0, max(len(data), 1), _PART):
            row = words(data[max(0, at - LONGEST) : at + _PART])
            text = _set(row)
            yield from (self._long[each] for each in self._texts.found(text))
            for word in self._anchors.keys() & set(row) if self._anchors else ():
                yield from (each for each in self._anchors[word] if _set(each) in text)

    def _is_far_from(self, data: bytes) -> bool:
        low = data.lower() if self._marks else b""
        return bool(self._marks) and not any(mark in low for mark in self._marks)


def _set(row: Iterable[bytes]) -> bytes:
    """Return words with one space around each."""
    return b" %s " % b" ".join(row)


def _rarity(word: bytes) -> tuple[bool, int]:
    """Return how seldom a word may be: with a digit before without, long before short."""
    return any(48 <= byte <= 57 for byte in word), len(word)  # noqa: PLR2004 - 0 to 9


class Search:
    """Looks for texts byte for byte, and for phrases word for word."""

    def __init__(self, texts: Iterable[bytes], phrases: Iterable[Phrase]) -> None:
        self._texts = TextFinder(texts)
        self._phrases = PhraseFinder(phrases)
        self.reach = self._phrases.reach

    def __bool__(self) -> bool:
        return bool(self._texts) or bool(self._phrases)

    def found(self, data: bytes) -> tuple[set[bytes], set[Phrase]]:
        """Return the texts and the phrases that stand in `data`."""
        return self._texts.found(data), self._phrases.found(data)

    def is_in(self, data: bytes) -> bool:
        """Whether any of them stands in `data`."""
        return self._texts.is_in(data) or self._phrases.is_in(data)

    def is_in_words(self, data: bytes) -> bool:
        """Whether any of the phrases stands in `data`, such as the name of a file."""
        return self._phrases.is_in(data)
