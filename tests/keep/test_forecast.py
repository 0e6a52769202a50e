"""Forecast: how a priority falls if nobody uses the memory, and what happens to it when."""

from __future__ import annotations

from datetime import timedelta

import pytest

from smp_git import Session
from smp_git.keep.forecast import Forecast
from tests.conftest import Clock


def _told(found: Forecast) -> list[tuple[str, str]]:
    return [(each.what, each.kept_by) for each in found.events]


def test_curve_is_what_explain_says_at_each_time(session: Session) -> None:
    session.add("finding", "No TLS", severity="low")

    found = session.forecast("FIND-1")

    assert found.priority == session.explain("FIND-1", now=found.at)[0]
    for point in found.points:
        assert point.priority == session.explain("FIND-1", now=point.at)[0]
    priorities = [point.priority for point in found.points]
    assert priorities == sorted(priorities, reverse=True)


def test_memory_that_nothing_keeps_goes_by_compaction_when_it_says(
    session: Session, clock: Clock
) -> None:
    session.add("learning", "Old and forgotten " + "x" * 500)
    (taken,) = [each for each in session.forecast("LEARN-1").events if each.what == "compaction"]

    clock.now = taken.at - timedelta(minutes=5)
    assert session.compact("90%", dry_run=True).steps == ()
    clock.now = taken.at + timedelta(minutes=5)

    assert taken.kept_by == ""
    assert [each.id for step in session.compact("90%", dry_run=True).steps for each in step.removals] == ["LEARN-0001"]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "told", "lasting"),
    [
        ({"kind": "decision"}, [], "neither resolved nor superseded, holds"),
        ({"kind": "learning", "pinned": True}, [], "pinned, never decays"),
        ({"kind": "finding"}, [("floor", ""), ("compaction", "open finding")], ""),
        ({"kind": "preference", "confidence": "explicit"}, [("floor", ""), ("compaction", "explicit preference")], ""),
        ({"kind": "turn"}, [("compaction", ""), ("floor", "")], ""),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)  # fmt: skip
def test_events_say_what_comes_and_which_rule_keeps_it(
    session: Session, fields: dict[str, object], told: list[tuple[str, str]], lasting: str
) -> None:
    kind, more = str(fields["kind"]), {k: v for k, v in fields.items() if k != "kind"}
    made = session.add(kind, "It is so", **more)  # type: ignore[arg-type]

    found = session.forecast(made.id)

    assert sorted(_told(found)) == sorted(told)
    assert found.lasting == lasting


def test_use_begins_the_curve_anew(session: Session, clock: Clock) -> None:
    session.add("turn", "Hello")
    clock.now += timedelta(days=20)
    before = session.forecast("turn-1")
    session.get("turn-1")

    after = session.forecast("turn-1")

    assert (before.uses, after.uses) == (0, 1)
    assert after.last_use > before.last_use
    assert after.priority > before.priority


def test_retention_is_told_where_maintenance_deletes(session: Session) -> None:
    session.add("turn", "Hello")
    session.configure({"retention": {"turn": 90}})
    assert "retention" not in dict(_told(session.forecast("turn-1")))
    session.configure({"auto_purge": True})

    event = next(e for e in session.forecast("turn-1").events if e.what == "retention")

    assert event.at == session.get("turn-1").created_at + timedelta(days=90)
    assert event.kept_by == ""
