"""Tombstones: which memories were deleted, up to which generation; no content."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import pairwise
from typing import Final, NamedTuple

from smp_git.errors import InvalidError, InvalidFileError
from smp_git.format.ids import Id, parse_id
from smp_git.memory import KIND_ORDER, MemoryId

PATH: Final = "tombstones.yaml"
RULE: Final = 1

_LINE = re.compile(r"- (\{.*\})")
# A generation beyond this is nobody's honest count.
_MOST_GENERATIONS: Final = 1_000_000
# A range beyond this would make every reader count for ever.
_LONGEST_RANGE: Final = 1_000_000
ALL_GENERATIONS: Final = _MOST_GENERATIONS + 1


class Mark(NamedTuple):
    """What a tombstone says of its ids."""

    generation: int
    purged: bool
    rule: int

    def merged(self, other: Mark | None) -> Mark:
        """Return the maximum of each part."""
        if other is None:
            return self
        return Mark(
            max(self.generation, other.generation),
            self.purged or other.purged,
            max(self.rule, other.rule),
        )

    @property
    def limit(self) -> int:
        """The highest generation that must be gone."""
        return ALL_GENERATIONS if self.purged else self.generation


class Tombstone(NamedTuple):
    """One id, or a range of numbers, and how far it is gone."""

    first: Id
    last: Id
    mark: Mark

    @property
    def text(self) -> str:
        """The id or range as it is written."""
        if self.first == self.last:
            return self.first.text
        return f"{self.first.text}..{self.last.text}"


def tombstone(memory_id: str, generation: int = 1, *, purged: bool = False) -> Tombstone:
    """Return the tombstone of one id."""
    place = parse_id(memory_id)
    return Tombstone(place, place, Mark(generation, purged, RULE))


class Tombstones:
    """A set of tombstones, merged by maximum; equal sets are written alike."""

    def __init__(self, items: Iterable[Tombstone] = ()) -> None:
        self.items: tuple[Tombstone, ...] = tuple(_canonical(items))
        self._single: dict[str, Mark] = {
            t.first.text: t.mark for t in self.items if t.first == t.last
        }
        self._ranges = [t for t in self.items if t.first != t.last]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tombstones) and self.items == other.items

    def __hash__(self) -> int:
        return hash(self.items)

    def __bool__(self) -> bool:
        return bool(self.items)

    def __or__(self, other: Tombstones) -> Tombstones:
        return Tombstones((*self.items, *other.items)) if other.items else self

    def mark(self, memory_id: str) -> Mark | None:
        """Return what is known of an id, or None if it was never deleted."""
        found = self._single.get(memory_id)
        if found is not None or not self._ranges:
            return found
        place = parse_id(memory_id)
        for each in self._ranges:
            if _same_series(each.first, place) and each.first.number <= place.number <= each.last.number:  # fmt: skip
                return each.mark
        return None

    def limit(self, memory_id: str) -> int:
        """Return the highest generation of an id that must be gone; 0 if it was never deleted."""
        found = self.mark(memory_id)
        return found.limit if found else 0

    def limit_of_text(self, text: bytes) -> int:
        """Return the limit of what may be an id; 0 if it is none."""
        try:
            return self.limit(text.decode("ascii"))
        except (UnicodeDecodeError, InvalidError):
            return 0

    def is_purged(self, memory_id: str) -> bool:
        """Whether no generation of an id may come back."""
        found = self.mark(memory_id)
        return found is not None and found.purged

    def highest(self, prefix: str, tag: str) -> int:
        """Return the highest deleted number of a prefix and tag; 0 if there is none."""
        numbers = (
            t.last.number
            for t in self.items
            if not t.last.name and t.last.kind.prefix == prefix and t.last.tag == tag
        )
        return max(numbers, default=0)

    def covers(self, other: Tombstones) -> bool:
        """Whether everything `other` says is said here too."""
        return self | other == self


def _same_series(left: Id, right: Id) -> bool:
    return (left.kind, left.tag, left.name) == (right.kind, right.tag, right.name)


def _canonical(items: Iterable[Tombstone]) -> list[Tombstone]:
    """Return tombstones without overlaps, neighbours of one mark joined, sorted like ids."""
    series: dict[tuple[int, str, str], list[Tombstone]] = {}
    for item in items:
        key = KIND_ORDER[item.first.kind.name], item.first.tag, item.first.name
        series.setdefault(key, []).append(item)
    found = [each for members in series.values() for each in _swept(members)]
    return sorted(found, key=lambda each: each.first.sort_key)


def _swept(items: list[Tombstone]) -> Iterator[Tombstone]:
    """Yield the tombstones of one prefix and tag, cut at every bound and joined again."""
    bounds = sorted({n for t in items for n in (t.first.number, t.last.number + 1)})
    waiting = deque(sorted(items, key=lambda each: each.first.number))
    parts = _Highest(), _Highest(), _Highest()
    run: Tombstone | None = None
    for low, high in pairwise(bounds):
        while waiting and waiting[0].first.number <= low:
            item = waiting.popleft()
            for part, value in zip(parts, item.mark, strict=True):
                part.add(int(value), item.last.number)
        generation, purged, rule = (part.at(low) for part in parts)
        if generation == 0:
            continue
        mark = Mark(generation, bool(purged), rule)
        start, end = items[0].first._replace(number=low), items[0].first._replace(number=high - 1)
        if run is not None and run.mark == mark and run.last.number + 1 == low:
            run = run._replace(last=end)
            continue
        if run is not None:
            yield run
        run = Tombstone(start, end, mark)
    if run is not None:
        yield run


class _Highest:
    """The highest of the values that hold at a number, as numbers go up."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []

    def add(self, value: int, last: int) -> None:
        """Let a value hold up to a number."""
        heappush(self._heap, (-value, last))

    def at(self, number: int) -> int:
        """Return the highest value that holds; 0 if none does."""
        while self._heap and self._heap[0][1] < number:
            heappop(self._heap)
        return -self._heap[0][0] if self._heap else 0


