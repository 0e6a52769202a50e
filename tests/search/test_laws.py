"""Answers depend on the documents and the question alone."""

from __future__ import annotations

import random
import tempfile
from dataclasses import replace
from operator import add, mul
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smp_git.search import SearchCache, planes, ranking
from smp_git.search.corpus import Corpus
from smp_git.search.planes import Sums
from smp_git.search.segments import Segment, encode
from tests.search.strategies import page_states, questions, sentences
from tests.search.support import Pages, a_document, follow

states = st.lists(page_states(), min_size=1, max_size=4)


def fresh(pages: Pages) -> SearchCache:
    cache = SearchCache.open(None)
    follow(cache, pages)
    return cache


@given(states, questions)
def test_any_sequence_of_follows_ends_equal_to_one_fresh_follow(
    history: list[Pages], question: str
) -> None:
    cache = SearchCache.open(None)
    for pages in history:
        follow(cache, pages)
        cache.search(question, limit=3)

    expected = fresh(history[-1]).search(question, limit=10)
    assert cache.search(question, limit=10) == expected


@given(states, questions)
def test_a_cold_cache_answers_like_a_warm_one(history: list[Pages], question: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        warm = SearchCache.open(Path(folder) / "cache")
        for pages in history:
            follow(warm, pages)
        cold = SearchCache.open(Path(folder) / "cache")

        assert follow(cold, history[-1]) == []
        assert cold.search(question, limit=10) == warm.search(question, limit=10)


@given(page_states(), questions)
def test_how_documents_are_spread_over_pages_does_not_matter(pages: Pages, question: str) -> None:
    documents = [document for page in pages.values() for document in page]
    alone = {f"p/{n:02}": (document,) for n, document in enumerate(reversed(documents))}

    expected = fresh(pages).search(question, limit=10)
    assert fresh(alone).search(question, limit=10) == expected


@given(page_states(), questions, st.sets(st.integers(0, 39).map(lambda n: f"turn-{n}")))
def test_filter_then_rank_equals_rank_then_filter(
    pages: Pages, question: str, allowed: set[str]
) -> None:
    cache = fresh(pages)
    ranked = cache.search(question, limit=100)

    expected = [hit for hit in ranked if hit.id in allowed]
    assert cache.search(question, limit=100, allowed=allowed) == expected


@given(page_states(), questions)
def test_a_score_is_the_sum_of_its_parts_between_0_and_1(pages: Pages, question: str) -> None:
    for hit in fresh(pages).search(question, limit=100):
        assert 0 < hit.score <= 1
        assert sum(hit.parts.values()) == pytest.approx(hit.score)


@given(page_states(), questions)
def test_a_small_limit_gives_the_beginning_of_a_large_one(pages: Pages, question: str) -> None:
    cache = fresh(pages)

    expected = cache.search(question, limit=100)[:2]
    assert cache.search(question, limit=2) == expected


@given(page_states(), sentences)
def test_similar_is_between_0_and_1_and_never_the_excluded(pages: Pages, text: str) -> None:
    for hit in fresh(pages).similar(text, limit=10, exclude="turn-1"):
        assert 0 < hit.score <= 1
        assert hit.id != "turn-1"


@given(page_states(), questions, st.integers(1, 5))
def test_pruned_equals_exhaustive(pages: Pages, question: str, limit: int) -> None:
    corpus = Corpus([Segment(encode(page)) for page in pages.values()])

    expected = ranking.search(corpus, question, limit=limit, prune=False)
    assert ranking.search(corpus, question, limit=limit) == expected


numbers = st.lists(st.integers(0, 255), max_size=40)


def values(sums: planes.Planes, size: int) -> list[int]:
    return [
        sum((plane >> place & 1) << bit for bit, plane in enumerate(sums)) for place in range(size)
    ]


@given(numbers, numbers, st.integers(0, 300), st.integers(0, 6), st.integers(0, 2**40 - 1))
def test_planes_reckon_like_numbers(
    left: list[int], right: list[int], factor: int, drop: int, members: int
) -> None:
    size = max(len(left), len(right))
    one, other = planes.spread(bytes(left)), planes.spread(bytes(right))
    left, right = left + [0] * (size - len(left)), right + [0] * (size - len(right))
    inside = [members >> place & 1 for place in range(size)]

    assert values(planes.plus(one, other), size) == list(map(add, left, right))
    assert values(planes.times(one, factor, drop), size) == [n * factor >> drop for n in left]
    assert values(planes.within(one, members), size) == list(map(mul, left, inside))
    assert values(planes.doubled(one, members), size) == [n << i for n, i in zip(left, inside, strict=True)]  # fmt: skip
    assert values(planes.same(factor, members), size) == [factor * i for i in inside]


@given(st.lists(numbers, max_size=3), st.integers(1, 50), st.integers(0, 300))
def test_the_bar_is_what_so_many_reach(rows: list[list[int]], count: int, number: int) -> None:
    every = [Sums(planes.spread(bytes(row)), (1 << len(row)) - 1) for row in rows]
    ordered = sorted((n for row in rows for n in row), reverse=True)

    assert planes.bar(every, count) == (ordered[count - 1] if count <= len(ordered) else 0)
    for row, sums in zip(rows, every, strict=True):
        reached = planes.reaching(sums, number)
        assert list(planes.places_of(reached)) == [at for at, n in enumerate(row) if n >= number]
        assert planes.members_of(planes.places_of(reached), len(row)) == reached


@given(page_states(), questions, st.integers(1, 5), st.integers(1, 3))
def test_several_corpora_score_as_one(pages: Pages, question: str, limit: int, count: int) -> None:
    # Sittings are not spread, so that neighbours lend the same.
    documents = sorted((d for page in pages.values() for d in page), key=lambda d: d.id)
    kinds = [[replace(d, kind="decision") for d in documents[n::count]] for n in range(count)]
    one = Corpus([Segment(encode([d for part in kinds for d in part]))])
    several = [Corpus([Segment(encode(part))]) for part in kinds]
    expected = {hit.id: hit for hit in ranking.search(one, question, limit=100)}
    found = ranking.search_all(several, question, limit=limit, allowed=[None] * count)

    assert all(expected[hit.id] == hit for _, hit in found)
    scores = sorted((hit.score for hit in expected.values()), reverse=True)
    assert [hit.score for _, hit in found] == scores[:limit]
    slow = ranking.search_all(several, question, limit=limit, allowed=[None] * count, prune=False)
    assert slow == found


def test_pruned_equals_exhaustive_in_a_large_corpus() -> None:
    rng = random.Random(3)
    vocabulary = [f"w{int(rng.paretovariate(0.7)) % 400}" for _ in range(500)]
    turns = [
        a_document(
            number,
            " ".join(rng.choices(vocabulary, k=rng.randrange(1, 120))),
            speaker=rng.choice(["Ana", "Bo", "Cy"]),
            kind=rng.choice(["turn", "decision"]),
            at=f"2023-{rng.randrange(1, 13):02}-{rng.randrange(1, 28):02}T00:00:00Z",
        )
        for number in range(1_000)
    ]
    corpus = Corpus([Segment(encode(turns[at : at + 100])) for at in range(0, 1_000, 100)])
    for _ in range(100):
        extras = [each for each in ("Ana", "in May 2023", "w1*") if rng.random() < 0.3]
        question = " ".join([*rng.choices(vocabulary, k=rng.randrange(1, 7)), *extras])
        some = {turn.id for turn in rng.sample(turns, 300)} if rng.random() < 0.5 else None
        limit = rng.choice([1, 3, 10, 50, 200])
        expected = ranking.search(corpus, question, limit=limit, allowed=some, prune=False)

        assert ranking.search(corpus, question, limit=limit, allowed=some) == expected
