"""What the disk has promised to keep: files replaced whole, data forced out."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from smp_git.errors import StorageError

# File systems whose journal keeps the order of names: forcing the data of new files
# out and then syncing one of them makes all of them durable.
_ORDERED: Final = ("ext4", "ext3", "xfs")
# sync_file_range: wait before, write, wait after.
_WRITE_AND_WAIT: Final = 1 | 2 | 4
_START_WRITING: Final = 2

_REASONS: Final = {
    errno.ENOSPC: ("the disk is full", "free some space; nothing was lost"),
    errno.EDQUOT: ("the disk quota is used up", "free some space; nothing was lost"),
    errno.EROFS: ("the disk is read-only", "remount it for writing, or use another --root"),
    errno.EACCES: ("permission denied", "check who owns the folder"),
    errno.EPERM: ("not permitted", "check who owns the folder"),
    errno.EMFILE: ("too many open files", "close some sessions, or raise the limit"),
    errno.EIO: ("the disk reports an error", "check the disk; nothing was published"),
}


@contextmanager
def reporting(what: str) -> Iterator[None]:
    """Turn an OSError of the disk into a StorageError that names `what`."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise storage_error(what, error) from error


def storage_error(what: str, error: OSError) -> StorageError:
    """Return the error that says what the disk refused."""
    reason, hint = _REASONS.get(error.errno or 0, (error.strerror or str(error), None))
    place = f" ({error.filename})" if error.filename else ""
    return StorageError(f"cannot write {what}: {reason}{place}", hint=hint)


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data`, however often the kernel takes only part."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def replace_file(path: Path | str, data: bytes, scratch: Path | str, mode: int = 0o600) -> None:
    """Make `path` hold `data`, whole or not at all; `scratch` is on the same disk."""
    fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        write_all(fd, data)
    except OSError:
        os.close(fd)
        Path(scratch).unlink(missing_ok=True)
        raise
    os.close(fd)
    rename_into(scratch, path)


def overwrite_file(path: Path | str, data: bytes) -> None:
    """Make an existing file hold `data`, in place.

    A replacement by name costs more than the rest of a commit: the file system writes
    it out at once, and passes over recently freed inodes at every creation. Only for
    files that are made anew when they are found torn.
    """
    fd = os.open(path, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0))
    try:
        write_all(fd, data)
        os.ftruncate(fd, len(data))
    finally:
        os.close(fd)


def created(path: str) -> int:
    """Return a descriptor of a new, empty, read-only file, making its folder if it is missing."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    try:
        return os.open(path, flags, 0o400)
    except FileNotFoundError:
        Path(path).parent.mkdir(mode=0o700, exist_ok=True)
        return os.open(path, flags, 0o400)


def rename_into(scratch: Path | str, path: Path | str) -> None:
    """Rename a file to its place, making the folder if it is the first there."""
    try:
        os.rename(scratch, path)  # noqa: PTH104 - a Path costs more than the call
    except FileNotFoundError:
        make_folders(Path(path).parent)
        Path(scratch).rename(path)


def make_folders(path: Path) -> None:
    """Make a folder and those above it, open to nobody else."""
    if not path.is_dir():
        make_folders(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def force_data(fds: list[int], near: str) -> bool:
    """Force the data of open new files out; return whether one sync then covers them all.

    On a file system that orders names in its journal the data is enough, and the
    caller's sync of the file that publishes them makes all durable at once. Elsewhere
    every file is synced here.
    """
    if _file_system(near) in _ORDERED and (sync := _sync_file_range()) is not None:
        for fd in fds:
            sync(fd, 0, 0, _START_WRITING)
        if all(sync(fd, 0, 0, _WRITE_AND_WAIT) == 0 for fd in fds):
            return True
    for fd in fds:
        force(fd)
    return False


def force(fd: int) -> None:
    """Force one file out to the medium."""
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415 - not on every system

        # Plain fsync leaves the data in the drive's own cache on this system.
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)


def force_folder(path: Path) -> None:
    """Force the names in a folder out, where the system can."""
    if os.name == "nt":
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@cache
def _sync_file_range() -> Any:  # noqa: ANN401 - a C function
    if not sys.platform.startswith("linux"):
        return None
    function = getattr(ctypes.CDLL(None, use_errno=True), "sync_file_range", None)
    if function is not None:
        function.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return function


@lru_cache(maxsize=64)
def _file_system(near: str) -> str:
    """Return the type of the file system that holds `near`, or an empty text."""
    try:
        device = Path(near).stat().st_dev
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return ""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in reversed(lines):
        fields = line.split(" ")
        if fields[2] == wanted:
            return fields[fields.index("-") + 1]
    return ""
