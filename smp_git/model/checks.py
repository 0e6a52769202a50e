"""Checks of settings: what a value may be, in words and as a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from smp_git.model.errors import InvalidError, shown
from smp_git.model.memory import Value, kind_named

# Where a setting may be set: in the store's config.yaml alone, in a session alone, in both.
STORE: Final = "store"
SESSION: Final = "session"
BOTH: Final = "both"
_MOST_DAYS: Final = 36_500


class Check(NamedTuple):
    """What a setting may be: in words, and the function that returns it or raises ValueError."""

    says: str
    take: Callable[[Any], Any]


class Setting(NamedTuple):
    """A row of the table."""

    name: str
    default: Value
    check: Check
    where: str
    meaning: str

    @property
    def default_text(self) -> str:
        """The default as a person would write it."""
        return as_text(self.default)


def as_text(value: Value) -> str:
    """Return a value as a person would write it in `config.yaml`."""
    if value is None or value in ({}, []):
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {as_text(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(as_text, value))
    return str(value)


# What a value may be


def number(most: float) -> Check:
    """Return the check of a number above 0."""

    def take(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= most:
            raise ValueError
        return float(value)

    return Check(f"a number above 0, up to {most:g}", take)


def whole(least: int, most: int) -> Check:
    """Return the check of a whole number."""

    def take(value: object) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError
        return value

    says = f"{least}" if least == most else f"a whole number from {least:,} to {most:,}"
    return Check(says, take)


def word(*words: str) -> Check:
    """Return the check of one of some words."""

    def take(value: object) -> str:
        # Unquoted, on and off are booleans in older YAML.
        said = ("off", "on")[value] if isinstance(value, bool) else value
        if said not in words:
            raise ValueError
        return str(said)

    return Check(f"{', '.join(words[:-1])} or {words[-1]}", take)


def switch() -> Check:
    """Return the check of what is on or off."""
    return Check("on or off", lambda value: word("on", "off").take(value) == "on")


def switch_or_kinds() -> Check:
    """Return the check of what is on or off, or so kind by kind."""

    def take(value: object) -> bool | dict[str, bool]:
        if isinstance(value, dict):
            return {str(name): switch().take(item) for name, item in value.items()}
        return bool(switch().take(value))

    return Check("on or off, or a mapping of kinds to on or off", take)


def text(says: str) -> Check:
    """Return the check of a text; None is none."""

    def take(value: object) -> str | None:
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise ValueError
        return value

    return Check(says, take)


def mapping(says: str, check: Callable[[dict[str, Value]], object] | None = None) -> Check:
    """Return the check of a mapping; `check` raises for one that it cannot be."""

    def take(value: object) -> dict[str, Value]:
        if not isinstance(value, dict):
            raise ValueError  # noqa: TRY004 - whatever is wrong is told in one sentence
        if check is not None and value:
            check(value)
        return dict(value)

    return Check(says, take)


def decay_numbers(value: dict[str, Value]) -> None:
    """Raise InvalidError for what the setting `decay` cannot be."""
    from smp_git.model.relevance import scales  # noqa: PLC0415 - most stores set neither

    scales(value, {}, "")


def relevance_weights(value: dict[str, Value]) -> None:
    """Raise InvalidError for what the setting `relevance` cannot be."""
    from smp_git.model.relevance import scales  # noqa: PLC0415 - most stores set neither

    scales({}, value, "")


def retention_days(value: dict[str, Value]) -> None:
    """Raise InvalidError for what the setting `retention` cannot be."""
    for name, days in value.items():
        if name == "strict":
            if not isinstance(days, bool):
                raise InvalidError(f"strict must be on or off, not {shown(days)}")
            continue
        kind_named(name)
        is_number = isinstance(days, (int, float)) and not isinstance(days, bool)
        if days is not None and not (is_number and 0 < float(str(days)) <= _MOST_DAYS):
            raise InvalidError(f"{name} must be a number of days or null, not {shown(days)}")


def as_it_is(says: str) -> Check:
    """Return a check for what others check, with reasons of their own."""
    return Check(says, lambda value: value)
