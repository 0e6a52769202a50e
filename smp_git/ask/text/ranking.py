"""Ranking of documents by a question: BM25, pairs of words, days, speakers, meaning.

A word is worth BM25 of what a document says and is lent, in proportion to how rare it is. Pairs
of words that stand side by side as in the question add to the best; then what the question
says of days and speakers counts, then likeness of meaning.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from heapq import nlargest
from itertools import chain, pairwise
from math import log
from typing import Any, Final, NamedTuple

from smp_git.ask.text.index import OWN, Index, Word
from smp_git.ask.text.questions import Question, date_words, named_days, parse
from smp_git.ask.text.words import STOP_WORDS, stem, words

# BM25's own constants. These and the ones below were chosen on one set of conversations
# and confirmed on another; recall moves by less than its error when one moves by a quarter.
_SATURATION: Final = 1.5
_LENGTH_WEIGHT: Final = 0.6
# Below this many words a text is not more to the point for being shorter.
_LENGTH_FLOOR: Final = 60
# What a document that says no word of the question is worth at most, beside its neighbour.
_BORROWED: Final = 0.9
# What words are worth that stand side by side as in the question, beside the commoner one.
_PAIR: Final = 0.5
_PAIRED: Final = 64
_SPEAKER_BOOST: Final = 3.0
# A name is evidence for who speaks; as a word it is said in too many places.
_NAME_WEIGHT: Final = 0.3
_DATE_BOOST: Final = 1.5
# What a named day is worth without a word: a share of the best score.
_FETCHED: Final = 0.2
# What the nearest meaning is worth beside the best score, and beside the same words.
_MEANING_WEIGHT: Final = 0.3
_SIMILAR_MEANING_WEIGHT: Final = 2.0
# The cosine from which meaning alone makes an answer, without a word in common.
_LIKE: Final = 0.4
# More than a question has; a pasted text is asked by its rarest words.
_MOST_TERMS: Final = 64
_MOST_SIMILAR_WORDS: Final = 256
_MOST_SIMILAR_TERMS: Final = 32
_USER: Final = "user"
# Less is what sums in another order differ by.
_ROUNDING: Final = 1e-12


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


class TextScale:
    """A collection's part in the value of a word: the number of documents and their lengths."""

    def __init__(self, indexes: Collection[Index]) -> None:
        self._documents = sum(len(index.ids) for index in indexes)
        length = sum(index.length for index in indexes)
        self._slope = OWN * _SATURATION * _LENGTH_WEIGHT * self._documents / max(1, length)

    def rarity(self, holders: int) -> float:
        """Return the weight of a word that so many documents hold."""
        return log(1 + (self._documents - holders + 0.5) / (holders + 0.5))

    def norm(self, length: int) -> float:
        """Return the count that earns a text of `length` half of a word's weight.

        All three are in tenths.
        """
        longer = max(length, OWN * _LENGTH_FLOOR)
        return OWN * _SATURATION * (1 - _LENGTH_WEIGHT) + self._slope * longer

    def norms(self, index: Index) -> Sequence[float]:
        """Return the norm of each document."""
        base, least = OWN * _SATURATION * (1 - _LENGTH_WEIGHT), OWN * _LENGTH_FLOOR
        slope = self._slope
        return index.per_document(
            slope,
            lambda: [base + slope * (size if size > least else least) for size in index.lengths],
        )


class _Term(NamedTuple):
    """A word or a pattern: how it is written, what it weighs, who says it, index by index."""

    shown: str
    weight: float
    found: list[Word]


