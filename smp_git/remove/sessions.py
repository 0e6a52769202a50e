"""Whole sessions moved to `deleted/`, back, and away for good."""

from __future__ import annotations

import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from smp_git.format import metadata
from smp_git.git import disk
from smp_git.git.addresses import without_login
from smp_git.git.disk import reporting
from smp_git.git.locks import locked
from smp_git.model.errors import (
    AlreadyExistsError,
    LockedError,
    RefusedError,
    SessionNotFoundError,
    SmpError,
)
from smp_git.model.memory import MemoryId
from smp_git.model.settings import Settings
from smp_git.model.times import format_time
from smp_git.read.replica import Local
from smp_git.remove import audit, seal
from smp_git.remove.audit import Item, Record
from smp_git.remove.trash import DELETED, Damaged, damaged_at, new_deletion

FOLDER: Final = "session"
_ACTION: Final = "delete_session"
_GONE: Final = ".purging-"
_REMOTE = re.compile(r'\[remote "(.+)"\]')
_URL = re.compile(r"\s*url\s*=\s*(.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReceipt:
    """What the deletion of a whole session did, and where copies of it may be left."""

    deletion: str
    session: str
    at: datetime
    by: str
    reason: str | None
    deadline: datetime
    remotes: tuple[str, ...]
    seconds: float

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "deletion": self.deletion,
            "session": self.session,
            "at": format_time(self.at),
            "by": self.by,
            "reason": self.reason,
            "deadline": format_time(self.deadline),
            "remotes": list(self.remotes),
            "seconds": round(self.seconds, 4),
        }


@contextmanager
def holding(store: Path, settings: Settings, doing: str) -> Iterator[None]:
    """Hold the lock of the store, for what moves a whole session."""
    limit = settings.lock_timeout_seconds
    try:
        with locked(store / ".lock" / "store", time.monotonic() + limit, doing):
            yield
    except LockedError as error:
        if store.name not in error.message:
            raise
        raise LockedError(
            f"the store at {store} stayed locked for {limit:g} s", hint="try again"
        ) from error


def identity_of(place: Path) -> tuple[str, str]:
    """Return the uid and the user of a session, as far as it tells: a damaged one goes too."""
    try:
        found = metadata.mapping((place / metadata.PATH).read_bytes())
    except (OSError, SmpError):
        return "", "user"
    user = found.get("user")
    return str(found.get("uid", "")), user if isinstance(user, str) else "user"


def delete(
    store: Path,
    place: Path,
    uid: str,
    settings: Settings,
    now: datetime,
    *,
    by: str,
    reason: str | None,
) -> SessionReceipt:
    """Move the session at `place` to `deleted/`; nothing in it changes."""
    started = time.monotonic()
    name = place.name
    made = Record(
        deletion=new_deletion(now),
        session_id=name,
        session_uid=uid,
        deleted_at=now,
        deleted_by=by,
        reason=reason,
        items=(Item(id=MemoryId(name), type="session", timestamp=now),),
        recovery_deadline=now + settings.retention,
        backup=FOLDER,
        action=_ACTION,
    )
    with holding(store, settings, "deleting a session"):
        remotes = remotes_of(place)
        _move_away(store, place, made, settings)
        receipt = SessionReceipt(
            deletion=made.deletion,
            session=name,
            at=now,
            by=by,
            reason=reason,
            deadline=made.recovery_deadline,
            remotes=remotes,
            seconds=time.monotonic() - started,
        )
        audit.keep_receipt(_place(store, made), receipt.as_json())
        audit.note(store, _ACTION, name, at=now, by=by, deletion=made.deletion, reason=reason)
    return receipt


def _move_away(store: Path, place: Path, made: Record, settings: Settings) -> None:
    target = _place(store, made)
    deadline = time.monotonic() + settings.lock_timeout_seconds
    with (
        reporting(f"the deletion of session {place.name}"),
        locked(Local(place / ".git").lock_path, deadline, "deleting the session"),
    ):
        disk.make_folders(target)
        disk.replace_file(target / audit.RECORD, audit.write_record(made), target / "record.tmp")
        disk.flush_folder(target)
        place.rename(target / FOLDER)
        for folder in (target, target.parent, target.parent.parent, place.parent):
            disk.flush_folder(folder)


def deleted(store: Path, retention: timedelta) -> tuple[Record, ...]:
    """Return the deletions of whole sessions, oldest first."""
    places = (path.parent for path in (store / DELETED).glob(f"*/[!.]*/{FOLDER}") if path.is_dir())
    found = (_record(place, retention) for place in places)
    return tuple(sorted(found, key=lambda item: (item.deleted_at, item.deletion)))


def _record(place: Path, retention: timedelta) -> Record:
    """Return the record of a deleted session; a damaged one is told by its receipt and the session."""
    try:
        return audit.read_record((place / audit.RECORD).read_bytes(), str(place / audit.RECORD))
    except (OSError, SmpError) as error:
        told = damaged_at(place, str(error), retention)
    uid, user = identity_of(place / FOLDER)
    at = told.deleted_at or datetime.fromtimestamp(place.stat().st_mtime, UTC)
    return Record(
        deletion=place.name,
        session_id=place.parent.name,
        session_uid=uid,
        deleted_at=at,
        deleted_by=told.deleted_by or user,
        reason=None,
        items=(),
        recovery_deadline=told.deadline or at + retention,
        backup=FOLDER,
        action=_ACTION,
    )


