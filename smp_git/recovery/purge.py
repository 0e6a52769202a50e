"""Deleted memories made unrecoverable: the fact published, then copies and keys destroyed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from smp_git.erasure import proof
from smp_git.erasure.erase import erase
from smp_git.erasure.proof import Proof
from smp_git.errors import InvalidError, MemoryNotFoundError, RefusedError
from smp_git.format.ids import parse_id
from smp_git.memory import MemoryId, aware
from smp_git.recovery.deletion import check_droppable, copies_of, drop_copies
from smp_git.recovery.record import DROPPED, Record
from smp_git.recovery.site import Site
from smp_git.recovery.verification import tell
from smp_git.when import parse_duration, parse_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """What a purge destroyed: memories, how many copies of them, and whole sessions.

    `proof` is of memories that were named; their copies told the texts once more.
    """

    ids: tuple[MemoryId, ...]
    copies: int
    sessions: tuple[str, ...] = ()
    dry_run: bool = False
    proof: Proof | None = None

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "ids": list(self.ids),
            "copies": self.copies,
            "sessions": list(self.sessions),
            "dry_run": self.dry_run,
            "proof": self.proof.as_json() if self.proof else None,
        }


def due(site: Site, now: datetime, older_than: datetime | None = None) -> tuple[Record, ...]:
    """Return the deletions past their deadline, or from before a moment."""
    return tuple(record for record in site.trash.records() if record.is_due(now, older_than))


def moment_before(age: datetime | str | timedelta | None, now: datetime) -> datetime | None:
    """Return the moment that an age, a duration or a time names, seen from `now`."""
    if isinstance(age, timedelta):
        return now - age
    if not isinstance(age, str):
        return aware(age) if age is not None else None
    try:
        return now - parse_duration(age)
    except ValueError:
        pass
    try:
        return parse_time(age, now)
    except ValueError as error:
        raise InvalidError(str(error)) from None


def named(site: Site, ids: Iterable[str]) -> tuple[MemoryId, ...]:
    """Return the ids of deleted memories; raise an error that names one that is not."""
    names = tuple(dict.fromkeys(parse_id(name).text for name in ids))
    known, head = site.tombstones(), site.reader.snapshot()
    for name in names:
        if head.blob(name) is not None:
            raise RefusedError(
                f"{name} is not deleted", hint="delete it for good with smp delete and --purge"
            )
        if not known.names(name) and not copies_of(site, [name]):
            raise MemoryNotFoundError(f"no memory {name} was deleted", hint="smp trash lists them")
    return names


def purge(site: Site, ids: Sequence[MemoryId], now: datetime, *, by: str, reason: str | None = None) -> Purged:  # fmt: skip
    """Make deleted memories unrecoverable, here and wherever this session is synced to."""
    why = site.reason(reason)
    check_droppable(site, ids)
    copies = len(copies_of(site, ids))
    told = tell(site, site.tombstones(), ids)
    _publish(site, ids, now, by)
    drop_copies(site, ids)
    site.note("purge", at=now, by=by, ids=ids, reason=why)
    found = proof.verify(site.reader, site.tombstones(), told.versions, told.unknown)
    return Purged(ids=tuple(ids), copies=copies, proof=found)


def purge_due(site: Site, records: Sequence[Record], now: datetime, *, by: str) -> Purged:
    """Destroy the copies of whole deletions; what was restored meanwhile lives on."""
    site.sweep()
    head = site.reader.snapshot()
    # What only a dropped branch held was never deleted, and may stand on another.
    deletions = [record for record in records if record.action != DROPPED]
    gone = [
        i.id for r in deletions for i in r.items if not i.restored_at and head.blob(i.id) is None
    ]
    ids = tuple(dict.fromkeys(gone))
    _publish(site, ids, now, by)
    for record in records:
        site.trash.drop(record)
    if records:
        site.note("purge", at=now, by=by, ids=ids, reason="deadline passed")
    return Purged(ids=ids, copies=len(records))


def _publish(site: Site, ids: Sequence[MemoryId], now: datetime, by: str) -> None:
    known = site.tombstones()
    left = [name for name in ids if known.names(name) and not known.is_purged(name)]
    if left:
        erase(site.writer, left, purge=True, by=by, now=now)
