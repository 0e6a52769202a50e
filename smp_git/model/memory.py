"""Memories: their kinds and fields, and the checks that make one valid."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from dataclasses import fields as fields_of_class
from datetime import UTC, date, datetime
from math import isfinite
from types import MappingProxyType
from typing import Final, NamedTuple, NewType, TypeAlias

from smp_git.model.errors import InvalidError, shown
from smp_git.model.given import Severity
from smp_git.model.times import aware, format_time

MemoryId = NewType("MemoryId", str)
CommitId = NewType("CommitId", str)

Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value] | None"

MAX_CONTENT_BYTES: Final = 1_048_576
# Escapes and indentation may double the content; the rest is fields.
MAX_FILE_BYTES: Final = 4 * MAX_CONTENT_BYTES
# What a program keeps under one key, as text; and its file, with the fields.
MAX_VALUE_BYTES: Final = 8 * MAX_CONTENT_BYTES
MAX_VALUE_FILE_BYTES: Final = MAX_VALUE_BYTES + (64 << 10)
MAX_KEY_BYTES: Final = 1024
MAX_VALUE_DEPTH: Final = 100
# How often a key is deleted for good, and written again.
MAX_AGAIN: Final = 1_000_000
# Two halves of one character beside each other, which JSON reads as that character.
_TWO_HALVES: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
# Python writes no longer number as text: 4,300 digits.
_MOST_BITS: Final = 14_000
MAX_DEPTH: Final = 32
TITLE_LENGTH: Final = 80


class Kind(NamedTuple):
    """One kind of memory: its ids, its place, and the fields it knows."""

    name: str
    prefix: str
    folder: str
    suffix: str
    main: str
    fields: tuple[str, ...]


_TURN_FIELDS = (
    "speaker", "role", "type", "memory_refs", "conversation_id", "parent", "topic",
    "tokens", "processing_time_ms",
)  # fmt: skip
_DECISION_FIELDS = (
    "rationale", "made_by", "agreed_by", "approved_by", "agents_involved",
    "alternatives", "reversible", "impact", "status", "supersedes", "resolution",
)  # fmt: skip
_FINDING_FIELDS = (
    "severity", "category", "discovered_by", "location", "evidence", "impact",
    "root_cause", "recommendation", "status", "resolution",
)  # fmt: skip
_PREFERENCE_FIELDS = (
    "category", "key", "topic", "value", "context", "status", "applies_to",
    "learned_from",
)  # fmt: skip
_LEARNING_FIELDS = ("category", "topic", "evidence", "status", "learned_from", "applies_to")
_STATE_FIELDS = ("current_context", "working_memory", "session_learnings", "memory_refs")
_ARTIFACT_FIELDS = ("type", "name", "media_type", "topic", "status")
_VALUE_FIELDS = ("key", "again", "redacted", "value")

KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind("turn", "turn", "conversation", "md", "content", _TURN_FIELDS),
        Kind("decision", "DEC", "decisions", "yaml", "decision", _DECISION_FIELDS),
        Kind("finding", "FIND", "findings", "yaml", "finding", _FINDING_FIELDS),
        Kind("preference", "PREF", "preferences", "yaml", "preference", _PREFERENCE_FIELDS),
        Kind("learning", "LEARN", "learnings", "yaml", "learning", _LEARNING_FIELDS),
        Kind("state", "state", "agent-states", "yaml", "state", _STATE_FIELDS),
        Kind("artifact", "ART", "artifacts", "md", "content", _ARTIFACT_FIELDS),
        Kind("value", "VAL", "values", "yaml", "text", _VALUE_FIELDS),
    )
}
# What a program keeps under a key of its own. It answers no question, unless one names its kind.
VALUE: Final = "value"
# What its id is made of, so that it never changes.
FIXED: Final = ("key", "again")
SEARCHED: Final = tuple(name for name in KINDS if name != VALUE)
# The type of a question that a user wants to be answered by certain memories.
RECALL: Final = "recall"
KIND_ORDER: Final = {name: place for place, name in enumerate(KINDS)}

COMMON_FIELDS: Final = ("turn_ref", "title", "confidence", "importance", "pinned", "source")
# Values that lost in a merge; only a merge adds to them.
CONTESTED: Final = "contested"
# Stands for the comments of a file where a merge reports what it decided; no field has this name.
COMMENTS: Final = "#"
_STRUCTURAL: Final = frozenset(
    ("id", "kind", "life", "generation", "created_at", "updated_at", "agent", "tags", "links")
)

CONFIDENCE_RANKS: Final[Mapping[str, float]] = {
    "certain": 1.0, "explicit": 1.0, "high": 0.9, "medium": 0.6, "inferred": 0.5,
    "low": 0.3, "uncertain": 0.2,
}  # fmt: skip
SEVERITIES: Final[tuple[Severity, ...]] = (
    "critical",
    "high",
    "important",
    "medium",
    "minor",
    "low",
    "info",
)
_DEFAULT_STATUS: Final = {
    "decision": "active",
    "finding": "open",
    "preference": "active",
    "learning": "active",
}

_LINE_END = re.compile("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_WORD = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_RELATION = re.compile(r"[a-z][a-z0-9_]{0,31}")
_TAG_PART = re.compile(r"[a-z0-9_-]{1,32}")
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_TURN = re.compile(r"(?:turn-)?0*([1-9][0-9]{0,17})(-[a-z][a-z0-9]{3})?")
_AGENT = re.compile(r"[a-z0-9][a-z0-9_-]{0,56}")
_RESERVED = frozenset(
    ["index", "con", "prn", "aux", "nul"]
    + [f"{device}{n}" for device in ("com", "lpt") for n in range(10)]
)


class Link(NamedTuple):
    """A directed relation to another memory; `target` is SESSION:ID for one of another session.

    >>> session.get("DEC-0001").links
    (Link(relation='resolves', target='FIND-0001'),)
    """

    relation: str
    target: MemoryId


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Memory:
    """One memory as it is at one commit; made only by this package, always valid.

    `content` is the main text, `title` its short form, `fields` everything else that
    is the kind's own or the user's. `path`, `commit` and `size_bytes` say where it was
    read; they are not part of the memory. `life` names the restoration or redaction that
    this is of, if any; `duplicate_of` names a recent memory that
    says the same, when an addition noticed one; `redacted` says which secrets the write
    took out, by pattern and count. `problem` says why its file cannot be read; then this is
    what its index line says, without content. `access_count` and `last_accessed` say how often it was
    read before and when last, if that was looked up.

    >>> memory = session.get("DEC-0001")
    >>> (memory.content, memory.fields["rationale"], memory.status)
    ('Use OAuth 2.0', 'Industry standard', 'active')
    """

    id: MemoryId
    kind: str
    created_at: datetime
    agent: str
    content: str = ""
    title: str = ""
    tags: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    fields: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType({}))
    updated_at: datetime | None = None
    life: str = ""
    path: str = field(default="", compare=False)
    commit: CommitId = field(default=CommitId(""), compare=False)
    size_bytes: int = field(default=0, compare=False)
    duplicate_of: MemoryId | None = field(default=None, compare=False)
    redacted: tuple[tuple[str, int], ...] = field(default=(), compare=False)
    problem: str = field(default="", compare=False)
    access_count: int | None = field(default=None, compare=False)
    last_accessed: datetime | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"Memory({self.id!r}, {self.title!r})"

    def __hash__(self) -> int:
        return hash((self.id, self.life, self.kind, self.created_at, self.updated_at, self.content))

    def __getstate__(self) -> dict[str, object]:
        """Return what is pickled and copied: a view of a mapping cannot be."""
        state = {each.name: getattr(self, each.name) for each in fields_of_class(self)}
        return {**state, "fields": deepcopy(dict(self.fields))}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        for name, value in state.items():
            view = MappingProxyType(value) if isinstance(value, dict) else value
            object.__setattr__(self, name, view)

    @property
    def pinned(self) -> bool:
        """Whether decay and compaction leave this memory alone."""
        return self.fields.get("pinned") is True

    @property
    def status(self) -> str | None:
        """The status that holds: given, or the default of the kind."""
        return status_of(self.kind, self.fields)

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        out: dict[str, object] = {
            "id": self.id,
            "kind": self.kind,
            "created_at": format_time(self.created_at),
            "updated_at": format_time(self.updated_at) if self.updated_at else None,
            "agent": self.agent,
            "tags": list(self.tags),
            "title": self.title,
            "content": self.content,
            "fields": deepcopy(dict(self.fields)),
            "links": [{"relation": link.relation, "target": link.target} for link in self.links],
            "life": self.life or None,
            "size_bytes": self.size_bytes,
            "path": self.path,
            "commit": self.commit,
        }
        if self.duplicate_of:
            out["duplicate_of"] = self.duplicate_of
        if self.redacted:
            out["redacted"] = dict(self.redacted)
        if self.problem:
            out["problem"] = self.problem
        if self.access_count is not None:
            out["access_count"] = self.access_count
            last = self.last_accessed
            out["last_accessed"] = format_time(last) if last else None
        return out

    def to_dict(self) -> dict[str, object]:
        """Return the memory as a plain mapping, as `--json` prints it."""
        return self.as_json()

    @classmethod
    def from_dict(cls, said: Mapping[str, object]) -> Memory:
        """Return the memory that `to_dict` made into `said`; raise InvalidError."""
        kind = kind_named(said.get("kind"))
        links = said.get("links")
        given = said.get("fields")
        return cls(
            id=MemoryId(check_text(said.get("id"), "id")),
            kind=kind.name,
            created_at=_moment(said.get("created_at"), "created_at"),
            updated_at=_moment(at, "updated_at") if (at := said.get("updated_at")) else None,
            agent=agent_name(said.get("agent")),
            content=check_text(said.get("content", ""), "content"),
            title=check_text(said.get("title", ""), "title"),
            tags=check_tags(said.get("tags", ())),
            links=tuple(_link_in(each) for each in links) if isinstance(links, list) else (),
            fields=MappingProxyType(
                check_fields(kind, given if isinstance(given, Mapping) else {})
            ),
            life=str(said.get("life") or ""),
            path=str(said.get("path") or ""),
            commit=CommitId(str(said.get("commit") or "")),
        )


def _moment(value: object, name: str) -> datetime:
    try:
        moment = datetime.fromisoformat(str(value))
        return aware(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except ValueError:
        raise InvalidError(f"{name} is not a time: {shown(value)}") from None


def _link_in(value: object) -> Link:
    if isinstance(value, Mapping) and isinstance(value.get("target"), str):
        return Link(check_relation(value.get("relation")), MemoryId(value["target"]))
    raise InvalidError(f"{shown(value)} is not a link")


def one_or_many(given: str | Iterable[str]) -> Iterable[str]:
    """Return what is given as a list, a single word too."""
    return [given] if isinstance(given, str) else given


def kind_named(name: object) -> Kind:
    """Return the kind called `name`; raise InvalidError naming the choices."""
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidError(f"no kind {shown(name)}", hint=f"kinds are {', '.join(KINDS)}")
    return kind


def status_of(kind: str, fields: Mapping[str, Value]) -> str | None:
    """Return the status of a memory: its resolution's, its own, or its kind's default."""
    resolution = fields.get("resolution")
    if isinstance(resolution, dict) and isinstance(resolution.get("status"), str):
        return str(resolution["status"])
    status = fields.get("status")
    return str(status) if isinstance(status, str) else _DEFAULT_STATUS.get(kind)


def confidence_rank(value: Value) -> float | None:
    """Return a confidence as a number from 0 to 1, or None if there is none."""
    if isinstance(value, str):
        return CONFIDENCE_RANKS.get(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    return None


def title_of(content: str, fields: Mapping[str, Value]) -> str:
    """Return the title: the field, else the first line of `content`, folded and cut."""
    given = fields.get("title")
    text = given if isinstance(given, str) else content
    text = text.lstrip()
    end = _LINE_END.search(text)
    folded = " ".join((text[: end.start()] if end else text).split())
    return folded if len(folded) <= TITLE_LENGTH else folded[: TITLE_LENGTH - 1] + "…"


def agent_name(text: object) -> str:
    """Return `text` folded to an agent's name; raise InvalidError if nothing is left."""
    if not isinstance(text, str):
        raise InvalidError(f"an agent's name must be text, not {shown(text)}")
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9_-]+", "-", plain).strip("-_")
    if not _AGENT.fullmatch(name):
        raise InvalidError(
            f"{shown(text)} is not a valid name for an agent",
            hint="use 1 to 57 letters, digits, '-' or '_'",
        )
    if name in _RESERVED:
        raise InvalidError(f"{name!r} is a reserved word", hint=f"use {name}-agent")
    return name


