"""Three versions of one file merged: a memory field by field, the metadata key by key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from smp_git.format import dialect, document, yamlfile
from smp_git.format.metadata import PATH, strict_mapping
from smp_git.model.errors import InvalidFileError
from smp_git.model.ids import parse_id
from smp_git.model.memory import (
    COMMENTS,
    CONTESTED,
    Memory,
    MemoryId,
    Value,
    contested_in,
    is_same,
    says_same,
)
from smp_git.model.times import format_time
from smp_git.read.history import Origin, is_alike, stamp

_T = TypeVar("_T")

# What has a rule of its own, so that it is never in dispute.
_RULED: Final = frozenset(
    ("id", "kind", "life", "created_at", "updated_at", "tags", "links", CONTESTED)
)


class Conflict(NamedTuple):
    """A field that both sides changed: the value that was kept, and those that lost.

    `id` is a path for a file that is no memory. A removed field is None. The field is
    `file` where one side could not be read or a file was taken as a whole.

    >>> session.branch("idea").edit("DEC-0001", rationale="Known").id
    'DEC-0001'
    >>> edited = session.edit("DEC-0001", rationale="Proved")
    >>> [(each.id, each.field) for each in session.merge("idea").contested]
    [('DEC-0001', 'rationale')]
    """

    id: MemoryId | str
    field: str
    kept: Value
    others: tuple[Value, ...]

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {**self._asdict(), "others": list(self.others)}


class Stamp(NamedTuple):
    """The time since which a field has its value, and the replica that gave it; the greater wins."""

    at: datetime
    replica: str


class FileVersion(NamedTuple):
    """One version of a memory's file, taken apart."""

    file: bytes
    memory: Memory
    fields: Mapping[str, Value]


def stamp_of(origin: Origin | None, side: FileVersion) -> Stamp:
    """Return since when a field has its value: its origin, if it was found, else the memory's."""
    return Stamp(origin.at, origin.replica) if origin else Stamp(stamp(side.memory), "")


class JoinedMemory(NamedTuple):
    """A memory's file with what both sides said, and what lost."""

    file: bytes
    memory: Memory
    lost: tuple[Conflict, ...] = ()


Stamps = Callable[[str], tuple[Stamp, Stamp]]
_Entry = dict[str, Value]


def version(file: bytes | None, path: str) -> FileVersion | None:
    """Return a memory's file taken apart, or None if there is none or it cannot be read."""
    if file is None:
        return None
    try:
        memory = document.decode(file, path)
    except InvalidFileError:
        return None
    return FileVersion(file, memory, document.fields_of(memory))


def disputed(base: FileVersion | None, left: FileVersion, right: FileVersion) -> list[str]:
    """Return the fields that both sides changed, each to another value, sorted."""
    before = base.fields if base else {}
    names = {*left.fields, *right.fields} - _RULED
    return sorted(
        name
        for name in names
        if not is_alike(left.fields, right.fields, name)
        and not is_alike(left.fields, before, name)
        and not is_alike(right.fields, before, name)
    )


def joined(
    base: FileVersion | None, left: FileVersion, right: FileVersion, stamps: Stamps
) -> JoinedMemory:
    """Return the memory with what each side changed since `base`.

    Of two values of one field the one with the greater stamp is kept and the other is
    kept as contested. The same memory comes out with left and right swapped.
    """
    carrier, other = _ordered(base, left, right)
    fields: dict[str, Value] = {}
    lost: list[_Entry] = []
    in_dispute = set(disputed(base, left, right))
    for name in dict.fromkeys((*carrier.fields, *other.fields)):
        if name in _RULED:
            continue
        if name in in_dispute:
            fields[name], entry = _decided(name, left, right, *stamps(name))
            lost.append(entry)
        else:
            is_others = base is not None and is_alike(carrier.fields, base.fields, name)
            added = base is None and name not in carrier.fields
            fields[name] = (other if is_others or added else carrier).fields.get(name)
    plain = _rebuilt(base, carrier, other, fields)
    held = _contested(base, left, right)
    made = next(_fitting(carrier, plain, held, lost), None)
    report = tuple(_reported(plain, lost, fields))
    whole = made._replace(lost=report) if made else _taken_whole(base, left, right)
    return _commented(whole, base, carrier, other)


def with_contested(memory: Memory, found: Sequence[_Entry]) -> Memory:
    """Return a memory with the values that lost, each once, without those that were kept."""
    return _with(memory, _settled(found, memory))


def _ordered(
    base: FileVersion | None, left: FileVersion, right: FileVersion
) -> tuple[FileVersion, FileVersion]:
    """Return the side whose bytes are kept where they can be, and the other.

    What a person wrote by hand goes before what the program can write again.
    """

    def rank(side: FileVersion) -> tuple[bool, datetime, bytes]:
        return _is_by_hand(base, side), stamp(side.memory), side.file

    return (left, right) if rank(left) >= rank(right) else (right, left)


def _is_by_hand(base: FileVersion | None, side: FileVersion) -> bool:
    if base is None:
        return document.encode(side.memory) != side.file
    return document.edited(base.file, base.memory, side.memory) != side.file


