"""Object store: new objects, loose or as a pack, small ones as differences; their durability."""

from __future__ import annotations

import hashlib
import os
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Self

from smp_git.git import disk, locks
from smp_git.git.objects import BLOB, COMMIT, TREE, Object, deflate, framed, stored
from smp_git.model.errors import DamagedError

# So many bytes are compared as two numbers; differences tend to be near the end.
_COMPARED: Final = 512
_NEAR: Final = 256


def common(left: bytes, right: bytes) -> int:
    """Return how many bytes two texts begin with in common."""
    high = min(len(left), len(right))
    if left[:high] == right[:high]:
        return high
    low = 0
    middle = high - _NEAR
    while high - low > _COMPARED:
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle
        middle = (low + high) // 2
    differing = int.from_bytes(left[low:high]) ^ int.from_bytes(right[low:high])
    return high - (differing.bit_length() + 7) // 8


def common_end(left: bytes, right: bytes, most: int) -> int:
    """Return how many bytes, of at most so many, two texts end with in common."""
    left, right = left[len(left) - most :], right[len(right) - most :]
    if left == right:
        return most
    low = 0
    while most - low > _COMPARED:
        middle = (low + most) // 2
        if left[middle:most] == right[middle:most]:
            most = middle
        else:
            low = middle
    size = len(left)
    differing = int.from_bytes(left[low:most], "little") ^ int.from_bytes(right[low:most], "little")
    return size - low - (differing.bit_length() + 7) // 8


_TYPES: Final = {COMMIT: 1, TREE: 2, BLOB: 3, b"tag": 4}
_OFFSET_DELTA: Final = 6
_LARGE_OFFSET: Final = 1 << 31
# A longer chain makes reading slow; a shorter difference is not worth one.
_LONGEST_CHAIN: Final = 40
_SMALL_OBJECT: Final = 256
_TINY_OBJECT: Final = 60
_QUICKLY: Final = 1
_HEAD: Final = 12
_LOOSE: Final = re.compile("[0-9a-f]{40}")
_NAME: Final = 20
# Shorter middles of a difference are inserted as they are; how often a run is looked for.
_WORTH_A_LOOK: Final = 96
_PROBE: Final = 24
_RUNS: Final = 3
_BYTE: Final = [bytes((value,)) for value in range(256)]
_COPY: Final = struct.Struct("<BIH")
_STORED: Final = struct.Struct("<3sHH")


class Packed(NamedTuple):
    """An object on its way into a pack."""

    name: bytes
    type: bytes
    data: bytes
    like: bytes | None = None


class Pack(NamedTuple):
    """The bytes of a pack and of its index, and the name of both."""

    name: str
    pack: bytes
    idx: bytes


def pack(objects: Iterable[Packed], level: int = _QUICKLY) -> Pack:
    """Return a pack of objects, each at most once, compressed at a level of zlib's.

    An object that is `like` an earlier one is stored as the difference.
    """
    made = _Growing(level)
    for item in objects:
        made.add(item)
    return made.finish()


class _Growing:
    """A pack that grows entry by entry."""

    def __init__(self, level: int) -> None:
        self._level = level
        self._parts: list[bytes] = [b""]
        self._rows: list[tuple[bytes, int, int]] = []
        self._bases: dict[bytes, tuple[int, int, bytes]] = {}
        self._offset = _HEAD

    def add(self, item: Packed) -> None:
        """Add an object, as a difference if that is small."""
        name, kind, data, like = item
        # Only the latest of a series serves as a base; keeping all would hold all bytes.
        base = self._bases.pop(like, None) if like is not None else None
        entry, depth = self._difference(base, data) if base is not None else (b"", 0)
        if kind != COMMIT:
            self._bases[name] = self._offset, depth, data
        entry = entry or _size(_TYPES[kind], len(data)) + _deflated(data, self._level)
        self._rows.append((name, zlib.crc32(entry), self._offset))
        self._parts.append(entry)
        self._offset += len(entry)

    def _difference(self, base: tuple[int, int, bytes], data: bytes) -> tuple[bytes, int]:
        """Return data as a difference to its base, and the length of that chain; nothing if large."""
        offset, depth, old = base
        if depth >= _LONGEST_CHAIN:
            return b"", 0
        difference = _difference(old, data)
        if len(difference) * 2 >= len(data):
            return b"", 0
        head = _size(_OFFSET_DELTA, len(difference)) + _distance(self._offset - offset)
        return head + _deflated(difference, self._level), depth + 1

    def finish(self) -> Pack:
        """Return the pack with its index."""
        rows = sorted(self._rows)
        self._parts[0] = b"PACK" + struct.pack(">II", 2, len(rows))
        body = b"".join(self._parts)
        total = hashlib.sha1(body, usedforsecurity=False).digest()
        names = b"".join([row[0] for row in rows])
        stem = hashlib.sha1(names + total, usedforsecurity=False).hexdigest()
        return Pack(f"pack-{stem}", body + total, _index(rows, names, total))


