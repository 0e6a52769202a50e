"""A context answers the prompt first, whatever the prompt is, and says what it leaves out and why."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smp_git import Session, Store
from smp_git.ask.context import Context
from smp_git.ask.sources import question_of
from smp_git.model.errors import InvalidQueryError
from tests.query import strategies
from tests.query.strategies import NOW, Added
from tests.query.support import desk
from tests.support import own, untyped


def ids(made: Context, section: str) -> list[str]:
    return [piece.id for piece in made.pieces if piece.section == section]


def reasons(made: Context) -> dict[tuple[str, str], str]:
    return {(item.session, item.id): item.reason for item in made.left_out}


@pytest.mark.parametrize("kind", ["turn", "decision", "finding", "preference", "learning", "artifact"])  # fmt: skip
def test_what_answers_the_prompt_comes_first_of_every_kind(shop: Session, kind: str) -> None:
    with shop.transaction() as tx:
        for number in range(60):
            tx.add("finding", f"slow page {number}", severity="critical", impact="high")
    wanted = shop.add(untyped(kind), "the gasket of the pump leaks")

    made = shop.context(prompt="Please replace the gasket", budget=300)

    assert ids(made, "answers") == [wanted.id]
    assert made.text.startswith("## What answers the question")


def test_answers_leave_room_for_what_matters_anyway(shop: Session) -> None:
    for number in range(40):
        shop.add("learning", f"gasket number {number} was replaced in spring by the night shift")
    pinned = shop.add("preference", "ask before ordering parts", pinned=True)
    finding = shop.add("finding", "the lift is stuck", severity="critical")

    made = shop.context(prompt="gasket", budget=400)

    assert ids(made, "pinned") == [pinned.id]
    assert finding.id in ids(made, "findings")
    assert len(ids(made, "answers")) >= 5


def test_what_shares_a_tag_with_the_answers_goes_before_what_matters_more(shop: Session) -> None:
    with shop.transaction() as tx:
        tx.add("finding", "the gasket leaks", severity="low", tags=["pump.seal"])
        alike = tx.add("finding", "oil on the floor", severity="low", tags=["pump.seal"])
        rule = tx.add("decision", "wear gloves", tags=["pump.seal.safety"])
        for number in range(30):
            tx.add("finding", f"slow page {number}", severity="critical")
            tx.add("decision", f"paint wall {number}", impact="high")

    made = shop.context(prompt="replace the gasket", budget=300)

    assert ids(made, "findings")[0] == alike.id
    assert ids(made, "decisions")[0] == rule.id


def test_answers_come_in_the_order_of_their_words(shop: Session) -> None:
    shop.add("decision", "order paint for the walls of the pump", impact="critical", importance=1.0)
    answer = shop.add("turn", "the gasket of the pump leaks")

    assert ids(shop.context(prompt="replace the gasket of the pump"), "answers")[0] == answer.id


def test_a_pinned_memory_that_answers_keeps_its_room(shop: Session) -> None:
    with shop.transaction() as tx:
        for number in range(40):
            tx.add("learning", f"the gasket number {number} of this pump was replaced in spring")
    pinned = shop.add("preference", "ask before a gasket is ordered " + "from abroad " * 20, pinned=True)  # fmt: skip

    made = shop.context(prompt="gasket of this pump replaced", budget=300)

    assert [piece.shortened for piece in made.pieces if piece.id == pinned.id] == [False]


def test_what_is_over_gives_way_to_what_is_open(shop: Session) -> None:
    over = shop.add("finding", "the gasket leaks " + "badly " * 40)
    shop.resolve(over.id, action="replaced")
    shop.add("finding", "the pump needs a gasket " + "soon " * 40)

    tight = shop.context(prompt="gasket", budget=150)
    roomy = shop.context(prompt="gasket", budget=2000)

    assert "FIND-0002" in ids(tight, "answers")
    assert [piece.shortened for piece in tight.pieces if piece.id == over.id] in ([], [True])
    assert ids(roomy, "answers") == ["FIND-0002", over.id]
    assert "resolution: status resolved" in roomy.text


def test_a_replaced_decision_stands_only_beside_what_replaced_it_in_the_end(shop: Session) -> None:
    old = shop.add("decision", "use MySQL for the bookings " + "and more " * 30)
    middle = shop.supersede(old.id, "use MariaDB")
    last = shop.supersede(middle.id, "use PostgreSQL " + "whatever comes " * 20)

    for budget in (50, 80, 120, 200, 400):
        shown = [piece.id for piece in shop.context(prompt="why MySQL?", budget=budget).pieces]
        assert old.id not in shown or last.id in shown
    made = shop.context(prompt="why MySQL?")
    assert ids(made, "answers")[:2] == [last.id, old.id]
    assert f"superseded by {last.id}" in made.text
    assert old.id not in shop.context().text


def test_in_progress_findings_are_open_and_say_so(shop: Session) -> None:
    shop.add("finding", "being mended", status="in_progress")
    shop.add("finding", "looked at", status="investigating")
    shop.add("finding", "not ours", status="wontfix")

    made = shop.context()

    assert set(ids(made, "findings")) == {"FIND-0001", "FIND-0002"}
    assert "status: in_progress" in made.text


def test_ids_in_a_prompt_are_answers(shop: Session) -> None:
    shop.add("decision", "paint it blue")
    shop.add("finding", "it peels", status="resolved")

    made = shop.context(prompt="is dec-1 still true, and what of FIND-0001 or DEC-99?")

    assert ids(made, "answers") == ["DEC-0001", "FIND-0001"]


def test_the_prompt_itself_is_no_answer(shop: Session) -> None:
    shop.add("turn", "Which gasket fits?")
    answer = shop.add("turn", "The gasket of 40 mm fits.")

    assert ids(shop.context(prompt="Which gasket fits?"), "answers") == [answer.id]


def test_the_state_of_another_agent_is_no_answer(shop: Session) -> None:
    shop.set_state("ada", {"working_memory": ["order a gasket"]})
    assert "order a gasket" not in shop.context("veritas", prompt="gasket").text
    assert "order a gasket" in shop.context("ada", prompt="gasket").text


# Topic and scope


def test_a_topic_acts_on_every_kind_and_the_receipt_says_so(shop: Session) -> None:
    for number in range(8):
        shop.add("turn", f"turn about {'the login' if number % 2 else 'lunch'}", conversation_id=f"c{number % 2}", at=NOW + timedelta(hours=number))  # fmt: skip
    for kind in ("decision", "finding", "learning"):
        shop.add(kind, f"{kind} of the login")
        shop.add(kind, f"{kind} of lunch")

    made = shop.context(topic="login", prompt="lunch")

    newest = {"turn-0008", "turn-0007", "turn-0006"}
    assert {piece.id for piece in made.pieces} == {*newest, "turn-0002", "turn-0004", "DEC-0001", "FIND-0001", "LEARN-0001"}  # fmt: skip
    assert {(item.id, item.reason) for item in made.left_out} == {(name, "not about login") for name in ("DEC-0002", "FIND-0002", "LEARN-0002", "turn-0001", "turn-0003", "turn-0005")}  # fmt: skip


def test_a_topic_that_nothing_is_about_leaves_nothing_out(shop: Session) -> None:
    shop.add("decision", "paint it blue")
    made = shop.context(topic="zeppelin")
    assert ids(made, "decisions") == ["DEC-0001"]
    assert made.left_out == ()


def test_the_primary_topic_of_the_session_goes_first_and_leaves_nothing_out(fast_store: Store) -> None:  # fmt: skip
    with fast_store.create_session("shop", context={"primary_topic": "login"}) as shop:
        first = shop.add("decision", "of the login")
        second = shop.add("decision", "of lunch", impact="high")
        shop.add("preference", "for cooks", applies_to={"domains": ["kitchen"]})
        made = shop.context()
        assert made.topic == "login"
        assert ids(made, "decisions") == [first.id, second.id]
        assert made.left_out == ()
        assert ids(shop.context(topic="lunch"), "decisions") == [second.id]


def test_what_does_not_apply_is_named_with_the_reason(fast_store: Store) -> None:
    with fast_store.global_session() as everywhere:
        everywhere.add("preference", "tabs", category="style", topic="indent")
        everywhere.add("preference", "elsewhere", applies_to={"projects": ["other"]})
        everywhere.add("learning", "gaskets last two years", applies_to={"domains": ["pumps"]})
        everywhere.add("learning", "lifts need oil", applies_to={"projects": "other"})
        everywhere.add("preference", "Ada is colour-blind", category="profile")
    with fast_store.create_session("shop", context={"project_name": "My Shop"}) as shop:
        shop.add("preference", "spaces", category="style", key="indent")
        shop.add("preference", "for cooks", applies_to={"domains": ["kitchen"]})

        made = shop.context(prompt="indent, elsewhere, gaskets", topic="pumps")

        told = reasons(made)
        assert told["global", "PREF-0001"] == "PREF-0001 of this session says otherwise"
        assert told["global", "PREF-0002"] == "applies to other, not to My Shop"
        assert told["global", "LEARN-0002"] == "applies to other, not to My Shop"
        assert told["", "PREF-0002"] == "applies to kitchen, not to pumps"
        assert ids(made, "profile") == ["PREF-0003"]
        assert ids(made, "answers") == ["PREF-0001", "LEARN-0001"]


def test_a_learning_that_applies_to_the_topic_is_about_it(shop: Session) -> None:
    shop.add("decision", "buy two pumps")
    shop.add("learning", "gaskets last two years", applies_to={"domains": ["pumps"]})
    shop.add("learning", "paint dries slowly")

    made = shop.context(topic="pumps", prompt="gaskets and paint")

    assert ids(made, "answers") == ["LEARN-0001"]
    assert reasons(made) == {("", "LEARN-0002"): "not about pumps"}


def test_a_local_preference_that_does_not_apply_overrules_nothing(fast_store: Store) -> None:
    with fast_store.global_session() as everywhere:
        everywhere.add("preference", "tabs", category="style", key="indent")
    with fast_store.create_session("shop") as shop:
        shop.add("preference", "spaces", category="style", key="indent", applies_to={"projects": ["other"]})  # fmt: skip
        assert "tabs" in shop.context().text


def test_a_global_session_that_cannot_be_read_is_named(fast_store: Store) -> None:
    with fast_store.global_session() as everywhere:
        everywhere.add("preference", "tabs")
        place = everywhere.path
    with fast_store.create_session("shop") as shop:
        shop.add("decision", "paint it blue")
        (place / ".git" / "HEAD").rename(place / ".git" / "HEAD.gone")
        made = shop.context(prompt="blue")
        (place / ".git" / "HEAD.gone").rename(place / ".git" / "HEAD")
        assert ids(made, "answers") == ["DEC-0001"]
        assert [item.session for item in made.left_out] == ["global"]
        assert "tabs" in shop.context().text


# Words


def test_nested_values_are_told_in_words(shop: Session) -> None:
    shop.add("finding", "no second factor", location={"artifact": "/docs/requirements.md", "line_numbers": [45, 60], "in": {"part_of": "auth"}}, **own(reviewed_by_humans=True))  # fmt: skip
    shop.set_state("veritas", {"current_context": {"current_task": "verify", "active_artifacts": [{"path": "/docs", "findings_count": 3}]}})  # fmt: skip

    text = shop.context("veritas", prompt="second factor").text

    assert "location: artifact /docs/requirements.md, line numbers 45, 60, in (part of auth)" in text  # fmt: skip
    assert "reviewed by humans: yes" in text
    assert "- current context:\n    - current task: verify\n    - active artifacts:\n      - path /docs, findings count 3" in text  # fmt: skip
    assert "_" not in text


# Anything may be a prompt

_HOSTILE = ["\0\x01\x7f" * 1000, "\ud800 lone", '"unclosed gasket', "* ? ** gasket*", "the of and a", " \n\t ", "", "gasket " * 20_000, "w" * 100_000, " ".join(f"word{n}" for n in range(20_000)), "AND OR NOT NEAR(gasket)", "DEC- turn-0 FIND-99999999999999999999"]  # fmt: skip


@pytest.mark.parametrize("prompt", _HOSTILE, ids=range(len(_HOSTILE)))
def test_no_prompt_is_an_error(shop: Session, prompt: str) -> None:
    shop.add("decision", "the gasket of the pump")
    made = shop.context(prompt=prompt, topic=prompt[:5000], budget=200)
    assert made.used_tokens <= 200
    assert "DEC-0001" in made.text
    assert ("gasket" not in question_of(prompt)) or ids(made, "answers") == ["DEC-0001"]


@settings(max_examples=settings().max_examples // 5)
@given(strategies.additions, st.integers(50, 600), st.text(max_size=80) | st.sampled_from(["cache login", "slow timeout"]), st.none() | st.text(max_size=20))  # fmt: skip
def test_any_prompt_keeps_the_budget_and_each_memory_is_told_once(added: list[Added], budget: int, prompt: str, topic: str | None) -> None:  # fmt: skip
    with desk() as store, store.create_session("shop") as session:
        strategies.add(session, added)
        made = session.context(prompt=prompt, topic=topic, budget=budget, now=NOW)

        shown = [piece.id for piece in made.pieces]
        left = [item.id for item in made.left_out if item.id]
        whole = {piece.id for piece in made.pieces if not piece.shortened}
        turns = [hit.id for hit in session.query(kinds=["turn"], sort=["-created_at", "-id"], now=NOW)]  # fmt: skip
        assert made.used_tokens <= budget
        assert len(set(shown)) == len(shown)
        assert len(set(left)) == len(left)
        assert not whole & set(left)
        assert [*ids(made, "conversation")] == [name for name in reversed(turns) if name in ids(made, "conversation")]  # fmt: skip


def test_a_prompt_must_be_text(shop: Session) -> None:
    with pytest.raises(InvalidQueryError, match="a prompt must be text, not 7"):
        shop.context(prompt=7)  # type: ignore[arg-type]


def test_what_was_deleted_of_the_global_session_is_gone_from_the_next_context(fast_store: Store) -> None:  # fmt: skip
    with fast_store.create_session("shop") as shop:
        with fast_store.global_session() as everywhere:
            for word in ("tabs", "spaces"):
                everywhere.add("preference", f"{word} everywhere")
        assert "tabs" in shop.context(prompt="everywhere").text
        with fast_store.global_session() as everywhere:
            everywhere.delete("PREF-0001")
        made = shop.context(prompt="everywhere")
        assert ids(made, "answers") == ["PREF-0002"]
        assert made.left_out == ()


def test_a_context_of_the_past_counts_as_no_use(fast_store: Store) -> None:
    with fast_store.create_session("shop") as shop, fast_store.global_session() as everywhere:
        everywhere.add("preference", "tabs everywhere")
        shop.add("decision", "tabs here")

        assert ids(shop.context(prompt="tabs", at=shop.head), "answers") == ["DEC-0001", "PREF-0001"]  # fmt: skip

        assert shop.get("DEC-1", at=shop.head).access_count == 0
        assert shop._shared_session().get("PREF-1", at="HEAD").access_count == 0  # type: ignore[union-attr]
