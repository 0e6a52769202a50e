"""Decay: the priority of a memory, which falls with time and rises with use.

Four presets, each with one `Rule` per kind:

- `default`: base * e^(-rate * days since access) * e^(-age_rate * days since
  creation) + min(0.2, boost * accesses), then floors and the special rules.
- `minimal`: base * e^(-rate * whole days since creation) + min(0.2, boost * accesses).
- `boosted`: base * e^(-rate * days since creation) * (1 + boost * accesses +
  0.2 * importance), then the floor.
- `half-life`: base * max(floor, e^(-rate * days since creation)).

Every result lies between 0 and 1.
In every preset a pinned memory does not decay, nor does a kind whose rate is 0.

The special rules belong to `default`:

- A decision that is neither resolved nor superseded holds: time does not lower it.
- A decision of high or critical impact keeps at least 0.9.
- A critical finding keeps at least 0.8, resolved or not.
- A resolved finding decays at 1.5 times its rate.
- An explicit preference keeps at least 0.6; an inferred or uncertain one may
  fall to 0.3; any other keeps the floor of its kind.

A time after now counts as now, and an access before the creation as the creation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final, NamedTuple

KINDS: Final = (
    "turn",
    "decision",
    "finding",
    "preference",
    "learning",
    "state",
    "artifact",
    "value",
)

_SECONDS_PER_DAY: Final = 86_400
_MOST_ACCESSES: Final = 10**12
_BOOST_LIMIT: Final = 0.2
_IMPORTANCE_SHARE: Final = 0.2
_RESOLVED_FACTOR: Final = 1.5
_HIGH_IMPACT_FLOOR: Final = 0.9
_CRITICAL_FLOOR: Final = 0.8
_EXPLICIT_FLOOR: Final = 0.6
_INFERRED_FLOOR: Final = 0.3

_SINCE_ACCESS: Final = "e^(-{:g} * {:.6g} days since access)"
_SINCE_CREATION: Final = "e^(-{:g} * {:.6g} days since creation)"
_NOT_FADING: Final = "does not decay"

_IMPORTANCE: Final[Mapping[str, float]] = {
    "decision": 1.0,
    "finding": 0.8,
    "preference": 0.7,
}
_OTHER_IMPORTANCE: Final = 0.5

# Bounds beyond which e^(-rate * days) would be meaningless; they also keep NaN out.
_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "base": (0, 1),
    "rate": (0, 1000),
    "boost": (0, 1),
    "floor": (0, 1),
    "age_rate": (0, 1000),
    "half_life_hours": (0.1, 100_000_000),
}
_RULE_KEYS: Final = ("base", "rate", "half_life_hours", "boost", "floor")
_SHARED_KEYS: Final = ("rate", "half_life_hours", "floor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The decay of one kind: its start, loss per day, gain per access, and floor."""

    base: float
    rate: float
    boost: float
    floor: float

    def __post_init__(self) -> None:
        for name in ("base", "rate", "boost", "floor"):
            _number(name, getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A formula, by its name, with its numbers; `override` gives one with others."""

    name: str
    rules: Mapping[str, Rule] = field(hash=False)
    age_rate: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in _FORMULAS:
            raise ValueError(f"unknown decay preset {self.name!r}; known: {', '.join(_FORMULAS)}")
        _number("age_rate", self.age_rate)
        missing = [kind for kind in KINDS if kind not in self.rules]
        if missing:
            raise ValueError(f"decay preset has no rule for {', '.join(missing)}")

    def override(self, settings: Mapping[str, object]) -> Preset:
        """Return this preset with the numbers that `settings` names.

        `age_rate`, `rate` or `half_life_hours`, and `floor` hold for every kind;
        `{"turn": {...}}` sets `base`, `rate` or `half_life_hours`, `boost` and
        `floor` of one kind, and wins over the former.
        A rate for every kind leaves a kind that never decays as it is.

        Raises:
            ValueError: A key is unknown or a value out of range; the message names it.
        """
        _refuse_unknown("", settings, ("age_rate", *_SHARED_KEYS, *KINDS))
        shared = _changes("", {k: settings[k] for k in _SHARED_KEYS if k in settings})
        rules = {
            kind: replace(_unless_constant(rule, shared), **_of_kind(kind, settings))
            for kind, rule in self.rules.items()
        }
        age_rate = _number("age_rate", settings.get("age_rate", self.age_rate))
        return replace(self, rules=MappingProxyType(rules), age_rate=age_rate)

    def without_decay(self) -> Preset:
        """Return this preset with nothing that falls with time."""
        rules = {kind: replace(rule, rate=0.0) for kind, rule in self.rules.items()}
        return replace(self, rules=MappingProxyType(rules), age_rate=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that is known of a memory for its priority.

    `severity`, `impact` and `confidence` are the memory's own words; words that
    no rule mentions change nothing.
    `base_priority` replaces what the kind starts from, and its importance.
    """

    kind: str
    created_at: datetime
    last_access_at: datetime | None = None
    accesses: int = 0
    base_priority: float | None = None
    severity: str | None = None
    impact: str | None = None
    confidence: str | None = None
    is_pinned: bool = False
    is_resolved: bool = False
    is_superseded: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"{self.kind!r} is not a kind; known: {', '.join(KINDS)}")
        if not 0 <= self.accesses <= _MOST_ACCESSES:
            raise ValueError(f"accesses is {self.accesses}, not a count")
        if self.base_priority is not None and not 0 <= self.base_priority <= 1:
            raise ValueError(f"base_priority is {self.base_priority}, not from 0 to 1")
        for moment in (self.created_at, self.last_access_at):
            if moment is not None and moment.tzinfo is None:
                raise ValueError(f"{moment} has no time zone")