def check_text(text: object, what: str, most: int = MAX_CONTENT_BYTES) -> str:
    """Return `text` if it is storable UTF-8 of at most so many bytes; raise InvalidError."""
    if not isinstance(text, str):
        raise InvalidError(f"{what} must be text, not {type(text).__name__}")
    if "\0" in text:
        raise InvalidError(f"{what} holds a NUL character at position {text.index(chr(0))}")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidError(f"{what} holds a lone surrogate at position {error.start}") from None
    if size > most:
        raise InvalidError(
            f"{what} has {size:,} bytes; the limit is {most:,}",
            hint="split it, or store a reference to a file",
        )
    # A member of an enumeration is text too, but prints as its name.
    return str.__str__(text)


def check_tags(tags: object) -> tuple[str, ...]:
    """Return `tags` without repeats, in the order given; raise InvalidError."""
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise InvalidError(f"tags must be a list of words, not {shown(tags)}")
    return tuple(dict.fromkeys(_check_tag(tag) for tag in tags))


def _check_tag(tag: object) -> str:
    if isinstance(tag, str) and all(_TAG_PART.fullmatch(part) for part in tag.split(".")):
        if len(tag) <= 256:  # noqa: PLR2004 - eight parts of the greatest length
            return str.__str__(tag)
        raise InvalidError(f"tag {shown(tag)} is longer than 256 characters")
    raise InvalidError(
        f"{shown(tag)} is not a valid tag",
        hint="a tag is parts of a-z, 0-9, _ and -, up to 32 each, joined by dots",
    )