def _deflated(data: bytes, level: int) -> bytes:
    """Return a zlib stream: stored when so small that compressing costs more than it saves."""
    if len(data) > (_SMALL_OBJECT if level == _QUICKLY else _TINY_OBJECT):
        return zlib.compress(data, level)
    size = len(data)
    head = _STORED.pack(b"\x78\x01\x01", size, size ^ 0xFFFF)
    return b"".join((head, data, zlib.adler32(data).to_bytes(4)))


def _difference(old: bytes, new: bytes) -> bytes:
    """Return a Git delta: what both begin and end with is copied, and so is a run between."""
    out = [_varint(len(old)), _varint(len(new))]
    _differing(out, old, new, 0, _RUNS)
    return b"".join(out)


def _differing(out: list[bytes], old: bytes, new: bytes, offset: int, left: int) -> None:
    """Add how `new` differs from `old`, which is at an offset of the base."""
    start = common(old, new)
    end = common_end(old, new, min(len(old), len(new)) - start)
    _copy(out, offset, start)
    middle = new[start : len(new) - end]
    before = old[start : len(old) - end]
    run = _run(before, middle) if left and len(middle) > _WORTH_A_LOOK else None
    if run is None:
        for at in range(0, len(middle), 127):
            part = middle[at : at + 127]
            out += (_BYTE[len(part)], part)
    else:
        here, there, size = run
        _differing(out, before[:here], middle[:there], offset + start, left - 1)
        _copy(out, offset + start + here, size)
        rest = before[here + size :], middle[there + size :]
        _differing(out, *rest, offset + start + here + size, left - 1)
    _copy(out, offset + len(old) - end, end)


def _run(old: bytes, new: bytes) -> tuple[int, int, int] | None:
    """Return where a run of bytes that two texts have in common is in both, and its length.

    In the tree of a page the entry of the index changes at one end, and a memory's comes
    at the other.
    """
    here = len(old) // 2
    probe = old[here : here + _PROBE]
    there = new.find(probe) if len(probe) == _PROBE else -1
    if there < 0:
        return None
    back = common_end(old[:here], new[:there], min(here, there))
    size = back + common(old[here:], new[there:])
    return here - back, there - back, size


def _copy(out: list[bytes], offset: int, size: int) -> None:
    while size > 0:
        step = min(size, 0xFFFF)
        out.append(_COPY.pack(0x80 | 0x0F | 0x30, offset, step))
        offset, size = offset + step, size - step


def _varint(value: int) -> bytes:
    if value <= 0x7F:  # noqa: PLR2004 - seven bits a byte
        return _BYTE[value]
    out = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - as above
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _size(kind: int, size: int) -> bytes:
    first = kind << 4 | size & 0x0F
    size >>= 4
    return _BYTE[first | 0x80] + _varint(size) if size else _BYTE[first]


def _distance(value: int) -> bytes:
    """Return how far back a base is, as an entry tells it."""
    out = [value & 0x7F]
    while value := value >> 7:
        value -= 1
        out.append(value & 0x7F | 0x80)
    return bytes(reversed(out))


def _index(rows: list[tuple[bytes, int, int]], names: bytes, total: bytes) -> bytes:
    """Return the index (version 2) of a pack."""
    counts = [0] * 256
    for row in rows:
        counts[row[0][0]] += 1
    fanout, seen = [], 0
    for count in counts:
        seen += count
        fanout.append(seen)
    large = [row[2] for row in rows if row[2] >= _LARGE_OFFSET]
    places = iter(range(len(large)))
    offsets = [o if o < _LARGE_OFFSET else _LARGE_OFFSET | next(places) for _, _, o in rows]
    body = b"\xfftOc" + struct.pack(">I256I", 2, *fanout) + names
    body += struct.pack(f">{len(rows)}I", *(row[1] for row in rows))
    body += struct.pack(f">{len(rows)}I", *offsets)
    body += struct.pack(f">{len(large)}Q", *large) + total
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def names(index: Path) -> list[bytes]:
    """Return the ids of the objects in the pack of an index, of version 1 or 2; raise DamagedError."""
    try:
        return _names(index.read_bytes())
    except struct.error:
        raise DamagedError(f"{index} cannot be read", hint="smp repair makes it anew") from None