class Step(NamedTuple):
    """One line of the arithmetic: a name, its value, and where the value is from."""

    name: str
    value: float
    pattern: str
    numbers: tuple[float, ...] = ()

    @property
    def note(self) -> str:
        """The source of the value, with its numbers."""
        # Formatting takes longer than the arithmetic, and ranking never reads it.
        return self.pattern.format(*self.numbers)


class Decayed(NamedTuple):
    """A priority and its arithmetic.

    `unfloored` is the priority that no floor raised.
    `factor` is the part, from 0 to 1, that time has left of what it started from.
    """

    value: float
    unfloored: float
    factor: float
    steps: tuple[Step, ...]


def priority(facts: Facts, now: datetime, preset: Preset) -> Decayed:
    """Return the priority at `now` of the memory that `facts` describe.

    The last step is the priority, and each step can be checked by hand from
    those before it; `now` must have a time zone.
    """
    return _FORMULAS[preset.name](facts, now, preset)


def importance(facts: Facts) -> float:
    """Return how much a memory matters whatever its age, from 0 to 1.

    It is the stated base priority or a number of the kind, raised by 1.3 for a
    critical severity or a high impact.
    """
    value = facts.base_priority
    if value is None:
        value = _IMPORTANCE.get(facts.kind, _OTHER_IMPORTANCE)
    if _is_critical(facts) or _is_high_impact(facts):
        value *= 1.3
    return min(value, 1.0)


def days_since(moment: datetime, now: datetime) -> float:
    """Return the days from `moment` to `now`, and 0 if `moment` is in the future."""
    return max(0.0, (now - moment).total_seconds() / _SECONDS_PER_DAY)


def _default(facts: Facts, now: datetime, preset: Preset) -> Decayed:
    rule = preset.rules[facts.kind]
    rate = _special_rate(facts, rule)
    time = _time(rate, days_since(_last_touch(facts), now), _SINCE_ACCESS)
    fading = (rate, time, _age(rate, facts, now, preset))
    return _added(facts, rule, fading, tuple(_special_floors(facts, rule)))


def _minimal(facts: Facts, now: datetime, preset: Preset) -> Decayed:
    rule = preset.rules[facts.kind]
    rate = _rate(facts, rule)
    whole_days = math.floor(days_since(facts.created_at, now))
    time = _time(rate, whole_days, _SINCE_CREATION)
    fading = (rate, time, _age(rate, facts, now, preset))
    return _added(facts, rule, fading, (_floor(rule),))


def _half_life(facts: Facts, now: datetime, preset: Preset) -> Decayed:
    rule = preset.rules[facts.kind]
    rate = _rate(facts, rule)
    time = _time(rate, days_since(facts.created_at, now), _SINCE_CREATION)
    fading = (rate, time, _age(rate, facts, now, preset))
    least = _clamp(_base(facts, rule).value * rule.floor + _access(facts, rule).value)
    floor = Step("floor", least, "base * {:g} + access", (rule.floor,))
    return _added(facts, rule, fading, (floor,))


def _boosted(facts: Facts, now: datetime, preset: Preset) -> Decayed:
    rule = preset.rules[facts.kind]
    base = Step("base", rule.base, "of the kind")
    rate = _rate(facts, rule)
    time = _time(rate, days_since(facts.created_at, now), _SINCE_CREATION)
    age = _age(rate, facts, now, preset)
    share = importance(facts)
    boost = Step(
        "boost",
        1 + rule.boost * facts.accesses + _IMPORTANCE_SHARE * share,
        "1 + {:g} * {} accesses + {:g} * {:.6g} importance",
        (rule.boost, facts.accesses, _IMPORTANCE_SHARE, share),
    )
    value = _clamp(base.value * time.value * age.value * boost.value)
    unfloored = Step("unfloored", value, "base * time * age * boost, from 0 to 1")
    steps = (base, rate, time, age, boost, unfloored)
    return _decayed(steps, (_floor(rule),), time.value * age.value)


