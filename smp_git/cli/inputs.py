"""Input of commands: texts, fields, values and links, from options, files and pipes."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import UnsupportedOperation
from pathlib import Path
from typing import Any, BinaryIO, Final

from smp_git.cli.progress import PROGRESS
from smp_git.model.errors import InvalidError
from smp_git.model.memory import MAX_CONTENT_BYTES, MAX_FILE_BYTES
from smp_git.model.times import format_time, parse_time

# Times that name no zone: a day, a moment, and the midnight of a day.
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_NO_ZONE: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?")
_MIDNIGHT: Final = re.compile(r"today|yesterday|last (?:mon|tues|wednes|thurs|fri|satur|sun)day")
# Each character of a text may be six in JSON, and there are fields beside it.
_LINE_BYTES: Final = 8 * MAX_CONTENT_BYTES
_NO_TEXT: Final = "give it as an argument, with --file, or in a pipe"


def text_from(given: str | None, file: Path | None) -> str:
    """Return the text: an argument, a file, or standard input for `-` or if it is a pipe."""
    if file is not None and given not in (None, "-"):
        raise InvalidError("both text and --file are given", hint="leave one out")
    if file is not None:
        return _of_file(file, MAX_CONTENT_BYTES)
    if given == "-" or (given is None and is_piped()):
        return _of_input(MAX_CONTENT_BYTES)
    if given is None:
        raise InvalidError("no text", hint=_NO_TEXT)
    return given


def is_piped() -> bool:
    """Whether standard input is a pipe or a file, and no terminal or device."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, UnsupportedOperation):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def text_of_file(file: Path) -> str:
    """Return the text of a YAML or JSON file, or standard input for `-`."""
    return _of_input(MAX_FILE_BYTES) if str(file) == "-" else _of_file(file, MAX_FILE_BYTES)


def _of_input(most: int) -> str:
    with PROGRESS.hidden():
        data = _bounded(sys.stdin.buffer, most, "standard input")
    return _decoded(data, "standard input")


def _of_file(file: Path, most: int) -> str:
    try:
        with file.open("rb") as opened:
            return _decoded(_bounded(opened, most, str(file)), str(file))
    except OSError as error:
        raise InvalidError(f"cannot read {file}: {error.strerror}") from None


def _bounded(stream: BinaryIO, most: int, what: str) -> bytes:
    """Return what a stream holds; raise InvalidError if it holds more than is taken."""
    data = stream.read(most + 1)
    if len(data) > most:
        raise InvalidError(
            f"{what} has more than {most:,} bytes, which is the limit",
            hint="split it, or store a reference to a file",
        )
    return data


def lines_of(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a stream; raise InvalidError for one that has no end."""
    number = 0
    while line := stream.readline(_LINE_BYTES + 1):
        number += 1
        if len(line) > _LINE_BYTES:
            raise InvalidError(f"line {number} has more than {_LINE_BYTES:,} bytes")
        yield line


def _decoded(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidError(f"{what} is not UTF-8 at byte {error.start}") from None


def in_utc(given: Any, *, is_end: bool = False) -> Any:
    """Return a time that names no zone, which is by the clock on the wall, as one in UTC.

    Whatever else it is stays, e.g. a revision. A day as an end is the whole of it.
    """
    if isinstance(given, (list, tuple)):
        return [in_utc(each, is_end=is_end) for each in given]
    if not isinstance(given, str):
        return given
    words = " ".join(given.split())
    is_day = _DAY.fullmatch(words) is not None
    if not is_day and not _MIDNIGHT.fullmatch(words.lower()) and not _NO_ZONE.fullmatch(words):
        return given
    wall = datetime.now().replace(tzinfo=UTC)  # noqa: DTZ005 - what the clock on the wall shows
    try:
        moment = parse_time(words, wall).replace(tzinfo=None)
        moment += timedelta(days=1, microseconds=-1) if is_day and is_end else timedelta()
        return format_time(moment.astimezone())
    except (ValueError, OverflowError):
        # What is wrong with it is told by whoever takes it.
        return given


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
