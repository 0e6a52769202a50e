"""Trees and commits: the only maker of commits, the tree of changed files, and their check-out."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from smp_git.format import lines, messages
from smp_git.format.lines import Entry
from smp_git.format.messages import Touch
from smp_git.format.records import Tombstones
from smp_git.git import disk
from smp_git.git.objects import (
    BLOB,
    COMMIT,
    EMPTY_TREE,
    FILE_MODE,
    FOLDER_MODE,
    TREE,
    Child,
    Object,
    ObjectId,
    Signature,
    object_id,
    write_commit,
    write_tree,
)
from smp_git.git.repository import Repository
from smp_git.model.errors import RefusedError
from smp_git.model.ids import INDEX, is_index, parse_path
from smp_git.model.memory import CommitId, Memory, MemoryId
from smp_git.read.pages import Page, changed, row_of
from smp_git.read.replica import Identity, product_signs
from smp_git.read.snapshot import Snapshot


def with_files(
    repository: Repository, root: ObjectId, edits: Mapping[str, ObjectId | None]
) -> tuple[ObjectId, list[Object]]:
    """Return the tree `root` with files set (None: removed), and the new tree objects.

    A folder without files vanishes, as in Git.
    """
    made: list[Object] = []
    new_root = _edit(repository, root, edits, made)
    if new_root is None:
        made.append(Object(TREE, b""))
        return EMPTY_TREE, made
    return new_root, made


def _edit(
    repository: Repository,
    tree_id: ObjectId | None,
    edits: Mapping[str, ObjectId | None],
    made: list[Object],
) -> ObjectId | None:
    children = dict(repository.tree(tree_id)) if tree_id not in (None, EMPTY_TREE) else {}
    below: dict[str, dict[str, ObjectId | None]] = {}
    for path, blob in edits.items():
        name, _, rest = path.partition("/")
        if rest:
            below.setdefault(name, {})[rest] = blob
        else:
            _set(children, name, blob, FILE_MODE)
    for name, inner in below.items():
        child = children.get(name)
        folder = child.id if child is not None and child.mode == FOLDER_MODE else None
        _set(children, name, _edit(repository, folder, inner, made), FOLDER_MODE)
    if not children:
        return None
    tree = Object(TREE, write_tree(children))
    made.append(tree)
    name = tree.id
    repository.know_tree(name, children)
    return name


def _set(children: dict[str, Child], name: str, object_id: ObjectId | None, mode: str) -> None:
    if object_id is None:
        children.pop(name, None)
    else:
        children[name] = Child(mode, object_id)


_NONE: Final[Mapping[str, Memory]] = MappingProxyType({})


class TreeChange(NamedTuple):
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
    changes: list[TreeChange]
    pages: dict[str, Page]

    def data(self) -> dict[ObjectId, bytes]:
        """Return the bytes of the new files."""
        return {item.id: item.data for item in self.objects if item.type == BLOB}


def assemble(
    base: Snapshot,
    files: Mapping[str, bytes | None],
    unread: Container[str] = (),
    written: Mapping[str, Memory] = _NONE,
) -> Assembly:
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
    changes = [TreeChange(path, old[path], new) for path, new in edits.items() if new != old[path]]
    return Assembly(tree, objects + trees, changes, pages)


def _row(blob: Object, path: str, memory: Memory | None) -> tuple[str, Entry]:
    if memory is None:
        return row_of(blob.data, path, blob.id)
    entry = lines.entry_of(memory, blob.id, len(blob.data))
    return lines.write_line(entry), entry


def check_out(
    folder: Path, changes: Iterable[TreeChange], read: Callable[[ObjectId], bytes], scratch: str
) -> list[str]:
    """Bring checked-out files from their old to their new version.

    Returns the paths that were left alone because a person had changed them.
    """
    left = []
    seen: set[str] = set()
    top = f"{folder}"
    for change in changes:
        _refuse_links(top, change.path, seen)
        target = f"{top}/{change.path}"
        generated = is_index(change.path)
        if not _may_replace(target, change, generated=generated):
            left.append(change.path)
        elif change.new is None:
            _remove(folder, Path(target))
        else:
            _write(target, read(change.new), scratch, generated=generated)
    return left


def _remove(folder: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    disk.remove_empty_above(target, folder)


def _write(target: str, data: bytes, scratch: str, *, generated: bool) -> None:
    if generated and os.path.isfile(target):  # noqa: PTH113 - a Path costs more than the call
        disk.overwrite_file(target, data)
    else:
        disk.replace_file(target, data, scratch)


def _may_replace(target: str, change: TreeChange, *, generated: bool) -> bool:
    if generated:
        return not os.path.isdir(target)  # noqa: PTH112 - a Path costs more than the call
    try:
        fd = os.open(target, os.O_RDONLY)
    except FileNotFoundError:
        # A file that was there and is gone was removed by a person.
        return change.old is None or change.new is None
    try:
        found = object_id(BLOB, disk.read_all(fd))
    except IsADirectoryError:
        return False
    finally:
        os.close(fd)
    return found in (change.old, change.new, change.taken)


def _refuse_links(top: str, path: str, seen: set[str]) -> None:
    """Refuse to write below a link; folders that were `seen` to be none are not asked again."""
    parent = path.rpartition("/")[0]
    while parent and parent not in seen:
        if os.path.islink(f"{top}/{parent}"):  # noqa: PTH114 - a Path costs more than the call
            raise RefusedError(
                f"{top}/{parent} is a link, so nothing is written through it",
                hint="remove that link",
            )
        seen.add(parent)
        parent = parent.rpartition("/")[0]


def checked_out_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the checked-out files with their bytes; links are left out."""
    for entry in folder.iterdir():
        if entry.is_symlink() or entry.name == ".git":
            continue
        if entry.is_dir():
            yield from ((f"{entry.name}/{path}", data) for path, data in checked_out_files(entry))
        elif entry.is_file():
            yield entry.name, entry.read_bytes()


