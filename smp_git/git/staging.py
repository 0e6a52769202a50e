"""Git's own index of a session, kept behind the writes.

libgit2 reads and writes it, in any form that it knows: 14 ms of processor time at 10,000
entries. What Git notes of a file besides its version is left to the next `git status`.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.format import records
from smp_git.git import disk, libgit2
from smp_git.git.objects import Child, ObjectId
from smp_git.git.references import newest_first
from smp_git.git.repository import Repository
from smp_git.model.errors import FormatError

HELD: Final = "another Git process holds its index"
_RECORD: Final = "index-tree"
# As many commits back an index may be that Git itself wrote back meanwhile.
_LATEST: Final = 20
# A page's index is generated, so nobody has anything of his own staged there.
_GENERATED: Final = "/index.yaml"
_SIGNATURE: Final = b"DIRC"
_SUM_SIZE: Final = 20
_TREES: Final = b"TREE"
_TREE: Final = re.compile(rb"[^\0]*\0(-?\d+) \d+\n")
_ID_SIZE: Final = 20
# Opening a pipe waits for whoever writes into it.
_UNHURT: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_PART: Final = 1 << 20
# Git holds its index for milliseconds, but a commit in an editor for minutes.
_LOCK_SECONDS: Final = 0.3


def recorded_tree(git: Path) -> ObjectId | None:
    """Return the tree that the index agrees with, or None if that is not certain."""
    found, _ = _recorded(git)
    return found[0] if len(found) == 1 else None


def is_current(git: Path, head: ObjectId) -> bool:
    """Whether the index agrees with `head` and nobody else has written it since."""
    return _recorded(git) == ([head], _stamp(git / "index"))


def refresh(repository: Repository, head: ObjectId, index_file: Path | None = None) -> bool:
    """Bring the index from the tree it last agreed with to `head`.

    What a person staged stays staged: an entry that is not the last agreed one is left
    alone. Returns False if another Git process holds the index. `index_file` is
    another index than the session's own, such as a hook is given.
    """
    git = repository.git
    if index_file is not None:
        return _rewrite(repository, _recorded(git)[0], head, index_file, _latest(repository))
    if is_current(git, head):
        return True
    with _locked(git) as mine:
        if not mine:
            return False
        bases, stamp = _recorded(git)
        if not _read(git / "index"):
            # It was removed, or a power cut broke it: nobody has anything staged in it.
            bases = []
        latest = [] if stamp and stamp == _stamp(git / "index") else _latest(repository)
        if bases:
            # What a person committed past us is in the index, and is not staged.
            bases = [*bases, *latest[:1]]
        # A writer that dies between the index and its record leaves one of these trees.
        _record(git, [*bases, head])
        done = _rewrite(repository, bases, head, git / "index", latest)
        if done:
            _record(git, [head], _stamp(git / "index"))
        return done


def obstacle(git: Path) -> str:
    """Say what prevents taking something out of the index; nothing if nothing does."""
    with _locked(git) as mine:
        if not mine:
            return HELD
        scratch = git / "smp" / "index.tmp"
        index = _copied(git / "index", scratch)
        scratch.unlink(missing_ok=True)
        if index is None:
            return "its index has another format"
        return "its index has conflicts" if index.conflicts is not None else ""


def expel(repository: Repository, head: ObjectId, is_gone: Callable[[str, ObjectId], bool]) -> bool:
    """Bring the index to `head` and drop what is gone, staged by a person or not.

    Returns False if another Git process holds the index, or it is of another form.
    """
    git = repository.git
    if not refresh(repository, head):
        return False
    with _locked(git) as mine:
        return mine and _expelled(repository, head, is_gone)


def _expelled(
    repository: Repository, head: ObjectId, is_gone: Callable[[str, ObjectId], bool]
) -> bool:
    git = repository.git
    scratch = git / "smp" / "index.tmp"
    index = _copied(git / "index", scratch)
    if index is None or index.conflicts is not None:
        scratch.unlink(missing_ok=True)
        return False
    staged = {entry.path: ObjectId(str(entry.id)) for entry in index}
    # A page's index that plain Git brought back names what is gone, its tombstones too little.
    ours = [path for path in staged if path.endswith(_GENERATED) or path == records.PATH]
    lines = {path: repository.find(head, path) for path in ours}
    stale = {path: blob for path, blob in lines.items() if blob != staged[path]}
    # Where a redaction left something, that takes the place of a version that is gone: a
    # plain commit may have put that in the index without our knowing.
    dead = {path for path, blob in staged.items() if is_gone(path, blob)}
    stale |= {path: repository.find(head, path) for path in dead}
    # What Git keeps to undo a resolved conflict names versions that may be gone.
    resolved = b"REUC" in scratch.read_bytes()
    if stale or resolved:
        kept = [entry for entry in index if entry.path not in stale]
        scratch.unlink()
        index = _opened(scratch)
        made = [_entry(path, blob) for path, blob in stale.items() if blob is not None]
        for entry in [*kept, *made]:
            index.add(entry)
        index.write()
        scratch.rename(git / "index")
    scratch.unlink(missing_ok=True)
    _record(git, [head], _stamp(git / "index"))
    return True


def staged(file: Path) -> dict[str, Child]:
    """Return what an index holds: the mode and version of each path."""
    try:
        index = _opened(file)
        return {entry.path: Child(f"{entry.mode:o}", ObjectId(str(entry.id))) for entry in index}
    except libgit2.GitError as error:
        raise FormatError(
            f"Git's index {file} cannot be read: {error}",
            hint="git update-index --index-version 2 writes it in a plain form",
        ) from error


def files(repository: Repository, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield those of some files that the index holds, with their bytes."""
    file = repository.git / "index"
    held = staged(file) if file.exists() else {}
    for path in paths:
        if path in held:
            yield path, repository.blob(held[path].id)


