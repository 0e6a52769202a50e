"""The folder `deleted/` of a store: one folder a deletion, with its record and its copy."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from smp_git.git import disk
from smp_git.git.disk import reporting
from smp_git.model.errors import DamagedError, SmpError
from smp_git.model.memory import MemoryId
from smp_git.model.results import Result
from smp_git.remove import audit, seal
from smp_git.remove.audit import Item, Record
from smp_git.remove.history.search import DeadVersion
from smp_git.remove.seal import Bound, Keys
from smp_git.write.handle import Home

DELETED: Final = "deleted"
BACKUP: Final = "backup.tar.gz.sealed"
# A copy that is being written, and one that is whole while its deletion is under way.
_NEW: Final = ".new-"
_KEPT: Final = ".kept-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted(Result):
    """One memory that can be restored: what its deletion's record says of it.

    >>> gone = session.delete("FIND-0001")
    >>> [each.id for each in session.trash()]
    ['FIND-0001']
    """

    id: MemoryId
    type: str
    created_at: datetime
    life: str | None
    versions: int
    deletion: str
    deleted_at: datetime
    deleted_by: str
    reason: str | None
    deadline: datetime

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {**Result.as_json(self), "life": self.life or None}


def deleted(item: Item, record: Record) -> Deleted:
    """Return what a record says of one of its memories."""
    return Deleted(
        id=item.id,
        type=item.type,
        created_at=item.timestamp,
        life=item.life,
        versions=item.versions,
        deletion=record.deletion,
        deleted_at=record.deleted_at,
        deleted_by=record.deleted_by,
        reason=item.reason or record.reason,
        deadline=record.recovery_deadline,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Damaged(Result):
    """A copy whose record cannot be read, and what its receipt and its name still tell.

    >>> session.damaged_copies()
    ()
    """

    deletion: str
    ids: tuple[MemoryId, ...]
    deleted_at: datetime | None
    deleted_by: str | None
    deadline: datetime | None
    why: str

    def is_due(self, now: datetime, older_than: datetime | None = None) -> bool:
        """Whether the deadline is past, or whether this is from before a moment."""
        if older_than:
            return self.deleted_at is not None and self.deleted_at < older_than
        return self.deadline is not None and now > self.deadline


def damaged_at(place: Path, why: str, retention: timedelta) -> Damaged:
    """Return what the receipt and the name of a deletion's folder tell of it."""
    receipt: dict[str, object] = {}
    with suppress(SmpError):
        receipt = audit.read_receipt_at(place)
    at = _moment(receipt.get("at")) or _moment_of_name(place.name)
    by = receipt.get("by")
    return Damaged(
        deletion=place.name,
        ids=tuple(MemoryId(name) for key in ("ids", "also") for name in _names(receipt.get(key))),
        deleted_at=at,
        deleted_by=str(by) if by else None,
        deadline=_moment(receipt.get("deadline")) or (at + retention if at else None),
        why=why,
    )


