"""Inspection of a remote's branches as they are now: memories, indexes, tombstones, metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from smp_git.format import lines, metadata, records, yamlfile
from smp_git.format.metadata import PATH as METADATA
from smp_git.format.records import FORMAT, WITH_VALUES, Tombstones
from smp_git.format.records import PATH as TOMBSTONES
from smp_git.git.objects import RawObjects
from smp_git.git.references import HEADS, TAGS
from smp_git.model.errors import InvalidFileError, UntrustedError, shown
from smp_git.model.ids import INDEX, SESSION_ID, Id, parse_path
from smp_git.model.memory import KINDS, VALUE, MemoryId, Value
from smp_git.read.pages import row_of
from smp_git.sync.inspect.structure import FOLDER, REPLICAS, Bounds, Structure, TreeRow, children

_UID = re.compile(r"[0-9a-f]{32}")
_TAG = re.compile(r"[a-z][a-z0-9]{3}")
_LINE = re.compile(rb'^- \{"id":"([^"]+)","blob":"([0-9a-f]{40})"[^\n]*\n', re.MULTILINE)
# Behind the id and the object id, and before any text of the memory.
_LIFE = re.compile(r'^- \{"id":"[^"]*","blob":"[0-9a-f]*","life":"([^"]*)"')
_STATES: Final = KINDS["state"].folder
_THERE: Final = "fix the file where it was pushed from; nothing was accepted"
_NEWER: Final = "install a newer smp-git here"


class Tips:
    """Looks at the tips of branches; what trusted trees hold is not decoded again."""

    def __init__(self, objects: RawObjects, structure: Structure, bounds: Bounds) -> None:
        self._objects = objects
        self._structure = structure
        self._bounds = bounds
        self._decoded = 0
        self._lines: dict[tuple[str, bytes], str] = {}
        self._verdicts: dict[tuple[str, bytes], bool] = {}
        self._files: set[tuple[str, bytes]] = set()
        # The format that each version of the metadata says.
        self._formats: dict[bytes, int] = {}
        self.uid = ""
        self.session = ""
        self.is_old = False
        # The lives that have a name, by memory.
        self.lives: dict[MemoryId, set[str]] = {}
        self.tombstones = Tombstones()
        self.lying: dict[str, tuple[str, ...]] = {}

    def look(self, ref: str, root: bytes) -> None:
        """Look at what a branch holds; raise UntrustedError if a part of it is not sound."""
        where = f"branch {shown(ref.removeprefix(HEADS))}"
        self._structure.check(root, where)
        with _at(where):
            self._look(ref, root)

    def look_at_tag(self, ref: str, root: bytes) -> None:
        """Look at what a tag says was deleted: it counts as what a branch says."""
        with _at(f"tag {shown(ref.removeprefix(TAGS))}"):
            for mode, name, blob in self._structure.rows(root, ""):
                if name != TOMBSTONES.encode():
                    continue
                if mode == FOLDER:
                    raise UntrustedError(f"{TOMBSTONES}: a folder in the place of a file")
                self._tombstones(blob)

    def _look(self, ref: str, root: bytes) -> None:
        top = children(self._structure.rows(root, ""))
        if METADATA not in top:
            raise UntrustedError("it holds no session", hint="give the session an empty remote")
        self._metadata(top[METADATA].id)
        if KINDS[VALUE].folder in top and self._formats[top[METADATA].id] < WITH_VALUES:
            raise UntrustedError(f"{METADATA}: its format has no {KINDS[VALUE].folder}")
        if TOMBSTONES in top:
            self._tombstones(top[TOMBSTONES].id)
        if REPLICAS in top:
            self._replicas(top[REPLICAS].id)
        lying = [path for path, tree in self._pages(top) if self._lies(path, tree)]
        if lying:
            self.lying[ref] = tuple(sorted(lying))

    def _blob(self, name: bytes) -> bytes:
        data = self._objects.read(name)[1]
        self._decoded += len(data)
        if self._decoded > self._bounds.tip_bytes:
            raise UntrustedError("its files are larger than a session can be")
        return data

    def _is_new(self, what: str, name: bytes) -> bool:
        if (what, name) in self._files:
            return False
        self._files.add((what, name))
        return True

    # Files of the session itself

    def _metadata(self, name: bytes) -> None:
        if name in self._formats:
            return
        found = metadata.mapping(_utf8(self._blob(name), METADATA))
        for key, known in metadata.KNOWN.items():
            number = found.get(key)
            if type(number) is not int or not 1 <= number <= known:
                raise UntrustedError(
                    f"{METADATA}: {key} {shown(found.get(key))}; this program knows {known}",
                    hint=_NEWER,
                )
            self.is_old |= number < min(known, FORMAT)
            self._formats.setdefault(name, number)
        uid = _matching(found, "uid", _UID)
        if self.uid not in ("", uid):
            raise UntrustedError("it holds another session than the other branches")
        self.uid, self.session = uid, _matching(found, "id", SESSION_ID)
        _matching(found, "replica", _TAG)

    def _tombstones(self, name: bytes) -> None:
        if not self._is_new(TOMBSTONES, name):
            return
        found = records.read(self._blob(name))
        if (
            sum(each.last.number - each.first.number + 1 for each in found.items)
            > self._bounds.tombstoned
        ):
            raise UntrustedError(f"{TOMBSTONES}: more ids than a session can have had")
        self.tombstones = self.tombstones | found

    def _replicas(self, tree: bytes) -> None:
        if not self._is_new(REPLICAS, tree):
            return
        trusted = self._structure.trusted(REPLICAS)
        for row in self._structure.rows(tree, REPLICAS):
            if row in trusted:
                continue
            file = f"{REPLICAS}/{row[1].decode()}"
            found = yamlfile.read(_utf8(self._blob(row[2]), file).decode(), file)
            if f"{found.get('tag')}.yaml" != row[1].decode():
                raise UntrustedError(f"{file}: it names another replica")

    # Memories

    def _pages(self, top: Mapping[str, TreeRow]) -> list[tuple[str, bytes]]:
        """Return the pages that no trusted tree holds."""
        found = []
        for kind in KINDS.values():
            row = top.get(kind.folder)
            if row is None or row in self._structure.trusted(""):
                continue
            if kind.folder == _STATES:
                found.append((kind.folder, row.id))
                continue
            trusted = self._structure.trusted(kind.folder)
            found += [
                (f"{kind.folder}/{each[1].decode()}", each[2])
                for each in self._structure.rows(row.id, kind.folder)
                if each not in trusted
            ]
        return found

    def _lies(self, path: str, tree: bytes) -> bool:
        """Whether the index of a page is wrong, looked at once for all branches that have it."""
        verdict = self._verdicts.get((path, tree))
        if verdict is None:
            verdict = self._verdicts[path, tree] = self._is_lying(path, tree)
        return verdict

    def _is_lying(self, path: str, tree: bytes) -> bool:
        """Decode the memories of a page that are not known, and compare its index with them."""
        rows = self._structure.rows(tree, path)
        trusted = self._structure.trusted(path)
        known = self._known_lines(path) if trusted else {}
        wanted: dict[MemoryId, str] = {}
        index = b""
        for row in rows:
            name = row[1].decode()
            if name == INDEX:
                index = self._blob(row[2])
                continue
            place = parse_path(f"{path}/{name}")
            if place is None:
                continue
            line = known.get((place.text, row[2].hex())) if row in trusted else None
            line = wanted[place.text] = line or self._line(place, row[2])
            if (life := _LIFE.search(line)) is not None:
                self.lives.setdefault(place.text, set()).add(life[1])
        return index != lines.write_page(wanted).encode()

    def _known_lines(self, path: str) -> dict[tuple[str, str], str]:
        """Return the lines of trusted indexes of a page, by memory and file."""
        found: dict[tuple[str, str], str] = {}
        for mode, name, blob in self._structure.trusted(path):
            if name == INDEX.encode() and mode != FOLDER:
                for line in _LINE.finditer(self._objects.read(blob)[1]):
                    key = line[1].decode("utf-8", "replace"), line[2].decode()
                    found[key] = line[0].decode("utf-8", "replace")
        return found

    def _line(self, place: Id, blob: bytes) -> str:
        """Return the index line of a memory that decodes; raise InvalidFileError."""
        found = self._lines.get((place.path, blob))
        if found is None:
            found, _ = row_of(self._blob(blob), place.path, blob.hex())
            self._lines[place.path, blob] = found
        return found


def _utf8(data: bytes, what: str) -> bytes:
    try:
        data.decode()
    except UnicodeDecodeError:
        raise UntrustedError(f"{what}: not UTF-8") from None
    return data


def _matching(found: Mapping[str, Value], key: str, pattern: re.Pattern[str]) -> str:
    value = found.get(key)
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise UntrustedError(f"{METADATA}: {key} is {shown(value)}")
    return value


@contextmanager
def _at(where: str) -> Iterator[None]:
    try:
        yield
    except UntrustedError as error:
        raise UntrustedError(f"{where}: {error.message}", hint=error.hint) from None
    except InvalidFileError as error:
        raise UntrustedError(f"{where}: {error.message}", hint=_THERE) from error
