"""Requests: a checked query from keywords or from a specification, whose parts have several names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple, TypedDict

from smp_git.ask.conditions import KIND_ALIASES, Condition, condition, field_name, meant
from smp_git.model.errors import InvalidError, InvalidQueryError, shown
from smp_git.model.given import Kind
from smp_git.model.memory import KINDS, VALUE, agent_name, check_tags
from smp_git.model.times import When, moment_of

PARTS: Final = {
    "text": "text", "kinds": "kinds", "kind": "kinds", "types": "kinds", "tags": "tags",
    "tag": "tags", "agent": "agents", "any_tags": "any_tags",
    "anyTags": "any_tags", "not_tags": "not_tags", "notTags": "not_tags", "agents": "agents",
    "agentFilter": "agents", "since": "since", "until": "until", "where": "where",
    "filters": "where", "min_priority": "min_priority", "minPriority": "min_priority",
    "min_importance": "min_importance", "minImportance": "min_importance",
    "min_relevance": "min_relevance", "minRelevance": "min_relevance",
    "include_decayed": "include_decayed", "includeDecayed": "include_decayed",
    "include_superseded": "include_superseded", "includeSuperseded": "include_superseded",
    "include_related": "include_related", "includeRelated": "include_related",
    "include_archived": "include_archived", "includeArchived": "include_archived", "sort": "sort",
    "sort_by": "sort", "sortBy": "sort", "aggregations": "aggregations", "limit": "limit",
    "offset": "offset", "explain": "explain", "references": "references",
    "max_depth": "max_depth", "maxDepth": "max_depth",
}  # fmt: skip
RANGES: Final = ("time_range", "timeRange", "dateFilter")
CONFIDENCES: Final = ("confidenceFilter",)
_ENDS: Final = {"start": "since", "end": "until", "since": "since", "until": "until"}
_TAGS: Final = {"include": "tags", "any": "any_tags", "exclude": "not_tags"}


def named_parts(specification: object) -> dict[str, object]:
    """Return the parts of a specification under their own names; raise InvalidQueryError."""
    if not isinstance(specification, Mapping):
        raise InvalidQueryError(f"a specification must be a mapping, not {shown(specification)}")
    parts: dict[str, object] = {}
    for key, value in specification.items():
        for name, item in _said(key, value):
            before = parts.get(name)
            if name == "where" and isinstance(before, list) and isinstance(item, list):
                parts[name] = [*before, *item]
            elif name in parts:
                raise InvalidQueryError(f"{key} gives {name} a second time")
            else:
                parts[name] = item
    return parts


def _said(key: object, value: object) -> Iterator[tuple[str, object]]:
    """Yield what one key of a specification says, as parts."""
    if key in RANGES:
        yield from _split(key, value, _ENDS)
    elif key in CONFIDENCES:
        yield "where", [("confidence", "in", value)]
    elif key == "tags" and isinstance(value, Mapping):
        yield from _split(key, value, _TAGS)
    elif isinstance(key, str) and key in PARTS:
        yield PARTS[key], value
    else:
        known = ", ".join(sorted((*PARTS, *RANGES, *CONFIDENCES)))
        raise InvalidQueryError(f"no part {shown(key)} of a query", hint=f"parts are {known}")


def _split(key: object, value: object, names: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    if not isinstance(value, Mapping) or not value:
        raise InvalidQueryError(
            f"{key} must be a mapping with {' and '.join(list(names)[:2])}, not {shown(value)}"
        )
    for name, item in value.items():
        if name not in names:
            raise InvalidQueryError(
                f"no part {shown(name)} of {key}", hint=f"parts are {', '.join(names)}"
            )
        yield names[name], item


LONGEST_TEXT: Final = 1_048_576
_MOST: Final = 1_000_000
# The last quotation mark opens a phrase; behind a word, it may mean inches or seconds.
_UNCLOSED: Final = re.compile(r'(?<!\S)"(?=\S)[^"]*\Z')

MEASURES: Final = ("min", "max", "sum", "avg")
# What is counted of a memory besides its fields.
COUNTED: Final = ("tag", "hour", "day")
# Spellings of a direction at the end of a sort key.
_DIRECTIONS: Final = {"_desc": "desc", "_asc": "asc"}
_DEEPEST: Final = 10


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
    include_archived: bool = False
    sort: tuple[Order, ...] = ()
    aggregations: tuple[Aggregation, ...] = ()
    limit: int | None = 20
    offset: int = 0
    explain: bool = False
    references: tuple[str, ...] = ()
    max_depth: int = 1


class Filters(TypedDict, total=False):
    """Parts of a query that choose memories, whatever their order."""

    kind: Kind | Iterable[Kind]
    kinds: Kind | Iterable[Kind]
    tag: str | Iterable[str]
    tags: str | Iterable[str]
    any_tags: str | Iterable[str]
    not_tags: str | Iterable[str]
    agent: str | Iterable[str]
    agents: str | Iterable[str]
    since: When | None
    until: When | None
    where: Iterable[Sequence[object]]
    references: Iterable[str]
    max_depth: int
    min_priority: float | None
    min_importance: float | None
    include_decayed: bool
    include_superseded: bool


class QueryParts(Filters, total=False):
    """Parts of a query besides its text; a single word may stand for a list of one."""

    min_relevance: float | None
    include_related: bool
    include_archived: bool
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
    since: When | None = None,
    until: When | None = None,
    where: Iterable[Sequence[object]] = (),
    min_priority: float | None = None,
    min_importance: float | None = None,
    min_relevance: float | None = None,
    include_decayed: bool = False,
    include_superseded: bool = True,
    include_related: bool = False,
    include_archived: bool = False,
    sort: Iterable[object] = (),
    aggregations: Iterable[object] = (),
    limit: int | None = 20,
    offset: int = 0,
    explain: bool = False,
    references: Iterable[str] = (),
    max_depth: int = 1,
) -> Query:
    """Return a checked query; raise InvalidQueryError naming the part that is wrong.

    `tags` must all be there, each with its subtree; of `any_tags` one. `include_decayed`
    lifts `min_priority`. Of `references`, only what links lead to counts, up to `max_depth`.
    """
    first, last = _moment("since", since, now), _moment("until", until, now)
    if first and last and first > last:
        raise InvalidQueryError(
            f"since {since} is after until {until}", hint="since must be the earlier one"
        )
    words, named = _text(text), frozenset(_kind(kind) for kind in _words("kinds", kinds))
    if words is not None and VALUE in named:
        raise InvalidQueryError(
            "values are not searched by text",
            hint="leave the text out, and filter by fields, e.g. value.name=Ann",
        )
    return Query(
        text=words,
        kinds=named,
        tags=_tags("tags", tags),
        any_tags=_tags("any_tags", any_tags),
        not_tags=_tags("not_tags", not_tags),
        agents=frozenset(_agent(name) for name in _words("agents", agents)),
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
        include_archived=_flag("include_archived", include_archived),
        sort=tuple(_order(item) for item in _items("sort", _one_or_many(sort))),
        aggregations=tuple(_aggregation(item) for item in _items("aggregations", aggregations)),
        limit=_count("limit", limit) if limit is not None else None,
        offset=_count("offset", offset),
        explain=_flag("explain", explain),
        references=tuple(_word("references", name) for name in _items("references", references)),
        max_depth=_depth(max_depth),
    )


def from_specification(specification: Mapping[str, object], now: datetime) -> Query:
    """Return the query that a specification asks for; raise InvalidQueryError."""
    return query(now=now, **named_parts(specification))  # type: ignore[arg-type]


def _text(text: object) -> str | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise InvalidQueryError(f"the text of a query must be text, not {shown(text)}")
    if len(text) > LONGEST_TEXT:
        raise InvalidQueryError(
            f"the text of a query has {len(text):,} characters; the limit is {LONGEST_TEXT:,}"
        )
    if text.count('"') % 2 and _UNCLOSED.search(text):
        raise InvalidQueryError(
            f"a quotation mark in {shown(text)} is not closed",
            hint='close it, e.g. "session timeout", or leave it out',
        )
    return text if text.strip() else None


def _one_or_many(given: object) -> object:
    return [given] if isinstance(given, (str, Mapping)) else given


def _items(what: str, given: object) -> list[object]:
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise InvalidQueryError(f"{what} must be a list, not {shown(given)}")
    return list(given)


def _words(what: str, given: object) -> list[object]:
    """Return what is given as a list, one word too."""
    return [given] if isinstance(given, str) else _items(what, given)


def _word(what: str, given: object) -> str:
    if not isinstance(given, str):
        raise InvalidQueryError(f"{what} must be words, not {shown(given)}")
    return given


def _flag(what: str, given: object) -> bool:
    if not isinstance(given, bool):
        raise InvalidQueryError(f"{what} must be true or false, not {shown(given)}")
    return given


def _kind(name: object) -> str:
    text = name if isinstance(name, str) else ""
    for word in (text, text.removesuffix("s")):
        plain = KIND_ALIASES.get(word, word)
        if plain in KINDS:
            return plain
    raise InvalidQueryError(f"no kind {shown(name)}", hint=meant(text, KINDS, "kinds are"))


def _tags(what: str, given: object) -> tuple[str, ...]:
    try:
        return check_tags(_word(what, tag) for tag in _words(what, given))
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
    if not isinstance(given, (str, date, timedelta)):
        raise InvalidQueryError(
            f"{what} must be a time, not {shown(given)}", hint="e.g. 2026-01-11 or 2 days ago"
        )
    try:
        moment = moment_of(given, now)
    except InvalidError as error:
        raise InvalidQueryError(f"{what}: {error.message}", hint=error.hint) from None
    # A day as an end means the whole of it.
    text = "" if isinstance(given, (datetime, timedelta)) else str(given).strip()
    whole_day = what == "until" and len(text) == 10 and text[4:5] == "-"  # noqa: PLR2004 - YYYY-MM-DD
    return moment + timedelta(days=1, microseconds=-1) if whole_day else moment


def _where(item: object, now: datetime) -> Condition:
    if isinstance(item, Mapping):
        unknown = set(item) - {"field", "operator", "value"}
        if unknown:
            raise InvalidQueryError(
                f"no part {shown(min(unknown, key=str))} of a filter",
                hint="a filter has field, operator and value",
            )
        verb = item.get("operator", "equals")
        return condition(
            item.get("field"), verb, item.get("value", True if verb == "exists" else None), now
        )
    if isinstance(item, (list, tuple)) and len(item) == 3:  # noqa: PLR2004 - field, operator, value
        return condition(item[0], item[1], item[2], now)
    raise InvalidQueryError(
        f"{shown(item)} is not a condition",
        hint='a condition is ("severity", "equals", "critical")',
    )


def _order(item: object) -> Order:
    if isinstance(item, str):
        item = _spelled(item)
    if isinstance(item, Mapping):
        item = (item.get("field"), item.get("direction", "asc"))
    if not isinstance(item, (list, tuple)) or len(item) != 2:  # noqa: PLR2004 - field and direction
        raise InvalidQueryError(
            f"{shown(item)} is not a sort key", hint='a sort key is ("priority", "desc")'
        )
    name, direction = field_name(item[0]), item[1]
    if direction not in ("asc", "desc"):
        raise InvalidQueryError(f"{shown(direction)} is not a direction", hint="asc or desc")
    return Order(name, direction == "desc")


def _spelled(key: str) -> tuple[str, str]:
    """Return the field and direction of a sort key like `-priority` or `time_desc`."""
    if key.startswith("-"):
        return key[1:], "desc"
    for ending, direction in _DIRECTIONS.items():
        if key.endswith(ending) and key != ending:
            return key.removesuffix(ending), direction
    # The best first is what somebody wants who names no direction.
    return key, "desc" if key == "relevance" else "asc"


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
            f"{shown(item)} is not an aggregation", hint='e.g. "count:kind" or "avg:size_bytes"'
        )
    measure, by = item
    if measure != "count" and measure not in MEASURES:
        raise InvalidQueryError(
            f"no aggregation {shown(measure)}", hint=f"count, {', '.join(MEASURES)}"
        )
    name = "tag" if by == "tags" else field_name(by)
    if measure != "count" and name in COUNTED:
        raise InvalidQueryError(f"{shown(by)} can only be counted", hint=f"count:{name}")
    return Aggregation(f"{measure}:{by}", str(measure), name)


def _share(what: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise InvalidQueryError(f"{what} must be a number from 0 to 1, not {shown(value)}")
    return float(value)


def _depth(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _DEEPEST:
        raise InvalidQueryError(
            f"max_depth must be a whole number from 1 to {_DEEPEST}, not {shown(value)}"
        )
    return value


def _count(what: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        raise InvalidQueryError(
            f"{what} must be a whole number from 0 to {_MOST:,}, not {shown(value)}"
        )
    return value
