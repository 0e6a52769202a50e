"""The index of one page of documents, as bytes."""

from __future__ import annotations

import json
import struct
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, chain, pairwise
from typing import Final, Literal, NamedTuple, NewType
from zlib import crc32

from smp_git.search.documents import Document
from smp_git.search.questions import Pattern
from smp_git.search.stems import stem
from smp_git.search.words import words

Term = NewType("Term", int)

# Neighbours lend their beginning only, so that a long answer does not drown a short turn.
LENT_WORDS: Final = 30
_TURN: Final = "turn"
_GAP: Final = ""
_HEADER: Final = struct.Struct("=13I")


@lru_cache(maxsize=65_536)
def term(word: str) -> Term:
    """Return the number under which a word and its inflections are indexed.

    Two checksums, forwards and backwards, make 64 bits: no two stems of a vocabulary
    share them in practice.
    """
    letters = stem(word).encode("utf-8", "surrogatepass")
    return Term(crc32(letters) << 32 | crc32(letters[::-1]))


def encode(documents: Iterable[Document]) -> bytes:
    """Return the index of `documents`; the same documents give the same bytes."""
    page = list(documents)
    texts = [_field_words(document) for document in page]
    # Inflections of one word stand side by side, and so do their postings.
    vocabulary = sorted({_GAP}.union(*texts), key=lambda word: (term(word), word))
    number = {word: place for place, word in enumerate(vocabulary)}
    numbered = [list(map(number.__getitem__, text)) for text in texts]
    voices = [(document.speaker, document.role) for document in page]
    groups = [_group(document) for document in page]
    sections = (
        _names(page, voices, groups),
        array("q", [document.seconds for document in page]).tobytes(),
        array("I", [len(text) - text.count(_GAP) for text in texts]).tobytes(),
        _indexes(voices),
        _indexes(groups),
        array("Q", map(term, vocabulary)).tobytes(),
        *_postings(numbered, len(vocabulary)),
        "\n".join(vocabulary).encode("utf-8", "surrogatepass"),
        _running_sums(map(len, numbered)),
        array(_code(len(vocabulary)), chain.from_iterable(numbered)).tobytes(),
    )
    return b"".join((_HEADER.pack(*map(len, sections)), *sections))


def _field_words(document: Document) -> list[str]:
    """Return the words of a document, with a gap where no phrase may cross."""
    found = words(document.text)
    if document.title:
        found = [*words(document.title), _GAP, *found]
    for tag in document.tags:
        found.append(_GAP)
        found += words(tag)
    return found


def _names(
    documents: Sequence[Document],
    voices: Sequence[tuple[str, str]],
    groups: Sequence[str | None],
) -> bytes:
    names = {
        "ids": [document.id for document in documents],
        "keys": [_key(document) for document in documents],
        "voices": list(dict.fromkeys(voices)),
        "groups": list(dict.fromkeys(groups)),
    }
    return json.dumps(names, separators=(",", ":")).encode()


def _indexes(values: Sequence[Hashable]) -> bytes:
    """Return for each value its place among the different ones."""
    places = {value: place for place, value in enumerate(dict.fromkeys(values))}
    return array("H", [places[value] for value in values]).tobytes()


def _key(document: Document) -> str:
    """Return what sorts by kind, sitting, time and id, turn-9999 before turn-10000."""
    moment = document.seconds + (1 << 60)
    sitting = f"{document.kind}\0{_group(document) or ''}"
    return f"{sitting}\0{moment:016x}{len(document.id):08x}{document.id}"


def _group(document: Document) -> str | None:
    """Return the name of a turn's sitting, or None for what is no turn."""
    return document.sitting if document.kind == _TURN else None


def _postings(texts: Sequence[list[int]], words: int) -> tuple[bytes, ...]:
    """Return where each word's postings start, and their slots, counts, lent counts.

    A posting is one number while it is collected: millions of tuples would keep the
    garbage collector busy for longer than the indexing takes.
    """
    found: list[list[int]] = [[] for _ in range(words)]
    for slot, text in enumerate(texts):
        lent = dict(Counter(text[:LENT_WORDS])).get
        for word, count in Counter(text).items():
            found[word].append(slot << 40 | count << 8 | lent(word, 0))
    rows = list(chain.from_iterable(found))
    return (
        _running_sums(map(len, found)),
        array("H", [row >> 40 for row in rows]).tobytes(),
        array("I", [row >> 8 & 0xFFFFFFFF for row in rows]).tobytes(),
        bytes([row & 0xFF for row in rows]),
    )


def _code(vocabulary: int) -> Literal["H", "I"]:
    """Return the array code of numbers that tell so many words apart."""
    return "H" if vocabulary <= 1 << 16 else "I"


def _running_sums(numbers: Iterable[int]) -> bytes:
    sums = array("I", [0])
    for each in numbers:
        sums.append(sums[-1] + each)
    return sums.tobytes()


