"""What is asked: a query from keywords, or from a specification in JSON or YAML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypedDict

from smp_git.errors import InvalidError, InvalidQueryError
from smp_git.memory import KINDS, agent_name, aware, check_tags
from smp_git.query.conditions import Condition, condition, field_name
from smp_git.when import parse_time

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
        raise InvalidQueryError(f"since {since} is after until {until}")
    return Query(
        text=_text(text),
        kinds=frozenset(_kind(kind) for kind in _words("kinds", kinds)),
        tags=_tags("tags", tags),
        any_tags=_tags("any_tags", any_tags),
        not_tags=_tags("not_tags", not_tags),
        agents=frozenset(_agent(name) for name in _words("agents", agents)),
        since=first,
        until=last,
        where=tuple(_where(item, now) for item in where),
        min_priority=None if include_decayed else _share("min_priority", min_priority),
        min_importance=_share("min_importance", min_importance),
        min_relevance=_share("min_relevance", min_relevance),
        include_superseded=bool(include_superseded),
        include_related=bool(include_related),
        sort=tuple(_order(item) for item in sort),
        aggregations=tuple(_aggregation(item) for item in aggregations),
        limit=_count("limit", limit) if limit is not None else None,
        offset=_count("offset", offset),
        explain=bool(explain),
    )


_SPECIFIED: Final = {
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
_LISTS: Final = ("kinds", "tags", "any_tags", "not_tags", "agents", "where", "sort", "aggregations")


def from_specification(specification: Mapping[str, object], now: datetime) -> Query:
    """Return the query that a specification asks for; raise InvalidQueryError."""
    given: dict[str, object] = {}
    for key, value in specification.items():
        name = _SPECIFIED.get(key)
        if name is None:
            raise InvalidQueryError(f"no part {key!r} of a query", hint=f"parts are {', '.join(sorted(_SPECIFIED))}")  # fmt: skip
        if name in _LISTS and not isinstance(value, (list, tuple)):
            raise InvalidQueryError(f"{key} is a list, not {value!r}")
        given[name] = value
    return query(now=now, **given)  # type: ignore[arg-type]


def _text(text: object) -> str | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise InvalidQueryError(f"the text of a query is text, not {text!r}")
    if len(text) > LONGEST_TEXT:
        raise InvalidQueryError(f"the text of a query has {len(text):,} characters; the limit is {LONGEST_TEXT:,}")  # fmt: skip
    return text if text.strip() else None


def _words(what: str, given: object) -> list[object]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidQueryError(f"{what} is a list of words, not {given!r}")
    return list(given)


def _kind(name: object) -> str:
    plain = {"conversation_turn": "turn", "agent_state": "state"}.get(str(name), str(name))
    if plain in KINDS:
        return plain
    if plain.endswith("s") and plain[:-1] in KINDS:
        return plain[:-1]
    raise InvalidQueryError(f"no kind {name!r}", hint=f"kinds are {', '.join(KINDS)}")


def _tags(what: str, given: object) -> tuple[str, ...]:
    try:
        return check_tags(given)
    except InvalidError as error:
        raise InvalidQueryError(f"{what}: {error.message}", hint=error.hint) from None


def _agent(name: object) -> str:
    try:
        return agent_name(name)
    except InvalidError as error:
        raise InvalidQueryError(f"agents: {error.message}", hint=error.hint) from None


def _moment(what: str, given: datetime | str | None, now: datetime) -> datetime | None:
    if given is None:
        return None
    if isinstance(given, datetime):
        return aware(given)
    try:
        moment = parse_time(given, now)
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidQueryError(f"{what}: {error}") from None
    # A day as an end means the whole of it.
    whole_day = what == "until" and len(given.strip()) == 10 and given.strip()[4:5] == "-"  # noqa: PLR2004 - YYYY-MM-DD
    return moment + timedelta(days=1, microseconds=-1) if whole_day else moment


def _where(item: object, now: datetime) -> Condition:
    if isinstance(item, Mapping):
        unknown = set(item) - {"field", "operator", "value"}
        if unknown:
            raise InvalidQueryError(f"no part {sorted(unknown)[0]!r} of a filter", hint="a filter has field, operator and value")  # fmt: skip
        return condition(item.get("field"), item.get("operator", "equals"), item.get("value", True if item.get("operator") == "exists" else None), now)  # fmt: skip
    if isinstance(item, (list, tuple)) and len(item) == 3:  # noqa: PLR2004 - field, operator, value
        return condition(item[0], item[1], item[2], now)
    raise InvalidQueryError(f"{item!r} is no condition", hint='a condition is ("severity", "equals", "critical")')  # fmt: skip


def _order(item: object) -> Order:
    if isinstance(item, str):
        item = (item.removeprefix("-"), "desc" if item.startswith("-") else "asc")
    if isinstance(item, Mapping):
        item = (item.get("field"), item.get("direction", "asc"))
    if not isinstance(item, (list, tuple)) or len(item) != 2:  # noqa: PLR2004 - field and direction
        raise InvalidQueryError(
            f"{item!r} is no sort key", hint='a sort key is ("priority", "desc")'
        )
    name, direction = field_name(item[0]), item[1]
    if name not in SORTABLE:
        raise InvalidQueryError(
            f"cannot sort by {item[0]!r}", hint=f"sort by {', '.join(SORTABLE)}"
        )
    if direction not in ("asc", "desc"):
        raise InvalidQueryError(f"{direction!r} is no direction", hint="asc or desc")
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
        raise InvalidQueryError(f"{item!r} is no aggregation", hint='such as "count:kind" or "avg:size_bytes"')  # fmt: skip
    measure, by = str(item[0]), str(item[1])
    name = "tag" if by == "tags" else field_name(by)
    allowed = COUNTED if measure == "count" else MEASURED
    if measure != "count" and measure not in MEASURES:
        raise InvalidQueryError(f"no aggregation {measure!r}", hint=f"count, {', '.join(MEASURES)}")
    if name not in allowed:
        raise InvalidQueryError(
            f"cannot {measure} by {by!r}", hint=f"{measure} of {', '.join(allowed)}"
        )
    return Aggregation(f"{measure}:{by}", measure, name)


def _share(what: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise InvalidQueryError(f"{what} is a number from 0 to 1, not {value!r}")
    return float(value)


def _count(what: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        raise InvalidQueryError(f"{what} is a whole number from 0 to {_MOST:,}, not {value!r}")
    return value
