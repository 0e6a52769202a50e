"""Files of other programs, read with bounded memory: JSON lines, large JSON lists, zips, YAML."""

from __future__ import annotations

import io
import json
import shutil
import stat
import zipfile
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


class JsonRow(NamedTuple):
    """An object of a file, and where it was: the file and the line."""

    where: str
    value: dict[str, object]


JsonRows: TypeAlias = "Iterator[JsonRow | Trouble]"


@contextmanager
def whole(place: Path) -> Iterator[Path]:
    """Yield where to write what shall be at a place: it gets there whole, or nothing of it stays."""
    scratch = place.with_name(f".{place.name}.tmp")
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
    """Yield the objects of a JSON file that is one list, an element at a time."""
    text = io.TextIOWrapper(file, "utf-8-sig", errors="replace")
    try:
        yield from _elements(text, shown)
    finally:
        # Who opened the file closes it.
        text.detach()


def _elements(text: IO[str], shown: str) -> JsonRows:
    buffer = text.read(_CHUNK).lstrip()
    if not buffer.startswith("["):
        yield Trouble(where=shown, reason="not a JSON list")
        return
    buffer, number, decoder = buffer[1:], 0, json.JSONDecoder()
    while True:
        buffer = buffer.lstrip(" \t\r\n,")
        if buffer.startswith("]"):
            return
        value, end = None, 0
        try:
            value, end = decoder.raw_decode(buffer) if buffer else (None, 0)
        except RecursionError:
            yield Trouble(where=shown, reason=f"element {number + 1} is nested too deep")
            return
        except ValueError:
            pass
        # A number at the end may go on in the next chunk.
        more = text.read(max(_CHUNK, len(buffer))) if not end or end == len(buffer) else ""
        if more and len(buffer) < LONGEST:
            buffer += more
            continue
        if not end:
            why = "is too long" if more else "is torn"
            yield Trouble(where=shown, reason=f"element {number + 1} {why}")
            return
        number += 1
        buffer = buffer[end:] + more
        if isinstance(value, dict):
            yield JsonRow(f"{shown}[{number}]", value)
        else:
            yield Trouble(where=f"{shown}[{number}]", reason="not a JSON object")


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


@contextmanager
def member(archive: Path, name: str) -> Iterator[IO[bytes]]:
    """Open a file of a zip, wherever in it; raise InvalidError for what cannot be one."""
    try:
        with zipfile.ZipFile(archive) as found:
            each = member_named(found, name)
            if each is None:
                raise InvalidError(f"{archive} holds no {name}")
            if each.file_size > _SMALL and each.file_size > _MOST_UNFOLDED * each.compress_size:
                raise InvalidError(
                    f"{archive} unfolds to {each.file_size:,} bytes, which no conversation does"
                )
            with found.open(each) as file:
                yield file
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise InvalidError(f"{archive} cannot be read as a zip: {error}") from None


def member_named(found: zipfile.ZipFile, name: str) -> zipfile.ZipInfo | None:
    """Return the file of a zip that has this name, the one highest up."""
    named = [each for each in found.infolist() if each.filename.rpartition("/")[2] == name]
    return min(named, key=lambda each: each.filename.count("/"), default=None)
