"""The proof again, at any later time: ids from the tombstones, texts from what sealed copies tell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from smp_git.format.records import Tombstones
from smp_git.model.errors import DamagedError
from smp_git.model.ids import parse_id
from smp_git.remove.history import prove
from smp_git.remove.history.judge import Judge, how_many
from smp_git.remove.history.needles import Version
from smp_git.remove.history.prove import Proof
from smp_git.remove.record import DROPPED, Record
from smp_git.remove.seal import Kept
from smp_git.remove.site import Site


class Told(NamedTuple):
    """What sealed copies tell of the deleted, and in words what nobody tells."""

    versions: tuple[Version, ...]
    unknown: tuple[str, ...]


def verify(site: Site) -> Proof:
    """Search everything for what was ever deleted; texts are unsealed in memory only."""
    known = site.tombstones()
    told = tell(site, known)
    return prove.verify(site.reader, known, told.versions, told.unknown)


def tell(site: Site, known: Tombstones, ids: Iterable[str] | None = None) -> Told:
    """Return the dead versions that the copies of this session hold, of some memories or all."""
    wanted = None if ids is None else set(ids)
    judge, versions, closed = Judge(known), list[Version](), set[str]()
    records = site.trash.records(readable=True)
    for record in records:
        names = _names(record, wanted)
        if not names or record.action == DROPPED:
            continue
        try:
            kept = site.trash.versions(record)
        except (DamagedError, ImportError):
            # Its key is lost, or nothing here can decrypt.
            closed |= names
            continue
        versions += (_version(each) for each in kept if each.id in names and judge.is_dead_file(each.data))  # fmt: skip
    found = {each.id for each in versions}
    unknown = [f"the text of {name}: its sealed copy does not open here" for name in sorted(closed - found)]  # fmt: skip
    if wanted is None:
        back = {item.id for record in records for item in record.items if item.restored_at}
        unknown += _untold(how_many(known) - len(found | closed | back))
    return Told(tuple(versions), tuple(unknown))


def _names(record: Record, wanted: set[str] | None) -> set[str]:
    """Return the memories of a record that are still deleted; a restored one lives."""
    names = {str(item.id) for item in record.items if item.restored_at is None}
    return names if wanted is None else names & wanted


def _untold(number: int) -> list[str]:
    whose = "a deleted or redacted memory" if number == 1 else f"{number:,} deleted or redacted memories"  # fmt: skip
    return [f"the text of {whose}, which no copy here tells"] if number > 0 else []


def _version(kept: Kept) -> Version:
    path = parse_id(kept.id).path
    return Version(kept.id, path, kept.life, kept.at, kept.agent, kept.commit, kept.data)
