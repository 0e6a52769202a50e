"""Answers depend on the documents and the question alone."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smp_git.search import SearchCache, ranking
from smp_git.search.corpus import Corpus
from smp_git.search.pruning import Impacts, Weighted, best_sums
from smp_git.search.segments import Segment, encode
from tests.search.strategies import page_states, questions, sentences
from tests.search.support import Pages, follow

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


impacts = st.dictionaries(st.integers(0, 30), st.floats(0.01, 8), max_size=20).map(
    lambda values: Impacts(9.0, max(values.values(), default=0.0), values)
)


@given(
    st.lists(st.builds(Weighted, impacts, st.sampled_from([1.0, 0.3])), max_size=6),
    st.integers(1, 4),
    st.frozensets(st.integers(0, 30)),
)
def test_best_sums_hold_every_place_that_is_among_the_best(
    words: list[Weighted], limit: int, raised: frozenset[int]
) -> None:
    sums = [0.0] * 31
    for word in words:
        word.add_to(sums)
    finals = {at: 2 * s if at in raised else s for at, s in enumerate(sums) if s}
    found = best_sums(words, limit, raised, 2.0)

    bar = min(sorted(finals.values())[-limit:], default=0.0)
    assert {at for at, final in finals.items() if final >= bar} <= found.keys()
    assert all(found[at] == sums[at] for at in found)
