"""Purge: deleted memories made unrecoverable; sealed copies that follow the records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, NamedTuple

from smp_git.model.errors import MemoryNotFoundError, RefusedError
from smp_git.model.ids import parse_id
from smp_git.model.memory import MemoryId
from smp_git.model.results import Result
from smp_git.model.times import When, moment_of, parse_duration
from smp_git.remove.audit import DROPPED, Record
from smp_git.remove.delete import put_right
from smp_git.remove.history import prove
from smp_git.remove.history.erase import erase
from smp_git.remove.history.journal import Receipt, RewriteOrder
from smp_git.remove.history.prove import Proof
from smp_git.remove.interrupted import site_of
from smp_git.remove.site import (
    Site,
    check_droppable,
    check_known,
    copies_of,
    drop_copies,
    drop_ended,
    tell,
)
from smp_git.remove.trash import Damaged, new_deletion
from smp_git.write.handle import Handle

_DUE: Final = "deadline passed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged(Result):
    """Result of a purge: memories, how many copies of them, and whole sessions.

    `proof` is of memories that were named; their copies told the texts once more.
    `kept_keys` are the stores that have the keys of copies that were destroyed here: a
    copied store cannot destroy what the original can restore. `damaged` are the deletions
    whose copies were destroyed without a readable record. `left` says what could not be
    purged, and why; only a purge of a whole store goes on past such a thing.

    >>> session.delete("FIND-0001").ids
    ('FIND-0001',)
    >>> session.purge("FIND-0001").ids
    ('FIND-0001',)
    """

    ids: tuple[MemoryId, ...]
    copies: int
    sessions: tuple[str, ...] = ()
    dry_run: bool = False
    proof: Proof | None = None
    kept_keys: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class Due(NamedTuple):
    """The copies that a purge destroys whole; of the damaged ones nobody knows all that is in them."""

    records: tuple[Record, ...]
    damaged: tuple[Damaged, ...]

    @property
    def ids(self) -> tuple[MemoryId, ...]:
        """The memories of these copies, as far as anything tells."""
        return tuple(item.id for record in self.records for item in record.items) + tuple(
            name for each in self.damaged for name in each.ids
        )

    def __len__(self) -> int:
        return len(self.records) + len(self.damaged)


def _due(site: Site, now: datetime, older_than: datetime | None = None) -> Due:
    """Return the deletions past their deadline, or from before a moment."""
    records = site.trash.records()
    return Due(
        tuple(each for each in records if each.is_due(now, older_than)),
        tuple(each for each in site.trash.damaged() if each.is_due(now, older_than)),
    )


def _drop_damaged(
    site: Site, names: Iterable[str], now: datetime, *, by: str, reason: str | None
) -> tuple[str, ...]:
    """Destroy the copies of these deletions, whose records cannot be read; return their ids."""
    wanted = set(names)
    found = [each for each in site.trash.damaged() if each.deletion in wanted]
    site.trash.check_keys((), found)
    for each in found:
        site.trash.drop_damaged(each.deletion)
        site.note("purge", at=now, by=by, ids=each.ids, deletion=each.deletion, reason=reason)
    return tuple(each.deletion for each in found)


def moment_before(age: When | None, now: datetime) -> datetime | None:
    """Return the moment that an age, a duration or a time names, seen from `now`."""
    if age is None:
        return None
    if isinstance(age, str):
        with suppress(ValueError):
            return now - parse_duration(age)
    return moment_of(age, now)


def _named(site: Site, ids: Iterable[str]) -> tuple[MemoryId, ...]:
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


def purge(
    handle: Handle, ids: str | Iterable[str], *, reason: str | None, by: str | None, dry_run: bool
) -> Purged:
    """Make deleted memories unrecoverable, here and wherever this session is synced to.

    Copies with records that cannot be read are named by their deletions.
    """
    site = site_of(handle)
    given = (ids,) if isinstance(ids, str) else tuple(ids)
    broken = {each.deletion for each in site.trash.damaged()} & set(given)
    names = _named(site, [each for each in given if each not in broken])
    if dry_run:
        damaged = tuple(sorted(broken))
        return Purged(ids=names, copies=len(broken), dry_run=True, damaged=damaged)
    now, who, why = handle.clock(), handle.actor(by), site.reason(reason)
    dropped = _drop_damaged(site, broken, now, by=who, reason=why)
    if not names:
        return Purged(ids=(), copies=len(dropped), damaged=dropped)
    check_known(site)
    check_droppable(site, names)
    held = copies_of(site, names)
    kept = _kept_keys(site, held)
    told = tell(site, site.tombstones(), names)
    order = RewriteOrder(by=who, now=now, purge=True, deletion=new_deletion(now), reason=why)
    _publish(site, names, order, lambda: drop_copies(site, names))
    found = prove.verify(site.reader, site.tombstones(), told.versions, told.unknown)
    return Purged(
        ids=names,
        copies=len(held) + len(dropped),
        proof=found,
        kept_keys=kept,
        damaged=dropped,
    )


def _kept_keys(site: Site, records: Iterable[Record]) -> tuple[str, ...]:
    owners = {str(owner) for record in records if (owner := site.trash.foreign(record))}
    return tuple(sorted(owners))


def purge_due(
    handle: Handle,
    older_than: When | None,
    *,
    by: str | None,
    dry_run: bool,
) -> Purged:
    """Destroy the copies that are past their deadline, or older than a time, whole.

    What was restored meanwhile lives on.
    """
    site, now = site_of(handle), handle.clock()
    found = _due(site, now, moment_before(older_than, now))
    if dry_run:
        return Purged(ids=found.ids, copies=len(found), dry_run=True)
    drop_ended(site)
    who, records = handle.actor(by), found.records
    site.sweep()
    site.trash.check_keys(records, found.damaged)
    head = site.reader.snapshot()
    # What only a dropped branch held was never deleted, and may be on another.
    deletions = [record for record in records if record.action != DROPPED]
    gone = [
        i.id for r in deletions for i in r.items if not i.restored_at and head.blob(i.id) is None
    ]
    ids = tuple(dict.fromkeys(gone))
    kept = _kept_keys(site, records)
    order = RewriteOrder(by=who, now=now, purge=True, deletion=new_deletion(now), reason=_DUE)

    def destroy() -> None:
        for record in records:
            site.trash.drop(record)

    if records:
        _publish(site, ids, order, destroy)
    dropped = _drop_damaged(
        site, (each.deletion for each in found.damaged), now, by=who, reason=_DUE
    )
    return Purged(ids=ids, copies=len(found), kept_keys=kept, damaged=dropped)


def _publish(
    site: Site, ids: Sequence[MemoryId], order: RewriteOrder, destroy: Callable[[], None]
) -> None:
    """Publish what was purged, then destroy the copies; the next open finishes it."""

    def finish() -> None:
        destroy()
        at, by, deletion = order.now, order.by, order.deletion
        site.note_once("purge", at=at, by=by, ids=ids, deletion=deletion, reason=order.reason)

    def settle(receipt: Receipt) -> Receipt:
        finish()
        return receipt

    known = site.tombstones()
    left = [name for name in ids if known.names(name) and not known.is_purged(name)]
    if left:
        put_right(site, order.by)
        erase(site.writer, left, replace(order, settle=settle))
    else:
        finish()
