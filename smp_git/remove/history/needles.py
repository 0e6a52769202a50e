"""What a deleted memory is recognised by: its file's name, its lines, its text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from smp_git.format import document
from smp_git.format.dialect import escape
from smp_git.format.records import Tombstones
from smp_git.git.objects import BLOB, object_id
from smp_git.model.errors import InvalidFileError
from smp_git.model.memory import MemoryId
from smp_git.remove.history.phrases import Phrase, phrases_of, words

# Shorter texts stand in anything; longer ones say where they came from.
SHORTEST: Final = 24
_MOST_COMPARED: Final = 1_000
# Values that every memory has of its own kind say nothing of one.
_STRUCTURAL = re.compile(
    rb"\s*(?:- )?[\"']?(?:id|kind|life|generation|created_at|updated_at|agent|turn_ref|confidence|"
    rb"importance|pinned|status|severity|resolved_at|resolved_by|conversation_id|speaker|role)[\"']?:"
)
_KEYED = re.compile(rb"\s*(?:- )?[\"']?[A-Za-z0-9_.-]{1,64}[\"']?:\s+(.*)", re.DOTALL)
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ][0-9:.]+(?:Z|[+-]\d\d:?\d\d)?)?")
_ID = re.compile(r"[A-Za-z]{1,16}-(?:\d{4,18}(?:-[a-z][a-z0-9]{3})?|[a-z0-9-]{1,64})")
_SKIPPED: Final = frozenset(("id", "kind", "life", "created_at", "updated_at", "agent", "turn_ref", "status", "severity"))  # fmt: skip
# Many memories have these in common, so that only long ones say anything.
_SHARED: Final = frozenset(("tags", "links", "speaker", "role", "confidence", "importance", "pinned", "resolved_at", "resolved_by", "conversation_id"))  # fmt: skip


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
    """Everything that a scan looks for; `short` counts the texts that it cannot look for."""

    known: Tombstones
    blobs: frozenset[bytes]
    texts: tuple[bytes, ...]
    phrases: frozenset[Phrase]
    short: int


def needles(known: Tombstones, versions: Iterable[Version] = ()) -> Needles:
    """Return what to look for: every id of the tombstones, the text of the versions."""
    kept = list(versions)
    texts = {text for each in kept for text in _texts(each)}
    phrases: set[Phrase] = set()
    short: set[Phrase] = set()
    for each in kept:
        for lines in _passages(each):
            found = phrases_of(lines)
            phrases |= found.phrases
            short |= found.short
    return Needles(
        known=known,
        blobs=frozenset(object_id(BLOB, each.data).encode() for each in kept),
        texts=tuple(sorted(_least(texts))),
        phrases=frozenset(phrases),
        short=len(short - phrases),
    )


def vocabulary(versions: Iterable[Version]) -> frozenset[bytes]:
    """Return every word of the versions' texts, so that nothing need repeat one."""
    lines = (line for each in versions for line in each.data.split(b"\n") if not _STRUCTURAL.match(line))  # fmt: skip
    return frozenset(word for line in lines for word in words(line))


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


def _passages(version: Version) -> Iterator[list[bytes]]:
    """Yield the lines of each text of a version that stand one below the other."""
    try:
        memory = document.decode(version.data, version.path)
    except InvalidFileError:
        yield [line for line in version.data.split(b"\n") if not _STRUCTURAL.match(line)]
        return
    fields = [v for k, v in memory.fields.items() if k not in _SKIPPED and k not in _SHARED]
    for text in [memory.content, memory.title, *(each for value in fields for each in _joined(value))]:  # fmt: skip
        if text.endswith("…"):
            # Cut in the middle of a word.
            text = text.removesuffix("…").rpartition(" ")[0]
        lines = [line for line in text.splitlines() if not _is_common(line)]
        yield [line.encode("utf-8", "surrogatepass") for line in lines]
        if not text.isascii():
            yield [escape(json.dumps(line, ensure_ascii=False)[1:-1]).encode("utf-8", "surrogatepass") for line in lines]  # fmt: skip
            yield [json.dumps(line)[1:-1].encode() for line in lines]


def _joined(value: object) -> Iterator[str]:
    """Yield the texts of a field's value; the items of a list are lines of one."""
    if isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value):
        yield "\n".join(value)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _joined(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _joined(each)
    elif isinstance(value, str):
        yield value


def _is_common(line: str) -> bool:
    """Whether a line is a time or an id, which stand in other files as well."""
    return bool(_TIME.fullmatch(line.strip()) or _ID.fullmatch(line.strip()))


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
