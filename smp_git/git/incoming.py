"""Folders for what is not trusted yet: locked while in use, removed when their owner is gone."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Final

from smp_git.git import disk
from smp_git.git.locks import locked
from smp_git.model.errors import LockedError

PLACE: Final = Path("syncing") / "incoming"
_LOCK: Final = "lock"
_PATIENCE_SECONDS: Final = 30.0


@contextmanager
def folder(git: Path) -> Iterator[Path]:
    """Yield a new folder of a session that is removed at the end, or by the next who looks."""
    place = git / PLACE
    sweep(git)
    disk.make_folders(place)
    made = place / secrets.token_hex(8)
    with ExitStack() as use:
        with _alone(place):
            made.mkdir(mode=0o700)
            use.enter_context(_alone(made))
        use.callback(disk.remove_folder, made)
        yield made


def sweep(git: Path) -> int:
    """Remove the folders whose owners are gone; return how many."""
    place = git / PLACE
    if not place.is_dir():
        return 0
    count = 0
    with _alone(place):
        for each in place.iterdir():
            if each.is_dir() and not _is_in_use(each):
                disk.remove_folder(each)
                count += 1
    return count


def _alone(place: Path) -> AbstractContextManager[None]:
    return locked(place / _LOCK, time.monotonic() + _PATIENCE_SECONDS, "syncing")


def _is_in_use(made: Path) -> bool:
    try:
        with locked(made / _LOCK, time.monotonic(), "sweeping"):
            return False
    except LockedError:
        return True
