"""Conditions on fields: what each operator asks of a value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

from smp_git.model.errors import (
    InvalidError,
    InvalidQueryError,
    QueryTimeoutError,
    nearest,
    shown,
)
from smp_git.model.memory import CONFIDENCE_RANKS, KINDS, SEVERITIES, check_value
from smp_git.model.regexes import ASKING, LONGEST, Bounded
from smp_git.model.times import When, moment_of

Test = Callable[[object], bool]

# The index holds confidence and importance so far, and so they are compared.
_DIGITS: Final = 4

_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}(?:\.[A-Za-z0-9_-]{1,64}){0,8}")

TIMES: Final = ("created_at", "updated_at", "last_accessed")
ALIASES: Final[Mapping[str, str]] = {
    "at": "created_at", "timestamp": "created_at", "updated": "updated_at",
    "created_by": "agent", "agent_id": "agent", "decay.priority": "priority",
    "resolution.status": "status", "base_priority": "importance", "size": "size_bytes",
    "text": "content", "turn": "turn_ref", "conversation": "conversation_id",
    "time": "created_at", "decay.access_count": "access_count",
    "decay.last_accessed": "last_accessed",
}  # fmt: skip
_OPERATOR_ALIASES: Final[Mapping[str, str]] = {
    "=": "equals", "==": "equals", "eq": "equals", "!=": "not_equals", "ne": "not_equals",
    ">": "greater_than", "gt": "greater_than", "greaterThan": "greater_than",
    "<": "less_than", "lt": "less_than", "lessThan": "less_than",
    "notEquals": "not_equals", "~": "matches",
}  # fmt: skip
OPERATORS: Final = (
    "equals", "not_equals", "contains", "in", "greater_than", "less_than", "between",
    "exists", "matches",
)  # fmt: skip
_SEVERITY_RANKS: Final[Mapping[str, int]] = {word: -place for place, word in enumerate(SEVERITIES)}
_FLAGS: Final = ("pinned", "reversible")
KIND_ALIASES: Final = {"conversation_turn": "turn", "conversation": "turn", "agent_state": "state"}


# The words that a field can hold.
_CLOSED: Final[Mapping[str, tuple[str, ...]]] = {
    "severity": SEVERITIES,
    "confidence": tuple(CONFIDENCE_RANKS),
    "kind": (*KINDS, *KIND_ALIASES),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition on one field; checked when made."""

    field: str
    operator: str
    value: Any

    def test(self) -> Test:
        """Return the test of one value, for the time of one answer."""
        return _TESTS[self.operator](self.field, self.value)


def condition(field: object, operator: object, value: object, now: datetime) -> Condition:
    """Return a checked condition; raise InvalidQueryError naming the part that is wrong."""
    name = field_name(field)
    verb = _OPERATOR_ALIASES.get(operator, operator) if isinstance(operator, str) else ""
    if verb not in OPERATORS:
        raise InvalidQueryError(
            f"no operator {shown(operator)} on {name}", hint=f"operators are {', '.join(OPERATORS)}"
        )
    given = _storable(name, value)
    if name == "type" and _names_a_kind(given):
        name = "kind"
    return Condition(field=name, operator=verb, value=_wanted(name, verb, given, now))


