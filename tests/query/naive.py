"""The same questions answered by looking through every checked-out file: no index, no cache."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import fsum
from pathlib import Path
from typing import Any

from smp_git.format import document
from smp_git.model.decay import PRESETS, Facts, priority
from smp_git.model.ids import parse_id, parse_path
from smp_git.model.memory import CONFIDENCE_RANKS, KINDS, SEVERITIES, Memory
from smp_git.model.times import format_time, parse_time

_IMPORTANCE = {"decision": 1.0, "finding": 0.8, "preference": 0.7}
Found = tuple[list[str], int, dict[str, object], list[float]]


@dataclass
class Known:
    """One memory with what is computed of it."""

    memory: Memory
    size: int
    superseded: bool = False
    priority: float = 0.0


def scan(folder: Path, now: datetime) -> list[Known]:
    """Return every memory of a checked-out session."""
    found = []
    for file in sorted(folder.rglob("*")):
        path = file.relative_to(folder).as_posix()
        if not path.startswith(".git/") and file.is_file() and parse_path(path):
            data = file.read_bytes()
            found.append(Known(document.decode(data, path), len(data)))
    for known in found:
        known.superseded = known.memory.status == "superseded" or any(
            link == ("supersedes", known.memory.id)
            for other in found
            if other.memory.kind == known.memory.kind and other is not known
            for link in other.memory.links
        )
        known.priority = priority(_facts(known), now, PRESETS["default"]).value
    return found


def _facts(known: Known) -> Facts:
    memory, fields = known.memory, known.memory.fields
    confidence = fields.get("confidence")
    impact, severity = fields.get("impact"), fields.get("severity")
    return Facts(
        kind=memory.kind,
        created_at=memory.created_at,
        base_priority=_rounded(fields.get("importance")),
        severity=severity if isinstance(severity, str) else None,
        impact=impact if isinstance(impact, str) else None,
        confidence=confidence if isinstance(confidence, str) else None,
        is_pinned=memory.pinned,
        is_resolved=memory.status == "resolved",
        is_superseded=known.superseded,
    )


def _rounded(value: Any) -> float | None:
    return round(float(value), 4) if isinstance(value, (int, float)) else None


# Fields of the examples that are of no kind.
_OWN = ("x", "note", "missing", "generation")


def refusal(found: list[Known], parts: Mapping[str, Any]) -> str | None:
    """Return the message for a field that no memory has, if one is asked for."""
    names = [each[0] for each in (*parts.get("where", ()), *parts.get("sort", ()))]
    names += [each.partition(":")[2] for each in parts.get("aggregations", ())]
    for name in names:
        path = name.removeprefix("fields.")
        root = path.partition(".")[0]
        if root in _OWN and all(_at(k.memory.fields, each) is None for k in found for each in (path, root)):  # fmt: skip
            return f"no memory has a field {name!r}"
    return None


def answer(found: list[Known], parts: Mapping[str, Any], now: datetime) -> Found | str:
    """Return ids, total, aggregations and priorities, as a query does, or why it refuses."""
    if refused := refusal(found, parts):
        return refused
    kept = [known for known in found if _matches(known, parts, now)]
    for name, descending in [(None, False), *reversed(parts.get("sort") or [("priority", "desc")])]:
        kept = _sorted(kept, name, descending == "desc")
    if parts.get("sort") in (None, [], [("priority", "desc")], [("relevance", "desc")]):
        kept.sort(key=lambda known: known.superseded)
    first, limit = parts.get("offset", 0), parts.get("limit", 20)
    page = kept[first:] if limit is None else kept[first : first + limit]
    counted = {name: _counted(name, kept) for name in parts.get("aggregations", ())}
    return [k.memory.id for k in page], len(kept), counted, [k.priority for k in page]


def _matches(known: Known, parts: Mapping[str, Any], now: datetime) -> bool:
    memory = known.memory
    at, since, until = memory.created_at, parts.get("since"), parts.get("until")
    importance = _rounded(memory.fields.get("importance"))
    if importance is None:
        importance = _IMPORTANCE.get(memory.kind, 0.5)
    return all(
        (
            memory.kind in (parts.get("kinds") or KINDS),
            all(_has(memory, tag) for tag in parts.get("tags", ())),
            any(_has(memory, tag) for tag in parts["any_tags"]) if parts.get("any_tags") else True,
            not any(_has(memory, tag) for tag in parts.get("not_tags", ())),
            memory.agent in (parts.get("agents") or [memory.agent]),
            since is None or at >= _time(since, now),
            until is None or at <= _time(until, now, whole_day=True),
            all(holds(known, each, now) for each in parts.get("where", ())),
            parts.get("include_superseded", True) or not known.superseded,
            importance >= parts.get("min_importance", 0),
            known.priority >= parts.get("min_priority", 0),
        )
    )


def _has(memory: Memory, tag: str) -> bool:
    return any(own == tag or own.startswith(tag + ".") for own in memory.tags)


def _time(given: Any, now: datetime, *, whole_day: bool = False) -> datetime:
    if isinstance(given, datetime):
        return given
    moment = parse_time(given, now)
    is_day = whole_day and re.fullmatch(r"\d{4}-\d\d-\d\d", given)
    return moment + timedelta(days=1, microseconds=-1) if is_day else moment


def value(known: Known, field: str) -> Any:
    """Return what a field holds, or None."""
    memory, fields = known.memory, known.memory.fields
    own: dict[str, Callable[[], Any]] = {
        "id": lambda: memory.id,
        "kind": lambda: memory.kind,
        "created_at": lambda: memory.created_at,
        "updated_at": lambda: memory.updated_at,
        "agent": lambda: memory.agent,
        "tags": lambda: list(memory.tags),
        "title": lambda: memory.title,
        "size_bytes": lambda: known.size,
        "life": lambda: memory.life or None,
        "pinned": lambda: memory.pinned,
        "status": lambda: memory.status,
        "priority": lambda: known.priority,
        "relevance": lambda: known.priority,
        "links": lambda: [link.target for link in memory.links],
        "content": lambda: memory.content,
        KINDS[memory.kind].main: lambda: memory.content,
        "confidence": lambda: _confidence(fields.get("confidence")),
        "importance": lambda: _rounded(fields.get("importance")),
        "tokens": lambda: _typed(fields.get("tokens"), int),
    }
    return own[field]() if field in own else _at(fields, field.removeprefix("fields."))


def _typed(held: Any, kind: type) -> Any:
    return held if type(held) is kind else None


def _confidence(held: Any) -> float | None:
    return CONFIDENCE_RANKS[held] if isinstance(held, str) else _rounded(held)


def _at(fields: Any, path: str) -> Any:
    if path in fields:
        return fields[path]
    for part in path.split("."):
        fields = fields.get(part) if isinstance(fields, Mapping) else None
    return fields


def holds(known: Known, condition: tuple[str, str, Any], now: datetime) -> bool:
    """Whether a memory meets one condition."""
    field, operator, wanted = condition
    if field == "type" and isinstance(wanted, str) and wanted in KINDS:
        field = "kind"
    held = value(known, field)
    asked = [_asked(field, each, now) for each in wanted] if operator in ("in", "between") else _asked(field, wanted, now) if operator not in ("exists", "matches") else wanted  # fmt: skip
    tests: dict[str, Callable[[], bool]] = {
        "equals": lambda: bool(held == asked),
        "not_equals": lambda: bool(held != asked),
        "in": lambda: held in asked,
        "exists": lambda: (held is not None and held != []) == asked,
        "contains": lambda: _contains(known, field, held, asked),
        "matches": lambda: any(re.search(wanted, text, re.IGNORECASE) is not None for text in (held if isinstance(held, list) else [held]) if isinstance(text, str)),
        "greater_than": lambda: _compared(field, held, asked, above=True),
        "less_than": lambda: _compared(field, held, asked, above=False),
        "between": lambda: not _compared(field, held, asked[0], above=False) and not _compared(field, held, asked[1], above=True) and _alike(held, asked[0]),
    }  # fmt: skip
    return tests[operator]()


def _asked(field: str, wanted: Any, now: datetime) -> Any:
    if field in ("created_at", "updated_at"):
        return _time(wanted, now)
    if field == "confidence":
        return _confidence(wanted)
    return _rounded(wanted) if field == "importance" else wanted


def _contains(known: Known, field: str, held: Any, asked: Any) -> bool:
    if field == "tags":
        return _has(known.memory, asked)
    if isinstance(held, str):
        return str(asked).casefold() in held.casefold()
    return isinstance(held, (list, dict)) and asked in held


def _alike(held: Any, asked: Any) -> bool:
    numbers = [type(each) in (int, float) for each in (held, asked)]
    return all(numbers) or (type(held) is type(asked) and isinstance(held, (str, datetime)))


def _compared(field: str, held: Any, asked: Any, *, above: bool) -> bool:
    if not _alike(held, asked):
        return False
    if field == "severity":
        held, asked = _weight(held), _weight(asked)
    return bool(held > asked if above else held < asked)


def _weight(severity: str) -> int:
    return -SEVERITIES.index(severity) if severity in SEVERITIES else -99


def _sorted(kept: list[Known], name: str | None, descending: bool) -> list[Known]:
    if name is None:
        return sorted(kept, key=lambda known: (-_microseconds(known), parse_id(known.memory.id).sort_key))  # fmt: skip
    present = [known for known in kept if value(known, name) is not None]
    absent = [known for known in kept if value(known, name) is None]
    return sorted(present, key=lambda known: _order(known, name), reverse=descending) + absent


def _microseconds(known: Known) -> int:
    return (known.memory.created_at - datetime.min.replace(tzinfo=known.memory.created_at.tzinfo)) // timedelta(microseconds=1)  # fmt: skip


def _order(known: Known, name: str) -> Any:
    held = value(known, name)
    if name == "id":
        return parse_id(held).sort_key
    if name == "severity":
        return _weight(held), held
    return _rank(held)


def _rank(held: Any) -> tuple[str, Any]:
    kind = "number" if isinstance(held, (int, float)) else type(held).__name__
    return (kind, held) if kind in ("number", "str", "datetime") else ("other", str(held))


def _counted(name: str, kept: list[Known]) -> object:
    measure, _, field = name.partition(":")
    if measure == "count":
        groups = [group for known in kept for group in _groups(known, field)]
        counts = {group: groups.count(group) for group in groups}
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
    held = [each for known in kept if (each := value(known, field)) is not None]
    numbers = [each for each in held if isinstance(each, (int, float))]
    if not held or (measure in ("sum", "avg") and not numbers):
        return None
    if measure == "sum":
        return fsum(numbers)
    if measure == "avg":
        return fsum(numbers) / len(numbers)
    most = (min if measure == "min" else max)(held, key=_rank)
    return format_time(most) if isinstance(most, datetime) else most


def _groups(known: Known, field: str) -> list[str]:
    if field == "tag":
        return list(known.memory.tags)
    if field in ("hour", "day"):
        return [known.memory.created_at.strftime("%Y-%m-%dT%H:00" if field == "hour" else "%Y-%m-%d")]  # fmt: skip
    held = value(known, field)
    if isinstance(held, datetime):
        return [format_time(held)]
    return [str(each) for each in (held if isinstance(held, list) else [held]) if each is not None]
