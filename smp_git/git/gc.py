"""Git's garbage collection: whether one is at work here, and none while nothing may be packed."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from smp_git.git import disk
from smp_git.model.errors import LockedError

# Git takes an older file for one that was left behind.
_STALE_SECONDS: Final = 12 * 60 * 60
_ASKED_EVERY_SECONDS: Final = 0.02
_MOST: Final = 512
# Behind what Git reads there: the process and the machine.
_OURS: Final = "smp"
_OWN_LOCK: Final = "smp/gc-lock"


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


def kept_out_since(git: Path) -> int:
    """Return when this process began to keep gc out, by the clock of the disk, in nanoseconds."""
    try:
        return (git / _OWN_LOCK).stat().st_mtime_ns
    except FileNotFoundError:
        return time.time_ns()


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
        self._own.write_text(f"{os.getpid()} {socket.gethostname()} {_OURS} ({doing})\n")

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
    if machine == socket.gethostname() and not _lives(int(process)):
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
