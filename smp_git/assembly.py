"""The tree that a set of changed files makes, page indexes included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from smp_git.format import lines
from smp_git.format.ids import INDEX, parse_path
from smp_git.git.objects import BLOB, Object, ObjectId
from smp_git.git.trees import with_files
from smp_git.index import EMPTY_LINES, line_of
from smp_git.memory import MemoryId
from smp_git.snapshot import Snapshot


class Change(NamedTuple):
    """One checked-out file before and after."""

    path: str
    old: ObjectId | None
    new: ObjectId | None


class Assembly(NamedTuple):
    """A tree with everything new that it needs."""

    tree: ObjectId
    objects: list[Object]
    changes: list[Change]

    def data(self) -> dict[ObjectId, bytes]:
        """Return the bytes of the new files."""
        return {item.id: item.data for item in self.objects if item.type == BLOB}


def assemble(base: Snapshot, files: Mapping[str, bytes | None]) -> Assembly:
    """Return the tree of `base` with `files` set (None: removed).

    The index of every page with a changed memory follows from the files; a line whose
    memory did not change stays as it is. Raises InvalidFileError for a file that its
    index line cannot be made from.
    """
    objects: list[Object] = []
    edits: dict[str, ObjectId | None] = {}
    pages: dict[str, dict[MemoryId, str | None]] = {}
    for path, data in files.items():
        blob = Object(BLOB, data) if data is not None else None
        edits[path] = blob.id if blob else None
        if blob:
            objects.append(blob)
        place = parse_path(path)
        if place is not None:
            line = line_of(blob.data, path, blob.id) if blob else None
            pages.setdefault(place.page, {})[place.text] = line
    for page, changed in pages.items():
        blob = _index(base, page, changed)
        edits[f"{page}/{INDEX}"] = blob.id if blob else None
        if blob:
            objects.append(blob)
    old = {path: base.repository.find(base.tree, path) for path in edits}
    tree, trees = with_files(base.repository, base.tree, edits)
    changes = [Change(path, old[path], new) for path, new in edits.items() if new != old[path]]
    return Assembly(tree, objects + trees, changes)


def _index(base: Snapshot, page: str, changed: Mapping[MemoryId, str | None]) -> Object | None:
    found = base.page(page)
    merged = {**(found.lines if found else EMPTY_LINES), **changed}
    kept = {name: line for name, line in merged.items() if line is not None}
    return Object(BLOB, lines.write_page(kept).encode()) if kept else None
