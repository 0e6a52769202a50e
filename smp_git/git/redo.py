"""The write-ahead line: what a write makes, on the medium as one record before anything else."""

from __future__ import annotations

import errno
import json
import os
import struct
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Self

from smp_git.git import disk, packs, storage
from smp_git.git.objects import Object, ObjectId
from smp_git.model.memory import CommitId

# The file grows by this much at once, so that a record written into it needs no metadata.
_CHUNK: Final = 256 << 10
# What is in the file costs a look at every one of its objects when it is emptied.
_MOST: Final = 1 << 20
# A larger write is forced out on its own.
LARGEST: Final = 128 << 10
_FRAME: Final = struct.Struct(">4sII")
_MAGIC: Final = b"smp1"
_ID_LENGTH: Final = 40


class Stood(NamedTuple):
    """Where a reference is, and the times of the files that say so (None: no such file)."""

    commit: CommitId | None
    loose: int | None
    packed: int | None


class Record(NamedTuple):
    """One write: the move of a reference, with all that it needs."""

    ref: str
    stood: Stood
    new: CommitId
    boot: str
    counters: Mapping[str, int]
    objects: tuple[tuple[ObjectId, bytes], ...]


class Redo:
    """The line of one repository; the caller of whatever writes holds the session's lock.

    A record counts from when it is on the medium. Then its files may be written at
    leisure: whoever finds some of them missing makes them from the record.
    """

    def __init__(self, git: str) -> None:
        self._git = git
        self._path = f"{git}/smp/redo"
        # The frame of the latest record that was seen, and what follows it.
        self._frame = b""
        self._at = self._end = self._sum = 0
        self.is_used = False
        # Has what the line has, beside a gc.
        self._pack: Path | None = None

    # Writing

    def room(self, size: int) -> Line | None:
        """Return the line with room for `size` bytes, None if it cannot have it."""
        size += _FRAME.size
        try:
            line = Line(self, self._opened())
        except OSError as error:
            if _is_full(error):
                return None
            raise
        try:
            self._find_end(line.fd)
            if self._end + size > _MOST:
                self._emptied(line.fd)
            self._grow(line.fd, self._end + size)
        except OSError as error:
            line.close()
            if _is_full(error):
                return None
            raise
        return line

    def _opened(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR)
        except FileNotFoundError:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            disk.write_all(fd, bytes(_CHUNK))
            disk.force_name(fd, f"{self._git}/smp", self._git)
        except BaseException:
            os.close(fd)
            os.unlink(self._path)  # noqa: PTH108 - a Path costs more than the call
            raise
        return fd

    def _grow(self, fd: int, size: int) -> None:
        there = os.fstat(fd).st_size
        while there < size:
            disk.write_all_at(fd, bytes(_CHUNK), there)
            there += _CHUNK

    def _find_end(self, fd: int) -> None:
        """Find where the next record goes, behind those of other processes."""
        if not self._frame or os.pread(fd, _FRAME.size, self._at) != self._frame:
            self._frame, self._at, self._end, self._sum = b"", 0, 0, 0
        while (frame := os.pread(fd, _FRAME.size, self._end)) and (
            found := _body(frame, os.pread(fd, _length(frame), self._end + _FRAME.size), self._sum)
        ):
            self._step(frame, len(found))

    def _step(self, frame: bytes, length: int) -> None:
        self._frame, self._at, self._sum = frame, self._end, _FRAME.unpack(frame)[2]
        self._end += _FRAME.size + length

    def put(self, fd: int, record: Record) -> None:
        """Put a record on the medium; `room` has made room for it."""
        body = _packed(record)
        frame = _FRAME.pack(_MAGIC, len(body), zlib.crc32(body, self._sum))
        try:
            disk.write_all_at(fd, frame + body, self._end)
            disk.force_content(fd)
        except BaseException:
            self._cross_out(fd, self._end)
            raise
        self._step(frame, len(body))
        self.is_used = True

    def take_back(self, fd: int) -> None:
        """Take the latest record back: its write came to nothing."""
        self._cross_out(fd, self._at)

    def _cross_out(self, fd: int, at: int) -> None:
        self._frame = b""
        disk.write_all_at(fd, bytes(_FRAME.size), at)
        disk.force_content(fd)

    # Emptying

    def is_empty(self) -> bool:
        """Whether no record stands in the line, or none that may be read."""
        try:
            fd = os.open(self._path, os.O_RDONLY)
        except OSError:
            return True
        try:
            return os.pread(fd, len(_MAGIC), 0) != _MAGIC
        finally:
            os.close(fd)

    def settle(self, *, remove: bool = False) -> None:
        """Force out everything the records stand for, then empty the line.

        With `remove` the file goes too, its content overwritten.
        """
        try:
            fd = os.open(self._path, os.O_RDWR)
        except FileNotFoundError:
            return
        try:
            self._find_end(fd)
            if self._end:
                self._emptied(fd)
            if remove:
                disk.write_all_at(fd, bytes(os.fstat(fd).st_size), 0)
                disk.force_content(fd)
                os.unlink(self._path)  # noqa: PTH108 - a Path costs more than the call
        finally:
            os.close(fd)

    def _emptied(self, fd: int) -> None:
        records = _records(os.pread(fd, self._end, 0))
        storage.outlive_gc(Path(self._git, "objects"), _stored(records))
        disk.force_files(sorted(_files(self._git, records)), f"{self._git}/smp")
        disk.write_all_at(fd, bytes(self._end), 0)
        self._frame, self._at, self._end, self._sum = b"", 0, 0, 0

    def repeat(self) -> None:
        """Put what the line has into a pack beside a gc, instead of the one before."""
        objects = _stored(self.records())
        before, self._pack = self._pack, storage.repeat(Path(self._git, "objects"), objects)
        with suppress(FileNotFoundError):
            # Once the line was emptied, that one may be the only place of what it has.
            if (
                before
                and {packs.text(name) for name in packs.names(before.with_suffix(".idx"))}
                <= objects.keys()
            ):
                for suffix in (".idx", ".pack"):
                    before.with_suffix(suffix).unlink()

    def held(self, name: str) -> Object | None:
        """Return an object that the line holds, for one that a gc has taken meanwhile."""
        for record in self.records():
            for each, data in record.objects:
                if each == name:
                    return storage.unframed(data)
        return None

    # After a power cut

    def records(self) -> list[Record]:
        """Return the whole records, oldest first."""
        try:
            with open(self._path, "rb") as file:  # noqa: PTH123 - a Path costs more than the call
                return _records(file.read())
        except FileNotFoundError:
            return []

    def is_suspect(self) -> bool:
        """Whether a record stands there whose files may not be what it says."""
        if self.is_empty():
            return False
        records = self.records()
        if any(not record.boot or record.boot != disk.boot() for record in records):
            return True
        lost = any(self.lost(ref, records) for ref in {record.ref for record in records})
        return lost or any(map(_is_blank, _objects(self._git, records)))

    def lost(self, ref: str, records: Iterable[Record]) -> CommitId | None:
        """Return where `ref` was when power was cut, None if it is where it was put last.

        A reference that Git moved is a file that no record knows, and stays.
        """
        own = [record for record in records if record.ref == ref]
        last = own[-1]
        try:
            now = standing(self._git, ref)
        except (ValueError, OSError):
            return last.new
        if now.loose is None:
            gone = last.boot != disk.boot() and now.packed == last.stood.packed
            return last.new if gone else None
        back = any(now[:2] == record.stood[:2] for record in own)
        return last.new if back and now.commit != last.new else None


