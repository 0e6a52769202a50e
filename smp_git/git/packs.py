"""Packs: many objects as one file, small ones as differences."""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.git.objects import BLOB, COMMIT, TREE

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
_SMALL: Final = 256
_HEAD: Final = 12
_LOOSE: Final = re.compile("[0-9a-f]{40}")
_NAME: Final = 20
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


def pack(objects: Iterable[Packed]) -> Pack:
    """Return a pack of objects, each at most once.

    An object that is `like` an earlier one is stored as the difference.
    """
    made = _Growing()
    for item in objects:
        made.add(item)
    return made.finish()


class _Growing:
    """A pack that grows entry by entry."""

    def __init__(self) -> None:
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
        entry = entry or _size(_TYPES[kind], len(data)) + _deflated(data)
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
        return head + _deflated(difference), depth + 1

    def finish(self) -> Pack:
        """Return the pack with its index."""
        rows = sorted(self._rows)
        self._parts[0] = b"PACK" + struct.pack(">II", 2, len(rows))
        body = b"".join(self._parts)
        total = hashlib.sha1(body, usedforsecurity=False).digest()
        names = b"".join([row[0] for row in rows])
        stem = hashlib.sha1(names + total, usedforsecurity=False).hexdigest()
        return Pack(f"pack-{stem}", body + total, _index(rows, names, total))


def _deflated(data: bytes) -> bytes:
    """Return a zlib stream: stored when so small that compressing costs more than it saves."""
    if len(data) > _SMALL:
        return zlib.compress(data, 1)
    size = len(data)
    head = _STORED.pack(b"\x78\x01\x01", size, size ^ 0xFFFF)
    return b"".join((head, data, zlib.adler32(data).to_bytes(4)))


def _difference(old: bytes, new: bytes) -> bytes:
    """Return a Git delta: what both begin and end with is copied, the middle is inserted."""
    start = common(old, new)
    end = common_end(old, new, min(len(old), len(new)) - start)
    out = [_varint(len(old)), _varint(len(new))]
    _copy(out, 0, start)
    stop = len(new) - end
    for at in range(start, stop, 127):
        part = new[at : min(at + 127, stop)]
        out += (_BYTE[len(part)], part)
    _copy(out, len(old) - end, end)
    return b"".join(out)


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
    """Return how far back a base stands, as an entry tells it."""
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
    """Return the ids of the objects in the pack of an index, of version 1 or 2."""
    data = index.read_bytes()
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


def stored(objects: Path) -> Iterator[bytes]:
    """Yield the id of every object of a store, loose or packed."""
    for index in indexes(objects):
        yield from names(index)
    for name, _ in loose(objects):
        yield name
