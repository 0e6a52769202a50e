"""The index of one page of documents, as bytes."""

from __future__ import annotations

import json
import struct
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import accumulate, chain, pairwise
from typing import Final, Literal, NamedTuple, NewType
from zlib import crc32

from smp_git.ask.text.documents import Document
from smp_git.ask.text.questions import Pattern
from smp_git.ask.text.stems import stem
from smp_git.ask.text.words import words

Term = NewType("Term", int)

# Neighbours lend their beginning only, so that a long answer does not drown a short turn.
LENT_WORDS: Final = 30
DIGEST_BYTES: Final = 16
_TURN: Final = "turn"
_GAP: Final = ""
# Parts the pieces of a key; JSON need not escape it, and so reads keys twice as fast.
_BREAK: Final = "\x7f"
_HEADER: Final = struct.Struct("=17I")
_CODES: Final[Mapping[int, Literal["B", "H", "I"]]] = {1: "B", 2: "H", 4: "I"}
# A page that changes by one document is not taken apart anew; some 10 MB of long ones.
_KEPT_TEXTS: Final = 2_048


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
    page = sorted(documents, key=_key)
    texts = [_field_words(document) for document in page]
    # Inflections of one word stand side by side; to a question they are one term.
    known = {_GAP}.union(*texts)
    inflected = sorted(zip(map(term, known), known, strict=True))
    vocabulary = [word for _, word in inflected]
    terms = list(dict.fromkeys(each for each, _ in inflected))
    place_of = {each: place for place, each in enumerate(terms)}
    term_numbers = {word: place_of[each] for each, word in inflected}
    sizes = Counter(map(term_numbers.__getitem__, vocabulary))
    number = {word: place for place, word in enumerate(vocabulary)}
    voices = [(document.speaker, document.role) for document in page]
    groups = [_group(document) for document in page]
    turns = [text if group is not None else () for text, group in zip(texts, groups, strict=True)]
    sections = (
        _names(page, voices, groups),
        array("q", [document.seconds for document in page]).tobytes(),
        array("I", [len(text) - text.count(_GAP) for text in texts]).tobytes(),
        _indexes(voices),
        _indexes(groups),
        array("Q", terms).tobytes(),
        *_postings(texts, term_numbers, len(terms)),
        *_postings([text[:LENT_WORDS] for text in turns], term_numbers, len(terms)),
        _running_sums(map(sizes.__getitem__, range(len(terms)))),
        "\n".join(vocabulary).encode("utf-8", "surrogatepass"),
        _running_sums(map(len, texts)),
        array(
            _code(len(vocabulary)), map(number.__getitem__, chain.from_iterable(texts))
        ).tobytes(),
        b"".join(map(digest, page)),
    )
    return b"".join((_HEADER.pack(*map(len, sections)), *sections))


def meaning_text(document: Document) -> str:
    """Return the text whose vector stands for a document."""
    parts = (document.speaker, document.title, document.text)
    return ": ".join(part for part in parts if part)


def digest(document: Document) -> bytes:
    """Return what tells apart the texts that have vectors."""
    text = meaning_text(document).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=DIGEST_BYTES).digest()


@lru_cache(maxsize=_KEPT_TEXTS)
def _field_words(document: Document) -> Sequence[str]:
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
    sitting = f"{document.kind}{_BREAK}{_group(document) or ''}{_BREAK}"
    return f"{sitting}{moment:016x}{len(document.id):08x}{document.id}"


def _group(document: Document) -> str | None:
    """Return the name of a turn's sitting, or None for what is no turn."""
    return document.sitting if document.kind == _TURN else None


def _postings(
    texts: Iterable[Sequence[str]], numbers: Mapping[str, int], terms: int
) -> tuple[bytes, ...]:
    """Return where each term's postings start, and their slots and counts.

    A posting is one number while it is collected: millions of tuples would keep the
    garbage collector busy for longer than the indexing takes.
    """
    found: list[list[int]] = [[] for _ in range(terms)]
    slots = most = 0
    for slot, text in enumerate(texts):
        counts = Counter(map(numbers.__getitem__, text))
        high = slot << 32
        for each, count in counts.items():
            found[each].append(high | count)
        slots, most = slot + 1, max(most, *counts.values(), 0)
    rows = list(chain.from_iterable(found))
    return (
        _running_sums(map(len, found)),
        array(_code(slots), [row >> 32 for row in rows]).tobytes(),
        array(_code(most + 1), [row & 0xFFFFFFFF for row in rows]).tobytes(),
    )


def _code(numbers: int) -> Literal["B", "H", "I"]:
    """Return the array code of the smallest numbers of which there are so many."""
    if numbers <= 1 << 8:
        return "B"
    return "H" if numbers <= 1 << 16 else "I"