def _decided(
    name: str, left: FileVersion, right: FileVersion, ours: Stamp, theirs: Stamp
) -> tuple[Value, _Entry]:
    """Return the value that is kept, and the entry of the one that lost."""
    rows = [(ours, left.fields.get(name)), (theirs, right.fields.get(name))]
    rows.sort(key=lambda row: (*row[0], _canonical(row[1])))
    (since, value), (_, kept) = rows
    entry: _Entry = {
        "field": name,
        "value": value,
        "at": format_time(since.at),
        "replica": since.replica,
    }
    return kept, entry


def _canonical(value: Value) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _rebuilt(
    base: FileVersion | None, carrier: FileVersion, other: FileVersion, fields: Mapping[str, Value]
) -> Memory:
    """Return the memory of merged fields, with what has rules of its own but for `contested`."""
    mine, others, before = carrier.memory, other.memory, base.memory if base else None
    kind = parse_id(mine.id).kind
    said = {name: value for name, value in fields.items() if value is not None}
    content = said.pop(kind.main, "")
    agent = said.pop("agent", mine.agent)
    updated = [at for at in (mine.updated_at, others.updated_at) if at is not None]
    return replace(
        mine,
        agent=str(agent),
        content=str(content),
        title=document.title(parse_id(mine.id), str(content), said),
        created_at=_earliest(before, mine, others),
        updated_at=max(updated, default=None),
        tags=_as_set(before.tags if before else (), mine.tags, others.tags),
        links=_as_set(before.links if before else (), mine.links, others.links),
        fields=MappingProxyType(said),
    )


def _earliest(base: Memory | None, left: Memory, right: Memory) -> datetime:
    if base is not None and base.created_at in (left.created_at, right.created_at):
        return left.created_at if right.created_at == base.created_at else right.created_at
    return min(left.created_at, right.created_at)


def _as_set(base: Sequence[_T], left: Sequence[_T], right: Sequence[_T]) -> tuple[_T, ...]:
    """Return what is left of `base` on both sides, then what either added, sorted."""
    if left in (base, right):
        return tuple(right)
    if right == base:
        return tuple(left)
    kept = [item for item in base if item in left and item in right]
    added: list[Any] = [item for item in {*left, *right} if item not in base]
    return (*kept, *sorted(added))


# Contested values


def _contested(base: FileVersion | None, left: FileVersion, right: FileVersion) -> list[_Entry]:
    """Return what is contested on either side, without what one of them has settled."""
    before, ours, theirs = (
        {_canonical(item): item for item in (contested_in(side.memory) if side else [])}
        for side in (base, left, right)
    )
    return [
        item
        for name, item in {**ours, **theirs}.items()
        if (name in ours and name in theirs) or name not in before
    ]


def _settled(found: Iterable[_Entry], memory: Memory) -> list[Value]:
    """Return entries sorted, one for each value, without those whose value was kept."""
    present = document.fields_of(memory)
    latest: dict[tuple[str, str], _Entry] = {}
    for item in sorted(found, key=_place):
        name = str(item["field"])
        if "value" not in item:
            latest[name, _canonical(item)] = item
        elif not is_same(item["value"], present.get(name)):
            latest[name, "=" + _canonical(item["value"])] = item
    return [*sorted(latest.values(), key=_place)]


def _place(item: _Entry) -> tuple[str, str, str, str]:
    return str(item["field"]), str(item["at"]), str(item["replica"]), _canonical(item.get("value"))


def _hollow(item: _Entry) -> _Entry:
    return {name: value for name, value in item.items() if name != "value"}


def _fitting(
    carrier: FileVersion, plain: Memory, held: Sequence[_Entry], lost: Sequence[_Entry]
) -> Iterator[JoinedMemory]:
    """Yield the merged memory if it keeps within the limits, else without the losing values."""
    hollow = [_hollow(item) for item in lost]
    for found in ([*held, *lost], [*held, *hollow], [*map(_hollow, held), *hollow]):
        made = _written(carrier, _with(plain, _settled(found, plain)))
        if made is not None:
            yield made


def _with(memory: Memory, found: list[Value]) -> Memory:
    rest = {name: value for name, value in memory.fields.items() if name != CONTESTED}
    return replace(memory, fields=MappingProxyType({**rest, CONTESTED: found} if found else rest))


def _written(carrier: FileVersion, memory: Memory) -> JoinedMemory | None:
    if says_same(memory, carrier.memory):
        return JoinedMemory(carrier.file, carrier.memory)
    file = document.edited(carrier.file, carrier.memory, memory)
    if len(file) > document.largest(parse_id(memory.id)):
        return None
    found = version(file, memory.path)
    return JoinedMemory(file, found.memory) if found and says_same(found.memory, memory) else None