class Line:
    """The open line, with room for one record."""

    def __init__(self, redo: Redo, fd: int) -> None:
        self._redo = redo
        self.fd = fd

    def put(self, record: Record) -> None:
        """Put a record on the medium."""
        self._redo.put(self.fd, record)

    def take_back(self) -> None:
        """Take the record back: its write came to nothing."""
        self._redo.take_back(self.fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        os.close(self.fd)


def standing(git: str, ref: str) -> Stood:
    """Return where a reference is; raise ValueError if its file cannot be read."""
    try:
        packed = os.stat(f"{git}/packed-refs").st_mtime_ns  # noqa: PTH116 - asked at every write
    except FileNotFoundError:
        packed = None
    commit, loose = loose_reference(git, ref)
    return Stood(commit, loose, packed)


def loose_reference(git: str, ref: str) -> tuple[CommitId | None, int | None]:
    """Return what a reference's own file says, and its time; raise ValueError if it is torn."""
    try:
        fd = os.open(f"{git}/{ref}", os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None, None
    try:
        text = os.read(fd, 200).decode("ascii").strip()
        if len(text) != _ID_LENGTH or not text.isalnum():
            raise ValueError(ref)
        return CommitId(text), os.fstat(fd).st_mtime_ns
    except IsADirectoryError:
        # Of references of longer names, or of none any more.
        return None, None
    finally:
        os.close(fd)


def _is_full(error: OSError) -> bool:
    """Whether the disk is full: what needs no room may still fit."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def _packed(record: Record) -> bytes:
    head = json.dumps(
        {
            "ref": record.ref,
            "stood": record.stood,
            "new": record.new,
            "boot": record.boot,
            "counters": dict(record.counters),
            "objects": [(name, len(data)) for name, data in record.objects],
        }
    )
    return b"\n".join((head.encode(), b"".join([data for _, data in record.objects])))


def _unpacked(body: bytes) -> Record:
    head, _, rest = body.partition(b"\n")
    said = json.loads(head)
    objects = []
    at = 0
    for name, length in said["objects"]:
        objects.append((ObjectId(name), rest[at : at + length]))
        at += length
    return Record(
        ref=said["ref"],
        stood=Stood(*said["stood"]),
        new=CommitId(said["new"]),
        boot=said["boot"],
        counters=said["counters"],
        objects=tuple(objects),
    )


def _length(frame: bytes) -> int:
    if len(frame) < _FRAME.size or not frame.startswith(_MAGIC):
        return 0
    return int(_FRAME.unpack(frame)[1])


def _body(frame: bytes, data: bytes, before: int) -> bytes:
    """Return the body behind a frame, empty if it is not whole or not the next one."""
    whole = (
        data and len(data) == _length(frame) and zlib.crc32(data, before) == _FRAME.unpack(frame)[2]
    )
    return data if whole else b""


def _records(data: bytes) -> list[Record]:
    found: list[Record] = []
    at = before = 0
    while length := _length(frame := data[at : at + _FRAME.size]):
        start = at + _FRAME.size
        body = _body(frame, data[start : start + length], before)
        if not body:
            break
        found.append(_unpacked(body))
        at, before = start + length, _FRAME.unpack(frame)[2]
    return found


def _stored(records: Iterable[Record]) -> dict[ObjectId, bytes]:
    return {name: data for record in records for name, data in record.objects}


def _objects(git: str, records: Iterable[Record]) -> set[str]:
    names = {name for record in records for name, _ in record.objects}
    return {f"{git}/objects/{name[:2]}/{name[2:]}" for name in names}


def _files(git: str, records: list[Record]) -> set[str]:
    """Return the files that records stand for."""
    refs = {f"{git}/{record.ref}" for record in records}
    return _objects(git, records) | refs | {f"{git}/smp/counters.json"}


def _is_blank(path: str) -> bool:
    try:
        return os.stat(path).st_size == 0  # noqa: PTH116 - a Path costs more than the call
    except FileNotFoundError:
        return True