def _names(data: bytes) -> list[bytes]:
    if data[:4] != b"\xfftOc":
        count = struct.unpack_from(">I", data, 255 * 4)[0]
        rows = range(256 * 4, 256 * 4 + count * 24, 24)
        return [data[at + 4 : at + 24] for at in rows]
    count = struct.unpack_from(">I", data, 8 + 255 * 4)[0]
    first = 8 + 256 * 4
    return [data[at : at + _NAME] for at in range(first, first + count * _NAME, _NAME)]


def indexes(objects: Path) -> list[Path]:
    """Return the index of each pack that is there.

    From a server of plain files Git keeps those of packs that it has not fetched, too.
    """
    found = sorted((objects / "pack").glob("*.idx"))
    return [index for index in found if index.with_suffix(".pack").exists()]


def loose(objects: Path) -> Iterator[tuple[bytes, Path]]:
    """Yield the id and file of each loose object."""
    for folder in objects.iterdir():
        if len(folder.name) != 2 or not folder.is_dir():  # noqa: PLR2004 - two digits of the id
            continue
        for file in folder.iterdir():
            name = folder.name + file.name
            if _LOOSE.fullmatch(name):
                yield bytes.fromhex(name), file


def stored_names(objects: Path) -> Iterator[bytes]:
    """Yield the id of every object of a store, loose or packed."""
    for index in indexes(objects):
        yield from names(index)
    for name, _ in loose(objects):
        yield name


# From here on one pack costs less than its objects would as files of their own.
_PACK_FROM: Final = 64
# Takes one block of the disk, compressed or not.
_SMALL: Final = 4_000
# What the marks of ours are links to.
_OWN_MARK: Final = "smp/pack-keep"
# A gc with --prune=now takes what is being written for garbage.
_TRIES: Final = 20


class Written:
    """New objects on the disk whose data is not yet fsynced; keeps them open until then."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fds: list[int] = []
        self._folders: set[str] = set()
        # Each loose object by its file.
        self._loose: dict[str, Object] = {}
        self._marks: list[Path] = []

    def keep(self, fd: int, folder: str) -> None:
        """Take over an open file in `folder` that must be durable before anything names it."""
        self._fds.append(fd)
        self._folders.add(folder)

    def keep_loose(self, fd: int, path: str, item: Object) -> None:
        """Take over the open file of a loose object."""
        self.keep(fd, os.path.dirname(path))  # noqa: PTH120 - a Path costs more than the call
        self._loose[path] = item

    def mark(self, pack: Path) -> None:
        """Let Git leave a pack alone until this is closed, as it does with packs that it fetches.

        A repacking that began before a reference reached the pack would remove it afterwards.
        """
        own, mark = _own_mark(self._folder), pack.with_suffix(".keep")
        own.touch(0o600)
        with suppress(FileExistsError):
            os.link(own, mark)
        self._marks.append(mark)

    def is_exposed(self) -> bool:
        """Whether a `git gc` has removed loose objects, or may: no reference names them yet."""
        if not self._loose:
            return False
        there = all(os.access(path, os.F_OK) for path in self._loose)
        return not there or locks.runs(self._folder.parent)

    def pack(self) -> None:
        """Put the loose objects into a pack as well, where no `git gc` removes them."""
        _store_marked(self._folder, self._loose.values(), self)
        self._loose.clear()

    def keep_files(self, top: Path) -> None:
        """Make the files below `top` durable as well, and their names."""
        for path in top.rglob("*"):
            self._folders.add(str(path.parent))
            if path.is_file():
                self.keep(os.open(path, os.O_RDONLY), str(path.parent))

    def flush(self) -> None:
        """Make the files durable, names and all."""
        self.flush_data()
        disk.flush_names(str(self._folder))

    def flush_data(self) -> None:
        """Fsync the data; the fsync of the file that publishes it makes all durable."""
        disk.flush_data(self._fds, (*self._folders, str(self._folder)), str(self._folder))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files."""
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()
        if self._marks:
            disk.drop_own_lock(_own_mark(self._folder), *self._marks)
            self._marks.clear()


def _own_mark(folder: Path | str) -> Path:
    return Path(folder).parent / _OWN_MARK


def is_marked_by_us(objects: Path, mark: Path) -> bool:
    """Whether a write of ours, under way or dead, has marked a pack to be kept."""
    with suppress(FileNotFoundError):
        return mark.samefile(_own_mark(objects))
    return False


