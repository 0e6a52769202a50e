"""Memories deleted: a copy sealed, then every version erased from the history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from smp_git.format import document
from smp_git.model.errors import DamagedError, InvalidFileError
from smp_git.model.ids import parse_id
from smp_git.model.memory import MemoryId
from smp_git.model.times import format_time
from smp_git.remove import receipts
from smp_git.remove.history.erase import Receipt, Version, erase
from smp_git.remove.history.prove import verify
from smp_git.remove.record import Item, Record, type_of
from smp_git.remove.seal import Kept
from smp_git.remove.site import Site
from smp_git.remove.trash import BACKUP, new_deletion, way_out
from smp_git.remove.verify import tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a deletion would do."""

    ids: tuple[MemoryId, ...]
    purge: bool
    deadline: datetime | None

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "dry_run": True,
            "ids": list(self.ids),
            "purge": self.purge,
            "deadline": format_time(self.deadline) if self.deadline else None,
        }


def plan(site: Site, ids: Sequence[MemoryId], now: datetime, *, purge: bool) -> Plan:
    """Return what a deletion would do."""
    return Plan(ids=tuple(ids), purge=purge, deadline=None if purge else now + site.trash.retention)


def delete(site: Site, ids: Sequence[MemoryId], now: datetime, *, by: str, reason: str | None = None, reasons: Mapping[str, str] | None = None, purge: bool = False) -> Receipt:  # fmt: skip
    """Erase memories from the history; unless `purge`, what is erased can be restored.

    The sealed copy is durable before anything is erased. If this is interrupted, the
    next open of the session finishes it or leaves everything as it was.
    """
    site.sweep()
    why, each = site.reason(reason), site.reasons(reasons, ids)
    deletion = new_deletion(now)
    # Of what was deleted before only its copy tells the text.
    told = tell(site, site.tombstones(), ids) if purge else None
    done: list[Receipt] = []

    def settle(receipt: Receipt) -> None:
        if told is not None and not receipt.counts.versions:
            receipt = replace(receipt, proof=verify(site.reader, site.tombstones(), told.versions, told.unknown))  # fmt: skip
        if purge:
            drop_copies(site, receipt.ids)
        else:
            site.trash.confirm(deletion)
        done.append(receipt)
        receipts.keep(site.trash.place(deletion), receipt.as_json())
        site.note_once("purge" if purge else "delete", at=now, by=by, ids=receipt.ids, deletion=deletion, reason=why, reasons=each)  # fmt: skip

    def seal(versions: Sequence[Version]) -> None:
        keep(site, deletion, versions, now, by=by, reason=why, reasons=each)

    if purge:
        check_droppable(site, ids)
    else:
        site.trash.check()
    erase(
        site.writer,
        ids,
        purge=purge,
        reason=why,
        reasons=each,
        by=by,
        seal=None if purge else seal,
        now=now,
        deletion=deletion,
        deadline=None if purge else now + site.trash.retention,
        settle=settle,
    )
    return done[0]


def keep(site: Site, deletion: str, versions: Sequence[Version], now: datetime, *, by: str, reason: str | None, reasons: Mapping[str, str] | None = None, more: Sequence[Kept] = ()) -> None:  # fmt: skip
    """Seal versions with their record; both are durable when this returns."""
    record = Record(
        deletion=deletion,
        session_id=site.trash.session_id,
        session_uid=site.trash.uid,
        deleted_at=now,
        deleted_by=by,
        reason=reason,
        items=(*items_of(versions, reasons), *map(_item, more)),
        recovery_deadline=now + site.trash.retention,
        backup=BACKUP,
        key=deletion,
    )
    site.trash.keep(record, [*kept(site, versions), *more])


def drop_copies(site: Site, ids: Iterable[str], *, whatever: bool = False) -> None:
    """Destroy every copy of these memories; with `whatever` those that do not open, too."""
    names = set(ids)
    for record in copies_of(site, names):
        site.trash.drop_items(record, names, whatever=whatever)


def check_droppable(site: Site, ids: Iterable[str]) -> None:
    """Raise DamagedError if a copy of these memories holds others too and does not open.

    Without its key those others could not be sealed anew. A copy whose record cannot be
    read is not passed over either: nobody knows for sure what it holds.
    """
    names = set(ids)
    for each in site.trash.damaged():
        raise DamagedError(each.why, hint=way_out(each.deletion))
    for record in copies_of(site, names):
        others = [item.id for item in record.items if item.id not in names]
        try:
            if others:
                site.trash.versions(record)
        except DamagedError as error:
            raise DamagedError(
                f"{error.message}, and it holds {', '.join(others)} too",
                hint="bring back its key, or purge all of them together",
            ) from error


def copies_of(site: Site, ids: Iterable[str]) -> list[Record]:
    """Return the records of the copies that hold one of these memories."""
    names = set(ids)
    return [
        record
        for record in site.trash.records(readable=True)
        if any(item.id in names for item in record.items)
    ]


def kept(site: Site, versions: Sequence[Version]) -> list[Kept]:
    """Return versions as a copy keeps them; the ones at head are the current ones."""
    head = site.reader.snapshot()
    present = {name: head.file(name) for name in {version.id for version in versions}}
    return [
        Kept(
            id=version.id,
            life=version.life,
            at=version.at,
            agent=version.agent,
            commit=version.commit,
            current=version.data == present[version.id],
            data=version.data,
        )
        for version in versions
    ]


def items_of(versions: Sequence[Version], reasons: Mapping[str, str] | None = None) -> Iterable[Item]:  # fmt: skip
    """Yield one item for each memory of `versions`, in their order."""
    by_id: dict[MemoryId, list[Version]] = {}
    for version in versions:
        by_id.setdefault(version.id, []).append(version)
    for name, mine in by_id.items():
        yield Item(
            id=name,
            type=type_of(name),
            timestamp=_created_at(mine[-1]),
            life=mine[-1].life,
            versions=len(mine),
            reason=(reasons or {}).get(name),
        )


def _item(version: Kept) -> Item:
    created = document.decode(version.data, parse_id(version.id).path).created_at
    return Item(id=version.id, type=type_of(version.id), timestamp=created, life=version.life)


def _created_at(version: Version) -> datetime:
    try:
        return document.decode(version.data, version.path).created_at
    except InvalidFileError:
        return version.at
