"""Preservation rules: what neither compaction nor retention takes, and why."""

from __future__ import annotations

from copy import copy
from datetime import datetime, timedelta
from typing import Final, Self

from smp_git.ask.catalogue import Catalogue, Row
from smp_git.ask.ranking import Ranking, Scale
from smp_git.model.memory import KINDS, RECALL, VALUE
from smp_git.model.relevance import scales
from smp_git.read.derived import questions
from smp_git.read.snapshot import Snapshot
from smp_git.write.handle import Handle

# Conversation of this age, what was read within this time, and what is above this priority.
_RECENT: Final = timedelta(hours=24)
_READ: Final = timedelta(hours=48)
_HIGH: Final = 0.7


class Preserved:
    """The rules on one snapshot, with the catalogue and the ranking that they need.

    The priority that they ask for is the one that no floor raised: floors rank, and do
    not preserve.
    """

    def __init__(
        self, handle: Handle, snapshot: Snapshot, now: datetime, catalogue: Catalogue | None = None
    ) -> None:
        settings = handle.settings
        self._said = scales(settings.decay, settings.relevance, settings.file)
        self._accesses = handle.accesses.totals()
        self._recalled = {name for each in questions(snapshot) for name in each.ids}
        self.catalogue = catalogue or Catalogue()
        self.catalogue.follow(snapshot, KINDS)
        self._look_at(now)

    def _look_at(self, now: datetime) -> None:
        self._now = now
        scale = Scale(
            now=now,
            preset=self._said.preset,
            weights=self._said.weights,
            product=self._said.product,
            accesses=self._accesses,
        )
        self.ranking = Ranking(self.catalogue, scale)

    def at(self, moment: datetime) -> Self:
        """Return the same rules at another time."""
        other = copy(self)
        other._look_at(moment)  # noqa: SLF001 - of its own kind
        return other

    def rule(self, row: Row) -> str:
        """Return the rule that keeps a memory, empty if none does."""
        entry, access = row.entry, self._accesses.get(row.entry.id)
        is_over = entry.status == "resolved" or self.catalogue.is_superseded(row)
        rules = (
            ("state", row.kind == "state"),
            ("value", row.kind == VALUE),
            ("recall question", entry.type == RECALL or entry.id in self._recalled),
            ("pinned", bool(entry.pinned)),
            ("active decision", row.kind == "decision" and not is_over),
            ("open finding", row.kind == "finding" and not is_over),
            ("explicit preference", row.kind == "preference" and entry.basis == "explicit"),
            ("recent conversation", row.kind == "turn" and self._now - row.at < _RECENT),
            ("read lately", access is not None and self._now - access.last_at < _READ),
            ("high priority", self.ranking.decayed(row).unfloored > _HIGH),
        )
        return next((name for name, holds in rules if holds), "")
