"""Bytes of the tracked files: of the whole session at head, and of its parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from smp_git.git.objects import ObjectId
from smp_git.git.repository import Repository
from smp_git.model.errors import DamagedError
from smp_git.model.ids import is_index, kind_of_folder
from smp_git.read.snapshot import Reader, Snapshot

# More files than this differ only after a long absence; then all are counted.
_MOST_CHANGES = 5_000
_INDEXES = "indexes"
_OTHERS = "session"


class TrackedFile(NamedTuple):
    """A tracked file and its bytes."""

    path: str
    size: int

    @property
    def component(self) -> str:
        """The part of the session that it belongs to."""
        if is_index(self.path):
            return _INDEXES
        kind = kind_of_folder(self.path.partition("/")[0])
        return f"{kind.name}s" if kind else _OTHERS


def files(snapshot: Snapshot) -> Iterator[TrackedFile]:
    """Yield every tracked file; the sizes of memories are those that their indexes say."""
    known = {entry.blob: entry.size for page in snapshot.pages() for entry in page.entries.values()}
    repository = snapshot.repository
    for path, blob in snapshot.files():
        try:
            yield TrackedFile(path, known.get(blob) or repository.size(blob))
        except DamagedError as error:
            snapshot.pass_over(path, error)


def tracked_bytes(reader: Reader, snapshot: Snapshot) -> int:
    """Return the bytes of the tracked files, by what changed since they were last counted."""
    found = _counted(reader, snapshot)
    if found is None:
        found = sum(file.size for file in files(snapshot))
    reader.size = snapshot.tree, found
    return found


def follow_rewrite(reader: Reader) -> None:
    """Bring the count to a rewritten head, while what was counted is still there."""
    snapshot = reader.snapshot()
    found = _counted(reader, snapshot)
    reader.size = (snapshot.tree, found) if found is not None else None


def _counted(reader: Reader, snapshot: Snapshot) -> int | None:
    """Return the bytes at a snapshot by those that were counted last; None if that cannot be told."""
    before, size = reader.size or reader.local.size() or ("", 0)
    repository = snapshot.repository
    if before == snapshot.tree:
        return size
    # A rewrite may have taken the earlier tree away.
    if not before or not repository.has(before):
        return None
    changes = repository.changes(ObjectId(before), snapshot.tree)
    with suppress(DamagedError):
        for number, (_, old, new) in enumerate(changes):
            if number == _MOST_CHANGES:
                return None
            size += _size(repository, new) - _size(repository, old)
        return size
    return None


def growth(repository: Repository, changes: Iterable[tuple[ObjectId | None, int | None]]) -> int:
    """Return by how many bytes files grow, given each one's old version and new size."""
    return sum((new or 0) - _size(repository, old) for old, new in changes)


def _size(repository: Repository, blob: ObjectId | None) -> int:
    return repository.size(blob) if blob is not None else 0


def keep(reader: Reader) -> None:
    """Leave for the next process what was counted."""
    if reader.size is not None and reader.local.size() != reader.size:
        reader.local.keep_size(*reader.size)