def check_relation(relation: object) -> str:
    """Return `relation` if it is a word a link can carry; raise InvalidError."""
    if isinstance(relation, str) and _RELATION.fullmatch(relation):
        return str.__str__(relation)
    raise InvalidError(
        f"{shown(relation)} is not a valid relation",
        hint="a relation is a word of a-z, 0-9 and _, e.g. resolves or led_to",
    )


def check_value(value: object, what: str, depth: int = 0) -> Value:
    """Return a copy of `value` made of what a YAML file can hold; raise InvalidError."""
    if depth >= MAX_DEPTH - 2:
        raise InvalidError(f"{what} is nested deeper than {MAX_DEPTH - 2} levels")
    if isinstance(value, str):
        return check_text(value, what)
    if value is None or isinstance(value, (bool, int, float)):
        return _check_number(value, what)
    if isinstance(value, Mapping):
        return {
            _check_key(key, what): check_value(item, f"{what}.{key}", depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [check_value(item, what, depth + 1) for item in value]
    if isinstance(value, datetime):
        return format_time(aware(value))
    if isinstance(value, date):
        return value.isoformat()
    raise InvalidError(f"{what} cannot be stored as {type(value).__name__}")


def check_json(value: object, what: str, depth: int = 0) -> Value:
    """Return a copy of `value` that JSON gives back as it is; raise InvalidError for anything else.

    A tuple is a list there. Text may hold anything, and a whole number have any size.
    """
    if depth > MAX_VALUE_DEPTH:
        raise InvalidError(f"{what} is nested deeper than {MAX_VALUE_DEPTH} levels")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and (value.isascii() or not _TWO_HALVES.search(value)):
        return str.__str__(value)
    if isinstance(value, int) and value.bit_length() < _MOST_BITS:
        return int(value)
    if isinstance(value, float) and isfinite(value):
        return float(value)
    if isinstance(value, (list, tuple)):
        return [check_json(item, what, depth + 1) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {
            str(check_json(key, what)): check_json(item, what, depth + 1)
            for key, item in value.items()
        }
    raise InvalidError(f"{what} holds {shown(value)}, which JSON does not give back as it is")


def check_key(key: object) -> tuple[str, ...]:
    """Return the key of a value: a text, or several, as a tuple; raise InvalidError."""
    parts = (key,) if isinstance(key, str) else key
    if not isinstance(parts, (list, tuple)) or not parts:
        raise InvalidError(f"a key is a text or several, not {shown(key)}")
    checked = tuple(check_text(part, "a part of a key") for part in parts)
    size = sum(len(part.encode()) + 1 for part in checked)
    if size > MAX_KEY_BYTES:
        raise InvalidError(f"a key has {size:,} bytes; the limit is {MAX_KEY_BYTES:,}")
    return checked


def _check_number(value: int | float | None, what: str) -> int | float | None:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        if not isfinite(value):
            raise InvalidError(f"{what} is not a finite number")
        return float(value)
    if abs(value) >= 2**63:
        raise InvalidError(f"{what} does not fit 64 bits", hint="store it as text")
    return int(value)


def _check_key(key: object, what: str) -> str:
    if not isinstance(key, str) or not key or len(key) > 128:  # noqa: PLR2004 - YAML's simple keys end far above
        raise InvalidError(f"{what} has a key that is not text of 1 to 128 characters")
    if any(ord(char) < 32 for char in key):  # noqa: PLR2004 - the control characters
        raise InvalidError(f"{what} has a key with a control character")
    return check_text(key, f"a key of {what}")


def contested_in(memory: Memory) -> list[dict[str, Value]]:
    """Return the values that lost in earlier merges of a memory."""
    found = memory.fields.get(CONTESTED)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def says_same(left: Memory, right: Memory) -> bool:
    """Whether two memories would be stored alike."""
    return left == right and is_same(dict(left.fields), dict(right.fields))


def is_same(left: Value, right: Value) -> bool:
    """Whether two values are stored alike: 1, 1.0 and true are equal only to Python."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    return type(left) is type(right) and left == right


def check_fields(kind: Kind, fields: Mapping[str, object]) -> dict[str, Value]:
    """Return the checked fields of a memory of `kind`; None values are left out."""
    out: dict[str, Value] = {}
    for name, value in fields.items():
        if not _is_field(name):
            raise InvalidError(
                f"{shown(name)} is not a valid name for a field",
                hint="letters, digits, '_', '-' and '.', up to 64, first a letter or '_'",
            )
        if name in _STRUCTURAL or name == kind.main:
            raise InvalidError(f"{name!r} cannot be set as a field of a {kind.name}")
        if value is not None:
            out[name] = _check_field(kind, name, value)
    return out


def check_given(kind: Kind, fields: Mapping[str, object]) -> dict[str, Value]:
    """Return the checked fields that a caller gives; None values are left out."""
    if CONTESTED in fields:
        raise InvalidError(
            "contested holds the values that lost in a merge and cannot be set",
            hint="smp resolve-conflict resolves them",
        )
    return check_fields(kind, fields)


def _is_field(name: object) -> bool:
    return isinstance(name, str) and _FIELD.fullmatch(name) is not None


def _check_field(kind: Kind, name: str, given: object) -> Value:
    if kind.name == VALUE and name in _CHECKS_OF_VALUE:
        return _CHECKS_OF_VALUE[name](given, name)
    value = check_value(given, name)
    if name == CONTESTED:
        return _contested(value)
    check = _CHECKS.get(name)
    if check is None or (name not in kind.fields and name not in COMMON_FIELDS):
        return value
    return check(name, value)


def _word(name: str, value: Value) -> Value:
    if isinstance(value, str) and _WORD.fullmatch(value):
        return value
    raise InvalidError(f"{name} must be a word of a-z, 0-9, '_' and '-', not {shown(value)}")


def _severity(name: str, value: Value) -> Value:
    if value in SEVERITIES:
        return value
    raise InvalidError(f"no {name} {shown(value)}", hint=f"severities are {', '.join(SEVERITIES)}")


def _confidence(name: str, value: Value) -> Value:
    rank = confidence_rank(value)
    if rank is not None and 0 <= rank <= 1:
        return value
    raise InvalidError(
        f"no {name} {shown(value)}",
        hint=f"a number from 0 to 1, or one of {', '.join(CONFIDENCE_RANKS)}",
    )


def _fraction(name: str, value: Value) -> Value:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1:
        return value
    raise InvalidError(f"{name} must be a number from 0 to 1, not {shown(value)}")


def _flag(name: str, value: Value) -> Value:
    if isinstance(value, bool):
        return value
    raise InvalidError(f"{name} must be true or false, not {shown(value)}")


def _count(name: str, value: Value) -> Value:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise InvalidError(f"{name} must be a whole number from 0, not {shown(value)}")


def _again(given: object, name: str) -> int:
    if isinstance(given, int) and not isinstance(given, bool) and 0 < given <= MAX_AGAIN:
        return given
    raise InvalidError(f"{name} must be a whole number from 1, not {shown(given)}")


def _text(name: str, value: Value) -> Value:
    if isinstance(value, str):
        return value
    raise InvalidError(f"{name} must be text, not {shown(value)}")


def _texts(name: str, value: Value) -> Value:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    raise InvalidError(f"{name} must be a list of texts, not {shown(value)}")


def _refs(name: str, value: Value) -> Value:
    """Check ids of memories: a list, or lists under the words that say what they are to it."""
    if not isinstance(value, dict):
        return _texts(name, value)
    return {word: _texts(f"{name}.{word}", ids) for word, ids in value.items()}


def ids_in(refs: Value) -> list[str]:
    """Return what a field that refers to memories names, in its order."""
    if isinstance(refs, dict):
        return [text for some in refs.values() for text in ids_in(some)]
    return [text for text in refs if isinstance(text, str)] if isinstance(refs, list) else []


def _turn_ref(name: str, value: Value) -> Value:
    match = _TURN.fullmatch(str(value)) if isinstance(value, (str, int)) else None
    if match:
        return f"turn-{int(match[1]):04d}{match[2] or ''}"
    raise InvalidError(f"{name} must be a turn, not {shown(value)}", hint="e.g. turn-0042, or 42")


def _resolution(name: str, value: Value) -> Value:
    if isinstance(value, dict):
        if "status" in value:
            _word(f"{name}.status", value["status"])
        return value
    raise InvalidError(f"{name} must be a mapping with a status, not {shown(value)}")


def _contested(value: Value) -> Value:
    items = value if isinstance(value, list) else [None]
    if all(map(_is_loss, items)):
        return value
    raise InvalidError(
        "contested must be a list of values that lost in a merge, each with field, at and replica",
        hint="take the key out to keep the present values",
    )


def _is_loss(item: Value) -> bool:
    return (
        isinstance(item, dict)
        and item.keys() <= {"field", "value", "at", "replica"}
        and all(isinstance(item.get(name), str) for name in ("field", "at", "replica"))
    )


_CHECKS: Final[Mapping[str, Callable[[str, Value], Value]]] = {
    **dict.fromkeys(("status", "role", "type"), _word),
    **dict.fromkeys(
        ("title", "source", "rationale", "impact", "speaker", "category", "key", "topic",
         "conversation_id", "parent", "root_cause", "recommendation", "made_by",
         "discovered_by", "name", "media_type"), _text,
    ),
    **dict.fromkeys(("agreed_by", "approved_by", "agents_involved", "learned_from", "session_learnings"), _texts),
    "memory_refs": _refs,
    **dict.fromkeys(("pinned", "reversible"), _flag),
    **dict.fromkeys(("tokens",), _count),
    "severity": _severity,
    "confidence": _confidence,
    "importance": _fraction,
    "turn_ref": _turn_ref,
    "resolution": _resolution,
}  # fmt: skip
_CHECKS_OF_VALUE: Final[Mapping[str, Callable[[object, str], Value]]] = {
    "key": lambda given, _: list(check_key(given)),
    "again": _again,
    "value": check_json,
}
# Types that are called otherwise than their checks, or have checks of their own.
_TYPES: Final = {"turn_ref": "turn", "resolution": "mapping"}
_TYPES_OF_VALUE: Final = {"key": "texts", "again": "count", "value": "JSON"}


def field_type(kind: str, name: str) -> str:
    """Return what a field of a kind takes, in a word of the reference; `any` if nothing is checked."""
    if kind == VALUE and name in _TYPES_OF_VALUE:
        return _TYPES_OF_VALUE[name]
    check = _CHECKS.get(name)
    word = check.__name__.strip("_") if check else "any"
    return _TYPES.get(word, word)
