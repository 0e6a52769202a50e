"""Rules for the trees of a session: names, modes and sizes."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import accumulate, chain
from operator import lt
from typing import Final, NamedTuple

from smp_git.format.document import largest
from smp_git.format.metadata import PATH as METADATA
from smp_git.format.records import PATH as TOMBSTONES
from smp_git.git import layout
from smp_git.git.layout import ATTRIBUTES
from smp_git.git.objects import BLOB, TREE, RawObjects, object_id
from smp_git.git.storage import common, common_end
from smp_git.model.errors import DamagedError, UntrustedError, shown
from smp_git.model.ids import INDEX, is_page, parse_path
from smp_git.model.memory import KINDS, MAX_FILE_BYTES

FOLDER: Final = b"40000"
FILE: Final = b"100644"
PROGRAM: Final = b"100755"
_FILES: Final = (FILE, PROGRAM)
_MODES: Final = {b"120000": "a link", b"160000": "a repository in the repository"}

_ROW = re.compile(rb"([0-7]{5,6}) ([^\0/]+)\0(.{20})", re.DOTALL)
# The space, the NUL and the id of a row.
_OVERHEAD: Final = 22
_SHORT: Final = 256
_TAG_FILE = re.compile(r"[a-z][a-z0-9]{3}\.yaml")
# Means nothing to Git wherever it is, and is a name of one folder on every system.
_HARMLESS = re.compile(rb"[A-Za-z0-9][A-Za-z0-9_-]{0,99}(?:\.[a-z]{1,9})?")
_ODD = re.compile(r"[\\:*?\"<>|~]|[. ]$|^[. -]")
_DEVICE = re.compile(r"(?i:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?")

REPLICAS: Final = "replicas"
IGNORED: Final = ".gitignore"
_KINDS: Final = frozenset(kind.folder for kind in KINDS.values())
_STATES: Final = KINDS["state"].folder
_OWN_FOLDERS: Final = _KINDS | {REPLICAS}
_OWN_FILES: Final = frozenset((METADATA, TOMBSTONES, ATTRIBUTES, IGNORED))
# What makes Git take a folder for a repository and read its configuration.
_REPOSITORY: Final = frozenset((b"head", b"objects", b"refs"))
# What is left of `.` and `..` without dots is empty.
_HARMFUL: Final = frozenset(("", ".git", ".gitmodules", ".gitattributes"))
_LARGEST_EVER: Final = 64 << 20
_OF_THE_PAST: Final = 4
_SMALL_BYTES: Final = 1 << 20
# File systems end at 255.
_LONGEST_NAME: Final = 200
# Every version that a session was ever made with: history keeps them.
_KNOWN_ATTRIBUTES: Final = frozenset(
    bytes.fromhex(object_id(BLOB, text))
    for text in (
        layout.TRACKED[ATTRIBUTES],
        layout.WITH_README,
        b"* -text -merge\nindex.yaml -text -merge -diff\n",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds of what may come in at once, far above what sessions hold."""

    commits: int = 500_000
    trees: int = 2_000_000
    files: int = 5_000_000
    total_bytes: int = 256 << 30
    tip_bytes: int = 128 << 20
    folder_entries: int = 20_000
    other_entries: int = 1_000
    depth: int = 8
    references: int = 10_000
    tombstoned: int = 2_000_000


class TreeRow(NamedTuple):
    """One entry of a tree."""

    mode: bytes
    name: bytes
    id: bytes


Rows = frozenset[tuple[bytes, bytes, bytes]]
NONE: Final[Rows] = frozenset()


