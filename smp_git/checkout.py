"""The checked-out files: brought up to date behind a commit, never over a person's edit."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from smp_git.assembly import Change
from smp_git.errors import RefusedError
from smp_git.format.ids import is_index
from smp_git.git import disk
from smp_git.git.objects import BLOB, ObjectId, object_id


def check_out(folder: Path, changes: Iterable[Change], read: Callable[[ObjectId], bytes], scratch: Path) -> list[str]:  # fmt: skip
    """Bring checked-out files from their old to their new version.

    Returns the paths that were left alone because a person had changed them.
    """
    left = []
    seen: set[Path] = set()
    for change in changes:
        target = folder / change.path
        _refuse_links(folder, target, seen)
        if not _may_replace(target, change):
            left.append(change.path)
        elif change.new is None:
            _remove(folder, target)
        else:
            _write(target, read(change.new), scratch, generated=is_index(change.path))
    return left


def _write(target: Path, data: bytes, scratch: Path, *, generated: bool) -> None:
    if generated and target.is_file():
        disk.overwrite_file(target, data)
    else:
        disk.replace_file(target, data, scratch)


def _may_replace(target: Path, change: Change) -> bool:
    if is_index(change.path):
        return not target.is_dir()
    try:
        found = object_id(BLOB, target.read_bytes())
    except FileNotFoundError:
        # A file that was there and is gone was removed by a person.
        return change.old is None or change.new is None
    except IsADirectoryError:
        return False
    return found in (change.old, change.new, change.taken)


def _refuse_links(folder: Path, target: Path, seen: set[Path]) -> None:
    """Refuse to write below a link; folders that were `seen` to be none are not asked again."""
    parent = target.parent
    while parent != folder and parent not in seen:
        if parent.is_symlink():
            raise RefusedError(
                f"{parent} is a link, so nothing is written through it", hint="remove that link"
            )
        seen.add(parent)
        parent = parent.parent


def _remove(folder: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    parent = target.parent
    while parent != folder:
        try:
            parent.rmdir()
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                return
            raise
        parent = parent.parent


def standing(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the checked-out files with their bytes; links are left out."""
    for entry in folder.iterdir():
        if entry.is_symlink() or entry.name == ".git":
            continue
        if entry.is_dir():
            yield from ((f"{entry.name}/{path}", data) for path, data in standing(entry))
        elif entry.is_file():
            yield entry.name, entry.read_bytes()


def is_lost(data: bytes | None) -> bool:
    """Whether a checked-out file is as a power cut leaves it: gone, empty, or with NULs."""
    return not data or b"\0" in data
