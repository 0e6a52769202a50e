"""Maintenance: what time alone asks for, done session by session; idempotent, and safe to kill."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from smp_git.ask import vectors
from smp_git.git import disk, packing
from smp_git.git.locks import locked
from smp_git.keep import archive, compacted, every, growth, quota, readme, retention, verified
from smp_git.keep.check import check
from smp_git.keep.verified import Verified
from smp_git.model.errors import (
    AlreadyExistsError,
    ConflictError,
    GitMissingError,
    LockedError,
    SessionArchivedError,
    SessionNotFoundError,
    SmpError,
)
from smp_git.model.lifecycle import MAINTAINER
from smp_git.model.results import Result
from smp_git.read import archives
from smp_git.remove import archive as rooms
from smp_git.remove import sessions
from smp_git.remove.purge import purge_due
from smp_git.write.handle import BACKUP, BACKUP_MANIFEST, GLOBAL, Handle, Home

# Fewer loose objects are not worth a pack.
_WORTH_PACKING: Final = 100
_PACKING_SECONDS: Final = 60.0
_VECTOR_SECONDS: Final = 60.0
_PATIENCE_SECONDS: Final = 5.0
# Below so much free space nothing is made that could wait.
_LOW_DISK_BYTES: Final = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Action(Result):
    """One thing that was done, or would be: in which session, what, and how much of it."""

    session: str
    step: str
    count: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintained(Result):
    """What a maintenance did, what a person should know, and which sessions failed.

    >>> store.maintain(dry_run=True).sessions
    1
    """

    at: datetime
    dry_run: bool
    sessions: int
    actions: tuple[Action, ...]
    notes: tuple[str, ...]
    failed: Mapping[str, SmpError]
    states: Mapping[str, str]


def maintain(home: Home, *, only: str | None = None, dry_run: bool = False) -> Maintained:
    """Do what is due in a store, or in one session of it by its whole id.

    A second run finds nothing to do; one that was killed is taken up by the next. One
    session that fails does not keep the others back. Two maintainers do not meet.
    """
    work = _Round(home, dry_run=dry_run)
    # What only looks needs no lock, and works where nothing can be written.
    with nullcontext(True) if dry_run else _alone(home) as is_alone:  # noqa: FBT003 - the block's value
        if not is_alone:
            work.notes.append("another maintenance of this store is at work; nothing was done")
            return work.done()
        for name in every.names(home) if only is None else [only]:
            work.guarded(name, work.session)
        if only is None:
            for name in archives.names(home.path):
                work.guarded(name, work.archived)
            work.guarded("", work.trash)
            work.guarded("", work.backup)
        work.keep()
    return work.done()


class _Round:
    """One maintenance under way."""

    def __init__(self, home: Home, *, dry_run: bool) -> None:
        self._home = home
        self._dry_run = dry_run
        self._now = home.clock()
        self._actions: list[Action] = []
        self._failed: dict[str, SmpError] = {}
        self._states: dict[str, str] = {}
        self._count = 0
        self._verified = Verified(home.path, self._now)
        self.notes: list[str] = []
        free = shutil.disk_usage(home.path).free
        self._has_room = free >= _LOW_DISK_BYTES
        if not self._has_room:
            self.notes.append(
                f"only {free:,} bytes are free on the disk of {home.path}: nothing is packed or archived"
            )

    def done(self) -> Maintained:
        """Return what was done."""
        return Maintained(
            at=self._now,
            sessions=self._count,
            actions=tuple(self._actions),
            notes=tuple(self.notes),
            failed=self._failed,
            states=self._states,
            dry_run=self._dry_run,
        )

    def keep(self) -> None:
        """Write down which sessions were found whole."""
        if not self._dry_run:
            self._verified.keep({*every.names(self._home), *archives.names(self._home.path)})

    def guarded(self, name: str, do: Callable[[str], None]) -> None:
        """Work on one session, and go on past it if it fails."""
        try:
            with disk.reporting(f"session {name}" if name else "the trash"):
                do(name)
        except (SessionArchivedError, SessionNotFoundError):
            # Somebody archived or deleted it meanwhile.
            return
        except SmpError as error:
            self._failed[name or "the trash"] = error

    def session(self, name: str) -> None:
        """Do what is due in a session; archive it if it was not used for long."""
        with every.opened(self._home, name) as handle:
            self._count += 1
            self._states[name] = str(handle.state(self._now))
            for step in (
                self._retention,
                self._deletions,
                self._compacted,
                self._quota,
                self._readme,
                self._index,
                self._vectors,
                self._packing,
            ):
                step(handle)
            is_due = self._is_unused(handle)
        if is_due and self._has_room:
            self._archive(name)

    def _is_unused(self, handle: Handle) -> bool:
        """Whether a session was not used for so long that it is archived."""
        thresholds = handle.settings.thresholds
        return handle.name != GLOBAL and thresholds.is_due(handle.used_at(), self._now)

    def archived(self, name: str) -> None:
        """Do what is due in an archived session, which is restored only for that."""
        self._count += 1
        self._states.setdefault(name, "archived")
        wrong = self._wrong_with(name)
        if wrong:
            self.notes.append(f"{name}: {wrong}")
        elif self._is_due_within(name):
            with archive.opened_within(self._home, name) as handle:
                self._retention(handle)
                self._deletions(handle)

    def _wrong_with(self, name: str) -> str | None:
        """Return what is wrong with an archive, which is read if that is due."""
        state = verified.of_archive(self._home.path, name)
        if not self._verified.is_due(name, state):
            return None
        wrong = rooms.whole(self._home.path, name)
        if wrong is None:
            self._verified.note(name, state)
        return wrong

    def trash(self, _: str) -> None:
        """Purge deleted sessions that are past their deadline."""
        for record in sessions.deleted(self._home):
            if record.is_due(self._now, None):
                if not self._dry_run:
                    sessions.purge_record(
                        self._home, record, self._now, MAINTAINER, "deadline passed"
                    )
                self._did(record.session_id, "purge", 1, "the deleted session is destroyed")

    def backup(self, _: str) -> None:
        """Remove the backup that a migration made, once it is past its time."""
        place = self._home.path.parent / BACKUP
        try:
            said = json.loads((place / BACKUP_MANIFEST).read_text("utf-8"))
            until = datetime.fromisoformat(said["keep_until"])
        except (OSError, ValueError, KeyError, TypeError):
            return
        if until <= self._now:
            if not self._dry_run:
                with disk.reporting(f"the backup at {place}"):
                    shutil.rmtree(place)
            self._did("", "backup", 1, f"the backup of a migration at {place} is removed")

    def _is_due_within(self, name: str) -> bool:
        """Whether memories or copies of an archived session are past their time."""
        if every.has_due(self._home, name, self._now, None):
            return True
        settings, kept = self._home.settings, archives.read(self._home.path, name)
        limits = retention.limits(settings.retention)
        oldest = kept.said.get("oldest")
        ages = oldest if isinstance(oldest, dict) else {}
        return settings.auto_purge and any(
            kind in limits and self._now - datetime.fromisoformat(str(at)) > limits[kind]
            for kind, at in ages.items()
        )

    # The steps

    def _retention(self, handle: Handle) -> None:
        found = retention.expired(handle, self._now)
        if not found.ids:
            return
        count = len(found.ids)
        if not handle.settings.auto_purge:
            self.notes.append(
                f"{handle.name}: {count} past their retention; with auto_purge they are deleted"
            )
            return
        if not self._dry_run:
            try:
                retention.remove(handle, found.ids)
            except ConflictError:
                # The next one looks again what is due.
                return
        self._did(handle.name, "retention", count, "memories past their retention are deleted")

    def _deletions(self, handle: Handle) -> None:
        done = purge_due(handle, None, by=MAINTAINER, dry_run=self._dry_run)
        if done.copies:
            self._did(handle.name, "purge", done.copies, "deletions past their deadline are final")

    def _compacted(self, handle: Handle) -> None:
        ids = compacted.due(handle, self._now)
        if ids:
            if not self._dry_run:
                try:
                    compacted.erase_due(handle, ids, self._now, MAINTAINER)
                except ConflictError:
                    # The next one looks again what is due.
                    return
            self._did(handle.name, "erase", len(ids), "removed long ago, gone from history")

    def _quota(self, handle: Handle) -> None:
        if self._dry_run:
            return
        done = quota.make_room(handle)
        if done is not None:
            self._did(handle.name, "compaction", done.freed_bytes, "bytes are freed")
        self.notes += quota.advice(handle)

    def _readme(self, handle: Handle) -> None:
        # Nobody looks at what is archived in a moment.
        if not self._has_room or self._is_unused(handle) or not readme.is_due(handle):
            return
        try:
            if not self._dry_run:
                readme.refresh(handle)
        except LockedError:
            # Somebody writes for long; the next one does it.
            return
        self._did(handle.name, "readme", 1, "README.md tells what is in the session")

    def _index(self, handle: Handle) -> None:
        state = verified.of_session(handle.reader.repository.git)
        if not self._verified.is_due(handle.name, state):
            return
        handle.keeper.flush()
        found = check(handle.reader)
        if not found:
            self._verified.note(handle.name, state)
        else:
            more = f" and {len(found) - 1} more" if found[1:] else ""
            self.notes.append(f"{handle.name}: {found[0].message}{more}; smp check says more")

    def _vectors(self, handle: Handle) -> None:
        if self._dry_run or vectors.meanings_of(handle) is None:
            return
        made = vectors.index(handle, seconds=_VECTOR_SECONDS).made
        if made:
            self._did(handle.name, "vectors", made, "vectors are made")

    def _packing(self, handle: Handle) -> None:
        loose = packing.count_loose(handle.reader.repository.git)
        if not self._has_room:
            return
        if self._dry_run:
            if loose > _WORTH_PACKING:
                self._did(handle.name, "packing", loose, "loose objects are packed")
            return
        try:
            if loose > _WORTH_PACKING:
                done = growth.pack(handle, _PACKING_SECONDS, _PATIENCE_SECONDS)
                freed = done.bytes_before - done.bytes_after
                self._did(
                    handle.name,
                    "packing",
                    done.objects,
                    f"loose objects are packed, {freed:,} bytes less",
                )
            merged = growth.merge_packs(handle, _PATIENCE_SECONDS)
        except (LockedError, GitMissingError):
            # A deletion or a gc is at work, or packs stay as they are; the next one does it.
            return
        if merged:
            self._did(handle.name, "packing", merged, "packs are made one")

    def _archive(self, name: str) -> None:
        if not self._dry_run:
            reason = "not used for long"
            try:
                archive.archive(self._home, name, reason=reason, by=MAINTAINER)
            except (LockedError, AlreadyExistsError) as error:
                self.notes.append(f"{name} is not archived: {error.message}")
                return
        self._states[name] = "archived"
        self._did(name, "archive", 1, "not used for long, so archived")

    def _did(self, name: str, step: str, count: int, message: str) -> None:
        self._actions.append(Action(session=name, step=step, count=count, message=message))


@contextmanager
def _alone(home: Home) -> Iterator[bool]:
    """Yield whether no other maintenance of a store is at work."""
    folder = home.path / ".lock" / "maintain"
    with disk.reporting(f"to the store at {home.path}"):
        disk.make_folders(folder)
    with ExitStack() as held:
        try:
            held.enter_context(locked(folder / "lock", time.monotonic(), "maintaining"))
        except LockedError:
            yield False
            return
        yield True
