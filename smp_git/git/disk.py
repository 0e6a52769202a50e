"""Files replaced whole, and made durable by fsync or what does the same for less."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from smp_git.model.errors import SmpError, StorageError, StorageFullError

# File systems whose journal keeps the order of names: once the data of new files is out,
# syncing the one renamed last commits what made them and their names as well.
_ORDERED: Final = ("ext4", "ext3", "xfs")
# Without a journal nothing covers the others; one sync of the whole is the cheapest.
_UNORDERED: Final = ("ext4", "ext2")
# sync_file_range: wait before, write, wait after.
_WRITE_AND_WAIT: Final = 1 | 2 | 4
_START_WRITING: Final = 2
# A gc removes folders that are empty for a moment, one just made for a file among them.
_TRIES: Final = 100
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
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
    except SmpError:
        # Some of ours are an OSError too, such as the one of a lock.
        raise
    except OSError as error:
        raise storage_error(what, error) from error


def storage_error(what: str, error: OSError) -> StorageError:
    """Return the error that says what the disk refused."""
    reason, hint = _REASONS.get(error.errno or 0, (error.strerror or str(error), None))
    place = f" ({error.filename})" if error.filename else ""
    kind = StorageFullError if error.errno in _FULL else StorageError
    return kind(f"cannot write {what}: {reason}{place}", hint=hint)


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data`, however often the kernel takes only part."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read_all(fd: int) -> bytes:
    """Return what is left to read of an open file."""
    parts = []
    while part := os.read(fd, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def content(path: Path) -> bytes | None:
    """Return the bytes of a file, None if there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def replace_file(path: Path | str, data: bytes, scratch: Path | str) -> None:
    """Make `path` hold `data`, whole or not at all; `scratch` is on the same disk."""
    fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        write_all(fd, data)
    except OSError:
        os.close(fd)
        Path(scratch).unlink(missing_ok=True)
        raise
    os.close(fd)
    rename_into(scratch, path)


def replace_durably(path: Path | str, data: bytes, scratch: Path | str) -> None:
    """Make `path` hold `data`, durable when this returns."""
    fd = create_file(str(scratch), 0o600)
    try:
        write_all(fd, data)
        flush(fd)
    except OSError:
        Path(scratch).unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)
    rename_into(scratch, path)
    flush_folder(Path(path).parent)


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


