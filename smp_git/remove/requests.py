"""What a session is asked to remove or bring back: deletion, restoration, purge, redaction, proof."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypedDict

from smp_git.git.repository import MAIN
from smp_git.model.errors import RefusedError, SmpError
from smp_git.model.memory import MemoryId, check_text
from smp_git.remove import audit, finish, purge, redact, restore
from smp_git.remove import delete as deletion
from smp_git.remove.delete import Dropped, Plan, drop
from smp_git.remove.history import prove
from smp_git.remove.history.journal import Receipt
from smp_git.remove.history.plan import effective
from smp_git.remove.history.prove import Proof
from smp_git.remove.purge import Purged
from smp_git.remove.redact import Redaction
from smp_git.remove.restore import Restored
from smp_git.remove.site import Site, verify
from smp_git.remove.trash import Damaged, Deleted, Trash, deleted
from smp_git.write import branches
from smp_git.write.handle import Handle


class Criteria(TypedDict, total=False):
    """What a deletion is about; all that is given must hold."""

    tags: Iterable[str]
    since: datetime | str | None
    until: datetime | str | None
    agents: Iterable[str]
    kinds: Iterable[str]
    text: str | None


class AuditParts(TypedDict, total=False):
    """Which lines of the audit log are asked for; all that is given must hold."""

    action: str | None
    id: str | None
    by: str | None
    since: datetime | str | None
    until: datetime | str | None


def site_of(handle: Handle) -> Site:
    """Return where removals are made, once what was interrupted is finished."""
    finish_interrupted(handle)
    site = _place(handle)
    finish.settle(site, handle.clock)
    return site


def finish_interrupted(handle: Handle) -> None:
    """Finish a deletion that was interrupted."""
    if handle.home is not None and handle.reader.local.is_erasing():
        with suppress(SmpError):
            finish.finish(_place(handle))


def _place(handle: Handle) -> Site:
    home = handle.at_home()
    uid = handle.metadata.uid
    trash = Trash(home.path, home.keys(), home.settings.retention, handle.name, uid)
    return Site(writer=handle.main_writer, trash=trash, rules=handle.rules)


def _selected(handle: Handle, ids: str | Iterable[str], given: Criteria) -> tuple[MemoryId, ...]:
    since, until = given.get("since"), given.get("until")
    wanted = deletion.selection(
        ids,
        tags=given.get("tags", ()),
        since=handle.moment(since) if since is not None else None,
        until=handle.moment(until) if until is not None else None,
        agents=given.get("agents", ()),
        kinds=given.get("kinds", ()),
        text=given.get("text"),
    )
    return handle.read(None, lambda snapshot: deletion.select(snapshot, wanted))


def plan_delete(
    handle: Handle, ids: str | Iterable[str], criteria: Criteria, *, purge: bool
) -> Plan:
    """Return what a deletion would do."""
    site, now = site_of(handle), handle.clock()
    return deletion.plan(site, _selected(handle, ids, criteria), now, purge=purge)


def delete(
    handle: Handle,
    ids: str | Iterable[str],
    criteria: Criteria,
    *,
    reason: str | None,
    reasons: Mapping[str, str] | None,
    by: str | None,
    purge: bool,
) -> Receipt:
    """Delete memories from the session and all of its history, in one rewrite."""
    site, now = site_of(handle), handle.clock()
    found = _selected(handle, ids, criteria)
    return deletion.delete(
        site, found, now, by=handle.actor(by), reason=reason, reasons=reasons, purge=purge
    )


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


def restore_memories(
    handle: Handle,
    ids: str | Iterable[str],
    *,
    with_history: bool,
    reason: str | None,
    by: str | None,
) -> Restored:
    """Bring deleted memories back under their ids; their earlier versions too if asked."""
    names = (ids,) if isinstance(ids, str) else tuple(ids)
    return restore.restore(
        site_of(handle),
        names,
        handle.clock(),
        by=handle.actor(by),
        reason=reason,
        with_history=with_history,
    )


def purge_memories(
    handle: Handle, ids: str | Iterable[str], *, reason: str | None, by: str | None, dry_run: bool
) -> Purged:
    """Make some deleted memories unrecoverable, or copies that are named by their deletion."""
    site = site_of(handle)
    given = (ids,) if isinstance(ids, str) else tuple(ids)
    broken = {each.deletion for each in site.trash.damaged()} & set(given)
    names = purge.named(site, [each for each in given if each not in broken])
    if dry_run:
        damaged = tuple(sorted(broken))
        return Purged(ids=names, copies=len(broken), dry_run=True, damaged=damaged)
    return purge.purge(
        site, names, handle.clock(), by=handle.actor(by), reason=reason, damaged=broken
    )


def purge_due(
    handle: Handle,
    older_than: datetime | str | timedelta | None,
    *,
    by: str | None,
    dry_run: bool,
) -> Purged:
    """Make unrecoverable what is past its deadline, or older than a time."""
    site, now = site_of(handle), handle.clock()
    records = purge.due(site, now, purge.moment_before(older_than, now))
    if dry_run:
        return Purged(ids=records.ids, copies=len(records), dry_run=True)
    purge.follow(site)
    return purge.purge_due(site, records, now, by=handle.actor(by))


def find_text(handle: Handle, pattern: str | re.Pattern[str]) -> Redaction:
    """Return what a redaction would take out."""
    return redact.find(site_of(handle), pattern)


def redact_text(
    handle: Handle,
    pattern: str | re.Pattern[str],
    replacement: str | None,
    *,
    reason: str | None,
    by: str | None,
) -> Redaction:
    """Take a text, or what a compiled pattern fits, out of every version of every memory."""
    site, rules = site_of(handle), handle.rules
    gap = rules.gap
    if replacement is not None:
        gap = rules.text(check_text(replacement, "replacement"))[0]
    return redact.redact(site, pattern, gap, handle.clock(), by=handle.actor(by), reason=reason)


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
    since, until = wanted.get("since"), wanted.get("until")
    return audit.read(
        place.store,
        audit.Filter(
            session=place.session_id,
            action=wanted.get("action"),
            id=wanted.get("id"),
            by=wanted.get("by"),
            since=handle.moment(since) if since is not None else None,
            until=handle.moment(until) if until is not None else None,
        ),
    )


def drop_branch(handle: Handle, name: str, *, discard: bool, by: str | None) -> Dropped:
    """Drop a branch; what only it held can be restored until the deadline."""
    ref = branches.find(handle, name)
    if ref == MAIN:
        raise RefusedError("main is the session itself", hint="delete memories, or the session")
    if ref == handle.reader.ref:
        raise RefusedError(f"this handle works on {name}", hint="switch to another branch first")
    if ref == handle.reader.repository.checked_out():
        raise RefusedError(
            f"{name} is checked out in the folder", hint="git switch main brings main back"
        )
    return drop(site_of(handle), ref, handle.clock(), by=handle.actor(by), discard=discard)
