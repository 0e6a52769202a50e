"""The formula of the search, document by document and without an index."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

from smp_git.ask.text import Document, stem, words
from smp_git.ask.text.questions import Pattern, date_words, named_days, parse
from smp_git.ask.text.words import STOP_WORDS


class Naive:
    """What one document says, and which it stands next to."""

    def __init__(self, document: Document) -> None:
        self.document = document
        fields = [document.title, document.text, *document.tags]
        self.fields = [words(field) for field in fields]
        self.words = [word for field in self.fields for word in field]
        self.stems = [stem(word) for word in self.words]
        # The first thirty, a gap between fields not being a word.
        self.early = self.stems[:30]
        self.content = [stem(word) for word in self.words if word not in STOP_WORDS]
        self.near: list[tuple[Naive, int]] = []

    def own(self, wanted: str | Pattern) -> int:
        if isinstance(wanted, str):
            return self.stems.count(wanted)
        size = len(wanted.words)
        parts = [
            re.compile(re.escape(w).replace(r"\*", ".*").replace(r"\?", ".")) for w in wanted.words
        ]
        return sum(
            all(p.fullmatch(w) for p, w in zip(parts, field[at : at + size], strict=True))
            for field in self.fields
            for at in range(len(field) - size + 1)
        )

    def count(self, wanted: str | Pattern) -> int:
        """Return how often something is said, in tenths, with what neighbours lend."""
        lent = 0
        if isinstance(wanted, str):
            lent = sum(share * other.early.count(wanted) for other, share in self.near)
        return 10 * self.own(wanted) + lent

    def length(self) -> int:
        return 10 * len(self.stems) + sum(share * len(other.early) for other, share in self.near)


def corpus(documents: Sequence[Document]) -> list[Naive]:
    known = [Naive(document) for document in documents]
    turns = [each for each in known if each.document.kind == "turn"]
    turns.sort(
        key=lambda e: (e.document.sitting, e.document.seconds, len(e.document.id), e.document.id)
    )
    for step, share, by_question in ((1, 4, 6), (2, 2, 3)):
        for at, later in enumerate(turns[step:]):
            run = turns[at : at + step + 1]
            if all(_is_one_sitting(a.document, b.document) for a, b in pairwise(run)):
                later.near.append(
                    (turns[at], by_question if "?" in turns[at].document.text else share)
                )
                turns[at].near.append((later, share))
    return known


def _is_one_sitting(first: Document, second: Document) -> bool:
    is_paused = not first.sitting and second.seconds - first.seconds > 6 * 3600
    return first.sitting == second.sitting and not is_paused


def scores(documents: Sequence[Document], question: str) -> dict[str, float]:  # noqa: C901, PLR0915 - all of it in one place
    """Return the score of each document that has one."""
    known, asked = corpus(documents), parse(question)
    names = {n for d in documents for n in (d.speaker, d.role) if n and _is_named(n, asked)}
    names |= {"user"} if asked.is_first_person else set()
    said = {word for name in names for word in words(name)}
    days = _named(documents, asked.text)
    said |= date_words(asked.text) if days else set()
    weights: dict[str | Pattern, float] = {}
    for word in asked.words:
        weights.setdefault(stem(word), 0.3 if word in said else 1.0)
    strong = {term for term, weight in weights.items() if weight == 1}
    is_known = bool(weights) and not strong and not asked.patterns
    weights |= dict.fromkeys(asked.patterns, 1.0)
    held = {term: sum(each.own(term) > 0 for each in known) for term in weights}
    rare = {t: math.log(1 + (len(known) - n + 0.5) / (n + 0.5)) for t, n in held.items()}
    mean = sum(each.length() for each in known) / max(1, len(known)) or 1
    found: dict[str, float] = {}
    for each in known:
        norm = 15 * (0.4 + 0.6 * max(600, each.length()) / mean)
        counts = {term: each.count(term) for term in weights}
        found[each.document.id] = sum(
            weights[t] * rare[t] * count / (count + norm) for t, count in counts.items()
        )
    whole = dict(found)
    for each in known:
        if not any(each.own(term) for term in weights):
            near = [whole[o.document.id] for o, _ in each.near if any(o.own(t) for t in weights)]
            found[each.document.id] = min(found[each.document.id], 0.9 * max(near, default=0.0))
    asked_pairs = {
        (a, b) for a, b in pairwise(map(stem, asked.words)) if a != b and {a, b} <= strong
    }
    order = sorted(known, key=lambda e: (-found[e.document.id], e.document.id))
    for each in order[:64]:
        if found[each.document.id]:
            held_pairs = asked_pairs & set(pairwise(each.content))
            found[each.document.id] += 0.5 * sum(min(rare[a], rare[b]) for a, b in held_pairs)
    best = max(found.values(), default=0.0) or 1.0
    spoken = {d.id for d in documents if names & {d.speaker, d.role}}
    for d in documents:
        if datetime.fromtimestamp(d.seconds, UTC).toordinal() in days:
            found[d.id] = found[d.id] + 1.5 * best if is_known else found[d.id] * 1.5 + 0.2 * best
    for name in spoken:
        found[name] = found[name] + 3 * best if is_known else found[name] * 3
    best = max(found.values(), default=0.0)
    return {name: score / best for name, score in found.items() if score}


def _is_named(name: str, asked: object) -> bool:
    said, capitals = asked.said, asked.capitals  # type: ignore[attr-defined]
    return set(words(name)) <= said - STOP_WORDS or bool(capitals & set(words(name)))


def _named(documents: Sequence[Document], text: str) -> set[int]:
    days = [datetime.fromtimestamp(d.seconds, UTC).date() for d in documents]
    years = range(min(days).year, max(days).year + 1) if days else range(0)
    return {
        day.toordinal()
        for first, last in named_days(text, years)
        for day in days
        if first <= day <= last
    }
