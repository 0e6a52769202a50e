"""Git's own growth: loose objects packed at close and in maintenance, small packs made one."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final

from smp_git.git import locks, packing
from smp_git.git.disk import reporting
from smp_git.git.packing import Packing
from smp_git.model.errors import SmpError
from smp_git.write.handle import Handle

# At close nothing is packed below this, and no longer than this.
MANY_LOOSE: Final = 2_000
_AT_CLOSE_SECONDS: Final = 2.0
# Nobody waits at close for what the next one may do as well.
_PATIENCE_SECONDS: Final = 0.05


def at_close(handle: Handle) -> None:
    """Pack loose objects if there are many, and nobody else is at it."""
    git = handle.reader.repository.git
    if packing.estimated_loose(git) > MANY_LOOSE:
        with suppress(SmpError):
            pack(handle, _AT_CLOSE_SECONDS, _PATIENCE_SECONDS)


def pack(handle: Handle, seconds: float, patience_seconds: float) -> Packing:
    """Pack loose objects for so long; writers and readers go on meanwhile.

    Raises LockedError if a deletion or a gc is at work for longer than the patience. While
    a deletion waits to be finished nothing is packed.
    """
    git = handle.reader.repository.git
    deadline = time.monotonic() + patience_seconds
    with (
        reporting(f"to session {handle.name}"),
        locks.rewriting(git, deadline, "packing"),
    ):
        return Packing() if handle.reader.local.is_erasing() else packing.pack_loose(git, seconds)


def merge_packs(handle: Handle, patience_seconds: float) -> int:
    """Make one pack of many small ones; return how many went into it."""
    reader, git = handle.reader, handle.reader.repository.git
    deadline = time.monotonic() + patience_seconds
    with (
        reporting(f"to session {handle.name}"),
        locks.rewriting(git, deadline, "packing"),
    ):
        packs = [] if reader.local.is_erasing() else packing.mergeable(git)
        if not packs or not packing.merge_packs(git, packs):
            return 0
        # Whoever has one of them open is told to open the session anew.
        with handle.main_writer.holding("packing"):
            gone = list(packing.remove_packs(git / "objects" / "pack", packs))
            reader.local.raise_epoch()
        reader.reopen()
        return len(gone)
