"""The receipt of a deletion: what was removed and proved, in counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from smp_git.model.memory import CommitId, MemoryId
from smp_git.model.times import format_time
from smp_git.remove.history.prove import Proof


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How much a deletion changed."""

    versions: int
    commits_rewritten: int
    commits_dropped: int
    objects_removed: int
    bytes_removed: int

    def as_json(self) -> dict[str, int]:
        """Return the object that `--json` prints."""
        return {
            "versions": self.versions,
            "commits_rewritten": self.commits_rewritten,
            "commits_dropped": self.commits_dropped,
            "objects_removed": self.objects_removed,
            "bytes_removed": self.bytes_removed,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a deletion removed and proved, and what it could not reach.

    `also` are memories that were deleted before, and that plain Git had brought back.
    """

    deletion: str
    ids: tuple[MemoryId, ...]
    also: tuple[MemoryId, ...]
    purged: bool
    reason: str | None
    by: str
    at: datetime
    deadline: datetime | None
    commit: CommitId
    counts: Counts
    proof: Proof
    out_of_reach: tuple[str, ...]
    seconds: Mapping[str, float]
    # Of a redaction: the kinds of places in which the text still stands.
    left: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "deletion": self.deletion,
            "ids": list(self.ids),
            "also": list(self.also),
            "purged": self.purged,
            "reason": self.reason,
            "by": self.by,
            "at": format_time(self.at),
            "deadline": format_time(self.deadline) if self.deadline else None,
            "counts": self.counts.as_json(),
            "proof": self.proof.as_json(),
            "left": list(self.left),
            "out_of_reach": list(self.out_of_reach),
            "seconds": {name: round(value, 3) for name, value in self.seconds.items()},
        }
