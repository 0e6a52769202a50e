"""The session's lock, and Git's own: one writer at a time, and no garbage collection beside it."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from smp_git.git import disk
from smp_git.git.disk import storage_error
from smp_git.model.errors import LockedError, SessionNotFoundError, SmpError, StorageError

# Git takes an older file for one that was left behind.
_STALE_SECONDS: Final = 12 * 60 * 60
_ASKED_EVERY_SECONDS: Final = 0.02
_MOST: Final = 512
# So long is what a lock says of its holder.
_NAME_BYTES: Final = 200
# Behind what Git reads there: the process and the machine.
_OURS: Final = "smp"
# The folder of the locks of a store.
_STORE: Final = ".lock"
_OWN_LOCK: Final = "smp/gc-lock"
# One deletion or packing at a time; the next deletion waits for the proof of the one before.
REWRITING: Final = "erasing/lock"


def runs(git: Path | str) -> bool:
    """Whether a gc is at work, which keeps what was reachable when it began."""
    return _worker(git) is not None


@contextmanager
def kept_out(git: Path, deadline: float, doing: str) -> Iterator[None]:
    """Let neither `git gc` nor `git maintenance` begin, after the end of one that is at work.

    The caller sees to it that only one process is in here. Raises LockedError when the
    monotonic clock shows `deadline`.
    """
    locks = _Locks(git)
    try:
        with disk.reporting(f"to session {git.parent.name}"):
            locks.sign(doing)
            while not locks.are_taken():
                if time.monotonic() > deadline:
                    raise locks.late()
                time.sleep(_ASKED_EVERY_SECONDS)
        yield
    finally:
        # On a disk that is read-only by now they stay, and name a process that is gone.
        with suppress(OSError):
            locks.drop()


@contextmanager
def rewriting(git: Path, deadline: float, doing: str) -> Iterator[None]:
    """Be the only one who takes objects away: no deletion, no packing, no gc of Git's is at work.

    A gc that began before would put what it has read into a pack of its own afterwards.
    """
    with locked(git / REWRITING, deadline, doing), kept_out(git, deadline, doing):
        yield


def kept_out_since(git: Path) -> int:
    """Return when this process began to keep gc out, by the clock of the disk, in nanoseconds."""
    try:
        return (git / _OWN_LOCK).stat().st_mtime_ns
    except FileNotFoundError:
        return time.time_ns()


def _machine() -> str:
    import socket  # noqa: PLC0415 - who only reads locks nothing

    return socket.gethostname()


def is_locked_by_us(git: Path) -> bool:
    """Whether a process of ours keeps gc out, or died while it did."""
    return (git / _OWN_LOCK).exists()


def forget(git: Path) -> None:
    """Remove what a process of ours left that died while it kept gc out; see `kept_out`."""
    _Locks(git).drop()


class _Locks:
    """The files by which Git's own programs keep each other out, all links to one of ours."""

    def __init__(self, git: Path) -> None:
        self._git = git
        self._own = git / _OWN_LOCK
        self._gc = git / "gc.pid"
        self._gc_lock = git / "gc.pid.lock"
        self._maintenance = git / "objects" / "maintenance.lock"

    def sign(self, doing: str) -> None:
        """Say who we are, after removing what a process of ours left that died in here."""
        self.drop()
        said = f"{os.getpid()} {_machine()} {_OURS} ({doing})\n"
        self._own.write_text(said, encoding="utf-8", errors="backslashreplace")

    def are_taken(self) -> bool:
        """Take them, if nobody else has one."""
        # Not linked to look: a gc that begins at that moment would give up.
        if runs(self._git) or self._maintenance.exists():
            return False
        with suppress(FileExistsError):
            os.link(self._own, self._gc_lock)
            if not runs(self._git):
                self._gc_lock.replace(self._gc)
                os.link(self._own, self._maintenance)
                return True
        disk.drop_links(self._own, self._gc, self._gc_lock)
        return False

    def drop(self) -> None:
        """Remove those that are ours."""
        disk.drop_own_lock(self._own, self._gc, self._gc_lock, self._maintenance)

    def late(self) -> LockedError:
        """Return the error that says who has one."""
        there = [file for file in (self._maintenance, self._gc_lock) if file.exists()]
        who = _worker(self._git) or f"{there[0] if there else self._gc} is there"
        return LockedError(
            f"session {self._git.parent.name} is being packed by Git ({who})",
            hint="try again when that has ended; if no git gc or git maintenance runs, remove "
            + " and ".join(str(file) for file in there or [self._gc]),
        )


