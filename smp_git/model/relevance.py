"""Relevance: how well a memory answers a question, and the settings of decay and relevance.

`relevance` is a weighted mean of four scores; `product_relevance` multiplies.
A score outside its range counts as the nearest bound, and NaN as the lowest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Final, NamedTuple

from smp_git.model.decay import PRESETS, Preset, days_since
from smp_git.model.errors import InvalidError, shown
from smp_git.model.memory import Value

_INACTIVE: Final = "inactive_sessions"
_INACTIVE_FACTOR: Final = 0.8


class Scales(NamedTuple):
    """The settings of decay and relevance; with `product` relevance multiplies.

    What a session says that is not written to any more counts `inactive` times as much in a
    query over all sessions.
    """

    preset: Preset
    weights: Weights
    product: bool
    inactive: float


def scales(decay: Mapping[str, Value], relevance: Mapping[str, Value], file: str) -> Scales:
    """Return what the settings `decay` and `relevance` of a file say; raise InvalidError."""
    rates, weights = dict(decay), dict(relevance)
    preset, formula = rates.pop("preset", "default"), weights.pop("preset", "weighted")
    enabled = rates.pop("enabled", True)
    if not isinstance(enabled, bool):
        raise InvalidError(f"{file}: decay.enabled must be true or false, not {shown(enabled)}")
    if preset not in PRESETS:
        raise InvalidError(
            f"{file}: no decay preset {shown(preset)}", hint=f"presets are {', '.join(PRESETS)}"
        )
    if formula not in ("weighted", "product"):
        raise InvalidError(
            f"{file}: no relevance preset {shown(formula)}", hint="weighted or product"
        )
    inactive = weights.pop(_INACTIVE, _INACTIVE_FACTOR)
    if (
        isinstance(inactive, bool)
        or not isinstance(inactive, (int, float))
        or not 0 <= inactive <= 1
    ):
        raise InvalidError(
            f"{file}: relevance.{_INACTIVE} must be a number from 0 to 1, not {shown(inactive)}"
        )
    try:
        numbers = PRESETS[str(preset)].override(rates)
        return Scales(
            numbers if enabled else numbers.without_decay(),
            Weights().override(weights),
            formula == "product",
            float(inactive),
        )
    except ValueError as error:
        raise InvalidError(f"{file}: {error}") from None


_TIME_RATE_PER_HOUR: Final = 0.1
_ACCESS_RATE_PER_HOUR: Final = 0.05
_NEVER_ACCESSED: Final = 0.5
_RECENT_DAYS: Final = 1.0
_RECENCY_BOOST: Final = 1.5
_LEAST_DECAY: Final = 0.1
_GREATEST_WEIGHT: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weight of each score, in proportion to the sum of all."""

    text: float = 0.4
    time: float = 0.3
    importance: float = 0.2
    access: float = 0.1

    def __post_init__(self) -> None:
        weights = asdict(self)
        for name, weight in weights.items():
            _check(name, weight)
        if not any(weights.values()):
            raise ValueError("at least one relevance weight must be above 0")

    def override(self, settings: Mapping[str, object]) -> Weights:
        """Return these weights with those that `settings` names.

        Raises:
            ValueError: A key is unknown or a value out of range; the message names it.
        """
        known = asdict(self)
        for name in settings:
            if name not in known:
                raise ValueError(f"unknown relevance weight {name!r}; known: {', '.join(known)}")
        numbers = {name: _check(name, value) for name, value in settings.items()}
        return replace(self, **numbers)


class Part(NamedTuple):
    """One score and the weight it entered with; 1 where scores are multiplied."""

    name: str
    score: float
    weight: float


class Scored(NamedTuple):
    """A relevance and the parts it was made of."""

    value: float
    parts: tuple[Part, ...]


def relevance(
    *, text: float, time: float, importance: float, access: float, weights: Weights
) -> Scored:
    """Return the weighted mean, from 0 to 1, of four scores from 0 to 1."""
    # A plain sum of the default weights falls short of 1 in its last digit.
    total = math.fsum((weights.text, weights.time, weights.importance, weights.access))
    parts = (
        Part("text", _within(text, 0, 1), weights.text / total),
        Part("time", _within(time, 0, 1), weights.time / total),
        Part("importance", _within(importance, 0, 1), weights.importance / total),
        Part("access", _within(access, 0, 1), weights.access / total),
    )
    value = math.fsum(part.score * part.weight for part in parts)
    return Scored(min(1.0, value), parts)


def product_relevance(*, base: float, decay: float, recency: float, match: float) -> Scored:
    """Return base * decay * recency * match, from 0 to 1.5.

    `decay` is at least 0.1, and `recency` is what `recency_boost` returns.
    """
    parts = (
        Part("base", _within(base, 0, 1), 1.0),
        Part("decay", _within(decay, _LEAST_DECAY, 1), 1.0),
        Part("recency", _within(recency, 1, _RECENCY_BOOST), 1.0),
        Part("match", _within(match, 0, 1), 1.0),
    )
    return Scored(math.prod(part.score for part in parts), parts)


def time_score(decay: float, created_at: datetime, now: datetime) -> float:
    """Return the decay factor * e^(-0.1 * hours since creation)."""
    return decay * math.exp(-_TIME_RATE_PER_HOUR * 24 * days_since(created_at, now))


def access_score(last_access_at: datetime | None, now: datetime) -> float:
    """Return e^(-0.05 * hours since access), or 0.5 if there was none."""
    if last_access_at is None:
        return _NEVER_ACCESSED
    return math.exp(-_ACCESS_RATE_PER_HOUR * 24 * days_since(last_access_at, now))


def recency_boost(touched_at: datetime, now: datetime) -> float:
    """Return 1.5 if the last access, or else the creation, is under a day old; or 1."""
    return _RECENCY_BOOST if days_since(touched_at, now) < _RECENT_DAYS else 1.0


def _within(score: float, low: float, high: float) -> float:
    # The order matters: max() returns its first argument when the second is NaN.
    return min(float(high), max(float(low), score))


def _check(name: str, value: object) -> float:
    number = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = value
    if not 0 <= number <= _GREATEST_WEIGHT:
        raise ValueError(
            f"relevance weight {name!r} is {value!r}, not a number from 0 to {_GREATEST_WEIGHT}"
        )
    return float(number)
