"""The catalogue: all index entries of a session, as sets in memory, and its cache on disk."""

from __future__ import annotations

import json
import os
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import accumulate, chain
from itertools import count as counting
from pathlib import Path
from typing import Final, NamedTuple, Self, cast
from zlib import crc32

from smp_git.format.lines import Entry, read_lines
from smp_git.model.errors import InvalidError
from smp_git.model.ids import parse_id
from smp_git.model.memory import KINDS, MemoryId
from smp_git.read.snapshot import Snapshot


class _Sets:
    """A set of slots for each key."""

    def __init__(self, bits: dict[tuple[str, str], int] | None = None) -> None:
        self._bits = bits or {}
        self._waiting: dict[tuple[str, str], list[int]] = {}

    def add(self, key: tuple[str, str], slot: int) -> None:
        """Put a slot into a set."""
        self._waiting.setdefault(key, []).append(slot)

    def all(self) -> dict[tuple[str, str], int]:
        """Return every set by its key."""
        for key in list(self._waiting):
            self.get(key)
        return self._bits

    def remove(self, key: tuple[str, str], slot: int) -> None:
        """Take a slot out of a set; an empty one goes, for its key is a word of the deleted."""
        left = self.get(key) & ~(1 << slot)
        if left:
            self._bits[key] = left
        else:
            self._bits.pop(key, None)

    def get(self, key: tuple[str, str]) -> int:
        """Return a set."""
        waiting = self._waiting.pop(key, None)
        if waiting:
            self._bits[key] = self._bits.get(key, 0) | bits_of(waiting)
        return self._bits.get(key, 0)


