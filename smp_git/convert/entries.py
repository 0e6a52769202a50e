"""Entries of other programs, in our words: kinds, times, tags and fields that a memory takes."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias, cast

from smp_git.format.imports import GIVEN
from smp_git.model.errors import InvalidError
from smp_git.model.memory import (
    KINDS,
    MAX_DEPTH,
    VALUE,
    Kind,
    Value,
    agent_name,
    check_fields,
    check_relation,
    check_tags,
)

# Fields that name other memories, as the source calls them until their ids here are known.
REFERENCES: Final = ("turn_ref", "memory_refs", "parent", "supersedes")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_NOT_IN_TAGS: Final = re.compile(r"[^a-z0-9_.-]+")
# Seconds since 1970 beyond this are milliseconds.
_SECONDS: Final = 1e11
_LONGEST_NAME: Final = 64
_LONGEST_AGENT: Final = 57
_LONGEST_TAG_PART: Final = 32
_LONGEST_KEY: Final = 128
_DEEPEST: Final = MAX_DEPTH - 4
# Between the name of a file or folder and what tells it from others of that name.
APART: Final = "~"

# What other programs call our kinds, and our fields.
KINDS_THERE: Final = {
    "conversation": "turn", "conversation_turn": "turn", "message": "turn", "turn": "turn",
    "decision": "decision", "finding": "finding", "preference": "preference",
    "learning": "learning", "artifact": "artifact",
}  # fmt: skip
_COMMON: Final = {
    "created_by": "agent",
    "base_priority": "importance",
    "priority": "importance",
}
_RENAMED: Final[Mapping[str, Mapping[str, str]]] = {
    "turn": {"parent_message_id": "parent", "message_type": "type"},
    "decision": {
        "by": "made_by",
        "alternatives_considered": "alternatives",
        "implementation_impact": "impact",
    },
    "finding": {},
    "preference": {},
    "learning": {},
    "artifact": {},
    "state": {},
    "value": {},
}
# Words of others for our severities and confidences; theirs is kept beside.
_SEVERITIES: Final = {
    "blocker": "critical", "severe": "critical", "fatal": "critical", "error": "high",
    "major": "important", "moderate": "medium", "warning": "medium", "warn": "medium",
    "trivial": "low", "note": "info", "informational": "info", "information": "info",
}  # fmt: skip
_CONFIDENCES: Final = {
    "sure": "certain", "definite": "certain", "confirmed": "certain", "very high": "certain",
    "likely": "high", "probable": "high", "moderate": "medium", "possible": "low",
    "unlikely": "low", "guess": "uncertain", "unknown": "uncertain", "speculative": "uncertain",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignMemory:
    """One memory of a source; `id` and the targets of its links are ids of the source."""

    kind: str
    id: str
    text: str
    agent: str = ""
    at: datetime | None = None
    tags: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    fields: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType({}))
    # How often it was read there, and when last.
    reads: int = 0
    last_read: datetime | None = None
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Something that could not be taken in: the file, the line if there is one, and why."""

    where: str
    reason: str

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        file, _, line = self.where.rpartition(":")
        known = bool(file) and line.isdigit()
        return {
            "file": file if known else self.where,
            "line": int(line) if known else None,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class ForeignDeletion:
    """The id of something that was deleted in the source."""

    id: str


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Something that is no memory by the rules of its format, e.g. the output of a tool."""

    what: str
    count: int = 1


Item: TypeAlias = "ForeignMemory | Trouble | ForeignDeletion | PassedOver"


class ForeignArchive(NamedTuple):
    """When a session was archived in its source, by whom and why, as far as that says."""

    at: datetime | None = None
    by: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignSession:
    """A session of another program: what it says of itself, and its items one by one."""

    format: str
    id: str
    items: Iterable[Item]
    created_at: datetime | None = None
    user: str | None = None
    agents: tuple[str, ...] = ()
    context: Mapping[str, object] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    overrides: Mapping[str, object] = field(default_factory=dict)
    # Belongs to the session of what holds across sessions.
    shared: bool = False
    # Put away there, and what is said of that.
    archived: ForeignArchive | None = None
    # The file or folder that it is called after, where others may have the same name.
    place: Path | None = None
    # What tells a session of ours from every other one, under whatever name.
    uid: str = ""

    @property
    def name(self) -> str:
        """What tells this session from every other one of any program."""
        return f"{self.format}:{self.id}{_digest(self.place) if self.place else ''}"


def _digest(place: Path) -> str:
    path = place.resolve().as_posix().encode("utf-8", "surrogateescape")
    return APART + hashlib.blake2b(path, digest_size=3).hexdigest()


def made(
    kind: str,
    id: object,
    text: object,
    raw: Mapping[str, object],
    *,
    where: str,
    agent: object = "",
    at: object = None,
    tags: object = (),
    links: Iterable[tuple[str, str]] = (),
    reads: object = 0,
    last_read: object = None,
) -> ForeignMemory:
    """Return an entry of what a source says, with every value that we would refuse kept beside."""
    known = KINDS[kind]
    rest = _renamed(known, raw)
    who = next((name for name in (agent, rest.pop("agent", None)) if name), "")
    fields = dict(_fields(known, rest))
    moment = as_time(at)
    if at is not None and moment is None:
        fields[f"timestamp{GIVEN}"] = storable(at)
    plain, changed = as_tags(tags)
    if changed:
        fields[f"tags{GIVEN}"] = changed
    name = as_agent(who)
    if who and name != who and "speaker" not in fields and kind == "turn":
        fields["speaker"] = as_text(who)
    return ForeignMemory(
        kind=kind,
        id=as_text(id),
        text=as_text(text),
        agent=name,
        at=moment,
        tags=plain,
        links=tuple(dict.fromkeys((as_relation(word), as_text(to)) for word, to in links)),
        fields=MappingProxyType(fields),
        reads=reads if isinstance(reads, int) and not isinstance(reads, bool) and reads > 0 else 0,
        last_read=as_time(last_read),
        where=where,
    )


def _renamed(kind: Kind, raw: Mapping[str, object]) -> dict[str, object]:
    names = {**_COMMON, **_RENAMED[kind.name]}
    out: dict[str, object] = {}
    for name, value in raw.items():
        ours = names.get(name, name)
        out[name if ours in raw and ours != name else ours] = value
    return out


def _fields(kind: Kind, raw: Mapping[str, object]) -> Iterator[tuple[str, Value]]:
    for given, value in raw.items():
        if value is None:
            continue
        if kind.name == VALUE and given in ("key", "value"):
            # What cannot be kept exactly is refused, not changed.
            yield given, cast("Value", value)
            continue
        name, kept = _field_name(given), storable(value)
        if name in REFERENCES:
            yield name, kept
            continue
        word = _word_of_ours(name, kept)
        if word is not None:
            yield name, word
            yield name + GIVEN, kept
        elif _is_taken(kind, name, kept):
            yield from check_fields(kind, {name: kept}).items()
        else:
            yield name + GIVEN, kept


def _word_of_ours(name: str, value: Value) -> str | None:
    words = {"severity": _SEVERITIES, "confidence": _CONFIDENCES}.get(name)
    return words.get(value.strip().lower()) if words and isinstance(value, str) else None


def _is_taken(kind: Kind, name: str, value: Value) -> bool:
    with suppress(InvalidError):
        check_fields(kind, {name: value})
        return True
    return False


def _field_name(given: object) -> str:
    name = _NOT_IN_NAMES.sub("_", as_text(given)).strip("-.")[: _LONGEST_NAME - len(GIVEN)]
    return name if re.match("[A-Za-z_]", name) else f"_{name}"


def storable(value: object, depth: int = 0) -> Value:
    """Return a value as a memory can hold it; what is nested too deep becomes JSON text."""
    if value is None or isinstance(value, (bool, int, float)):
        return _number(value)
    if isinstance(value, date):
        return value.isoformat()
    if depth > _DEEPEST or not isinstance(value, (Mapping, list, tuple, set)):
        return as_text(value)
    if isinstance(value, Mapping):
        return {_key(name): storable(item, depth + 1) for name, item in value.items()}
    return [storable(item, depth + 1) for item in value]


def _number(value: int | float | None) -> Value:
    """Return a number that fits 64 bits and is finite as it is, any other as text."""
    if value is None or isinstance(value, bool):
        return value
    fits = abs(value) < 2**63 if isinstance(value, int) else math.isfinite(value)
    return value if fits else str(value)


def _key(name: object) -> str:
    text = "".join(char if ord(char) >= ord(" ") else " " for char in as_text(name))
    return text[:_LONGEST_KEY] or "_"


def as_text(value: object) -> str:
    """Return a value as text that can be stored: without NUL and halves of characters."""
    if isinstance(value, str):
        text = value
    elif value is None:
        return ""
    elif isinstance(value, (Mapping, list)):
        text = json.dumps(value, default=str, ensure_ascii=False)
    else:
        text = str(value)
    return text.encode("utf-8", "replace").decode().replace("\0", "�")


def as_time(value: object) -> datetime | None:
    """Return the moment that a source gives: RFC 3339, a date, or seconds or milliseconds."""
    with suppress(ValueError, OverflowError, OSError):
        if isinstance(value, datetime):
            return _in_utc(value)
        if isinstance(value, date):
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        if isinstance(value, bool):
            return None
        if isinstance(value, (int, float)):
            return datetime.fromtimestamp(value / 1000 if value > _SECONDS else value, UTC)
        if isinstance(value, str) and value.strip():
            return _in_utc(datetime.fromisoformat(_plain_time(value)))
    return None


def _plain_time(text: str) -> str:
    return re.sub(r" ?UTC$", "+00:00", text.strip())


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def as_tags(value: object) -> tuple[tuple[str, ...], list[Value]]:
    """Return tags as we write them, and the list as it was given if one had to change."""
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, Iterable) or isinstance(given, Mapping):
        return (), [storable(given)] if given else []
    items = [as_text(item) for item in given if item not in (None, "")]
    plain = tuple(dict.fromkeys(tag for item in items if (tag := as_tag(item))))
    return plain, [] if list(plain) == items else list(items)


def as_tag(text: str) -> str:
    """Return a text as a tag; empty if nothing of it can stand in one."""
    folded = _NOT_IN_TAGS.sub("-", text.strip().lower().replace("/", "."))
    parts = (part.strip("-")[:_LONGEST_TAG_PART] for part in folded.split("."))
    tag = ".".join(part for part in parts if part)
    with suppress(InvalidError):
        return check_tags([tag])[0]
    return ""


def as_agent(value: object) -> str:
    """Return a name as an agent's; empty if there is none in it."""
    with suppress(InvalidError):
        return agent_name(as_text(value)[:_LONGEST_AGENT])
    return ""


def as_relation(text: str) -> str:
    """Return a word for a link as we write it."""
    word = re.sub(r"[^a-z0-9_]+", "_", as_text(text).strip().lower()).strip("_")[:32]
    with suppress(InvalidError):
        return check_relation(word)
    return "references"


def ids_of(value: object) -> list[str]:
    """Return the ids that a source lists: one, several, or several by kind."""
    if isinstance(value, Mapping):
        return [each for items in value.values() for each in ids_of(items)]
    if isinstance(value, (list, tuple)):
        return [as_text(item) for item in value if isinstance(item, (str, int))]
    return [as_text(value)] if isinstance(value, (str, int)) and value != "" else []
