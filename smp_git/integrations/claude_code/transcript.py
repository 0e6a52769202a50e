"""Transcripts of Claude Code: what was said in one, by the ids of its lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from smp_git.agents.fence import unfenced
from smp_git.agents.writing import ClientTurn

_LONGEST_LINE: Final = 8_000_000
_LONGEST_TEXT: Final = 900_000
# What the program writes in the name of the user.
_MADE: Final = (
    "<command-",
    "<local-command",
    "<bash-",
    "<user-memory",
    "<task-notification",
    "Caveat: The messages below",
    "[Request interrupted",
)


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
    if not isinstance(entry, dict) or not _is_conversation(entry):
        return
    text = unfenced(_text(entry["message"].get("content"))).strip()
    if not text or text.startswith(_MADE):
        return
    yield ClientTurn(
        key=str(entry["uuid"]),
        conversation=conversation,
        role=entry["type"],
        text=text[:_LONGEST_TEXT],
        at=_time(entry.get("timestamp")),
    )


def _time(text: object) -> str | None:
    try:
        datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return str(text)


def _is_conversation(entry: dict[str, Any]) -> bool:
    """Whether a line is something that the user or the model said, to each other."""
    is_aside = any(
        entry.get(name)
        for name in ("isMeta", "isSidechain", "isCompactSummary", "isApiErrorMessage")
    )
    return (
        entry.get("type") in ("user", "assistant")
        and not is_aside
        and isinstance(entry.get("uuid"), str)
        and isinstance(entry.get("message"), dict)
    )


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [
        block["text"]
        for block in blocks
        if isinstance(block, dict)
        and block.get("type") == "text"
        and isinstance(block.get("text"), str)
    ]
    return "\n\n".join(text for text in texts if not text.startswith(_MADE))
