"""The checked-out files: brought up to date behind a commit, never over a person's edit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from smp_git.git import disk
from smp_git.git.objects import BLOB, ObjectId, object_id
from smp_git.model.errors import RefusedError
from smp_git.model.ids import is_index
from smp_git.write.tree import Change


def check_out(folder: Path, changes: Iterable[Change], read: Callable[[ObjectId], bytes], scratch: str) -> list[str]:  # fmt: skip
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


def _write(target: str, data: bytes, scratch: str, *, generated: bool) -> None:
    if generated and os.path.isfile(target):  # noqa: PTH113 - a Path costs more than the call
        disk.overwrite_file(target, data)
    else:
        disk.replace_file(target, data, scratch)


def _may_replace(target: str, change: Change, *, generated: bool) -> bool:
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


def _remove(folder: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    disk.remove_empty_above(target, folder)


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
