"""What a deleted memory is recognised by: its file's name, its lines, its text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from smp_git.errors import InvalidFileError
from smp_git.format import document
from smp_git.format.dialect import escape
from smp_git.format.tombstones import Tombstones
from smp_git.git.objects import BLOB, object_id
from smp_git.memory import MemoryId

# Shorter texts stand in anything; longer ones say where they came from.
SHORTEST: Final = 24
_MOST_COMPARED: Final = 1_000
# Values that every memory has of its own kind say nothing of one.
_STRUCTURAL = re.compile(
    rb"\s*(?:- )?[\"']?(?:id|kind|life|generation|created_at|updated_at|agent|turn_ref|confidence|"
    rb"importance|pinned|status|severity|resolved_at|resolved_by|conversation_id|speaker|role)[\"']?:"
)
_KEYED = re.compile(rb"\s*(?:- )?[\"']?[A-Za-z0-9_.-]{1,64}[\"']?:\s+(.*)", re.DOTALL)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ][0-9:.]+(?:Z|[+-]\d\d:?\d\d)?")
_SKIPPED: Final = frozenset(("id", "kind", "life", "created_at", "updated_at", "agent", "turn_ref", "status", "severity"))  # fmt: skip


class Version(NamedTuple):
    """One version of a deleted memory's file.

    `commit` is empty for an edit that was never committed.
    """

    id: MemoryId
    path: str
    life: str | None
    at: datetime
    agent: str
    commit: str
    data: bytes


class Needles(NamedTuple):
    """Everything that a scan looks for."""

    known: Tombstones
    blobs: frozenset[bytes]
    texts: tuple[bytes, ...]


def needles(known: Tombstones, versions: Iterable[Version] = ()) -> Needles:
    """Return what to look for: every id of the tombstones, the text of the versions."""
    kept = list(versions)
    texts = {text for each in kept for text in _texts(each)}
    return Needles(
        known=known,
        blobs=frozenset(object_id(BLOB, each.data).encode() for each in kept),
        texts=tuple(sorted(_least(texts))),
    )


def _texts(version: Version) -> Iterator[bytes]:
    for line in version.data.split(b"\n"):
        if not _STRUCTURAL.match(line):
            yield from _long(line)
            if match := _KEYED.fullmatch(line):
                yield from _long(match[1])
    try:
        memory = document.decode(version.data, version.path)
    except InvalidFileError:
        return
    for text in _values([memory.content, memory.title.removesuffix("…"), *(v for k, v in memory.fields.items() if k not in _SKIPPED)]):  # fmt: skip
        for row in text.splitlines():
            yield from _long(row.encode("utf-8", "surrogatepass"))
            quoted = json.dumps(row, ensure_ascii=False)[1:-1]
            yield from _long(quoted.encode("utf-8", "surrogatepass"))
            yield from _long(escape(quoted).encode("utf-8", "surrogatepass"))


def _long(text: bytes) -> Iterator[bytes]:
    text = text.strip()
    if len(text) >= SHORTEST:
        yield text


def _values(value: object) -> Iterator[str]:
    if isinstance(value, str):
        if not _TIME.fullmatch(value):
            yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _values(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _values(each)


def _least(texts: set[bytes]) -> set[bytes]:
    """Return the texts without those that hold a shorter one: where they are, it is too."""
    if len(texts) > _MOST_COMPARED:
        return texts
    kept: list[bytes] = []
    for text in sorted(texts, key=len):
        if not any(shorter in text for shorter in kept):
            kept.append(text)
    return set(kept)