def meant(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return a hint at the word that was perhaps meant, else at all there are."""
    words = list(known)
    close = nearest(word, words)
    return f"perhaps {close}" if close else f"{otherwise} {', '.join(words)}"


def _storable(name: str, value: object) -> Any:  # noqa: ANN401 - whatever the field holds
    """Return a value as a memory could hold it; nothing else can equal one."""
    try:
        return check_value(value, f"the value for {name}")
    except InvalidError as error:
        raise InvalidQueryError(error.message, hint=error.hint) from None


def field_name(field: object) -> str:
    """Return the name under which a field is known; raise InvalidQueryError."""
    if not isinstance(field, str) or not _FIELD.fullmatch(field):
        raise InvalidQueryError(
            f"{shown(field)} is not a field", hint="e.g. severity, status or resolution.status"
        )
    return ALIASES.get(field, field)


def _names_a_kind(value: object) -> bool:
    words = value if isinstance(value, list) else [value]
    kinds = (*KINDS, *KIND_ALIASES)
    return bool(words) and all(word in kinds for word in words)


def _wanted(name: str, verb: str, value: object, now: datetime) -> Any:  # noqa: ANN401 - whatever the field holds
    if verb == "exists":
        if not isinstance(value, bool):
            raise InvalidQueryError(f"exists on {name} needs true or false, not {shown(value)}")
        return value
    if verb == "matches":
        return _pattern(name, value)
    if verb == "in":
        return [_listed(name, item, now) for item in _list(name, verb, value)]
    if verb == "between":
        return _range(name, value, now)
    if value is None:
        raise InvalidQueryError(
            f"{verb} on {name} needs a value", hint="use exists to ask for absence"
        )
    if isinstance(value, (list, dict)) and verb in ("greater_than", "less_than", "contains"):
        raise InvalidQueryError(f"{verb} on {name} needs one value, not {shown(value)}")
    return comparable(name, value, now) if verb == "contains" else _listed(name, value, now)


def _listed(name: str, value: object, now: datetime) -> Any:  # noqa: ANN401 - whatever the field holds
    """Return a value to compare with; raise InvalidQueryError if no memory can have it."""
    if name in _FLAGS and not isinstance(value, bool):
        raise InvalidQueryError(f"{name} is true or false, not {shown(value)}")
    words = _CLOSED.get(name)
    if words is not None and isinstance(value, str) and value not in words:
        raise InvalidQueryError(
            f"no {name} {shown(value)}", hint=meant(value, words, f"{name} is one of")
        )
    return comparable(name, value, now)


def _list(name: str, verb: str, value: object) -> Sequence[object]:
    if isinstance(value, list):
        return value
    raise InvalidQueryError(f"{verb} on {name} needs a list, not {shown(value)}")


def _range(name: str, value: object, now: datetime) -> tuple[Any, Any]:
    ends = [_listed(name, item, now) for item in _list(name, "between", value)]
    if len(ends) != 2 or None in ends:  # noqa: PLR2004 - two ends
        raise InvalidQueryError(f"between on {name} needs two values, not {shown(value)}")
    low, high = ends
    if not _ordered(low, high):
        raise InvalidQueryError(f"between on {name} cannot compare {shown(value)}")
    if low > high:
        raise InvalidQueryError(
            f"between on {name} has its ends reversed: {shown(value)}", hint="the lower one first"
        )
    return low, high


def _pattern(name: str, value: object) -> Bounded:
    if not isinstance(value, str) or len(value) > LONGEST:
        raise InvalidQueryError(
            f"matches on {name} needs a pattern of up to {LONGEST:,} characters"
        )
    try:
        return Bounded(value, ASKING, re.IGNORECASE)
    except ValueError as error:
        raise InvalidQueryError(
            f"the pattern {shown(value)} on {name} is not valid: {error}"
        ) from None


def comparable(name: str, value: object, now: datetime | None = None) -> Any:  # noqa: ANN401 - whatever the field holds
    """Return a field's value in the form in which it is compared."""
    if name in TIMES and isinstance(value, (str, date, timedelta)):
        return _moment(name, value, now)
    if name == "confidence" and isinstance(value, str):
        return CONFIDENCE_RANKS.get(value, value)
    if name in ("confidence", "importance") and isinstance(value, float):
        return round(value, _DIGITS)
    if name == "severity" and isinstance(value, str):
        return _Severity(value)
    if name == "kind" and isinstance(value, str):
        return KIND_ALIASES.get(value, value)
    return value


class _Severity(str):
    """A word of severity: equal as a word, ordered by weight."""

    __slots__ = ()

    @property
    def rank(self) -> int:
        """The weight of the word, any other word lowest."""
        return _SEVERITY_RANKS.get(self, -99)

    def __lt__(self, other: str) -> bool:
        return self.rank < _SEVERITY_RANKS.get(other, -99)

    def __gt__(self, other: str) -> bool:
        return self.rank > _SEVERITY_RANKS.get(other, -99)

    def __le__(self, other: str) -> bool:
        return not self > other

    def __ge__(self, other: str) -> bool:
        return not self < other


def _moment(name: str, value: When, now: datetime | None) -> datetime:
    if now is None:
        # What a memory holds, not what a caller gives.
        return value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    try:
        return moment_of(value, now)
    except InvalidError as error:
        raise InvalidQueryError(f"{name}: {error.message}", hint=error.hint) from None


def _ordered(left: object, right: object) -> bool:
    numbers = (int, float)
    if isinstance(left, numbers) and isinstance(right, numbers):
        return not isinstance(left, bool) and not isinstance(right, bool)
    return type(left) is type(right) and isinstance(left, (str, datetime))


def _equals(_name: str, wanted: Any) -> Test:  # noqa: ANN401 - any value
    return lambda value: bool(value == wanted)


def _not_equals(_name: str, wanted: Any) -> Test:  # noqa: ANN401 - any value
    return lambda value: bool(value != wanted)


def _in(_name: str, wanted: Any) -> Test:  # noqa: ANN401 - any value
    return lambda value: value in wanted


def _contains(name: str, wanted: Any) -> Test:  # noqa: ANN401 - any value
    if name == "tags":
        return lambda value: (
            isinstance(value, list) and any(below(tag, str(wanted)) for tag in value)
        )
    folded = str(wanted).casefold()

    def test(value: object) -> bool:
        if isinstance(value, str):
            return folded in value.casefold()
        if isinstance(value, dict):
            return wanted in value
        return isinstance(value, list) and wanted in value

    return test


def _greater_than(_name: str, wanted: Any) -> Test:  # noqa: ANN401 - any value
    return lambda value: _ordered(value, wanted) and bool(value > wanted)


def _less_than(_name: str, wanted: Any) -> Test:  # noqa: ANN401 - any value
    return lambda value: _ordered(value, wanted) and bool(value < wanted)


def _between(_name: str, wanted: Any) -> Test:  # noqa: ANN401 - any value
    low, high = wanted
    return lambda value: _ordered(value, low) and bool(low <= value <= high)


def _exists(_name: str, wanted: Any) -> Test:  # noqa: ANN401 - any value
    return lambda value: (value is not None and value != []) is wanted


def _matches(name: str, wanted: Bounded) -> Test:
    # One answer has the time, however many conditions were made of the pattern before.
    pattern = wanted.again()

    def test(value: object) -> bool:
        texts = value if isinstance(value, list) else [value]
        return any(_found(name, pattern, text) for text in texts if isinstance(text, str))

    return test


def _found(name: str, pattern: Bounded, text: str) -> bool:
    try:
        return pattern.search(text)
    except TimeoutError:
        raise QueryTimeoutError(
            f"the pattern {pattern.source!r} on {name} takes too long",
            hint="write it without nested repetitions",
        ) from None


_TESTS: Final[Mapping[str, Callable[[str, Any], Test]]] = {
    "equals": _equals,
    "not_equals": _not_equals,
    "contains": _contains,
    "in": _in,
    "greater_than": _greater_than,
    "less_than": _less_than,
    "between": _between,
    "exists": _exists,
    "matches": _matches,
}


def below(tag: str, root: str) -> bool:
    """Whether a tag is `root` or in its subtree."""
    return tag == root or tag.startswith(f"{root}.")
