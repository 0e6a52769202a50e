"""How a session stands to its remotes, as far as it knows without asking them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from smp_git.git import references
from smp_git.git.repository import MAIN
from smp_git.model.memory import CommitId
from smp_git.model.times import format_time
from smp_git.read.snapshot import Reader
from smp_git.sync import state
from smp_git.sync.names import shown
from smp_git.sync.remotes import Remote


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteState:
    """How this replica stands to one remote, as far as it knows without asking it.

    `ahead` and `behind` count commits of the main branch; None if the remote was never
    seen. `withheld` says why it still holds what was deleted here, if it does.
    """

    name: str
    address: str
    ahead: int | None
    behind: int | None
    seen_at: datetime | None
    withheld: str | None

    def __str__(self) -> str:
        if self.withheld:
            said = f"deletion not published: {self.withheld}"
        elif self.ahead is None:
            said = "never synced"
        else:
            said = f"{self.ahead} ahead, {self.behind} behind"
        return f"{self.name}  {self.address}  {said}"

    def as_json(self) -> Mapping[str, object]:
        """Return the object that `--json` prints."""
        return {
            "name": self.name,
            "address": self.address,
            "ahead": self.ahead,
            "behind": self.behind,
            "seen_at": format_time(self.seen_at) if self.seen_at else None,
            "withheld": self.withheld,
        }


def standing(reader: Reader, remote: Remote) -> RemoteState:
    """Return how a session stands to a remote."""
    seen = state.read(reader.local.folder, remote.name, remote.address.text)
    counts = _ahead_and_behind(reader, remote.name)
    return RemoteState(
        name=remote.name,
        address=remote.address.text,
        ahead=counts[0] if counts else None,
        behind=counts[1] if counts else None,
        seen_at=seen.at,
        withheld=seen.withheld,
    )


def _ahead_and_behind(reader: Reader, remote: str) -> tuple[int, int] | None:
    """Return how many commits of main a remote lacked, and had more, when last seen."""
    repository = reader.repository
    own, there = repository.head(MAIN), references.read(repository.git).get(shown(remote, MAIN))
    if own is None or there is None:
        return None
    theirs = CommitId(there)
    return len(repository.beyond([own], [theirs])), len(repository.beyond([theirs], [own]))
