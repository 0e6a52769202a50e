"""The lines of a page's index: one JSON map a memory, a pure function of its file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from smp_git.format.dialect import escape
from smp_git.model.ids import generation, of_generation, parse_id, sort_key
from smp_git.model.memory import VALUE, Link, Memory, MemoryId, Value, check_key, confidence_rank
from smp_git.model.times import format_time


class Entry(NamedTuple):
    """One index line, taken apart; absent keys are None."""

    id: MemoryId
    blob: str
    life: str | None
    at: str
    updated: str | None
    agent: str
    tags: list[str]
    title: str
    size: int
    links: list[list[str]]
    status: str | None
    severity: str | None
    category: str | None
    key: str | None
    parts: list[str]
    impact: str | None
    confidence: float | None
    basis: str | None
    importance: float | None
    pinned: bool | None
    speaker: str | None
    role: str | None
    type: str | None
    topic: str | None
    conversation: str | None
    turn: str | None
    tokens: int | None
    reversible: bool | None


_KEYS: Final = Entry._fields
_ABSENT: Final[Mapping[str, object]] = {
    **dict.fromkeys(_KEYS),
    "tags": [],
    "links": [],
    "parts": [],
}
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_START: Final = "- "
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_NONE: Final = type(None)
# What is under each key, for lines that somebody else wrote.
_TYPES: Final = tuple(
    {
        "size": int, "tags": list, "links": list, "parts": list,
        "confidence": (int, float, _NONE), "importance": (int, float, _NONE),
        "pinned": (bool, _NONE), "tokens": (int, _NONE), "reversible": (bool, _NONE),
    }.get(key, str if key in ("id", "blob", "at", "agent", "title") else (str, _NONE))
    for key in _KEYS
)  # fmt: skip


def entry_of(memory: Memory, blob: str, size: int) -> Entry:
    """Return the index entry of a memory whose file is `blob`."""
    fields = memory.fields
    confidence = fields.get("confidence")
    rank = confidence_rank(confidence)
    return Entry(
        id=memory.id,
        blob=blob,
        life=memory.life or None,
        at=format_time(memory.created_at),
        updated=format_time(memory.updated_at) if memory.updated_at else None,
        agent=memory.agent,
        tags=list(memory.tags),
        title=memory.title,
        size=size,
        links=[list(link) for link in memory.links],
        status=memory.status,
        severity=_text(fields, "severity"),
        category=_text(fields, "category"),
        key=_text(fields, "key")
        or (_text(fields, "topic") if memory.kind == "preference" else None),
        parts=[*check_key(fields["key"])] if memory.kind == VALUE else [],
        impact=_word(fields, "impact"),
        confidence=round(rank, 4) if rank is not None else None,
        basis=confidence if isinstance(confidence, str) else None,
        importance=_number(fields, "importance"),
        pinned=True if memory.pinned else None,
        speaker=_text(fields, "speaker"),
        role=_text(fields, "role"),
        type=_text(fields, "type"),
        topic=_text(fields, "topic"),
        conversation=_text(fields, "conversation_id"),
        turn=_text(fields, "turn_ref"),
        tokens=_whole(fields, "tokens"),
        reversible=_flag(fields, "reversible"),
    )


def told_by(entry: Entry, path: str, problem: str) -> Memory:
    """Return what an index line says of a memory whose file cannot be read."""
    said: dict[str, Value] = {
        "status": entry.status,
        "severity": entry.severity,
        "category": entry.category,
        "key": [*entry.parts] if entry.parts else entry.key,
        "impact": entry.impact,
        "confidence": entry.basis or entry.confidence,
        "importance": entry.importance,
        "pinned": entry.pinned,
        "speaker": entry.speaker,
        "role": entry.role,
        "type": entry.type,
        "topic": entry.topic,
        "conversation_id": entry.conversation,
        "turn_ref": entry.turn,
        "tokens": entry.tokens,
        "reversible": entry.reversible,
    }
    return Memory(
        id=entry.id,
        kind=parse_id(entry.id).kind.name,
        created_at=datetime.fromisoformat(entry.at),
        updated_at=datetime.fromisoformat(entry.updated) if entry.updated else None,
        agent=entry.agent,
        title=entry.title,
        tags=tuple(entry.tags),
        links=tuple(Link(relation, MemoryId(target)) for relation, target in entry.links),
        fields=MappingProxyType({name: each for name, each in said.items() if each is not None}),
        life=entry.life or "",
        path=path,
        size_bytes=entry.size,
        problem=problem,
    )


# A long free text is content, not an index key: only what fits a line of its own is kept.
_LONGEST_KEY: Final = 64


def _text(fields: Mapping[str, Value], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) and len(value) <= _LONGEST_KEY else None


def _word(fields: Mapping[str, Value], name: str) -> str | None:
    value = _text(fields, name)
    return value if value and _WORD.fullmatch(value) else None


def _number(fields: Mapping[str, Value], name: str) -> float | None:
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return round(float(value), 4)


def _whole(fields: Mapping[str, Value], name: str) -> int | None:
    value = fields.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _flag(fields: Mapping[str, Value], name: str) -> bool | None:
    value = fields.get(name)
    return value if isinstance(value, bool) else None


def write_line(entry: Entry) -> str:
    """Return the line of one entry."""
    shown = {
        key: value
        for key, value in zip(_KEYS, entry, strict=True)
        if value is not None and value != []
    }
    if (life := entry.life) is not None and life == of_generation(number := generation(life)):
        # A session of format 1 numbers its lives.
        shown = {
            ("gen" if k == "life" else k): (number if k == "life" else v) for k, v in shown.items()
        }
    return f"{_START}{escape(_ENCODER.encode(shown))}\n"


def write_page(lines: Mapping[MemoryId, str]) -> str:
    """Return the text of a page's index from its lines by id."""
    return "".join(lines[key] for key in sorted(lines, key=sort_key))


