"""What options and arguments say, as values of the library."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from smp_git.model.errors import InvalidError


def text_from(given: str | None, file: Path | None, what: str = "text") -> str:
    """Return the text: an argument, a file, or the standard input for `-`."""
    if file is not None and given not in (None, "-"):
        raise InvalidError(f"both {what} and --file are given", hint="leave one out")
    if file is not None:
        try:
            return _decoded(file.read_bytes(), str(file))
        except OSError as error:
            raise InvalidError(f"cannot read {file}: {error.strerror}") from None
    if given == "-":
        return _decoded(sys.stdin.buffer.read(), "the standard input")
    if given is None:
        raise InvalidError(f"no {what}", hint="give it as an argument, with --file, or - for the standard input")  # fmt: skip
    return given


def _decoded(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidError(f"{what} is not UTF-8 at byte {error.start}") from None


def fields_from(given: list[str]) -> dict[str, object]:
    """Return the fields of `name=value` options; a value that is JSON is taken as such."""
    out: dict[str, object] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise InvalidError(f"{item!r} is no field", hint="a field is name=value")
        out[name] = _value(value)
    return out


def _value(text: str) -> object:
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
            raise InvalidError(f"{item!r} is no link", hint="a link is resolves:FIND-0001")
        out.append((relation, target))
    return out
