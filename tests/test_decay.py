from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smp_git.model.decay import (
    KINDS,
    PRESETS,
    Facts,
    Preset,
    Rule,
    days_since,
    importance,
    priority,
)

NOW = datetime(2026, 3, 18, 12, tzinfo=UTC)
DEFAULT = PRESETS["default"]


def aged(kind: str, days: float, **facts: Any) -> Facts:
    """Return facts of a memory created `days` before NOW."""
    return replace(Facts(kind=kind, created_at=before(days)), **facts)


def before(days: float) -> datetime:
    return NOW - timedelta(days=days)


# Facts, unfloored and value; computed with bc from the formula of the preset.
DEFAULT_TABLE = {
    "fresh turn": (aged("turn", 0), 1.0, 1.0),
    "turn": (aged("turn", 10), 0.548811636, 0.548811636),
    "turn accessed later": (
        aged("turn", 10, last_access_at=before(2), accesses=5),
        0.868730753,
        0.868730753,
    ),
    "turn at most 1": (
        aged("turn", 10, last_access_at=before(0), accesses=30),
        1.0,
        1.0,
    ),
    "turn at its floor": (aged("turn", 90), 0.004516581, 0.1),
    "unresolved decision holds": (aged("decision", 400), 0.95, 0.95),
    "resolved decision": (
        aged("decision", 10, is_resolved=True),
        0.636804044,
        0.636804044,
    ),
    "superseded decision": (
        aged("decision", 10, is_superseded=True),
        0.636804044,
        0.636804044,
    ),
    "resolved decision, 2 accesses": (
        aged("decision", 5, is_resolved=True, accesses=2),
        0.817794215,
        0.817794215,
    ),
    "resolved decision at its floor": (
        aged("decision", 40, is_resolved=True),
        0.191801692,
        0.4,
    ),
    "high-impact decision": (
        aged("decision", 40, is_resolved=True, impact="High"),
        0.191801692,
        0.9,
    ),
    "finding": (aged("finding", 10), 0.545877594, 0.545877594),
    "resolved finding": (
        aged("finding", 10, is_resolved=True),
        0.446926773,
        0.446926773,
    ),
    "fresh critical finding": (
        aged("finding", 1, severity="critical"),
        0.856106482,
        0.856106482,
    ),
    "critical finding": (aged("finding", 10, severity="critical"), 0.545877594, 0.8),
    "resolved critical finding": (
        aged("finding", 10, severity="critical", is_resolved=True),
        0.446926773,
        0.8,
    ),
    "high impact is for decisions": (
        aged("finding", 10, impact="high"),
        0.545877594,
        0.545877594,
    ),
    "stated base": (aged("finding", 4, base_priority=0.5), 0.409365377, 0.409365377),
    "preference": (aged("preference", 5), 0.731601780, 0.731601780),
    "preference at its floor": (aged("preference", 60), 0.140504055, 0.6),
    "explicit preference": (
        aged("preference", 60, confidence="explicit"),
        0.140504055,
        0.6,
    ),
    "inferred preference falling": (
        aged("preference", 30, confidence="inferred"),
        0.345584211,
        0.345584211,
    ),
    "inferred preference": (
        aged("preference", 60, confidence="inferred"),
        0.140504055,
        0.3,
    ),
    "uncertain preference": (
        aged("preference", 60, confidence="uncertain"),
        0.140504055,
        0.3,
    ),
    "learning is slow": (aged("learning", 10), 0.592654577, 0.592654577),
    "state is fast": (aged("state", 10), 0.397268243, 0.397268243),
    "artifact": (aged("artifact", 10), 0.536256037, 0.536256037),
    "pinned turn": (aged("turn", 900, is_pinned=True), 1.0, 1.0),
    "pinned finding": (
        aged("finding", 900, is_pinned=True, is_resolved=True),
        0.9,
        0.9,
    ),
}
MINIMAL_TABLE = {
    "turn, 3 accesses": (aged("turn", 10, accesses=3), 0.666530660, 0.666530660),
    "decision": (aged("decision", 20), 0.521371054, 0.521371054),
    "finding, boost limit": (aged("finding", 5, accesses=20), 0.936857678, 0.936857678),
    "whole days": (aged("finding", 5.9), 0.736857678, 0.736857678),
    "preference": (aged("preference", 50), 0.312697525, 0.312697525),
    "no special rule": (
        aged("preference", 50, confidence="explicit"),
        0.312697525,
        0.312697525,
    ),
    "access does not renew": (
        aged("decision", 20, last_access_at=before(0)),
        0.521371054,
        0.521371054,
    ),
    "pinned": (aged("decision", 20, is_pinned=True), 0.95, 0.95),
}
BOOSTED_TABLE = {
    "fresh turn, at most 1": (aged("turn", 0), 1.0, 1.0),
    "turn after two half-lives": (aged("turn", 14, accesses=2), 0.325, 0.325),
    "decision after its half-life": (aged("decision", 30), 0.6, 0.6),
    "finding, 3 accesses": (aged("finding", 14, accesses=3), 0.73, 0.73),
    "critical finding": (
        aged("finding", 28, accesses=1, severity="critical"),
        0.325,
        0.325,
    ),
    "stated base is importance": (
        aged("decision", 30, base_priority=0.5),
        0.55,
        0.55,
    ),
    "learning": (aged("learning", 120), 0.275, 0.275),
    "state at the minimum": (aged("state", 30), 0.00107421875, 0.1),
    "pinned": (aged("state", 30, is_pinned=True), 1.0, 1.0),
}
HALF_LIFE_TABLE = {
    "turn after 7 days": (aged("turn", 7), 0.5, 0.5),
    "decision after 60 days": (aged("decision", 60), 0.25, 0.25),
    "finding after 42 days": (aged("finding", 42), 0.125, 0.125),
    "preference never": (aged("preference", 4000), 1.0, 1.0),
    "learning after 60 days": (aged("learning", 60), 0.5, 0.5),
    "state after 3 days": (aged("state", 3), 0.5, 0.5),
    "artifact after 14 days": (aged("artifact", 14), 0.5, 0.5),
    "minimum of the factor": (aged("turn", 35, base_priority=0.8), 0.025, 0.08),
    "access changes nothing": (
        aged("turn", 7, last_access_at=before(0), accesses=9),
        0.5,
        0.5,
    ),
    "pinned": (aged("turn", 70, base_priority=0.8, is_pinned=True), 0.8, 0.8),
}
TABLES = {
    "default": DEFAULT_TABLE,
    "minimal": MINIMAL_TABLE,
    "boosted": BOOSTED_TABLE,
    "half-life": HALF_LIFE_TABLE,
}

