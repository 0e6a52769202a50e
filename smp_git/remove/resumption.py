"""An interrupted deletion finished: with its receipt, its line in the audit log, its copies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from smp_git.model.ids import parse_id
from smp_git.remove import copies, receipts
from smp_git.remove.arrival import REASON
from smp_git.remove.delete import drop_copies
from smp_git.remove.history.erase import Receipt, Version, resume
from smp_git.remove.history.journal import Journal
from smp_git.remove.site import Site

# A journal keeps no text, so nobody knows after a crash what was to be taken out.
_UNKNOWN: Final = (
    "not looked for: the text of a redaction that was interrupted; redact it once more"
)


def finish(site: Site) -> None:
    """Finish or undo what was interrupted, as if it had come to its end by itself."""

    def recall(deletion: str) -> Iterable[Version]:
        return _sealed(site, deletion)

    def settle(kept: Journal, receipt: Receipt) -> None:
        _settle(site, kept, receipt)

    resume(site.writer, recall, settle)


def _settle(site: Site, kept: Journal, receipt: Receipt) -> None:
    """Do what was not done of copies, receipt and audit log; all of it may be done again."""
    if kept.upgrades:
        return
    site.trash.settle(kept.deletion)
    if kept.purge:
        drop_copies(site, receipt.ids, whatever=True)
    copies.follow(site)
    if kept.redacts:
        receipt = replace(receipt, left=(_UNKNOWN,))
    if not receipts.is_kept(site.trash.place(receipt.deletion)):
        receipts.keep(site.trash.place(receipt.deletion), receipt.as_json())
    site.note_once(
        "redact" if kept.redacts else "purge" if kept.purge else "delete",
        at=kept.at,
        by=kept.by,
        ids=receipt.ids,
        deletion=kept.deletion,
        reason=REASON if kept.arrived else kept.reason,
        reasons=kept.reasons,
    )


def _sealed(site: Site, deletion: str) -> Iterable[Version]:
    """Yield the versions that the copy of a deletion holds, as far as it opens."""
    for each in site.trash.recalled(deletion):
        path = parse_id(each.id).path
        yield Version(each.id, path, each.life, each.at, each.agent, each.commit, each.data)
