"""Transcripts of Claude Code: what was said in one, by the ids of its lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.agents.writing import ClientTurn
from smp_git.convert import transcripts

_LONGEST_LINE: Final = 8_000_000
_LONGEST_TEXT: Final = 900_000


class TranscriptPart(NamedTuple):
    """What was said in a part of a transcript, and where the next part begins."""

    said: tuple[ClientTurn, ...]
    end: int


def read(path: Path, conversation: str, start: int = 0) -> TranscriptPart:
    """Return what was said from a byte on; a line that is not whole yet waits."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        at = file.seek(start if 0 <= start <= size else 0)
        out: list[ClientTurn] = []
        for line in file:
            if not line.endswith(b"\n"):
                break
            at += len(line)
            if len(line) <= _LONGEST_LINE:
                out += _said(line, conversation)
    return TranscriptPart(tuple(out), at)


def _said(line: bytes, conversation: str) -> Iterator[ClientTurn]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return
    said = transcripts.said(entry) if isinstance(entry, dict) else ""
    if isinstance(said, str):
        return
    yield ClientTurn(
        key=transcripts.source(conversation, entry["uuid"]),
        conversation=conversation,
        role=said.role,
        text=said.text[:_LONGEST_TEXT],
        at=_time(entry.get("timestamp")),
    )


def _time(text: object) -> str | None:
    try:
        datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return str(text)
