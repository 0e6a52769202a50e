"""An interrupted deletion finished: with its receipt, its line in the audit log, its copies."""

from __future__ import annotations

from collections.abc import Iterable

from smp_git.erasure import journal
from smp_git.erasure.erase import Version, resume
from smp_git.format.ids import parse_id
from smp_git.recovery import copies, receipts
from smp_git.recovery.site import Site


def finish(site: Site) -> None:
    """Finish or undo what was interrupted, as if it had come to its end by itself."""
    kept = journal.read(site.reader.local.folder)
    receipt = resume(site.writer, lambda deletion: _sealed(site, deletion))
    if receipt is None or kept is None:
        return
    site.sweep()
    copies.follow(site)
    receipts.keep(site.trash.place(receipt.deletion), receipt.as_json())
    action = "redact" if kept.redacts else "purge" if kept.purge else "delete"
    site.note(action, at=kept.at, by=kept.by, ids=receipt.ids, deletion=kept.deletion, reason=kept.reason, reasons=kept.reasons)  # fmt: skip


def _sealed(site: Site, deletion: str) -> Iterable[Version]:
    """Yield the versions that the copy of a deletion holds, as far as it opens."""
    for each in site.trash.recalled(deletion):
        path = parse_id(each.id).path
        yield Version(each.id, path, each.life, each.at, each.agent, each.commit, each.data)
