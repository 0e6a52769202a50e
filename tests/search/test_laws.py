"""Answers depend on the documents and the question alone."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smp_git.search import SearchCache
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
