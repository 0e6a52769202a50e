"""Files of other programs, read with bounded memory: JSON lines, large JSON lists, zips, YAML."""

from __future__ import annotations

import codecs
import io
import json
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final, NamedTuple, TypeAlias

from smp_git.convert.entries import Trouble
from smp_git.format import yamlfile
from smp_git.git import disk
from smp_git.model.errors import InvalidError, InvalidFileError

# A line, an element of a list, and a file that is read whole may be so long.
LONGEST: Final = 32 * 1024 * 1024
_CHUNK: Final = 1 << 20
# A zip that unfolds to more than this many times its size holds nothing that a person wrote.
_MOST_UNFOLDED: Final = 200
_SMALL: Final = 10 * 1024 * 1024
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# What tells where a value of JSON ends: an escape, a quotation mark, a bracket, a comma.
_MARK: Final = re.compile(r"\\.|[\"\[\]{},]", re.DOTALL)


_BETWEEN: Final = " \t\r\n,"
_DECODER: Final = json.JSONDecoder()


class JsonRow(NamedTuple):
    """An object of a file, and where it was: the file and the line."""

    where: str
    value: dict[str, object]


JsonRows: TypeAlias = "Iterator[JsonRow | Trouble]"


def scratch_of(place: Path) -> Path:
    """Return what is written before it gets to a place."""
    return place.with_name(f".{place.name}.tmp")


@contextmanager
def whole(place: Path) -> Iterator[Path]:
    """Yield where to write what shall be at a place: it gets there whole, or nothing of it stays."""
    scratch = scratch_of(place)
    with disk.reporting(f"the export to {place}"):
        _remove(scratch)
        try:
            yield scratch
            scratch.rename(place)
        finally:
            _remove(scratch)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def is_plain(path: Path) -> bool:
    """Whether a path is a regular file, and no link to one."""
    with suppress(OSError):
        return stat.S_ISREG(path.lstat().st_mode)
    return False


def json_lines(path: Path, shown: str) -> JsonRows:
    """Yield the objects of a file of JSON lines; what is none is a trouble with its line."""
    with path.open("rb") as file:
        if file.read(2) in _UTF16:
            yield Trouble(where=shown, reason="the file is UTF-16; save it as UTF-8")
            return
        file.seek(0)
        number = 0
        while line := file.readline(LONGEST):
            number += 1
            where = f"{shown}:{number}"
            if len(line) == LONGEST:
                yield Trouble(where=where, reason=f"the line has more than {LONGEST:,} bytes")
                _skip_line(file)
                continue
            if line.strip():
                yield _row(line, where, torn=not line.endswith(b"\n"))


def _skip_line(file: IO[bytes]) -> None:
    while (rest := file.readline(_CHUNK)) and not rest.endswith(b"\n"):
        pass


def _row(line: bytes, where: str, *, torn: bool) -> JsonRow | Trouble:
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return Trouble(where=where, reason=f"not UTF-8 at byte {error.start}")
    except (ValueError, RecursionError) as error:
        why = "the last line is torn" if torn else f"not JSON: {_why(error)}"
        return Trouble(where=where, reason=why)
    if not isinstance(value, dict):
        return Trouble(where=where, reason="not a JSON object")
    return JsonRow(where, value)


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos}"
    return "it is nested too deep" if isinstance(error, RecursionError) else str(error)[:80]


def json_list(file: IO[bytes], shown: str) -> JsonRows:
    """Yield the objects of a JSON file: those of a list, one at a time, or the one that it is.

    An element that cannot be read, or is too long, is a trouble; those behind it are read.
    """
    text = io.TextIOWrapper(file, "utf-8-sig", errors="replace")
    try:
        yield from _elements(text, shown)
    finally:
        # Who opened the file closes it.
        text.detach()


def _elements(text: IO[str], shown: str) -> JsonRows:
    buffer = text.read(_CHUNK).lstrip()
    if not buffer.startswith("["):
        yield from _only_object(buffer, text, shown)
        return
    number, buffer = 0, buffer[1:]
    while True:
        while not (buffer := buffer.lstrip(_BETWEEN)) and (more := text.read(_CHUNK)):
            buffer = more
        if buffer.startswith("]"):
            return
        number += 1
        found = _element(buffer, text)
        if isinstance(found, str):
            yield Trouble(where=f"{shown}[{number}]", reason=found)
            return
        value, buffer = found
        if isinstance(value, dict):
            yield JsonRow(f"{shown}[{number}]", value)
        else:
            why = value if isinstance(value, _Wrong) else "not a JSON object"
            yield Trouble(where=f"{shown}[{number}]", reason=str(why))


