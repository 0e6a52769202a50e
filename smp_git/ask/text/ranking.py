"""Ranking of documents by a question: words, phrases, meaning, days, speakers.

A word is worth what a document says and is lent of it, in proportion to how rare it is. To the
sum comes likeness of meaning, then half of the best score so far for each of the day and the
speaker that the question names.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from heapq import nlargest
from itertools import chain
from math import log
from types import MappingProxyType
from typing import Final, NamedTuple

from smp_git.ask.text.batches import worth
from smp_git.ask.text.index import Index, Values
from smp_git.ask.text.questions import Question, named_days, parse
from smp_git.ask.text.words import STOP_WORDS, stem, words

# What a day or a speaker that is named is worth beside the best score; and if the question
# names nothing else, so that whoever only mentions a name comes later.
_NAMED: Final = 0.5
_NAMED_ALONE: Final = 2.0
# A name is evidence for who speaks; as a word it is said in too many places.
_NAME_WEIGHT: Final = 0.3
# What the nearest meaning is worth beside the best score, and beside the same words.
_MEANING_WEIGHT: Final = 0.35
_SIMILAR_MEANING_WEIGHT: Final = 2.0
# The cosine from which meaning alone makes an answer, without a word in common; and the one
# up to which it is chance, which two texts about different things exceed by half as much.
_LIKE: Final = 0.4
_UNLIKE: Final = 0.15
# More than a question has; a pasted text is asked by its rarest words.
_MOST_TERMS: Final = 64
_MOST_SIMILAR_WORDS: Final = 256
_MOST_SIMILAR_TERMS: Final = 32
_USER: Final = "user"
# Less is what sums in another order differ by.
_ROUNDING: Final = 1e-12
_DAY_SECONDS: Final = 86_400


class TextHit(NamedTuple):
    """A document that answers, with a score from 0 to 1.

    `source` is the neighbour whose words it was found by, if it says none itself.
    """

    id: str
    score: float
    source: str = ""


class Reason(NamedTuple):
    """Why a document answers: its score as a sum, what it says of the question, whom it borrows from."""

    parts: Mapping[str, float]
    words: tuple[str, ...] = ()
    near: str = ""


class _Term(NamedTuple):
    """A word or a pattern in one index: how it is written and weighs, who says it, who borrows it."""

    shown: str
    weight: float
    own: Values
    lent: Values = MappingProxyType({})


class _Answer:
    """What one index answers: the scores of its documents, and what each step adds to them."""

    def __init__(self, index: Index, words: Sequence[_Term], patterns: Sequence[_Term]) -> None:
        self.index = index
        self._words, self._patterns = words, patterns
        self._terms = (*words, *patterns)
        self._added: dict[str, Mapping[int, float]] = {}
        self.scores = scores = [0.0] * len(index.ids)
        for _, weight, own, lent in self._terms:
            # Written out, as this takes most of the time of a question.
            for place, value in own.items():
                scores[place] += weight * value
            for place, value in lent.items():
                scores[place] += weight * value
        borrowers = {place for term in words for place in term.lent}
        self._borrowers = {at for at in borrowers if not any(at in t.own for t in self._terms)}
        for place in self._borrowers:
            # Who only borrows is not above the lender.
            self.scores[place] = min(self.scores[place], self.scores[self._lender(place)])

    def _lender(self, place: int, terms: Sequence[_Term] = ()) -> int:
        """Return the best of the neighbours that say some of the question."""
        several = terms or self._terms
        near = (at for at, _ in self.index.neighbours(place) if any(at in t.own for t in several))
        return max(near, key=self.scores.__getitem__)

    def add(self, step: str, added: Mapping[int, float]) -> None:
        """Add to the scores of some documents."""
        self._added[step] = added
        for place, more in added.items():
            self.scores[place] += more

    def source(self, place: int) -> str:
        """Return the neighbour that a document is found by, unless something else counts more."""
        if place not in self._borrowers:
            return ""
        lender = self._lender(place)
        return self.index.ids[lender] if self.scores[place] <= self.scores[lender] else ""

    def reason(self, place: int, best: float) -> Reason:
        """Return why a document answers."""
        parts = {
            part: sum(term.weight * term.own.get(place, 0.0) for term in terms)
            for part, terms in (("words", self._words), ("phrases", self._patterns))
        }
        more = {step: added.get(place, 0.0) for step, added in self._added.items()}
        parts["neighbours"] = self.scores[place] - sum((*parts.values(), *more.values()))
        borrowed = [t for t in self._words if place in t.lent and place not in t.own]
        return Reason(
            {part: value / best for part, value in (parts | more).items() if value > _ROUNDING},
            tuple(term.shown for term in self._terms if place in term.own),
            self.index.ids[self._lender(place, borrowed)] if borrowed else "",
        )


# The cosine of each document to a question, None where it has no vector.
Likeness = Sequence[float | None]


class TextSearch:
    """A question put to several indexes, as if they were one but for what neighbours lend."""

    def __init__(
        self,
        indexes: Sequence[Index],
        question: str,
        *,
        now: datetime | None = None,
        likeness: Sequence[Likeness | None] = (),
        weak: Collection[str] = (),
    ) -> None:
        asked = parse(question)
        voices = _named_voices(indexes, asked)
        dates = named_days(asked.text, {year for index in indexes for year in index.years}, now)
        known = {word for name in voices for word in words(name)}.union(
            weak, *(words(each.said) for each in dates)
        )
        shown: dict[str, str] = {}
        for word in asked.words:
            shown.setdefault(stem(word), word)
        terms: list[list[_Term]] = [[] for _ in indexes]
        for each, own in _rarest(indexes, shown, _MOST_TERMS).items():
            weight = _rarity(indexes, own) * (_NAME_WEIGHT if shown[each] in known else 1.0)
            for index, said, some in zip(indexes, own, terms, strict=True):
                some.append(_Term(shown[each], weight, said, index.lent(said)))
        patterns: list[list[_Term]] = [[] for _ in indexes]
        for pattern in asked.patterns:
            own = [index.pattern(pattern) for index in indexes]
            for said, some in zip(own, patterns, strict=True):
                some.append(_Term(pattern.shown, _rarity(indexes, own), said))
        self._answers = list(map(_Answer, indexes, terms, patterns))
        self._add_meaning(likeness)
        is_alone = bool(shown) and not asked.patterns and known.issuperset(shown.values())
        self._raise(voices, [each.numbers for each in dates], is_alone=is_alone)
        self._best = self._highest()

    def _highest(self) -> float:
        """Return the best score, or 1 if nothing has one."""
        return max((max(each.scores, default=0.0) for each in self._answers), default=0.0) or 1.0

    def _add_meaning(self, likeness: Sequence[Likeness | None]) -> None:
        """Raise the scores of documents of like meaning, the nearest most.

        What has no vector is taken to mean as much as its words are worth: it keeps its
        place among its like, be it the newest memory of all.
        """
        cosines = (each or 0.0 for known in likeness for each in known or ())
        most = max(cosines, default=0.0)
        if most <= _UNLIKE:
            return
        unit = _MEANING_WEIGHT * self._highest() / (most - _UNLIKE)
        for answer, each in zip(self._answers, likeness, strict=True):
            said, known = answer.scores, each or [None] * len(answer.scores)
            meant = {
                place: unit * (cosine - _UNLIKE)
                for place, cosine in enumerate(known)
                if cosine is not None and cosine > (_UNLIKE if said[place] else _LIKE)
            }
            lacking = (place for place, cosine in enumerate(known) if cosine is None)
            alike = {place: _MEANING_WEIGHT * said[place] for place in lacking if said[place]}
            answer.add("meaning", meant)
            answer.add("no vector", alike)

    def _raise(self, voices: set[str], days: Collection[range], *, is_alone: bool) -> None:
        """Raise what is of the named days, said or not, and what the named speakers say of it."""
        if not voices and not days:
            return
        unit = self._highest() * (_NAMED_ALONE if is_alone else _NAMED)
        for answer in self._answers:
            if days:
                moments = enumerate(answer.index.seconds)
                named = (at for at, s in moments if any(s // _DAY_SECONDS in each for each in days))
                answer.add("dates", dict.fromkeys(named, unit))
            if voices:
                said, several = answer.scores, enumerate(zip(*answer.index.voices, strict=True))
                named = (at for at, names in several if not voices.isdisjoint(names))
                answer.add("speaker", {at: unit for at in named if said[at] or is_alone})

    # What is found

    def hits(
        self, limit: int, allowed: Sequence[Collection[int] | None]
    ) -> list[tuple[int, TextHit]]:
        """Return the best answers at the `allowed` places, each with the number of its index.

        The best answer of all scores 1, allowed or not, so that a filter changes no score.
        """
        several = [
            (range(len(answer.scores)), answer.scores)
            if places is None
            else (places, list(map(answer.scores.__getitem__, places)))
            for answer, places in zip(self._answers, allowed, strict=True)
        ]
        every = chain.from_iterable(scores for _, scores in several)
        least = min(nlargest(max(limit, 0), every), default=0.0)
        found = sorted(
            (-score, number, self._answers[number].index.ids[place], place)
            for number, (places, scores) in enumerate(several)
            for place, score in zip(places, scores, strict=True)
            if score >= least and score
        )
        return [
            (number, TextHit(name, -score / self._best, self._answers[number].source(place)))
            for score, number, name, place in found[: max(limit, 0)]
        ]

    def reason(self, number: int, name: str) -> Reason:
        """Return why a document of an index answers."""
        answer = self._answers[number]
        place = answer.index.place_of.get(name)
        return Reason({}) if place is None else answer.reason(place, self._best)


# What is asked


def _rarity(indexes: Iterable[Index], own: Iterable[Values]) -> float:
    """Return the weight of a word: the fewer documents say it, the more."""
    documents, holders = sum(len(index.ids) for index in indexes), sum(map(len, own))
    return log(1 + (documents - holders + 0.5) / (holders + 0.5))


def _rarest(
    indexes: Iterable[Index], stems: Collection[str], limit: int
) -> dict[str, list[Values]]:
    """Return what the rarest stems are worth, in the order in which they came."""
    said = [index.words(stems) for index in indexes]
    found: dict[str, list[Values]] = {each: [own[each] for own in said] for each in stems}
    rarest = sorted(found, key=lambda each: (sum(map(len, found[each])), each))[:limit]
    return {each: own for each, own in found.items() if each in rarest}


def _named_voices(indexes: Iterable[Index], asked: Question) -> set[str]:
    """Return the speakers and roles that the question names."""
    named = {name for index in indexes for name in index.names if _is_named(name, asked)}
    return named | {_USER} if asked.is_first_person else named


def _is_named(name: str, asked: Question) -> bool:
    """Return whether a question names somebody: by the full name, or by a part of it.

    A part must have a capital, or every "review" would mean the agent code-review.
    """
    parts = words(name)
    said = asked.said - STOP_WORDS
    return said.issuperset(parts) or not asked.capitals.isdisjoint(parts)


# What is alike


def similar(
    index: Index, text: str, likeness: Likeness | None = None
) -> list[tuple[TextHit, Reason]]:
    """Return the documents that share words with `text`, the best first; the same text scores 1.

    With `likeness`, that is words and meaning; else, and for what has no vector, it is words.
    """
    shares = _shares(index, text)
    weight = _SIMILAR_MEANING_WEIGHT / (1 + _SIMILAR_MEANING_WEIGHT)
    found = []
    for place in range(len(index.ids)) if likeness else shares:
        parts, cosine = {"words": shares.get(place, 0.0)}, likeness[place] if likeness else None
        if cosine is not None and (place in shares or cosine >= _LIKE):
            meaning = min(1.0, max(0.0, cosine))
            parts = {"words": (1 - weight) * parts["words"], "meaning": weight * meaning}
        if score := sum(parts.values()):
            reason = Reason({name: value for name, value in parts.items() if value})
            found.append((TextHit(index.ids[place], score), reason))
    return sorted(found, key=lambda each: (-each[0].score, each[0].id))


def _shares(index: Index, text: str) -> dict[int, float]:
    """Return how much of what `text` says each document says too."""
    said = words(text)
    counts = Counter(stem(word) for word in said if word not in STOP_WORDS)
    shares: defaultdict[int, float] = defaultdict(float)
    whole = 0.0
    several = list(counts)[:_MOST_SIMILAR_WORDS]
    for each, (own,) in _rarest([index], several, _MOST_SIMILAR_TERMS).items():
        share = worth(counts[each], len(said))
        weight = share * _rarity([index], [own])
        whole += weight * share
        for place, value in own.items():
            shares[place] += weight * value
    return {place: min(1.0, share / whole) for place, share in shares.items()}
