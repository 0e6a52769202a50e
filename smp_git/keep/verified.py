"""When maintenance last found each session whole, so that what did not change is not read every day."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from smp_git.git import disk, references
from smp_git.model.names import ARCHIVED
from smp_git.model.times import format_time
from smp_git.read.archives import ARCHIVE

# Beside the lock of maintenance: whoever removes it has everything verified anew.
_FILE: Final = ".lock/maintain/verified.json"
# Disks damage what nobody writes, too.
_AGAIN: Final = timedelta(days=7)


class Verified:
    """The sessions of a store that were found whole, each with its state and the time."""

    def __init__(self, store: Path, now: datetime) -> None:
        self._store = store
        self._now = now
        self._known: dict[str, tuple[str, datetime]] = {}
        with suppress(OSError, ValueError, TypeError, AttributeError):
            for name, (state, at) in json.loads((store / _FILE).read_bytes()).items():
                self._known[name] = str(state), datetime.fromisoformat(at)

    def is_due(self, name: str, state: str) -> bool:
        """Whether a session changed since it was found whole, or that was long ago."""
        known, at = self._known.get(name, ("", self._now))
        # A clock that was put back says nothing of the age.
        return known != state or not timedelta() <= self._now - at < _AGAIN

    def note(self, name: str, state: str) -> None:
        """Note that a session was found whole now."""
        self._known[name] = state, self._now

    def keep(self, names: Container[str]) -> None:
        """Write down what is known of some sessions, and forget the others."""
        known = {
            name: [state, format_time(at)]
            for name, (state, at) in sorted(self._known.items())
            if name in names
        }
        file = self._store / _FILE
        with suppress(OSError):
            disk.replace_file(file, json.dumps(known).encode(), file.with_suffix(".tmp"))


def of_session(git: Path) -> str:
    """Return what says whether a session changed: all that its references name."""
    refs, torn = references.read_each(git)
    said = json.dumps([sorted(refs.items()), sorted(torn.items())])
    return hashlib.sha256(said.encode()).hexdigest()


def of_archive(store: Path, name: str) -> str:
    """Return what says whether an archive changed: its size, and when it was written."""
    with disk.reporting(f"the archive of {name}"):
        found = (store / ARCHIVED / name / ARCHIVE).stat()
    return f"{found.st_size} {found.st_mtime_ns}"
