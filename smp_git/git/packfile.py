"""A small pack held in memory: its objects are read faster than through a library."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple, Self

from smp_git.git import packs
from smp_git.git.objects import BLOB, COMMIT, TREE

# A larger pack is left to those who map files in pieces.
LARGEST: Final = 32 << 20
_TYPES: Final = {1: COMMIT, 2: TREE, 3: BLOB, 4: b"tag"}
_BLOB: Final = 3
_OFFSET_DELTA: Final = 6
_NAME_DELTA: Final = 7
# A copy of size 0 is one of this size.
_WHOLE: Final = 0x10000
_TOTAL: Final = 20
# Longer than any two sizes at the beginning of a difference.
_SIZES: Final = 24
_SMALL: Final = 4 << 10
_KEPT_BYTES: Final = 16 << 20


class _Entry(NamedTuple):
    """Where an object stands: `base` is the place of what it differs from."""

    kind: int
    size: int
    start: int
    end: int
    base: int


class PackFile:
    """The objects of one pack that Git has checked: its sums, sizes and differences are right.

    What it cannot read it does not have: differences to objects outside, for one.
    """

    def __init__(self, data: bytes, ends: Mapping[int, int], places: Mapping[bytes, int]) -> None:
        self._data = data
        self._ends = ends
        self._places = places
        self._entries: dict[int, _Entry] = {}
        self._last = -1, b""
        self._kinds: dict[int, int] = {}
        self._kept: dict[int, tuple[int, bytes]] = {}
        self._kept_bytes = 0

    @classmethod
    def read_from(cls, index: Path) -> Self | None:
        """Return the pack of an index, None if it is large."""
        path = index.with_suffix(".pack")
        if path.stat().st_size > LARGEST:
            return None
        data = path.read_bytes()
        offsets, names, _ = packs.listed(index.read_bytes())
        ordered = sorted(offsets)
        ends = dict(zip(ordered, [*ordered[1:], len(data) - _TOTAL], strict=True))
        return cls(data, ends, dict(zip(names, offsets, strict=True)))

    def header(self, name: bytes) -> tuple[bytes, int] | None:
        """Return the type and size of an object, None if it cannot be read here."""
        place = self._places.get(name)
        if place is None:
            return None
        try:
            entry = self._entry(place)
            size = self._made_size(place, entry) if entry.base else entry.size
            return _TYPES[self._kind(place, entry)], size
        except (LookupError, ValueError, zlib.error):
            return None

    def read(self, name: bytes) -> tuple[bytes, bytes] | None:
        """Return the type and bytes of an object, None if it cannot be read here."""
        place = self._places.get(name)
        if place is None:
            return None
        try:
            kind, data = self._read(place)
            return _TYPES[kind], data
        except (LookupError, ValueError, zlib.error):
            return None

    def _kind(self, place: int, entry: _Entry) -> int:
        passed = []
        while entry.base and place not in self._kinds:
            passed.append(place)
            place = entry.base
            entry = self._entry(place)
        kind = self._kinds.setdefault(place, entry.kind)
        for each in passed:
            self._kinds[each] = kind
        return kind

    def _read(self, place: int) -> tuple[int, bytes]:
        chain: list[tuple[int, _Entry]] = []
        found = self._kept.get(place)
        while found is None:
            entry = self._entry(place)
            if entry.base:
                chain.append((place, entry))
                place = entry.base
                found = self._kept.get(place)
            else:
                found = self._keep(place, entry.kind, self._inflated(place, entry))
        for at, entry in reversed(chain):
            found = self._keep(at, found[0], _applied(found[1], self._inflated(at, entry)))
        return found

    def _keep(self, place: int, kind: int, data: bytes) -> tuple[int, bytes]:
        """Keep what is likely to be the base of what is read next."""
        if kind != _BLOB:
            if self._kept_bytes > _KEPT_BYTES:
                self._kept.clear()
                self._kept_bytes = 0
            self._kept[place] = kind, data
            self._kept_bytes += len(data)
        return kind, data

    def _entry(self, place: int) -> _Entry:
        found = self._entries.get(place)
        if found is None:
            found = self._entries[place] = self._parsed(place)
        return found

    def _parsed(self, place: int) -> _Entry:
        data = self._data
        byte = data[place]
        kind, size, shift, at = byte >> 4 & 7, byte & 15, 4, place + 1
        while byte & 0x80:
            byte = data[at]
            size |= (byte & 0x7F) << shift
            shift += 7
            at += 1
        base = 0
        if kind == _OFFSET_DELTA:
            at, back = packs.told_back(data, at)
            base = place - back
        elif kind == _NAME_DELTA:
            base = self._places[data[at : at + 20]]
            at += 20
        return _Entry(kind, size, at, self._ends[place], base)

    def _inflated(self, place: int, entry: _Entry) -> bytes:
        if self._last[0] == place:
            return self._last[1]
        if entry.size > LARGEST:
            raise ValueError("larger than all of a small pack")
        return zlib.decompress(self._data[entry.start : entry.end], bufsize=entry.size or 1)

    def _made_size(self, place: int, entry: _Entry) -> int:
        """Return the size of what a difference makes."""
        if entry.size > _SMALL:
            head = zlib.decompressobj().decompress(self._data[entry.start : entry.end], _SIZES)
        else:
            # Whoever asks for the size is likely to read it next.
            head = self._inflated(place, entry)
            self._last = place, head
        return _size(head, _size(head, 0)[1])[0]


def _size(data: bytes, at: int) -> tuple[int, int]:
    """Return a size in a difference, and where it ends."""
    size = shift = 0
    while True:
        byte = data[at]
        at += 1
        size |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return size, at


def _applied(old: bytes, difference: bytes) -> bytes:
    """Return what a difference makes of `old`; raise ValueError if it does not fit."""
    before, at = _size(difference, 0)
    after, at = _size(difference, at)
    if after > LARGEST:
        raise ValueError("larger than all of a small pack")
    end = len(difference)
    parts = []
    while at < end:
        first = difference[at]
        at += 1
        if not first & 0x80:
            parts.append(difference[at : at + first])
            at += first
            continue
        offset = size = 0
        for bit in range(4):
            if first >> bit & 1:
                offset |= difference[at] << 8 * bit
                at += 1
        for bit in range(3):
            if first >> 4 + bit & 1:
                size |= difference[at] << 8 * bit
                at += 1
        parts.append(old[offset : offset + (size or _WHOLE)])
    made = b"".join(parts)
    if before != len(old) or after != len(made):
        raise ValueError("a difference to something else")
    return made
