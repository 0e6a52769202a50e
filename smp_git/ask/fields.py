"""Values of fields: from a memory's index line, else from its file; counts and measures of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from smp_git.ask.catalogue import Catalogue, Row
from smp_git.ask.conditions import comparable, meant
from smp_git.ask.ranking import Ranking
from smp_git.ask.request import COUNTED, Aggregation, Query
from smp_git.model.memory import COMMON_FIELDS, CONTESTED, KINDS, Value
from smp_git.model.times import format_time
from smp_git.read.snapshot import Snapshot

_GETTERS: Final[Mapping[str, Callable[[Row], object]]] = {
    "id": lambda row: row.entry.id,
    "kind": lambda row: row.kind,
    "created_at": lambda row: row.at,
    "updated_at": lambda row: row.entry.updated,
    "agent": lambda row: row.entry.agent,
    "tags": lambda row: row.entry.tags,
    "title": lambda row: row.entry.title,
    "size_bytes": lambda row: row.entry.size,
    "life": lambda row: row.entry.life,
    "pinned": lambda row: bool(row.entry.pinned),
    "confidence": lambda row: row.entry.confidence,
    "importance": lambda row: row.entry.importance,
    "status": lambda row: row.entry.status,
    "severity": lambda row: row.entry.severity,
    "category": lambda row: row.entry.category,
    "key": lambda row: row.entry.key,
    "impact": lambda row: row.entry.impact,
    "speaker": lambda row: row.entry.speaker,
    "role": lambda row: row.entry.role,
    "type": lambda row: row.entry.type,
    "topic": lambda row: row.entry.topic,
    "conversation_id": lambda row: row.entry.conversation,
    "turn_ref": lambda row: row.entry.turn,
    "tokens": lambda row: row.entry.tokens,
    "reversible": lambda row: row.entry.reversible,
    "links": lambda row: [target for _, target in row.entry.links],
}
# For a preference the index joins its key and its topic.
MERGED: Final = frozenset({"key"})
_WHOLLY_INDEXED: Final = frozenset(_GETTERS) - {
    "category",
    "key",
    "impact",
    "speaker",
    "topic",
    "conversation_id",
}

# What every session knows: fields of memories, and what is computed of them.
KNOWN: Final = frozenset(
    (*_GETTERS, *COMMON_FIELDS, CONTESTED, *COUNTED, "content", "priority", "relevance",
     "access_count", "last_accessed", *(kind.main for kind in KINDS.values()),
     *(name for kind in KINDS.values() for name in kind.fields))
)  # fmt: skip


class Fields:
    """The fields of the memories of one snapshot."""

    def __init__(self, catalogue: Catalogue, snapshot: Snapshot, ranking: Ranking) -> None:
        self._catalogue = catalogue
        self._snapshot = snapshot
        self._ranking = ranking

    def value(self, row: Row, name: str) -> Any:  # noqa: ANN401 - whatever the field holds
        """Return the value of a field, as it is compared; None if there is none."""
        if name == "priority":
            return self._ranking.decayed(row).value
        if name in ("access_count", "last_accessed"):
            access = self._ranking.access(row)
            if name == "access_count":
                return access.times if access else 0
            return access.last_at if access else None
        getter = _GETTERS.get(name)
        value = getter(row) if getter is not None else None
        if (value is None and name not in _WHOLLY_INDEXED) or name in MERGED:
            value = self._stored(row, name)
        return comparable(name, value) if value is not None else None

    def unknown(self, query: Query) -> dict[str, str]:
        """Return the fields of a query that are neither known nor in any memory, with hints."""
        names = [condition.field for condition in query.where]
        names += [order.field for order in query.sort]
        names += [aggregation.field for aggregation in query.aggregations]
        return {
            name: meant(name, sorted(KNOWN), "fields are")
            for name in dict.fromkeys(names)
            if not self._is_known(name)
        }

    def _is_known(self, name: str) -> bool:
        path = name.removeprefix("fields.")
        root = path.partition(".")[0]
        if root in KNOWN:
            return True
        self._catalogue.follow(self._snapshot, KINDS)
        rows = self._catalogue.rows
        if any(self._stored(row, each) is not None for each in {path, root} for row in rows):
            return True
        # What cannot be read may have it.
        return bool(self._snapshot.damage())

    def _stored(self, row: Row, name: str) -> object:
        """Return a field that the index does not hold, from the memory's file."""
        lacking = self._catalogue.lacking.setdefault(name, set())
        if row.entry.blob in lacking:
            return None
        data = self._snapshot.readable_file(row.entry.id)
        if data is None:
            return None
        value = self._in_file(row, name, data)
        if value is None:
            lacking.add(row.entry.blob)
        return value

    def _in_file(self, row: Row, name: str, data: bytes) -> object:
        path = name.removeprefix("fields.")
        is_main = name in ("content", KINDS[row.kind].main)
        # Reading it costs far more than looking for a word.
        if not is_main and path.partition(".")[0].encode() not in data and b"\\" not in data:
            return None
        memory = self._snapshot.readable(row.entry.id)
        if memory is None:
            return None
        return memory.content if is_main else _at_path(memory.fields, path)

    def measured(self, wanted: Aggregation, rows: Iterable[Row]) -> object:
        """Return what is counted or measured of some rows."""
        if wanted.measure == "count":
            counts: dict[str, int] = {}
            for row in rows:
                for group in self._groups(row, wanted.field):
                    counts[group] = counts.get(group, 0) + 1
            return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
        return measure(wanted.measure, self.values(wanted.field, rows))

    def values(self, name: str, rows: Iterable[Row]) -> list[Any]:
        """Return the values of a field that some rows have."""
        return [value for row in rows if (value := self.value(row, name)) is not None]

    def _groups(self, row: Row, name: str) -> list[str]:
        if name == "tag":
            return list(row.entry.tags)
        if name in ("hour", "day"):
            return [row.at.strftime("%Y-%m-%dT%H:00" if name == "hour" else "%Y-%m-%d")]
        value = self.value(row, name)
        if isinstance(value, datetime):
            return [format_time(value)]
        values = value if isinstance(value, list) else [value]
        return [str(each) for each in values if each is not None]


def measure(what: str, values: list[Any]) -> object:
    """Return the least, the greatest, the sum or the average of some values; None of none."""
    if not values:
        return None
    if what in ("min", "max"):
        value = min(values, key=in_order) if what == "min" else max(values, key=in_order)
        return format_time(value) if isinstance(value, datetime) else value
    numbers = [value for value in values if isinstance(value, (int, float))]
    if not numbers:
        return None
    return sum(numbers) if what == "sum" else sum(numbers) / len(numbers)


def in_order(value: object) -> tuple[str, Any]:
    """Return a value in a form in which those of different types have an order too."""
    if isinstance(value, (bool, int, float)):
        return "number", value
    if isinstance(value, (str, datetime)):
        return type(value).__name__, value
    return "other", str(value)


def _at_path(fields: Mapping[str, Value], path: str) -> object:
    """Return the field of that name, else what stands under its parts, one in the other."""
    if path in fields:
        return fields[path]
    value: object = fields
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