Scores = list[list[float]]
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
        self._indexes = indexes
        self._scale = TextScale(indexes)
        asked = parse(question)
        voices = _named_voices(indexes, asked)
        days = _asked_days(indexes, asked, now)
        known = {word for name in voices for word in words(name)}.union(weak)
        if days:
            known.update(date_words(asked.text))
        weights: dict[str, tuple[str, float]] = {}
        for word in asked.words:
            weights.setdefault(stem(word), (word, _NAME_WEIGHT if word in known else 1.0))
        rarest = _rarest(indexes, weights, _MOST_TERMS)
        self._words = {each: self._term(*weights[each], Index.word, each) for each in rarest}
        self._patterns = [
            self._term(each.shown, 1.0, Index.pattern, each) for each in asked.patterns
        ]
        every = [*self._words.values(), *self._patterns]
        self._own: list[set[int]] = [
            set().union(*(term.found[n].own for term in every)) for n in range(len(indexes))
        ]
        # What each step makes of the scores; the last one's count.
        self._steps: list[tuple[str, Scores]] = []
        self._score_words(asked, {each for each in rarest if weights[each][1] == 1})
        is_all = bool(weights) and not asked.patterns and all(w < 1 for _, w in weights.values())
        self._raise(voices, days, is_all=is_all)
        self._add_meaning(likeness)
        self._top = self._best()

    def _term(
        self, shown: str, weight: float, find: Callable[[Index, Any], Word], wanted: object
    ) -> _Term:
        found = [find(index, wanted) for index in self._indexes]
        rarity = self._scale.rarity(sum(len(word.own) for word in found))
        return _Term(shown, weight * rarity, found)

    # Scoring

    def _score_words(self, asked: Question, strong: set[str]) -> None:
        every = range(len(self._indexes))
        self._steps.append(("words", [self._summed(n) for n in every]))
        pairs = {(a, b) for a, b in pairwise(map(stem, asked.words)) if a != b and {a, b} <= strong}
        best = self._pair_candidates(pairs) if pairs else []
        if best:
            self._step("pairs", lambda n: self._paired(n, pairs, [at for m, at in best if m == n]))

    def _step(self, name: str, change: Callable[[int], Iterable[tuple[int, float]]]) -> None:
        """Set the scores of some documents, index by index."""
        changed = [list(scores) for scores in self._scores]
        for number, scores in enumerate(changed):
            for place, score in change(number):
                scores[place] = score
        self._steps.append((name, changed))

    @property
    def _scores(self) -> Scores:
        return self._steps[-1][1]

    def _best(self) -> float:
        return max((max(scores, default=0.0) for scores in self._scores), default=0.0)

    def _summed(self, number: int) -> list[float]:
        """Return what words and patterns are worth, what is only borrowed being bounded."""
        index, own = self._indexes[number], self._own[number]
        norms = self._scale.norms(index)
        scores = [0.0] * len(index.ids)
        borrowing: set[int] = set()
        for _, weight, found in (*self._words.values(), *self._patterns):
            counts = found[number].counts
            for place, count in counts.items():
                scores[place] += weight * count / (count + norms[place])
            if len(counts) > len(found[number].own):
                borrowing.update(counts)
        for place in borrowing - own:
            source = self._source(number, place, scores)
            scores[place] = min(scores[place], _BORROWED * scores[source])
        return scores

    def _source(self, number: int, place: int, scores: Sequence[float]) -> int:
        """Return the best of the neighbours that a document borrows from."""
        near = self._indexes[number].neighbours(place)
        return max((at for at in near if at in self._own[number]), key=scores.__getitem__)

    def _pair_candidates(self, pairs: Iterable[tuple[str, str]]) -> list[tuple[int, int]]:
        """Return index and place of the best documents that say both words of a pair."""
        return [
            (number, place)
            for _, number, _, place in self._highest(_PAIRED, [None] * len(self._indexes))
            if any(
                place in self._words[a].found[number].own
                and place in self._words[b].found[number].own
                for a, b in pairs
            )
        ]

    def _highest(
        self, count: int, allowed: Sequence[Collection[int] | None]
    ) -> list[tuple[float, int, str, int]]:
        """Return the lowest numbers that -score, index, id and place make."""
        several = [
            (number, scores, range(len(scores)) if members is None else members)
            for number, (scores, members) in enumerate(zip(self._scores, allowed, strict=True))
        ]
        values = (
            scores if len(places) == len(scores) else map(scores.__getitem__, places)
            for _, scores, places in several
        )
        least = min(nlargest(count, chain.from_iterable(values)), default=0.0)
        found = [
            (-score, number, self._indexes[number].ids[place], place)
            for number, scores, places in several
            for place, score in zip(places, map(scores.__getitem__, places), strict=True)
            if score >= least and score
        ]
        return sorted(found)[:count]

    def _paired(
        self, number: int, pairs: Collection[tuple[str, str]], places: Sequence[int]
    ) -> Iterator[tuple[int, float]]:
        """Yield the scores with what is added where words stand side by side as in the question."""
        for place, held in self._indexes[number].pairs(pairs, places):
            added = sum(sorted(min(self._words[a].weight, self._words[b].weight) for a, b in held))
            yield place, self._scores[number][place] + _PAIR * added

    def _raise(self, voices: Collection[str], days: Collection[int], *, is_all: bool) -> None:
        """Raise the scores of the named days, then those of who is named.

        If a question names only these, they are worth more than all the words that are said.
        """
        spoken = [
            {at for name in voices for at in index.names.get(name, ())} for index in self._indexes
        ]
        best = self._best() or 1.0
        on_day = (1.0, _DATE_BOOST * best) if is_all else (_DATE_BOOST, _FETCHED * best)
        by_name = (1.0, _SPEAKER_BOOST * best) if is_all else (_SPEAKER_BOOST, 0.0)
        if days:
            self._step("dates", lambda n: self._lifted(n, self._on(n, days), *on_day))
        if any(spoken):
            self._step("speaker", lambda n: self._lifted(n, spoken[n], *by_name))

    def _on(self, number: int, days: Collection[int]) -> Iterator[int]:
        known = self._indexes[number].days
        return chain.from_iterable(known[day] for day in sorted(known.keys() & days))

    def _lifted(
        self, number: int, places: Iterable[int], boost: float, fetched: float
    ) -> Iterator[tuple[int, float]]:
        scores = self._scores[number]
        return (
            (place, scores[place] * boost + fetched) for place in places if scores[place] or fetched
        )

    def _add_meaning(self, likeness: Sequence[Likeness | None]) -> None:
        """Raise the scores of documents of like meaning, the nearest most.

        What has no vector is taken to mean as much as its words are worth: it keeps its
        place among its like, be it the newest memory of all.
        """
        known = [
            each or [None] * len(index.ids)
            for each, index in zip(likeness, self._indexes, strict=False)
        ]
        most = max((each or 0.0 for each in chain.from_iterable(known)), default=0.0)
        if most <= 0:
            return
        unit = _MEANING_WEIGHT * (self._best() or 1.0) / most
        before = self._scores
        self._step(
            "meaning",
            lambda n: (
                (place, before[n][place] + unit * cosine)
                for place, cosine in enumerate(known[n])
                if cosine is not None and cosine > 0 and (before[n][place] or cosine >= _LIKE)
            ),
        )
        self._step(
            "no vector",
            lambda n: (
                (place, before[n][place] * (1 + _MEANING_WEIGHT))
                for place, cosine in enumerate(known[n])
                if cosine is None and before[n][place]
            ),
        )

    # What is found

    def hits(
        self, limit: int, allowed: Sequence[Collection[int] | None]
    ) -> list[tuple[int, TextHit]]:
        """Return the best answers at the `allowed` places, each with the number of its index.

        The best answer of all scores 1, allowed or not, so that a filter changes no score.
        """
        best = self._top
        return [
            (number, TextHit(name, -score / best, self._borrowed_from(number, place)))
            for score, number, name, place in self._highest(max(limit, 0), allowed)
        ]

    def _borrowed_from(self, number: int, place: int) -> str:
        """Return the neighbour that a document is found by, unless its day or speaker counts more."""
        before, scores = self._steps[0][1][number], self._scores[number]
        if place in self._own[number] or not before[place]:
            return ""
        source = self._source(number, place, before)
        return self._indexes[number].ids[source] if scores[place] <= scores[source] else ""

    def reason(self, number: int, name: str) -> Reason:
        """Return why a document answers."""
        index, best = self._indexes[number], self._top
        place = index.place_of.get(name)
        if place is None:
            return Reason({})
        norm = self._scale.norm(index.lengths[place])
        terms, patterns = list(self._words.values()), self._patterns
        by_words = sum(_worth(term, number, place, norm) for term in terms)
        by_phrases = sum(_worth(term, number, place, norm) for term in patterns)
        before = self._steps[0][1][number][place]
        parts = {"words": by_words, "neighbours": before - by_words - by_phrases}
        parts["phrases"] = by_phrases
        for step, scores in self._steps[1:]:
            parts[step], before = scores[number][place] - before, scores[number][place]
        borrowed = [
            term.found[number].own
            for term in terms
            if place in term.found[number].counts and place not in term.found[number].own
        ]
        lenders = [at for at in index.neighbours(place) if any(at in own for own in borrowed)]
        near = max(lenders, key=self._steps[0][1][number].__getitem__, default=None)
        return Reason(
            {part: value / best for part, value in parts.items() if value > _ROUNDING * best},
            tuple(term.shown for term in (*terms, *patterns) if place in term.found[number].own),
            "" if near is None else index.ids[near],
        )


