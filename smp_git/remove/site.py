"""One session and the trash of its store: copies kept, opened and destroyed, the proof at any time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple, Unpack

from smp_git.format import document
from smp_git.format.records import Tombstones
from smp_git.git.locks import locked
from smp_git.model.errors import DamagedError, InvalidError, InvalidFileError, RefusedError
from smp_git.model.memory import MemoryId, check_text
from smp_git.model.secrets.rules import Rules
from smp_git.read.snapshot import Reader, Snapshot
from smp_git.remove import audit
from smp_git.remove.audit import DROPPED, Act, Item, Record, type_of
from smp_git.remove.history import prove
from smp_git.remove.history.journal import Receipt, is_final
from smp_git.remove.history.judge import Judge, how_many
from smp_git.remove.history.plan import effective
from smp_git.remove.history.prove import Proof
from smp_git.remove.history.search import DeadVersion
from smp_git.remove.trash import BACKUP, Trash, way_out
from smp_git.write.writer import Writer

# The reason of what was deleted on another replica.
ELSEWHERE = "deleted on another replica"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One session and the trash of its store."""

    writer: Writer
    trash: Trash
    rules: Rules

    @property
    def reader(self) -> Reader:
        """The session, to read."""
        return self.writer.reader

    def tombstones(self) -> Tombstones:
        """Return everything that was deleted, on any branch."""
        return effective(self.reader)

    def reason(self, text: str | None) -> str | None:
        """Return a reason without secrets."""
        return self.rules.text(check_text(text, "reason"))[0] if text is not None else None

    def reasons(self, given: Mapping[str, str] | None, ids: Iterable[str]) -> dict[str, str]:
        """Return the reasons of single memories without secrets; raise InvalidError for others."""
        found, names = dict[str, str](), set(ids)
        for name, text in (given or {}).items():
            if name not in names:
                raise InvalidError(
                    f"a reason is given for {name}, which is not deleted here",
                    hint="reasons of single memories are of those that are named",
                )
            found[name] = self.reason(text) or ""
        return {name: text for name, text in found.items() if text}

    def marking(self, patience_seconds: float) -> AbstractContextManager[object]:
        """Let nobody else mark what is restored meanwhile; raise LockedError after a while."""
        trash = self.trash
        return locked(
            trash.store / ".lock" / f"trash-{trash.session_id}",
            time.monotonic() + patience_seconds,
            "restoring",
        )

    def note(self, action: str, **act: Unpack[Act]) -> None:
        """Write a line of the audit log."""
        audit.note(self.trash.store, action, self.trash.session_id, **act)

    def note_once(self, action: str, **act: Unpack[Act]) -> None:
        """Write a line of the audit log unless this deletion has it."""
        wanted = audit.Filter(session=self.trash.session_id, action=action, id=act["deletion"])
        if not audit.read(self.trash.store, wanted):
            self.note(action, **act)

    def keep_receipt(
        self,
        action: str,
        receipt: Receipt,
        reason: str | None,
        reasons: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Keep the receipt of a deletion, and write its line of the audit log."""
        audit.keep_receipt(self.trash.place(receipt.deletion), receipt.as_json())
        self.note_once(
            action,
            at=receipt.at,
            by=receipt.by,
            ids=receipt.ids,
            deletion=receipt.deletion,
            reason=reason,
            reasons=reasons,
        )

    def sweep(self) -> None:
        """Settle what interrupted deletions left, unless one is under way."""
        local = self.reader.local
        if not self.trash.is_unsettled() or local.is_erasing():
            return
        # Copies are made under the lock, so none of those seen here is still being made.
        with self.writer.holding("settling deletions"):
            if not local.is_erasing():
                self.trash.sweep(self.tombstones().is_dead)


class Unsealed(NamedTuple):
    """Versions of the deleted that sealed copies hold, and sentences about those that none holds."""

    versions: tuple[DeadVersion, ...]
    unknown: tuple[str, ...]


def verify(site: Site) -> Proof:
    """Search everything for what was ever deleted; texts are unsealed in memory only."""
    known = site.tombstones()
    told = tell(site, known)
    return prove.verify(site.reader, known, told.versions, told.unknown)


def tell(site: Site, known: Tombstones, ids: Iterable[str] | None = None) -> Unsealed:
    """Return the dead versions that the copies of this session hold, of some memories or all."""
    wanted = None if ids is None else set(ids)
    judge, versions, closed = Judge(known), list[DeadVersion](), set[str]()
    records = site.trash.records()
    for record in records:
        # A restored one lives.
        names = {str(item.id) for item in record.items if item.restored_at is None}
        names &= names if wanted is None else wanted
        if not names or record.action == DROPPED:
            continue
        try:
            kept = site.trash.versions(record)
        except (DamagedError, ImportError):
            # Its key is lost, or nothing here can decrypt.
            closed |= names
            continue
        versions += (each for each in kept if each.id in names and judge.is_dead_file(each.data))
    found = {each.id for each in versions}
    unknown = [
        f"the text of {name}: its sealed copy does not open here" for name in sorted(closed - found)
    ]
    if wanted is None:
        back = {item.id for record in records for item in record.items if item.restored_at}
        unknown += _untold(how_many(known) - len(found | closed | back))
    return Unsealed(tuple(versions), tuple(unknown))


def _untold(number: int) -> list[str]:
    whose = (
        "a deleted or redacted memory"
        if number == 1
        else f"{number:,} deleted or redacted memories"
    )
    return [f"the text of {whose}, which no copy here holds"] if number > 0 else []


# Copies: kept, opened, destroyed


def keep(
    site: Site,
    deletion: str,
    versions: Sequence[DeadVersion],
    now: datetime,
    *,
    by: str,
    reason: str | None,
    reasons: Mapping[str, str] | None = None,
    action: str = "delete",
    head: Snapshot | None = None,
) -> None:
    """Seal versions with their record; both are durable when this returns.

    The ones at `head`, or as the session is, are the current ones.
    """
    head = head or site.reader.snapshot()
    present = {name: head.file(name) for name in {version.id for version in versions}}
    kept = [
        each._replace(current=each.current or each.data == present[each.id]) for each in versions
    ]
    record = Record(
        deletion=deletion,
        session_id=site.trash.session_id,
        session_uid=site.trash.uid,
        deleted_at=now,
        deleted_by=by,
        reason=reason,
        items=tuple(_items_of(versions, reasons or {})),
        recovery_deadline=now + site.trash.retention,
        backup=BACKUP,
        key=deletion,
        action=action,
    )
    site.trash.keep(record, kept)


def drop_copies(site: Site, ids: Iterable[str], *, whatever: bool = False) -> None:
    """Destroy every copy of these memories; with `whatever` those that do not open, too."""
    names = set(ids)
    for record in copies_of(site, names):
        site.trash.drop_items(record, names, whatever=whatever)


def check_droppable(site: Site, ids: Iterable[str]) -> None:
    """Raise an error if a copy of these memories holds others too and does not open, or its key is closed.

    Without its key, or with a record that cannot be read, those others could not be
    sealed anew.
    """
    names = set(ids)
    for each in site.trash.damaged():
        if names.intersection(each.ids):
            raise DamagedError(each.why, hint=way_out(each.deletion))
    copies = copies_of(site, names)
    site.trash.check_keys(copies)
    for record in copies:
        others = [item.id for item in record.items if item.id not in names]
        try:
            if others:
                site.trash.versions(record)
        except DamagedError as error:
            raise DamagedError(
                f"{error.message}, and it holds {', '.join(others)} too",
                hint="bring back its key, or purge all of them together",
            ) from error


def check_known(site: Site) -> None:
    """Raise DamagedError if nothing tells what some copy holds: it may be what is to be purged."""
    for each in site.trash.damaged():
        if not each.ids:
            raise DamagedError(each.why, hint=way_out(each.deletion))


def copies_of(site: Site, ids: Iterable[str]) -> list[Record]:
    """Return the records of the copies that hold one of these memories."""
    names = set(ids)
    return [
        record for record in site.trash.records() if any(item.id in names for item in record.items)
    ]


def _items_of(versions: Sequence[DeadVersion], reasons: Mapping[str, str]) -> Iterable[Item]:
    """Yield one item for each memory of `versions`, in their order."""
    by_id: dict[MemoryId, list[DeadVersion]] = {}
    for version in versions:
        by_id.setdefault(version.id, []).append(version)
    for name, mine in by_id.items():
        yield Item(
            id=name,
            type=type_of(name),
            timestamp=_created_at(mine[-1]),
            life=mine[-1].life,
            versions=len(mine),
            reason=reasons.get(name),
        )


def _created_at(version: DeadVersion) -> datetime:
    try:
        return document.decode(version.data, version.path).created_at
    except InvalidFileError:
        return version.at


def opened(site: Site, record: Record) -> list[DeadVersion] | None:
    """Return the versions of a copy, None if it cannot be opened."""
    try:
        return site.trash.versions(record)
    except DamagedError:
        return None


def drop_ended(site: Site) -> None:
    """Destroy the copies of what was purged or redacted, here or elsewhere.

    One whose key is out of reach waits for the next deletion or purge. Nobody can restore
    it, and its record is what tells that the key has to go.
    """
    known = site.tombstones()
    for each in site.trash.damaged():
        # Which life a damaged copy holds, nobody tells.
        lives = [(known.lives(name), life) for name in each.ids for life in known.lives(name).known]
        if any(is_final(*life) for life in lives):
            with suppress(RefusedError):
                site.trash.check_keys((), [each])
                site.trash.drop_damaged(each.deletion)
    for record in site.trash.records():
        ended = {item.id for item in record.items if is_final(known.lives(item.id), item.life)}
        if ended:
            with suppress(RefusedError):
                site.trash.check_keys([record])
                site.trash.drop_items(record, ended, whatever=True)
    site.trash.tidy()
