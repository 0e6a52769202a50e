"""The same answer cold, warm, in a clone, after a rebuild, and by looking through the files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from smp_git import Session, Store
from smp_git.ask import desk as desks
from tests.conftest import Clock
from tests.query import naive, strategies
from tests.query.strategies import NOW, Added, Edit
from tests.query.support import asked as asked_of
from tests.query.support import cloned, desk, scored, without_caches

Parts = dict[str, Any]
# An example here writes and asks as much as ten elsewhere.
EXAMPLES = settings().max_examples // 10


@pytest.fixture(autouse=True, scope="module")
def _every_catalogue_is_kept() -> Iterator[None]:
    with patch.object(desks, "_WORTH_KEEPING", 1):
        yield


def _cold(store: Store) -> Session:
    return Store.open(store.path, clock=Clock()).session("shop")


@settings(max_examples=EXAMPLES)
@given(strategies.additions, strategies.edits, st.lists(strategies.queries, min_size=3, max_size=6))
def test_every_way_to_ask_gives_what_the_files_say(
    added: list[Added], edits: list[Edit], asked: list[Parts]
) -> None:
    with desk() as store, store.create_session("shop") as warm:
        strategies.add(warm, added)
        before = naive.scan(warm.path, NOW)
        then = warm.head
        assert [asked_of(warm, now=NOW, **p) for p in asked] == [naive.answer(before, p, NOW) for p in asked]  # fmt: skip

        with _cold(store) as other:
            strategies.apply(other, edits)

        after = naive.scan(warm.path, NOW)
        expected = [naive.answer(after, parts, NOW) for parts in asked]
        assert [asked_of(warm, now=NOW, **parts) for parts in asked] == expected
        with _cold(store) as cold:
            assert [asked_of(cold, now=NOW, spec=parts) for parts in asked] == expected
            past = [asked_of(cold, now=NOW, at=then, **parts) for parts in asked]
            assert past == [naive.answer(before, parts, NOW) for parts in asked]
        with _cold(store) as from_shelf:
            assert [asked_of(from_shelf, now=NOW, **parts) for parts in asked] == expected
        without_caches(warm)
        with _cold(store) as rebuilt, cloned(warm, Clock()) as clone:
            assert [asked_of(rebuilt, now=NOW, **parts) for parts in asked] == expected
            assert [asked_of(clone, now=NOW, **parts) for parts in asked] == expected


@settings(max_examples=2 * EXAMPLES)
@given(
    strategies.additions, strategies.edits, st.lists(strategies.operators, min_size=20, max_size=30)
)
def test_every_operator_on_every_field_says_what_the_files_say(
    added: list[Added], edits: list[Edit], asked: list[Parts]
) -> None:
    with desk() as store, store.create_session("shop") as session:
        strategies.add(session, added)
        strategies.apply(session, edits)
        known = naive.scan(session.path, NOW)

        for parts in asked:
            assert (parts, asked_of(session, now=NOW, **parts)) == (parts, naive.answer(known, parts, NOW))  # fmt: skip


@settings(max_examples=EXAMPLES)
@given(strategies.additions, strategies.edits, strategies.questions, strategies.filters)
def test_words_find_the_same_with_the_same_scores_everywhere(
    added: list[Added], edits: list[Edit], text: str, parts: Parts
) -> None:
    with desk() as store, store.create_session("shop") as warm:
        strategies.add(warm, added)
        assume(not naive.refusal(naive.scan(warm.path, NOW), parts))
        warm.query(text, now=NOW, **parts)
        with _cold(store) as other:
            strategies.apply(other, edits)
        assume(not naive.refusal(naive.scan(warm.path, NOW), parts))
        expected = scored(warm.query(text, now=NOW, **parts))
        members = {hit.id for hit in warm.query(now=NOW, **parts, limit=None)}
        everything = scored(warm.query(text, now=NOW, limit=None))

        assert {name for name, _ in expected} <= members
        assert sorted(expected) == sorted(pair for pair in everything if pair[0] in members)
        with _cold(store) as cold:
            assert scored(cold.query(text, now=NOW, **parts)) == expected
        without_caches(warm)
        with _cold(store) as rebuilt, cloned(warm, Clock()) as clone:
            assert scored(rebuilt.query(text, now=NOW, **parts)) == expected
            assert scored(clone.query(text, now=NOW, **parts)) == expected


@settings(max_examples=EXAMPLES)
@given(strategies.additions, st.none() | strategies.questions, strategies.queries)
def test_pages_are_slices_of_the_whole_answer(
    added: list[Added], text: str | None, parts: Parts
) -> None:
    whole = {**parts, "limit": None, "offset": 0}
    with desk() as store, store.create_session("shop") as session:
        strategies.add(session, added)
        assume(not naive.refusal(naive.scan(session.path, NOW), parts))
        everything = scored(session.query(text, now=NOW, **whole))

        for first in range(0, len(everything) + 2, 2):
            page = session.query(text, now=NOW, **{**whole, "limit": 2, "offset": first})
            assert scored(page) == everything[first : first + 2]
            assert page.total == len(everything)
