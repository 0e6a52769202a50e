"""Conversations with Claude Code: its transcripts, and the notes that it keeps of a project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

from smp_git.convert import transcripts
from smp_git.convert.entries import ForeignSession, Item, PassedOver, Trouble, as_text, made
from smp_git.convert.files import JsonRow, is_plain, json_lines
from smp_git.convert.notes import is_note, read_notes

# Beside the transcripts of a project, what Claude noted of it.
_NOTES: Final = "memory"


def read_transcripts(path: Path) -> Iterator[ForeignSession]:
    """Yield the conversations of a transcript, or of all in a folder and below, with the notes there."""
    files = [path] if path.is_file() else sorted(path.rglob("*.jsonl"))
    for file in files:
        if is_plain(file) and (path.is_file() or looks_like_transcript(file)):
            yield _transcript(file)
    for folder in sorted(path.rglob(_NOTES)) if path.is_dir() else ():
        if folder.is_dir() and any(map(is_note, folder.iterdir())):
            yield from read_notes(folder)


def looks_like_transcript(file: Path) -> bool:
    """Whether one of the first lines is of a transcript."""
    rows = (row for row in islice(json_lines(file, file.name), 20) if isinstance(row, JsonRow))
    return any(is_transcript(row.value) for row in rows)


def is_transcript(value: Mapping[str, object]) -> bool:
    """Whether a line is of a transcript."""
    said = value.get("type")
    return ("sessionId" in value and isinstance(said, str)) or (
        said == "summary" and "leafUuid" in value
    )


def _transcript(file: Path) -> ForeignSession:
    first = {}
    for row in islice(json_lines(file, file.name), 50):
        if isinstance(row, JsonRow):
            for name in ("sessionId", "cwd", "gitBranch", "version"):
                if row.value.get(name) and name not in first:
                    first[name] = as_text(row.value[name])
    context: dict[str, object] = {}
    if cwd := first.get("cwd"):
        context["project_name"] = cwd.rstrip("/").rpartition("/")[2] or cwd
        context["folder"] = cwd
    if branch := first.get("gitBranch"):
        context["git_branch"] = branch
    return ForeignSession(
        format=transcripts.FORMAT,
        id=first.get("sessionId") or file.stem,
        items=_turns(file),
        agents=("claude",),
        context=context,
    )


def _turns(file: Path) -> Iterator[Item]:
    seen = set[str]()
    for row in json_lines(file, file.name):
        if isinstance(row, Trouble):
            yield row
            continue
        name = as_text(row.value.get("uuid"))
        if name and name in seen:
            yield PassedOver("lines that stand twice")
            continue
        seen.add(name)
        yield turn_of(row.value, row.where)


def turn_of(value: Mapping[str, object], where: str) -> Item:
    """Return the turn of a line of a transcript, or what it is instead."""
    said = transcripts.said(value)
    if isinstance(said, str):
        return PassedOver(said)
    message = value["message"]
    model = message.get("model") if isinstance(message, dict) else None
    raw: dict[str, object] = {
        "role": said.role,
        "conversation_id": value.get("sessionId"),
        "parent": value.get("parentUuid"),
        "speaker": "user" if said.role == "user" else None,
        "tools": list(said.tools) or None,
        "model": model if said.role == "assistant" else None,
    }
    return made(
        "turn",
        value.get("uuid"),
        said.text,
        raw,
        where=where,
        agent="claude" if said.role == "assistant" else "user",
        at=value.get("timestamp"),
    )