class StagedName(NamedTuple):
    """The objects that Git's index of a session names."""

    blobs: frozenset[bytes]
    trees: frozenset[bytes]


def named(git: Path) -> StagedName:
    """Return the objects that Git's index keeps in use, though no commit names them."""
    file = git / "index"
    if not file.exists():
        return StagedName(frozenset(), frozenset())
    blobs = (bytes.fromhex(child.id) for child in staged(file).values())
    return StagedName(frozenset(blobs), frozenset(_cached_trees(file.read_bytes())))


def _cached_trees(data: bytes) -> list[bytes]:
    """Return the ids of the trees that an index remembers; libgit2 does not tell them."""
    at = data.rfind(_TREES)
    if at < 0:
        return []
    size = int.from_bytes(data[at + 4 : at + 8], "big")
    return list(_tree_ids(data[at + 8 : at + 8 + size]))


def _tree_ids(trees: bytes) -> Iterator[bytes]:
    """Yield the ids of a tree extension: a name, how many entries (-1: unknown), an id."""
    at = 0
    while match := _TREE.match(trees, at):
        at = match.end()
        if not match[1].startswith(b"-"):
            yield trees[at : at + _ID_SIZE]
            at += _ID_SIZE


def held(git: Path) -> AbstractContextManager[bool]:
    """Let no Git command stage anything meanwhile; yield False if one is at it."""
    return _locked(git)


def put(
    repository: Repository, entries: Mapping[str, ObjectId | None], index_file: Path | None = None
) -> bool:
    """Set entries of an index (None: taken out); return whether nobody else holds it."""
    if index_file is not None:
        return _put(repository, entries, index_file)
    with _locked(repository.git) as mine:
        return mine and _put(repository, entries, repository.git / "index")


def _put(repository: Repository, entries: Mapping[str, ObjectId | None], file: Path) -> bool:
    scratch = repository.git / "smp" / "index.tmp"
    index = _copied(file, scratch)
    if index is None:
        scratch.unlink(missing_ok=True)
        return False
    for path, blob in entries.items():
        if blob is not None:
            index.add(_entry(path, blob))
        elif path in index:
            index.remove(path)
    index.write()
    scratch.rename(file)
    return True


def _entry(path: str, blob: ObjectId) -> libgit2.IndexEntry:
    return libgit2.IndexEntry(path, libgit2.Oid(hex=blob), libgit2.enums.FileMode.BLOB)


def _opened(file: Path) -> libgit2.Index:
    """Return an index as it is in a file; raise GitError if it cannot be read."""
    from smp_git.git.index_file import IndexFile  # noqa: PLC0415 - it loads libgit2

    return IndexFile(str(file))


def is_readable(git: Path) -> bool:
    """Whether the index is there and can be read; before the first write there is none."""
    try:
        staged(git / "index")
    except FormatError:
        return False
    return True


def forget(git: Path) -> None:
    """Trust the record of the index no longer, so that the next refresh compares everything."""
    _record(git, [])


def drop_own_index_lock(git: Path) -> None:
    """Remove the lock of Git's index that a dead writer of ours left."""
    disk.drop_own_lock(_own_lock(git), git / "index.lock")


def is_locked_by_us(git: Path) -> bool:
    """Whether a writer of ours has not let go of Git's index."""
    return _own_lock(git).exists()


def _own_lock(git: Path) -> Path:
    return git / "smp" / "index-lock"


def _locked(git: Path) -> AbstractContextManager[bool]:
    """Hold Git's lock of its index; yield False if somebody else keeps it."""
    return disk.linked(_own_lock(git), git / "index.lock", _LOCK_SECONDS)


# The record: the trees that the index may agree with, one unless a writer died


def _recorded(git: Path) -> tuple[list[ObjectId], str]:
    """Return the recorded trees and the stamp of the index then; nothing if it is torn."""
    try:
        line = (git / "smp" / _RECORD).read_bytes().partition(b"\n")[0].decode("ascii")
    except (FileNotFoundError, UnicodeDecodeError):
        return [], ""
    trees, _, stamp = line.partition("@")
    names = trees.split()
    whole = all(len(name) == 40 and name.isalnum() for name in names)  # noqa: PLR2004 - object ids
    return ([ObjectId(name) for name in names], stamp) if whole else ([], "")


