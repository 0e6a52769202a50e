"""Whole sessions: deleted, brought back, purged."""

from __future__ import annotations

import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
    StorageError,
    shown,
)
from smp_git.model.ids import SESSION_ID
from smp_git.model.memory import MemoryId, agent_name, check_text
from smp_git.model.names import ARCHIVED
from smp_git.model.results import Result
from smp_git.model.times import format_time
from smp_git.read import archives
from smp_git.read.replica import Local
from smp_git.remove import archive, audit, forgotten, seal
from smp_git.remove.audit import Item, Record
from smp_git.remove.trash import DELETED, Damaged, damaged_at, new_deletion
from smp_git.write.handle import GLOBAL, Home

FOLDER: Final = "session"
# What an archived session becomes in the trash.
ARCHIVE: Final = "archive"
_ACTION: Final = "delete_session"
_GONE: Final = ".purging-"
_REMOTE = re.compile(r'\[remote "(.+)"\]')
_URL = re.compile(r"\s*url\s*=\s*(.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReceipt(Result):
    """Receipt of the deletion of a whole session, with the places where copies may be left.

    >>> session.close()
    >>> store.delete_session("shop", reason="done").session
    'shop'
    """

    deletion: str
    session: str
    at: datetime
    by: str
    reason: str | None
    deadline: datetime
    remotes: tuple[str, ...]
    seconds: float


def actor(home: Home, by: str | None) -> str | None:
    """Return the name of who acts, None if nobody is named."""
    if not by:
        return None
    return agent_name(home.settings.rules.name(by, "the name of an agent"))


def reason_of(home: Home, reason: str | None) -> str | None:
    """Return a reason without secrets, None if there is none."""
    return home.settings.rules.text(check_text(reason or "", "reason"))[0] or None


def _active(home: Home, name: str) -> Path:
    return home.path / GLOBAL if name == GLOBAL else home.path / "active" / name


def _is_there(home: Home, name: str) -> bool:
    return (_active(home, name) / ".git").is_dir()


@contextmanager
def holding(home: Home, doing: str) -> Iterator[None]:
    """Hold the lock of the store, for what moves a whole session."""
    store, limit = home.path, home.settings.lock_timeout_seconds
    try:
        with locked(store / ".lock" / "store", time.monotonic() + limit, doing):
            yield
    except LockedError as error:
        if store.name not in error.message:
            raise
        raise LockedError(
            f"the store at {store} stayed locked for {limit:g} s", hint="try again"
        ) from error


def _identity_of(place: Path) -> tuple[str, str]:
    """Return the uid and the user of a session, as far as it tells: a damaged one goes too."""
    file = metadata.PATH if (place / ".git").exists() else archives.SUMMARY
    try:
        found = metadata.mapping((place / file).read_bytes())
    except (OSError, SmpError):
        return "", "user"
    user = found.get("user")
    return str(found.get("uid", "")), user if isinstance(user, str) else "user"


def delete(
    home: Home,
    name: str,
    reason: str | None,
    by: str | None,
    *,
    check: Callable[[Path], None] = lambda _: None,
) -> SessionReceipt:
    """Delete a session, active or archived: it moves to `deleted/` as it is, until its deadline.

    `check` looks at its folder under the lock; what it raises leaves everything as it was.
    """
    is_name = SESSION_ID.fullmatch(name) is not None
    if is_name:
        # What a killed archiving left would be a second copy, which comes back.
        archive.finish(home.path, name)
    is_archived = is_name and archives.is_archived(home.path, name)
    place = home.path / ARCHIVED / name if is_archived else _active(home, name)
    if not is_name or not (is_archived or _is_there(home, name)):
        raise SessionNotFoundError(
            f"no session {shown(name)}", hint="smp sessions lists them; give the whole id"
        )
    why, who = reason_of(home, reason), actor(home, by)
    uid, user = _identity_of(place)
    now, started = home.clock(), time.monotonic()
    made = Record(
        deletion=new_deletion(now),
        session_id=name,
        session_uid=uid,
        deleted_at=now,
        deleted_by=who or agent_name(user),
        reason=why,
        items=(Item(id=MemoryId(name), type="session", timestamp=now),),
        recovery_deadline=now + home.settings.trash_time,
        backup=ARCHIVE if is_archived else FOLDER,
        action=_ACTION,
    )
    with holding(home, "deleting a session"):
        remotes = _remotes_kept(home.path, name) if is_archived else remotes_of(place)
        _move_away(home, place, made, check)
        receipt = SessionReceipt(
            deletion=made.deletion,
            session=name,
            at=now,
            by=made.deleted_by,
            reason=why,
            deadline=made.recovery_deadline,
            remotes=remotes,
            seconds=round(time.monotonic() - started, 4),
        )
        audit.keep_receipt(_place(home.path, made), receipt.as_json())
        audit.note(
            home.path, _ACTION, name, at=now, by=receipt.by, deletion=made.deletion, reason=why
        )
    return receipt


def _move_away(home: Home, place: Path, made: Record, check: Callable[[Path], None]) -> None:
    """Move a session to `deleted/`; nothing in it changes."""
    target = _place(home.path, made)
    seconds = home.settings.lock_timeout_seconds
    with (
        reporting(f"the deletion of session {place.name}"),
        archive.alone(home.path, place.name, seconds)
        if made.backup == ARCHIVE
        else locked(
            Local(place / ".git").lock_path, time.monotonic() + seconds, "deleting the session"
        ),
    ):
        check(place)
        disk.make_folders(target)
        disk.replace_file(target / audit.RECORD, audit.write_record(made), target / "record.tmp")
        disk.flush_folder(target)
        place.rename(target / made.backup)
        for folder in (target, target.parent, target.parent.parent, place.parent):
            disk.flush_folder(folder)


def deleted(home: Home) -> tuple[Record, ...]:
    """Return the records of the deleted sessions, oldest first."""
    if (home.path / DELETED).is_dir():
        # Who reads only, or beside somebody who is at it, leaves it to the next.
        with suppress(StorageError, LockedError), holding(home, "sweeping"):
            _sweep(home.path)
    return _deleted(home.path, home.settings.trash_time)


def _deleted(store: Path, retention: timedelta) -> tuple[Record, ...]:
    places = (
        path.parent
        for kept in (FOLDER, ARCHIVE)
        for path in (store / DELETED).glob(f"*/[!.]*/{kept}")
        if path.is_dir()
    )
    found = (_record(place, retention) for place in places)
    return tuple(sorted(found, key=lambda item: (item.deleted_at, item.deletion)))


def _record(place: Path, retention: timedelta) -> Record:
    """Return the record of a deleted session; a damaged one is told by its receipt and the session."""
    try:
        return audit.read_record((place / audit.RECORD).read_bytes(), str(place / audit.RECORD))
    except (OSError, SmpError) as error:
        told = damaged_at(place, str(error), retention)
    kept = FOLDER if (place / FOLDER).is_dir() else ARCHIVE
    uid, user = _identity_of(place / kept)
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
        backup=kept,
        action=_ACTION,
    )


