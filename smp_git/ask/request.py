"""Requests: a checked query from keywords, or from a specification in JSON or YAML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypedDict

from smp_git.ask.conditions import Condition, condition, field_name, told
from smp_git.model.errors import InvalidError, InvalidQueryError
from smp_git.model.memory import KINDS, agent_name, aware, check_tags
from smp_git.model.times import parse_time

LONGEST_TEXT: Final = 1_048_576
_MOST: Final = 1_000_000

SORTABLE: Final = (
    "relevance", "priority", "created_at", "updated_at", "id", "kind", "agent", "title",
    "size_bytes", "severity", "status", "category", "confidence", "importance", "impact",
    "tokens", "pinned", "speaker", "role", "type", "topic",
)  # fmt: skip
COUNTED: Final = (
    "kind", "tag", "agent", "hour", "day", "severity", "status", "category", "speaker", "role",
    "type", "topic", "impact",
)  # fmt: skip
MEASURES: Final = ("min", "max", "sum", "avg")
MEASURED: Final = ("size_bytes", "priority", "confidence", "importance", "tokens", "created_at")


class Order(NamedTuple):
    """One key to sort by."""

    field: str
    descending: bool


class Aggregation(NamedTuple):
    """One number, or one count by group, over everything that matches."""

    name: str
    measure: str
    field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A checked question."""

    text: str | None = None
    kinds: frozenset[str] = frozenset()
    tags: tuple[str, ...] = ()
    any_tags: tuple[str, ...] = ()
    not_tags: tuple[str, ...] = ()
    agents: frozenset[str] = frozenset()
    since: datetime | None = None
    until: datetime | None = None
    where: tuple[Condition, ...] = ()
    min_priority: float | None = None
    min_importance: float | None = None
    min_relevance: float | None = None
    include_superseded: bool = True
    include_related: bool = False
    sort: tuple[Order, ...] = ()
    aggregations: tuple[Aggregation, ...] = ()
    limit: int | None = 20
    offset: int = 0
    explain: bool = False


class QueryParts(TypedDict, total=False):
    """What a query may say besides its text."""

    kinds: Iterable[str]
    tags: Iterable[str]
    any_tags: Iterable[str]
    not_tags: Iterable[str]
    agents: Iterable[str]
    since: datetime | str | None
    until: datetime | str | None
    where: Iterable[Sequence[object]]
    min_priority: float | None
    min_importance: float | None
    min_relevance: float | None
    include_decayed: bool
    include_superseded: bool
    include_related: bool
    sort: Iterable[object]
    aggregations: Iterable[object]
    limit: int | None
    offset: int
    explain: bool


def query(
    text: str | None = None,
    *,
    now: datetime,
    kinds: Iterable[str] = (),
    tags: Iterable[str] = (),
    any_tags: Iterable[str] = (),
    not_tags: Iterable[str] = (),
    agents: Iterable[str] = (),
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    where: Iterable[Sequence[object]] = (),
    min_priority: float | None = None,
    min_importance: float | None = None,
    min_relevance: float | None = None,
    include_decayed: bool = False,
    include_superseded: bool = True,
    include_related: bool = False,
    sort: Iterable[object] = (),
    aggregations: Iterable[object] = (),
    limit: int | None = 20,
    offset: int = 0,
    explain: bool = False,
) -> Query:
    """Return a checked query; raise InvalidQueryError naming the part that is wrong.

    `tags` must all be there, each with its subtree; of `any_tags` one. `include_decayed`
    lifts `min_priority`.
    """
    first, last = _moment("since", since, now), _moment("until", until, now)
    if first and last and first > last:
        raise InvalidQueryError(
            f"since {since} is after until {until}", hint="since must be the earlier one"
        )
    return Query(
        text=_text(text),
        kinds=frozenset(_kind(kind) for kind in _items("kinds", kinds)),
        tags=_tags("tags", tags),
        any_tags=_tags("any_tags", any_tags),
        not_tags=_tags("not_tags", not_tags),
        agents=frozenset(_agent(name) for name in _items("agents", agents)),
        since=first,
        until=last,
        where=tuple(_where(item, now) for item in _items("where", where)),
        min_priority=None
        if _flag("include_decayed", include_decayed)
        else _share("min_priority", min_priority),
        min_importance=_share("min_importance", min_importance),
        min_relevance=_share("min_relevance", min_relevance),
        include_superseded=_flag("include_superseded", include_superseded),
        include_related=_flag("include_related", include_related),
        sort=tuple(_order(item) for item in _items("sort", sort)),
        aggregations=tuple(_aggregation(item) for item in _items("aggregations", aggregations)),
        limit=_count("limit", limit) if limit is not None else None,
        offset=_count("offset", offset),
        explain=_flag("explain", explain),
    )


