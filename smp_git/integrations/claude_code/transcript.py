"""Transcripts of Claude Code: what was said in one, by the ids of its lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from smp_git.agents.fence import marks
from smp_git.agents.writing import ClientTurn
from smp_git.convert import transcripts
from smp_git.convert.entries import as_text

_LONGEST_LINE: Final = 8_000_000
_LONGEST_TEXT: Final = 900_000
_COMPACTED: Final = "compact_boundary"
_ADDED: Final = "hook_additional_context"


class TranscriptPart(NamedTuple):
    """What was said in a part of a transcript, and where the next part begins."""

    said: tuple[ClientTurn, ...]
    end: int


class InSight(NamedTuple):
    """What the model has before it: the marks of what it was told, and what was said, without texts."""

    told: tuple[str, ...]
    said: tuple[ClientTurn, ...]


def read(path: Path, conversation: str, start: int = 0) -> TranscriptPart:
    """Return what was said from a byte on; a line that is not whole yet waits."""
    out: list[ClientTurn] = []
    end = 0
    for entry, at in _entries(path, start):
        out += turns_in(entry, conversation)
        end = at
    return TranscriptPart(tuple(out), end)


def in_sight(path: Path, conversation: str) -> InSight:
    """Return what was told and said since the last compaction."""
    told: list[str] = []
    said: list[ClientTurn] = []
    for entry, _ in _entries(path, 0):
        if entry.get("subtype") == _COMPACTED:
            told, said = [], []
        told += marks(_added(entry))
        said += (each._replace(text="") for each in turns_in(entry, conversation))
    return InSight(tuple(told), tuple(said))


def _entries(path: Path, start: int) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Yield each line from a byte on, and where it ends; nothing of it if it cannot be read."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        at = file.seek(start if 0 <= start <= size else 0)
        yield {}, at
        for line in file:
            if not line.endswith(b"\n"):
                return
            at += len(line)
            yield _entry(line), at


def _entry(line: bytes) -> Mapping[str, Any]:
    try:
        entry = json.loads(line) if len(line) <= _LONGEST_LINE else {}
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}


def _added(entry: Mapping[str, Any]) -> str:
    """Return what hooks added to what the model reads."""
    found = entry.get("attachment")
    if not isinstance(found, dict) or found.get("type") != _ADDED:
        return ""
    content = found.get("content")
    return "\n".join(map(str, content)) if isinstance(content, list) else str(content)


def turns_in(entry: Mapping[str, Any], conversation: str) -> Iterator[ClientTurn]:
    """Yield the turn that a line of a transcript is, if it is one."""
    said = transcripts.said(entry)
    if isinstance(said, str):
        return
    yield ClientTurn(
        key=transcripts.source(conversation, entry["uuid"]),
        conversation=conversation,
        role=said.role,
        text=as_text(said.text)[:_LONGEST_TEXT],
        at=_time(entry.get("timestamp")),
    )


def _time(text: object) -> str | None:
    try:
        datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return str(text)