class _Wrong(str):
    """Why a value could not be read."""

    __slots__ = ()


def _element(buffer: str, text: IO[str]) -> tuple[object, str] | str:
    """Return the value that a text begins with, and the text behind it; or why there is no end.

    A value that cannot be read is told by why, and what comes behind it is found all the same.
    """
    why = "it is torn"
    while True:
        try:
            value, end = _DECODER.raw_decode(buffer)
        except RecursionError:
            why = "it is nested too deep"
            break
        except ValueError as error:
            why = _why(error)
        else:
            # A number at the end may go on in the next chunk.
            if end < len(buffer) or not (more := text.read(_CHUNK)):
                return value, buffer[end:]
            buffer += more
            continue
        more = text.read(max(_CHUNK, len(buffer))) if len(buffer) < LONGEST else ""
        if not more:
            why = f"it is longer than {LONGEST:,} bytes" if len(buffer) >= LONGEST else why
            break
        buffer += more
    rest = _behind(buffer, text)
    return (_Wrong(why), rest) if rest is not None else "it is torn"


def _behind(buffer: str, text: IO[str]) -> str | None:
    """Return what comes behind the value that a text begins with, by its brackets; None if it is torn."""
    depth, is_quoted = 0, False
    while buffer:
        if buffer.endswith("\\"):
            buffer += text.read(1)
        for found in _MARK.finditer(buffer):
            mark = found[0]
            if mark == '"':
                is_quoted = not is_quoted
            elif is_quoted or mark[0] == "\\":
                continue
            elif mark in "[{":
                depth += 1
            elif mark in "]}":
                depth -= 1
            if not is_quoted and depth <= 0 and mark in "]},":
                return buffer[found.start() if depth < 0 else found.end() :]
        buffer = text.read(_CHUNK)
    return None


def _only_object(buffer: str, text: IO[str], shown: str) -> JsonRows:
    found = _element(buffer, text) if buffer.startswith("{") else "not a JSON list"
    value = found[0] if isinstance(found, tuple) else found
    if isinstance(value, dict):
        yield JsonRow(shown, value)
    else:
        yield Trouble(where=shown, reason=str(value))


def json_object(path: Path, shown: str) -> dict[str, object]:
    """Return the object of a JSON file; raise InvalidFileError."""
    try:
        value = json.loads(_whole(path, shown).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InvalidFileError(f"{shown}: not JSON: {_why(error)}") from None
    if not isinstance(value, dict):
        raise InvalidFileError(f"{shown}: not a JSON object")
    return value


def yaml_object(path: Path, shown: str) -> dict[str, object]:
    """Return the mapping of a YAML file; raise InvalidFileError with the line."""
    text = text_of(path, shown)
    return dict(yamlfile.read(text, shown, largest=LONGEST))


def text_of(path: Path, shown: str) -> str:
    """Return the text of a file, its line ends as Unix has them; raise InvalidFileError."""
    try:
        text = _whole(path, shown).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidFileError(f"{shown}: not UTF-8 at byte {error.start}") from None
    return text.replace("\r\n", "\n")


def _whole(path: Path, shown: str) -> bytes:
    if not is_plain(path):
        raise InvalidFileError(f"{shown}: not a regular file")
    try:
        if path.stat().st_size > LONGEST:
            raise InvalidFileError(f"{shown}: larger than {LONGEST:,} bytes")
        return path.read_bytes()
    except OSError as error:
        raise InvalidFileError(f"{shown}: {error.strerror}") from None


def members(archive: Path) -> list[str]:
    """Return the names of the files of a zip."""
    try:
        with zipfile.ZipFile(archive) as found:
            return [each.filename for each in found.infolist() if not each.is_dir()]
    except zipfile.BadZipFile as error:
        raise InvalidError(f"{archive} cannot be read as a zip: {error}") from None


@contextmanager
def member(archive: Path, name: str) -> Iterator[IO[bytes]]:
    """Open a file of a zip; raise InvalidError for what cannot be one."""
    try:
        with zipfile.ZipFile(archive) as found:
            each = found.getinfo(name)
            if each.file_size > _SMALL and each.file_size > _MOST_UNFOLDED * each.compress_size:
                raise InvalidError(
                    f"{name} in {archive} unfolds to {each.file_size:,} bytes, which no conversation does"
                )
            with found.open(each) as file:
                yield file
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise InvalidError(f"{archive} cannot be read as a zip: {error}") from None
