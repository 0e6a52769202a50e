"""Parts of a query specification, under every name by which they are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from smp_git.ask.conditions import told
from smp_git.model.errors import InvalidQueryError

PARTS: Final = {
    "text": "text", "kinds": "kinds", "types": "kinds", "tags": "tags", "any_tags": "any_tags",
    "anyTags": "any_tags", "not_tags": "not_tags", "notTags": "not_tags", "agents": "agents",
    "agentFilter": "agents", "since": "since", "until": "until", "where": "where",
    "filters": "where", "min_priority": "min_priority", "minPriority": "min_priority",
    "min_importance": "min_importance", "minImportance": "min_importance",
    "min_relevance": "min_relevance", "minRelevance": "min_relevance",
    "include_decayed": "include_decayed", "includeDecayed": "include_decayed",
    "include_superseded": "include_superseded", "includeSuperseded": "include_superseded",
    "include_related": "include_related", "includeRelated": "include_related", "sort": "sort",
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
        raise InvalidQueryError(f"a specification must be a mapping, not {told(specification)}")
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
        raise InvalidQueryError(f"no part {told(key)} of a query", hint=f"parts are {known}")


def _split(key: object, value: object, names: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    if not isinstance(value, Mapping) or not value:
        raise InvalidQueryError(
            f"{key} must be a mapping with {' and '.join(list(names)[:2])}, not {told(value)}"
        )
    for name, item in value.items():
        if name not in names:
            raise InvalidQueryError(
                f"no part {told(name)} of {key}", hint=f"parts are {', '.join(names)}"
            )
        yield names[name], item
