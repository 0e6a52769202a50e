"""Documents as the search sees them, indexed together in named parts."""

from __future__ import annotations

import json
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import accumulate, chain, pairwise
from typing import Any, Final, NamedTuple

from smp_git.ask.text.words import spaced, stem, words

Read = Callable[[int, Sequence[str]], list[bytes]]

# A word that a text says n times is worth n / (n + 0.5 + words of the text / 100); below 30
# words a text is not more to the point for being shorter.
_SATURATION: Final = 0.5
_LENGTH: Final = 100
SHORT: Final = 30
# Part of a text's words across which no phrase goes.
_GAP: Final = "|"


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
    blob: str = ""

    @property
    def seconds(self) -> int:
        """The moment `at` in whole seconds since 1970, raising ValueError if it is none."""
        moment = datetime.fromisoformat(self.at)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())

    @property
    def words(self) -> list[str]:
        """The words that are searched, with a gap between title, text and each tag."""
        found = words(self.title)
        for field in (self.text, *self.tags):
            found += [_GAP, *words(field)]
        return found if self.title else found[1:]


def encode(pages: Mapping[str, Iterable[Document]]) -> dict[str, bytes]:
    """Return the parts of some pages by name; the same documents give the same bytes."""
    listed = {name: list(page) for name, page in pages.items()}
    documents = list(chain.from_iterable(listed.values()))
    texts = [each.words for each in documents]
    lengths = [len(text) - text.count(_GAP) for text in texts]
    slots = defaultdict[str, "array[int]"](lambda: array("I"))
    values = defaultdict[str, "array[float]"](lambda: array("f"))
    for slot, text in enumerate(texts):
        # As `worth` says, at two thirds of the time.
        norm = _norm(lengths[slot])
        for each, count in Counter(map(stem, text)).items():
            slots[each].append(slot)
            values[each].append(count / (count + norm))
    slots.pop(_GAP, None)
    # Kinds, sittings, speakers and roles are numbers of names, which many documents share.
    shared = [[each.kind, each.sitting, each.speaker, each.role] for each in documents]
    names = {name: number for number, name in enumerate(sorted({""}.union(*shared)))}
    numbers: tuple[list[int], ...] = (
        *([names[row[column]] for row in shared] for column in range(4)),
        [each.seconds for each in documents],
        ["?" in each.text or "\uff1f" in each.text for each in documents],
        lengths,
    )
    return {
        "pages": json.dumps({name: len(page) for name, page in listed.items()}).encode(),
        "ids": _bytes("\n".join(each.id for each in documents)),
        "blobs": _bytes("\n".join(each.blob for each in documents)),
        "names": json.dumps(list(names)).encode(),
        "numbers": array("q", chain.from_iterable(numbers)).tobytes(),
        "stems": _bytes("\n".join(["", *sorted(slots), ""])),
        **{
            f"texts {start}": _bytes("\n".join(map(spaced, texts[start:end])))
            for start, end in pairwise(accumulate(map(len, listed.values()), initial=0))
        },
        **{
            f"stem {each}": slots[each].tobytes() + values[each].tobytes() for each in sorted(slots)
        },
    }


def worth(count: int, length: int) -> float:
    """Return what a word is worth, from 0 to 1, that a text of some length says so often."""
    return count / (count + _norm(length))


def _norm(length: int) -> float:
    return _SATURATION + max(length, SHORT) / _LENGTH


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


class Posting(NamedTuple):
    """A stem, the slots of the documents that say it, and what it is worth in each."""

    stem: str
    slots: Sequence[int]
    values: Sequence[float]


class Batch:
    """The pages that were indexed together; `read` returns parts of it by their names."""

    def __init__(self, number: int, read: Read) -> None:
        self.number = number
        self._read = read
        self._pages: dict[str, int] = json.loads(self._part("pages"))

    def _part(self, name: str) -> bytes:
        return self._read(self.number, [name])[0]

    def pages(self) -> Iterator[tuple[str, range]]:
        """Yield the name of each page and the slots of its documents."""
        for (name, count), end in zip(
            self._pages.items(), accumulate(self._pages.values()), strict=True
        ):
            yield name, range(end - count, end)

    @cached_property
    def columns(self) -> list[list[Any]]:
        """What is known of the documents, slot by slot: their ids first, then as `encode` lists it."""
        ids, names, numbers = self._read(self.number, ["ids", "names", "numbers"])
        listed, name_of = _text(ids).split("\n") if ids else [], json.loads(names).__getitem__
        every, count = array("q", numbers).tolist(), len(listed)
        columns = [every[at * count :][:count] for at in range(7)]
        return [listed, *(list(map(name_of, each)) for each in columns[:4]), *columns[4:]]

    @property
    def blobs(self) -> list[str]:
        """The blob of each document, slot by slot."""
        return _text(self._part("blobs")).split("\n")

    @cached_property
    def _stems(self) -> bytes:
        return self._part("stems")

    def postings(self, wanted: Iterable[str]) -> Iterator[Posting]:
        """Yield where those of some stems stand that are said here."""
        # What is listed must be there: a part that is lost is not a word that nobody says.
        said = [each for each in wanted if _bytes(f"\n{each}\n") in self._stems]
        bodies = self._read(self.number, [f"stem {each}" for each in said]) if said else []
        for each, body in zip(said, bodies, strict=True):
            half = len(body) // 2
            yield Posting(each, array("I", body[:half]), array("f", body[half:]))

    def texts(self, page: range) -> list[str]:
        """Return the words of each document of a page, folded, in one text."""
        return _text(self._part(f"texts {page.start}")).split("\n")
