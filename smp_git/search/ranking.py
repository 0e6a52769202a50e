"""Which documents answer a question, and how well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from heapq import nlargest
from math import ceil
from typing import Final, NamedTuple

from smp_git.search import planes
from smp_git.search.corpus import UNIT, Corpus, Scale, Word, shortfall
from smp_git.search.dates import named_days
from smp_git.search.documents import Hit
from smp_git.search.planes import Sums
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
    """What a question comes to among documents; `fetches` if its day or name alone finds."""

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


class _Counted(NamedTuple):
    """A word in one corpus, how much it counts in the question, and how rare it is in all."""

    word: Word
    weight: float
    rarity: float


class _Part(NamedTuple):
    """What is asked of one of the corpora; `named` are the documents of who is named."""

    corpus: Corpus
    terms: Collection[Term]
    words: list[_Counted]
    patterns: list[_Counted]
    named: int

    def sums(self, scale: Scale) -> Sums:
        """Return the sums of words and patterns, in units, each a little short."""
        lengths, size = self.corpus.lengths, len(self.corpus.ids)
        found: planes.Planes = []
        members = 0
        for word, weight, rarity in (*self.words, *self.patterns):
            if word.counts:
                found = planes.plus(found, word.values(weight * rarity, scale, lengths))
                members |= word.members(size)
        return Sums(found, members)


class Place(NamedTuple):
    """A document: which corpus, and where in it."""

    corpus: int
    place: int


class _Found(NamedTuple):
    """The best places in order, each with its score, and the best score of all."""

    places: list[tuple[Place, Steps]]
    best: float


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
    found = search_all(
        [corpus],
        question,
        limit=limit,
        allowed=[allowed],
        now=now,
        likeness=None if likeness is None else [likeness],
        prune=prune,
        explain=explain,
    )
    return [hit for _, hit in found]


def search_all(
    corpora: Sequence[Corpus],
    question: str,
    *,
    limit: int,
    allowed: Sequence[Collection[str] | None],
    now: datetime | None = None,
    likeness: Sequence[Sequence[float]] | None = None,
    prune: bool = True,
    explain: bool = True,
) -> list[tuple[int, Hit]]:
    """Return the best answers of several corpora, each with the number of its corpus.

    They score as in one corpus of all documents, but for what neighbours lend.
    """
    scale = Scale.of(corpora)
    asked = _asked(corpora, parse(question), now)
    parts = _parts(corpora, asked, scale)
    filters = [
        None if ids is None else _members(corpus, ids)
        for corpus, ids in zip(corpora, allowed, strict=True)
    ]
    if prune and likeness is None:
        found = _pruned(parts, asked, scale, limit, filters)
    else:
        found = _exhaustive(parts, asked, scale, limit, filters, likeness)
    return [
        (at.corpus, _hit(parts[at.corpus], at.place, found.best, steps, scale if explain else None))
        for at, steps in found.places
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
    terms = _rarest([corpus], list(counts)[:_MOST_SIMILAR_WORDS], _MOST_SIMILAR_TERMS)
    scale = Scale.of([corpus])
    asked: list[_Counted] = []
    whole = 0.0
    for each in terms:
        word = corpus.word(each, lending=False)
        rarity = scale.rarity(word.holders)
        share = scale.value(1.0, counts[each], len(said))
        whole += share * scale.value(rarity, counts[each], len(said))
        asked.append(_Counted(word, share, rarity))
    part = _Part(corpus, terms, asked, [], 0)
    sums = [part.sums(scale)]
    (likely,) = _likely(sums, _slack(asked), limit)
    found = {at: _sum(asked, at, scale.norm(corpus.lengths[at])) for at in likely}
    return {at: min(1.0, score / whole) for at, score in found.items()}


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


# What is asked


def _asked(corpora: Sequence[Corpus], question: Question, now: datetime | None) -> _Asked:
    voices = _named_voices(corpora, question)
    terms = _weighted_terms(corpora, question, voices)
    only_names = bool(terms) and max(terms.values()) < 1 and not question.patterns
    return _Asked(
        question=question,
        voices=voices,
        terms=terms,
        days=_asked_days(corpora, question, now),
        names_only=only_names and any(corpus.spoken(voices) for corpus in corpora),
    )


def _named_voices(corpora: Iterable[Corpus], asked: Question) -> frozenset[str]:
    """Return the speakers and roles that the question names."""
    known = {name for corpus in corpora for voice in corpus.voices for name in voice if name}
    named = {name for name in known if _is_named(name, asked)}
    return frozenset(named | ({_USER} if asked.is_first_person else set()))


def _is_named(name: str, asked: Question) -> bool:
    """Return whether a question names somebody: by the full name, or by a part of it.

    A part must have a capital, or every "review" would mean the agent code-review.
    """
    parts = words(name)
    said = asked.said - STOP_WORDS
    return said.issuperset(parts) or not asked.capitals.isdisjoint(parts)


def _weighted_terms(
    corpora: Sequence[Corpus], asked: Question, voices: Iterable[str]
) -> dict[Term, float]:
    """Return the words to search by, each with its weight."""
    names = {word for name in voices for word in words(name)}
    weights: dict[Term, float] = {}
    for word in asked.words:
        weights.setdefault(term(word), _NAME_WEIGHT if word in names else 1.0)
    return {each: weights[each] for each in _rarest(corpora, list(weights), _MOST_TERMS)}


def _rarest(corpora: Sequence[Corpus], terms: Sequence[Term], limit: int) -> list[Term]:
    """Return the `limit` rarest of `terms`, in the order in which they came."""
    if len(terms) <= limit:
        return list(terms)
    held = {each: sum(corpus.rarity(each) for corpus in corpora) for each in terms}
    rarest = set(sorted(terms, key=lambda each: (held[each], each))[:limit])
    return [each for each in terms if each in rarest]


def _asked_days(corpora: Sequence[Corpus], asked: Question, now: datetime | None) -> frozenset[int]:
    """Return the days of documents that the question names."""
    ranges = [corpus.years for corpus in corpora if corpus.years] or [range(0)]
    years = range(min(each.start for each in ranges), max(each.stop for each in ranges))
    named = named_days(asked.text, years, now)
    return frozenset(
        day
        for corpus in (corpora if named else ())
        for day in corpus.days
        if any(first.toordinal() <= day <= last.toordinal() for first, last in named)
    )


def _parts(corpora: Sequence[Corpus], asked: _Asked, scale: Scale) -> list[_Part]:
    """Return what is asked of each corpus, words being as rare as in all of them."""
    plain = asked.question.patterns
    said = [[corpus.word(each, lending=True) for corpus in corpora] for each in asked.terms]
    matched = [[corpus.pattern(each) for corpus in corpora] for each in plain]
    rows = [*said, *matched]
    weights = [*asked.terms.values(), *(1.0 for _ in plain)]
    rarities = [scale.rarity(sum(word.holders for word in row)) for row in rows]
    parts = []
    for number, corpus in enumerate(corpora):
        counted = [
            _Counted(row[number], weight, rarity)
            for row, weight, rarity in zip(rows, weights, rarities, strict=True)
        ]
        named = corpus.spoken(asked.voices) if asked.voices else 0
        parts.append(_Part(corpus, asked.terms, counted[: len(said)], counted[len(said) :], named))
    return parts


def _members(corpus: Corpus, ids: Collection[str]) -> int:
    place_of = corpus.place_of
    return planes.members_of((place_of[name] for name in ids if name in place_of), len(place_of))


# Scoring only what can be among the best


def _pruned(
    parts: Sequence[_Part],
    asked: _Asked,
    scale: Scale,
    limit: int,
    filters: Sequence[int | None],
) -> _Found:
    """Return what `_exhaustive` returns, without scoring what cannot be among the best."""
    every = [part.sums(scale) for part in parts]
    slack = _slack((*parts[0].words, *parts[0].patterns)) if parts else 0.0
    fetched = 0.0
    if asked.fetches:
        best = max((steps.matched for _, steps in _scored(parts, asked, scale, 0.0, _likely(every, slack, 1))), default=0.0)  # fmt: skip
        fetched = _FETCHED * best or 1.0
    if asked.days:
        every = [_dated(part, sums, asked.days, fetched) for part, sums in zip(parts, every, strict=True)]  # fmt: skip
        slack = slack * _DATE_BOOST + 2 * UNIT
    if asked.voices:
        every = [_spoken(part, sums, fetched if asked.names_only else 0.0) for part, sums in zip(parts, every, strict=True)]  # fmt: skip
        slack = slack * _SPEAKER_BOOST + UNIT
    seen = [
        sums if members is None else Sums(sums.planes, sums.members & members)
        for sums, members in zip(every, filters, strict=True)
    ]
    found = _best(parts, _scored(parts, asked, scale, fetched, _likely(seen, slack, limit)), limit)
    if all(members is None for members in filters):
        return _Found(found, found[0][1].final if found else 0.0)
    first = _scored(parts, asked, scale, fetched, _likely(every, slack, 1))
    return _Found(found, max((steps.final for _, steps in first), default=0.0))


def _slack(counted: Iterable[_Counted]) -> float:
    return shortfall(weight * rarity for _, weight, rarity in counted)


def _dated(part: _Part, sums: Sums, days: Iterable[int], fetched: float) -> Sums:
    """Return the sums with those of the named days raised."""
    meant = part.corpus.on(days)
    halves = planes.within(sums.planes[1:], meant)
    raised = planes.plus(planes.plus(sums.planes, halves), planes.same(int(fetched / UNIT), meant))
    return Sums(raised, sums.members | meant)


def _spoken(part: _Part, sums: Sums, fetched: float) -> Sums:
    """Return the sums with those of the named speakers and roles raised."""
    raised = planes.doubled(sums.planes, part.named)
    if not fetched:
        return Sums(raised, sums.members)
    return Sums(
        planes.plus(raised, planes.same(int(fetched / UNIT), part.named)),
        sums.members | part.named,
    )


def _likely(every: Sequence[Sums], slack: float, limit: int) -> list[list[int]]:
    """Return the places that can be among the best `limit`, if sums fall short by `slack`."""
    if limit < 1:
        return [[] for _ in every]
    # One more for what a number loses that is rounded a last time.
    needed = planes.bar(every, limit) - ceil(slack / UNIT) - 1
    return [list(planes.places_of(planes.reaching(sums, needed))) for sums in every]


def _scored(
    parts: Sequence[_Part],
    asked: _Asked,
    scale: Scale,
    fetched: float,
    places: Iterable[Iterable[int]],
) -> list[tuple[Place, Steps]]:
    """Return the scores at some places of each corpus."""
    out = []
    for number, (part, likely) in enumerate(zip(parts, places, strict=True)):
        lengths = part.corpus.lengths
        meant = part.corpus.on(asked.days) if asked.days else 0
        for place in likely:
            norm = scale.norm(lengths[place])
            words = _sum(part.words, place, norm)
            matched = _sum(part.patterns, place, norm, words) if part.patterns else words
            dated = matched * _DATE_BOOST + fetched if meant >> place & 1 else matched
            spoken = dated
            if part.named >> place & 1:
                spoken = dated * _SPEAKER_BOOST + (fetched if asked.names_only else 0.0)
            out.append((Place(number, place), Steps(words, matched, dated, spoken, spoken)))
    return out


def _sum(counted: Iterable[_Counted], place: int, norm: float, start: float = 0.0) -> float:
    total = start
    for word, weight, rarity in counted:
        count = word.counts.get(place)
        if count:
            total += weight * (rarity * count / (count + norm))
    return total


def _best(
    parts: Sequence[_Part], scored: Iterable[tuple[Place, Steps]], limit: int
) -> list[tuple[Place, Steps]]:
    """Return the best, equal ones in the order of their corpora and by id."""
    found = [
        (-steps.final, at.corpus, parts[at.corpus].corpus.ids[at.place], at, steps)
        for at, steps in scored
        if steps.final
    ]
    found.sort()
    return [(at, steps) for *_, at, steps in found[: max(limit, 0)]]


# Scoring all


def _exhaustive(
    parts: Sequence[_Part],
    asked: _Asked,
    scale: Scale,
    limit: int,
    filters: Sequence[int | None],
    likeness: Sequence[Sequence[float]] | None,
) -> _Found:
    """Return the best places, all documents being scored."""
    summed = [_all_sums(part, scale) for part in parts]
    most = max((max(matched, default=0.0) for _, matched in summed), default=0.0)
    fetched = _FETCHED * most or 1.0
    raised = [
        _raised(part, asked, matched, fetched)
        for part, (_, matched) in zip(parts, summed, strict=True)
    ]
    final = _meant([spoken for _, spoken in raised], likeness)
    best = max((max(scores, default=0.0) for scores in final), default=0.0)
    out = []
    for number, (scores, members) in enumerate(zip(final, filters, strict=True)):
        words, matched = summed[number]
        dated, spoken = raised[number]
        for at in _highest(scores, limit, members):
            steps = Steps(words[at], matched[at], dated[at], spoken[at], scores[at])
            out.append((Place(number, at), steps))
    return _Found(_best(parts, out, limit), best)


def _all_sums(part: _Part, scale: Scale) -> tuple[list[float], list[float]]:
    """Return the sums of words, and those of words and patterns, by place."""
    norms = scale.norms(part.corpus.lengths)
    by_words = [0.0] * len(norms)
    for each in part.words:
        _add(by_words, each, norms)
    matched = by_words
    if part.patterns:
        matched = by_words.copy()
        for each in part.patterns:
            _add(matched, each, norms)
    return by_words, matched


def _add(sums: list[float], counted: _Counted, norms: Sequence[float]) -> None:
    word, weight, rarity = counted
    for place, count in word.counts.items():
        sums[place] += weight * (rarity * count / (count + norms[place]))


def _raised(
    part: _Part, asked: _Asked, scores: list[float], fetched: float
) -> tuple[list[float], list[float]]:
    """Return the scores with those of the named days raised, then of who is named."""
    dated = scores
    if asked.days:
        dated = scores.copy()
        for place in planes.places_of(part.corpus.on(asked.days)):
            dated[place] = scores[place] * _DATE_BOOST + fetched
    spoken = dated
    if part.named:
        spoken = dated.copy()
        for place in planes.places_of(part.named):
            spoken[place] = dated[place] * _SPEAKER_BOOST + (fetched if asked.names_only else 0.0)
    return dated, spoken


def _meant(
    every: list[list[float]], likeness: Sequence[Sequence[float]] | None
) -> list[list[float]]:
    """Return the scores with those of documents of like meaning raised."""
    most = max((max(cosines, default=0.0) for cosines in likeness or ()), default=0.0)
    if likeness is None or most <= 0:
        return every
    best = max((max(scores, default=0.0) for scores in every), default=0.0)
    unit = _MEANING_WEIGHT * (best or 1.0) / most
    return [
        [
            score + unit * cosine if cosine > 0 and (score or cosine >= _LIKE) else score
            for score, cosine in zip(scores, cosines, strict=True)
        ]
        for scores, cosines in zip(every, likeness, strict=True)
    ]


def _highest(scores: Sequence[float], limit: int, members: int | None) -> list[int]:
    """Return the places of at least the highest `limit` scores above 0."""
    if members is not None:
        return [place for place in planes.places_of(members) if scores[place]]
    least = min(nlargest(limit, scores), default=0.0)
    return [at for at, score in enumerate(scores) if score >= least and score]


def _hit(part: _Part, place: int, best: float, steps: Steps, scale: Scale | None) -> Hit:
    """Return what is found at a place; with a scale, what its score is the sum of."""
    name = part.corpus.ids[place]
    if scale is None:
        return Hit(id=name, score=steps.final / best, parts={})
    own = _own(part, scale, place)
    parts = {
        "words": own,
        "neighbours": steps.words - own,
        "phrases": steps.matched - steps.words,
        "dates": steps.dated - steps.matched,
        "speaker": steps.spoken - steps.dated,
        "meaning": steps.final - steps.spoken,
    }
    return Hit(
        id=name,
        score=steps.final / best,
        parts={name: value / best for name, value in parts.items() if value > 1e-12 * best},
    )


def _own(part: _Part, scale: Scale, place: int) -> float:
    """Return what words add to a score when nothing is lent."""
    norm = scale.norm(part.corpus.lengths[place])
    total = 0.0
    for each, (_, weight, rarity) in zip(part.terms, part.words, strict=True):
        count = part.corpus.own_count(each, place)
        total += weight * (rarity * count / (count + norm))
    return total
