"""Git's own growth: loose objects packed at close and in maintenance, small packs made one."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from smp_git.git import locks
from smp_git.git.disk import reporting
from smp_git.model.errors import SmpError
from smp_git.write.handle import Handle

# Every close after a write looks whether there is anything to pack; few find it.
if TYPE_CHECKING:
    from smp_git.git.packing import Packing

# Of the 256 folders of loose objects these tell how many there are, as `git gc --auto` does it.
_SAMPLED: Final = ("17", "4b", "83", "d6")
_ALL: Final = 256
# At close nothing is packed below this, and no longer than this.
MANY_LOOSE: Final = 2_000
_AT_CLOSE_SECONDS: Final = 2.0
# Nobody waits at close for what the next one may do as well.
_PATIENCE_SECONDS: Final = 0.05


def at_close(handle: Handle) -> None:
    """Pack loose objects if there are many, and nobody else is at it."""
    git = handle.reader.repository.git
    if _estimated_loose(git) > MANY_LOOSE:
        with suppress(SmpError):
            pack(handle, _AT_CLOSE_SECONDS, _PATIENCE_SECONDS)


def _estimated_loose(git: Path) -> int:
    """Return about how many loose objects there are, by a look into a few folders."""
    count = 0
    for name in _SAMPLED:
        with suppress(OSError):
            count += len(os.listdir(git / "objects" / name))  # noqa: PTH208 - at every close
    return count * _ALL // len(_SAMPLED)


def pack(handle: Handle, seconds: float, patience_seconds: float) -> Packing:
    """Pack loose objects for so long; writers and readers go on meanwhile.

    Raises LockedError if a deletion or a gc is at work for longer than the patience. While
    a deletion waits to be finished nothing is packed.
    """
    from smp_git.git import packing  # noqa: PLC0415 - see above

    git = handle.reader.repository.git
    deadline = time.monotonic() + patience_seconds
    with (
        reporting(f"to session {handle.name}"),
        locks.rewriting(git, deadline, "packing"),
    ):
        return (
            packing.Packing()
            if handle.reader.local.is_erasing()
            else packing.pack_loose(git, seconds)
        )


def merge_packs(handle: Handle, patience_seconds: float) -> int:
    """Make one pack of many small ones; return how many went into it."""
    from smp_git.git import packing  # noqa: PLC0415 - see above

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