facts = st.builds(
    Facts,
    kind=st.sampled_from(KINDS),
    created_at=st.datetimes(timezones=st.just(UTC)),
    last_access_at=st.none() | st.datetimes(timezones=st.just(UTC)),
    accesses=st.integers(0, 10**12),
    base_priority=st.none() | st.floats(0, 1),
    severity=st.sampled_from([None, "critical", "minor"]),
    impact=st.sampled_from([None, "high", "low"]),
    confidence=st.sampled_from([None, "explicit", "inferred", "0.9"]),
    is_pinned=st.booleans(),
    is_resolved=st.booleans(),
    is_superseded=st.booleans(),
)
presets = st.sampled_from(list(PRESETS.values()))
moments = st.datetimes(timezones=st.just(UTC))


@pytest.mark.parametrize(
    ("preset", "case"), [(preset, case) for preset in TABLES for case in TABLES[preset]]
)
def test_priority_is_what_the_formula_gives_by_hand(preset: str, case: str) -> None:
    memory, unfloored, value = TABLES[preset][case]

    decayed = priority(memory, NOW, PRESETS[preset])

    assert decayed.unfloored == pytest.approx(unfloored, abs=1e-9)
    assert decayed.value == pytest.approx(value, abs=1e-9)


def test_time_travel_lowers_a_turn_day_by_day() -> None:
    turn = aged("turn", 0)
    by_hand = [1.0, 0.941764534, 0.886920437, 0.835270211]

    values = [priority(turn, NOW + timedelta(days=day), DEFAULT).value for day in range(4)]

    assert values == pytest.approx(by_hand, abs=1e-9)


def test_access_renews_a_faded_memory() -> None:
    faded = aged("turn", 10)
    accessed = replace(faded, last_access_at=NOW, accesses=1)

    assert priority(faded, NOW, DEFAULT).value == pytest.approx(0.548811636)
    assert priority(accessed, NOW, DEFAULT).value == pytest.approx(0.914837418)


