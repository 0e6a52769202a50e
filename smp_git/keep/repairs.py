"""What a repair did, or would do: one sentence a thing, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from smp_git.model.ids import parse_path
from smp_git.model.memory import MemoryId

STORED: Final = "stored"  # whole elsewhere, and stored again
REBUILT: Final = "rebuilt"  # follows from what is there
COMMITTED: Final = "committed"  # in the folder and in no commit: committed as it is
EARLIER: Final = "earlier"  # the version before took its place
REPLACED: Final = "replaced"  # a file of Git's that was broken
ASIDE: Final = "aside"  # nobody has it: taken out, and what is known of it kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One thing that was repaired, or would be: what it is, and what became of it.

    The `action` is stored, rebuilt, committed, earlier, replaced or aside.

    >>> session.repair(dry_run=True)
    ()
    """

    action: str
    path: str
    message: str
    memory: MemoryId | None = None

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "action": self.action,
            "path": self.path,
            "memory": self.memory,
            "message": self.message,
        }


def repaired(action: str, path: str, message: str) -> Repair:
    """Return what was done to a file."""
    place = parse_path(path)
    return Repair(action=action, path=path, message=message, memory=place.text if place else None)