def _commented(
    made: JoinedMemory, base: FileVersion | None, carrier: FileVersion, other: FileVersion
) -> JoinedMemory:
    """Return a merged memory with the comments of both sides, or the word that some went."""
    sides = carrier.file, other.file
    before = base.file if base else None
    file = document.with_comments(made.file, made.memory.path, before, sides)
    if file == made.file:
        return made
    if file is not None and len(file) <= document.largest(parse_id(made.memory.id)):
        found = version(file, made.memory.path)
        if found is not None and says_same(found.memory, made.memory):
            return made._replace(file=file, memory=found.memory)
    return made._replace(lost=(*made.lost, Conflict(made.memory.id, COMMENTS, None, ())))


def _reported(
    memory: Memory, lost: Iterable[_Entry], fields: Mapping[str, Value]
) -> Iterator[Conflict]:
    for item in lost:
        name = str(item["field"])
        yield Conflict(memory.id, name, fields.get(name), (item["value"],))


def _taken_whole(base: FileVersion | None, left: FileVersion, right: FileVersion) -> JoinedMemory:
    """Return the newer side as it is: both together would exceed the limits."""
    older, newer = sorted((left, right), key=lambda side: (stamp(side.memory), side.file))
    names = sorted({*older.fields, *newer.fields} - _RULED)
    before = base.fields if base else {}
    lost = [
        name
        for name in names
        if not is_alike(older.fields, newer.fields, name)
        and not is_alike(older.fields, before, name)
    ]
    at = format_time(stamp(older.memory))
    hollow: list[_Entry] = [{"field": name, "at": at, "replica": ""} for name in lost]
    made = _written(newer, _with(newer.memory, _settled(hollow, newer.memory)))
    report = tuple(
        Conflict(newer.memory.id, name, newer.fields.get(name), (older.fields.get(name),))
        for name in lost
    )
    return (made or JoinedMemory(newer.file, newer.memory))._replace(lost=report)


# Mappings whose keys are decided one by one.
_DEEPER: Final = ("context", "preferences", "overrides")
_ORDER: Final = ("user", "agents", "context", "tags", "preferences", "overrides")

_Key = tuple[str, ...]


class JoinedMetadata(NamedTuple):
    """The file with what both sides said, and what lost."""

    file: bytes
    lost: tuple[Conflict, ...]


def joined_metadata(base: bytes | None, newer: bytes, older: bytes) -> JoinedMetadata | None:
    """Return the metadata with what each side changed; None if a side cannot be read.

    Of two values of one key the newer side's is kept.
    """
    try:
        before, ours, theirs = (_read(data) for data in (base or b"", newer, older))
    except InvalidFileError:
        return None
    was, mine, others = _flat(before), _flat(ours), _flat(theirs)
    made: dict[_Key, Value] = {}
    lost: list[Conflict] = []
    for key in dict.fromkeys((*mine, *others)):
        kept, other = mine.get(key), others.get(key)
        if is_same(kept, was.get(key)):
            kept = other
        elif not is_same(kept, other) and not is_same(other, was.get(key)):
            lost.append(Conflict(PATH, ".".join(key), kept, (other,)))
        if kept is not None:
            made[key] = kept
    file = _written_metadata(newer, ours, older, theirs, _nested(made))
    commented = _commented_metadata(file, base or b"", (newer, older))
    if commented is None:
        lost.append(Conflict(PATH, COMMENTS, None, ()))
    return JoinedMetadata(commented or file, tuple(lost))


def _commented_metadata(file: bytes, base: bytes, sides: tuple[bytes, bytes]) -> bytes | None:
    """Return the file with the comments of both sides, None if that cannot be done."""
    made = yamlfile.with_comments(file.decode(), base.decode(), [side.decode() for side in sides])
    return (
        made.encode() if made is not None and is_same(_read(made.encode()), _read(file)) else None
    )


def _read(data: bytes) -> dict[str, Value]:
    return strict_mapping(data) if data else {}


def _flat(found: Mapping[str, Value]) -> dict[_Key, Value]:
    out: dict[_Key, Value] = {}
    for name, value in found.items():
        if name in _DEEPER and isinstance(value, dict):
            out.update({(name, inner): item for inner, item in value.items()})
        else:
            out[name,] = value
    return out


def _nested(flat: Mapping[_Key, Value]) -> dict[str, Value]:
    out: dict[str, Value] = {}
    for key, value in flat.items():
        if len(key) == 1:
            out[key[0]] = value
            continue
        inner = out.setdefault(key[0], {})
        if isinstance(inner, dict):
            inner[key[1]] = value
    return out


def _written_metadata(
    newer: bytes,
    ours: dict[str, Value],
    older: bytes,
    theirs: dict[str, Value],
    made: dict[str, Value],
) -> bytes:
    """Return the bytes of the merged metadata, a side's own where that says the same."""
    for data, said in ((newer, ours), (older, theirs)):
        if is_same(said, made):
            return data
    changes: dict[str, Value | None] = {name: None for name in ours if name not in made}
    changes |= {
        name: value
        for name, value in made.items()
        if name not in ours or not is_same(ours[name], value)
    }
    order = (*(name for name in ours if name not in _ORDER), *_ORDER)
    edited = yamlfile.edit(newer.decode(), changes, (*order, *(n for n in made if n not in order)))
    whole = edited is not None and is_same(_read(edited.encode()), made)
    return edited.encode() if edited is not None and whole else dialect.write(made).encode()