def _record(git: Path, trees: list[ObjectId], stamp: str = "") -> None:
    fd = os.open(git / "smp" / _RECORD, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        disk.write_all(fd, f"{' '.join(dict.fromkeys(trees))}@{stamp}\n".encode())
    finally:
        os.close(fd)


def _stamp(file: Path) -> str:
    try:
        seen = file.stat()
    except FileNotFoundError:
        return ""
    return f"{seen.st_ino}.{seen.st_mtime_ns}.{seen.st_size}"


# The index itself


def _rewrite(
    repository: Repository,
    bases: list[ObjectId],
    head: ObjectId,
    file: Path,
    latest: list[ObjectId],
) -> bool:
    scratch = repository.git / "smp" / "index.tmp"
    index = _copied(file, scratch)
    try:
        if index is None or index.conflicts is not None:
            return False
        _bring(repository, index, bases, head, latest)
        index.write()
        scratch.chmod(0o600)
        scratch.replace(file)
    except libgit2.GitError:
        return False
    finally:
        scratch.unlink(missing_ok=True)
    return True


def _read(file: Path) -> bytes:
    """Return the bytes of an index, none if it is missing or a power cut broke it."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return b""
    return data if _is_whole(data) else b""


def _is_whole(data: bytes) -> bool:
    """Whether an index is complete, as its checksum tells."""
    if not data.startswith(_SIGNATURE):
        return False
    made = hashlib.sha1(data[:-_SUM_SIZE], usedforsecurity=False).digest()
    # A person may have switched the checksum off.
    return data[-_SUM_SIZE:] in (made, bytes(_SUM_SIZE))


def _copied(file: Path, scratch: Path) -> libgit2.Index | None:
    """Return a copy of an index, empty if a power cut broke it; None if it is of another form."""
    scratch.unlink(missing_ok=True)
    data = _read(file)
    if data:
        scratch.write_bytes(data)
    try:
        return _opened(scratch)
    except libgit2.GitError:
        return None


def _bring(
    repository: Repository,
    index: libgit2.Index,
    bases: list[ObjectId],
    head: ObjectId,
    latest: list[ObjectId],
) -> None:
    """Bring the entries to `head`; `latest` are trees that Git may have brought back."""
    known = [base for base in bases if repository.has(base)]
    before = _changed_since(repository, known, head) if known else _unlike(repository, index, head)
    behind = _changed_since(repository, latest, head)
    changes = behind | before
    for path, (olds, new) in changes.items():
        staged = ObjectId(str(index[path].id)) if path in index else None
        is_due = path in before and (staged in (*olds, new) or path.endswith(_GENERATED))
        # Git writes back what it read before it took its lock, and a person commits without
        # hooks: such an entry is behind if it is older than the file, and a person's if it
        # is like the file.
        is_behind = staged != new and path in behind and staged in behind[path][0]
        if not is_due and not (is_behind and _blob_at(repository.path / path) == new):
            continue
        if new is not None:
            index.add(_entry(path, new))
        elif staged is not None:
            index.remove(path)


_Changes = dict[str, tuple[set[ObjectId | None], ObjectId | None]]


def _changed_since(repository: Repository, bases: list[ObjectId], head: ObjectId) -> _Changes:
    """Return the files that differ from one of the trees: what they were, and are at `head`."""
    found: _Changes = {}
    for base in bases:
        for path, old, new in repository.changes(base, head):
            found.setdefault(path, (set(), new))[0].add(old)
    return found


def _latest(repository: Repository) -> list[ObjectId]:
    """Return the trees of the latest commits, of all sides of a merge."""
    head = repository.head()
    found = newest_first(repository, head, lambda commit: commit.parents) if head else ()
    return [commit.tree for commit in islice(found, _LATEST)]


def _blob_at(path: Path) -> ObjectId | None:
    """Return the version of a checked-out file, or None if there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | _UNHURT)
    except OSError:
        return None
    try:
        seen = os.fstat(fd)
        if not stat.S_ISREG(seen.st_mode):
            return None
        made = hashlib.sha1(b"blob %d\0" % seen.st_size, usedforsecurity=False)
        while part := os.read(fd, _PART):
            made.update(part)
        return ObjectId(made.hexdigest())
    except OSError:
        return None
    finally:
        os.close(fd)


def _unlike(repository: Repository, index: libgit2.Index, head: ObjectId) -> _Changes:
    """Return the files in which the index differs from `head`, all of them to be set.

    Nothing tells what a person staged from what the index has not seen yet; staging
    again is easy, a dropped memory is not.
    """
    staged = {entry.path: ObjectId(str(entry.id)) for entry in index}
    wanted = dict(repository.files(head))
    pages = {path.rpartition("/")[0] for path in wanted if path.endswith(_GENERATED)}
    gone = {path for path in staged.keys() - wanted.keys() if path.rpartition("/")[0] in pages}
    return {
        path: ({staged.get(path)}, wanted.get(path))
        for path in wanted.keys() | gone
        if staged.get(path) != wanted.get(path)
    }
