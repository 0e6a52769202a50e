"""Quota of a session: advice when it is near, and room made by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

from smp_git.model.errors import CompactionFailedError, LockedError, QuotaExceededError
from smp_git.read import sizes
from smp_git.write.handle import Handle

if TYPE_CHECKING:
    from smp_git.keep.compact import Compaction

# What is found to be in vain is not tried again before the session has grown by this part.
_AGAIN: Final = 0.01
# From here on, answers are noticeably slower.
_MANY_BYTES: Final = 5_000_000
_MANY_TURNS: Final = 500
_T = TypeVar("_T")


def advice(handle: Handle) -> Iterator[str]:
    """Yield what a person should know of the size of a session."""
    snapshot, settings = handle.reader.snapshot(), handle.settings
    size, quota = sizes.tracked_bytes(handle.reader, snapshot), settings.quota_bytes
    percent = 100 * size / quota
    if percent > 100:  # noqa: PLR2004 - all of it
        yield (
            f"session {handle.name} has {size:,} of {quota:,} bytes: nothing can be added until "
            "smp compact, smp delete or a higher quota_bytes makes room"
        )
    elif percent >= settings.quota_warn_percent:
        yield f"session {handle.name} has {size:,} of {quota:,} bytes, {percent:.0f} % of its quota"
    elif size > _MANY_BYTES:
        yield f"session {handle.name} has {size:,} bytes: smp compact makes answers faster"
    turns = sum(len(page.entries) for page in snapshot.pages("turn"))
    if turns > _MANY_TURNS:
        yield f"session {handle.name} has {turns} turns: smp compact summarises the old ones"


def news(handle: Handle) -> tuple[str, ...]:
    """Return the warning of a session that came near its quota or is above it, once each time."""
    settings, local = handle.settings, handle.reader.local
    size = sizes.tracked_bytes(handle.reader, handle.reader.snapshot())
    is_near = 100 * size >= settings.quota_warn_percent * settings.quota_bytes
    level = 2 if size > settings.quota_bytes else int(is_near)
    told = local.told_of_size()
    if level != told:
        with suppress(OSError):
            local.note_told_of_size(level)
    return tuple(islice(advice(handle), 1)) if level > told else ()


def with_room(handle: Handle, write: Callable[[], _T]) -> _T:
    """Do a write; if the session has no room for it, make some and do it once more.

    What follows a write is done too: a session that comes near its quota is compacted.
    """
    try:
        done = write()
    except QuotaExceededError:
        if not handle.settings.auto_compact or not _compacted(handle, is_urgent=True):
            raise
        done = write()
    make_room(handle)
    return done


def make_room(handle: Handle) -> Compaction | None:
    """Compact a session that comes near its quota, unless that was tried in vain lately."""
    settings, reader = handle.settings, handle.reader
    size, quota = sizes.tracked_bytes(reader, reader.snapshot()), settings.quota_bytes
    if not settings.auto_compact or 100 * size < settings.quota_warn_percent * quota:
        return None
    if size < reader.local.tried() + _AGAIN * quota:
        return None
    return _compacted(handle, is_urgent=100 * size >= settings.quota_critical_percent * quota)


def _compacted(handle: Handle, *, is_urgent: bool) -> Compaction | None:
    """Compact a session; return what was done, None if nothing could be."""
    from smp_git.keep.compact import AGGRESSIVE, GENTLE, compact  # noqa: PLC0415 - few writes compact

    done = None
    # Whoever wrote has what he wanted; room is made by the next one otherwise.
    with suppress(LockedError, CompactionFailedError):
        done = compact(handle, AGGRESSIVE if is_urgent else GENTLE)
    reader = handle.reader
    size = sizes.tracked_bytes(reader, reader.snapshot())
    with suppress(OSError):
        reader.local.note_tried(size)
    return done if done is not None and done.freed_bytes > 0 else None
