"""What was deleted: what can be restored and for how long, receipts, and who did what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from smp_git.model.errors import NotFoundError, SmpError
from smp_git.remove.audit import Audited
from smp_git.remove.trash import Damaged, Deleted
from smp_git.web.look import Look
from smp_git.web.wording import percent

_LINES: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TrashItem:
    """A deleted memory, and how much of its time is left, in percent."""

    deleted: Deleted
    left: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptView:
    """The receipt of a deletion, taken apart."""

    deletion: str
    said: Mapping[str, object]

    @property
    def ids(self) -> list[str]:
        """The memories that were deleted."""
        found = self.said.get("ids")
        return [str(each) for each in found] if isinstance(found, list) else []

    @property
    def out_of_reach(self) -> list[str]:
        """What else may hold what was deleted."""
        found = self.said.get("out_of_reach")
        return [str(each) for each in found] if isinstance(found, list) else []

    def part(self, name: str) -> Mapping[str, object]:
        """Return a part that is a mapping."""
        found = self.said.get(name)
        return found if isinstance(found, Mapping) else {}

    def moment(self, name: str) -> datetime | None:
        """Return a time that the receipt says."""
        found = self.said.get(name)
        return datetime.fromisoformat(found) if isinstance(found, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrashView:
    """What can be restored, what cannot be read, and what was done, the latest first."""

    items: tuple[TrashItem, ...]
    damaged: tuple[Damaged, ...]
    acts: tuple[Audited, ...]
    receipts: frozenset[str]


def trash(look: Look) -> TrashView:
    """Return what was deleted from a session."""
    session = look.session
    acts = tuple(reversed(session.audit()))[:_LINES]
    return TrashView(
        items=tuple(_item(each, look.now) for each in session.trash()),
        damaged=session.damaged_copies(),
        acts=acts,
        receipts=frozenset(each.deletion for each in receipts(look, acts)),
    )


def _item(deleted: Deleted, now: datetime) -> TrashItem:
    whole = (deleted.deadline - deleted.deleted_at) / timedelta(seconds=1)
    return TrashItem(
        deleted=deleted, left=percent((deleted.deadline - now) / timedelta(seconds=1), whole)
    )


def receipts(look: Look, acts: tuple[Audited, ...]) -> Iterator[ReceiptView]:
    """Yield the receipts that are kept, in the order of what was done."""
    for deletion in dict.fromkeys(each.deletion for each in acts if each.deletion):
        try:
            yield receipt(look, deletion)
        except SmpError:
            # A purge takes the receipt with the copy.
            continue


def receipt(look: Look, deletion: str) -> ReceiptView:
    """Return the receipt of a deletion; raise NotFoundError."""
    said = look.session.receipt(deletion)
    if said.get("deletion") != deletion:
        raise NotFoundError(f"no receipt of deletion {deletion}")
    return ReceiptView(deletion=deletion, said=said)
