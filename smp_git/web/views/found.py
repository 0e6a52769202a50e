"""Results of a search: each with its place, its score, and why it is there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from smp_git.ask.answer import Answer, ArchivedHit, Hit
from smp_git.ask.request import QueryParts
from smp_git.store import Store
from smp_git.web.look import Look
from smp_git.web.views.timeline import Narrowing

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
    excerpt: tuple[Excerpt, ...]
    reasons: tuple[str, ...]
    parts: tuple[ScorePart, ...]
    arithmetic: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Answers to a question; `is_least` says that there may be more than `total`."""

    text: str
    wanted: Narrowing
    results: tuple[FoundHit, ...] = ()
    total: int = 0
    is_least: bool = False
    archived: tuple[ArchivedHit, ...] = ()
    problems: tuple[str, ...] = ()


def search(look: Look, text: str, wanted: Narrowing, *, is_typing: bool = False) -> Results:
    """Return what answers a text in one session; while somebody types, the last word may go on."""
    if not text.strip():
        return Results(text=text, wanted=wanted)
    asked = _begun(text) if is_typing else text
    parts: QueryParts = {**wanted.parts, "limit": _SHOWN, "explain": True}
    answer = look.session.query(asked, at=look.at, now=look.now, **parts)
    return _results(text, wanted, answer)


def search_all(store: Store, text: str, *, is_typing: bool = False) -> Results:
    """Return what answers a text in any session of the store."""
    if not text.strip():
        return Results(text=text, wanted=Narrowing())
    asked = _begun(text) if is_typing else text
    return _results(text, Narrowing(), store.query(asked, limit=_SHOWN, explain=True))


def _begun(text: str) -> str:
    """Return a text whose last word also means those that begin so."""
    found = _BEGUN.search(text)
    return f"{text} {found[0]}*" if found and text.count('"') % 2 == 0 else text


def _results(text: str, wanted: Narrowing, answer: Answer) -> Results:
    return Results(
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
    plain = [line for line in hit.why if not _PART.fullmatch(line)]
    arithmetic = tuple(line for line in plain if line.startswith(("text.", "priority.")))
    return FoundHit(
        hit=hit,
        excerpt=tuple(_excerpt(hit.marked(_MARKS))),
        reasons=tuple(line for line in plain if line not in arithmetic),
        parts=parts,
        arithmetic=arithmetic,
    )


def _parts(why: Iterable[str]) -> Iterable[ScorePart]:
    for line in why:
        if found := _PART.fullmatch(line):
            yield ScorePart(found[1], float(found[2]), float(found[3]))


def _excerpt(marked: str) -> Iterable[Excerpt]:
    """Yield the runs of a snippet."""
    for number, piece in enumerate(re.split("[\ufdd0\ufdd1]", marked)):
        if piece:
            yield Excerpt(piece, number % 2 == 1)