def test_steps_show_the_arithmetic() -> None:
    finding = aged("finding", 10, is_resolved=True, accesses=3)

    lines = [
        (step.name, round(step.value, 4), step.note)
        for step in priority(finding, NOW, DEFAULT).steps
    ]

    assert lines == [
        ("base", 0.9, "of the kind"),
        ("rate", 0.06, "0.04 * 1.5, resolved"),
        ("time", 0.5488, "e^(-0.06 * 10 days since access)"),
        ("age", 0.9048, "e^(-0.01 * 10 days since creation)"),
        ("access", 0.045, "min(0.2, 0.015 * 3 accesses)"),
        ("unfloored", 0.4919, "base * time * age + access, from 0 to 1"),
        ("floor", 0.3, "of the kind"),
        ("priority", 0.4919, "the greatest of unfloored and the floors"),
    ]


@pytest.mark.parametrize(
    ("memory", "reason"),
    [
        (aged("turn", 9, is_pinned=True), "pinned, never decays"),
        (aged("decision", 9), "neither resolved nor superseded, holds"),
    ],
)
def test_steps_say_why_a_memory_does_not_decay(memory: Facts, reason: str) -> None:
    steps = priority(memory, NOW, DEFAULT).steps

    assert (steps[1].value, steps[1].note) == (0.0, reason)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("kind", KINDS)
def test_clock_in_the_future_counts_as_now(kind: str, preset: str) -> None:
    ahead = aged(kind, -400, last_access_at=before(-500))
    fresh = aged(kind, 0, last_access_at=before(0))

    assert (
        priority(ahead, NOW, PRESETS[preset]).value == priority(fresh, NOW, PRESETS[preset]).value
    )


def test_days_since_the_future_are_none() -> None:
    assert days_since(NOW + timedelta(days=3), NOW) == 0
    assert days_since(NOW - timedelta(hours=36), NOW) == 1.5


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        (aged("decision", 0), 1.0),
        (aged("finding", 0), 0.8),
        (aged("preference", 0), 0.7),
        (aged("turn", 0), 0.5),
        (aged("turn", 0, impact="high"), 0.65),
        (aged("finding", 0, severity="critical"), 1.0),
        (aged("finding", 0, base_priority=0.5, impact="high"), 0.65),
    ],
)
def test_importance_is_what_the_table_gives_by_hand(memory: Facts, expected: float) -> None:
    assert importance(memory) == pytest.approx(expected)


@given(facts, moments, presets)
def test_priority_is_from_0_to_1_and_never_nan(
    memory: Facts, now: datetime, preset: Preset
) -> None:
    decayed = priority(memory, now, preset)

    assert 0 <= decayed.unfloored <= decayed.value <= 1
    assert 0 <= decayed.factor <= 1
    assert all(math.isfinite(step.value) for step in decayed.steps)
    assert all(step.note for step in decayed.steps)


@given(facts, moments, moments, presets)
def test_time_never_raises_a_priority(
    memory: Facts, one: datetime, other: datetime, preset: Preset
) -> None:
    earlier = priority(memory, min(one, other), preset)
    later = priority(memory, max(one, other), preset)

    assert later.value <= earlier.value
    assert later.unfloored <= earlier.unfloored


@given(facts, moments, presets)
def test_access_never_lowers_a_priority(memory: Facts, now: datetime, preset: Preset) -> None:
    untouched = replace(memory, last_access_at=None, accesses=0)

    assert priority(memory, now, preset).value >= priority(untouched, now, preset).value


@given(facts, moments, presets)
def test_clock_in_the_future_never_raises_a_priority(
    memory: Facts, now: datetime, preset: Preset
) -> None:
    ahead = replace(memory, created_at=max(memory.created_at, now))
    fresh = replace(memory, created_at=now)

    assert priority(ahead, now, preset).value <= priority(fresh, now, preset).value


@given(facts, moments)
def test_pinned_memory_keeps_its_priority(memory: Facts, now: datetime) -> None:
    pinned = replace(memory, is_pinned=True)

    assert (
        priority(pinned, now, DEFAULT).value
        == priority(pinned, datetime.max.replace(tzinfo=UTC), DEFAULT).value
    )


