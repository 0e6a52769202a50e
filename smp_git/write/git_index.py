"""Git's index refreshed behind the writes, so that it is clean whenever a person looks."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from contextlib import nullcontext, suppress
from datetime import datetime, timedelta
from typing import Final

from smp_git.git import locks, staging
from smp_git.git.repository import MAIN
from smp_git.model.errors import SmpError
from smp_git.write import recovery
from smp_git.write.writer import Writer

# After this long without a write a person may be looking.
_QUIET_SECONDS: Final = 1.0
# Another process that wrote this recently will refresh the index itself.
_RECENT: Final = timedelta(seconds=3)
# Nobody waits longer than this for what the next one may do as well.
_PATIENCE_SECONDS: Final = 0.2

_keepers: weakref.WeakSet[IndexKeeper] = weakref.WeakSet()


class IndexKeeper:
    """Refreshes the index of one session some time after its writes."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self._dirty = threading.Event()
        self._refreshing = threading.Lock()
        self._last_write = 0.0
        self._process = 0
        self._behind = False
        writer.watched = weakref.WeakMethod(self.note_write)
        writer.reader.watched = weakref.WeakMethod(self.note_moved)
        _keepers.add(self)

    def note_write(self) -> None:
        """Remember that the index is behind."""
        self._behind = True
        self.note_behind()

    def note_moved(self) -> None:
        """Remember that the session moved; whoever moved it may die before he refreshes the index."""
        self.note_behind(_RECENT.total_seconds() - _QUIET_SECONDS)

    def note_behind(self, later_seconds: float = 0.0) -> None:
        """Remember that somebody, who may be dead by now, left the index behind."""
        self._last_write = time.monotonic() + later_seconds
        if not self._dirty.is_set():
            self._dirty.set()
        if self._process != os.getpid():
            # A forked child has no thread of its own yet.
            self._process = os.getpid()
            self._refreshing = threading.Lock()
            threading.Thread(
                target=_keep, args=(weakref.ref(self),), name="smp-index", daemon=True
            ).start()

    def wait(self) -> None:
        """Wait until a write is some time ago."""
        self._dirty.wait()
        while (rest := self._last_write + _QUIET_SECONDS - time.monotonic()) > 0:
            time.sleep(rest)

    def flush(self) -> None:
        """Refresh the index now, if it was left behind."""
        if self._dirty.is_set():
            self._dirty.clear()
            mine, self._behind = self._behind, False
            refresh(self.writer, None if mine else _PATIENCE_SECONDS)

    def flush_idly(self) -> None:
        """Refresh the index if nobody writes now, and look again later otherwise.

        Nobody waits for long in the background: it would keep the next write of this
        process from its place in the queue.
        """
        with self._refreshing:
            if self not in _keepers:
                return
            self._dirty.clear()
            if not self._is_done() and not refresh(self.writer, _PATIENCE_SECONDS):
                self.note_behind()

    def _is_done(self) -> bool:
        """Whether others wrote, not we, and refreshed the index themselves."""
        reader = self.writer.reader
        with suppress(SmpError):
            return not self._behind and staging.is_current(reader.repository.git, reader.main().tree)  # fmt: skip
        return False

    def stop(self) -> None:
        """Refresh the index and keep it no longer; nothing goes on in the background after it."""
        # A forked child has the lock as it stood, but not the thread that may hold it.
        with self._refreshing if self._process == os.getpid() else nullcontext():
            _keepers.discard(self)
        self.leave()

    def leave(self) -> None:
        """Refresh the index and leave nothing in the write-ahead line."""
        self.flush()
        if self.writer.reader.repository.redo.is_used:
            with suppress(SmpError), self.writer.holding("closing", _PATIENCE_SECONDS):
                self.writer.settle(remove=True)


def _keep(reference: weakref.ref[IndexKeeper]) -> None:
    while True:
        keeper = reference()
        if keeper is None or keeper not in _keepers:
            return
        dirty = keeper._dirty  # noqa: SLF001 - the thread must not keep its keeper alive
        del keeper
        if dirty.wait(_QUIET_SECONDS) and (keeper := reference()) is not None:
            keeper.wait()
            keeper.flush_idly()
            del keeper


def _quietly(keeper: IndexKeeper) -> None:
    try:
        keeper.leave()
    except SmpError:
        # The next open finds the index behind and refreshes it.
        return


@atexit.register
def _flush_all() -> None:
    for keeper in list(_keepers):
        _quietly(keeper)


def refresh(writer: Writer, patience_seconds: float | None = None) -> bool:
    """Refresh the index unless somebody else is writing, who will do it; return whether it is."""
    reader = writer.reader
    # What was written stands without it; the next open refreshes the index.
    with suppress(SmpError), writer.holding("refreshing Git's index", patience_seconds) as now:
        writer.settle()
        if reader.repository.checked_out() == MAIN:
            tree = now.tree if reader.ref == MAIN else reader.main().tree
            return staging.refresh(reader.repository, tree)
        return True
    return False


def on_open(keeper: IndexKeeper, now: datetime) -> None:
    """Mend what a dead writer or a power cut left, unless somebody is writing now."""
    writer = keeper.writer
    reader = writer.reader
    git = reader.repository.git
    if (reader.local.folder / "erasure.json").exists() or locks.is_locked_by_us(git):
        from smp_git.remove.history.erase import resume  # noqa: PLC0415 - only after a crash

        with suppress(SmpError):
            resume(writer)
    behind = not staging.is_current(git, reader.main().tree)
    if recovery.is_needed(reader) or (behind and now - reader.snapshot().commit.time > _RECENT):
        # Reading needs none of this; the next writer repairs before it writes.
        with suppress(SmpError), writer.holding("repairing", _PATIENCE_SECONDS) as snapshot:
            recovery.repair(reader)
            if reader.repository.checked_out() == MAIN:
                staging.refresh(reader.repository, snapshot.tree)
    elif behind:
        keeper.note_behind()
