"""Results of a search: each with its place, its score, and why it is there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from smp_git.ask.answer import Answer, ArchivedHit, Hit
from smp_git.ask.request import QueryParts
from smp_git.store import Store
from smp_git.web.look import Look
from smp_git.web.views.timeline import Narrowing
from smp_git.web.wording import plain

_SHOWN: Final = 20
# What no text holds marks where a match begins and ends.
_MARKS: Final = ("\ufdd0", "\ufdd1")
_PART: Final = re.compile(r"(\w+) (\d\.\d+) x (\d\.\d+)")
# A word of this length is perhaps the beginning of a longer one.
_BEGUN: Final = re.compile(r'(?<![\w"*?])\w{3,}\Z')


class ScorePart(NamedTuple):
    """A part of a score, and with which weight it counts."""

    name: str
    score: float
    weight: float

    @property
    def share(self) -> float:
        """What it adds to the score."""
        return self.score * self.weight


class Excerpt(NamedTuple):
    """A run of a snippet, and whether it is what was looked for."""

    text: str
    is_match: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundHit:
    """A hit, taken apart."""

    hit: Hit
    title: tuple[Excerpt, ...]
    excerpt: tuple[Excerpt, ...]
    reasons: tuple[str, ...]
    parts: tuple[ScorePart, ...]
    arithmetic: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundHits:
    """Answers to a question; `is_least` says that there may be more than `total`."""

    text: str
    wanted: Narrowing
    results: tuple[FoundHit, ...] = ()
    total: int = 0
    is_least: bool = False
    archived: tuple[ArchivedHit, ...] = ()
    problems: tuple[str, ...] = ()


def search(look: Look, text: str, wanted: Narrowing, *, is_typing: bool = False) -> FoundHits:
    """Return what answers a text in one session; while somebody types, the last word may go on."""
    if not text.strip():
        return FoundHits(text=text, wanted=wanted)
    parts: QueryParts = {**wanted.parts, "limit": _SHOWN, "explain": True}

    def ask(asked: str) -> Answer:
        return look.session.query(asked, at=look.at, now=look.now, **parts)

    return _results(text, wanted, _answered(ask, text, is_typing=is_typing))


def search_all(store: Store, text: str, *, is_typing: bool = False) -> FoundHits:
    """Return what answers a text in any session of the store."""
    if not text.strip():
        return FoundHits(text=text, wanted=Narrowing())

    def ask(asked: str) -> Answer:
        return store.query(asked, limit=_SHOWN, explain=True)

    return _results(text, Narrowing(), _answered(ask, text, is_typing=is_typing))


def _answered(ask: Callable[[str], Answer], text: str, *, is_typing: bool) -> Answer:
    """Return an answer; while somebody types, to a phrase or a word that is not ended yet.

    Where a begun word finds enough, it is one already.
    """
    if is_typing and text.count('"') % 2:
        return ask(f'{text.rstrip()}"' if not text.rstrip().endswith('"') else text.rstrip()[:-1])
    answer, begun = ask(text), _BEGUN.search(text)
    if not is_typing or begun is None or answer.total >= _SHOWN:
        return answer
    return ask(f"{text} {begun[0]}*")


def _results(text: str, wanted: Narrowing, answer: Answer) -> FoundHits:
    return FoundHits(
        text=text,
        wanted=wanted,
        results=tuple(map(_taken_apart, answer)),
        total=answer.total,
        is_least=answer.is_least,
        archived=answer.archived,
        problems=answer.problems,
    )


def _taken_apart(hit: Hit) -> FoundHit:
    parts = tuple(_parts(hit.why))
    others = [line for line in hit.why if not _PART.fullmatch(line)]
    arithmetic = tuple(line for line in others if line.startswith(("text.", "priority.")))
    runs = list(_excerpt(hit.marked(_MARKS)))
    starts = "".join(each.text for each in runs).startswith(hit.title)
    title, excerpt = _split(runs, len(hit.title)) if starts else ([], runs)
    return FoundHit(
        hit=hit,
        title=tuple(title or [Excerpt(plain(hit.title, hit.id), is_match=False)]),
        excerpt=tuple(excerpt),
        reasons=tuple(line for line in others if line not in arithmetic),
        parts=parts,
        arithmetic=arithmetic,
    )


def _split(runs: Iterable[Excerpt], length: int) -> tuple[list[Excerpt], list[Excerpt]]:
    """Return the runs of the first so many characters, and the others: a title, and what follows."""
    first, rest = list[Excerpt](), list[Excerpt]()
    for text, is_match in runs:
        first += [Excerpt(text[:length], is_match)] if length > 0 else []
        rest += [Excerpt(text[max(length, 0) :], is_match)] if len(text) > length else []
        length -= len(text)
    return first, rest if any(each.text.strip(" .…") for each in rest) else []


def _parts(why: Iterable[str]) -> Iterable[ScorePart]:
    for line in why:
        if found := _PART.fullmatch(line):
            yield ScorePart(found[1], float(found[2]), float(found[3]))


def _excerpt(marked: str) -> Iterable[Excerpt]:
    """Yield the runs of a snippet."""
    for number, piece in enumerate(re.split("[\ufdd0\ufdd1]", marked)):
        if piece:
            yield Excerpt(piece, number % 2 == 1)