@given(facts, moments)
def test_superseding_or_resolving_never_raises_a_priority(memory: Facts, now: datetime) -> None:
    current = replace(memory, is_resolved=False, is_superseded=False)

    assert priority(memory, now, DEFAULT).value <= priority(current, now, DEFAULT).value


@pytest.mark.parametrize(
    ("preset", "settings", "memory", "expected"),
    [
        ("default", {"turn": {"rate": 0.1}}, aged("turn", 5), 0.576949810),
        ("default", {"rate": 0.1}, aged("turn", 5), 0.576949810),
        ("default", {"rate": 9, "turn": {"rate": 0.1}}, aged("turn", 5), 0.576949810),
        ("default", {"age_rate": 0}, aged("turn", 10), 0.606530660),
        ("default", {"turn": {"floor": 0.5}}, aged("turn", 90), 0.5),
        ("default", {"turn": {"base": 0.5}}, aged("turn", 0), 0.5),
        ("default", {"turn": {"boost": 0.05}}, aged("turn", 900, accesses=3), 0.15),
        ("default", {"turn": {"rate": 0}}, aged("turn", 900), 1.0),
        ("half-life", {"half_life_hours": 48}, aged("turn", 3), 0.353553391),
        ("half-life", {"half_life_hours": 48}, aged("preference", 3), 1.0),
        (
            "half-life",
            {"preference": {"half_life_hours": 48}},
            aged("preference", 3),
            0.353553391,
        ),
        ("half-life", {"floor": 0.2}, aged("turn", 70), 0.2),
        ("boosted", {"decision": {"half_life_hours": 360}}, aged("decision", 30), 0.3),
    ],
)
def test_setting_changes_the_arithmetic(
    preset: str, settings: dict[str, object], memory: Facts, expected: float
) -> None:
    changed = PRESETS[preset].override(settings)

    assert priority(memory, NOW, changed).value == pytest.approx(expected)


def test_override_leaves_the_preset_as_it_was() -> None:
    DEFAULT.override({"rate": 1})

    assert DEFAULT.override({}) == DEFAULT
    assert DEFAULT.rules["turn"].rate == 0.05


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"speed": 1}, "unknown decay setting 'speed'"),
        ({"conversation": {"rate": 1}}, "unknown decay setting 'conversation'"),
        ({"turn": {"speed": 1}}, "unknown decay setting 'turn.speed'"),
        ({"turn": {1: 1}}, "unknown decay setting 'turn.1'"),
        ({"turn": 0.5}, "'turn' is 0.5, not a mapping"),
        ({"turn": {"rate": -0.1}}, "'turn.rate' is -0.1, not a number from 0"),
        ({"turn": {"floor": 1.1}}, "'turn.floor' is 1.1, not a number from 0 to 1"),
        ({"rate": "fast"}, "'rate' is 'fast', not a number"),
        ({"rate": True}, "'rate' is True, not a number"),
        ({"floor": math.nan}, "'floor' is nan, not a number"),
        ({"age_rate": math.inf}, "'age_rate' is inf, not a number"),
        ({"half_life_hours": 0}, "'half_life_hours' is 0, not a number from 0.1"),
        ({"turn": {"rate": 1, "half_life_hours": 1}}, "'turn.rate' excludes"),
    ],
)
def test_wrong_setting_is_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DEFAULT.override(settings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "note"}, "'note' is not a kind"),
        ({"accesses": -1}, "accesses is -1"),
        ({"base_priority": 1.5}, "base_priority is 1.5"),
        ({"base_priority": math.nan}, "base_priority is nan"),
        ({"created_at": NOW.replace(tzinfo=None)}, "has no time zone"),
    ],
)
def test_impossible_facts_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(aged("turn", 0), **change)


def test_preset_needs_a_known_formula_and_a_rule_for_each_kind() -> None:
    with pytest.raises(ValueError, match="unknown decay preset 'linear'"):
        replace(DEFAULT, name="linear")
    with pytest.raises(ValueError, match="no rule for decision, finding"):
        replace(DEFAULT, rules={"turn": DEFAULT.rules["turn"]})


def test_rule_is_checked_when_made() -> None:
    with pytest.raises(ValueError, match="'boost' is 2"):
        Rule(base=1, rate=0, boost=2, floor=0)