class Structure:
    """Checks trees, each at each place once; what trusted trees hold is not looked at again.

    With `history` only what does harm in a commit of the past is refused: what a person
    once committed and took out again must not end every sync.
    """

    def __init__(self, objects: RawObjects, bounds: Bounds, *, history: bool = False) -> None:
        self._objects = objects
        self._bounds = bounds
        self._history = history
        self._deepest = bounds.depth * (_OF_THE_PAST if history else 1)
        self._trusted: dict[str, list[bytes]] = {}
        self._trusted_rows: dict[str, Rows] = {}
        self._seen: dict[str, set[tuple[bytes, bytes, bytes]]] = {}
        self._latest: dict[str, Folder] = {}
        self._roots: set[bytes] = set()
        self._trees = self._files = self._bytes = 0

    def trust(self, roots: Iterable[bytes]) -> None:
        """Take the trees at `roots` as checked; before the first check."""
        self._trusted[""] = list(dict.fromkeys(roots))

    def trusted(self, path: str) -> Rows:
        """Return the rows that trusted trees have at a place."""
        found = self._trusted_rows.get(path)
        if found is None:
            rows: set[tuple[bytes, bytes, bytes]] = set()
            for tree in self._trusted.get(path, ()):
                rows.update(self.rows(tree, path))
            found = self._trusted_rows[path] = frozenset(rows)
            above = f"{path}/" if path else ""
            for mode, name, tree in rows:
                if mode == FOLDER:
                    place = above + name.decode("utf-8", "surrogateescape")
                    self._trusted.setdefault(place, []).append(tree)
        return found

    def rows(self, tree: bytes, where: str) -> list[tuple[bytes, bytes, bytes]]:
        """Return the rows of a tree; raise UntrustedError if it is none."""
        return _rows(self._tree(tree, where), where)

    def _tree(self, tree: bytes, where: str) -> bytes:
        kind, size = self._objects.header(tree)
        if kind != TREE or size > self._bounds.folder_entries * 300:
            raise UntrustedError(f"{where or 'its top folder'}: not a folder of a sensible size")
        data = self._objects.read(tree)[1]
        self._trees += 1
        self._count(len(data))
        return data

    def check(self, root: bytes, where: str) -> None:
        """Check a top folder; raise UntrustedError naming what may not be there."""
        if root in self._roots or root in self._trusted.get("", ()):
            return
        self._roots.add(root)
        try:
            self._check(root, "", 0)
        except UntrustedError as error:
            raise UntrustedError(f"{where}: {error.message}", hint=error.hint) from None

    def _check(self, tree: bytes, path: str, depth: int) -> None:
        data = self._tree(tree, path)
        folder = self._latest.get(path) or self._latest.setdefault(path, Folder(path))
        # Those that the folder looked at before it did not have.
        rows = folder.turned_into(data)
        if len(folder.names) > self._bounds.folder_entries:
            raise UntrustedError(f"{path}: {len(folder.names):,} entries in one folder")
        # Names that were known one by one may be new together.
        if folder.is_repository:
            raise UntrustedError(f"{_in(path)}a repository in the repository")
        if not self._history and path.partition("/")[0] not in _KINDS:
            self._check_names(folder.names, path)
        known = self._seen.get(path)
        if known is None:
            known = self._seen[path] = set(self.trusted(path))
        fresh = [row for row in rows if row not in known]
        for row in fresh:
            if self._history and _HARMLESS.fullmatch(row[1]):
                self._check_plain_row(path, TreeRow(*row), depth)
            else:
                self._check_row(path, TreeRow(*row), depth)
        known.update(fresh)

    def _check_names(self, found: Collection[bytes], path: str) -> None:
        """Check names that may be anything against each other."""
        if len(found) > self._bounds.other_entries:
            raise UntrustedError(f"{_in(path)}{len(found):,} entries in one folder")
        names = Counter(_folded(_text(name, path)) for name in found)
        if len(names) != len(found):
            twice = names.most_common(1)[0][0]
            raise UntrustedError(
                f"{_in(path)}two names that some systems take for one: {shown(twice)}"
            )

    def _check_plain_row(self, path: str, row: TreeRow, depth: int) -> None:
        """Check what is under a name that may be anywhere in history."""
        if row.mode == FILE:
            self._check_size(row.id, path, row.name, _LARGEST_EVER)
        elif row.mode == FOLDER and depth < self._deepest:
            self._check(row.id, _place(path, row.name), depth + 1)
        else:
            self._check_row(path, row, depth)

    def _check_row(self, path: str, row: TreeRow, depth: int) -> None:
        name = _text(row.name, path)
        place = f"{path}/{name}" if path else name
        if row.mode not in (FOLDER, *_FILES):
            what = _MODES.get(row.mode, f"a mode of {row.mode.decode()}")
            raise UntrustedError(f"{shown(place)}: {what}")
        if row.mode != FOLDER:
            largest = _largest_ever if self._history else _largest
            self._check_size(row.id, path, row.name, largest(path, name, place, row.id))
            return
        check_folder = _check_harmless if self._history else _check_folder
        check_folder(path, name, place)
        if depth >= self._deepest:
            raise UntrustedError(f"{shown(place)}: folders deeper than {self._deepest}")
        self._check(row.id, place, depth + 1)

    def _check_size(self, blob: bytes, path: str, name: bytes, largest: int) -> None:
        try:
            kind, size = self._objects.header(blob)
        except DamagedError:
            raise UntrustedError(f"{_place(path, name)}: its content is missing") from None
        if kind != BLOB:
            raise UntrustedError(f"{_place(path, name)}: a {kind.decode()} in the place of a file")
        if size > largest:
            raise UntrustedError(f"{_place(path, name)}: {size:,} bytes; the limit is {largest:,}")
        self._files += 1
        self._count(size)

    def _count(self, size: int) -> None:
        self._bytes += size
        bounds = self._bounds
        if (
            self._trees > bounds.trees
            or self._files > bounds.files
            or self._bytes > bounds.total_bytes
        ):
            raise UntrustedError("more than a session can be: too many folders, files or bytes")


