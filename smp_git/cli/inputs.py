"""Input of commands: texts, fields, values and links, from options, files and pipes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from smp_git.model.errors import (
    InvalidError,
)


def text_from(given: str | None, file: Path | None) -> str:
    """Return the text: an argument, a file, or standard input for `-`."""
    if file is not None and given not in (None, "-"):
        raise InvalidError("both text and --file are given", hint="leave one out")
    if file is not None:
        try:
            return _decoded(file.read_bytes(), str(file))
        except OSError as error:
            raise InvalidError(f"cannot read {file}: {error.strerror}") from None
    if given == "-":
        return _decoded(sys.stdin.buffer.read(), "standard input")
    if given is None:
        raise InvalidError(
            "no text", hint="give it as an argument, with --file, or - for standard input"
        )
    return given


def text_of_file(file: Path) -> str:
    """Return the text of a file, or standard input for `-`."""
    return text_from("-", None) if str(file) == "-" else text_from(None, file)


def _decoded(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidError(f"{what} is not UTF-8 at byte {error.start}") from None


def fields_from(given: list[str]) -> dict[str, object]:
    """Return the fields of `name=value` options; a value that is valid JSON is parsed."""
    out: dict[str, object] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise InvalidError(f"{item!r} is not a field", hint="a field is name=value")
        out[name] = value_from(value)
    return out


def value_from(text: str) -> object:
    """Return what an option says: the value if it is valid JSON, else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def links_from(given: list[str]) -> list[tuple[str, str]]:
    """Return the links of `relation:id` options."""
    out = []
    for item in given:
        relation, colon, target = item.partition(":")
        if not colon:
            raise InvalidError(f"{item!r} is not a link", hint="a link is resolves:FIND-0001")
        out.append((relation, target))
    return out
