"""Memories past the time that their kind is kept, and which rule keeps them all the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from smp_git.ask.catalogue import Catalogue, Row
from smp_git.ask.ranking import Ranking, Scale
from smp_git.model.lifecycle import MAINTAINER
from smp_git.model.memory import KINDS, MemoryId
from smp_git.model.relevance import scales
from smp_git.read.counts import Access
from smp_git.remove.delete import delete
from smp_git.remove.history.journal import Receipt
from smp_git.write.handle import Handle

REASON: Final = "past its retention"
_STRICT: Final = "strict"
# Conversation of this age, what was read within this time, and what is above this priority.
_RECENT: Final = timedelta(hours=24)
_READ: Final = timedelta(hours=48)
_HIGH: Final = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """What is past its time, and how many memories each rule keeps."""

    ids: tuple[MemoryId, ...]
    kept: Mapping[str, int] = field(default_factory=dict)


def limits(said: Mapping[str, object]) -> dict[str, timedelta]:
    """Return how long each kind is kept, as the settings say."""
    return {
        name: timedelta(days=days)
        for name, days in said.items()
        if name in KINDS and isinstance(days, (int, float)) and not isinstance(days, bool)
    }


def expired(handle: Handle, now: datetime) -> Expired:
    """Return the memories of a session that are past their time."""
    settings = handle.settings
    wanted = limits(settings.retention)
    snapshot = handle.reader.main()
    old = {
        entry.id
        for kind in wanted
        for page in snapshot.pages(kind)
        for entry in page.entries.values()
        if now - datetime.fromisoformat(entry.at) > wanted[kind]
    }
    if not old or settings.retention.get(_STRICT) is True:
        return Expired(ids=tuple(sorted(old)))
    catalogue = Catalogue()
    catalogue.follow(snapshot, KINDS)
    said = scales(settings.decay, settings.relevance, settings.file)
    accesses = handle.accesses.totals()
    scale = Scale(
        now=now, preset=said.preset, weights=said.weights, product=said.product, accesses=accesses
    )
    ranking, kept, ids = Ranking(catalogue, scale), dict[str, int](), list[MemoryId]()

    def rule_of(row: Row) -> str:
        unfloored = ranking.decayed(row).unfloored
        access, is_superseded = accesses.get(row.entry.id), catalogue.is_superseded(row)
        return _rule(row, unfloored, access, now, is_superseded=is_superseded)

    for row in (catalogue.row(catalogue.by_id[name]) for name in sorted(old)):
        reason = rule_of(row)
        if reason:
            kept[reason] = kept.get(reason, 0) + 1
        else:
            ids.append(row.entry.id)
    return Expired(ids=tuple(ids), kept=kept)


def remove(handle: Handle, ids: tuple[MemoryId, ...]) -> Receipt:
    """Delete what is past its time; it can be restored as long as anything that was deleted."""
    return delete(handle, ids, {}, reason=REASON, reasons=None, by=MAINTAINER, purge=False)


def _rule(
    row: Row, unfloored: float, access: Access | None, now: datetime, *, is_superseded: bool
) -> str:
    """Return the rule that keeps a memory, empty if none does.

    The priority is the one that no floor raised: floors rank, and do not preserve.
    """
    entry = row.entry
    is_over = entry.status == "resolved" or is_superseded
    rules = (
        ("state", row.kind == "state"),
        ("pinned", bool(entry.pinned)),
        ("active decision", row.kind == "decision" and not is_over),
        ("open finding", row.kind == "finding" and not is_over),
        ("explicit preference", row.kind == "preference" and entry.basis == "explicit"),
        ("recent conversation", row.kind == "turn" and now - row.at < _RECENT),
        ("read lately", access is not None and now - access.last_at < _READ),
        ("high priority", unfloored > _HIGH),
    )
    return next((name for name, holds in rules if holds), "")
