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

from smp_git.ask.text import SearchCache, lanes, ranking
from smp_git.ask.text.corpus import Corpus
from smp_git.ask.text.lanes import Sums
from smp_git.ask.text.segments import Segment, encode
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


numbers = st.lists(st.integers(0, 20_000), max_size=40)


def laned(values: list[int]) -> int:
    return lanes.joined(bytes(n & 255 for n in values), bytes(n >> 8 for n in values))


def values(found: int, size: int) -> list[int]:
    return [low | high << 8 for low, high in zip(*lanes.parted(found, size), strict=True)]


@given(st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 20_000), st.booleans()), max_size=40), st.integers(0, 20_000))  # fmt: skip
def test_lanes_reckon_like_numbers(rows: list[tuple[int, int, bool]], number: int) -> None:
    left, right, inside = ([row[n] for row in rows] for n in range(3))
    members, size = bytes(255 * i for i in inside), len(rows)
    places = [place for place, i in enumerate(inside) if i]

    assert values(laned(left) + laned(right), size) == list(map(add, left, right))
    assert values(lanes.within(laned(left), members), size) == list(map(mul, left, inside))
    assert values(lanes.halved(laned(left), members), size) == [n // 2 * i for n, i in zip(left, inside, strict=True)]  # fmt: skip
    assert values(lanes.same(number, members), size) == [number * i for i in inside]
    assert list(lanes.places_of(members)) == places
    assert lanes.members_of(places, size) == members
    assert lanes.either([members, bytes(size)], size) == lanes.both(members, members) == members


@given(st.lists(st.tuples(numbers, st.integers(0, 2**40 - 1)), max_size=3), st.integers(1, 50), st.integers(0, 9_000))  # fmt: skip
def test_who_may_be_among_the_highest_is_among_the_likely(rows: list[tuple[list[int], int]], count: int, slack: int) -> None:  # fmt: skip
    every = [
        Sums(laned(row), len(row), bytes(255 * (who >> at & 1) for at in range(len(row))))
        for row, who in rows
    ]
    seen = [[(at, n) for at, n in enumerate(row) if who >> at & 1] for row, who in rows]
    ordered = sorted((n for row in seen for _, n in row), reverse=True)
    found = lanes.likely(every, count, slack)

    if found is not None:
        least = ordered[count - 1]
        for row, likely in zip(seen, found, strict=True):
            assert {at for at, n in row if n + slack >= least} <= set(likely)
            assert set(likely) <= {at for at, n in row}
            assert all(n + slack + 512 > least for at, n in row if at in likely)


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
