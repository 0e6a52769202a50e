"""Words that name a field choose what comes first; every hit says why it is there."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from smp_git import Session, Store
from tests.query.support import CACHES
from tests.support import own


@pytest.fixture
def filled(shop: Session) -> Session:
    shop.add("turn", "which payments fail, and is the gate open?", agent="ada")
    shop.add("turn", "those of last night", agent="bo")
    shop.add("finding", "payments are booked twice", severity="critical", tags=["billing.cards"])
    shop.add("finding", "the login page is slow", severity="low")
    shop.add("decision", "retry payments once", agent="architect")
    shop.add("decision", "pay in francs", agent="planner", pinned=True)
    shop.resolve("FIND-0002", action="a cache")
    return shop


def ids(session: Session, text: str, **parts: object) -> list[str]:
    return [hit.id for hit in session.query(text, **parts)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("findings about payments", "FIND-0001"),
        ("what did we decide about payments", "DEC-0001"),
        ("who said that payments fail", "turn-0001"),
        ("resolved findings", "FIND-0002"),
        ("what is still open?", "FIND-0001"),
        ("unresolved bugs", "FIND-0001"),
        ("pinned decisions", "DEC-0002"),
        ("decisions by the architect", "DEC-0001"),
        ("critical findings in billing", "FIND-0001"),
        ("the open gate", "turn-0001"),
    ],
)
def test_what_a_question_names_comes_first(filled: Session, question: str, first: str) -> None:
    assert ids(filled, question)[0] == first


def test_a_question_of_fields_alone_has_them_without_a_word(filled: Session) -> None:
    assert {"FIND-0001"} <= set(ids(filled, "open"))
    assert set(ids(filled, "decisions")) == {"DEC-0001", "DEC-0002"}


def test_a_filter_is_not_steered_again(filled: Session) -> None:
    hits = filled.query("findings about payments", kinds=["decision"], explain=True)

    assert [hit.id for hit in hits] == ["DEC-0001"]
    assert not [line for line in hits[0].why if line.startswith(("kind", "not kind"))]


def test_explain_says_what_steers_and_what_it_costs(filled: Session) -> None:
    why = {
        str(hit.id): hit.why
        for hit in filled.query("critical findings about payments", explain=True)
    }

    assert {"kind finding", "severity critical"} <= set(why["FIND-0001"])
    assert "not kind finding (findings): text x 0.50" in why["DEC-0001"]
    assert "not severity critical (critical): text x 0.50" in why["DEC-0001"]


def test_a_hit_says_its_words_its_tag_and_its_neighbour(filled: Session) -> None:
    why = {str(hit.id): hit.why for hit in filled.query("payments by card")}

    assert why["FIND-0001"][:2] == ("matches payments, card", "tag billing.cards")
    assert why["turn-0002"][0] == "next to turn-0001"


def test_a_named_day_or_person_is_worth_more_than_the_same_words(shop: Session) -> None:
    """Where a question names nothing else, "may" and a mention of Zoë are not what is asked."""
    day = datetime(2026, 5, 29, 9, tzinfo=UTC)
    shop.add("decision", "what may stay on the device", agent="bo", at=day.replace(day=2))
    shop.add("decision", "two plain machines", agent="bo", at=day)
    shop.add("preference", "Zoë wants short commits", agent="zoe", at=day.replace(day=3))
    shop.add("finding", "labels break in the middle", agent="zoe", at=day.replace(day=3))
    now = day.replace(month=7)

    assert ids(shop, "what was decided on May 29", now=now)[0] == "DEC-0002"
    assert ids(shop, "findings by Zoë", now=now)[0] == "FIND-0001"


def test_a_state_is_asked_for_by_what_its_agent_does(shop: Session) -> None:
    shop.add("decision", "let them wait in a waiting room", agent="bo")
    shop.add("learning", "waiting is expensive", agent="bo")
    shop.set_state("planner", {"waiting_for": "the figures", "blocked_by": {"who": "legal"}})

    for question in ("what is the planner waiting for?", "blocked by legal", "who is blocked"):
        assert ids(shop, question)[0] == "state-planner"


def test_names_of_fields_are_searched_if_the_writer_gave_them(shop: Session) -> None:
    shop.add("finding", "the export is slow", **own(deadline="Friday"), severity="low")
    shop.resolve("FIND-1", action="a job")

    assert ids(shop, "deadline") == ["FIND-0001"]
    assert ids(shop, "severity taken") == []


def test_every_hit_says_why_it_is_there(shop: Session) -> None:
    clock = shop._handle.clock
    old = shop.add("decision", "run on Kubernetes", agent="ops")
    new = shop.supersede(old.id, "two virtual machines will do", agent="ops")
    said = shop.add("turn", "the lift is broken", speaker="Maria", role="user")
    day = f"{clock():%-d %B %Y}"

    def why(question: str, name: str) -> tuple[str, ...]:
        hits = shop.query(question, now=clock() + timedelta(minutes=1))
        assert all(not hit.why[0].startswith("text ") for hit in hits)
        return next(hit.why for hit in hits if hit.id == name)

    assert why("why Kubernetes?", new.id)[0] == f"replaces {old.id}"
    assert why("what did Maria tell", said.id)[0] == "by Maria"
    assert why(f"on {day}", said.id)[0] == f"of {clock():%Y-%m-%d}"
    assert why("lift", said.id)[0] == "matches lift"


def test_explain_shows_the_parts_of_a_score_before_what_they_make(filled: Session) -> None:
    for hit in filled.query("payments by card", explain=True):
        names = [line.split()[0] for line in hit.why]
        parts = [n for n, name in enumerate(names) if name.startswith("text.")]
        assert parts
        assert max(parts) + 1 == names.index("text")


def test_a_neighbour_is_never_above_what_it_borrows_from(shop: Session) -> None:
    clock = shop._handle.clock
    shop.add("turn", "the zebra crossing " + "and more of it " * 40, agent="ada", role="user")
    shop.add("turn", "good", agent="bo", role="user", importance=1.0, pinned=True)

    for question in ("zebra", "my zebra"):
        hits = shop.query(question, now=clock() + timedelta(minutes=1))
        assert [hit.id for hit in hits] == ["turn-0001", "turn-0002"]
        assert hits[0].score > hits[1].score


def test_what_replaced_a_memory_is_found_with_it(shop: Session) -> None:
    old = shop.add("decision", "run on Kubernetes")
    new = shop.supersede(old.id, "two virtual machines will do")

    assert ids(shop, "why Kubernetes?") == [new.id, old.id]
    assert ids(shop, "Kubernetes", where=[("status", "equals", "superseded")]) == [old.id]


QUESTIONS = (
    "open the gate",
    "what is still open?",
    "resolved findings",
    "payments",
    "*ay",
    '"retry payments"',
)


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_are_the_same_cold_warm_cloned_and_whole(
    filled: Session, tmp_path: Path, question: str
) -> None:
    """Also where only some kinds are loaded, which a filter by kind does."""
    now = filled._handle.clock()

    def answers(session: Session) -> list[tuple[str, float, tuple[str, ...]]]:
        return [
            (hit.id, round(hit.score, 12), hit.why)
            for kinds in ((), ("turn",), ("turn", "finding"))
            for hit in session.query(question, kinds=kinds, now=now, explain=True)
        ]

    for kind in ("turn", "finding", "decision"):
        filled.add(kind, f"one more {kind} about payments")
        filled.query("payments")
    warm = answers(filled)
    filled.close()
    place = tmp_path / "copy"
    shutil.copytree(filled.path.parent.parent, place)
    with Store.open(place).session("shop") as cold:
        assert answers(cold) == warm
    for name in CACHES:
        (place / "active/shop/.git/smp" / name).unlink(missing_ok=True)
    with Store.open(place).session("shop") as whole:
        assert answers(whole) == warm
