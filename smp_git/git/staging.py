"""Git's own index of a session, kept behind the writes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pygit2
from pygit2.enums import FileMode

from smp_git.git.objects import BLOB, ObjectId, object_id
from smp_git.git.repository import Repository

_RECORD: Final = "index-tree"
_NOTED: Final = 1_000


def recorded_tree(git: Path) -> ObjectId | None:
    """Return the tree that the index last agreed with, or None if none is known."""
    try:
        text = (git / "smp" / _RECORD).read_text("ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    return ObjectId(text) if len(text) == 40 else None  # noqa: PLR2004 - an object id


def refresh(repository: Repository, head: ObjectId, index_file: Path | None = None) -> bool:
    """Bring the index from the tree it last agreed with to `head`.

    What a person staged stays staged: an entry that is not the last agreed one is left
    alone. Returns False if another Git process holds the index. `index_file` is
    another index than the session's own, such as a hook is given.
    """
    git = repository.git
    base = recorded_tree(git)
    if base == head and index_file is None:
        return True
    if base is not None and not repository.has(base):
        base = None
    index = pygit2.Index(str(index_file)) if index_file else repository.index()
    whole = base is None and len(index) == 0
    changes = list(repository.changes(None if whole else base or head, head))
    # Noting a file's times costs a read of it, which pays only while few have changed.
    noted = index_file is None and len(changes) <= _NOTED
    for path, old, new in changes:
        _update(index, path, old, new)
        if noted and new is not None and index[path].id == new:
            _note(index, repository.path, path, new)
    try:
        index.write()
    except (pygit2.GitError, OSError):
        return False
    if index_file is None:
        (git / "smp" / _RECORD).write_text(head)
    return True


def _update(index: pygit2.Index, path: str, old: ObjectId | None, new: ObjectId | None) -> None:
    staged = str(index[path].id) if path in index else None
    if staged not in (old, new):
        return
    if new is not None:
        index.add(pygit2.IndexEntry(path, pygit2.Oid(hex=new), FileMode.BLOB))
    elif staged is not None:
        index.remove(path)


def _note(index: pygit2.Index, folder: Path, path: str, blob: ObjectId) -> None:
    """Let the index know the times of a checked-out file, so that Git need not read it again."""
    try:
        if object_id(BLOB, (folder / path).read_bytes()) == blob:
            index.add(path)
    except OSError:
        return