def create_file(path: str, mode: int = 0o400) -> int:
    """Return a descriptor of a new, empty file, making its folder if it is missing."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    try:
        return os.open(path, flags, mode)
    except FileNotFoundError:
        Path(path).parent.mkdir(mode=0o700, exist_ok=True)
    except PermissionError:
        # Read-only, and left by a dead process.
        os.unlink(path)  # noqa: PTH108 - a Path costs more than the call
    return os.open(path, flags, mode)


@contextmanager
def linked(own: Path, lock: Path, seconds: float) -> Iterator[bool]:
    """Hold a lock file of Git's, a link to `own`; yield False if somebody else keeps it.

    The caller holds a lock of ours, so that what a dead process left can be told from
    what a live one has. The lock file may be renamed to the place that it guards.
    """
    drop_own_lock(own, lock)
    own.touch(0o600)
    deadline = time.monotonic() + seconds
    try:
        while True:
            try:
                os.link(own, lock)
                break
            except FileExistsError:
                if time.monotonic() > deadline:
                    yield False
                    return
                time.sleep(0.01)
        yield True
    finally:
        drop_own_lock(own, lock)


def drop_own_lock(own: Path, *locks: Path) -> None:
    """Remove the lock files that a process of ours linked from `own`, and `own` with them.

    The caller holds the lock under which they are made, so no live process of ours has them.
    """
    drop_links(own, *locks)
    own.unlink(missing_ok=True)


def drop_links(own: Path, *places: Path) -> None:
    """Remove those files that are the same as `own`."""
    for place in places:
        with suppress(FileNotFoundError):
            if own.samefile(place):
                place.unlink()


def rename_into(scratch: Path | str, path: Path | str) -> None:
    """Rename a file to its place, making the folder if it is the first there."""
    for left in reversed(range(_TRIES)):
        try:
            os.rename(scratch, path)  # noqa: PTH104 - a Path costs more than the call
        except FileNotFoundError:
            if not left or not os.path.lexists(scratch):
                raise
            make_folders(os.path.dirname(path))  # noqa: PTH120
        except IsADirectoryError:
            if not left:
                raise
            remove_empty_folders(path)
        else:
            return


def remove_empty_above(path: Path, top: Path) -> None:
    """Remove the folders in which something was, up to `top`, as far as they are empty now."""
    for folder in path.parents:
        if folder == top:
            return
        try:
            folder.rmdir()
        except OSError:
            return


def remove_empty_folders(path: Path | str) -> None:
    """Remove a folder in which there are only folders."""
    with os.scandir(path) as entries:
        for entry in entries:
            remove_empty_folders(entry.path)
    os.rmdir(path)  # noqa: PTH106 - a Path costs more than the call


def remove_folder(path: Path | str) -> None:
    """Remove a folder that is open to nobody else, as far as it can be; no link is followed."""
    try:
        _remove_folder(f"{path}")
    except OSError:
        import shutil  # noqa: PLC0415 - it loads what unpacks archives

        shutil.rmtree(path, ignore_errors=True)


def _remove_folder(path: str) -> None:
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _remove_folder(entry.path)
            else:
                os.unlink(entry.path)  # noqa: PTH108 - a Path costs more than the call
    os.rmdir(path)  # noqa: PTH106 - as above


def make_folders(path: Path | str) -> None:
    """Make a folder and those above it, open to nobody else."""
    try:
        os.mkdir(path, 0o700)  # noqa: PTH102 - a Path costs more than the call
    except FileNotFoundError:
        make_folders(os.path.dirname(path) or ".")  # noqa: PTH120
        make_folders(path)
    except OSError:
        # On a disk that is full or read-only what is there is all the same.
        if not os.path.isdir(path):  # noqa: PTH112
            raise


def flush_data(fds: list[int], folders: Iterable[str], near: str) -> None:
    """Fsync open new files in `folders`, before another file names them.

    On a file system that orders names in its journal the data is enough: `flush_name`
    of the file that publishes them makes all durable at once. Elsewhere everything is
    durable here.
    """
    kind, journal = _file_system(near)
    if journal and kind in _ORDERED and (sync := _function("sync_file_range")) is not None:
        for fd in fds:
            sync(fd, 0, 0, _START_WRITING)
        if all(sync(fd, 0, 0, _WRITE_AND_WAIT) == 0 for fd in fds):
            return
    if not journal and kind in _UNORDERED and fds and _sync_whole(fds[0]):
        return
    for fd in fds:
        flush(fd)
    for folder in folders:
        _flush_folder_of_git(folder)


def flush_name(fd: int, folder: Path | str, near: str) -> None:
    """Fsync an open file together with the name it was just given in `folder`."""
    kind, journal = _file_system(near)
    if not journal and kind in _UNORDERED and _sync_whole(fd):
        return
    flush(fd)
    if not journal or kind not in _ORDERED:
        _flush_folder_of_git(folder)


def flush_names(folder: str) -> None:
    """Make the names of files whose data was fsynced durable before any reference is."""
    kind, journal = _file_system(folder)
    if journal and kind in _ORDERED:
        # What was written before a new file was made is in its transaction or an earlier one.
        scratch = f"{folder}/tmp_obj_smp_last"  # noqa: S108 - in the object store, as Git has it
        fd = os.open(scratch, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
            Path(scratch).unlink(missing_ok=True)


def _sync_whole(fd: int) -> bool:
    function = _function("syncfs")
    return function is not None and function(fd) == 0


def flush(fd: int) -> None:
    """Fsync one file."""
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415 - not on every system

        # Plain fsync leaves the data in the drive's own cache on this system.
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)


@cache
def boot() -> str:
    """Return the id of this start of the machine, empty where the system has none."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def _flush_folder_of_git(path: Path | str) -> None:
    # Git removes the folder as soon as it has packed what was in it, and fsyncs the pack.
    with suppress(FileNotFoundError):
        flush_folder(path)


def flush_folder(path: Path | str) -> None:
    """Fsync the names in a folder, where the system can."""
    if os.name == "nt":
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@cache
def _function(name: str) -> Any:  # noqa: ANN401 - a C function
    if not sys.platform.startswith("linux"):
        return None
    import ctypes  # noqa: PLC0415 - for writers only

    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is not None:
        arguments = {
            "sync_file_range": (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint),
            "syncfs": (ctypes.c_int,),
        }
        function.argtypes = arguments[name]
    return function


@lru_cache(maxsize=64)
def _file_system(near: str) -> tuple[str, bool]:
    """Return the type of the file system that holds `near`, and whether it keeps a journal."""
    try:
        device = Path(near).stat().st_dev
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return "", False
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in reversed(lines):
        fields = line.split(" ")
        if fields[2] == wanted:
            kind = fields[fields.index("-") + 1]
            return kind, kind in ("ext3", "xfs") or (kind == "ext4" and _has_journal(wanted))
    return "", False


def _has_journal(device: str) -> bool:
    """Whether an ext4 keeps a journal; one that does not say counts as without."""
    name = Path(f"/sys/dev/block/{device}").resolve().name
    try:
        task = Path(f"/sys/fs/ext4/{name}/journal_task").read_text().strip()
    except OSError:
        return bool(list(Path("/proc/fs/jbd2").glob(f"{name}-*")))
    return task not in ("", "<none>")
