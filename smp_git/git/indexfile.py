"""Git's index as bytes: a few entries changed without making all the others anew."""

from __future__ import annotations

import hashlib
import re
import struct
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from smp_git.git.objects import ObjectId

_SIGNATURE: Final = b"DIRC"
_PLAIN_VERSIONS: Final = (2, 3)
_HEAD: Final = struct.Struct(">4sII")
# Times and numbers of the file, its version, flags; the path follows.
_TIMES: Final = struct.Struct(">10I")
_ID: Final = slice(40, 60)
_FLAGS: Final = struct.Struct(">H")
_PATH: Final = 62
_LONGEST_PATH: Final = 0xFFE
_SUM_SIZE: Final = 20
_ABSENT: Final = (0, 0, 0, 0, 0, 0, 0o100644, 0, 0, 0)
# What Git keeps to undo a resolved conflict; others only make it faster, and may be
# wrong once an entry changed.
_KEPT: Final = b"REUC"
_TREES: Final = b"TREE"
_TREE: Final = re.compile(rb"[^\0]*\0(-?\d+) \d+\n")
_ID_SIZE: Final = 20


def is_whole(data: bytes) -> bool:
    """Whether an index is complete, as its checksum tells."""
    if not data.startswith(_SIGNATURE):
        return False
    return data[-_SUM_SIZE:] in (_sum(data[:-_SUM_SIZE]), bytes(_SUM_SIZE))


def _sum(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()


class PlainIndex:
    """The entries of an index without conflicts, in the form that Git writes by itself."""

    def __init__(self, data: bytes, starts: dict[bytes, int], end: int) -> None:
        self._data = data
        # In the order of the paths, as Git keeps them.
        self._starts = starts
        self._end = end
        self._changed: dict[bytes, bytes] = {}

    def id(self, path: str) -> ObjectId | None:
        """Return the version of a path, or None."""
        raw = path.encode("utf-8", "surrogateescape")
        entry = self._changed.get(raw)
        if entry is None and raw in self._starts:
            start = self._starts[raw]
            entry = self._data[start : start + _PATH]
        return ObjectId(entry[_ID].hex()) if entry else None

    def paths(self) -> list[str]:
        """Return every path."""
        kept = (self._starts.keys() | self._changed) - {
            p for p, e in self._changed.items() if not e
        }
        return [raw.decode("utf-8", "surrogateescape") for raw in kept]

    def set(self, path: str, blob: ObjectId, times: tuple[int, ...] | None) -> None:
        """Set the version of a path, with the times of its file if it holds that."""
        raw = path.encode("utf-8", "surrogateescape")
        numbers = _TIMES.pack(*(times or _ABSENT))
        entry = b"".join((numbers, bytes.fromhex(blob), _FLAGS.pack(len(raw)), raw))
        self._changed[raw] = entry + bytes(8 - len(entry) % 8)

    def remove(self, path: str) -> None:
        """Take a path out."""
        self._changed[path.encode("utf-8", "surrogateescape")] = b""

    def written(self) -> bytes:
        """Return the bytes of the index."""
        order = list(self._starts)
        parts: list[bytes] = []
        at, count = _HEAD.size, len(order)
        for raw, entry in sorted(self._changed.items()):
            place = bisect_left(order, raw)
            here = self._starts[order[place]] if place < len(order) else self._end
            is_known = raw in self._starts
            parts += [self._data[at:here], entry]
            at = here + (_length(len(raw)) if is_known else 0)
            count += bool(entry) - is_known
        parts += [self._data[at : self._end], *self._extensions()]
        version = _HEAD.unpack_from(self._data)[1]
        body = b"".join((_HEAD.pack(_SIGNATURE, version, count), *parts))
        return body + _sum(body)

    def _extensions(self) -> list[bytes]:
        return [part for name, part in _extensions(self._data, self._end) if name == _KEPT]


def _length(path: int) -> int:
    return (_PATH + path + 8) & ~7


def _extensions(data: bytes, at: int) -> list[tuple[bytes, bytes]]:
    found = []
    while at + _SUM_SIZE < len(data):
        size = 8 + int.from_bytes(data[at + 4 : at + 8], "big")
        found.append((data[at : at + 4], data[at : at + size]))
        at += size
    return found


def plain(data: bytes) -> PlainIndex | None:
    """Return the index that has these bytes, None if it is in a form that is not plain.

    Not plain are conflicts, entries with marks that Git sets on demand, and indexes split
    into two files or with shortened paths.
    """
    if not data:
        data = _HEAD.pack(_SIGNATURE, 2, 0) + bytes(_SUM_SIZE)
    signature, version, count = _HEAD.unpack_from(data)
    if signature != _SIGNATURE or version not in _PLAIN_VERSIONS:
        return None
    starts: dict[bytes, int] = {}
    at = _HEAD.size
    for _ in range(count):
        # Besides the length of the path: assumed unchanged, extended, conflicting.
        flags = data[at + 60] << 8 | data[at + 61]
        if flags > _LONGEST_PATH:
            return None
        starts[data[at + _PATH : at + _PATH + flags]] = at
        at += (_PATH + flags + 8) & ~7
    is_known = all(name[:1].isupper() for name, _ in _extensions(data, at))
    return PlainIndex(data, starts, at) if is_known else None


def cached_trees(data: bytes) -> list[bytes]:
    """Return the ids of the trees that an index remembers, whatever its form."""
    at = data.rfind(_TREES)
    if at < 0:
        return []
    size = int.from_bytes(data[at + 4 : at + 8], "big")
    return list(_tree_ids(data[at + 8 : at + 8 + size]))


def _tree_ids(trees: bytes) -> Iterator[bytes]:
    """Yield the ids of a tree extension: a name, how many entries (-1: unknown), an id."""
    at = 0
    while match := _TREE.match(trees, at):
        at = match.end()
        if not match[1].startswith(b"-"):
            yield trees[at : at + _ID_SIZE]
            at += _ID_SIZE