def drop_marks(objects: Path) -> None:
    """Remove the marks that a writer of ours left when it died; the caller holds the lock."""
    disk.drop_own_lock(_own_mark(objects), *(objects / "pack").glob("*.keep"))


def sweep(folder: Path) -> None:
    """Remove the files without content that a power cut left in the object store at `folder`.

    Nothing that was fsynced looks so; a pack and its index go together.
    """
    for path in (*folder.glob("[0-9a-f][0-9a-f]/*"), *folder.glob("pack/pack-*")):
        with suppress(FileNotFoundError):
            if _is_blank(path):
                path.unlink()
                if path.suffix in (".pack", ".idx"):
                    path.with_suffix(".idx").unlink(missing_ok=True)


def _is_blank(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(8) in (b"", bytes(8))


def store(folder: Path, objects: Sequence[Object], written: Written) -> None:
    """Put `objects` into the object store at `folder`."""
    if len(objects) >= _PACK_FROM or (objects and locks.runs(folder.parent)):
        _store_marked(folder, {item.id: item for item in objects}.values(), written)
        return
    for item in objects:
        path = f"{folder}/{item.id[:2]}/{item.id[2:]}"
        data = framed(item.type, item.data)
        existing = _existing(path, data) if os.access(path, os.F_OK) else None
        if existing is not None:
            fd, data = existing
        else:
            data = stored(data) if len(data) <= _SMALL else deflate(data)
            fd = _place(path, data, f"{folder}")
        written.keep_loose(fd, path, item)


def _store_marked(folder: Path, objects: Iterable[Object], written: Written) -> None:
    """Put objects as a pack that Git leaves alone until a reference has reached it."""
    made = pack(Packed(bytes.fromhex(each.id), each.type, each.data) for each in objects)
    written.mark(folder / "pack" / made.name)
    store_pack(folder, made, written)


def _existing(path: str, data: bytes) -> tuple[int, bytes] | None:
    """Return the file at `path`, open, and its bytes, if it holds the object `data`.

    Whoever wrote it, a dead writer or Git itself, may not have fsynced it, and a
    power cut leaves empty files and NULs under names that look taken.
    """
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with suppress(OSError, zlib.error):
        found = os.pread(fd, os.fstat(fd).st_size, 0)
        if zlib.decompress(found) == data:
            # Looks new again, so that a gc at this moment does not take it for garbage.
            os.utime(path)
            return fd, found
    os.close(fd)
    return None


def broken_packs(objects: Path) -> list[Path]:
    """Return the packs that are not as they were written, or whose index is not."""
    found = []
    for pack in sorted((objects / "pack").glob("pack-*.pack")):
        total, end = _summed(pack)
        index = pack.with_suffix(".idx")
        index_total, index_end = _summed(index) if index.exists() else (b"", b"")
        is_whole = total == end[_NAME:] and index_total == index_end[_NAME:]
        if not is_whole or index_end[:_NAME] != end[_NAME:]:
            found.append(pack)
    return found


def _summed(file: Path) -> tuple[bytes, bytes]:
    """Return the checksum of all but the last 20 bytes of a file, and its last 40 bytes."""
    data = file.read_bytes()
    return hashlib.sha1(data[:-_NAME], usedforsecurity=False).digest(), data[-2 * _NAME :]


def write_pack(folder: Path, objects: Iterable[Packed]) -> None:
    """Put objects as a pack into the object store at `folder`, durable."""
    with Written(folder) as written:
        store_pack(folder, pack(objects), written)
        written.flush()


def store_pack(folder: Path, made: Pack, written: Written) -> None:
    """Put a pack into the object store at `folder`."""
    stem = folder / "pack" / made.name
    # The index makes the pack visible, so it comes last.
    for suffix, data in ((".pack", made.pack), (".idx", made.idx)):
        written.keep(_place(f"{stem}{suffix}", data, f"{folder}"), f"{stem.parent}")


def _place(path: str, data: bytes, folder: str) -> int:
    """Write a file of the object store at `folder`; return its descriptor.

    All are made in one folder: ext4 puts a new file beside its folder, and looks for a
    place there among those given up a moment ago.
    """
    scratch = f"{folder}/tmp_obj_smp{os.getpid()}"  # noqa: S108 - in the object store, as Git has it
    left = _TRIES
    while True:
        left -= 1
        fd = disk.create_file(scratch)
        try:
            disk.write_all(fd, data)
            disk.rename_into(scratch, path)
        except BaseException as error:
            os.close(fd)
            gone = isinstance(error, FileNotFoundError) and not os.path.lexists(scratch)
            if not gone or not left:
                Path(scratch).unlink(missing_ok=True)
                raise
        else:
            return fd
