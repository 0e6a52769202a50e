"""Which documents answer a question, and how well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from heapq import nlargest
from typing import Final, NamedTuple

from smp_git.search.corpus import Corpus
from smp_git.search.dates import named_days
from smp_git.search.documents import Hit
from smp_git.search.pruning import Weighted, best_sums
from smp_git.search.questions import Question, parse
from smp_git.search.segments import Term, term
from smp_git.search.words import STOP_WORDS, words

# Like the constants of the corpus: chosen on one set of conversations, confirmed on another.
_SPEAKER_BOOST: Final = 2.0
# A name is evidence for who speaks; as a word it is said in too many places.
_NAME_WEIGHT: Final = 0.3
_DATE_BOOST: Final = 1.5
# What a named day, or a name alone, is worth without a word: a share of the best score.
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


class _Asked(NamedTuple):
    """What a question comes to in a corpus; `fetches` if its day or name alone finds."""

    question: Question
    voices: frozenset[str]
    terms: dict[Term, float]
    days: frozenset[int]
    names_only: bool

    @property
    def fetches(self) -> bool:
        return bool(self.days) or self.names_only


class Steps(NamedTuple):
    """The score of one document, step by step: each step holds the one before."""

    words: float
    matched: float
    dated: float
    spoken: float
    final: float


class _Scores(NamedTuple):
    """The steps of all documents, by place."""

    words: list[float]
    matched: list[float]
    dated: list[float]
    spoken: list[float]
    final: list[float]

    def at(self, place: int) -> Steps:
        """Return the steps of one document."""
        return Steps(*(step[place] for step in self))


def search(
    corpus: Corpus,
    question: str,
    *,
    limit: int,
    allowed: Collection[str] | None = None,
    now: datetime | None = None,
    likeness: Sequence[float] | None = None,
    prune: bool = True,
    explain: bool = True,
) -> list[Hit]:
    """Return the best `limit` answers among the `allowed` ids, the best first.

    The best answer of all documents scores 1, allowed or not, so that a filter changes
    no score. `now` gives "yesterday" its meaning. `likeness`, by place, is how near the
    documents come in meaning. Without `prune` all documents are scored, which changes
    nothing but the time. Without `explain` the hits have no parts.
    """
    asked = _asked(corpus, parse(question), now)
    if prune and likeness is None and _can_prune(asked, limit, allowed):
        found = _pruned(corpus, asked, limit)
    else:
        scores = _exhaustive(corpus, asked, likeness)
        places = _best_places(corpus, scores.final, limit, allowed)
        best = max(scores.final, default=0.0)
        found = _Found([(place, scores.at(place)) for place in places], best)
    if explain:
        return [
            _hit(corpus, asked.terms, place, found.best, steps) for place, steps in found.places
        ]
    return [
        Hit(id=corpus.ids[place], score=steps.final / found.best, parts={})
        for place, steps in found.places
    ]


def similar(
    corpus: Corpus,
    text: str,
    *,
    limit: int,
    exclude: str | None = None,
    likeness: Sequence[float] | None = None,
) -> list[Hit]:
    """Return the `limit` documents that share most with `text`; the same text scores 1.

    With `likeness`, that is words and meaning; else it is words.
    """
    wanted = max(limit, 0) + 1
    shares = _shares(corpus, text, len(corpus.ids) if likeness else wanted)
    scores = _joined(shares, likeness) if likeness else shares
    found = sorted(scores, key=lambda place: (-scores[place], corpus.ids[place]))[:wanted]
    hits = [_similar_hit(corpus.ids[at], shares.get(at, 0.0), scores[at]) for at in found]
    return [hit for hit in hits if hit.id != exclude][: max(limit, 0)]


def _shares(corpus: Corpus, text: str, limit: int) -> dict[int, float]:
    """Return how much of `text` is said at the `limit` best places, and perhaps at others."""
    said = words(text)
    counts = Counter(term(word) for word in said if word not in STOP_WORDS)
    terms = _rarest(corpus, list(counts)[:_MOST_SIMILAR_WORDS], _MOST_SIMILAR_TERMS)
    asked = []
    whole = 0.0
    for each in terms:
        impacts = corpus.word(each, lending=False)
        share = corpus.value(1.0, counts[each], len(said))
        whole += share * corpus.value(impacts.weight, counts[each], len(said))
        asked.append(Weighted(impacts, share))
    return {at: min(1.0, score / whole) for at, score in best_sums(asked, limit).items()}


def _joined(shares: Mapping[int, float], likeness: Sequence[float]) -> dict[int, float]:
    weight = _SIMILAR_MEANING_WEIGHT
    return {
        place: (shares.get(place, 0.0) + weight * min(1.0, max(0.0, cosine))) / (1 + weight)
        for place, cosine in enumerate(likeness)
        if place in shares or cosine >= _LIKE
    }


def _similar_hit(name: str, share: float, score: float) -> Hit:
    if share == score:
        return Hit(id=name, score=score, parts={"words": score})
    by_words = share / (1 + _SIMILAR_MEANING_WEIGHT)
    return Hit(id=name, score=score, parts={"words": by_words, "meaning": score - by_words})


def _asked(corpus: Corpus, question: Question, now: datetime | None) -> _Asked:
    voices = _named_voices(corpus, question)
    terms = _weighted_terms(corpus, question, voices)
    only_names = bool(terms) and max(terms.values()) < 1 and not question.patterns
    return _Asked(
        question=question,
        voices=voices,
        terms=terms,
        days=_asked_days(corpus, question, now),
        names_only=only_names and bool(corpus.spoken(voices)),
    )


def _named_voices(corpus: Corpus, asked: Question) -> frozenset[str]:
    """Return the speakers and roles that the question names."""
    known = {name for voice in corpus.voices for name in voice if name}
    named = {name for name in known if _is_named(name, asked)}
    return frozenset(named | ({_USER} if asked.is_first_person else set()))


def _is_named(name: str, asked: Question) -> bool:
    """Return whether a question names somebody: by the full name, or by a part of it.

    A part must have a capital, or every "review" would mean the agent code-review.
    """
    parts = words(name)
    said = asked.said - STOP_WORDS
    return said.issuperset(parts) or not asked.capitals.isdisjoint(parts)


def _weighted_terms(corpus: Corpus, asked: Question, voices: Iterable[str]) -> dict[Term, float]:
    """Return the words to search by, each with its weight."""
    names = {word for name in voices for word in words(name)}
    weights: dict[Term, float] = {}
    for word in asked.words:
        weights.setdefault(term(word), _NAME_WEIGHT if word in names else 1.0)
    return {each: weights[each] for each in _rarest(corpus, list(weights), _MOST_TERMS)}


def _rarest(corpus: Corpus, terms: Sequence[Term], limit: int) -> list[Term]:
    """Return the `limit` rarest of `terms`, in the order in which they came."""
    if len(terms) <= limit:
        return list(terms)
    rarest = set(sorted(terms, key=lambda each: (corpus.rarity(each), each))[:limit])
    return [each for each in terms if each in rarest]


def _asked_days(corpus: Corpus, asked: Question, now: datetime | None) -> frozenset[int]:
    """Return the days of documents that the question names."""
    named = named_days(asked.text, corpus.years, now)
    return frozenset(
        day
        for day in set(corpus.days if named else ())
        if any(first.toordinal() <= day <= last.toordinal() for first, last in named)
    )


class _Found(NamedTuple):
    """The best places in order, each with its score, and the best score of all."""

    places: list[tuple[int, Steps]]
    best: float


def _can_prune(asked: _Asked, limit: int, allowed: Collection[str] | None) -> bool:
    """Return whether only words and speakers count: anything else may raise any document."""
    return allowed is None and limit > 0 and not asked.question.patterns and not asked.fetches


def _pruned(corpus: Corpus, asked: _Asked, limit: int) -> _Found:
    """Return what `_exhaustive` returns, without scoring what cannot be among the best."""
    spoken = corpus.spoken(asked.voices)
    weighted = [
        Weighted(corpus.word(each, lending=True), weight) for each, weight in asked.terms.items()
    ]
    sums = best_sums(weighted, limit, spoken, _SPEAKER_BOOST)
    final = {place: s * _SPEAKER_BOOST if place in spoken else s for place, s in sums.items()}
    found = sorted(final, key=lambda place: (-final[place], corpus.ids[place]))[:limit]
    steps = [Steps(*[sums[place]] * 3, *[final[place]] * 2) for place in found]
    return _Found(list(zip(found, steps, strict=True)), steps[0].final if steps else 0.0)


def _exhaustive(corpus: Corpus, asked: _Asked, likeness: Sequence[float] | None) -> _Scores:
    """Return the scores of all documents."""
    by_words = [0.0] * len(corpus.ids)
    for each, weight in asked.terms.items():
        Weighted(corpus.word(each, lending=True), weight).add_to(by_words)
    matched = by_words
    if asked.question.patterns:
        matched = by_words.copy()
        for pattern in asked.question.patterns:
            Weighted(corpus.pattern(pattern), 1.0).add_to(matched)
    fetched = _FETCHED * max(matched, default=0.0) or 1.0
    dated = _dated(corpus, asked.days, matched, fetched)
    spoken = _spoken(corpus, dated, asked.voices, fetched if asked.names_only else 0.0)
    return _Scores(by_words, matched, dated, spoken, _meant(spoken, likeness))


def _meant(scores: list[float], likeness: Sequence[float] | None) -> list[float]:
    """Return the scores with those of documents of like meaning raised."""
    most = max(likeness or (), default=0.0)
    if likeness is None or most <= 0:
        return scores
    unit = _MEANING_WEIGHT * (max(scores) or 1.0) / most
    return [
        score + unit * cosine if cosine > 0 and (score or cosine >= _LIKE) else score
        for score, cosine in zip(scores, likeness, strict=True)
    ]


def _dated(
    corpus: Corpus, days: frozenset[int], scores: list[float], fetched: float
) -> list[float]:
    """Return the scores with those of the named days raised."""
    if not days:
        return scores
    return [
        score * _DATE_BOOST + fetched if day in days else score
        for score, day in zip(scores, corpus.days, strict=True)
    ]


def _spoken(
    corpus: Corpus, scores: list[float], voices: frozenset[str], fetched: float
) -> list[float]:
    """Return the scores with those of the named speakers and roles raised."""
    spoken = corpus.spoken(voices)
    if not spoken:
        return scores
    raised = scores.copy()
    for place in spoken:
        raised[place] = scores[place] * _SPEAKER_BOOST + fetched
    return raised


def _best_places(
    corpus: Corpus,
    scores: Sequence[float],
    limit: int,
    allowed: Collection[str] | None,
) -> list[int]:
    """Return the places of the highest scores above 0, equal ones by id."""
    if allowed is None:
        least = min(nlargest(limit, scores), default=0.0)
        found = [at for at, score in enumerate(scores) if score >= least and score]
    else:
        places = {corpus.place_of[name] for name in allowed if name in corpus.place_of}
        found = [place for place in places if scores[place]]
    return sorted(found, key=lambda place: (-scores[place], corpus.ids[place]))[: max(limit, 0)]


def _hit(corpus: Corpus, terms: dict[Term, float], place: int, best: float, steps: Steps) -> Hit:
    own = sum(weight * corpus.own_value(each, place) for each, weight in terms.items())
    parts = {
        "words": own,
        "neighbours": steps.words - own,
        "phrases": steps.matched - steps.words,
        "dates": steps.dated - steps.matched,
        "speaker": steps.spoken - steps.dated,
        "meaning": steps.final - steps.spoken,
    }
    return Hit(
        id=corpus.ids[place],
        score=steps.final / best,
        parts={name: value / best for name, value in parts.items() if value > 1e-12 * best},
    )