PARTS: Final = {
    "text": "text", "kinds": "kinds", "types": "kinds", "tags": "tags", "any_tags": "any_tags",
    "not_tags": "not_tags", "agents": "agents", "since": "since", "until": "until",
    "filters": "where", "where": "where", "sort": "sort", "aggregations": "aggregations",
    "limit": "limit", "offset": "offset", "min_priority": "min_priority",
    "minPriority": "min_priority", "min_importance": "min_importance",
    "min_relevance": "min_relevance", "include_decayed": "include_decayed",
    "includeDecayed": "include_decayed", "include_superseded": "include_superseded",
    "include_related": "include_related", "includeRelated": "include_related",
    "explain": "explain",
}  # fmt: skip


def from_specification(specification: Mapping[str, object], now: datetime) -> Query:
    """Return the query that a specification asks for; raise InvalidQueryError."""
    return query(now=now, **named_parts(specification))  # type: ignore[arg-type]


def named_parts(specification: object) -> dict[str, object]:
    """Return the parts of a specification under their own names; raise InvalidQueryError."""
    if not isinstance(specification, Mapping):
        raise InvalidQueryError(f"a specification must be a mapping, not {told(specification)}")
    parts: dict[str, object] = {}
    for key, value in specification.items():
        name = PARTS.get(key) if isinstance(key, str) else None
        if name is None:
            raise InvalidQueryError(
                f"no part {told(key)} of a query", hint=f"parts are {', '.join(sorted(PARTS))}"
            )
        if name in parts:
            raise InvalidQueryError(f"{key} gives {name} a second time")
        parts[name] = value
    return parts


def _text(text: object) -> str | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise InvalidQueryError(f"the text of a query must be text, not {told(text)}")
    if len(text) > LONGEST_TEXT:
        raise InvalidQueryError(
            f"the text of a query has {len(text):,} characters; the limit is {LONGEST_TEXT:,}"
        )
    return text if text.strip() else None


def _items(what: str, given: object) -> list[object]:
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise InvalidQueryError(f"{what} must be a list, not {told(given)}")
    return list(given)


def _word(what: str, given: object) -> str:
    if not isinstance(given, str):
        raise InvalidQueryError(f"{what} must be words, not {told(given)}")
    return given


def _flag(what: str, given: object) -> bool:
    if not isinstance(given, bool):
        raise InvalidQueryError(f"{what} must be true or false, not {told(given)}")
    return given


def _kind(name: object) -> str:
    text = name if isinstance(name, str) else ""
    plain = {"conversation_turn": "turn", "agent_state": "state"}.get(text, text)
    if plain in KINDS:
        return plain
    if plain.endswith("s") and plain[:-1] in KINDS:
        return plain[:-1]
    raise InvalidQueryError(f"no kind {told(name)}", hint=f"kinds are {', '.join(KINDS)}")


def _tags(what: str, given: object) -> tuple[str, ...]:
    try:
        return check_tags(_word(what, tag) for tag in _items(what, given))
    except InvalidError as error:
        raise InvalidQueryError(f"{what}: {error.message}", hint=error.hint) from None


