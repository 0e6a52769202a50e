"""The session's lock: one writer at a time, in turn, for as long as it lives."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from smp_git.errors import LockedError, StorageError
from smp_git.git.disk import storage_error

if sys.platform == "win32":
    from filelock import lock_descriptor

    def _try(fd: int) -> bool:
        return lock_descriptor(fd, blocking=False)

    def _wait(fd: int) -> None:
        lock_descriptor(fd, blocking=True)

else:
    import fcntl

    def _try(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _wait(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX)


_held: weakref.WeakSet[_Held] = weakref.WeakSet()


class _Held:
    """An open, locked lock file."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        _held.add(self)

    def release(self) -> None:
        """Give the lock up; the file stays, since removing it would let two in."""
        _held.discard(self)
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


def _forget_after_fork() -> None:
    # A child shares its parent's open file, and with it the lock.
    for held in list(_held):
        held.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


@contextmanager
def locked(path: Path, timeout_seconds: float, doing: str) -> Iterator[float]:
    """Hold the lock at `path`; yield how long it took to get it.

    Waiting is in the kernel's queue, so that a busy writer does not overtake for long.
    Raises LockedError, naming the holder, after `timeout_seconds` in all.
    """
    started = time.monotonic()
    held = _acquire(path, started + timeout_seconds, timeout_seconds)
    try:
        _sign(held.fd, doing)
        yield time.monotonic() - started
    finally:
        held.release()


def _acquire(path: Path, deadline: float, timeout_seconds: float) -> _Held:
    while True:
        fd = _open(path)
        try:
            got = _try(fd) or _wait_until(fd, deadline)
        except OSError as error:
            os.close(fd)
            raise _unlockable(path, error) from error
        if not got:
            raise LockedError(
                f"session {_session_of(path)} stayed locked for {timeout_seconds:g} s by {_holder(path)}",
                hint="try again; the lock frees itself when that process ends",
            )
        if _is_current(fd, path):
            return _Held(fd)
        os.close(fd)


def _session_of(path: Path) -> str:
    return path.parent.parent.parent.name


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    try:
        return os.open(path, flags, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StorageError(
                f"the lock file {path} is a link", hint="remove that link"
            ) from error
        raise storage_error(f"to session {_session_of(path)}", error) from error


def _unlockable(path: Path, error: OSError) -> StorageError:
    if error.errno in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
        return StorageError(
            f"the file system of {path} has no file locks", hint="keep the store on a local disk"
        )
    return storage_error(f"lock {path}", error)


def _is_current(fd: int, path: Path) -> bool:
    """Whether the locked file still is the one at `path`: a session may move meanwhile."""
    try:
        return os.path.sameopenfile(fd, fd) and os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False


def _wait_until(fd: int, deadline: float) -> bool:
    """Wait in the kernel's queue; on failure the descriptor is closed when its turn comes."""
    turn = _Turn(fd)
    threading.Thread(target=turn.wait, name="smp-lock", daemon=True).start()
    return turn.taken(max(0.0, deadline - time.monotonic()))


class _Turn:
    """A place in the queue for a lock, which can be given up."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._state = threading.Lock()
        self._given_up = False
        self._done = threading.Event()
        self._error: OSError | None = None

    def wait(self) -> None:
        """Block until the lock is ours; let it go at once if nobody wants it any more."""
        try:
            _wait(self._fd)
        except OSError as error:
            self._error = error
        with self._state:
            if self._given_up:
                with contextlib.suppress(OSError):
                    os.close(self._fd)
            self._done.set()

    def taken(self, timeout_seconds: float) -> bool:
        """Return whether the lock came within the time; raise what the system said."""
        self._done.wait(timeout_seconds)
        with self._state:
            if not self._done.is_set():
                self._given_up = True
                return False
        if self._error is not None:
            raise self._error
        return True


def _sign(fd: int, doing: str) -> None:
    text = f"process {os.getpid()} on {socket.gethostname()} ({doing}, since {time.strftime('%H:%M:%S')})"
    try:
        os.pwrite(fd, text.encode().ljust(200), 0)
    except OSError as error:
        # The name is a courtesy; a full disk is found out by the write itself.
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise


def _holder(path: Path) -> str:
    try:
        return path.read_text().strip() or "another process"
    except OSError:
        return "another process"