def _worker(git: Path | str) -> str | None:
    """Return which process says that it collects garbage here, None if it is none or us."""
    try:
        with open(f"{git}/gc.pid", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - asked at every write
            age = time.time() - os.fstat(file.fileno()).st_mtime
            process, _, rest = file.read(_MOST).partition(" ")
    except OSError:
        return None
    machine, _, ours = rest.strip().partition(" ")
    if age > _STALE_SECONDS or not process.isdecimal() or not machine or ours.startswith(_OURS):
        return None
    if machine == _machine() and not _lives(int(process)):
        return None
    return f"process {process} on {machine}"


def _lives(process: int) -> bool:
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


if sys.platform == "win32":

    def _wait(fd: int) -> None:
        from filelock import lock_descriptor  # noqa: PLC0415 - as in _try

        lock_descriptor(fd, poll_interval=_POLL_SECONDS)

else:
    import fcntl

    def _wait(fd: int) -> None:
        # filelock only polls: see docs/design/0002.
        fcntl.flock(fd, fcntl.LOCK_EX)


_POLL_SECONDS: Final = 0.005
# What a system says that does not lock folders: some network file systems lock only what is
# open for writing.
_NO_FOLDERS: Final = (errno.EBADF, errno.EINVAL, errno.EISDIR, errno.ENOSYS, errno.EOPNOTSUPP)


def _try(fd: int) -> bool:
    from filelock import lock_descriptor  # noqa: PLC0415 - only who takes a lock pays for it

    return lock_descriptor(fd, blocking=False)


_held: weakref.WeakSet[_Held] = weakref.WeakSet()


class _Held:
    """An open, locked lock file."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        _held.add(self)

    def release(self) -> None:
        """Give the lock up; the file stays, since removing it would let two in."""
        if self.fd >= 0:
            from filelock import unlock_descriptor  # noqa: PLC0415 - as in _try

            # A child forked meanwhile may still have the file open.
            unlock_descriptor(self.fd)
        self.forget()

    def forget(self) -> None:
        """Close the file; a lock that another process shares stays."""
        _held.discard(self)
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


def _forget_after_fork() -> None:
    # A child shares its parent's open file, and with it the lock.
    for held in list(_held):
        held.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


@contextmanager
def locked(path: Path, deadline: float, doing: str) -> Iterator[None]:
    """Hold the lock at `path`.

    Who waits gets it in turn, so that a busy writer does not overtake. Raises LockedError,
    naming the holder, when the monotonic clock shows `deadline`.
    """
    turn = _acquire(path, deadline)
    try:
        _sign(turn.file.fd, doing)
        turn.let_next_wait()
        yield
    finally:
        turn.release()


def _acquire(path: Path, deadline: float) -> _Turn:
    timeout_seconds = max(0.0, deadline - time.monotonic())
    while True:
        turn = _Turn(path)
        try:
            got = turn.take(_try) or _Waiting(turn).until(deadline)
        except OSError as error:
            turn.forget()
            raise _unlockable(path, error) from error
        if not got:
            raise _late(path, timeout_seconds)
        if _is_current(turn.file.fd, path):
            return turn
        turn.release()


class _Turn:
    """The lock file, which is the queue, and its folder, which is the lock.

    Whoever has the file is the next to have the folder, and gives the file up once it has.
    So a writer that comes back at once is behind all who wait, and whoever took the
    lock of a file that was since removed still finds the folder taken. Where the system
    locks no folders, the file is kept and is the lock.
    """

    def __init__(self, path: Path) -> None:
        self.file = _Held(_open(path))
        try:
            self._folder = _open_folder(path)
        except SmpError:
            self.file.forget()
            raise

    def take(self, how: Callable[[int], bool | None]) -> bool:
        """Take both locks, by `how`; return False if one of them is held."""
        return how(self.file.fd) is not False and self._take_folder(how)

    def _take_folder(self, how: Callable[[int], bool | None]) -> bool:
        if self._folder is None:
            return True
        try:
            return how(self._folder.fd) is not False
        except OSError as error:
            if error.errno not in _NO_FOLDERS:
                raise
            self._folder.forget()
            self._folder = None
            return True

    def let_next_wait(self) -> None:
        """Make room at the head of the queue."""
        if self._folder is not None:
            self.file.release()

    def release(self) -> None:
        """Give up what is held."""
        self.file.release()
        if self._folder is not None:
            self._folder.release()

    def forget(self) -> None:
        """Close what is open, whatever the system says of its locks."""
        self.file.forget()
        if self._folder is not None:
            self._folder.forget()


class _Waiting:
    """A place in the queue, which can be given up."""

    def __init__(self, turn: _Turn) -> None:
        self._turn = turn
        self._state = threading.Lock()
        self._given_up = False
        self._done = threading.Event()
        self._error: OSError | None = None

    def until(self, deadline: float) -> bool:
        """Return whether the turn comes in time, else give up; raise what the system says."""
        threading.Thread(target=self._wait, name="smp-lock", daemon=True).start()
        try:
            self._done.wait(max(0.0, deadline - time.monotonic()))
        except BaseException:
            # An interrupt must not leave a lock behind that comes later.
            if not self._give_up():
                self._turn.release()
            raise
        if self._give_up():
            return False
        if self._error is not None:
            raise self._error
        return True

    def _give_up(self) -> bool:
        """Give up, and return True, unless the wait is over."""
        with self._state:
            self._given_up = not self._done.is_set()
            return self._given_up

    def _wait(self) -> None:
        """Block until both locks are ours; let them go at once if nobody wants them any more."""
        try:
            self._turn.take(_wait)
        except OSError as error:
            self._error = error
        with self._state:
            if self._given_up:
                with contextlib.suppress(OSError):
                    self._turn.release()
            self._done.set()


def _late(path: Path, timeout_seconds: float) -> LockedError:
    return LockedError(
        f"session {_session_of(path)} stayed locked for {round(timeout_seconds, 1):g} s by {_holder(path)}",
        hint="try again; the lock frees itself when that process ends",
    )


def _session_of(path: Path) -> str:
    return path.parent.parent.parent.name


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    try:
        if not os.path.lexists(path) and path.parent.parent.is_dir():
            # A fresh clone has no folder for it.
            path.parent.mkdir(mode=0o700, exist_ok=True)
        return os.open(path, flags, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StorageError(
                f"the lock file {path} is a link", hint="remove that link"
            ) from error
        raise _not_opened(path, error) from error


def _open_folder(path: Path) -> _Held | None:
    """Open the folder of a lock file, where the system can."""
    if sys.platform == "win32":
        return None
    try:
        return _Held(os.open(path.parent, os.O_RDONLY))
    except OSError as error:
        raise _not_opened(path, error) from error


def _not_opened(path: Path, error: OSError) -> SmpError:
    if error.errno == errno.ENOENT:
        return SessionNotFoundError(
            f"session {_session_of(path)} is no longer at {path.parent.parent.parent}",
            hint="it was deleted or moved; smp sessions lists what is there",
        )
    if _STORE in path.parts:
        place = Path(*path.parts[: path.parts.index(_STORE)])
        return storage_error(f"to the store at {place}", error)
    return storage_error(f"to session {_session_of(path)}", error)


def _unlockable(path: Path, error: OSError) -> StorageError:
    if error.errno in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
        return StorageError(
            f"the file system of {path} has no file locks", hint="keep the store on a local disk"
        )
    return storage_error(f"lock {path}", error)


def _is_current(fd: int, path: Path) -> bool:
    """Whether the locked file still is the one at `path`: a session may move meanwhile."""
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False


def _sign(fd: int, doing: str) -> None:
    text = f"process {os.getpid()} on {_machine()} ({doing}, since {time.strftime('%H:%M:%S')})"
    try:
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, text.encode(errors="backslashreplace")[:_NAME_BYTES].ljust(_NAME_BYTES))
    except OSError as error:
        # The name is a courtesy; a full disk is found out by the write itself.
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise


def _holder(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or "another process"
    except OSError:
        return "another process"


class ThreadLock:
    """A lock of the threads of one process, given in turn."""

    def __init__(self) -> None:
        # As with file and folder: whoever has the first is the next to have the second.
        self._queue = threading.Lock()
        self._lock = threading.Lock()

    def acquire(self, deadline: float) -> bool:
        """Return whether the lock came before the monotonic clock shows `deadline`."""
        if not self._queue.acquire(timeout=max(0.0, deadline - time.monotonic())):
            return False
        try:
            return self._lock.acquire(timeout=max(0.0, deadline - time.monotonic()))
        finally:
            self._queue.release()

    def release(self) -> None:
        """Give it to the next."""
        self._lock.release()
