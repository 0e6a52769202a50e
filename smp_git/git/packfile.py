"""A small pack held in memory: its objects are read faster than through a library."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sized
from pathlib import Path
from typing import Final, Self

from smp_git.git import packs
from smp_git.git.objects import BLOB, COMMIT, TREE

# A larger pack is left to those who map files in pieces.
LARGEST: Final = 32 << 20
# A few hundred thousand objects; each takes much more in memory.
_LARGEST_INDEX: Final = 8 << 20
# What an entry is: the kind of an object or of a difference, the size of what is folded, where
# that begins and ends, and the place of what it differs from, 0 if it is whole.
_Entry = tuple[int, int, int, int, int]

_TYPES: Final = {1: COMMIT, 2: TREE, 3: BLOB, 4: b"tag"}
_UNKNOWN: Final = 0
_COMMIT: Final = 1
_BLOB: Final = 3
_OFFSET_DELTA: Final = 6
_NAME_DELTA: Final = 7
# A copy of size 0 is one of this size.
_WHOLE: Final = 0x10000
_TOTAL: Final = 20
# Longer than any two sizes at the beginning of a difference.
_SIZES: Final = 24
_OFFSET_BITS: Final = ((1, 0), (2, 8), (4, 16), (8, 24))
_SIZE_BITS: Final = ((16, 0), (32, 8), (64, 16))
_SMALL: Final = 4 << 10
# Git makes none longer; one that is may be a circle.
_LONGEST_CHAIN: Final = 4_095
_KEPT_BYTES: Final = 16 << 20


class PackFile:
    """The objects of one pack that Git has checked: its sums, sizes and differences are right.

    What it cannot read it does not have: differences to objects outside, for one.
    """

    def __init__(self, data: bytes, places: Mapping[bytes, int]) -> None:
        self._data = data
        self._places = places
        self._entries, self._kinds = _entries(data, places)
        self._last = -1, b""
        self._kept: dict[int, tuple[int, bytes]] = {}
        self._kept_bytes = 0

    @classmethod
    def read_from(cls, index: Path) -> Self | None:
        """Return the pack of an index, None if it is large."""
        path = index.with_suffix(".pack")
        if path.stat().st_size > LARGEST:
            return None
        if index.stat().st_size > _LARGEST_INDEX:
            return None
        offsets, names, _ = packs.listed(index.read_bytes())
        return cls(path.read_bytes(), dict(zip(names, offsets, strict=True)))

    def commits(self) -> list[bytes]:
        """Return the ids of the commits, in the order of the pack."""
        kinds = self._kinds
        found = [(at, name) for name, at in self._places.items() if kinds.get(at) == _COMMIT]
        return [name for _, name in sorted(found)]

    def header(self, name: bytes) -> tuple[bytes, int] | None:
        """Return the type and size of an object, None if it cannot be read here."""
        place = self._places.get(name)
        if place is None:
            return None
        try:
            kind, size, _, _, base = self._entries[place]
            if base:
                kind = self._kinds[place]
                # A folder or commit is read next by whoever asks for its size.
                size = self._made_size(place) if kind == _BLOB else len(self._read(place)[1])
            return _TYPES[kind], size
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

    def _read(self, place: int) -> tuple[int, bytes]:
        chain: list[int] = []
        while (found := self._kept.get(place)) is None:
            kind, _, _, _, base = self._entries[place]
            if not base:
                found = self._keep(place, kind, self._inflated(place))
                break
            chain.append(place)
            _check_ends(chain)
            place = base
        for at in reversed(chain):
            found = self._keep(at, found[0], _applied(found[1], self._inflated(at)))
        return found

    def _keep(self, place: int, kind: int, data: bytes) -> tuple[int, bytes]:
        """Keep what is likely to be the base of what is read next, or to be read again."""
        if self._kept_bytes > _KEPT_BYTES:
            self._kept.clear()
            self._kept_bytes = 0
        self._kept[place] = kind, data
        self._kept_bytes += len(data)
        return kind, data

    def _inflated(self, place: int) -> bytes:
        if self._last[0] == place:
            return self._last[1]
        _, size, start, end, _ = self._entries[place]
        if size > LARGEST:
            raise ValueError("larger than all of a small pack")
        return zlib.decompress(self._data[start:end], bufsize=size or 1)

    def _made_size(self, place: int) -> int:
        """Return the size of what a difference makes."""
        _, size, start, end, _ = self._entries[place]
        if size > _SMALL:
            head = zlib.decompressobj().decompress(self._data[start:end], _SIZES)
        else:
            # Whoever asks for the size is likely to read it next.
            head = self._inflated(place)
            self._last = place, head
        return _size(head, _size(head, 0)[1])[0]


def _entries(data: bytes, places: Mapping[bytes, int]) -> tuple[dict[int, _Entry], dict[int, int]]:
    """Return every entry of a pack that can be read, and what kind of object it is, by its place."""
    found: dict[int, _Entry] = {}
    kinds: dict[int, int] = {}
    waiting: list[int] = []
    ordered = sorted(places.values())
    for place, end in zip(ordered, [*ordered[1:], len(data) - _TOTAL], strict=True):
        try:
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
                base = places[data[at : at + 20]]
                at += 20
        except LookupError:
            continue
        found[place] = kind, size, at, end, base
        if not base:
            kinds[place] = kind
        elif base in kinds:
            kinds[place] = kinds[base]
        else:
            waiting.append(place)
    for place in waiting:
        _settle(place, found, kinds)
    return found, kinds


def _settle(place: int, entries: Mapping[int, _Entry], kinds: dict[int, int]) -> None:
    """Find out the kind of an object that is told as the difference to a later one."""
    passed: list[int] = []
    while place in entries and place not in kinds and len(passed) <= _LONGEST_CHAIN:
        passed.append(place)
        place = entries[place][4]
    for each in passed:
        kinds[each] = kinds.get(place, _UNKNOWN)


def _check_ends(chain: Sized) -> None:
    if len(chain) > _LONGEST_CHAIN:
        raise ValueError("differences to differences without end")


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
        for bit, shift in _OFFSET_BITS:
            if first & bit:
                offset |= difference[at] << shift
                at += 1
        for bit, shift in _SIZE_BITS:
            if first & bit:
                size |= difference[at] << shift
                at += 1
        parts.append(old[offset : offset + (size or _WHOLE)])
    made = b"".join(parts)
    if before != len(old) or after != len(made):
        raise ValueError("a difference to something else")
    return made
