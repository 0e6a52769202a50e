"""What a sync came to: what came in, what was merged, what went out."""

from __future__ import annotations

from dataclasses import dataclass

from smp_git.model.memory import CommitId, MemoryId
from smp_git.write.merge.trees import Conflict


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncResult:
    """One exchange with one remote; when it is returned, the remote holds what is here.

    `fetched` and `pushed` count commits. `merged` are the branches that needed a merge,
    `rewritten` the memories that were deleted here because they were deleted elsewhere,
    `moved` those that took another id, old and new, because two memories had one.
    `advertised` is the remote's own word for its main branch. `notes` are sentences
    about what was left as it is.
    """

    remote: str
    address: str
    fetched: int = 0
    pushed: int = 0
    merged: tuple[str, ...] = ()
    contested: tuple[Conflict, ...] = ()
    rewritten: tuple[MemoryId, ...] = ()
    moved: tuple[tuple[MemoryId, MemoryId], ...] = ()
    replaced: bool = False
    advertised: CommitId | None = None
    rounds: int = 1
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "remote": self.remote,
            "address": self.address,
            "fetched": self.fetched,
            "pushed": self.pushed,
            "merged": list(self.merged),
            "contested": [each.as_json() for each in self.contested],
            "rewritten": list(self.rewritten),
            "moved": [{"from": old, "to": new} for old, new in self.moved],
            "replaced": self.replaced,
            "advertised": self.advertised,
            "rounds": self.rounds,
            "notes": list(self.notes),
        }
