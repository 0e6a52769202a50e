"""Memories made from others by the program: the summaries of old conversation."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from typing import Final, NamedTuple

from smp_git.format.lines import Entry
from smp_git.model.errors import InvalidFileError, MemoryNotFoundError
from smp_git.model.ids import Id, parse_id
from smp_git.model.memory import KINDS, RECALL, Memory, MemoryId, Value
from smp_git.read.snapshot import Snapshot

# The agent that a summary is by, whoever made it.
AGENT: Final = "smp"
# The field that names what a memory was made from, and the type of a summary.
SOURCES: Final = "derived_from"
SUMMARY: Final = "summary"
_FIRST: Final = 10
_RANGE: Final = re.compile(r"(turn)-(\d{4,18})(?:\.\.(\d{4,18}))?(-[a-z][a-z0-9]{3})?")
_MOST: Final = 10_000


def summaries(snapshot: Snapshot) -> list[Entry]:
    """Return the summaries of conversation, sorted like ids."""
    return [entry for entry in snapshot.entries("artifact") if entry.type == SUMMARY]


class RecallQuestion(NamedTuple):
    """A user's own question, the memories that answer it, and among how many they must be."""

    name: MemoryId
    question: str
    ids: tuple[MemoryId, ...]
    first: int


def questions(snapshot: Snapshot) -> list[RecallQuestion]:
    """Return a user's own questions, sorted like ids."""
    out = []
    for entry in snapshot.entries("artifact"):
        if entry.type == RECALL:
            with suppress(InvalidFileError, MemoryNotFoundError):
                memory = snapshot.get(entry.id)
                refs, first = memory.fields.get("memory_refs"), memory.fields.get("first")
                ids = (
                    [MemoryId(ref) for ref in refs if isinstance(ref, str)]
                    if isinstance(refs, list)
                    else []
                )
                most = first if isinstance(first, int) and first > 0 else _FIRST
                out.append(RecallQuestion(entry.id, memory.content.strip(), tuple(ids), most))
    return out


def made_from(snapshot: Snapshot, names: Collection[str]) -> dict[MemoryId, frozenset[MemoryId]]:
    """Return the summaries that were made from any of these memories, each with all of its sources."""
    wanted = frozenset(names)
    found: dict[MemoryId, frozenset[MemoryId]] = {}
    for entry in summaries(snapshot) if wanted else ():
        try:
            sources = sources_of(snapshot.get(entry.id).fields.get(SOURCES))
        except (InvalidFileError, MemoryNotFoundError):
            continue
        if sources & wanted:
            found[entry.id] = sources
    return found


def sources_of(value: Value) -> frozenset[MemoryId]:
    """Return the memories that ranges of ids name."""
    return (
        frozenset(name for text in value if isinstance(text, str) for name in _names(text))
        if (isinstance(value, list))
        else frozenset()
    )


def _names(text: str) -> Iterator[MemoryId]:
    match = _RANGE.fullmatch(text)
    if match is None:
        return
    first, last = int(match[2]), int(match[3] or match[2])
    for number in range(first, min(last, first + _MOST) + 1):
        yield MemoryId(f"{match[1]}-{number:04d}{match[4] or ''}")


def ranges(names: Iterable[MemoryId]) -> list[Value]:
    """Return the ids of turns as ranges: `turn-0001..0050`."""
    places = sorted((parse_id(name) for name in names), key=lambda each: (each.tag, each.number))
    out: list[Value] = []
    for (tag, _), run in groupby(
        enumerate(places), lambda each: (each[1].tag, each[1].number - each[0])
    ):
        numbers = [place.number for _, place in run]
        last = f"..{numbers[-1]:04d}" if numbers[1:] else ""
        out.append(f"turn-{numbers[0]:04d}{last}{f'-{tag}' if tag else ''}")
    return out


def tag_of(parts: Iterable[str]) -> str:
    """Return four characters that follow from some texts, in the form of a replica's tag."""
    number = int.from_bytes(hashlib.sha256("\n".join(parts).encode()).digest()[:8], "big")
    letters, signs = "abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyz0123456789"
    number, place = divmod(number, len(letters))
    out = letters[place]
    for _ in range(3):
        number, place = divmod(number, len(signs))
        out += signs[place]
    return out


def without(old: Memory, sources: Iterable[MemoryId], gone: frozenset[MemoryId]) -> Memory | None:
    """Return a summary as it is without some of its turns, None if nothing is left of it."""
    kept = sorted(set(sources) - gone, key=lambda name: (parse_id(name).tag, parse_id(name).number))
    lines = [line for line in old.content.splitlines() if line.startswith("- turn-")]
    own = [line for line in lines if line[2:].partition(" ")[0] not in gone]
    if not kept or not own:
        return None
    first = min(parse_id(name).number for name in kept)
    place = Id(KINDS["artifact"], first, tag_of([*own, *kept]))
    title = f"Conversation {kept[0]} to {kept[-1]}"
    return Memory(
        id=place.text,
        kind="artifact",
        created_at=old.created_at,
        agent=AGENT,
        content=f"# {title}\n\n" + "\n".join(own) + "\n",
        title=title,
        fields={"type": SUMMARY, SOURCES: ranges(kept)},
        path=place.path,
    )
