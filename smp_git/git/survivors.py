"""What lives of some packs, as one pack: entries are copied as they stand."""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.git.packs import Growing, Pack, Packed, distance, indexes, listed, told_back

_OFFSET_DELTA: Final = 6
_NAMED_DELTA: Final = 7
_ID_SIZE: Final = 20
# So many objects that cannot be copied are read at a time.
_BLOCK: Final = 1_024

# Returns the type and bytes of objects.
ReadMany = Callable[[Sequence[bytes]], Mapping[bytes, tuple[bytes, bytes]]]


class _Entry(NamedTuple):
    """An entry of a pack: where it stands, and what it is a difference to."""

    name: bytes
    start: int
    end: int
    crc: int | None
    # Where the distance to the base begins and ends, if it is told so; the base's id.
    told: tuple[int, int]
    base: bytes | None

    @property
    def is_told(self) -> bool:
        """Whether the base is told by its distance."""
        return self.told[0] != self.told[1]


def survivors(old: Sequence[Path], gone: Set[bytes], read: ReadMany, series: Callable[[bytes], str | None]) -> Pack | None:  # fmt: skip
    """Return a pack of everything in `old` packs that is not `gone`, None if that is nothing.

    A difference to something gone is made anew: to the object before it in its `series`.
    """
    files = [_Old(path) for path in old]
    try:
        living = {name for file in files for name in file.names} - gone
        made = _Copying(living, read, series)
        for file in files:
            made.copy(file)
        return made.pack.finished() if living else None
    finally:
        for file in files:
            file.close()


def orphans(folder: Path, wanted: Iterable[bytes], gone: Set[bytes]) -> set[bytes]:
    """Return those of the objects `wanted` that hang on something gone: differences to it, or to those."""
    names = set(wanted)
    found: set[bytes] = set()
    for index in indexes(folder.parent) if names else ():
        offsets, there, _ = listed(index.read_bytes())
        if gone.isdisjoint(there):
            continue
        at = dict(zip(offsets, there, strict=True))
        starts = sorted(offset for offset, name in at.items() if name in names)
        with index.with_suffix(".pack").open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:  # fmt: skip
            for start in starts:
                _, _, base = _parted(data, start, at)
                if base in gone or base in found:
                    found.add(at[start])
    return found


def _parted(data: mmap.mmap, start: int, at: Mapping[int, bytes]) -> tuple[int, tuple[int, int], bytes | None]:  # fmt: skip
    """Return where an entry begins, where the distance to its base stands, and its base."""
    place = start
    kind = data[place] >> 4 & 7
    while data[place] & 0x80:
        place += 1
    place += 1
    if kind == _OFFSET_DELTA:
        after, back = told_back(data, place)
        return start, (place, after), at.get(start - back)
    base = data[place : place + _ID_SIZE] if kind == _NAMED_DELTA else None
    return start, (place, place), base


class _Old:
    """A pack that is to be replaced."""

    def __init__(self, path: Path) -> None:
        rows = sorted(zip(*listed(path.with_suffix(".idx").read_bytes()), strict=True))
        with path.open("rb") as file:
            self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._rows = rows
        self._at = {row[0]: row[1] for row in rows}
        self.names = [row[1] for row in rows]

    def close(self) -> None:
        """Let go of the file."""
        self.data.close()

    def entries(self) -> Iterator[_Entry]:
        """Yield the entries as they stand, a base before what differs from it by distance."""
        data = self.data
        end = len(data) - _ID_SIZE
        ends = [row[0] for row in self._rows[1:]] + [end]
        for (start, name, crc), stop in zip(self._rows, ends, strict=True):
            _, told, base = _parted(data, start, self._at)
            yield _Entry(name, start, stop, crc, told, base)


class _Copying:
    """A pack on its way, and what stands where in it."""

    def __init__(self, living: Set[bytes], read: ReadMany, series: Callable[[bytes], str | None]) -> None:  # fmt: skip
        self.pack = Growing()
        self._living = living
        self._read = read
        self._series = series
        self._placed: dict[bytes, int] = {}
        self._latest: dict[str, bytes] = {}

    def copy(self, old: _Old) -> None:
        """Add the living entries of a pack that are not there yet."""
        entries = [each for each in old.entries() if each.name in self._living]
        entries = [each for each in entries if each.name not in self._placed]
        anew = (each.name for each in entries if not self._is_whole(old, each))
        fresh = self._made_anew(anew)
        waiting = next(fresh, None)
        for each in entries:
            self._placed[each.name] = self.pack.offset
            if waiting is not None and waiting.name == each.name:
                self.pack.add(waiting)
                waiting = next(fresh, None)
                continue
            if each.base is None or not each.is_told:
                self.pack.put(each.name, old.data[each.start : each.end])
            else:
                start, end = each.told
                told = distance(self.pack.offset - self._placed[each.base])
                self.pack.put(each.name, old.data[each.start : start] + told + old.data[end : each.end])  # fmt: skip

    def _is_whole(self, old: _Old, entry: _Entry) -> bool:
        """Whether an entry can be copied: what it differs from lives, and no bit is wrong."""
        lives = entry.base in self._living or (entry.base is None and not entry.is_told)
        return lives and entry.crc in (None, zlib.crc32(old.data[entry.start : entry.end]))

    def _made_anew(self, names: Iterable[bytes]) -> Iterator[Packed]:
        left = list(names)
        for at in range(0, len(left), _BLOCK):
            block = left[at : at + _BLOCK]
            found = self._read(block)
            for name in block:
                series = self._series(name)
                like = self._latest.get(series) if series is not None else None
                if series is not None:
                    self._latest[series] = name
                yield Packed(name, *found[name], like)
