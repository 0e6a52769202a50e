"""Which documents answer a question, and how well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from heapq import nlargest
from math import frexp
from typing import Final, NamedTuple

from smp_git.ask.text import lanes
from smp_git.ask.text.corpus import Corpus, CorpusScale, Word
from smp_git.ask.text.documents import TextHit
from smp_git.ask.text.lanes import Sums
from smp_git.ask.text.questions import Question, named_days, parse
from smp_git.ask.text.segments import Term, term
from smp_git.ask.text.words import STOP_WORDS, words

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


_NOTHING_ELSE: Final = _Asked(parse(""), frozenset(), {}, frozenset(), names_only=False)


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
    named: bytes

    def sums(self, scale: CorpusScale, unit: float) -> int:
        """Return the sums of words and patterns in units, each a little short."""
        gauge = self.corpus.gauge(scale)
        found = 0
        for word, weight, rarity in (*self.words, *self.patterns):
            found += word.values(weight * rarity / unit, gauge)
        return found

    def shortfall(self, scale: CorpusScale, unit: float) -> float:
        """Return how short the sums may be."""
        weights = [each.weight * each.rarity / unit for each in (*self.words, *self.patterns)]
        return self.corpus.gauge(scale).shortfall(weights)

    def touched(self, asked: _Asked) -> bytes:
        """Return the documents that get a score at all."""
        sets = [each.word.members() for each in (*self.words, *self.patterns)]
        if asked.days:
            sets.append(self.corpus.on(asked.days))
        if asked.names_only:
            sets.append(self.named)
        return lanes.either(sets, len(self.corpus.ids))


class _Found(NamedTuple):
    """The best in order: score, number of the corpus, place; and the best score of all.

    `fetched` is what a named day or a name alone adds.
    """

    places: list[tuple[float, int, int]]
    best: float
    fetched: float


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
) -> list[TextHit]:
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
        allowed=[None if allowed is None else corpus.members(allowed)],
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
    allowed: Sequence[bytes | None],
    now: datetime | None = None,
    likeness: Sequence[Sequence[float]] | None = None,
    prune: bool = True,
    explain: bool = True,
) -> list[tuple[int, TextHit]]:
    """Return the best answers of several corpora, each with the number of its corpus.

    They score as in one corpus of all documents, but for what neighbours lend. Allowed
    are all documents of a corpus, or a set of places.
    """
    scale = CorpusScale.of(corpora)
    asked = _asked(corpora, parse(question), now)
    parts = _parts(corpora, asked, scale)
    if prune and likeness is None:
        found = _pruned(parts, asked, scale, limit, allowed)
    else:
        found = _exhaustive(parts, asked, scale, limit, allowed, likeness)
    best = found.best
    return [
        (
            number,
            TextHit(
                parts[number].corpus.ids[at],
                score / best,
                _explained(parts[number], asked, scale, at, found, score) if explain else {},
            ),
        )
        for score, number, at in found.places
    ]


def similar(
    corpus: Corpus,
    text: str,
    *,
    limit: int,
    exclude: str | None = None,
    likeness: Sequence[float] | None = None,
) -> list[TextHit]:
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
    scale = CorpusScale.of([corpus])
    asked: list[_Counted] = []
    whole = 0.0
    for each in terms:
        word = corpus.word(each, lending=False)
        rarity = scale.rarity(word.holders)
        share = scale.value(1.0, counts[each], len(said))
        whole += share * scale.value(rarity, counts[each], len(said))
        asked.append(_Counted(word, share, rarity))
    parts = [_Part(corpus, terms, asked, [], b"")]
    search = _Pruned(parts, _NOTHING_ELSE, scale)
    likely = search.likely([None], limit)
    return {at: min(1.0, score / whole) for score, _, at in search.scored(likely) if score}


def _joined(shares: Mapping[int, float], likeness: Sequence[float]) -> dict[int, float]:
    weight = _SIMILAR_MEANING_WEIGHT
    return {
        place: (shares.get(place, 0.0) + weight * min(1.0, max(0.0, cosine))) / (1 + weight)
        for place, cosine in enumerate(likeness)
        if place in shares or cosine >= _LIKE
    }


def _similar_hit(name: str, share: float, score: float) -> TextHit:
    if share == score:
        return TextHit(id=name, score=score, parts={"words": score})
    by_words = share / (1 + _SIMILAR_MEANING_WEIGHT)
    return TextHit(id=name, score=score, parts={"words": by_words, "meaning": score - by_words})


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
        names_only=only_names and any(any(corpus.spoken(voices)) for corpus in corpora),
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


def _parts(corpora: Sequence[Corpus], asked: _Asked, scale: CorpusScale) -> list[_Part]:
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
        named = corpus.spoken(asked.voices) if asked.voices else b""
        parts.append(_Part(corpus, asked.terms, counted[: len(said)], counted[len(said) :], named))
    return parts


# Scoring only what can be among the best


def _pruned(
    parts: Sequence[_Part],
    asked: _Asked,
    scale: CorpusScale,
    limit: int,
    filters: Sequence[bytes | None],
) -> _Found:
    """Return what `_exhaustive` returns, without scoring what cannot be among the best."""
    search = _Pruned(parts, asked, scale)
    if asked.fetches:
        search.fetch()
    search.lift()
    found = _best(parts, search.scored(search.likely(filters, limit)), limit)
    if any(members is not None for members in filters):
        first = search.scored(search.likely([None] * len(parts), 1))
        return _Found(found, max((score for score, *_ in first), default=0.0), search.fetched)
    return _Found(found, found[0][0] if found else 0.0, search.fetched)


class _Pruned:
    """The sums of all documents in units, each short by no more than `slack`."""

    def __init__(self, parts: Sequence[_Part], asked: _Asked, scale: CorpusScale) -> None:
        self._parts = parts
        self._asked = asked
        self._scale = scale
        # A power of two, so that many questions have the same.
        self._unit = 2.0 ** (frexp(_most(parts, asked))[1] - lanes.BITS)
        self._sums = [part.sums(scale, self._unit) for part in parts]
        # One more for what a number loses that is rounded a last time.
        self._slack = 1 + max((part.shortfall(scale, self._unit) for part in parts), default=0.0)
        self._is_lifted = False
        self.fetched = 0.0

    def fetch(self) -> None:
        """Find out what a named day, or a name alone, adds."""
        first = self.scored(self.likely([None] * len(self._parts), 1))
        self.fetched = _FETCHED * max((score for score, *_ in first), default=0.0) or 1.0

    def lift(self) -> None:
        """Raise the sums of the named days, then those of who is named."""
        asked = self._asked
        self._is_lifted = True
        if asked.days:
            self._sums = list(map(self._dated, self._parts, self._sums))
            self._slack = self._slack * _DATE_BOOST + 2
        if asked.voices:
            self._sums = list(map(self._spoken, self._parts, self._sums))
            self._slack = self._slack * _SPEAKER_BOOST + 1

    def _dated(self, part: _Part, sums: int) -> int:
        meant = part.corpus.on(self._asked.days)
        return sums + lanes.halved(sums, meant) + lanes.same(int(self.fetched / self._unit), meant)

    def _spoken(self, part: _Part, sums: int) -> int:
        raised = sums + lanes.within(sums, part.named)
        if not self._asked.names_only:
            return raised
        return raised + lanes.same(int(self.fetched / self._unit), part.named)

    def likely(self, filters: Sequence[bytes | None], limit: int) -> list[list[int]]:
        """Return the places that can be among the best `limit`, corpus by corpus."""
        if limit < 1:
            return [[] for _ in self._parts]
        every = [
            Sums(sums, len(part.corpus.ids), members)
            for sums, part, members in zip(self._sums, self._parts, filters, strict=True)
        ]
        found = lanes.likely(every, limit, self._slack)
        if found is not None:
            return found
        return [
            list(lanes.places_of(_narrowed(part.touched(self._asked), members)))
            for part, members in zip(self._parts, filters, strict=True)
        ]

    def scored(self, places: Iterable[list[int]]) -> list[tuple[float, int, int]]:
        """Return the scores at some places of each corpus, with its number and the place."""
        return [
            (score, number, at)
            for number, (part, likely) in enumerate(zip(self._parts, places, strict=True))
            for score, at in self._scored(part, likely)
        ]

    def _scored(self, part: _Part, places: list[int]) -> Iterable[tuple[float, int]]:
        norms = self._scale.norms(map(part.corpus.lengths.__getitem__, places))
        counted = [
            (each.word.counts, each.weight, each.rarity) for each in (*part.words, *part.patterns)
        ]
        scores: list[float] = []
        for place, norm in zip(places, norms, strict=True):
            total = 0.0
            for counts, weight, rarity in counted:
                count = counts[place]
                if count:
                    total += weight * (rarity * count / (count + norm))
            scores.append(total)
        if self._is_lifted and (part.named or self._asked.days):
            lifted = _Lifted(part, self._asked, self.fetched)
            scores = [
                lifted.spoken(at, lifted.dated(at, score))
                for at, score in zip(places, scores, strict=True)
            ]
        return zip(scores, places, strict=True)


def _most(parts: Sequence[_Part], asked: _Asked) -> float:
    """Return what no score exceeds."""
    weights = [
        weight * rarity for part in parts[:1] for _, weight, rarity in (*part.words, *part.patterns)
    ]
    # With a little room for rounding, and for what a day fetches where no word is found.
    most = 1.01 * sum(weights) or 1.0
    fetched = max(1.0, _FETCHED * most)
    if asked.days:
        most = most * _DATE_BOOST + fetched
    return most * _SPEAKER_BOOST + fetched if asked.voices else most


def _narrowed(members: bytes, allowed: bytes | None) -> bytes:
    return members if allowed is None else lanes.both(members, allowed)


class _Lifted:
    """How the score of a document rises if it is of a named day, or by who is named."""

    def __init__(self, part: _Part, asked: _Asked, fetched: float) -> None:
        nobody = bytes(len(part.corpus.ids))
        self._meant = part.corpus.on(asked.days) if asked.days else nobody
        self._named = part.named or nobody
        self._fetched = fetched
        self._fetched_by_name = fetched if asked.names_only else 0.0

    def dated(self, place: int, score: float) -> float:
        """Return a score with what a named day adds."""
        return score * _DATE_BOOST + self._fetched if self._meant[place] else score

    def spoken(self, place: int, score: float) -> float:
        """Return a score with what a named speaker adds."""
        if self._named[place]:
            return score * _SPEAKER_BOOST + self._fetched_by_name
        return score


def _best(
    parts: Sequence[_Part], scored: Iterable[tuple[float, int, int]], limit: int
) -> list[tuple[float, int, int]]:
    """Return the best, equal ones in the order of their corpora and by id."""
    found = [
        (-score, number, parts[number].corpus.ids[at], at) for score, number, at in scored if score
    ]
    found.sort()
    return [(-score, number, at) for score, number, _, at in found[: max(limit, 0)]]


# Scoring all


def _exhaustive(
    parts: Sequence[_Part],
    asked: _Asked,
    scale: CorpusScale,
    limit: int,
    filters: Sequence[bytes | None],
    likeness: Sequence[Sequence[float]] | None,
) -> _Found:
    """Return the best places, all documents being scored."""
    summed = [_all_sums(part, scale) for part in parts]
    fetched = 0.0
    if asked.fetches:
        fetched = _FETCHED * max((max(sums, default=0.0) for sums in summed), default=0.0) or 1.0
    raised = [_raised(part, asked, sums, fetched) for part, sums in zip(parts, summed, strict=True)]
    final = _meant(raised, likeness)
    best = max((max(scores, default=0.0) for scores in final), default=0.0)
    out = [
        (scores[at], number, at)
        for number, (scores, members) in enumerate(zip(final, filters, strict=True))
        for at in _highest(scores, limit, members)
    ]
    return _Found(_best(parts, out, limit), best, fetched)


def _all_sums(part: _Part, scale: CorpusScale) -> list[float]:
    """Return the sums of words and patterns, by place."""
    norms = scale.norms(part.corpus.lengths)
    sums = [0.0] * len(norms)
    for word, weight, rarity in (*part.words, *part.patterns):
        for place, count in enumerate(word.counts):
            if count:
                sums[place] += weight * (rarity * count / (count + norms[place]))
    return sums


def _raised(part: _Part, asked: _Asked, sums: list[float], fetched: float) -> list[float]:
    """Return the sums with those of the named days raised, then of who is named."""
    if not asked.days and not part.named:
        return sums
    lifted = _Lifted(part, asked, fetched)
    return [lifted.spoken(at, lifted.dated(at, score)) for at, score in enumerate(sums)]


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


def _highest(scores: Sequence[float], limit: int, members: bytes | None) -> list[int]:
    """Return the places of at least the highest `limit` scores above 0."""
    if members is not None:
        return [place for place in lanes.places_of(members) if scores[place]]
    least = min(nlargest(limit, scores), default=0.0)
    return [at for at, score in enumerate(scores) if score >= least and score]


# Why


def _explained(
    part: _Part, asked: _Asked, scale: CorpusScale, place: int, found: _Found, final: float
) -> Mapping[str, float]:
    """Return what the score of a document is the sum of."""
    norm = scale.norm(part.corpus.lengths[place])
    by_words = _sum(part.words, place, norm, 0.0)
    matched = _sum(part.patterns, place, norm, by_words)
    lifted = _Lifted(part, asked, found.fetched)
    dated = lifted.dated(place, matched)
    spoken = lifted.spoken(place, dated)
    own = _own(part, place, norm)
    parts = {
        "words": own,
        "neighbours": by_words - own,
        "phrases": matched - by_words,
        "dates": dated - matched,
        "speaker": spoken - dated,
        "meaning": final - spoken,
    }
    best = found.best
    return {name: value / best for name, value in parts.items() if value > 1e-12 * best}


def _sum(counted: Iterable[_Counted], place: int, norm: float, start: float) -> float:
    total = start
    for word, weight, rarity in counted:
        count = word.counts[place]
        if count:
            total += weight * (rarity * count / (count + norm))
    return total


def _own(part: _Part, place: int, norm: float) -> float:
    """Return what words add to a score when nothing is lent."""
    total = 0.0
    for each, (_, weight, rarity) in zip(part.terms, part.words, strict=True):
        count = part.corpus.own_count(each, place)
        total += weight * (rarity * count / (count + norm))
    return total