def _added(
    facts: Facts, rule: Rule, fading: tuple[Step, Step, Step], floors: tuple[Step, ...]
) -> Decayed:
    """Return base * time * age + access, kept above `floors`."""
    base = _base(facts, rule)
    access = _access(facts, rule)
    _, time, age = fading
    factor = time.value * age.value
    value = _clamp(base.value * factor + access.value)
    unfloored = Step("unfloored", value, "base * time * age + access, from 0 to 1")
    return _decayed((base, *fading, access, unfloored), floors, factor)


def _decayed(steps: tuple[Step, ...], floors: tuple[Step, ...], factor: float) -> Decayed:
    unfloored = steps[-1].value
    value = max(unfloored, *(floor.value for floor in floors))
    final = Step("priority", value, "the greatest of unfloored and the floors")
    return Decayed(value, unfloored, factor, (*steps, *floors, final))


def _base(facts: Facts, rule: Rule) -> Step:
    if facts.base_priority is None:
        return Step("base", rule.base, "of the kind")
    return Step("base", facts.base_priority, "stated")


def _rate(facts: Facts, rule: Rule) -> Step:
    if facts.is_pinned:
        return Step("rate", 0.0, "pinned, never decays")
    return Step("rate", rule.rate, "per day, of the kind")


def _special_rate(facts: Facts, rule: Rule) -> Step:
    if facts.is_pinned:
        return _rate(facts, rule)
    if _is_open_decision(facts):
        return Step("rate", 0.0, "neither resolved nor superseded, holds")
    if facts.kind == "finding" and facts.is_resolved:
        numbers = (rule.rate, _RESOLVED_FACTOR)
        return Step("rate", math.prod(numbers), "{:g} * {:g}, resolved", numbers)
    return _rate(facts, rule)


def _time(rate: Step, days: float, pattern: str) -> Step:
    if rate.value == 0:
        return Step("time", 1.0, _NOT_FADING)
    return Step("time", math.exp(-rate.value * days), pattern, (rate.value, days))


def _age(rate: Step, facts: Facts, now: datetime, preset: Preset) -> Step:
    if rate.value == 0:
        return Step("age", 1.0, _NOT_FADING)
    days = days_since(facts.created_at, now)
    numbers = (preset.age_rate, days)
    return Step("age", math.exp(-preset.age_rate * days), _SINCE_CREATION, numbers)


def _access(facts: Facts, rule: Rule) -> Step:
    numbers = (_BOOST_LIMIT, rule.boost, facts.accesses)
    value = min(_BOOST_LIMIT, rule.boost * facts.accesses)
    return Step("access", value, "min({:g}, {:g} * {} accesses)", numbers)


def _floor(rule: Rule) -> Step:
    return Step("floor", rule.floor, "of the kind")


def _special_floors(facts: Facts, rule: Rule) -> Iterator[Step]:
    confidence = _word(facts.confidence) if facts.kind == "preference" else ""
    if confidence in ("inferred", "uncertain"):
        yield Step("floor", min(rule.floor, _INFERRED_FLOOR), confidence)
    else:
        yield _floor(rule)
    if confidence == "explicit":
        yield Step("floor", _EXPLICIT_FLOOR, confidence)
    if facts.kind == "decision" and _is_high_impact(facts):
        yield Step("floor", _HIGH_IMPACT_FLOOR, "high impact")
    if facts.kind == "finding" and _is_critical(facts):
        yield Step("floor", _CRITICAL_FLOOR, "critical")


def _last_touch(facts: Facts) -> datetime:
    return max(facts.created_at, facts.last_access_at or facts.created_at)


def _is_open_decision(facts: Facts) -> bool:
    return facts.kind == "decision" and not (facts.is_resolved or facts.is_superseded)


def _is_critical(facts: Facts) -> bool:
    return _word(facts.severity) == "critical"


def _is_high_impact(facts: Facts) -> bool:
    return _word(facts.impact) in ("high", "critical")


def _word(text: str | None) -> str:
    return (text or "").strip().lower()


def _clamp(value: float) -> float:
    return min(1.0, max(0.0, value))


