"""One question to all sessions of a store."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from smp_git import Store
from smp_git.ask.request import QueryParts
from smp_git.model.errors import InvalidError, InvalidQueryError
from tests.conftest import Clock


def filled(store: Store, sessions: int = 5) -> None:
    for number in range(sessions):
        with store.create_session(f"s{number}", user="ada") as session:
            session.add("finding", f"slow login {number}", severity="low", tags=[f"t{number}"])
            session.add("decision", "unrelated words")


def test_every_session_answers_and_each_hit_names_its_own(fast_store: Store) -> None:
    filled(fast_store)

    answer = fast_store.query("login")

    assert {hit.session for hit in answer} == {f"s{number}" for number in range(5)}
    assert answer.total == 5
    assert answer[0].as_json()["session"] == answer[0].session
    assert fast_store.query(tags=["t3"])[0].session == "s3"


def test_pages_and_counts_are_of_all_together(fast_store: Store) -> None:
    filled(fast_store)
    everything = fast_store.query(limit=None, aggregations=["count:kind", "sum:size_bytes", "max:created_at"])  # fmt: skip

    assert everything.total == len(everything) == 10
    assert everything.aggregations["count:kind"] == {"decision": 5, "finding": 5}
    pages = [fast_store.query(limit=4, offset=first) for first in (0, 4, 8)]
    assert [(h.session, h.id) for page in pages for h in page] == [(h.session, h.id) for h in everything]  # fmt: skip
    assert fast_store.query(limit=0).total == 10


TEXTS = (
    "the login is slow", "login by OAuth, login by key", "slow slow queries of the report", "a cache for the login page",
    "nothing of the kind", "the report is slow when the cache is cold", "keys expire after a day", "cache the report",
)  # fmt: skip


def test_many_sessions_score_as_one_that_holds_it_all(fast_store: Store, tmp_path: Path, clock: Clock) -> None:  # fmt: skip
    start = clock.now
    rows = [(each, ["even"] if number % 2 == 0 else []) for number, each in enumerate(TEXTS)]
    one = Store.init(tmp_path / "one").create_session("all")
    for each, tags in rows:
        one.add("decision", each, tags=tags, at=start)
    for number in range(3):
        with fast_store.create_session(f"s{number}") as session:
            for each, tags in rows[number::3]:
                session.add("decision", each, tags=tags, at=start)

    questions = ("slow login", "cache", '"the report"', "log*", "report slow cache key")
    asked: list[QueryParts] = [{}, {"kinds": ["decision"]}, {"tags": ["even"]}, {"limit": 2}, {"explain": True}, {"limit": None}]  # fmt: skip
    for text, parts in product(questions, asked):
        answer, expected = fast_store.query(text, now=start, **parts), one.query(text, now=start, **parts)  # fmt: skip
        assert [hit.score for hit in answer] == [hit.score for hit in expected]
        if parts.get("limit") is None:
            # Of equal ones the first session's are listed, so at a cut they may be others.
            assert {(hit.title, hit.why) for hit in answer} == {(hit.title, hit.why) for hit in expected}  # fmt: skip
        assert answer.total == expected.total
    one.close()


def test_a_faint_answer_is_no_better_for_being_the_best_of_its_session(fast_store: Store) -> None:
    with fast_store.create_session("strong") as session:
        session.add("decision", "OAuth for the login of the shop")
    with fast_store.create_session("weak") as session:
        session.add("decision", "A long story about many things, and a login somewhere. " * 5)

    answer = fast_store.query("OAuth login shop")

    assert [hit.session for hit in answer] == ["strong", "weak"]
    assert "text 1.000 x 0.40" in answer[0].why
    assert "text 1.000 x 0.40" not in answer[1].why


def test_what_is_linked_follows_behind_the_hits(fast_store: Store) -> None:
    filled(fast_store, 2)
    with fast_store.session("s1") as session:
        session.link("FIND-0001", "led_to", "DEC-0001")

    found = [(hit.session, hit.id) for hit in fast_store.query("login", include_related=True)]

    assert sorted(found[:2]) == [("s0", "FIND-0001"), ("s1", "FIND-0001")]
    assert found[2:] == [("s1", "DEC-0001")]


def test_resting_sessions_count_for_less_and_say_so(fast_store: Store, clock: Clock) -> None:
    filled(fast_store, 1)
    clock.now += timedelta(days=8)
    with fast_store.create_session("fresh", user="ada") as session:
        session.add("decision", "as it was", at=clock.now - timedelta(days=8))

    answer = fast_store.query(kinds=["decision"])

    assert [hit.session for hit in answer] == ["fresh", "s0"]
    assert answer[1].score == pytest.approx(0.8 * answer[1].priority)
    assert "decaying session x 0.8" in answer[1].why
    assert "decaying session x 0.8" in fast_store.query("words", kinds=["decision"])[0].why


def test_the_factor_of_inactive_sessions_is_a_setting(fast_store: Store, clock: Clock) -> None:
    filled(fast_store, 1)
    clock.now += timedelta(days=8)
    for factor in (1, 0.25, 0):
        (fast_store.path / "config.yaml").write_text(f"format: 1\nrelevance:\n  inactive_sessions: {factor}\n")  # fmt: skip
        store = Store.open(fast_store.path, clock=clock)
        hit = store.query(kinds=["decision"])[0]
        assert hit.score == pytest.approx(factor * hit.priority)
        store.close()
    (fast_store.path / "config.yaml").write_text("format: 1\nrelevance:\n  inactive_sessions: 2\n")
    with pytest.raises(InvalidError, match="inactive_sessions must be a number from 0 to 1"):
        Store.open(fast_store.path, clock=clock)


def test_many_sessions_are_sorted_and_measured_as_one_that_holds_it_all(fast_store: Store, tmp_path: Path, clock: Clock) -> None:  # fmt: skip
    start = clock.now
    one = Store.init(tmp_path / "one").create_session("all")
    fields: list[dict[str, Any]] = [{"height": 3}, {"height": 1, "colour": "red"}, {"colour": "blue"}, {"height": 2.5}, {"height": 1, "colour": "red"}, {}]  # fmt: skip
    for number, more in enumerate(fields):
        at = start + timedelta(hours=number)
        one.add("decision", f"use cache {number}", at=at, **more)
        with fast_store.create_session(f"s{number}") as session:
            session.add("decision", f"use cache {number}", at=at, **more)

    counted = ["avg:height", "sum:height", "min:colour", "max:created_at", "count:colour", "count:height"]  # fmt: skip
    for text, sort in product((None, "cache"), (["height"], ["-height", "colour"], ["-created_at"], ["title"], ["-colour"])):  # fmt: skip
        for page in ({}, {"limit": 2, "offset": 1}):
            asked: dict[str, Any] = {"sort": sort, "aggregations": counted, **page}
            answer, expected = fast_store.query(text, now=start, **asked), one.query(text, now=start, **asked)  # fmt: skip
            assert [hit.title for hit in answer] == [hit.title for hit in expected]
            assert answer.aggregations == expected.aggregations
            assert answer.total == expected.total
    one.close()


def test_what_was_replaced_stays_behind(fast_store: Store) -> None:
    filled(fast_store, 2)
    with fast_store.session("s0") as session:
        session.supersede("DEC-0001", "other words")

    assert fast_store.query(kinds=["decision"])[-1].session == "s0"
    assert fast_store.query(kinds=["decision"])[-1].why


def test_sessions_come_and_go_and_stay_open_between(fast_store: Store) -> None:
    filled(fast_store, 2)
    assert fast_store.query().total == 4
    opened = dict(fast_store._asked)
    filled_again = fast_store.create_session("s9")
    filled_again.add("decision", "new")
    filled_again.close()

    assert fast_store.query().total == 5
    assert all(fast_store._asked[name] is session for name, session in opened.items())


@pytest.mark.parametrize("wrong", [{"sort": ["-colour"]}, {"aggregations": ["avg:colour"]}, {"limit": "5"}, {"offset": -1}, {"colour": 1}, {"where": None}])  # fmt: skip
def test_what_cannot_be_joined_is_refused(fast_store: Store, wrong: dict[str, object]) -> None:
    filled(fast_store, 2)

    with pytest.raises(InvalidQueryError):
        fast_store.query(**wrong)  # type: ignore[arg-type]
