"""The tree that a set of changed files makes, page indexes included."""

from __future__ import annotations

from collections.abc import Container, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from smp_git.format import lines
from smp_git.format.lines import Entry
from smp_git.git.objects import BLOB, Object, ObjectId
from smp_git.git.trees import with_files
from smp_git.model.ids import INDEX, parse_path
from smp_git.model.memory import Memory, MemoryId
from smp_git.read.pages import Page, changed, row_of
from smp_git.read.snapshot import Snapshot

_NONE: Final[Mapping[str, Memory]] = MappingProxyType({})


class Change(NamedTuple):
    """One checked-out file before and after.

    `taken` is a person's version of it that the new one contains.
    """

    path: str
    old: ObjectId | None
    new: ObjectId | None
    taken: ObjectId | None = None


class Assembly(NamedTuple):
    """A tree with everything new that it needs."""

    tree: ObjectId
    objects: list[Object]
    changes: list[Change]
    pages: dict[str, Page]

    def data(self) -> dict[ObjectId, bytes]:
        """Return the bytes of the new files."""
        return {item.id: item.data for item in self.objects if item.type == BLOB}


def assemble(base: Snapshot, files: Mapping[str, bytes | None], unread: Container[str] = (), written: Mapping[str, Memory] = _NONE) -> Assembly:  # fmt: skip
    """Return the tree of `base` with `files` set (None: removed).

    The index of every page with a changed memory follows from the files; a line whose
    memory did not change stays as it is. Raises InvalidFileError for a file that its
    index line cannot be made from, unless it is among `unread`, which have none.
    `written` are memories whose files, by path, are as the program writes them.
    """
    objects: list[Object] = []
    edits: dict[str, ObjectId | None] = {}
    rows: dict[str, dict[MemoryId, tuple[str, Entry] | None]] = {}
    for path, data in files.items():
        blob = Object(BLOB, data) if data is not None else None
        edits[path] = blob.id if blob else None
        if blob:
            objects.append(blob)
        place = parse_path(path)
        if place is not None:
            row = _row(blob, path, written.get(path)) if blob and path not in unread else None
            rows.setdefault(place.page, {})[place.text] = row
    pages = {path: changed(base.page(path), path, below) for path, below in rows.items()}
    for path, page in pages.items():
        blob = Object(BLOB, lines.write_page(page.lines).encode()) if page.lines else None
        edits[f"{path}/{INDEX}"] = blob.id if blob else None
        if blob:
            objects.append(blob)
    old = {path: base.repository.find(base.tree, path) for path in edits}
    tree, trees = with_files(base.repository, base.tree, edits)
    changes = [Change(path, old[path], new) for path, new in edits.items() if new != old[path]]
    return Assembly(tree, objects + trees, changes, pages)


def _row(blob: Object, path: str, memory: Memory | None) -> tuple[str, Entry]:
    if memory is None:
        return row_of(blob.data, path, blob.id)
    entry = lines.entry_of(memory, blob.id, len(blob.data))
    return lines.write_line(entry), entry