def _of_kind(kind: str, settings: Mapping[str, object]) -> dict[str, float]:
    """Return what `settings` changes in the rule of `kind`."""
    given = settings.get(kind, {})
    if not isinstance(given, Mapping):
        # Every wrong setting is a ValueError, whatever is wrong with it.
        raise ValueError(  # noqa: TRY004
            f"decay setting {kind!r} is {given!r}, not a mapping"
        )
    _refuse_unknown(f"{kind}.", given, _RULE_KEYS)
    return _changes(f"{kind}.", given)


def _unless_constant(rule: Rule, shared: Mapping[str, float]) -> Rule:
    if rule.rate == 0:
        return replace(rule, floor=shared.get("floor", rule.floor))
    return replace(rule, **shared)


def _changes(prefix: str, given: Mapping[str, object]) -> dict[str, float]:
    """Return `given` as checked fields of a rule, a half-life as its rate."""
    numbers = {key: _number(prefix + key, value) for key, value in given.items()}
    if "rate" in numbers and "half_life_hours" in numbers:
        raise ValueError(f"decay setting '{prefix}rate' excludes a half-life beside it")
    if "half_life_hours" in numbers:
        numbers["rate"] = math.log(2) * 24 / numbers.pop("half_life_hours")
    return numbers


def _number(name: str, value: object) -> float:
    low, high = _RANGES[name.rpartition(".")[2]]
    number = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = value
    if not low <= number <= high:
        raise ValueError(
            f"decay setting {name!r} is {value!r}, not a number from {low:g} to {high:g}"
        )
    return float(number)


def _refuse_unknown(prefix: str, keys: Collection[object], known: Collection[str]) -> None:
    for key in keys:
        if key not in known:
            raise ValueError(f"unknown decay setting '{prefix}{key}'; known: {', '.join(known)}")


_FORMULAS: Final[Mapping[str, Callable[[Facts, datetime, Preset], Decayed]]] = {
    "default": _default,
    "minimal": _minimal,
    "boosted": _boosted,
    "half-life": _half_life,
}

# The seeds give no numbers for a learning, which persists as a preference; for an
# artifact, which fades as a decision but starts lower; and hardly any for a state,
# which fades faster than a turn.
_DEFAULT_RULES: Final[Mapping[str, Rule]] = {
    "turn": Rule(base=1.0, rate=0.05, boost=0.01, floor=0.1),
    "decision": Rule(base=0.95, rate=0.03, boost=0.02, floor=0.4),
    "finding": Rule(base=0.90, rate=0.04, boost=0.015, floor=0.3),
    "preference": Rule(base=0.85, rate=0.02, boost=0.03, floor=0.6),
    "learning": Rule(base=0.80, rate=0.02, boost=0.01, floor=0.3),
    "state": Rule(base=0.80, rate=0.06, boost=0.01, floor=0.1),
    "artifact": Rule(base=0.80, rate=0.03, boost=0.01, floor=0.3),
}
# The seed of `boosted` also names rates per hour, which contradict its half-lives;
# read per day they agree, so the half-lives hold.
_HALF_LIFE_DAYS: Final[Mapping[str, float]] = {
    "turn": 7,
    "decision": 30,
    "finding": 14,
    "preference": 60,
    "learning": 60,
    "state": 3,
    "artifact": 14,
}


def _minimal_rules() -> Iterator[tuple[str, Rule]]:
    # The bases and rates of both seeds are the same.
    for kind, rule in _DEFAULT_RULES.items():
        yield kind, replace(rule, boost=0.02, floor=0.0)


def _boosted_rules() -> Iterator[tuple[str, Rule]]:
    for kind, days in _HALF_LIFE_DAYS.items():
        yield kind, Rule(base=1.0, rate=math.log(2) / days, boost=0.1, floor=0.1)


def _half_life_rules() -> Iterator[tuple[str, Rule]]:
    for kind, rule in _boosted_rules():
        rate = 0.0 if kind == "preference" else rule.rate
        yield kind, replace(rule, rate=rate, boost=0.0)


# What a program keeps is neither more nor less to it with time.
_CONSTANT: Final = Rule(base=0.5, rate=0.0, boost=0.0, floor=0.0)


def _preset(name: str, rules: Iterable[tuple[str, Rule]], age_rate: float = 0.0) -> Preset:
    whole = {**dict(rules), "value": _CONSTANT}
    return Preset(name=name, rules=MappingProxyType(whole), age_rate=age_rate)


PRESETS: Final[Mapping[str, Preset]] = MappingProxyType(
    {
        "default": _preset("default", _DEFAULT_RULES.items(), age_rate=0.01),
        "minimal": _preset("minimal", _minimal_rules()),
        "boosted": _preset("boosted", _boosted_rules()),
        "half-life": _preset("half-life", _half_life_rules()),
    }
)
