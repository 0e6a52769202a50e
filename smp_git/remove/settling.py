"""What a process that died left untold: restorations and dropped branches that came about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Final

from smp_git.format import messages
from smp_git.git.objects import Commit
from smp_git.model.errors import LockedError
from smp_git.model.lives import FIRST, RESTORE
from smp_git.model.memory import MemoryId
from smp_git.read.replica import OURS
from smp_git.remove import audit
from smp_git.remove.record import DROPPED, Item, Record
from smp_git.remove.site import Site

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
            site.note_once(DROPPED, at=record.deleted_at, by=record.deleted_by, ids=ids, deletion=record.deletion, reason=record.reason)  # fmt: skip


def _restored(site: Site) -> Iterator[tuple[Record, list[Item]]]:
    """Yield the records that do not say yet which of their memories live again."""
    records = site.trash.records(readable=True)
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
    wanted = audit.Filter(session=site.trash.session_id, action=_RESTORE, id=name, since=record.deleted_at)  # fmt: skip
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
    records = [each for each in site.trash.records(readable=True) if each.action == DROPPED]
    if not records:
        return
    told = {line.deletion for line in audit.read(site.trash.store, wanted)}
    branches = {f"branch {ref.removeprefix('refs/heads/')} was dropped" for ref in site.reader.repository.references()}  # fmt: skip
    # A drop that died may have left a copy; the one that came about told of the branch.
    reasons = {each.reason for each in records if each.deletion in told}
    for record in records:
        if record.deletion not in told and record.reason not in branches | reasons:
            yield record
