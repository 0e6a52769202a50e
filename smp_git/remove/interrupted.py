"""Removals that were interrupted: finished, and written down, before another one begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Final

from smp_git.format import messages
from smp_git.git.objects import Commit
from smp_git.model.errors import LockedError, SmpError
from smp_git.model.ids import FIRST, RESTORE
from smp_git.model.memory import MemoryId
from smp_git.read.replica import OURS
from smp_git.remove import audit
from smp_git.remove.audit import DROPPED, Item, Record
from smp_git.remove.history import erase
from smp_git.remove.history.journal import Journal, Receipt
from smp_git.remove.site import ELSEWHERE, Site, drop_copies, drop_ended
from smp_git.remove.trash import Trash
from smp_git.write.handle import Handle


def site_of(handle: Handle) -> Site:
    """Return where removals are made, once what was interrupted is finished."""
    finish_interrupted(handle)
    site = _place(handle)
    _note_missing(site, handle.clock)
    return site


def finish_interrupted(handle: Handle) -> None:
    """Finish a deletion that was interrupted."""
    if handle.home is not None and handle.reader.local.is_erasing():
        with suppress(SmpError):
            _finish(_place(handle))


def _place(handle: Handle) -> Site:
    trash = Trash(handle.at_home(), handle.name, handle.metadata.uid)
    return Site(writer=handle.main_writer, trash=trash, rules=handle.rules)


# A journal keeps no text, so nobody knows after a crash what was to be taken out.
_UNKNOWN: Final = (
    "not looked for: the text of a redaction that was interrupted; redact it once more"
)


def _finish(site: Site) -> None:
    """Finish or undo what was interrupted, as if it had come to its end by itself."""
    # Whoever holds the lock is at work on it, or Git packs, and it is finished later.
    with suppress(LockedError), erase.interrupted(site.writer) as kept:
        if kept is not None:
            recalled = site.trash.recalled(kept.deletion)
            # As the versions that are found: each is counted once.
            told = [each._replace(current=False) for each in recalled]
            receipt = erase.finish(site.writer, kept, told)
            if receipt is not None:
                _settle(site, kept, receipt)


def _settle(site: Site, kept: Journal, receipt: Receipt) -> None:
    """Do what was not done of copies, receipt and audit log; all of it may be done again."""
    if kept.upgrades:
        return
    site.trash.settle(kept.deletion)
    if kept.purge:
        drop_copies(site, receipt.ids, whatever=True)
    drop_ended(site)
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
        reason=ELSEWHERE if kept.arrived else kept.reason,
        reasons=kept.reasons,
    )


_RESTORE: Final = "restore"


def _note_missing(site: Site, clock: Callable[[], datetime]) -> None:
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
