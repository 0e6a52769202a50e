from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smp_git.model.relevance import (
    Part,
    Weights,
    access_score,
    product_relevance,
    recency_boost,
    relevance,
    time_score,
)

NOW = datetime(2026, 3, 18, 12, tzinfo=UTC)
scores = st.floats(allow_nan=True, allow_infinity=True)
units = st.floats(0, 1)


def weighed(
    text: float,
    time: float,
    importance: float,
    access: float,
    weights: Weights | None = None,
) -> float:
    return relevance(
        text=text,
        time=time,
        importance=importance,
        access=access,
        weights=weights or Weights(),
    ).value


def before(hours: float) -> datetime:
    return NOW - timedelta(hours=hours)


@pytest.mark.parametrize(
    ("text", "time", "importance", "access", "expected"),
    [
        (1, 1, 1, 1, 1.0),
        (0, 0, 0, 0, 0.0),
        (1, 0, 0, 0, 0.4),
        (0, 1, 0, 0, 0.3),
        (0, 0, 1, 0, 0.2),
        (0, 0, 0, 1, 0.1),
        (0.5, 0.2, 0.8, 0.5, 0.47),
    ],
)
def test_relevance_is_the_weighted_sum_by_hand(
    text: float, time: float, importance: float, access: float, expected: float
) -> None:
    assert weighed(text, time, importance, access) == pytest.approx(expected)


def test_weights_count_in_proportion_to_their_sum() -> None:
    weights = Weights(text=3, time=1, importance=0, access=0)

    assert weighed(1, 0.2, 1, 1, weights) == pytest.approx(0.8)


def test_each_part_is_named_with_its_score_and_weight() -> None:
    scored = relevance(text=0.5, time=2, importance=0.8, access=0, weights=Weights())

    assert scored.parts == (
        Part("text", 0.5, 0.4),
        Part("time", 1.0, 0.3),
        Part("importance", 0.8, 0.2),
        Part("access", 0.0, 0.1),
    )


@pytest.mark.parametrize(
    ("base", "decay", "recency", "match", "expected"),
    [
        (1, 1, 1.5, 1, 1.5),
        (0.8, 0.5, 1, 0.25, 0.1),
        (0.8, 0.01, 1.5, 0.5, 0.06),
        (0.8, 0.5, 9, 0.5, 0.3),
        (0.8, 0.5, 1, 0, 0.0),
    ],
)
def test_product_relevance_multiplies_by_hand(
    base: float, decay: float, recency: float, match: float, expected: float
) -> None:
    scored = product_relevance(base=base, decay=decay, recency=recency, match=match)

    assert scored.value == pytest.approx(expected)
    assert [part.name for part in scored.parts] == [
        "base",
        "decay",
        "recency",
        "match",
    ]


@pytest.mark.parametrize(
    ("decay", "hours", "expected"),
    [(1, 0, 1.0), (0.8, 5, 0.485224528), (0.8, -5, 0.8)],
)
def test_time_score_falls_by_the_hour(decay: float, hours: float, expected: float) -> None:
    assert time_score(decay, before(hours), NOW) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("accessed_at", "expected"),
    [
        (None, 0.5),
        (before(0), 1.0),
        (before(1), 0.951229425),
        (before(10), 0.606530660),
        (before(-10), 1.0),
    ],
)
def test_access_score_falls_by_the_hour(accessed_at: datetime | None, expected: float) -> None:
    assert access_score(accessed_at, NOW) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("hours", "expected"), [(-5, 1.5), (0, 1.5), (23.9, 1.5), (24, 1.0), (900, 1.0)]
)
def test_recency_boost_lasts_a_day(hours: float, expected: float) -> None:
    assert recency_boost(before(hours), NOW) == expected


@given(scores, scores, scores, scores)
def test_relevance_is_in_range_and_never_nan(
    one: float, two: float, three: float, four: float
) -> None:
    product = product_relevance(base=one, decay=two, recency=three, match=four)

    assert 0 <= weighed(one, two, three, four) <= 1
    assert 0 <= product.value <= 1.5


@given(units, units, units, units)
def test_better_text_never_lowers_relevance(
    one: float, two: float, time: float, access: float
) -> None:
    worse, better = sorted([one, two])

    assert weighed(worse, time, 0.5, access) <= weighed(better, time, 0.5, access)


def test_weight_is_overridden() -> None:
    assert Weights().override({"text": 0.7}) == Weights(text=0.7)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"txt": 1}, "unknown relevance weight 'txt'; known: text, time"),
        ({"text": -1}, "'text' is -1, not a number from 0"),
        ({"text": math.nan}, "'text' is nan, not a number"),
        ({"text": "1"}, "'text' is '1', not a number"),
        ({"text": True}, "'text' is True, not a number"),
        ({"text": 0, "time": 0, "importance": 0, "access": 0}, "at least one"),
    ],
)
def test_wrong_weight_is_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Weights().override(settings)