def _find(home: Home, name: str) -> Record:
    """Return the latest deletion of a session; raise SessionNotFoundError."""
    found = [e for e in _deleted(home.path, home.settings.trash_time) if e.session_id == name]
    if not found:
        raise SessionNotFoundError(
            f"no session {shown(name)} was deleted", hint="smp trash --sessions lists them"
        )
    return found[-1]


def undelete(home: Home, name: str, by: str | None, reason: str | None = None) -> Path:
    """Move a deleted session back to its place and return it; raise RefusedError after its deadline.

    One that was archived when it was deleted is so again.
    """
    record, who, now = _find(home, name), actor(home, by) or "user", home.clock()
    why, was_archived = reason_of(home, reason), record.backup == ARCHIVE
    name = record.session_id
    target = home.path / ARCHIVED / name if was_archived else _active(home, name)
    if now > record.recovery_deadline:
        raise RefusedError(
            f"session {record.session_id} could be brought back until "
            f"{format_time(record.recovery_deadline)}, which is past"
        )
    with holding(home, "bringing a session back"):
        if _is_there(home, record.session_id) or target.exists():
            raise AlreadyExistsError(
                f"session {record.session_id} exists", hint="delete that one first"
            )
        place = _place(home.path, record)
        with reporting(f"session {record.session_id}"):
            disk.make_folders(target.parent)
            (place / record.backup).rename(target)
            disk.flush_folder(target.parent)
            shutil.rmtree(place)
        audit.note(
            home.path,
            "undelete_session",
            record.session_id,
            at=now,
            by=who,
            deletion=record.deletion,
            reason=why,
        )
    return target


def purge(home: Home, name: str, reason: str | None, by: str | None) -> tuple[Damaged, ...]:
    """Destroy a deleted session, with the copies of what was deleted from it before.

    Returns the copies that are left: their records cannot be read, and they may be of
    another session of that name which is in the trash.
    """
    record = _purgeable(home, name)
    return purge_record(home, record, home.clock(), by, reason_of(home, reason))