class Postings(NamedTuple):
    """The documents that hold a word, in order: slots, counts, counts that are lent."""

    slots: Sequence[int]
    counts: Sequence[int]
    lent: Sequence[int]


_NO_POSTINGS: Final = Postings((), (), ())


class Segment:
    """The index of one page, read in place from its bytes."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        ends = accumulate(_HEADER.unpack_from(body), initial=_HEADER.size)
        view = memoryview(body)
        parts = [view[start:end] for start, end in pairwise(ends)]
        names = json.loads(bytes(parts[0]))
        self.ids: list[str] = names["ids"]
        self.keys: list[str] = names["keys"]
        self.seconds: Sequence[int] = parts[1].cast("q")
        self.lengths: Sequence[int] = parts[2].cast("I")
        voices = [(speaker, role) for speaker, role in names["voices"]]
        self.voices: list[tuple[str, str]] = [voices[at] for at in parts[3].cast("H")]
        groups: list[str | None] = names["groups"]
        self.groups: list[str | None] = [groups[at] for at in parts[4].cast("H")]
        self._terms = parts[5].cast("Q")
        self._starts = parts[6].cast("I")
        self._slots = parts[7].cast("H")
        self._counts = parts[8].cast("I")
        self._lent = parts[9]
        self._words = parts[10]
        self._text_starts = parts[11].cast("I")
        self._texts = parts[12].cast(_code(len(self._terms)))

    def postings(self, term: Term) -> Postings:
        """Return the postings of the words that have `term`.

        A document that holds several inflections comes once for each.
        """
        terms = self._terms
        first = bisect_left(terms, term)
        if first == len(terms) or terms[first] != term:
            return _NO_POSTINGS
        start = self._starts[first]
        end = self._starts[bisect_right(terms, term, first)]
        return Postings(self._slots[start:end], self._counts[start:end], self._lent[start:end])

    def frequency(self, term: Term) -> int:
        """Return how many postings `term` has."""
        start, end = self._range(self._term_words(term))
        return end - start

    def count(self, term: Term, slot: int) -> int:
        """Return how often the document in `slot` says words that have `term`."""
        found = 0
        for number in self._term_words(term):
            start, end = self._range(range(number, number + 1))
            place = bisect_left(self._slots, slot, start, end)
            if place < end and self._slots[place] == slot:
                found += self._counts[place]
        return found

    def occurrences(self, pattern: Pattern) -> dict[int, int]:
        """Return how often each document holds `pattern`, by slot."""
        numbers = [
            self._numbers(word, is_prefix=place in pattern.prefixes)
            for place, word in enumerate(pattern.words)
        ]
        counts = [self._word_counts(each) for each in numbers]
        if len(counts) == 1:
            return counts[0]
        slots = set(counts[0]).intersection(*counts)
        found = {slot: self._phrase_count(slot, numbers) for slot in slots}
        return {slot: count for slot, count in found.items() if count}

    def _term_words(self, term: Term) -> range:
        """Return the numbers of the words that have `term`."""
        first = bisect_left(self._terms, term)
        return range(first, bisect_right(self._terms, term, first))

    def _range(self, numbers: range) -> tuple[int, int]:
        """Return where the postings of neighbouring words start and end."""
        return self._starts[numbers.start], self._starts[numbers.stop]

    def _numbers(self, word: str, *, is_prefix: bool) -> frozenset[int]:
        """Return the numbers of the words that are `word`, or begin with it."""
        known = self._vocabulary
        if is_prefix:
            found = [n for n, other in enumerate(known) if other.startswith(word)]
        else:
            found = [n for n in self._term_words(term(word)) if known[n] == word]
        return frozenset(found)

    def _word_counts(self, numbers: Iterable[int]) -> dict[int, int]:
        found: dict[int, int] = {}
        for number in numbers:
            start, end = self._range(range(number, number + 1))
            for slot, count in zip(self._slots[start:end], self._counts[start:end], strict=True):
                found[slot] = found.get(slot, 0) + count
        return found

    def _phrase_count(self, slot: int, numbers: Sequence[frozenset[int]]) -> int:
        text = self._texts[self._text_starts[slot] : self._text_starts[slot + 1]]
        if all(len(each) == 1 for each in numbers):
            phrase = array(text.format, chain.from_iterable(numbers)).tobytes()
            return _aligned_count(text.tobytes(), phrase, text.itemsize)
        runs = zip(*(text[step:] for step in range(len(numbers))), strict=False)
        return sum(all(map(frozenset.__contains__, numbers, run)) for run in runs)

    @cached_property
    def _vocabulary(self) -> list[str]:
        return bytes(self._words).decode("utf-8", "surrogatepass").split("\n")


def _aligned_count(text: bytes, phrase: bytes, size: int) -> int:
    """Return how often `phrase` occurs in `text`, both numbers of `size` bytes."""
    count = 0
    place = text.find(phrase)
    while place >= 0:
        count += place % size == 0
        place = text.find(phrase, place + 1)
    return count