def bits_of(slots: Iterable[int]) -> int:
    """Return the set of some slots."""
    listed = list(slots)
    if not listed:
        return 0
    marks = bytearray(max(listed) // 8 + 1)
    for slot in listed:
        marks[slot >> 3] |= 1 << (slot & 7)
    return int.from_bytes(marks, "little")


_BITS: Final = [[bit for bit in range(8) if byte >> bit & 1] for byte in range(256)]


def slots_of(bits: int) -> Iterator[int]:
    """Yield the slots of a set, lowest first."""
    data = bits.to_bytes((bits.bit_length() + 7) // 8, "little")
    for place, byte in enumerate(data):
        if byte:
            start = place << 3
            for bit in _BITS[byte]:
                yield start + bit


# Fewer arrivals than this are put in one by one.
_FEW: Final = 200
_INDEXED = ("agent", "status", "severity", "category", "key", "role", "type", "speaker")


class Row(NamedTuple):
    """One entry, its kind and its time."""

    slot: int
    entry: Entry
    kind: str
    at: datetime


class Scope(NamedTuple):
    """The projects and domains that a memory applies to; none means all."""

    projects: tuple[str, ...]
    domains: tuple[str, ...]


# What memories share whose priorities fall alike: kind, importance, pinned, severity,
# impact, basis of the confidence, status.
Group = tuple[str, float | None, bool, str | None, str | None, str | None, str | None]
# A memory's place in its group: the newest first, then by id; and its slot.
Place = tuple[int, tuple[int, int, str], int]

_VERSIONS = counting()
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class _Lines:
    """The lines of the index by slot; those that were stored are read when they are asked for."""

    def __init__(self, data: bytes = b"", ends: Sequence[int] = (0,)) -> None:
        self._data, self._ends = data, ends
        self._later: dict[int, str | None] = {}
        self._count = len(ends) - 1

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, slot: int) -> str | None:
        if slot in self._later:
            return self._later[slot]
        if not slot < self._count:
            raise IndexError(slot)
        return _text(self._data[self._ends[slot] : self._ends[slot + 1]]) or None

    def __setitem__(self, slot: int, line: str | None) -> None:
        self._later[slot] = line
        self._count = max(self._count, slot + 1)

    def __iter__(self) -> Iterator[str | None]:
        return map(self.__getitem__, range(self._count))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


class Catalogue:
    """The rows of one session at its latest seen commit; kinds are loaded when asked for."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}
        self._pages: dict[str, tuple[str, list[int]]] = {}
        self._free: list[int] = []
        self._lines = _Lines()
        self._rows: dict[int, Row] = {}
        self.sets = _Sets()
        self.by_id: dict[MemoryId, int] = {}
        self.incoming: dict[str, set[tuple[MemoryId, str]]] = {}
        self._groups: dict[Group, list[Place]] | None = {}
        self._stored_groups = b""
        # What left and came since they were stored, in order.
        self._moved: list[tuple[Group, list[Place], bool]] = []
        self.replaced: dict[str, int] = {}
        self._problems: dict[str, tuple[str, ...]] = {}
        self._names: dict[int, MemoryId] | None = None
        # Files that were looked through for a field that the index does not hold, in vain.
        self.lacking: dict[str, set[str]] = {}
        # What files say that they apply to, by their ids.
        self.scopes: dict[str, Scope] = {}
        # What files refer to by a field, by their ids; and all links, as gathered last.
        self.refs: dict[str, tuple[str, ...]] = {}
        self.links: object = None
        self.read = 0
        # Another number after every change, never one that another catalogue had.
        self.version = next(_VERSIONS)

    @property
    def groups(self) -> dict[Group, list[Place]]:
        """The places of each group, in order; a question with a text needs none of them."""
        if self._groups is None:
            self._groups = {
                cast("Group", tuple(group)): [(age, (*key,), slot) for age, key, slot in places]
                for group, places in json.loads(_text(self._stored_groups))
            }
            moved, self._moved = self._moved, []
            for group, places, is_new in moved:
                (self._sort_in if is_new else self._take_out)(group, places)
        return self._groups

    def as_bytes(self) -> bytes:
        """Return all of it; `from_bytes` makes a catalogue of that.

        The lines of the index stand as they are: to read them as JSON takes four times as long.
        """
        lines = [_bytes((line or "").removesuffix("\n")) for line in self._lines]
        head = {
            "pages": self._pages,
            "free": self._free,
            "sets": [(*key, hex(bits)) for key, bits in self.sets.all().items()],
            "by_id": self.by_id,
            "incoming": {target: list(sources) for target, sources in self.incoming.items()},
            "replaced": self.replaced,
            "problems": self._problems,
            "lines": list(map(len, lines)),
        }
        values = (head, list(self.groups.items()))
        written = (_bytes(json.dumps(value, ensure_ascii=False)) for value in values)
        return b"\n".join((*written, b"".join(lines)))

    @classmethod
    def from_bytes(cls, data: bytes, start: int) -> Self:
        """Return the catalogue that `as_bytes` gave, of what stands there from `start` on."""
        end_of_head = data.index(b"\n", start)
        end_of_groups = data.index(b"\n", end_of_head + 1)
        made, state = cls(), json.loads(_text(data[start:end_of_head]))
        made._pages = {path: (tree, slots) for path, (tree, slots) in state["pages"].items()}
        made._free = state["free"]
        made._lines = _Lines(data, list(accumulate(state["lines"], initial=end_of_groups + 1)))
        made._groups, made._stored_groups = None, data[end_of_head:end_of_groups]
        made.sets = _Sets({(name, value): int(bits, 16) for name, value, bits in state["sets"]})
        made.by_id, made.replaced = state["by_id"], state["replaced"]
        made.incoming = {
            target: {(name, relation) for name, relation in sources}
            for target, sources in state["incoming"].items()
        }
        made._problems = {path: tuple(said) for path, said in state["problems"].items()}
        return made

    @property
    def rows(self) -> list[Row]:
        """All rows."""
        return [self.row(slot) for slot, line in enumerate(self._lines) if line is not None]

    def follow(self, snapshot: Snapshot, kinds: Iterable[str]) -> None:
        """Bring the rows of some kinds up to date: only pages that changed are read."""
        if not self._seen:
            snapshot.know_pages({path: name for path, (name, _) in self._pages.items()})
        for kind in kinds:
            if self._seen.get(kind) != snapshot.id:
                self._follow(snapshot, kind)
                self._seen[kind] = snapshot.id

    def refresh(self, snapshot: Snapshot) -> None:
        """Bring every kind up to date that has rows."""
        folders = {path.partition("/")[0] for path in self._pages}
        self.follow(snapshot, [name for name, kind in KINDS.items() if kind.folder in folders])

    def _follow(self, snapshot: Snapshot, kind: str) -> None:
        present = snapshot.shown_pages(kind)
        folder = KINDS[kind].folder
        known = [path for path in self._pages if path.partition("/")[0] == folder]
        stale = [path for path in known if present.get(path) != self._pages[path][0]]
        fresh = [path for path in present if path not in self._pages or path in stale]
        if not stale and not fresh:
            return
        self._names = None
        self.version = next(_VERSIONS)
        for path in stale:
            self._drop(path)
        for path in fresh:
            self._load(snapshot, path, present[path], kind)

    def _drop(self, path: str) -> None:
        self._problems.pop(path, None)
        for slot in self._pages.pop(path)[1]:
            row = self.row(slot)
            for key in _keys(row):
                self.sets.remove(key, slot)
            del self.by_id[row.entry.id]
            for relation, target in row.entry.links:
                self._unlink(row, relation, target)
            self._take_out(group_of(row), [place_of(row)])
            for blobs in self.lacking.values():
                blobs.discard(row.entry.blob)
            self.scopes.pop(row.entry.blob, None)
            self.refs.pop(row.entry.blob, None)
            self._lines[slot] = None
            self._rows.pop(slot, None)
            self._free.append(slot)

    def _load(self, snapshot: Snapshot, path: str, tree_id: str, kind: str) -> None:
        page = snapshot.shown_page(path)
        slots = []
        added: dict[Group, list[Place]] = {}
        if page is None:
            return
        for entry in page.entries.values():
            slot = self._free.pop() if self._free else len(self._lines)
            row = self._rows[slot] = Row(slot, entry, kind, datetime.fromisoformat(entry.at))
            self._lines[slot] = page.lines[entry.id]
            slots.append(slot)
            self.by_id[entry.id] = slot
            for key in _keys(row):
                self.sets.add(key, slot)
            for relation, target in entry.links:
                self._link(row, relation, target)
            added.setdefault(group_of(row), []).append(place_of(row))
        for group, places in added.items():
            self._sort_in(group, places)
        # Reading it may have shown that the store has lost something of it.
        self._pages[path] = snapshot.shown_name(path) or tree_id, slots
        if page.problems:
            self._problems[path] = page.problems
        self.read += len(slots)

    def row(self, slot: int) -> Row:
        """Return the row in a slot that is taken."""
        found = self._rows.get(slot)
        if found is None:
            (found,) = self.rows_of([slot])
        return found

    def rows_of(self, slots: Iterable[int]) -> list[Row]:
        """Return the rows in some slots that are taken, read all at once."""
        listed = list(slots)
        fresh = [slot for slot in listed if slot not in self._rows]
        for slot, entry in zip(
            fresh, read_lines(self._lines[slot] or "" for slot in fresh), strict=True
        ):
            assert entry is not None  # noqa: S101 - only lines that were read are kept
            self._rows[slot] = Row(
                slot, entry, parse_id(entry.id).kind.name, datetime.fromisoformat(entry.at)
            )
        return [self._rows[slot] for slot in listed]

    def within(self, kind: str, since: datetime | None, until: datetime | None) -> int:
        """Return the set of a kind's memories created between two times."""
        newest = (_age(until),) if until else None
        oldest = (_age(since) + 1,) if since else None
        found, others = 0, 0
        parts: list[tuple[list[Place], int, int]] = []
        for group, places in self.groups.items():
            if group[0] == kind:
                first = bisect_left(places, newest) if newest else 0
                last = bisect_left(places, oldest) if oldest else len(places)
                parts.append((places, first, last))
                found += last - first
                others += len(places) - last + first
        # Of the two sets that make up the kind, the smaller one is put together.
        if found <= others:
            return bits_of(slot for places, first, last in parts for *_, slot in places[first:last])
        outside = (
            slot
            for places, first, last in parts
            for part in (places[:first], places[last:])
            for *_, slot in part
        )
        return self.sets.get(("kind", kind)) & ~bits_of(outside)

    def newest(self, kind: str, count: int) -> list[Row]:
        """Return the rows of a kind that were created last; of equal ones, the later id first."""
        if count < 1:
            return []
        groups = [places for group, places in self.groups.items() if group[0] == kind]
        first = sorted(chain.from_iterable(places[:count] for places in groups))[:count]
        if not first:
            return []
        oldest = (first[-1][0] + 1,)
        found = chain.from_iterable(places[: bisect_left(places, oldest)] for places in groups)
        ordered = sorted(found, key=lambda place: place[1], reverse=True)
        ordered.sort(key=lambda place: place[0])
        return self.rows_of(slot for *_, slot in ordered[:count])

    def slots(self, names: Iterable[MemoryId]) -> int:
        """Return the set of those memories that are there."""
        return bits_of(self.by_id[name] for name in names if name in self.by_id)

    def pinned(self) -> int:
        """Return the set of what is pinned."""
        return bits_of(
            slot for group, places in self.groups.items() if group[2] for *_, slot in places
        )

    def pages_with(self, members: int) -> dict[tuple[str, str], list[Entry]]:
        """Return, for each page by its path and its name, the entries that are in a set."""
        wanted = set(slots_of(members))
        return {
            (path, name): [
                row.entry for row in self.rows_of(each for each in slots if each in wanted)
            ]
            for path, (name, slots) in self._pages.items()
        }

    def ids(self, members: int) -> set[str]:
        """Return the ids of a set."""
        if self._names is None:
            self._names = {slot: name for name, slot in self.by_id.items()}
        return {self._names[slot] for slot in slots_of(members)}

    def tags(self) -> list[str]:
        """Return the tags that memories have, with all that they are below."""
        return [value for (name, value), bits in self.sets.all().items() if name == "tag" and bits]

    def _link(self, row: Row, relation: str, target: str) -> None:
        self.incoming.setdefault(target, set()).add((row.entry.id, relation))
        if _replaces(row, relation, target):
            self.replaced[target] = self.replaced.get(target, 0) + 1

    def _unlink(self, row: Row, relation: str, target: str) -> None:
        sources = self.incoming[target]
        sources.discard((row.entry.id, relation))
        if not sources:
            del self.incoming[target]
        if _replaces(row, relation, target):
            self.replaced[target] -= 1

    def _take_out(self, group: Group, places: list[Place]) -> None:
        if self._groups is None:
            self._moved.append((group, places, False))
            return
        known = self._groups[group]
        for place in places:
            del known[bisect_left(known, place)]

    def _sort_in(self, group: Group, places: list[Place]) -> None:
        if self._groups is None:
            self._moved.append((group, places, True))
            return
        known = self._groups.setdefault(group, [])
        if len(places) < _FEW:
            for place in places:
                insort(known, place)
        else:
            known.extend(places)
            known.sort()

    def problems(self, kinds: Iterable[str]) -> tuple[str, ...]:
        """Say what the indexes of some kinds got wrong, and which files cannot be read."""
        folders = {KINDS[kind].folder for kind in kinds}
        return tuple(
            problem
            for path, problems in self._problems.items()
            if path.partition("/")[0] in folders
            for problem in problems
        )

    def is_superseded(self, row: Row) -> bool:
        """Whether the memory says that it is replaced, or another of its kind says so."""
        return row.entry.status == "superseded" or self.replaced.get(row.entry.id, 0) > 0

    def replaced_slots(self) -> list[int]:
        """Return the slots of memories that others replace."""
        return [
            self.by_id[MemoryId(name)]
            for name, count in self.replaced.items()
            if count and name in self.by_id
        ]


def group_of(row: Row) -> Group:
    """Return what, besides its times and uses, decides a memory's priority."""
    entry = row.entry
    return (
        row.kind,
        entry.importance,
        bool(entry.pinned),
        entry.severity,
        entry.impact,
        entry.basis,
        entry.status,
    )


def place_of(row: Row) -> Place:
    """Return a memory's place in its group: the newest first, then by id."""
    return (_age(row.at), parse_id(row.entry.id).sort_key, row.slot)


def _age(moment: datetime) -> int:
    return -((moment - _EPOCH) // _MICROSECOND)


def _replaces(row: Row, relation: str, target: str) -> bool:
    return relation == "supersedes" and target != row.entry.id and _kind_of(target) == row.kind


def _kind_of(target: str) -> str | None:
    try:
        return parse_id(target).kind.name
    except InvalidError:
        return None


def _keys(row: Row) -> Iterator[tuple[str, str]]:
    yield "kind", row.kind
    entry = row.entry
    for name in _INDEXED:
        value = getattr(entry, name)
        if value is not None:
            yield name, value
    for root in roots_of(tuple(entry.tags)):
        yield "tag", root


@lru_cache(maxsize=4096)
def roots_of(tags: tuple[str, ...]) -> frozenset[str]:
    """Return some tags with all that they are below; memories share their tags."""
    parts = [tag.split(".") for tag in tags]
    return frozenset(".".join(each[:end]) for each in parts for end in range(1, len(each) + 1))


INDEXED = frozenset(_INDEXED)


# Raised when what `as_bytes` returns changes.
_FORM: Final = 6
_SUM_BYTES: Final = 4


def save(path: Path, catalogue: Catalogue, may_keep: Callable[[], bool]) -> None:
    """Write a catalogue to its cache, if it may be kept; a disk that refuses is no matter.

    That is asked once the file is there: a deletion from now on unlinks this very file. What
    is not written whole is not read.
    """
    body = catalogue.as_bytes()
    with suppress(OSError):
        path.unlink(missing_ok=True)
        with open(path, "xb", opener=_for_the_owner) as file:
            if may_keep():
                file.write(_sum(body) + body)


def _for_the_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def load(path: Path) -> Catalogue | None:
    """Return the catalogue of a cache, or None if it is missing, damaged or of another form.

    Each of its pages carries the id of the tree it was read from, so that whoever follows
    a snapshot reads anew what has changed. At 10,000 memories that is a fifth of what
    reading the pages takes.
    """
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if data[:_SUM_BYTES] != _sum(memoryview(data)[_SUM_BYTES:]):
        return None
    return Catalogue.from_bytes(data, _SUM_BYTES)


def _sum(body: bytes | memoryview) -> bytes:
    return crc32(body, crc32(repr((_FORM, Entry._fields)).encode())).to_bytes(_SUM_BYTES)
