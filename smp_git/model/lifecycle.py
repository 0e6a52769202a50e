"""A session's life: its state, computed from when it was last used."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

# Who acts when maintenance does: what it commits is no use of a session.
MAINTAINER = "maintenance"
# Who compacts, and makes summaries.
_COMPACTOR = "smp"
UPKEEP = frozenset((MAINTAINER, _COMPACTOR))


class State(StrEnum):
    """Where a session is in its life."""

    CREATED = "created"  # nothing is in it yet
    ACTIVE = "active"
    IDLE = "idle"
    DECAYING = "decaying"  # counts for less among other sessions
    ARCHIVED = "archived"  # one compressed file, and a summary
    DELETED = "deleted"  # can be brought back until its deadline
    PURGED = "purged"  # its line in the audit log is all that is left


class Thresholds(NamedTuple):
    """After how long without use a session is in a state."""

    idle: timedelta
    decaying: timedelta
    archived: timedelta

    def state(self, used_at: datetime, now: datetime, *, is_empty: bool = False) -> State:
        """Return the state of a session that is neither archived nor deleted."""
        unused = now - used_at
        if unused >= self.decaying:
            return State.DECAYING
        if unused >= self.idle:
            return State.IDLE
        return State.CREATED if is_empty else State.ACTIVE

    def is_due(self, used_at: datetime, now: datetime) -> bool:
        """Whether a session is to be archived."""
        return now - used_at >= self.archived
