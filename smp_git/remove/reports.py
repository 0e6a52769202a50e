"""Reports of removals: the trash, receipts, the audit log, the proof."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TypedDict

from smp_git.model.times import When, moment_of
from smp_git.remove import audit
from smp_git.remove.history import prove
from smp_git.remove.history.plan import effective
from smp_git.remove.history.prove import Proof
from smp_git.remove.interrupted import site_of
from smp_git.remove.site import verify
from smp_git.remove.trash import Damaged, Deleted, deleted
from smp_git.write.handle import Handle, Home


class AuditParts(TypedDict, total=False):
    """Criteria for lines of the audit log; all that are given must hold."""

    action: str | None
    id: str | None
    by: str | None
    since: When | None
    until: When | None


def trash(handle: Handle) -> tuple[Deleted, ...]:
    """Return what can be restored, oldest deletion first."""
    site = site_of(handle)
    site.sweep()
    known, now = site.tombstones(), handle.clock()
    return tuple(
        deleted(item, record)
        for record in site.trash.records()
        for item in record.items
        if item.restored_at is None
        and now <= record.recovery_deadline
        and not known.is_purged(item.id)
    )


def damaged_copies(handle: Handle) -> tuple[Damaged, ...]:
    """Return the copies whose records cannot be read."""
    return site_of(handle).trash.damaged()


def verify_deleted(handle: Handle) -> Proof:
    """Search every object and file for what was ever deleted, and return what was found."""
    if handle.home is None:
        unknown = ("any text: this session is in no store",)
        return prove.verify(handle.reader, effective(handle.reader), (), unknown)
    return verify(site_of(handle))


def receipt(handle: Handle, name: str | None) -> Mapping[str, object]:
    """Return the receipt of a deletion, or of a memory's latest; without a name the last one."""
    return audit.read_receipt(site_of(handle).trash.folder, name)


def audit_log(handle: Handle, wanted: AuditParts) -> tuple[audit.Audited, ...]:
    """Return who deleted, restored, redacted or purged what and when, oldest first."""
    place = site_of(handle).trash
    return _audited(place.store, place.session_id, wanted, handle.clock())


def audit_log_of_store(
    home: Home, session: str | None, wanted: AuditParts
) -> tuple[audit.Audited, ...]:
    """Return who did what and when in all sessions or one, oldest first."""
    return _audited(home.path, session, wanted, home.clock())


def _audited(
    store: Path, session: str | None, wanted: AuditParts, now: datetime
) -> tuple[audit.Audited, ...]:
    since, until = wanted.get("since"), wanted.get("until")
    asked = audit.Filter(
        session=session,
        action=wanted.get("action"),
        id=wanted.get("id"),
        by=wanted.get("by"),
        since=moment_of(since, now) if since is not None else None,
        until=moment_of(until, now) if until is not None else None,
    )
    return audit.read(store, asked)
