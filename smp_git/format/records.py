"""The records of deleted, redacted and restored memories: their lives, no content."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from smp_git.model import ids
from smp_git.model.errors import InvalidError, InvalidFileError
from smp_git.model.ids import FIRST, PAGE_SIZE, Edge, Id, Lives, parse_id
from smp_git.model.memory import KIND_ORDER, MemoryId

PATH: Final = "tombstones.yaml"
# What a session says of itself in metadata.yaml: how its files read, and how they are rewritten.
FORMAT: Final = 2
RULE: Final = 2
# The rule of a session from its first README on.
WITH_README: Final = 3
# The format of a session from its first value on.
WITH_VALUES: Final = 3

_LINE = re.compile(r"- (\{.*\})")
# A generation beyond this is nobody's honest count.
_MOST_GENERATIONS: Final = 1_000_000
# A range beyond this would make every reader count for ever.
_LONGEST_RANGE: Final = 1_000_000
# One memory was not restored and redacted more often than this.
_MOST_LIVES: Final = 10_000
# So many lines about one id are not what a program wrote.
_MOST_LINES: Final = 64
_OLD_KEYS: Final = frozenset(("id", "generation", "purged", "rule"))
_KEYS: Final = frozenset(("id", "first", "generation", "lives"))
_EDGE_KEYS: Final = frozenset(("by", "from", "flags", "horizon"))


class Tombstone(NamedTuple):
    """One id, or a range of numbers, and what is known of its lives."""

    first: Id
    last: Id
    lives: Lives

    @property
    def text(self) -> str:
        """The id or range as it is written."""
        if self.first == self.last:
            return self.first.text
        return f"{self.first.text}..{self.last.text}"


def tombstone(memory_id: str, found: Lives) -> Tombstone:
    """Return what is known of one id."""
    place = parse_id(memory_id)
    return Tombstone(place, place, found)


class Tombstones:
    """Records of the lives of all memories; sets can be united, and equal ones are written alike."""

    def __init__(self, items: Iterable[Tombstone] = ()) -> None:
        self.items: tuple[Tombstone, ...] = tuple(_canonical(items))
        self._single: dict[str, Lives] = {
            t.first.text: t.lives for t in self.items if t.first == t.last
        }
        self._ranges = [t for t in self.items if t.first != t.last]
        self._pages: dict[str, list[Tombstone]] | None = None

    @classmethod
    def of(cls, found: Mapping[MemoryId, Lives]) -> Tombstones:
        """Return the records of some ids."""
        return cls(tombstone(name, each) for name, each in found.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tombstones) and self.items == other.items

    def __hash__(self) -> int:
        return hash(self.items)

    def __bool__(self) -> bool:
        return bool(self.items)

    def __or__(self, other: Tombstones) -> Tombstones:
        return Tombstones((*self.items, *other.items)) if other.items else self

    def lives(self, memory_id: str) -> Lives:
        """Return what is known of the lives of an id."""
        found = self._single.get(memory_id)
        if found is not None or not self._ranges:
            return found or ids.NOTHING
        place = parse_id(memory_id)
        for each in self._ranges:
            if _is_in(place, each):
                return each.lives
        return ids.NOTHING

    def names(self, memory_id: str) -> bool:
        """Whether anything is known of an id."""
        return bool(self.items) and self.lives(memory_id) is not ids.NOTHING

    def names_text(self, text: bytes) -> bool:
        """Whether anything is known of what may be an id."""
        return self.lives_of_text(text) is not ids.NOTHING

    def lives_of_text(self, text: bytes) -> Lives:
        """Return what is known of what may be an id."""
        try:
            return self.lives(text.decode("ascii"))
        except (UnicodeDecodeError, InvalidError):
            return ids.NOTHING

    def is_dead(self, memory_id: str, life: str | None) -> bool:
        """Whether a version of this life of a memory may not be present."""
        return bool(self.items) and self.lives(memory_id).is_dead(life)

    def is_gone(self, memory_id: str) -> bool:
        """Whether a memory was deleted, and no known life of it may be present."""
        return self.names(memory_id) and self.lives(memory_id).is_gone

    def is_unwanted(self, memory_id: str) -> bool:
        """Whether somebody deleted or redacted a memory, and not time alone."""
        return self.names(memory_id) and self.lives(memory_id).is_unwanted

    def is_purged(self, memory_id: str) -> bool:
        """Whether no life of an id may come back."""
        return self.lives(memory_id).is_purged

    def on_page(self, page: str) -> list[MemoryId]:
        """Return the ids of a page that are named."""
        if self._pages is None:
            self._pages = {}
            for each in self.items:
                for number in range(
                    each.first.number // PAGE_SIZE, each.last.number // PAGE_SIZE + 1
                ):
                    place = (
                        each.first
                        if each.first.name
                        else each.first._replace(number=number * PAGE_SIZE)
                    )
                    self._pages.setdefault(place.page, []).append(each)
        return [name for each in self._pages.get(page, ()) for name in _within(each, page)]

    def highest(self, prefix: str, tag: str) -> int:
        """Return the highest number of a prefix and tag that is named; 0 if there is none."""
        numbers = (
            t.last.number
            for t in self.items
            if not t.last.name and t.last.kind.prefix == prefix and t.last.tag == tag
        )
        return max(numbers, default=0)

    def covers(self, other: Tombstones) -> bool:
        """Whether everything `other` says is said here too."""
        return self | other == self


def _within(each: Tombstone, page: str) -> Iterator[MemoryId]:
    """Yield the ids of a range that are on a page."""
    if each.first == each.last:
        yield each.first.text
        return
    start = int(page.rpartition("/")[2]) * PAGE_SIZE
    first = max(each.first.number, start)
    for number in range(first, min(each.last.number, start + PAGE_SIZE - 1) + 1):
        yield each.first._replace(number=number).text


def _is_in(place: Id, each: Tombstone) -> bool:
    return _same_series(each.first, place) and each.first.number <= place.number <= each.last.number


def _same_series(left: Id, right: Id) -> bool:
    return (left.kind, left.tag, left.name) == (right.kind, right.tag, right.name)


def _canonical(items: Iterable[Tombstone]) -> list[Tombstone]:
    """Return records without overlaps, plain neighbours that say the same joined, sorted like ids."""
    series: dict[tuple[int, str, str], list[Tombstone]] = {}
    for item in items:
        key = KIND_ORDER[item.first.kind.name], item.first.tag, item.first.name
        series.setdefault(key, []).append(item)
    found = [each for members in series.values() for each in _joined(_swept(members))]
    return sorted(found, key=lambda each: each.first.sort_key)


def _swept(items: list[Tombstone]) -> Iterator[Tombstone]:
    """Yield what is known of one prefix and tag, cut at every bound."""
    bounds = sorted({n for t in items for n in (t.first.number, t.last.number + 1)})
    waiting = sorted(items, key=lambda each: each.first.number, reverse=True)
    here: list[Tombstone] = []
    for low, high in pairwise(bounds):
        here = [each for each in here if each.last.number >= low]
        while waiting and waiting[-1].first.number <= low:
            here.append(waiting.pop())
        if here:
            place = here[0].first
            known = _united(here)
            yield Tombstone(place._replace(number=low), place._replace(number=high - 1), known)


def _united(here: list[Tombstone]) -> Lives:
    known = here[0].lives
    for each in here[1:]:
        known |= each.lives
    return known


def _joined(items: Iterable[Tombstone]) -> Iterator[Tombstone]:
    run: Tombstone | None = None
    for item in items:
        beside = run is not None and run.last.number + 1 == item.first.number
        if run is not None and beside and run.lives == item.lives and run.lives.is_plain:
            run = run._replace(last=item.last)
            continue
        if run is not None:
            yield from _alone(run)
        run = item
    if run is not None:
        yield from _alone(run)


def _alone(item: Tombstone) -> Iterator[Tombstone]:
    """Yield an item for each number if its lives have names."""
    if item.lives.is_plain:
        yield item
        return
    for number in range(item.first.number, item.last.number + 1):
        place = item.first._replace(number=number)
        yield Tombstone(place, place, item.lives)


def write(tombstones: Tombstones) -> bytes:
    """Return the bytes of `tombstones.yaml`."""
    return "".join(f"- {_json(each)}\n" for each in tombstones.items).encode()


def _json(each: Tombstone) -> str:
    known = each.lives
    shown: dict[str, object] = {"id": each.text}
    if known.flags.get(FIRST):
        shown["first"] = sorted(known.flags[FIRST])
    if known.generation:
        shown["generation"] = known.generation
    named = {life: _shown_life(known, life) for life in sorted(known.known - {FIRST})}
    if named:
        shown["lives"] = named
    return json.dumps(shown, separators=(",", ":"))


def _shown_life(known: Lives, life: str) -> dict[str, object]:
    out: dict[str, object] = {}
    edge = known.edges.get(life)
    if edge is not None:
        out["by"] = edge.cause
        out["from"] = [each or "first" for each in edge.parents]
        if edge.horizon:
            out["horizon"] = dict(edge.horizon)
    if known.flags.get(life):
        out["flags"] = sorted(known.flags[life])
    return out


def read(data: bytes) -> Tombstones:
    """Return the records of a file; raise InvalidFileError for a line that is none.

    A line that is not understood must not be passed over: it names something deleted.
    """
    found = []
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.rstrip())
        try:
            found.append(_parsed(json.loads(match[1] if match else "")))
        except (ValueError, KeyError, TypeError, AttributeError, InvalidError, RecursionError):
            raise InvalidFileError(f"{PATH}:{number}: not a record of a deletion") from None
    # No program wrote so many, which would take for ever to unite.
    begins = [((t.first.kind.name, t.first.tag, t.first.name, t.first.number), 1) for t in found]
    ends = [
        ((*begin[:3], t.last.number + 1), -1) for (begin, _), t in zip(begins, found, strict=True)
    ]
    depth = 0
    for _, step in sorted((*begins, *ends)):
        depth += step
        if depth > _MOST_LINES:
            raise InvalidFileError(f"{PATH}: more than {_MOST_LINES} lines name one id")
    return Tombstones(found)


def _parsed(item: dict[str, object]) -> Tombstone:
    first, _, last = str(item["id"]).partition("..")
    begin, end = parse_id(first), parse_id(last or first)
    if not _same_series(begin, end) or not 0 <= end.number - begin.number < _LONGEST_RANGE:
        raise InvalidError("not a range of ids")
    known = _of_format_1(item) if "rule" in item else _lives(item)
    if known == ids.NOTHING or (begin != end and not known.is_plain):
        raise InvalidError("not a record")
    return Tombstone(begin, end, known)


def _of_format_1(item: dict[str, object]) -> Lives:
    """Return what a tombstone of format 1 says: everything up to a generation is gone."""
    purged, rule = item["purged"], item["rule"]
    if item.keys() != _OLD_KEYS or rule != 1 or type(purged) is not bool:
        raise InvalidError("not a tombstone of format 1")
    flags = (ids.DELETED, ids.PURGED) if purged else (ids.DELETED,)
    number = _number(item["generation"])
    return Lives({FIRST: flags}, {}, number if number > 1 else 0)


def _number(value: object) -> int:
    if type(value) is not int or not 1 <= value <= _MOST_GENERATIONS:
        raise InvalidError("not a generation")
    return value


def _lives(item: dict[str, object]) -> Lives:
    named = item.get("lives", {})
    if not item.keys() <= _KEYS or not isinstance(named, dict) or len(named) > _MOST_LIVES:
        raise InvalidError("not a record")
    flags = {FIRST: _flags(item.get("first", []))}
    edges: dict[str, Edge] = {}
    for life, said in named.items():
        if not ids.is_life(life) or not said.keys() <= _EDGE_KEYS:
            raise InvalidError("not a life")
        flags[life] = _flags(said.get("flags", []))
        if "by" in said:
            edges[life] = _edge(said)
    return Lives(flags, edges, _number(item["generation"]) if "generation" in item else 0)


def _flags(value: object) -> list[str]:
    if not isinstance(value, list) or not all(each in ids.FLAGS for each in value):
        raise InvalidError("not flags")
    return value


def _edge(said: dict[str, object]) -> Edge:
    cause, parents, horizon = said["by"], said["from"], said.get("horizon", {})
    if cause not in ids.CAUSES or not isinstance(parents, list) or not isinstance(horizon, dict):
        raise InvalidError("not how a life came about")
    names = [FIRST if each == "first" else each for each in parents]
    if not all(each == FIRST or ids.is_life(each) for each in names):
        raise InvalidError("not lives")
    if not all(isinstance(each, str) for pair in horizon.items() for each in pair):
        raise InvalidError("not a horizon")
    return Edge(str(cause), names, horizon)


def ids_of(tombstones: Tombstones) -> Iterator[MemoryId]:
    """Yield every id that a set of records names."""
    for each in tombstones.items:
        for number in range(each.first.number, each.last.number + 1):
            yield each.first._replace(number=number).text
