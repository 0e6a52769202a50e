"""Which documents answer a question, and how well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from heapq import nlargest
from itertools import chain
from typing import Final, NamedTuple

from smp_git.search.corpus import Corpus, Impacts
from smp_git.search.dates import named_days
from smp_git.search.documents import Hit
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
# More than a question has; a pasted text is asked by its rarest words.
_MOST_TERMS: Final = 64
_MOST_SIMILAR_WORDS: Final = 256
_MOST_SIMILAR_TERMS: Final = 32
_USER: Final = "user"


class _Scores(NamedTuple):
    """The scores of all documents, step by step: each step holds the one before."""

    words: list[float]
    matched: list[float]
    dated: list[float]
    final: list[float]


def search(
    corpus: Corpus,
    question: str,
    *,
    limit: int,
    allowed: Collection[str] | None = None,
    now: datetime | None = None,
) -> list[Hit]:
    """Return the best `limit` answers among the `allowed` ids, the best first.

    The best answer of all documents scores 1, allowed or not, so that a filter changes
    no score. `now` gives "yesterday" its meaning.
    """
    asked = parse(question)
    voices = _named_voices(corpus, asked)
    terms = _weighted_terms(corpus, asked, voices)
    scores = _scores(corpus, asked, terms, voices, now)
    best = max(scores.final, default=0.0)
    return [
        _hit(corpus, scores, terms, place, best)
        for place in _best_places(corpus, scores.final, limit, allowed)
    ]


def similar(corpus: Corpus, text: str, *, limit: int, exclude: str | None = None) -> list[Hit]:
    """Return the `limit` documents that share most with `text`; the same text scores 1."""
    said = words(text)
    counts = Counter(term(word) for word in said if word not in STOP_WORDS)
    terms = _rarest(corpus, list(counts)[:_MOST_SIMILAR_WORDS], _MOST_SIMILAR_TERMS)
    scores = [0.0] * len(corpus.ids)
    whole = 0.0
    for each in terms:
        impacts = corpus.word(each, lending=False)
        share = corpus.value(1.0, counts[each], len(said))
        whole += share * corpus.value(impacts.weight, counts[each], len(said))
        _add(scores, impacts, share)
    found = _best_places(corpus, scores, limit + 1, None)
    hits = [_similar_hit(corpus.ids[at], min(1.0, scores[at] / whole)) for at in found]
    return [hit for hit in hits if hit.id != exclude][:limit]


def _similar_hit(name: str, score: float) -> Hit:
    return Hit(id=name, score=score, parts={"words": score})


def _named_voices(corpus: Corpus, asked: Question) -> set[str]:
    """Return the speakers and roles that the question names."""
    known = {name for voice in corpus.voices for name in voice if name}
    named = {name for name in known if _is_named(name, asked)}
    return named | ({_USER} if asked.is_first_person else set())


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


def _scores(
    corpus: Corpus,
    asked: Question,
    terms: dict[Term, float],
    voices: set[str],
    now: datetime | None,
) -> _Scores:
    by_words = [0.0] * len(corpus.ids)
    for each, weight in terms.items():
        _add(by_words, corpus.word(each, lending=True), weight)
    matched = by_words
    if asked.patterns:
        matched = by_words.copy()
        for pattern in asked.patterns:
            _add(matched, corpus.pattern(pattern), 1.0)
    fetched = _FETCHED * max(matched, default=0.0) or 1.0
    dated = _dated(corpus, asked, matched, fetched, now)
    only_names = bool(terms) and max(terms.values()) < 1 and not asked.patterns
    final = _spoken(corpus, dated, voices, fetched if only_names else 0.0)
    return _Scores(by_words, matched, dated, final)


def _add(scores: list[float], impacts: Impacts, weight: float) -> None:
    if weight == 1:
        # Most words weigh 1, and the product takes a third of the time.
        for place, value in zip(impacts.places, impacts.values, strict=True):
            scores[place] += value
        return
    for place, value in zip(impacts.places, impacts.values, strict=True):
        scores[place] += weight * value


def _dated(
    corpus: Corpus,
    asked: Question,
    scores: list[float],
    fetched: float,
    now: datetime | None,
) -> list[float]:
    """Return the scores with those of the named days raised."""
    named = named_days(asked.text, corpus.years, now)
    days = {
        day
        for day in set(corpus.days if named else ())
        if any(first.toordinal() <= day <= last.toordinal() for first, last in named)
    }
    if not days:
        return scores
    return [
        score * _DATE_BOOST + fetched if day in days else score
        for score, day in zip(scores, corpus.days, strict=True)
    ]


def _spoken(corpus: Corpus, scores: list[float], voices: set[str], fetched: float) -> list[float]:
    """Return the scores with those of the named speakers and roles raised."""
    named = [places for voice, places in corpus.voices.items() if not voices.isdisjoint(voice)]
    if not named:
        return scores
    raised = scores.copy()
    for place in chain.from_iterable(named):
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


def _hit(
    corpus: Corpus,
    scores: _Scores,
    terms: dict[Term, float],
    place: int,
    best: float,
) -> Hit:
    own = sum(weight * corpus.own_value(each, place) for each, weight in terms.items())
    parts = {
        "words": own,
        "neighbours": scores.words[place] - own,
        "phrases": scores.matched[place] - scores.words[place],
        "dates": scores.dated[place] - scores.matched[place],
        "speaker": scores.final[place] - scores.dated[place],
    }
    return Hit(
        id=corpus.ids[place],
        score=scores.final[place] / best,
        parts={name: value / best for name, value in parts.items() if value > 1e-12 * best},
    )
