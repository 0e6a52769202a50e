"""A context keeps its budget, gives up what matters least, and says what it gave up."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smp_git import Session, Store
from smp_git.ask.context import tokens
from smp_git.model.errors import InvalidQueryError
from tests.query import strategies
from tests.query.strategies import NOW, Added
from tests.query.support import desk


def filled(shop: Session) -> None:
    with shop.transaction(agent="ada") as tx:
        for number in range(30):
            tx.add("turn", f"turn {number} about login {'words ' * 30}", at=NOW - timedelta(hours=50 - number), speaker="Ada")  # fmt: skip
        for number in range(25):
            tx.add("decision", f"decision {number} about login", rationale="because " * 20)
        for number in range(60):
            tx.add("finding", f"finding {number}", severity="low" if number else "critical")
        tx.add("preference", "short names", key="names", category="style")
        tx.add("learning", "worth keeping", pinned=True)
    shop.set_state("veritas", {"working_memory": ["the login page"]})


@pytest.mark.parametrize("budget", [50, 120, 300, 1000, 4000, 50_000])
def test_the_budget_is_kept_by_measured_tokens_and_the_receipt_is_complete(shop: Session, budget: int) -> None:  # fmt: skip
    filled(shop)
    made = shop.context("veritas", topic="login", turns=10, budget=budget, now=NOW)

    assert tokens(made.text) == made.used_tokens <= budget
    whole = {piece.id for piece in made.pieces if not piece.shortened}
    left = {item.id for item in made.left_out}
    turns = {f"turn-{number:04d}" for number in range(21, 31)}
    findings = {f"FIND-{number:04d}" for number in range(1, 61)}
    decisions = {f"DEC-{number:04d}" for number in range(1, 26)}
    assert whole | left == {*turns, *findings, *decisions, "PREF-0001", "LEARN-0001", "state-veritas"}  # fmt: skip
    assert whole & left == set()
    assert all(item.reason for item in made.left_out)
    if made.pieces:
        assert "LEARN-0001" in {piece.id for piece in made.pieces}
    if budget >= 300:
        assert {"turn-0028", "turn-0029", "turn-0030"} <= {piece.id for piece in made.pieces}


@settings(max_examples=settings().max_examples // 5)
@given(strategies.additions, st.integers(50, 400), st.none() | st.just("cache login"))
def test_what_matters_most_is_never_left_out_for_something_else(added: list[Added], budget: int, topic: str | None) -> None:  # fmt: skip
    with desk() as store, store.create_session("shop") as session:
        strategies.add(session, added)
        made = session.context(topic=topic, budget=budget, now=NOW)
        same = session.context(topic=topic, budget=budget, now=NOW)

        pinned = {memory.id for memory in session.memories() if memory.pinned}
        turns = [hit.id for hit in session.query(kinds=["turn"], sort=["-created_at", "-id"], now=NOW)]  # fmt: skip
        protected = pinned | set(turns[:3])
        dropped = {item.id for item in made.left_out if item.reason.startswith("no room")}
        assert same.text == made.text
        assert made.used_tokens <= budget
        if dropped & protected:
            assert {piece.id for piece in made.pieces} <= protected


def test_many_findings_are_counted_where_they_are_not_named(shop: Session) -> None:
    with shop.transaction(agent="ada") as tx:
        for number in range(210):
            tx.add("finding", f"finding {number}")

    made = shop.context(budget=500)

    named = {piece.id for piece in made.pieces} | {item.id for item in made.left_out if item.id}
    assert len(named) == 200
    assert made.left_out[-1][:3] == ("", "findings", "10 more of its kind")


def test_own_state_decisions_links_and_replacements_are_told(shop: Session) -> None:
    finding = shop.add("finding", "login is slow", severity="high")
    old = shop.add("decision", "cache the login", links=[("resolves", finding.id)])
    shop.supersede(old.id, "cache the login for an hour")
    shop.add("turn", "see there", memory_refs=[finding.id])
    shop.set_state("veritas", {"working_memory": ["login"]})
    shop.set_state("ada", {"working_memory": ["another"]})

    text = shop.context("veritas", topic="login").text

    assert f"resolves {finding.id}" in text
    assert "superseded by DEC-" in text
    assert "## Open findings" in text
    assert "- login" in text
    assert "another" not in text


def test_global_preferences_apply_by_project_and_topic(fast_store: Store) -> None:
    with fast_store.global_session() as everywhere:
        everywhere.add("preference", "tabs everywhere", category="style", key="indent")
        everywhere.add("preference", "only elsewhere", applies_to={"projects": ["other"]})
        everywhere.add("preference", "only here", applies_to={"projects": ["My Shop"]})
        everywhere.add("preference", "only of design", applies_to={"domains": ["design"]})
        everywhere.add("preference", "of login", applies_to={"domains": ["login page"]})
    with fast_store.create_session("shop", context={"project_name": "my-shop"}) as shop:
        shop.add("preference", "own names")
        text = shop.context(topic="the login").text
        assert all(
            word in text for word in ("tabs everywhere", "only here", "of login", "own names")
        )
        assert not re.search("only elsewhere|only of design", text)
        assert "(global)" in text

        shop.add("preference", "spaces here", category="style", key="indent")
        made = shop.context()
        assert "spaces here" in made.text
        assert "tabs everywhere" not in made.text
        assert [piece.id for piece in made.pieces if piece.session == "global"]
        names = [(piece.session, piece.id) for piece in made.pieces]
        assert ("", "PREF-0001") in names and ("global", "PREF-0003") in names


def test_a_context_of_the_past_and_its_bounds(shop: Session) -> None:
    shop.add("turn", "first")
    then = shop.head
    shop.add("turn", "second")

    assert "second" not in shop.context(at=then).text
    assert shop.context(turns=1).text.count("turn-") == 1
    for wrong in ({"budget": 49}, {"turns": -1}):
        with pytest.raises(InvalidQueryError):
            shop.context(**wrong)  # type: ignore[arg-type]