def _worth(term: _Term, number: int, place: int, norm: float) -> float:
    """Return what a word adds to the score of a document that says it itself."""
    count = OWN * term.found[number].own.get(place, 0)
    return term.weight * count / (count + norm)


# What is asked


def _rarest(indexes: Sequence[Index], stems: Collection[str], limit: int) -> list[str]:
    """Return the rarest stems, in the order in which they came."""
    if len(stems) <= limit:
        return list(stems)
    held = {each: sum(len(index.word(each).own) for index in indexes) for each in stems}
    rarest = set(sorted(stems, key=lambda each: (held[each], each))[:limit])
    return [each for each in stems if each in rarest]


def _named_voices(indexes: Iterable[Index], asked: Question) -> frozenset[str]:
    """Return the speakers and roles that the question names."""
    known = {name for index in indexes for name in index.names}
    named = {name for name in known if _is_named(name, asked)}
    return frozenset(named | ({_USER} if asked.is_first_person else set()))


def _is_named(name: str, asked: Question) -> bool:
    """Return whether a question names somebody: by the full name, or by a part of it.

    A part must have a capital, or every "review" would mean the agent code-review.
    """
    parts = words(name)
    said = asked.said - STOP_WORDS
    return said.issuperset(parts) or not asked.capitals.isdisjoint(parts)