def write(tombstones: Tombstones) -> bytes:
    """Return the bytes of `tombstones.yaml`."""
    return "".join(f"- {_json(each)}\n" for each in tombstones.items).encode()


def _json(each: Tombstone) -> str:
    shown = {"id": each.text, **each.mark._asdict()}
    return json.dumps(shown, separators=(",", ":"))


def read(data: bytes) -> Tombstones:
    """Return the tombstones of a file; raise InvalidFileError for a line that is none.

    A line that is not understood must not be passed over: it names something deleted.
    """
    found = []
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.rstrip())
        try:
            found.append(_parsed(json.loads(match[1] if match else "")))
        except (ValueError, KeyError, TypeError, InvalidError):
            raise InvalidFileError(f"{PATH}:{number}: this is no tombstone") from None
    return Tombstones(found)


def _parsed(item: dict[str, object]) -> Tombstone:
    first, _, last = str(item["id"]).partition("..")
    begin, end = parse_id(first), parse_id(last or first)
    generation, purged, rule = item["generation"], item["purged"], item["rule"]
    whole = type(generation) is int and type(rule) is int and type(purged) is bool
    if (
        not whole
        or not _same_series(begin, end)
        or not 0 <= end.number - begin.number < _LONGEST_RANGE
    ):
        raise InvalidError("not a tombstone")
    mark = Mark(int(str(generation)), bool(purged), int(str(rule)))
    if not 1 <= mark.generation <= _MOST_GENERATIONS or mark.rule != RULE:
        raise InvalidError("not a tombstone of this rule")
    return Tombstone(begin, end, mark)


def ids_of(tombstones: Tombstones) -> Iterator[MemoryId]:
    """Yield every id that a set of tombstones names."""
    for each in tombstones.items:
        for number in range(each.first.number, each.last.number + 1):
            yield each.first._replace(number=number).text