def _agent(name: object) -> str:
    try:
        return agent_name(_word("agents", name))
    except InvalidError as error:
        raise InvalidQueryError(f"agents: {error.message}", hint=error.hint) from None


def _moment(what: str, given: object, now: datetime) -> datetime | None:
    if given is None:
        return None
    if not isinstance(given, (str, datetime)):
        raise InvalidQueryError(
            f"{what} must be a time, not {told(given)}", hint="e.g. 2026-01-11 or 2 days ago"
        )
    try:
        if isinstance(given, datetime):
            return aware(given)
        moment = parse_time(given, now)
    except (ValueError, InvalidError) as error:
        raise InvalidQueryError(f"{what}: {error}") from None
    # A day as an end means the whole of it.
    whole_day = what == "until" and len(given.strip()) == 10 and given.strip()[4:5] == "-"  # noqa: PLR2004 - YYYY-MM-DD
    return moment + timedelta(days=1, microseconds=-1) if whole_day else moment


def _where(item: object, now: datetime) -> Condition:
    if isinstance(item, Mapping):
        unknown = set(item) - {"field", "operator", "value"}
        if unknown:
            raise InvalidQueryError(
                f"no part {told(min(unknown, key=str))} of a filter",
                hint="a filter has field, operator and value",
            )
        verb = item.get("operator", "equals")
        return condition(
            item.get("field"), verb, item.get("value", True if verb == "exists" else None), now
        )
    if isinstance(item, (list, tuple)) and len(item) == 3:  # noqa: PLR2004 - field, operator, value
        return condition(item[0], item[1], item[2], now)
    raise InvalidQueryError(
        f"{told(item)} is not a condition", hint='a condition is ("severity", "equals", "critical")'
    )


def _order(item: object) -> Order:
    if isinstance(item, str):
        item = (item.removeprefix("-"), "desc" if item.startswith("-") else "asc")
    if isinstance(item, Mapping):
        item = (item.get("field"), item.get("direction", "asc"))
    if not isinstance(item, (list, tuple)) or len(item) != 2:  # noqa: PLR2004 - field and direction
        raise InvalidQueryError(
            f"{told(item)} is not a sort key", hint='a sort key is ("priority", "desc")'
        )
    name, direction = field_name(item[0]), item[1]
    if name not in SORTABLE:
        raise InvalidQueryError(
            f"cannot sort by {told(item[0])}", hint=f"sort by {', '.join(SORTABLE)}"
        )
    if direction not in ("asc", "desc"):
        raise InvalidQueryError(f"{told(direction)} is not a direction", hint="asc or desc")
    return Order(name, direction == "desc")


def _aggregation(item: object) -> Aggregation:
    if isinstance(item, Mapping):
        by = item.get("by", item.get("field"))
        measure = item.get("measure", item.get("type", "count"))
        item = (measure, by)
    if isinstance(item, str):
        measure, _, by = item.partition(":")
        item = (measure, by) if by else ("count", measure)
    if not isinstance(item, (list, tuple)) or len(item) != 2:  # noqa: PLR2004 - measure and field
        raise InvalidQueryError(
            f"{told(item)} is not an aggregation", hint='e.g. "count:kind" or "avg:size_bytes"'
        )
    measure, by = item
    name = "tag" if by == "tags" else field_name(by)
    allowed = COUNTED if measure == "count" else MEASURED
    if measure != "count" and measure not in MEASURES:
        raise InvalidQueryError(
            f"no aggregation {told(measure)}", hint=f"count, {', '.join(MEASURES)}"
        )
    if name not in allowed:
        raise InvalidQueryError(
            f"cannot {measure} by {told(by)}", hint=f"{measure} of {', '.join(allowed)}"
        )
    return Aggregation(f"{measure}:{by}", measure, name)


def _share(what: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise InvalidQueryError(f"{what} must be a number from 0 to 1, not {told(value)}")
    return float(value)


def _count(what: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        raise InvalidQueryError(
            f"{what} must be a whole number from 0 to {_MOST:,}, not {told(value)}"
        )
    return value