def plan_purge(home: Home, name: str) -> tuple[Damaged, ...]:
    """Return the copies that a purge of a deleted session would leave; raise if there is none."""
    record = _purgeable(home, name)
    ring, folder = seal.Keys(home, record.session_uid), home.path / DELETED / record.session_id
    return _told_apart(folder, record, ring, home.settings.trash_time)[1]


def _purgeable(home: Home, name: str) -> Record:
    """Return the deletion of a session; raise RefusedError if it is not deleted."""
    if SESSION_ID.fullmatch(name) and _is_there(home, name):
        raise RefusedError(f"session {name} is not deleted", hint="delete it first")
    return _find(home, name)


def purge_record(
    home: Home, record: Record, now: datetime, by: str | None, reason: str | None
) -> tuple[Damaged, ...]:
    """Destroy one deleted session; return the copies of which nobody can tell whose they are."""
    store, who = home.path, actor(home, by) or "user"
    ring = seal.Keys(home, record.session_uid)
    with holding(home, "purging a session"):
        folder = store / DELETED / record.session_id
        ours, unknown = _told_apart(folder, record, ring, home.settings.trash_time)
        ring.check_destroyable(place.name for place in ours)
        archive.finish(store, record.session_id)
        forgotten.note_purged(store, record)
        for place in ours:
            ring.destroy_all(place.name)
        for place in ours:
            _destroy(place)
        if not any(map(_holds_something, folder.iterdir())):
            # Only receipts are left.
            shutil.rmtree(folder)
            disk.flush_folder(folder.parent)
        audit.note(
            store,
            "purge_session",
            record.session_id,
            at=now,
            by=who,
            deletion=record.deletion,
            reason=reason,
        )
    return unknown


def _told_apart(
    folder: Path, record: Record, ring: seal.Keys, retention: timedelta
) -> tuple[list[Path], tuple[Damaged, ...]]:
    """Return the deletions of one session in the folder of its name, and those of nobody knows whom.

    A copy with a damaged record is of the session that has its key, and of the only one there is.
    """
    ours, unclear, others = list[Path](), list[Damaged](), 0
    for place in sorted(path for path in folder.glob("[!.]*") if _holds_something(path)):
        try:
            is_ours = _owner(place, retention) == record.session_uid
            others += not is_ours
        except (OSError, SmpError) as error:
            is_ours = ring.has(place.name)
            unclear += [] if is_ours else [damaged_at(place, str(error), retention)]
        ours += [place] if is_ours else []
    if others:
        return ours, tuple(unclear)
    return [*ours, *(folder / each.deletion for each in unclear)], ()


def _owner(place: Path, retention: timedelta) -> str:
    """Return the session of a deletion; raise an error if its record does not tell."""
    if any((place / kept).is_dir() for kept in (FOLDER, ARCHIVE)):
        return _record(place, retention).session_uid
    path = place / audit.RECORD
    return audit.read_record(path.read_bytes(), str(path)).session_uid


def _holds_something(place: Path) -> bool:
    """Whether more than a receipt is in the folder of a deletion."""
    return any((place / name).exists() for name in (audit.RECORD, FOLDER, ARCHIVE)) or any(
        place.glob("*.sealed")
    )


def _destroy(place: Path) -> None:
    # Out of sight first, so that nothing half-removed is ever taken for a session.
    aside = place.with_name(_GONE + secrets.token_hex(4))
    with reporting(f"what is left of {place.name}"):
        place.rename(aside)
        shutil.rmtree(aside)
        disk.flush_folder(place.parent)


def _sweep(store: Path) -> None:
    """Finish what a purge that died left half-removed, and forget moves that never happened."""
    for aside in (store / DELETED).glob(f"*/{_GONE}*"):
        shutil.rmtree(aside, ignore_errors=True)
    for path in (store / DELETED).glob(f"*/[!.]*/{audit.RECORD}"):
        try:
            record = audit.read_record(path.read_bytes(), str(path))
        except SmpError:
            continue
        if record.whole and not any((path.parent / each).exists() for each in (FOLDER, ARCHIVE)):
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


def _remotes_kept(store: Path, name: str) -> tuple[str, ...]:
    """Return the names of the remotes that an archived session has."""
    try:
        found = archives.read(store, name).said.get("remotes")
    except (OSError, SmpError):
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()


def _place(store: Path, record: Record) -> Path:
    return store / DELETED / record.session_id / record.deletion
