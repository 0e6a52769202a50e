"""The formula of the search, document by document and without an index."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

from smp_git.ask.text.batches import Document
from smp_git.ask.text.questions import Days, Pattern, named_days, parse
from smp_git.ask.text.words import STOP_WORDS, stem, words


class Naive:
    """What one document says, and which it stands next to."""

    def __init__(self, document: Document) -> None:
        self.document = document
        fields = [document.title, document.text, *document.tags]
        self.fields = [words(field) for field in fields]
        self.words = [word for field in self.fields for word in field]
        self.stems = [stem(word) for word in self.words]
        self.near: list[tuple[Naive, float]] = []

    def own(self, wanted: str | Pattern) -> float:
        """Return what a word or a pattern is worth here, for being said."""
        count = self.count(wanted)
        return count / (count + 0.5 + max(30, len(self.stems)) / 100)

    def count(self, wanted: str | Pattern) -> int:
        if isinstance(wanted, str):
            return min(255, self.stems.count(wanted))
        size = len(wanted.words)
        parts = [
            re.compile(re.escape(w).replace(r"\*", ".*").replace(r"\?", ".")) for w in wanted.words
        ]
        return sum(
            all(p.fullmatch(w) for p, w in zip(parts, field[at : at + size], strict=True))
            for field in self.fields
            for at in range(len(field) - size + 1)
        )

    def value(self, wanted: str | Pattern) -> float:
        """Return what a word is worth here, said or lent."""
        own = self.own(wanted)
        if not isinstance(wanted, str):
            return own
        lent = sum(share * other.own(wanted) for other, share in self.near)
        return own + (1 - own) * min(1, lent)

    def share(self) -> float:
        """Return the share that is lent to a neighbour: of a long text, less."""
        return 0.3 * min(1, 30 / max(1, len(self.stems)))


def corpus(documents: Sequence[Document]) -> list[Naive]:
    known = [Naive(document) for document in documents]
    turns = [each for each in known if each.document.kind == "turn"]
    turns.sort(
        key=lambda e: (e.document.sitting, e.document.seconds, len(e.document.id), e.document.id)
    )
    for step in (1, 2):
        for at, later in enumerate(turns[step:]):
            run = turns[at : at + step + 1]
            if all(_is_one_sitting(a.document, b.document) for a, b in pairwise(run)):
                sooner = turns[at]
                twice = 2 if "?" in sooner.document.text else 1
                later.near.append((sooner, twice * sooner.share() / step))
                sooner.near.append((later, later.share() / step))
    return known


def _is_one_sitting(first: Document, second: Document) -> bool:
    is_paused = not first.sitting and second.seconds - first.seconds > 6 * 3600
    return first.sitting == second.sitting and not is_paused


def scores(documents: Sequence[Document], question: str) -> dict[str, float]:
    """Return the score of each document that has one."""
    known, asked = corpus(documents), parse(question)
    names = {n for d in documents for n in (d.speaker, d.role) if n and _is_named(n, asked)}
    names |= {"user"} if asked.is_first_person else set()
    said = {word for name in names for word in words(name)}
    days = _named(documents, asked.text)
    said |= {word for d in _dates(documents, asked.text) for word in words(d.said)}
    weights: dict[str | Pattern, float] = {}
    for word in asked.words:
        weights.setdefault(stem(word), 0.3 if word in said else 1.0)
    strong = {term for term, weight in weights.items() if weight == 1}
    is_known = bool(weights) and not strong and not asked.patterns
    weights |= dict.fromkeys(asked.patterns, 1.0)
    held = {term: sum(each.count(term) > 0 for each in known) for term in weights}
    rare = {t: math.log(1 + (len(known) - n + 0.5) / (n + 0.5)) for t, n in held.items()}
    found = {
        each.document.id: sum(weights[t] * rare[t] * each.value(t) for t in weights)
        for each in known
    }
    whole = dict(found)
    for each in known:
        if not any(each.own(term) for term in weights):
            near = [whole[o.document.id] for o, _ in each.near if any(o.own(t) for t in weights)]
            found[each.document.id] = min(found[each.document.id], max(near, default=0.0))
    more = (2 if is_known else 0.5) * (max(found.values(), default=0.0) or 1.0)
    for d in documents:
        if datetime.fromtimestamp(d.seconds, UTC).toordinal() in days:
            found[d.id] += more
    for d in documents:
        if names & {d.speaker, d.role} and (found[d.id] or is_known):
            found[d.id] += more
    best = max(found.values(), default=0.0)
    return {name: score / best for name, score in found.items() if score}


def _is_named(name: str, asked: object) -> bool:
    said, capitals = asked.said, asked.capitals  # type: ignore[attr-defined]
    return set(words(name)) <= said - STOP_WORDS or bool(capitals & set(words(name)))


def _named(documents: Sequence[Document], text: str) -> set[int]:
    days = [datetime.fromtimestamp(d.seconds, UTC).date() for d in documents]
    return {
        day.toordinal()
        for each in _dates(documents, text)
        for day in days
        if each.first <= day <= each.last
    }


def _dates(documents: Sequence[Document], text: str) -> list[Days]:
    years = [datetime.fromtimestamp(d.seconds, UTC).year for d in documents]
    return named_days(text, range(min(years) - 1, max(years) + 2) if years else range(0))