def _names(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


def way_out(deletion: str) -> str:
    """Return what a person can do about a copy whose record cannot be read."""
    return f"put the record back, or destroy the copy: smp purge {deletion} --now --yes"


def new_deletion(now: datetime) -> str:
    """Return the id of a deletion that begins now."""
    return f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


class Trash:
    """The deleted memories of one session that can still be brought back.

    A record is only there together with its copy; both are durable when `keep` returns,
    and count from `confirm` on, after the memories have gone.
    """

    def __init__(self, home: Home, session_id: str, uid: str) -> None:
        self.store = home.path
        self.retention = home.settings.trash_time
        self.session_id = session_id
        self.uid = uid
        self.folder = self.store / DELETED / session_id
        self._keys = Keys(home, uid)

    # Records

    def records(self) -> tuple[Record, ...]:
        """Return the deletions of memories of this session whose records can be read, oldest first.

        What destroys looks at `damaged` too.
        """
        found = [item for item in self._read() if item.session_uid == self.uid and not item.whole]
        return tuple(sorted(found, key=lambda item: (item.deleted_at, item.deletion)))

    def _read(self) -> Iterator[Record]:
        for place in _folders(self.folder):
            path = place / audit.RECORD
            # Only the receipt of a purge may be left there.
            data = disk.content(path)
            if data is not None:
                with suppress(SmpError):
                    yield audit.read_record(data, str(path))

    def record(self, record: Record) -> Record:
        """Return a record as it is now, since another restoration may have marked it."""
        path = self.place(record.deletion) / audit.RECORD
        data = disk.content(path)
        return audit.read_record(data, str(path)) if data is not None else record

    def damaged(self) -> tuple[Damaged, ...]:
        """Return the copies whose records cannot be read, oldest first."""
        found = []
        for place in _folders(self.folder):
            data = disk.content(place / audit.RECORD)
            has_copy = any(place.glob("*.sealed"))
            try:
                if data is None:
                    if has_copy:
                        raise DamagedError(f"{place / audit.RECORD} is missing")
                    continue
                audit.read_record(data, str(place / audit.RECORD))
            except SmpError as error:
                found.append(damaged_at(place, error.message, self.retention))
        return tuple(found)

    def place(self, deletion: str) -> Path:
        """Return the folder of a deletion."""
        return self.folder / deletion

    def is_unsettled(self) -> bool:
        """Whether a copy is being made, or was left by a process that died."""
        return bool(_folders(self.folder, _NEW) or _folders(self.folder, _KEPT))

    # Keeping

    def check(self) -> None:
        """Raise RefusedError if no recoverable copy can be made here."""
        self._keys.check()
        seal.check_available()

    def keep(self, record: Record, versions: Sequence[DeadVersion]) -> Record:
        """Keep versions with their record; sealed if the record names a key."""
        data = seal.packed(versions)
        if record.key:
            key = self._keys.create(record.key)
            data = seal.sealed(data, key, self._bound(record))
        aside = self.folder / (_NEW + record.deletion)
        with reporting(f"the copy of {record.deletion}"):
            disk.make_folders(aside)
            _write(aside / record.backup, data)
            _write(aside / audit.RECORD, audit.write_record(record))
            disk.flush_folder(aside)
            aside.rename(self.folder / (_KEPT + record.deletion))
            for each in (self.folder, self.folder.parent, self.store):
                disk.flush_folder(each)
        return record

    def confirm(self, deletion: str) -> None:
        """Let a copy count: its memories have gone."""
        place, kept = self.place(deletion), self.folder / (_KEPT + deletion)
        with reporting(f"the copy of {deletion}"):
            try:
                kept.rename(place)
            except FileNotFoundError:
                # Whoever swept meanwhile has confirmed it.
                if not place.is_dir():
                    raise
            disk.flush_folder(self.folder)

    def settle(self, deletion: str) -> None:
        """Let a copy count if there is one that does not yet."""
        if (self.folder / (_KEPT + deletion)).is_dir():
            self.confirm(deletion)

    def versions(self, record: Record) -> list[DeadVersion]:
        """Return the versions of a copy; raise DamagedError if it cannot be opened."""
        return self._opened(record, self.place(record.deletion))

    def _opened(self, record: Record, place: Path) -> list[DeadVersion]:
        path = place / record.backup
        try:
            data = path.read_bytes()
        except OSError:
            raise DamagedError(f"the copy of {record.deletion} is not at {path}") from None
        if record.key:
            data = seal.opened(data, self._keys.read(record.key), self._bound(record))
        return seal.unpacked(data)

    def _bound(self, record: Record) -> Bound:
        return Bound(record.deletion, self.uid, record.recovery_deadline)

    def recalled(self, deletion: str) -> list[DeadVersion]:
        """Return the versions of a deletion that may still be under way, none if they cannot be had."""
        for place in (self.place(deletion), self.folder / (_KEPT + deletion)):
            data = disk.content(place / audit.RECORD)
            if data is not None:
                with suppress(SmpError):
                    return self._opened(audit.read_record(data, str(place)), place)
        return []

    def update(self, record: Record) -> None:
        """Write a record anew."""
        place = self.place(record.deletion)
        with reporting(f"the record of {record.deletion}"):
            scratch = place / f"{audit.RECORD}.tmp"
            disk.replace_durably(place / audit.RECORD, audit.write_record(record), scratch)

    # Destroying

    def check_keys(self, records: Iterable[Record], damaged: Iterable[Damaged] = ()) -> None:
        """Raise RefusedError if the key of one of these copies is there and cannot be destroyed."""
        names = [record.key for record in records if record.key]
        self._keys.check_destroyable([*names, *(each.deletion for each in damaged)])

    def drop(self, record: Record) -> None:
        """Destroy a copy for good: its key first, then its files; its receipt stays."""
        if record.key:
            self._keys.destroy(record.key)
        place = self.place(record.deletion)
        with reporting(f"the copy of {record.deletion}"):
            for name in (record.backup, audit.RECORD):
                (place / name).unlink(missing_ok=True)
            _remove_if_empty(place)
            disk.flush_folder(self.folder if self.folder.is_dir() else self.store)

    def drop_damaged(self, deletion: str) -> None:
        """Destroy a copy whose record cannot be read: every key of its name, then its files."""
        self._keys.destroy_all(deletion)
        place = self.place(deletion)
        with reporting(f"the copy of {deletion}"):
            for path in (*place.glob("*.sealed"), place / audit.RECORD):
                path.unlink(missing_ok=True)
            _remove_if_empty(place)
            disk.flush_folder(self.folder if self.folder.is_dir() else self.store)

    def foreign(self, record: Record) -> Path | None:
        """Return the other store to which the key of a copy belongs, None if it is ours."""
        return self._keys.owner(record.key) if record.key else None

    def drop_items(self, record: Record, ids: Iterable[str], *, whatever: bool = False) -> None:
        """Destroy some memories of a copy: the others are sealed anew under another key.

        Raises DamagedError if the copy holds others and does not open; with `whatever`
        it is destroyed whole then.
        """
        names = set(ids)
        left = record.without(names)
        if not left.items:
            self.drop(record)
            return
        try:
            kept = [version for version in self.versions(record) if version.id not in names]
        except DamagedError:
            if not whatever:
                raise
            self.drop(record)
            return
        name = _next_name(record)
        fresh = replace(left, key=name if record.key else None, backup=f"{name}.tar.gz.sealed")
        data = seal.packed(kept)
        if fresh.key:
            data = seal.sealed(data, self._keys.create(fresh.key), self._bound(record))
        place = self.place(record.deletion)
        with reporting(f"the copy of {record.deletion}"):
            _write(place / fresh.backup, data)
        self.update(fresh)
        if record.key:
            self._keys.destroy(record.key)
        (place / record.backup).unlink(missing_ok=True)
        disk.flush_folder(place)

    def sweep(self, is_deleted: Callable[[str, str | None], bool]) -> None:
        """Remove what interrupted deletions left: half-made copies, copies of what lives on.

        `is_deleted` says whether a life of a memory is gone; the caller makes sure
        that no deletion is under way.
        """
        for aside in _folders(self.folder, _NEW):
            self._forget(aside, aside.name.removeprefix(_NEW))
        for place in _folders(self.folder, _KEPT):
            record = audit.read_record((place / audit.RECORD).read_bytes(), str(place))
            if any(is_deleted(item.id, item.life) for item in record.items):
                self.confirm(record.deletion)
            else:
                self._forget(place, record.deletion)

    def _forget(self, place: Path, deletion: str) -> None:
        self._keys.destroy(deletion)
        shutil.rmtree(place, ignore_errors=True)

    def tidy(self) -> None:
        """Destroy the former copies that a purge of some memories left when it died."""
        for record in self.records():
            known = {record.backup, audit.RECORD, "receipt.json"}
            for path in self.place(record.deletion).iterdir():
                if path.name not in known:
                    stem = path.name.removesuffix(".tar.gz.sealed")
                    self._keys.destroy(record.deletion if path.name == BACKUP else stem)
                    path.unlink()


def _moment(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _moment_of_name(deletion: str) -> datetime | None:
    """Return when a deletion began, as its name tells."""
    try:
        return datetime.strptime(deletion.partition("-")[0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def _next_name(record: Record) -> str:
    """Return a name for the next key of a deletion: its id, and a number from 2."""
    _, _, number = (record.key or "").removeprefix(record.deletion).partition(".")
    return f"{record.deletion}.{int(number or 1) + 1}"


def _folders(place: Path, prefix: str = "") -> list[Path]:
    """Return the folders of deletions, or those set apart by a prefix, sorted."""
    try:
        found = sorted(place.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    fits = (path for path in found if path.name.startswith(prefix or ".") == bool(prefix))
    return [path for path in fits if path.is_dir()]


def _write(path: Path, data: bytes) -> None:
    """Write a new file, durable before this returns."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        disk.write_all(fd, data)
        disk.flush(fd)
    finally:
        os.close(fd)


def _remove_if_empty(place: Path) -> None:
    for each in (place, place.parent):
        if each.is_dir() and not any(each.iterdir()):
            each.rmdir()