def split_page(text: str) -> list[str]:
    """Return the lines of a page's index that look like lines."""
    return [line + "\n" for line in text.split("\n") if line.startswith(_START)]


def read_lines(lines: Iterable[str]) -> list[Entry | None]:
    """Return the entries of index lines, None for a line that cannot be read."""
    bodies = [line[2:] for line in lines]
    try:
        maps = json.loads(f"[{','.join(bodies)}]")
    except (ValueError, RecursionError):
        return [_read_one(body) for body in bodies]
    if len(maps) != len(bodies):
        return [_read_one(body) for body in bodies]
    return [_entry(item) for item in maps]


def _read_one(body: str) -> Entry | None:
    try:
        return _entry(json.loads(body))
    except (ValueError, RecursionError):
        return None


def _entry(item: object) -> Entry | None:
    if not isinstance(item, dict):
        return None
    if isinstance(number := item.get("gen"), int):
        # A line of format 1.
        item = {**item, "life": of_generation(number) or None}
    entry = Entry._make(map({**_ABSENT, **item}.__getitem__, _KEYS))
    if not all(map(_is_a, entry, _TYPES)) or not _makes_sense(entry):
        return None
    are_texts = _are_texts(entry.tags) and _are_texts(entry.parts)
    return entry if are_texts and all(map(_is_pair, entry.links)) else None


def _makes_sense(entry: Entry) -> bool:
    """Whether times are times and shares are shares, for lines that somebody else wrote."""
    return (
        _is_share(entry.importance)
        and _is_share(entry.confidence)
        and _is_time(entry.at)
        and (entry.updated is None or _is_time(entry.updated))
    )


def _is_share(share: float | None) -> bool:
    return share is None or 0 <= share <= 1


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return text.endswith("Z")


_is_a: Callable[[object, Any], bool] = isinstance


def _is_pair(link: object) -> bool:
    return isinstance(link, list) and len(link) == 2 and _are_texts(link)  # noqa: PLR2004 - relation and target


def _are_texts(items: list[str]) -> bool:
    return {str}.issuperset(map(type, items))