def is_lost(data: bytes | None) -> bool:
    """Whether a checked-out file is as a power cut leaves it: gone, empty, or with NULs."""
    return not data or b"\0" in data


class Made(NamedTuple):
    """A commit that is not written yet, the last of its objects, and its tree."""

    id: CommitId
    tree: Assembly
    objects: list[Object]


def signed(
    tree: ObjectId,
    parents: tuple[CommitId, ...],
    identity: Identity,
    agent: str,
    at: datetime,
    message: str,
) -> Object:
    """Return the commit of an agent, by this replica."""
    return _made(tree, parents, *identity.signs(agent, at), message)


def derived(tree: ObjectId, parents: tuple[CommitId, ...], at: datetime, subject: str) -> Object:
    """Return a commit that follows from its parents: the same on every replica."""
    author, committer = product_signs(at)
    message = messages.write((), author.name, subject=subject)
    return _made(tree, parents, author, committer, message)


def of_accesses(tree: ObjectId, identity: Identity, at: datetime) -> Object:
    """Return the parentless commit of a replica's read counts."""
    own = identity.signature(at)
    return _made(tree, (), own, own, messages.ACCESSES)


def carrying(
    base: Snapshot, files: Mapping[str, bytes | None], *, subject: str = messages.UPGRADE
) -> Made:
    """Return a commit that brings files on top of another, a function of both.

    The `subject` is that of a commit which brings no memory.
    """
    tree = assemble(base, files)
    places = [place for path in sorted(files) if (place := parse_path(path)) is not None]
    # A rewrite would take what names a memory out of the message of a commit without it.
    touches = [
        Touch(messages.CARRY, place.kind.name, place.text)
        for place in places
        if files[place.path] is not None
    ]
    author, committer = product_signs(base.commit.time)
    rest = messages.BATCH if places else subject
    head = messages.CARRY_BATCH if touches else rest
    text = messages.write(touches, author.name, subject=head)
    commit = _made(tree.tree, (base.id,), author, committer, text)
    return Made(CommitId(commit.id), tree, [*tree.objects, commit])


def carried_records(said: Tombstones, brought: Iterable[str], known: Tombstones) -> Tombstones:
    """Return the records of a commit, with what is known of the memories that it brings."""
    places = [place for path in brought if (place := parse_path(path)) is not None]
    return said | Tombstones.of({place.text: known.lives(place.text) for place in places})


def _made(
    tree: ObjectId,
    parents: tuple[CommitId, ...],
    author: Signature,
    committer: Signature,
    message: str,
) -> Object:
    return Object(COMMIT, write_commit(tree, parents, author, committer, message))
