"""Memories as smp-git itself exports them: JSON lines, one JSON object, or one YAML document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from smp_git.convert.entries import ForeignSession, Item, Trouble, as_text, as_time, made
from smp_git.convert.files import JsonRow, json_lines, json_object, yaml_object
from smp_git.format import jsontext
from smp_git.model.memory import KINDS, VALUE

MARK: Final = "smp_export"
# The value of a program in a document of YAML, as text.
JSON: Final = "value_json"
# What is no field of a memory, but says where and how it was read.
_READ: Final = (
    "kind", "id", "created_at", "updated_at", "agent", "tags", "title", "content", "fields",
    "links", "life", "size_bytes", "path", "commit", "duplicate_of", "redacted", "access_count",
    "last_accessed", "text", "at",
)  # fmt: skip


def is_memory(value: Mapping[str, object]) -> bool:
    """Whether an object is a memory of ours, or the line that begins an export."""
    return MARK in value or (value.get("kind") in KINDS and ("content" in value or "text" in value))


def read_lines(path: Path) -> Iterator[ForeignSession]:
    """Yield the sessions of a file of JSON lines; a line that names a session begins it."""
    head: dict[str, object] = {}
    for row in json_lines(path, path.name):
        if isinstance(row, JsonRow):
            head = row.value
            break
    if MARK not in head:
        yield ForeignSession(format="smp", id=path.stem, place=path, items=_of_lines(path, None))
        return
    for number in _heads(path):
        yield _source(number[1], _of_lines(path, number[0]))


def _heads(path: Path) -> Iterator[tuple[str, Mapping[str, object]]]:
    for row in json_lines(path, path.name):
        if isinstance(row, JsonRow) and MARK in row.value:
            yield row.where, row.value


def _of_lines(path: Path, head: str | None) -> Iterator[Item]:
    """Yield the memories between one line that begins a session and the next."""
    inside = head is None
    for row in json_lines(path, path.name):
        if isinstance(row, JsonRow) and MARK in row.value:
            inside = row.where == head
        elif inside:
            yield row if isinstance(row, Trouble) else entry(row)


def read_json(path: Path) -> Iterator[ForeignSession]:
    """Yield the sessions of an export that is one JSON object."""
    yield from _whole(json_object(path, path.name), path)


def read_yaml(path: Path) -> Iterator[ForeignSession]:
    """Yield the sessions of an export that is one YAML document."""
    yield from _whole(yaml_object(path, path.name), path)


def _whole(said: Mapping[str, object], path: Path) -> Iterator[ForeignSession]:
    sessions = said.get("sessions")
    for each in sessions if isinstance(sessions, list) else [said]:
        if isinstance(each, dict):
            yield _source(each, _of_list(each.get("memories"), path.name))


def _of_list(items: object, shown: str) -> Iterator[Item]:
    for number, item in enumerate(items if isinstance(items, list) else ()):
        where = f"{shown}[{number + 1}]"
        if isinstance(item, dict):
            yield entry(JsonRow(where, item))
        else:
            yield Trouble(where=where, reason="not a memory")


def _source(head: Mapping[str, object], items: Iterator[Item]) -> ForeignSession:
    found = head.get("session")
    said = found if isinstance(found, dict) else {}
    agents, tags, context = said.get("agents"), said.get("tags"), said.get("context")
    overrides = said.get("overrides")
    user = said.get("user")
    return ForeignSession(
        format="smp",
        id=as_text(said.get("id") or "memories"),
        uid=as_text(said.get("uid") or ""),
        items=items,
        created_at=as_time(said.get("created_at")),
        user=as_text(user) if user else None,
        agents=tuple(map(as_text, agents)) if isinstance(agents, list) else (),
        tags=tuple(map(as_text, tags)) if isinstance(tags, list) else (),
        context=context if isinstance(context, dict) else {},
        overrides=overrides if isinstance(overrides, dict) else {},
        shared=said.get("id") == "global",
    )


def entry(row: JsonRow) -> Item:
    """Return the memory of an object: with its fields in `fields`, or beside the other keys."""
    value = row.value
    kind = value.get("kind")
    if kind not in KINDS:
        return Trouble(where=row.where, reason="not a memory: it needs a known kind")
    inner = value.get("fields")
    raw = {name: each for name, each in value.items() if name not in _READ}
    raw |= inner if isinstance(inner, dict) else {}
    if isinstance(written := raw.pop(JSON, None), str) and kind == VALUE:
        raw[VALUE] = jsontext.read(written, JSON)
    text = value.get("content", value.get("text", ""))
    spoke = raw.get("speaker") or raw.get("role") if kind == "turn" else None
    made_by = value.get("agent") or spoke
    return made(
        str(kind),
        value.get("id", ""),
        text,
        raw,
        where=row.where,
        agent=made_by,
        at=value.get("created_at", value.get("at")),
        tags=value.get("tags", ()),
        links=list(_links(value.get("links"))),
        reads=value.get("access_count", 0),
        last_read=value.get("last_accessed"),
    )


def _links(found: object) -> Iterator[tuple[str, str]]:
    for each in found if isinstance(found, list) else ():
        if isinstance(each, dict):
            yield as_text(each.get("relation") or "references"), as_text(each.get("target"))
        elif isinstance(each, str) and ":" in each:
            word, _, target = each.partition(":")
            yield word, target
        elif isinstance(each, (list, tuple)) and len(each) == 2:  # noqa: PLR2004 - a pair
            yield as_text(each[0]), as_text(each[1])
