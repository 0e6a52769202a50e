"""Removals finished: those that arrive from a replica, and those that were interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Final

from smp_git.format import messages
from smp_git.format.records import Tombstones
from smp_git.git.objects import Commit
from smp_git.model.errors import LockedError
from smp_git.model.ids import FIRST, RESTORE, parse_id
from smp_git.model.memory import MemoryId
from smp_git.read.replica import OURS
from smp_git.remove import audit, purge
from smp_git.remove.audit import DROPPED, Item, Record
from smp_git.remove.delete import drop_copies, keep
from smp_git.remove.history import erase
from smp_git.remove.history.journal import (
    Adopt,
    Incoming,
    Journal,
    Receipt,
    Replacement,
    RewriteOrder,
    is_final,
)
from smp_git.remove.history.plan import RewritePlan
from smp_git.remove.history.search import DeadVersion
from smp_git.remove.site import Site
from smp_git.remove.trash import new_deletion

REASON = "deleted on another replica"


def follow(
    site: Site,
    arrived: Tombstones,
    now: datetime,
    *,
    by: str,
    again: bool = False,
    replacement: Replacement | None = None,
    plan: RewritePlan | None = None,
    adopt: Adopt = Incoming,
    check: Callable[[], None] | None = None,
) -> Receipt | None:
    """Delete here what was deleted elsewhere; return None if nothing of it was here.

    What no remote ever had of a deleted memory can be restored from this replica's own
    copy; nothing that was purged or redacted can be, and its copies are destroyed. The
    `replacement` brings what a redaction elsewhere left, `plan` is of the same deletions,
    `adopt` brings in what came with them. What `check` raises under the lock, before
    anything has changed, is the end of it.
    """
    site.sweep()
    deletion = new_deletion(now)
    sealed: list[str] = []
    final = site.tombstones() | arrived

    def seal(versions: Sequence[DeadVersion]) -> None:
        if check is not None:
            check()
        own = [
            version for version in versions if not is_final(final.lives(version.id), version.life)
        ]
        if not own:
            return
        site.trash.check()
        keep(site, deletion, own, now, by=by, reason=REASON)
        sealed.append(deletion)

    def settle(receipt: Receipt) -> None:
        if sealed:
            site.trash.confirm(deletion)
        if receipt.ids:
            audit.keep_receipt(site.trash.place(deletion), receipt.as_json())
            site.note_once(
                "delete", at=now, by=by, ids=receipt.ids, deletion=deletion, reason=REASON
            )
        purge.follow(site)

    order = RewriteOrder(
        by=by,
        now=now,
        deletion=deletion,
        adopt=adopt,
        replacement=replacement,
        seal=seal,
        settle=settle,
    )
    receipt = erase.erase_arrived(site.writer, arrived, order, again=again, plan=plan)
    if receipt is None:
        purge.follow(site)
    return receipt


# A journal keeps no text, so nobody knows after a crash what was to be taken out.
_UNKNOWN: Final = (
    "not looked for: the text of a redaction that was interrupted; redact it once more"
)


def finish(site: Site) -> None:
    """Finish or undo what was interrupted, as if it had come to its end by itself."""
    # Whoever holds the lock is at work on it, or Git packs, and it is finished later.
    with suppress(LockedError), erase.interrupted(site.writer) as kept:
        if kept is not None:
            receipt = erase.finish(site.writer, kept, _sealed(site, kept.deletion))
            if receipt is not None:
                _settle(site, kept, receipt)


def _settle(site: Site, kept: Journal, receipt: Receipt) -> None:
    """Do what was not done of copies, receipt and audit log; all of it may be done again."""
    if kept.upgrades:
        return
    site.trash.settle(kept.deletion)
    if kept.purge:
        drop_copies(site, receipt.ids, whatever=True)
    purge.follow(site)
    if kept.redacts:
        receipt = replace(receipt, redacted=True, left=(_UNKNOWN,))
    if not audit.has_receipt(site.trash.place(receipt.deletion)):
        audit.keep_receipt(site.trash.place(receipt.deletion), receipt.as_json())
    site.note_once(
        "redact" if kept.redacts else "purge" if kept.purge else "delete",
        at=kept.at,
        by=kept.by,
        ids=receipt.ids,
        deletion=kept.deletion,
        reason=REASON if kept.arrived else kept.reason,
        reasons=kept.reasons,
    )


def _sealed(site: Site, deletion: str) -> Iterator[DeadVersion]:
    """Yield the versions that the copy of a deletion holds, as far as it opens."""
    for each in site.trash.recalled(deletion):
        path = parse_id(each.id).path
        yield DeadVersion(each.id, path, each.life, each.at, each.agent, each.commit, each.data)


_RESTORE: Final = "restore"


def settle(site: Site, clock: Callable[[], datetime]) -> None:
    """Mark what was restored, and write the lines of the audit log that are missing.

    Whoever is at it in this moment does so too, and is left alone.
    """
    if not any(_restored(site)) and not any(_dropped(site)):
        return
    with suppress(LockedError), site.marking(0), site.writer.holding("settling deletions"):
        for record, items in list(_restored(site)):
            ids = tuple(item.id for item in items)
            untold = tuple(name for name in ids if not _is_told(site, record, name))
            commit = _commit_of(site, untold) if untold else None
            if commit is not None:
                reason = messages.read(commit.message).reason
                site.note(_RESTORE, at=commit.time, by=commit.author, ids=untold, reason=reason)
            site.trash.update(record.restored(ids, clock()))
        for record in list(_dropped(site)):
            ids = tuple(item.id for item in record.items)
            site.note_once(
                DROPPED,
                at=record.deleted_at,
                by=record.deleted_by,
                ids=ids,
                deletion=record.deletion,
                reason=record.reason,
            )


def _restored(site: Site) -> Iterator[tuple[Record, list[Item]]]:
    """Yield the records that do not say yet which of their memories live again."""
    records = site.trash.records()
    if not records:
        return
    known, head = site.tombstones(), site.reader.snapshot()
    for record in records:
        found = [
            item
            for item in record.items
            if item.restored_at is None
            and head.blob(item.id) is not None
            and any(
                edge.cause == RESTORE and (item.life or FIRST) in edge.parents
                for edge in known.lives(item.id).edges.values()
            )
        ]
        if found:
            yield record, found


def _is_told(site: Site, record: Record, name: MemoryId) -> bool:
    wanted = audit.Filter(
        session=site.trash.session_id, action=_RESTORE, id=name, since=record.deleted_at
    )
    return bool(audit.read(site.trash.store, wanted))


def _commit_of(site: Site, ids: tuple[MemoryId, ...]) -> Commit | None:
    """Return the latest commit by which this replica restored one of some memories."""
    ours = f"{site.writer.identity().tag}{OURS}"
    for commit in site.reader.repository.walk(site.reader.snapshot().id):
        said = messages.read(commit.message)
        touched = {touch.id for touch in said.touches if touch.verb == _RESTORE}
        is_restore = said.subject.startswith(_RESTORE) and (not said.touches or touched & set(ids))
        if is_restore and commit.committer_email == ours:
            return commit
    return None


def _dropped(site: Site) -> Iterator[Record]:
    """Yield the copies of branches that are gone, of which the audit log does not tell."""
    wanted = audit.Filter(session=site.trash.session_id, action=DROPPED)
    records = [each for each in site.trash.records() if each.action == DROPPED]
    if not records:
        return
    told = {line.deletion for line in audit.read(site.trash.store, wanted)}
    branches = {
        f"branch {ref.removeprefix('refs/heads/')} was dropped"
        for ref in site.reader.repository.references()
    }
    # A drop that died may have left a copy; the one that came about told of the branch.
    reasons = {each.reason for each in records if each.deletion in told}
    for record in records:
        if record.deletion not in told and record.reason not in branches | reasons:
            yield record