def find(store: Path, session_id: str, retention: timedelta) -> Record:
    """Return the latest deletion of a session; raise SessionNotFoundError."""
    found = [each for each in deleted(store, retention) if each.session_id == session_id]
    if not found:
        raise SessionNotFoundError(
            f"no session {session_id!r} was deleted", hint="smp trash --sessions lists them"
        )
    return found[-1]


def undelete(store: Path, record: Record, settings: Settings, now: datetime, *, by: str) -> Path:
    """Move a deleted session back to its place and return it."""
    home = store / "active" / record.session_id
    if now > record.recovery_deadline:
        raise RefusedError(
            f"session {record.session_id} could be brought back until "
            f"{format_time(record.recovery_deadline)}, which is past"
        )
    with holding(store, settings, "bringing a session back"):
        if home.exists():
            raise AlreadyExistsError(
                f"session {record.session_id} exists", hint="delete that one first"
            )
        place = _place(store, record)
        with reporting(f"session {record.session_id}"):
            (place / FOLDER).rename(home)
            disk.flush_folder(home.parent)
            shutil.rmtree(place)
        audit.note(
            store, "undelete_session", record.session_id, at=now, by=by, deletion=record.deletion
        )
    return home


def purge(
    store: Path,
    record: Record,
    settings: Settings,
    key_folder: Path | None,
    now: datetime,
    *,
    by: str,
    reason: str | None,
) -> tuple[Damaged, ...]:
    """Destroy a deleted session, with everything that was deleted from it before.

    Returns what is left of its name because nobody can tell whose it is: copies with
    records that cannot be read, while another session of that name is in the trash.
    """
    ring = seal.Keys(key_folder, record.session_uid, store)
    with holding(store, settings, "purging a session"):
        ours, unknown = _told_apart(store / DELETED / record.session_id, record, ring, settings)
        ring.check_destroyable(place.name for place in ours)
        for place in ours:
            ring.destroy_all(place.name)
        for place in ours:
            _destroy(place)
        _destroy_receipts(store / DELETED / record.session_id)
        audit.note(
            store,
            "purge_session",
            record.session_id,
            at=now,
            by=by,
            deletion=record.deletion,
            reason=reason,
        )
    return unknown


def _told_apart(
    folder: Path, record: Record, ring: seal.Keys, settings: Settings
) -> tuple[list[Path], tuple[Damaged, ...]]:
    """Return the deletions of one session in the folder of its name, and those of nobody knows whom.

    A copy with a damaged record is of the session that has its key, and of the only one there is.
    """
    ours, unclear, others = list[Path](), list[Damaged](), 0
    for place in sorted(path for path in folder.glob("[!.]*") if _holds_something(path)):
        try:
            is_ours = _owner(place, settings.retention) == record.session_uid
            others += not is_ours
        except (OSError, SmpError) as error:
            is_ours = ring.has(place.name)
            unclear += [] if is_ours else [damaged_at(place, str(error), settings.retention)]
        ours += [place] if is_ours else []
    if others:
        return ours, tuple(unclear)
    return [*ours, *(folder / each.deletion for each in unclear)], ()


def _owner(place: Path, retention: timedelta) -> str:
    """Return the session of a deletion; raise an error if its record does not tell."""
    if (place / FOLDER).is_dir():
        return _record(place, retention).session_uid
    path = place / audit.RECORD
    return audit.read_record(path.read_bytes(), str(path)).session_uid


def _holds_something(place: Path) -> bool:
    """Whether more than a receipt is in the folder of a deletion."""
    return any((place / name).exists() for name in (audit.RECORD, FOLDER)) or any(
        place.glob("*.sealed")
    )


def _destroy(place: Path) -> None:
    # Out of sight first, so that nothing half-removed is ever taken for a session.
    aside = place.with_name(_GONE + secrets.token_hex(4))
    with reporting(f"what is left of {place.name}"):
        place.rename(aside)
        shutil.rmtree(aside)
        disk.flush_folder(place.parent)


def _destroy_receipts(folder: Path) -> None:
    """Remove the folder of a purged session if only receipts are left in it."""
    if not any(map(_holds_something, folder.iterdir())):
        shutil.rmtree(folder)
        disk.flush_folder(folder.parent)


def sweep(store: Path, settings: Settings) -> None:
    """Finish what a purge that died left half-removed, and forget moves that never happened."""
    if not (store / DELETED).is_dir():
        return
    with holding(store, settings, "sweeping"):
        _sweep(store)


def _sweep(store: Path) -> None:
    for aside in (store / DELETED).glob(f"*/{_GONE}*"):
        shutil.rmtree(aside, ignore_errors=True)
    for path in (store / DELETED).glob(f"*/[!.]*/{audit.RECORD}"):
        try:
            record = audit.read_record(path.read_bytes(), str(path))
        except SmpError:
            continue
        if record.whole and not (path.parent / FOLDER).exists():
            shutil.rmtree(path.parent, ignore_errors=True)


def remotes_of(place: Path) -> tuple[str, ...]:
    """Return the remotes of a session, each with its address, without credentials."""
    found, name = [], None
    for line in (place / ".git" / "config").read_text("utf-8", "replace").splitlines():
        if line.lstrip().startswith("["):
            match = _REMOTE.match(line.strip())
            name = match[1] if match else None
        elif name and (match := _URL.match(line)):
            found.append(f"{name} ({without_login(match[1].strip())})")
    return tuple(found)


def _place(store: Path, record: Record) -> Path:
    return store / DELETED / record.session_id / record.deletion
