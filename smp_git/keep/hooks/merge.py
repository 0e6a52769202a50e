"""Merge driver and hooks for plain Git's merges and moves of a branch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from smp_git.format import lines, readme, records
from smp_git.format.lines import Entry
from smp_git.format.messages import MEND
from smp_git.format.metadata import PATH as METADATA
from smp_git.git import staging
from smp_git.git.objects import BLOB, Object, ObjectId, object_id
from smp_git.git.repository import MAIN, Repository
from smp_git.keep.hooks.install import Gate
from smp_git.model.errors import DamagedError, InvalidFileError, SmpError
from smp_git.model.ids import INDEX, is_index, parse_id, parse_path
from smp_git.model.memory import CommitId, MemoryId
from smp_git.read import pages as index
from smp_git.read.history import WHOLE, Origin, origins
from smp_git.read.pages import row_of
from smp_git.read.snapshot import Reader, Snapshot
from smp_git.write import recovery
from smp_git.write.merge import memories
from smp_git.write.merge.memories import Conflict, FileVersion, Stamp, stamp_of
from smp_git.write.stage import Stage

_SHOWN: Final = 10


def bring_up(gate: Gate, *, merged: bool = False, rewritten: bool = False) -> list[str]:
    """Repair the indexes in a commit of their own, if they are wrong; return what to tell.

    `merged` and `rewritten` say that more than the latest commit may be new.

    While Git goes on by itself with what it remembers, nothing is done: a commit in
    between would be lost on it.
    """
    reader = gate.reader
    if rewritten:
        reader.local.raise_epoch()
    moved = merged or rewritten
    if reader.repository.checked_out() != MAIN or (gate.is_under_way() and not moved):
        return []
    notes: list[str] = []
    with gate.writer.holding("bringing a session up to date") as snapshot:
        if recovery.is_needed(reader):
            recovery.repair(reader)
        before = list(_before(reader, snapshot, moved=moved))
        stale = _stale(snapshot, before, notes)
    if stale:
        _, change = gate.writer.run(gate.agent, partial(_repair, before), subject=MEND)
        pages = "1 page" if len(stale) == 1 else f"{len(stale)} pages"
        notes.append(f"commit {str(change.commit)[:12]} repairs the index of {pages}")
    with gate.writer.holding("refreshing Git's index") as snapshot:
        staging.refresh(reader.repository, snapshot.tree)
        _settle(reader, snapshot)
    return notes + _returned(reader, snapshot)


def _repair(before: list[Snapshot], stage: Stage) -> None:
    for path, data in _stale(stage.base, before, []).items():
        stage.put_file(path, data, "")


def _before(reader: Reader, snapshot: Snapshot, *, moved: bool) -> Iterator[Snapshot]:
    """Yield the commits that the session was at before Git moved it."""
    for parent in snapshot.commit.parents[:1]:
        yield reader.at(parent)
    if moved:
        with suppress(FileNotFoundError, UnicodeDecodeError):
            yield reader.at(
                CommitId((reader.repository.git / "ORIG_HEAD").read_text("ascii").strip())
            )


def _stale(snapshot: Snapshot, before: list[Snapshot], notes: list[str]) -> dict[str, bytes | None]:
    """Return the page indexes that are not what their files ask for, as they must be."""
    repository = snapshot.repository
    pages = snapshot.page_ids()
    suspects = {path for path, tree in pages.items() if not index.is_complete(repository, tree)}
    for known in map(_pages, before):
        suspects |= {path for path, tree in pages.items() if known.get(path) != tree}
    out: dict[str, bytes | None] = {}
    for path in sorted(suspects):
        try:
            wanted = index.rebuilt(repository, path, pages[path]).encode()
        except InvalidFileError as error:
            notes.append(f"the index of {path} is unchanged: {error.message}")
            continue
        blob = repository.find(snapshot.tree, f"{path}/{INDEX}")
        if (repository.blob(blob) if blob else b"") != wanted:
            out[f"{path}/{INDEX}"] = wanted or None
    return out


def _pages(snapshot: Snapshot) -> Mapping[str, str]:
    try:
        return snapshot.page_ids()
    except DamagedError:
        # Where the session was before is gone since: every page is looked at.
        return {}


def _settle(reader: Reader, snapshot: Snapshot) -> None:
    """Take note of the files that writes had left alone and that are now as committed."""
    left = reader.local.left_alone()
    done = [
        path
        for path in left
        if _blob_at(reader.path / path) == snapshot.repository.find(snapshot.tree, path)
    ]
    if done:
        reader.local.note_left_alone({}, done)


def _blob_at(path: Path) -> str | None:
    try:
        return object_id(BLOB, path.read_bytes())
    except OSError:
        return None


def _returned(reader: Reader, snapshot: Snapshot) -> list[str]:
    """Say which deleted memories came back with what was moved in."""
    back = [name for path in snapshot.page_ids() for name in sorted(snapshot.dead(path))]
    if not back:
        return []
    more = f" and {len(back) - _SHOWN} more" if len(back) > _SHOWN else ""
    return [f"{', '.join(back[:_SHOWN])}{more} had been deleted; smp sync takes them out again"]


_Row = tuple[str, Entry]


class Driver:
    """Brings single files together; `theirs` is the other side's commit, if it is known."""

    def __init__(self, repository: Repository, theirs: CommitId | None) -> None:
        self._repository = repository
        self._theirs = theirs
        self.contested: list[Conflict] = []

    def merged(self, path: str, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
        """Return the file with what both sides said; None if a person has to decide.

        An empty base means none.
        """
        if is_index(path):
            return self._index(base, ours, theirs)
        if path == records.PATH:
            return records.write(records.read(ours) | records.read(theirs))
        if path == METADATA:
            return self._metadata(base, ours, theirs)
        if path == readme.PATH:
            return readme.merged(ours, theirs)
        return self._memory(path, base or None, ours, theirs) if parse_path(path) else None

    def _memory(self, path: str, base: bytes | None, ours: bytes, theirs: bytes) -> bytes | None:
        left, right = memories.version(ours, path), memories.version(theirs, path)
        before = memories.version(base, path)
        if left is None or right is None:
            return None
        if left.memory.life != right.memory.life or _are_twins(before, left, right):
            return None
        fields = memories.disputed(before, left, right)
        mine, others = self._origins(path, fields) if fields else ({}, {})

        def stamps(name: str) -> tuple[Stamp, Stamp]:
            return stamp_of(mine.get(name), left), stamp_of(others.get(name), right)

        made = memories.joined(before, left, right, stamps)
        self.contested += made.lost
        return made.file

    def _origins(
        self, path: str, fields: Iterable[str]
    ) -> tuple[dict[str, Origin], dict[str, Origin]]:
        """Return which commits gave fields their values on our side and on theirs."""
        return self._origins_at(self._head(), path, fields), self._origins_at(
            self._theirs, path, fields
        )

    def _origins_at(
        self, commit: CommitId | None, path: str, fields: Iterable[str]
    ) -> dict[str, Origin]:
        if commit is None or not self._repository.has(commit):
            return {}
        found = origins(self._repository, {commit: {path: list(fields)}})
        return {name: origin for (_, name), origin in found.items()}

    def _head(self) -> CommitId | None:
        name = self._repository.checked_out()
        return self._repository.head(name) if name.startswith("refs/") else CommitId(name)

    def _metadata(self, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
        mine, others = (found.get(WHOLE) for found in self._origins(METADATA, [WHOLE]))
        is_ours = mine is not None and others is not None and mine.commit.time > others.commit.time
        newer, older = (ours, theirs) if is_ours else (theirs, ours)
        made = memories.joined_metadata(base or None, newer, older)
        self.contested += made.lost if made else ()
        return made.file if made else None

    # Page indexes

    def _index(self, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
        """Return the index with the line of each memory as the merge leaves its file."""
        before, left, right = (_rows(data) for data in (base, ours, theirs))
        made: dict[MemoryId, str] = {}
        for name in {**left, **right}:
            line = self._line(name, before.get(name), left.get(name), right.get(name))
            if line:
                made[name] = line
        return lines.write_page(made).encode()

    def _line(
        self, name: MemoryId, base: _Row | None, left: _Row | None, right: _Row | None
    ) -> str | None:
        was, mine, others = (row[1].blob if row else None for row in (base, left, right))
        if mine == others or others == was:
            return left[0] if left else None
        if mine == was:
            return right[0] if right else None
        if left is None or right is None:
            # One side removed what the other changed: Git keeps the changed one.
            return (left or right or ("",))[0]
        return self._joined_line(name, base, left, right)

    def _joined_line(self, name: MemoryId, base: _Row | None, left: _Row, right: _Row) -> str:
        path = parse_id(name).path
        try:
            files = [
                self._repository.blob(ObjectId(row[1].blob)) if row else None
                for row in (base, left, right)
            ]
            told = list(self.contested)
            file = self._memory(path, files[0], files[1] or b"", files[2] or b"")
            # Git asks about the memory's file as well; there it is told.
            self.contested = told
            return row_of(file, path, Object(BLOB, file).id)[0] if file is not None else left[0]
        except SmpError:
            return left[0]


def _are_twins(base: FileVersion | None, left: FileVersion, right: FileVersion) -> bool:
    """Whether two memories were given one id: a sync gives one of them another."""
    added = left.memory.created_at, right.memory.created_at
    return base is None and left.memory.kind != "state" and added[0] != added[1]


def _rows(data: bytes) -> dict[MemoryId, _Row]:
    raw = lines.split_page(data.decode("utf-8", "replace"))
    found = zip(raw, lines.read_lines(raw), strict=True)
    return {entry.id: (line, entry) for line, entry in found if entry is not None}
