"""Open sessions: opened with what a crash left repaired, and closed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from smp_git.format.records import FORMAT
from smp_git.git import locks, staging
from smp_git.git.repository import MAIN
from smp_git.keep import growth
from smp_git.model.errors import DamagedError, SmpError
from smp_git.model.settings import Settings
from smp_git.read import sizes
from smp_git.read.counts import Accesses
from smp_git.read.snapshot import Reader
from smp_git.write import recovery
from smp_git.write.handle import Handle, Home, IndexKeeper, fold_counts

if TYPE_CHECKING:
    from smp_git.write.writer import Writer

# Another process that wrote this recently will refresh the index itself.
_RECENT: Final = timedelta(seconds=3)
# Nobody waits longer than this for what the next one may do as well.
_PATIENCE_SECONDS: Final = 0.2


def open_session(
    path: Path,
    clock: Callable[[], datetime],
    settings: Settings,
    *,
    shared: Path | None = None,
    home: Home | None = None,
) -> Handle:
    """Open the session in a folder; what a dead process left unfinished is finished first."""
    try:
        return _opened(path, clock, settings, shared, home)
    except DamagedError as error:
        raise DamagedError(
            f"session {path.name} cannot be opened: {error.message}",
            hint=f"smp -s {path.name} repair repairs it from what remains",
        ) from error


def _opened(
    path: Path,
    clock: Callable[[], datetime],
    settings: Settings,
    shared: Path | None,
    home: Home | None,
) -> Handle:
    recovery.before_reading(path)
    handle = unchecked(path, clock, settings, shared=shared, home=home)
    said = handle.reader.snapshot().metadata
    if min(said.format, said.rule) < FORMAT:
        handle.writer.before_writing = partial(_upgrade, handle.writer, clock)
    _finish_deletions(handle)
    _repair(handle)
    return handle


def unchecked(
    path: Path,
    clock: Callable[[], datetime],
    settings: Settings,
    *,
    shared: Path | None = None,
    home: Home | None = None,
) -> Handle:
    """Return a handle on a session of which nothing was read yet."""
    reader = Reader(path, durable=settings.durable)
    return Handle(
        reader=reader,
        keeper=IndexKeeper(reader, partial(_writer, reader, clock, settings)),
        accesses=Accesses(reader),
        clock=clock,
        defaults=settings,
        home=home,
        shared=shared,
    )


def _writer(reader: Reader, clock: Callable[[], datetime], settings: Settings) -> Writer:
    from smp_git.write.writer import Writer  # noqa: PLC0415 - most programs only read

    limit = settings.lock_timeout_seconds
    return Writer(reader, clock, timeout_seconds=limit, defaults=settings)


def _upgrade(writer: Writer, clock: Callable[[], datetime]) -> None:
    from smp_git.remove.history.erase import upgrade  # noqa: PLC0415 - once in a session's life

    upgrade(writer, clock())


def _finish_deletions(handle: Handle) -> None:
    """Finish a deletion that was interrupted; few programs ever delete."""
    git, local = handle.reader.repository.git, handle.reader.local
    if local.is_erasing():
        from smp_git.remove.interrupted import finish_interrupted  # noqa: PLC0415 - after a crash

        finish_interrupted(handle)
    if local.is_erasing() or locks.is_locked_by_us(git):
        from smp_git.remove.history.erase import resume  # noqa: PLC0415 - after a crash

        with suppress(SmpError):
            resume(handle.writer)


def _repair(handle: Handle) -> None:
    """Repair what a dead writer or a power cut left, unless somebody is writing now."""
    reader = handle.reader
    behind = not staging.is_current(reader.repository.git, reader.main().tree)
    is_old = handle.clock() - reader.snapshot().commit.time > _RECENT
    if recovery.is_needed(reader) or (behind and is_old):
        # Reading needs none of this; the next writer repairs before it writes.
        with suppress(SmpError), handle.writer.holding("repairing", _PATIENCE_SECONDS) as now:
            recovery.repair(reader)
            if reader.repository.checked_out() == MAIN:
                staging.refresh(reader.repository, now.tree)
    elif behind:
        handle.keeper.note_behind()


def close(handle: Handle) -> None:
    """Refresh Git's index, keep what was counted, and let go of the repository."""
    # Another handle may have moved the session away: then there is nothing to refresh.
    if handle.reader.local.folder.is_dir():
        handle.keeper.stop()
        fold_counts(handle)
        with suppress(OSError):
            sizes.keep(handle.reader)
        _pack_some(handle)
    while handle.mains:
        handle.mains.pop().reader.close()
    handle.reader.close()


def _pack_some(handle: Handle) -> None:
    if handle.keeper.has_written:
        growth.at_close(handle)
