"""All index entries of a session in memory, kept fresh by page ids."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from smp_git.errors import InvalidError
from smp_git.format.ids import parse_id
from smp_git.format.lines import Entry
from smp_git.git.objects import ObjectId
from smp_git.memory import KINDS, MemoryId
from smp_git.snapshot import Snapshot

# Fewer arrivals than this are put in one by one.
_FEW: Final = 200
_INDEXED = ("agent", "status", "severity", "category", "key", "role", "type", "speaker")


class Row(NamedTuple):
    """One entry, its kind and its time."""

    slot: int
    entry: Entry
    kind: str
    at: datetime


class Group(NamedTuple):
    """What memories share whose priorities fall alike."""

    kind: str
    importance: float | None
    pinned: bool
    severity: str | None
    impact: str | None
    basis: str | None
    status: str | None


class Place(NamedTuple):
    """A memory's place in its group."""

    age: int
    key: tuple[int, int, str]
    slot: int


class Sets:
    """Sets of slots by key, as the bits of a number: intersections cost next to nothing."""

    def __init__(self) -> None:
        self._bits: dict[tuple[str, str], int] = {}
        self._waiting: dict[tuple[str, str], list[int]] = {}

    def add(self, key: tuple[str, str], slot: int) -> None:
        """Put a slot into a set."""
        self._waiting.setdefault(key, []).append(slot)

    def remove(self, key: tuple[str, str], slot: int) -> None:
        """Take a slot out of a set."""
        self._bits[key] = self.get(key) & ~(1 << slot)

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


_BITS = [[bit for bit in range(8) if byte >> bit & 1] for byte in range(256)]


def slots_of(bits: int) -> Iterator[int]:
    """Yield the slots of a set, lowest first."""
    data = bits.to_bytes((bits.bit_length() + 7) // 8, "little")
    for place, byte in enumerate(data):
        if byte:
            start = place << 3
            for bit in _BITS[byte]:
                yield start + bit


class Catalogue:
    """The rows of one session at its latest seen commit; kinds are loaded when asked for."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}
        self._pages: dict[str, tuple[ObjectId, list[int]]] = {}
        self._free: list[int] = []
        self.rows: list[Row | None] = []
        self.sets = Sets()
        self.by_id: dict[MemoryId, int] = {}
        self.incoming: dict[str, set[tuple[MemoryId, str]]] = {}
        self.groups: dict[Group, list[Place]] = {}
        self.replaced: dict[str, int] = {}
        self._by_time: dict[str, list[tuple[datetime, int]]] = {}
        self.changes = 0

    def follow(self, snapshot: Snapshot, kinds: Iterable[str]) -> None:
        """Bring the rows of some kinds up to date: only pages that changed are read."""
        for kind in kinds:
            if self._seen.get(kind) != snapshot.id:
                self._follow(snapshot, kind)
                self._seen[kind] = snapshot.id

    def _follow(self, snapshot: Snapshot, kind: str) -> None:
        present = snapshot.page_ids(kind)
        folder = KINDS[kind].folder
        known = [path for path in self._pages if path.partition("/")[0] == folder]
        stale = [path for path in known if present.get(path) != self._pages[path][0]]
        fresh = [path for path in present if path not in self._pages or path in stale]
        if not stale and not fresh:
            return
        self.changes += 1
        self._by_time.pop(kind, None)
        for path in stale:
            self._drop(path)
        for path in fresh:
            self._load(snapshot, path, present[path], kind)

    def _drop(self, path: str) -> None:
        for slot in self._pages.pop(path)[1]:
            row = self.rows[slot]
            if row is None:
                continue
            for key in _keys(row):
                self.sets.remove(key, slot)
            del self.by_id[row.entry.id]
            for relation, target in row.entry.links:
                self._unlink(row, relation, target)
            group = self.groups[group_of(row)]
            del group[bisect_left(group, place_of(row))]
            self.rows[slot] = None
            self._free.append(slot)

    def _load(self, snapshot: Snapshot, path: str, tree_id: ObjectId, kind: str) -> None:
        page = snapshot.page(path)
        slots = []
        arrived: dict[Group, list[Place]] = {}
        for entry in page.entries.values() if page else ():
            slot = self._free.pop() if self._free else len(self.rows)
            row = Row(slot, entry, kind, datetime.fromisoformat(entry.at))
            if slot == len(self.rows):
                self.rows.append(row)
            else:
                self.rows[slot] = row
            slots.append(slot)
            self.by_id[entry.id] = slot
            for key in _keys(row):
                self.sets.add(key, slot)
            for relation, target in entry.links:
                self._link(row, relation, target)
            arrived.setdefault(group_of(row), []).append(place_of(row))
        for group, places in arrived.items():
            self._sort_in(group, places)
        self._pages[path] = tree_id, slots

    def row(self, slot: int) -> Row:
        """Return the row in a slot that is taken."""
        found = self.rows[slot]
        assert found is not None  # noqa: S101 - the sets hold only taken slots
        return found

    def by_time(self, kind: str) -> list[tuple[datetime, int]]:
        """Return the times and slots of a kind, oldest first."""
        found = self._by_time.get(kind)
        if found is None:
            slots = slots_of(self.sets.get(("kind", kind)))
            found = self._by_time[kind] = sorted((self.row(slot).at, slot) for slot in slots)
        return found

    def within(self, kind: str, since: datetime | None, until: datetime | None) -> int:
        """Return the set of a kind's memories created between two times."""
        times = self.by_time(kind)
        first = bisect_left(times, (since, -1)) if since else 0
        last = bisect_left(times, (until, len(self.rows) + 1)) if until else len(times)
        return bits_of(slot for _, slot in times[first:last])

    def _link(self, row: Row, relation: str, target: str) -> None:
        self.incoming.setdefault(target, set()).add((row.entry.id, relation))
        if relation == "supersedes" and _kind_of(target) == row.kind:
            self.replaced[target] = self.replaced.get(target, 0) + 1

    def _unlink(self, row: Row, relation: str, target: str) -> None:
        self.incoming[target].discard((row.entry.id, relation))
        if relation == "supersedes" and _kind_of(target) == row.kind:
            self.replaced[target] -= 1

    def _sort_in(self, group: Group, places: list[Place]) -> None:
        known = self.groups.setdefault(group, [])
        if len(places) < _FEW:
            for place in places:
                insort(known, place)
        else:
            known.extend(places)
            known.sort()

    def is_superseded(self, row: Row) -> bool:
        """Whether the memory says that it is replaced, or another of its kind says so."""
        return row.entry.status == "superseded" or self.replaced.get(row.entry.id, 0) > 0

    def replaced_slots(self) -> list[int]:
        """Return the slots of memories that others replace."""
        return [self.by_id[MemoryId(name)] for name, count in self.replaced.items() if count and name in self.by_id]  # fmt: skip


def group_of(row: Row) -> Group:
    """Return what, besides its times and uses, decides a memory's priority."""
    entry = row.entry
    return Group(row.kind, entry.importance, bool(entry.pinned), entry.severity, entry.impact, entry.basis, entry.status)  # fmt: skip


def place_of(row: Row) -> Place:
    """Return a memory's place in its group: the newest first, then by id."""
    return Place(-round(row.at.timestamp() * 1_000_000), parse_id(row.entry.id).sort_key, row.slot)


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
    for root in {prefix for tag in entry.tags for prefix in _roots(tag)}:
        yield "tag", root


def _roots(tag: str) -> Iterator[str]:
    parts = tag.split(".")
    for end in range(1, len(parts) + 1):
        yield ".".join(parts[:end])


INDEXED = frozenset(_INDEXED)
