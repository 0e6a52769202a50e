"""Sealed copies that follow the records: what was redacted or purged is destroyed there too."""

from __future__ import annotations

from smp_git.model.errors import DamagedError
from smp_git.model.lives import FIRST, PURGED, REDACTED, Lives
from smp_git.remove.record import Record
from smp_git.remove.seal import Kept
from smp_git.remove.site import Site


def opened(site: Site, record: Record) -> list[Kept]:
    """Return the versions of a copy, none if it cannot be opened."""
    try:
        return site.trash.versions(record)
    except DamagedError:
        return []


def opens(site: Site, record: Record) -> bool:
    """Whether a copy can be opened."""
    try:
        site.trash.versions(record)
    except DamagedError:
        return False
    return True


def follow(site: Site) -> int:
    """Destroy the copies of what was purged or redacted, here or elsewhere; return how many."""
    known = site.tombstones()
    count = 0
    for each in site.trash.damaged():
        if each.ids and any({PURGED, REDACTED} & _ends(known.lives(name)) for name in each.ids):
            count += 1
            site.trash.drop_damaged(each.deletion)
    for record in site.trash.records(readable=True):
        ended = {
            item.id
            for item in record.items
            if {PURGED, REDACTED} & known.lives(item.id).ended_by(item.life or FIRST)
        }
        if ended:
            count += 1
            site.trash.drop_items(record, ended, whatever=True)
    site.trash.tidy()
    return count


def _ends(known: Lives) -> set[str]:
    """Return how any life of a memory came to its end: which one a damaged copy holds, none tells."""
    return {end for life in known.known for end in known.ended_by(life)}
