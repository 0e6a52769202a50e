"""Answers depend on the documents and the question alone."""

from __future__ import annotations

import random
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smp_git.ask.text.batches import Document
from smp_git.ask.text.cache import SearchCache, search
from tests.search import naive
from tests.search.strategies import page_states, questions, sentences
from tests.search.support import Pages, a_document, follow, hits

states = st.lists(page_states(), min_size=1, max_size=4)


def fresh(pages: Pages) -> SearchCache:
    cache = SearchCache(None)
    follow(cache, pages)
    return cache


@given(states, questions)
def test_any_sequence_of_follows_ends_equal_to_one_fresh_follow(
    history: list[Pages], question: str
) -> None:
    cache = SearchCache(None)
    for pages in history:
        follow(cache, pages)
        hits(cache, question, limit=3)

    expected = hits(fresh(history[-1]), question, limit=10)
    assert hits(cache, question, limit=10) == expected


@given(states, questions)
def test_a_cold_cache_answers_like_a_warm_one(history: list[Pages], question: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        warm = SearchCache(Path(folder) / "cache")
        for pages in history:
            follow(warm, pages)
        cold = SearchCache(Path(folder) / "cache")

        assert follow(cold, history[-1]) == []
        assert hits(cold, question, limit=10) == hits(warm, question, limit=10)


@given(page_states(), questions)
def test_how_documents_are_spread_over_pages_does_not_matter(pages: Pages, question: str) -> None:
    documents = [document for page in pages.values() for document in page]
    alone = {f"p/{n:02}": (document,) for n, document in enumerate(reversed(documents))}

    expected = hits(fresh(pages), question, limit=10)
    assert hits(fresh(alone), question, limit=10) == expected


@given(page_states(), questions, st.sets(st.integers(0, 39).map(lambda n: f"turn-{n}")))
def test_filter_then_rank_equals_rank_then_filter(
    pages: Pages, question: str, allowed: set[str]
) -> None:
    cache = fresh(pages)
    ranked = hits(cache, question, limit=100)

    expected = [hit for hit in ranked if hit.id in allowed]
    assert hits(cache, question, limit=100, allowed=allowed) == expected


@given(page_states(), questions)
def test_a_score_is_the_sum_of_its_parts_between_0_and_1(pages: Pages, question: str) -> None:
    found = search([fresh(pages)], question)
    for number, hit in found.hits(100, [None]):
        assert 0 < hit.score <= 1
        assert sum(found.reason(number, hit.id).parts.values()) == pytest.approx(hit.score)


@given(page_states(), questions)
def test_a_small_limit_gives_the_beginning_of_a_large_one(pages: Pages, question: str) -> None:
    cache = fresh(pages)

    expected = hits(cache, question, limit=100)[:2]
    assert hits(cache, question, limit=2) == expected


@given(page_states(), sentences)
def test_similar_is_between_0_and_1(pages: Pages, text: str) -> None:
    for hit, _ in fresh(pages).similar(text):
        assert 0 < hit.score <= 1


@given(page_states(), questions, st.integers(1, 5), st.integers(1, 3))
def test_several_caches_score_as_one(pages: Pages, question: str, limit: int, count: int) -> None:
    # Sittings are not spread, so that neighbours lend the same.
    documents = sorted((d for page in pages.values() for d in page), key=lambda d: d.id)
    kinds = [tuple(replace(d, kind="decision") for d in documents[n::count]) for n in range(count)]
    one = fresh({"p": tuple(document for part in kinds for document in part)})
    several = [fresh({"p": part}) for part in kinds]
    expected = {hit.id: hit for hit in hits(one, question, limit=100)}
    found = search(several, question).hits(limit, [None] * count)

    assert all(expected[hit.id].score == pytest.approx(hit.score) for _, hit in found)
    scores = sorted((hit.score for hit in expected.values()), reverse=True)
    assert [hit.score for _, hit in found] == pytest.approx(scores[:limit])


@given(page_states(), questions)
def test_scores_are_those_of_the_formula(pages: Pages, question: str) -> None:
    documents = [document for page in pages.values() for document in page]

    check(fresh(pages), documents, question)


def test_scores_are_those_of_the_formula_in_a_large_corpus() -> None:
    rng = random.Random(3)
    vocabulary = [f"w{int(rng.paretovariate(0.7)) % 400}" for _ in range(500)]
    turns = [
        a_document(
            number,
            " ".join([*rng.choices(vocabulary, k=rng.randrange(1, 120)), rng.choice("?.")]),
            speaker=rng.choice(["Ana", "Bo", "Cy"]),
            kind=rng.choice(["turn", "turn", "decision"]),
            at=f"2023-{rng.randrange(1, 13):02}-{rng.randrange(1, 28):02}T00:00:00Z",
        )
        for number in range(600)
    ]
    cache = fresh({f"p{at}": tuple(turns[at : at + 100]) for at in range(0, 600, 100)})
    for _ in range(30):
        extras = [each for each in ("Ana", "in May 2023", "w1*", "*7", "w?1") if rng.random() < 0.3]
        check(cache, turns, " ".join([*rng.choices(vocabulary, k=rng.randrange(1, 7)), *extras]))


def check(cache: SearchCache, documents: list[Document], question: str) -> None:
    """Compare what a cache finds with what the formula says, written as simply as can be."""
    expected = naive.scores(documents, question)
    answers = hits(cache, question, limit=len(documents))

    assert {hit.id: hit.score for hit in answers} == pytest.approx(expected)
    assert [hit.score for hit in answers] == sorted((hit.score for hit in answers), reverse=True)