class Folder:
    """The rows at one place as they were looked at last, where versions differ by a few."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._data = b""
        self._rows: list[tuple[bytes, bytes, bytes]] = []
        # Where each row begins, and the end.
        self._starts = [0]
        self.names: set[bytes] = set()
        self.is_repository = False

    def turned_into(self, data: bytes) -> list[tuple[bytes, bytes, bytes]]:
        """Take another version in; return the rows that are new at their place.

        Raises UntrustedError for what is no folder, is out of order or names one twice.
        """
        starts = self._starts
        # What is short is read faster than it is compared.
        first, last = self._alike(data) if len(data) > _SHORT else (0, len(self._rows))
        grown = len(data) - len(self._data)
        rows = _read(data[starts[first] : starts[last] + grown])
        if rows is None:
            # What looks alike from the end may begin within a row.
            first, last = 0, len(self._rows)
            rows = _rows(data, self._path)
        before = self._rows[first:last]
        self._data = data
        self._rows[first:last] = rows
        places = [row[:2] for row in rows]
        if places != [row[:2] for row in before]:
            self._placed(first, len(rows), before)
            sizes = [len(mode) + len(name) + _OVERHEAD for mode, name in places]
            moved = [start + grown for start in starts[last + 1 :]]
            starts[first + 1 :] = [*accumulate(sizes, initial=starts[first])][1:] + moved
        return rows

    def _placed(self, first: int, count: int, before: list[tuple[bytes, bytes, bytes]]) -> None:
        """Check rows that are where others were `before`, with their neighbours."""
        around = self._rows[max(first - 1, 0) : first + count + 1]
        # As Git sorts.
        places = [name + b"/" if mode == FOLDER else name for mode, name, _ in around]
        if not all(map(lt, places, places[1:])):
            raise _unordered(self._path)
        self.names.difference_update([name for _, name, _ in before])
        self.names.update([name for _, name, _ in self._rows[first : first + count]])
        if len(self.names) != len(self._rows):
            raise _unordered(self._path)
        changed = chain(before, self._rows[first : first + count])
        if not _REPOSITORY.isdisjoint([name.lower() for _, name, _ in changed]):
            self.is_repository = {name.lower() for name in self.names} >= _REPOSITORY

    def _alike(self, data: bytes) -> tuple[int, int]:
        """Return the rows from where on, and up to where, other data differs."""
        before, starts = self._data, self._starts
        first = bisect_right(starts, common(before, data)) - 1
        most = min(len(before), len(data)) - starts[first]
        return first, bisect_left(starts, len(before) - common_end(before, data, most), first)


def _rows(data: bytes, where: str) -> list[tuple[bytes, bytes, bytes]]:
    rows = _read(data)
    if rows is None:
        raise UntrustedError(f"{where or 'its top folder'}: a folder that cannot be read")
    return rows


def _read(data: bytes) -> list[tuple[bytes, bytes, bytes]] | None:
    """Return the rows that data consists of, None if there is anything else in it."""
    rows = _ROW.findall(data)
    size = sum([len(mode) + len(name) for mode, name, _ in rows]) + _OVERHEAD * len(rows)
    return rows if size == len(data) else None


def check_path(path: str, blob: bytes) -> None:
    """Raise UntrustedError if a file may not be at a path."""
    above = ""
    *folders, name = path.split("/")
    for folder in folders:
        place = f"{above}/{folder}" if above else folder
        _check_folder(above, _text(folder.encode("utf-8", "surrogateescape"), above), place)
        above = place
    _largest(above, _text(name.encode("utf-8", "surrogateescape"), above), path, blob)


def _place(path: str, name: bytes) -> str:
    text = name.decode("utf-8", "replace")
    return f"{path}/{text}" if path else text


def _in(path: str) -> str:
    return f"{path}: " if path else ""


def _unordered(path: str) -> UntrustedError:
    return UntrustedError(f"{_in(path)}entries out of order, or twice")


def _text(name: bytes, path: str) -> str:
    try:
        text = name.decode()
    except UnicodeDecodeError:
        raise UntrustedError(f"{_in(path)}a name that is not UTF-8: {shown(name)}") from None
    if len(name) > _LONGEST_NAME:
        raise UntrustedError(f"{_in(path)}a name of {len(name):,} bytes: {shown(text)}")
    if not text.isprintable():
        raise UntrustedError(f"{_in(path)}a name with control characters: {shown(text)}")
    return text


def _folded(name: str) -> str:
    """Return a name as file systems that know the least differences see it."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKD", name).casefold())


