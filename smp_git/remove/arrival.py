"""Deletions that arrive from another replica: what only this one had is sealed, then all goes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from smp_git.format.records import Tombstones
from smp_git.remove import copies, receipts
from smp_git.remove.delete import keep
from smp_git.remove.history.erase import Receipt, Replacement, Version, erase_arrived, is_final
from smp_git.remove.site import Site
from smp_git.remove.trash import new_deletion

REASON = "deleted on another replica"


def follow(site: Site, arrived: Tombstones, now: datetime, *, by: str, again: bool = False, replacement: Replacement | None = None) -> Receipt | None:  # fmt: skip
    """Delete here what was deleted elsewhere; return None if nothing of it was here.

    What no remote ever had of a deleted memory can be restored from this replica's own
    copy; nothing that was purged or redacted can be, and its copies are destroyed. The
    `replacement` brings what a redaction elsewhere left.
    """
    site.sweep()
    deletion = new_deletion(now)
    sealed: list[str] = []
    final = site.tombstones() | arrived

    def seal(versions: Sequence[Version]) -> None:
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
            receipts.keep(site.trash.place(deletion), receipt.as_json())
            site.note_once("delete", at=now, by=by, ids=receipt.ids, deletion=deletion, reason=REASON)  # fmt: skip
        copies.follow(site)

    receipt = erase_arrived(
        site.writer,
        arrived,
        by=by,
        seal=seal,
        now=now,
        deletion=deletion,
        again=again,
        replacement=replacement,
        settle=settle,
    )
    if receipt is None:
        copies.follow(site)
    return receipt
