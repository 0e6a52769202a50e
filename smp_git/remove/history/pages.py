"""What goes from a page: files and index items of gone memories, byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from smp_git.model.ids import INDEX, parse_id
from smp_git.model.lives import FIRST, of_generation

FOLDER: Final = b"40000"
INDEX_NAME: Final = INDEX.encode()

_ID_SIZE: Final = 20
# From so many names on, taking a tree apart is cheaper than searching it for each.
MANY: Final = 8

_ENTRY = re.compile(rb"(\d+) ([^\0]+)\0(.{20})", re.DOTALL)
_PIECE = re.compile(rb"\d+ [^\0]+\0.{20}", re.DOTALL)
_JSON_ID = re.compile(rb'"id"\s*:\s*"([^"\\]*)"')
_JSON_LIFE = re.compile(rb'"(?:life"\s*:\s*"([^"\\]*)"|gen"\s*:\s*(\d{1,7})(?=\s*[,}]))')
_YAML_ID = re.compile(rb"^(?:-[ \t]+|[ \t]+)[\"']?id[\"']?[ \t]*:[ \t]*[\"']?([A-Za-z0-9_-]+)[\"']?[ \t]*(?:#.*)?\r?$", re.MULTILINE)  # fmt: skip
_YAML_LIFE = re.compile(rb"^(?:-[ \t]+|[ \t]+)[\"']?(?:life[\"']?[ \t]*:[ \t]*[\"']?([a-z0-9-]+)|gen[\"']?[ \t]*:[ \t]*(\d{1,7}))", re.MULTILINE)  # fmt: skip
_TOMBSTONE = re.compile(rb'- \{"id":"[^"]*","(?:first|generation|lives)":[^\n]*\}\s*')
_OWN_ID = re.compile(rb"(?:---\r?\n)?id:[ \t]*[\"']?([A-Za-z0-9_-]+)")


class Entry(NamedTuple):
    """One entry of a raw tree."""

    mode: bytes
    name: bytes
    id: bytes


def own_id(file: bytes) -> bytes:
    """Return the id that a memory's file begins with, or nothing."""
    match = _OWN_ID.match(file)
    return match[1] if match else b""


def path_of(memory_id: bytes) -> str:
    """Return where the file of an id stands."""
    return parse_id(memory_id.decode()).path


def entries(tree: bytes) -> list[Entry]:
    """Return the entries of a raw tree, in order."""
    return [Entry(*each) for each in _ENTRY.findall(tree)]


def pieces(tree: bytes) -> list[bytes]:
    """Return the entries of a raw tree as they stand in it."""
    return _PIECE.findall(tree)


def entry(piece: bytes) -> Entry:
    """Return one entry taken apart."""
    mode, _, rest = piece[: -_ID_SIZE - 1].partition(b" ")
    return Entry(mode, rest, piece[-_ID_SIZE:])


class Place(NamedTuple):
    """Where an entry stands in a raw tree: its start, its id's start, its end."""

    start: int
    id: int
    end: int


def folder_at(tree: bytes, name: bytes) -> Place | None:
    """Return where the folder `name` stands in a raw tree, or None."""
    head = b"%s %s\0" % (FOLDER, name)
    start = tree.find(head)
    if start < 0:
        return None
    if tree.find(head, start + 1) >= 0:
        # An id that looks like an entry: only reading from the front tells them apart.
        return next((place for found, place in _places(tree) if found == name), None)
    return Place(start, start + len(head), start + len(head) + _ID_SIZE)


def folders_at(tree: bytes, names: Iterable[bytes]) -> Iterator[tuple[bytes, Place]]:
    """Yield where some folders stand in a raw tree."""
    for name in sorted(names):
        place = folder_at(tree, name)
        if place is not None:
            yield name, place


def _places(tree: bytes) -> Iterator[tuple[bytes, Place]]:
    at = 0
    for mode, name, _ in _ENTRY.findall(tree):
        end = at + len(mode) + len(name) + 2 + _ID_SIZE
        if mode == FOLDER:
            yield name, Place(at, end - _ID_SIZE, end)
        at = end


def children(tree: bytes) -> list[bytes]:
    """Return the ids that a raw tree names."""
    return [each[2] for each in _ENTRY.findall(tree)]


def joined(items: list[Entry]) -> bytes:
    """Return the raw tree of entries that are in order."""
    return b"".join(b"%s %s\0%s" % item for item in items)


class Item(NamedTuple):
    """One item of an index: its bytes, whose it is, and of which life."""

    text: bytes
    id: bytes
    life: str


def plain_lines(index: bytes) -> list[bytes] | None:
    """Return the lines of an index if each is one item, else None."""
    lines = index.split(b"\n")
    return lines if lines.pop() == b"" else None


def items(index: bytes) -> tuple[bytes, list[Item]]:
    """Return what stands before the first item of an index, and the items."""
    head: list[bytes] = []
    found: list[list[bytes]] = []
    for line in _lines(index):
        if line.startswith(b"-"):
            found.append([line])
        else:
            (found[-1] if found else head).append(line)
    return b"".join(head), [item(b"".join(each)) for each in found]


def _lines(index: bytes) -> list[bytes]:
    parts = index.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def item(text: bytes) -> Item:
    """Return an item of an index taken apart."""
    in_json = text.startswith(b"- {")
    if in_json and _TOMBSTONE.fullmatch(text):
        return Item(text, b"", FIRST)
    name = (_JSON_ID if in_json else _YAML_ID).search(text)
    life = (_JSON_LIFE if in_json else _YAML_LIFE).search(text)
    return Item(text, name[1] if name else b"", _life(life))


def _life(found: re.Match[bytes] | None) -> str:
    if found is None:
        return FIRST
    return (
        found[1].decode("utf-8", "replace")
        if found[1] is not None
        else of_generation(int(found[2]))
    )


def without_counts(counts: bytes, named: Callable[[bytes], bool]) -> bytes:
    """Return access counts (lines of JSON maps by id) without those of memories with records."""
    return b"".join(_uncounted(line, named) for line in counts.splitlines(keepends=True))


def _uncounted(line: bytes, named: Callable[[bytes], bool]) -> bytes:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return line
    gone = [name for name in found if named(name.encode("utf-8", "replace"))] if isinstance(found, dict) else []  # fmt: skip
    if not gone:
        return line
    kept = {name: value for name, value in found.items() if name not in gone}
    return json.dumps(kept, separators=(",", ":")).encode() + b"\n"
