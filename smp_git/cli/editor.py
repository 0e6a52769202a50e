"""The person's editor: where a text is written, or a memory's file is changed."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from smp_git.cli.inputs import is_piped
from smp_git.cli.progress import PROGRESS
from smp_git.cli.terminal import note
from smp_git.format import document
from smp_git.model.errors import InvalidError, RefusedError
from smp_git.model.memory import Memory

# As git has it, so that a text may hold lines with # at their start.
_SCISSORS: Final = "# ------------------------ >8 ------------------------"


def is_wanted(text: str | None, file: Path | None) -> bool:
    """Whether a person at a terminal gave no text, and wants to write one."""
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return text is None and file is None and at_terminal and not is_piped()


@contextmanager
def written(about: str) -> Iterator[str]:
    """Yield a text that is written in the editor; it is kept if what is done with it fails."""
    hint = f"# {about} Write the text above; nothing is added if it is empty.\n"
    with _opened(f"\n{_SCISSORS}\n{hint}".encode(), ".md") as data:
        text = _decoded(data).partition(_SCISSORS)[0].strip()
        if not text:
            raise InvalidError("no text was written", hint="nothing was added")
        yield text


@contextmanager
def changed(memory: Memory) -> Iterator[dict[str, Any] | None]:
    """Yield what was changed in the file of a memory, as `Session.edit` takes it; None if nothing."""
    if memory.kind == "turn":
        raise RefusedError(
            f"{memory.id} is a turn, and a turn is not edited", hint="redact or delete it"
        )
    before = document.encode(memory)
    with _opened(before, Path(memory.path).suffix) as data:
        yield _difference(memory, document.decode(data, memory.path)) if data != before else None


def _difference(old: Memory, new: Memory) -> dict[str, Any]:
    if (old.created_at, old.agent, old.life) != (new.created_at, new.agent, new.life):
        raise InvalidError(
            "the time, the agent and the life of a memory stay as they are",
            hint="text, tags, links and fields can be edited",
        )
    fields: dict[str, Any] = {
        name: new.fields.get(name)
        for name in (*old.fields, *new.fields)
        if old.fields.get(name) != new.fields.get(name)
    }
    parts = {
        "text": (old.content, new.content),
        "tags": (old.tags, new.tags),
        "links": (old.links, new.links),
    }
    return fields | {name: now for name, (was, now) in parts.items() if was != now}


@contextmanager
def _opened(data: bytes, suffix: str) -> Iterator[bytes]:
    """Yield what a file holds after the editor; keep it if what is done with it fails."""
    number, name = tempfile.mkstemp(prefix="smp-", suffix=suffix)
    place = Path(name)
    with os.fdopen(number, "wb") as file:
        file.write(data)
    is_kept = False
    try:
        _run(place)
        found = place.read_bytes()
        is_kept = found != data
        yield found
        is_kept = False
    finally:
        if is_kept:
            note(f"what was written is kept in {place}")
        else:
            place.unlink(missing_ok=True)


def _run(place: Path) -> None:
    """Let a person edit a file; raise RefusedError if that does not come about."""
    PROGRESS.stop()
    editor = _command()
    call = ["sh", "-c", f'{editor} "$@"', editor] if os.name == "posix" else shlex.split(editor)
    status = subprocess.run([*call, str(place)], check=False).returncode  # noqa: S603 - the person's own editor
    if status:
        raise RefusedError(
            f"the editor {editor} ended with status {status}",
            hint="set VISUAL or EDITOR, or give the text as an argument",
        )


def _command() -> str:
    """Return the editor that Git would start, which heeds its configuration too."""
    try:
        said = subprocess.run(
            ["git", "var", "GIT_EDITOR"],  # noqa: S607 - as the person has it
            capture_output=True,
            text=True,
            check=False,
        )
        found = said.stdout.strip()
    except OSError:
        found = ""
    return found or os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidError(f"the text is not UTF-8 at byte {error.start}") from None
