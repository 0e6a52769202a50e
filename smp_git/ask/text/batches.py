"""Documents as the search sees them, indexed together in numbered parts."""

from __future__ import annotations

import json
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate, chain
from typing import Final

from smp_git.ask.text.words import STOP_WORDS, stem, words

Read = Callable[[int, Sequence[int]], list[bytes]]

TURN: Final = "turn"
# Neighbours lend their beginning only, so that a long answer does not drown a short turn.
LENT_WORDS: Final = 30
# Part of a page's words across which no phrase goes.
_GAP: Final = "|"
_NAMES, _VOICES, _SECONDS, _LENGTHS, _ASKS, _STEMS, _WORDS, _TEXTS = range(8)
# A posting is one number: the slot, how often the document says the word, how often early.
SLOT_SHIFT, COUNT_SHIFT = 13, 5
COUNT_MASK, EARLY_MASK = 255, 31
_NUMBER_BYTES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One memory as the search sees it.

    Turns with the same `sitting` lend each other words; without one, a pause of six
    hours ends a sitting.
    """

    id: str
    kind: str
    at: str
    text: str
    speaker: str = ""
    role: str = ""
    title: str = ""
    tags: tuple[str, ...] = ()
    sitting: str = ""

    @property
    def seconds(self) -> int:
        """The moment `at` in whole seconds since 1970, raising ValueError if it is none."""
        moment = datetime.fromisoformat(self.at)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def encode(pages: Mapping[str, Iterable[Document]]) -> list[bytes]:
    """Return the parts of some pages; the same documents give the same bytes."""
    listed = {name: list(page) for name, page in pages.items()}
    documents = list(chain.from_iterable(listed.values()))
    texts = [_searched_words(each) for each in documents]
    vocabulary = sorted(set().union(*texts) - {_GAP})
    stem_of = {word: stem(word) for word in vocabulary}
    postings, lengths = _postings(documents, texts, stem_of)
    stems = sorted(postings)
    number = {each: place for place, each in enumerate(stems)}
    number_of = {word: number[stem_of[word]] for word in vocabulary if word not in STOP_WORDS}
    voices = [(each.kind, each.sitting, each.speaker, each.role) for each in documents]
    place_of = {voice: place for place, voice in enumerate(dict.fromkeys(voices))}
    names = {
        "pages": [(name, len(page)) for name, page in listed.items()],
        "voices": list(place_of),
        "ids": [each.id for each in documents],
        "keys": [_key(each) for each in documents],
    }
    return [
        json.dumps(names, separators=(",", ":")).encode(),
        array("I", map(place_of.__getitem__, voices)).tobytes(),
        array("q", [each.seconds for each in documents]).tobytes(),
        array("I", lengths).tobytes(),
        bytes("?" in each.text or "\uff1f" in each.text for each in documents),
        _bytes("\n".join(["", *stems, ""])),
        _bytes("\n".join(vocabulary)),
        *(_bytes(" ".join(text)) for text in texts),
        *(
            array("I", [number_of[word] for word in text if word in number_of]).tobytes()
            for text in texts
        ),
        *(array("I", postings[each]).tobytes() for each in stems),
    ]


def _key(document: Document) -> str:
    """Return what sorts by kind, sitting, time and id, turn-9999 before turn-10000."""
    moment = document.seconds + (1 << 60)
    name = f"{moment:016x}{len(document.id):08x}{document.id}"
    return f"{document.kind}\x7f{document.sitting}\x7f{name}"


def _searched_words(document: Document) -> list[str]:
    found = words(document.text)
    if document.title:
        found = [*words(document.title), _GAP, *found]
    for tag in document.tags:
        found += [_GAP, *words(tag)]
    return found


def _postings(
    documents: Iterable[Document], texts: Iterable[Sequence[str]], stem_of: Mapping[str, str]
) -> tuple[dict[str, list[int]], list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    lengths = []
    for slot, (document, text) in enumerate(zip(documents, texts, strict=True)):
        stems = [stem_of[word] for word in text if word != _GAP]
        early = Counter(stems[:LENT_WORDS] if document.kind == TURN else ())
        for each, count in Counter(stems).items():
            said = min(count, COUNT_MASK) << COUNT_SHIFT
            found[each].append(slot << SLOT_SHIFT | said | early[each])
        lengths.append(len(stems))
    return found, lengths


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class Batch:
    """The pages that were indexed together; `read` returns parts by their numbers."""

    def __init__(self, number: int, read: Read) -> None:
        self.number = number
        self._read = read
        heads = (_NAMES, _VOICES, _SECONDS, _LENGTHS, _ASKS, _STEMS)
        names, voices, seconds, lengths, self.asks, stems = read(number, heads)
        named = json.loads(names)
        self._pages: list[tuple[str, int]] = named["pages"]
        self.ids: list[str] = named["ids"]
        self.keys: list[str] = named["keys"]
        which = array("I", voices)
        sittings = [(kind, sitting) for kind, sitting, _, _ in named["voices"]]
        speakers = [(speaker, role) for _, _, speaker, role in named["voices"]]
        self.sittings: list[tuple[str, str]] = [sittings[at] for at in which]
        self.voices: list[tuple[str, str]] = [speakers[at] for at in which]
        self.seconds, self.lengths = array("q", seconds), array("I", lengths)
        self._stems = stems.decode("utf-8", "surrogatepass")
        self._numbers: dict[str, int | None] = {}

    def pages(self) -> Iterator[tuple[str, range]]:
        """Yield the name of each page and the slots of its documents."""
        ends = accumulate(count for _, count in self._pages)
        for (name, count), end in zip(self._pages, ends, strict=True):
            yield name, range(end - count, end)

    def _stem_number(self, wanted: str) -> int | None:
        if wanted not in self._numbers:
            at = self._stems.find(f"\n{wanted}\n")
            self._numbers[wanted] = None if at < 0 else self._stems.count("\n", 0, at)
        return self._numbers[wanted]

    def postings(self, wanted: str) -> Sequence[int]:
        """Return where a stem is said."""
        number = self._stem_number(wanted)
        if number is None:
            return ()
        (body,) = self._read(self.number, [_TEXTS + 2 * len(self.ids) + number])
        return array("I", body)

    def pairs(
        self, pairs: Iterable[tuple[str, str]], slots: Sequence[int]
    ) -> Iterator[set[tuple[str, str]]]:
        """Yield those of some pairs of stems that stand side by side in each document.

        Stop words between them do not count.
        """
        wanted = {}
        for pair in pairs:
            first, second = map(self._stem_number, pair)
            if first is not None and second is not None:
                wanted[pair] = array("I", (first, second)).tobytes()
        parts = [_TEXTS + len(self.ids) + slot for slot in slots]
        for body in self._read(self.number, parts):
            yield {pair for pair, run in wanted.items() if _is_aligned(body, run)}

    def words(self) -> list[str]:
        """Return all words as they are written, folded."""
        return self._read(self.number, [_WORDS])[0].decode("utf-8", "surrogatepass").split("\n")

    def texts(self, slots: Sequence[int]) -> Iterator[list[str]]:
        """Yield the words of some documents in order."""
        for text in self._read(self.number, [_TEXTS + slot for slot in slots]):
            yield text.decode("utf-8", "surrogatepass").split(" ")


def _is_aligned(body: bytes, run: bytes) -> bool:
    """Return whether some numbers follow each other among others."""
    at = body.find(run)
    while at > 0 and at % _NUMBER_BYTES:
        at = body.find(run, at + 1)
    return at >= 0
