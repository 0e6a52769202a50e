"""Read counts: how often each memory was read and when last, kept out of the branches."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, NamedTuple

from smp_git.git import references
from smp_git.git.references import ACCESS
from smp_git.model.errors import SmpError
from smp_git.model.memory import Memory
from smp_git.model.times import format_time
from smp_git.read.replica import ACCESSES
from smp_git.read.snapshot import Reader

FILE: Final = "access.json"
# Reads are noted in the journal this many at a time, and at the end.
_BATCH: Final = 64
# More than any memory is read; a number in a file that somebody else wrote may be greater.
_MOST: Final = 10**9

Counts = dict[str, tuple[int, str]]


class Access(NamedTuple):
    """The number of reads of a memory, and the last of them."""

    times: int
    last_at: datetime


class Accesses:
    """The accesses of a session: this replica's journal, and every replica's reference."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._journal = reader.local.folder / ACCESSES
        self._lock = threading.Lock()
        self._pending: Counts = {}
        self._seen: object = None
        self._totals: dict[str, Access] = {}

    def note(self, ids: Iterable[str], now: datetime) -> None:
        """Count one read of each memory."""
        moment = format_time(now)
        with self._lock:
            _add(self._pending, ((name, 1, moment) for name in ids))
            full = len(self._pending) >= _BATCH
        if full:
            self.flush()

    def take(self, counted: Mapping[str, tuple[int, datetime]]) -> None:
        """Count what was read elsewhere: how often each memory, and when last."""
        with self._lock:
            rows = ((name, times, format_time(last)) for name, (times, last) in counted.items())
            _add(self._pending, rows)
        self.flush()

    def flush(self) -> None:
        """Put what was counted into the journal; a disk that refuses loses only counts."""
        with self._lock:
            pending, self._pending = self._pending, {}
        if not pending:
            return
        line = json.dumps(pending, separators=(",", ":")).encode() + b"\n"
        with suppress(OSError):
            fd = os.open(self._journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(fd, line)
            finally:
                os.close(fd)

    def totals(self) -> Mapping[str, Access]:
        """Return how often each memory was read, on all replicas together, and when last."""
        self._follow()
        with self._lock:
            pending = dict(self._pending)
        if not pending:
            return self._totals
        return {
            **self._totals,
            **{name: _sum(self._totals.get(name), value) for name, value in pending.items()},
        }

    def last_at(self) -> datetime | None:
        """Return when any memory was read last, on any replica."""
        return max((each.last_at for each in self.totals().values()), default=None)

    def of(self, name: str) -> Access | None:
        """Return how often a memory was read, and when last."""
        self._follow()
        with self._lock:
            value = self._pending.get(name)
        known = self._totals.get(name)
        return _sum(known, value) if value else known

    def _follow(self) -> None:
        """Read what was counted since."""
        state = self._state()
        if state != self._seen:
            counts: Counts = {}
            for kept in (*self._published().values(), *self._journalled()):
                _add(counts, ((name, times, last) for name, (times, last) in kept.items()))
            self._totals = {name: _access(value) for name, value in counts.items()}
            self._seen = state

    def journal_size(self) -> int:
        """Return how many bytes the journal has."""
        try:
            return self._journal.stat().st_size
        except OSError:
            return 0

    def counted(self, ref: str) -> Counts:
        """Return what a reference says together with the journal."""
        counts = self._published().get(ref, {})
        for kept in self._journalled():
            _add(counts, ((name, times, last) for name, (times, last) in kept.items()))
        return counts

    def clear(self) -> None:
        """Remove the journal: a reference has what it said."""
        self._journal.unlink(missing_ok=True)

    def _state(self) -> object:
        folder = self._reader.repository.git / ACCESS
        heads = (
            tuple(sorted((path.name, path.stat().st_mtime_ns) for path in folder.glob("*")))
            if folder.is_dir()
            else ()
        )
        try:
            stat = self._journal.stat()
        except OSError:
            return heads
        return heads, stat.st_mtime_ns, stat.st_size, stat.st_ino

    def _published(self) -> dict[str, Counts]:
        repository = self._reader.repository
        out: dict[str, Counts] = {}
        refs, _ = references.read_each(repository.git)
        for ref, head in refs.items():
            if ref.startswith(ACCESS):
                with suppress(SmpError):
                    blob = repository.find(repository.commit(head).tree, FILE)
                    out[ref] = _counts(repository.blob(blob)) if blob else {}
        return out

    def _journalled(self) -> list[Counts]:
        try:
            lines = self._journal.read_bytes().splitlines()
        except OSError:
            return []
        return [_counts(line) for line in lines]


def with_access(memory: Memory, access: Access | None) -> Memory:
    """Return a memory with how often it was read, and when last."""
    times, last = (access.times, access.last_at) if access else (0, None)
    return replace(memory, access_count=times, last_accessed=last)


def _counts(data: bytes) -> Counts:
    """Return the counts of a line or file; a torn or foreign one counts nothing."""
    try:
        found = json.loads(data)
        return {
            str(name): (min(_MOST, max(0, int(times))), str(last))
            for name, (times, last) in found.items()
        }
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return {}


def _add(counts: Counts, more: Iterable[tuple[str, int, str]]) -> None:
    for name, times, last in more:
        known, before = counts.get(name, (0, ""))
        counts[name] = min(_MOST, known + times), max(before, last)


def _access(value: tuple[int, str]) -> Access:
    times, last = value
    try:
        return Access(times, datetime.fromisoformat(last).astimezone(UTC))
    except (ValueError, OverflowError):
        return Access(times, datetime.min.replace(tzinfo=UTC))


def _sum(known: Access | None, value: tuple[int, str]) -> Access:
    more = _access(value)
    return Access(known.times + more.times, max(known.last_at, more.last_at)) if known else more