def _in_place(section: memoryview, count: int) -> memoryview[int]:
    """Return the `count` numbers that fill a section, whatever their size."""
    size = len(section) // count if count else 1
    return section.cast(_CODES[size])


def _running_sums(numbers: Iterable[int]) -> bytes:
    return array("I", accumulate(numbers, initial=0)).tobytes()


class Postings(NamedTuple):
    """Documents by their slots, in order, each with a count."""

    slots: Sequence[int]
    counts: Sequence[int]


_NO_POSTINGS: Final = Postings((), ())


class Gathered(NamedTuple):
    """Places of documents in the corpus, and how often each says a word."""

    places: list[int]
    counts: list[int]


class _Table:
    """The postings of all terms, read in place."""

    def __init__(self, starts: memoryview, slots: memoryview, counts: memoryview) -> None:
        self.starts = starts.cast("I")
        postings = self.starts[-1]
        self.slots = _in_place(slots, postings)
        self.counts = _in_place(counts, postings)

    def gather(self, number: int, places: Sequence[int], into: Gathered) -> None:
        """Add the postings of the term with `number`, each slot by its place."""
        start, end = self.starts[number], self.starts[number + 1]
        if start < end:
            into.places.extend(map(places.__getitem__, self.slots[start:end]))
            into.counts.extend(self.counts[start:end])

    def row(self, number: int) -> Postings:
        """Return the postings of the term with `number`."""
        start, end = self.starts[number], self.starts[number + 1]
        return Postings(self.slots[start:end], self.counts[start:end])


class Segment:
    """The index of one page, read in place from its bytes; documents have slots from 0."""

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
        self._said = _Table(*parts[6:9])
        self._lent = _Table(*parts[9:12])
        self._word_starts = parts[12].cast("I")
        self._words = parts[13]
        self._text_starts = parts[14].cast("I")
        self._texts = _in_place(parts[15], self._text_starts[-1])
        self._digests = parts[16]

    @property
    def digests(self) -> list[bytes]:
        """The digest of each document's text: the same where the text is the same."""
        every = bytes(self._digests)
        return [every[at : at + DIGEST_BYTES] for at in range(0, len(every), DIGEST_BYTES)]

    def gather(
        self, term: Term, places: Sequence[int], said: Gathered, lent: Gathered | None
    ) -> None:
        """Add which documents say `term` how often, and if asked, which lend it how often."""
        number = self._number(term)
        if number is not None:
            self._said.gather(number, places, said)
            if lent is not None:
                self._lent.gather(number, places, lent)

    def frequency(self, term: Term) -> int:
        """Return how many documents hold `term`."""
        number = self._number(term)
        return 0 if number is None else self._said.starts[number + 1] - self._said.starts[number]

    def count(self, term: Term, slot: int) -> int:
        """Return how often the document in `slot` says words that have `term`."""
        number = self._number(term)
        slots, counts = _NO_POSTINGS if number is None else self._said.row(number)
        place = bisect_left(slots, slot)
        return counts[place] if place < len(slots) and slots[place] == slot else 0

    def occurrences(self, pattern: Pattern) -> dict[int, int]:
        """Return how often each document holds `pattern`, by slot."""
        numbers = [
            self._word_numbers(word, is_prefix=place in pattern.prefixes)
            for place, word in enumerate(pattern.words)
        ]
        if len(numbers) == 1:
            return self._word_counts(numbers[0])
        holders = [set().union(*map(self._holders, each)) for each in numbers]
        slots = set(holders[0]).intersection(*holders)
        found = {slot: self._phrase_count(slot, numbers) for slot in slots}
        return {slot: count for slot, count in found.items() if count}

    def _number(self, term: Term) -> int | None:
        """Return the number of a term, or None if no document holds it."""
        terms = self._terms
        number = bisect_left(terms, term)
        return number if number < len(terms) and terms[number] == term else None

    def _word_numbers(self, word: str, *, is_prefix: bool) -> frozenset[int]:
        """Return the numbers of the words that are `word`, or begin with it."""
        known = self._vocabulary
        if is_prefix:
            return frozenset(n for n, other in enumerate(known) if other.startswith(word))
        number = self._number(term(word))
        if number is None:
            return frozenset()
        inflections = range(self._word_starts[number], self._word_starts[number + 1])
        return frozenset(n for n in inflections if known[n] == word)

    def _holders(self, word: int) -> Sequence[int]:
        """Return the slots of the documents that hold a word, or an inflection of it."""
        return self._said.row(self._term_number(word)).slots

    def _term_number(self, word: int) -> int:
        return bisect_right(self._word_starts, word) - 1

    def _word_counts(self, numbers: Iterable[int]) -> dict[int, int]:
        found: dict[int, int] = {}
        for number in numbers:
            for slot in self._holders(number):
                count = self._phrase_count(slot, [frozenset({number})])
                if count:
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
