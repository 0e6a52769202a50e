"""The journal of a deletion, by which it is finished after a crash, and its receipt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from smp_git.format import records
from smp_git.format.records import Tombstones
from smp_git.git import disk
from smp_git.model.memory import CommitId, MemoryId
from smp_git.model.times import format_time, parse_time
from smp_git.read.replica import ERASURE
from smp_git.remove.history.moves import Move
from smp_git.remove.history.prove import Proof

# Before SEALED nothing has changed, so the deletion is undone; from then on it is finished.
SEALING: Final = "sealing"
SEALED: Final = "sealed"
PUBLISHING: Final = "publishing"
REMOVING: Final = "removing"
PROVING: Final = "proving"


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """One deletion under way."""

    deletion: str
    step: str
    at: datetime
    by: str
    purge: bool
    tombstones: Tombstones
    # Another replica has written the commit that names the deleted.
    arrived: bool = False
    ids: tuple[MemoryId, ...] = ()
    reason: str | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    deadline: datetime | None = None
    # What stands in the place of what goes: the files of each branch, by path.
    redacts: bool = False
    upgrades: bool = False
    removed: tuple[str, ...] = ()
    # The memories that take another id; then nothing is deleted.
    moves: tuple[Move, ...] = ()
    brought: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    old: Mapping[str, str] = field(default_factory=dict)
    new: Mapping[str, str] = field(default_factory=dict)

    def stepped(self, step: str) -> Journal:
        """Return the journal at another step."""
        return replace(self, step=step)


def write(smp: Path, journal: Journal) -> None:
    """Put a journal on the medium."""
    text = json.dumps(
        {
            "deletion": journal.deletion,
            "step": journal.step,
            "at": format_time(journal.at),
            "by": journal.by,
            "purge": journal.purge,
            "tombstones": records.write(journal.tombstones).decode(),
            "arrived": journal.arrived,
            "ids": list(journal.ids),
            "reason": journal.reason,
            "reasons": dict(journal.reasons),
            "deadline": format_time(journal.deadline) if journal.deadline else None,
            "redacts": journal.redacts,
            "upgrades": journal.upgrades,
            "removed": list(journal.removed),
            "moves": [list(each) for each in journal.moves],
            "brought": {ref: dict(files) for ref, files in journal.brought.items()},
            "old": dict(journal.old),
            "new": dict(journal.new),
        }
    )
    disk.replace_durably(smp / ERASURE, text.encode(), smp / f"{ERASURE}.tmp")
    reached(journal.step)


def read(smp: Path) -> Journal | None:
    """Return the journal of an interrupted deletion, or None."""
    try:
        kept = json.loads(disk.content(smp / ERASURE) or b"")
    except ValueError:
        # It is replaced whole, so a torn one was never acknowledged.
        return None
    at = parse_time(kept["at"], datetime.fromisoformat("2026-01-01T00:00:00+00:00"))
    found = records.read(kept["tombstones"].encode())
    return Journal(
        deletion=kept["deletion"],
        step=kept["step"],
        at=at,
        by=kept["by"],
        purge=kept["purge"],
        tombstones=found,
        arrived=bool(kept.get("arrived")),
        ids=tuple(kept.get("ids", ())),
        reason=kept.get("reason"),
        reasons=kept.get("reasons", {}),
        deadline=datetime.fromisoformat(kept["deadline"]) if kept.get("deadline") else None,
        redacts=bool(kept.get("redacts")),
        upgrades=bool(kept.get("upgrades")),
        removed=tuple(kept.get("removed", ())),
        moves=tuple(Move(old, new, tuple(roots)) for old, new, roots in kept.get("moves", ())),
        brought=kept.get("brought", {}),
        old=kept["old"],
        new=kept["new"],
    )


def close(smp: Path, deletion: str) -> None:
    """Remove the journal of a deletion that is done; another's stays."""
    kept = read(smp)
    if kept is None or kept.deletion == deletion:
        (smp / ERASURE).unlink(missing_ok=True)


def exists(smp: Path) -> bool:
    """Whether a deletion is under way or was interrupted."""
    return (smp / ERASURE).exists()


def reached(step: str) -> None:
    """Mark a point at which a crash is tried."""


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
    # Of a redaction: the memories live on, and `left` are the kinds of places in which
    # the text still stands.
    redacted: bool = False
    left: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "deletion": self.deletion,
            "ids": list(self.ids),
            "also": list(self.also),
            "purged": self.purged,
            "redacted": self.redacted,
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