def _check_folder(path: str, name: str, place: str) -> None:
    """Check that a folder may be at a place."""
    part = path.partition("/")[0]
    if not path:
        if name in _OWN_FILES:
            raise UntrustedError(f"{place}: a folder in the place of a file")
        if name not in _OWN_FOLDERS:
            _check_plain(name, place)
    elif part in _KINDS:
        if path == _STATES or "/" in path or not is_page(name):
            raise UntrustedError(f"{shown(place)}: no folder belongs there")
    elif part == REPLICAS:
        raise UntrustedError(f"{shown(place)}: no folder belongs there")
    else:
        _check_plain(name, place)


def _largest(path: str, name: str, place: str, blob: bytes) -> int:
    """Return how large a file may be at a place; raise UntrustedError if none may be there."""
    part = path.partition("/")[0]
    if not path:
        return _largest_on_top(name, blob)
    if part in _KINDS:
        is_index = name == INDEX and ("/" in path or path == _STATES)
        memory = parse_path(place)
        if not is_index and memory is None:
            raise UntrustedError(f"{shown(place)}: no memory belongs at this path")
        return largest(memory)
    if part == REPLICAS:
        if path != REPLICAS or not _TAG_FILE.fullmatch(name):
            raise UntrustedError(f"{shown(place)}: no replica belongs at this path")
        return _SMALL_BYTES
    _check_plain(name, place)
    return MAX_FILE_BYTES


def _largest_on_top(name: str, blob: bytes) -> int:
    if name in _OWN_FOLDERS:
        raise UntrustedError(f"{name}: a file in the place of a folder")
    if name == ATTRIBUTES and blob not in _KNOWN_ATTRIBUTES:
        raise UntrustedError(
            f"{name}: attributes that a session does not have",
            hint="Git's filters and merge drivers are set there",
        )
    if name in _OWN_FILES:
        return _SMALL_BYTES
    _check_plain(name, name)
    return MAX_FILE_BYTES


def _largest_ever(path: str, name: str, place: str, blob: bytes) -> int:
    """Return how large a file of the past may be; raise UntrustedError if it does harm."""
    if not path and name == ATTRIBUTES and blob in _KNOWN_ATTRIBUTES:
        return _SMALL_BYTES
    _check_harmless(path, name, place)
    return _LARGEST_EVER


def _check_harmless(_path: str, name: str, place: str) -> None:
    """Check that a name means nothing to Git, and stays in its folder on every system."""
    bare = _folded(name).rstrip(" .")
    if bare in _HARMFUL or bare.startswith("git~") or "\\" in name or ":" in name:
        raise UntrustedError(f"{shown(place)}: a name that no history may have")


def _check_plain(name: str, place: str) -> None:
    """Check a name that is not ours: it must mean the same everywhere, and nothing to a tool."""
    odd = _ODD.search(name) or _DEVICE.fullmatch(name) or unicodedata.normalize("NFC", name) != name
    folded = _folded(name)
    if odd or folded in _OWN_FOLDERS | _OWN_FILES or folded.startswith("git~"):
        raise UntrustedError(f"{shown(place)}: a name that a session does not have")


def children(rows: Iterable[tuple[bytes, bytes, bytes]]) -> dict[str, TreeRow]:
    """Return the rows of a checked tree by name."""
    return {name.decode(): TreeRow(mode, name, child) for mode, name, child in rows}
