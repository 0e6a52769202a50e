"""Packs written and listed by ourselves: many objects as one file, small ones as differences."""

from __future__ import annotations

import hashlib
import struct
import zlib
from binascii import hexlify
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.git.objects import BLOB, COMMIT, TREE

_TYPES: Final = {COMMIT: 1, TREE: 2, BLOB: 3, b"tag": 4}
_OFFSET_DELTA: Final = 6
_LARGE_OFFSET: Final = 1 << 31
# A longer chain makes reading slow; a shorter difference is not worth one.
_LONGEST_CHAIN: Final = 40
_SMALL: Final = 256
_HEAD: Final = 12


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
    parts: list[bytes] = [b""]
    rows: list[tuple[bytes, int, int]] = []
    placed: dict[bytes, tuple[int, int, bytes]] = {}
    offset = _HEAD
    for item in objects:
        base = placed.get(item.like) if item.like is not None else None
        entry, depth = _entry(item, offset, base)
        placed[item.name] = offset, depth, item.data
        if item.like is not None:
            # Only the latest of a series serves as a base; keeping all would hold all bytes.
            placed.pop(item.like, None)
        rows.append((item.name, zlib.crc32(entry), offset))
        parts.append(entry)
        offset += len(entry)
    parts[0] = b"PACK" + struct.pack(">II", 2, len(rows))
    body = b"".join(parts)
    total = hashlib.sha1(body, usedforsecurity=False).digest()
    rows.sort()
    names = b"".join(row[0] for row in rows)
    stem = hashlib.sha1(names + total, usedforsecurity=False).hexdigest()
    return Pack(f"pack-{stem}", body + total, _index(rows, names, total))


def _entry(item: Packed, offset: int, base: tuple[int, int, bytes] | None) -> tuple[bytes, int]:
    if base is not None and base[1] < _LONGEST_CHAIN:
        difference = _difference(base[2], item.data)
        if len(difference) * 2 < len(item.data):
            head = _size(_OFFSET_DELTA, len(difference)) + _distance(offset - base[0])
            return head + _deflated(difference), base[1] + 1
    return _size(_TYPES[item.type], len(item.data)) + _deflated(item.data), 0


def _deflated(data: bytes) -> bytes:
    """Return a zlib stream: stored when so small that compressing costs more than it saves."""
    if len(data) > _SMALL:
        return zlib.compress(data, 1)
    size = len(data)
    head = b"\x78\x01\x01" + struct.pack("<HH", size, size ^ 0xFFFF)
    return head + data + struct.pack(">I", zlib.adler32(data))


def _difference(old: bytes, new: bytes) -> bytes:
    """Return a Git delta: what both begin and end with is copied, the middle is inserted."""
    start = _common(old, new)
    most = min(len(old), len(new)) - start
    end = _common(old[: -most - 1 : -1] if most else b"", new[: -most - 1 : -1] if most else b"")
    middle = new[start : len(new) - end]
    out = [_varint(len(old)), _varint(len(new)), *_copies(0, start)]
    out += [
        bytes((len(middle[at : at + 127]),)) + middle[at : at + 127]
        for at in range(0, len(middle), 127)
    ]
    out += _copies(len(old) - end, end)
    return b"".join(out)


def _common(left: bytes, right: bytes) -> int:
    """Return how many bytes two texts begin with in common."""
    low, high = 0, min(len(left), len(right))
    if left[:high] == right[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _copies(offset: int, size: int) -> Iterator[bytes]:
    while size > 0:
        step = min(size, 0xFFFF)
        yield struct.pack("<BIH", 0x80 | 0x0F | 0x30, offset, step)
        offset, size = offset + step, size - step


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits a byte
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _size(kind: int, size: int) -> bytes:
    first = kind << 4 | size & 0x0F
    size >>= 4
    return bytes((first | 0x80,)) + _varint(size) if size else bytes((first,))


def _distance(value: int) -> bytes:
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
    """Return the ids of the objects in the pack of an index."""
    data = index.read_bytes()
    if data[:4] == b"\xfftOc":
        count = struct.unpack_from(">I", data, 8 + 255 * 4)[0]
        start, width, skip = 8 + 256 * 4, 20, 0
    else:
        count = struct.unpack_from(">I", data, 255 * 4)[0]
        start, width, skip = 256 * 4, 24, 4
    end = start + count * width
    return [data[at + skip : at + skip + 20] for at in range(start, end, width)]


def loose(objects: Path) -> Iterator[tuple[bytes, Path]]:
    """Yield the id and file of each loose object."""
    for folder in objects.iterdir():
        if len(folder.name) != 2 or not folder.is_dir():  # noqa: PLR2004 - two digits of the id
            continue
        for file in folder.iterdir():
            name = folder.name + file.name
            if len(name) == 40 and not file.name.startswith("tmp"):  # noqa: PLR2004 - an id
                yield bytes.fromhex(name), file


def text(name: bytes) -> str:
    """Return an id as it is written."""
    return hexlify(name).decode()