def _asked_days(indexes: Sequence[Index], asked: Question, now: datetime | None) -> frozenset[int]:
    """Return the days of documents that the question names."""
    known = {day for index in indexes for day in index.days}
    years = [date.fromordinal(day).year for day in (min(known), max(known))] if known else [0, -1]
    named = named_days(asked.text, range(years[0], years[1] + 1), now)
    return frozenset(
        day
        for first, last in named
        for day in known
        if first.toordinal() <= day <= last.toordinal()
    )


# What is alike


def similar(
    index: Index,
    text: str,
    *,
    limit: int,
    exclude: str | None = None,
    likeness: Likeness | None = None,
) -> list[tuple[TextHit, Reason]]:
    """Return the `limit` documents that share most with `text`; the same text scores 1.

    With `likeness`, that is words and meaning; else, and for what has no vector, it is words.
    """
    shares = _shares(index, text)
    by_words, by_meaning = dict(shares), dict[int, float]()
    weight = _SIMILAR_MEANING_WEIGHT / (1 + _SIMILAR_MEANING_WEIGHT)
    for place, cosine in enumerate(likeness or ()):
        if cosine is not None and (place in shares or cosine >= _LIKE):
            by_words[place] = (1 - weight) * shares.get(place, 0.0)
            by_meaning[place] = weight * min(1.0, max(0.0, cosine))
    scores = {place: by_words[place] + by_meaning.get(place, 0.0) for place in by_words}
    best = sorted(scores, key=lambda place: (-scores[place], index.ids[place]))
    found = []
    for place in [at for at in best if index.ids[at] != exclude][: max(limit, 0)]:
        parts = {"words": by_words[place], "meaning": by_meaning.get(place, 0.0)}
        reason = Reason({name: value for name, value in parts.items() if value})
        found.append((TextHit(index.ids[place], scores[place]), reason))
    return found


def _shares(index: Index, text: str) -> dict[int, float]:
    """Return how much of what `text` says each document says too."""
    said = words(text)
    counts = Counter(stem(word) for word in said if word not in STOP_WORDS)
    scale = TextScale([index])
    norms, norm = scale.norms(index), scale.norm(OWN * len(said))
    shares: defaultdict[int, float] = defaultdict(float)
    whole = 0.0
    for each in _rarest([index], list(counts)[:_MOST_SIMILAR_WORDS], _MOST_SIMILAR_TERMS):
        own = index.word(each).own
        rarity = scale.rarity(len(own))
        share = OWN * counts[each] / (OWN * counts[each] + norm)
        whole += rarity * share * share
        for place, count in own.items():
            shares[place] += rarity * share * OWN * count / (OWN * count + norms[place])
    return {place: min(1.0, share / whole) for place, share in shares.items()}
