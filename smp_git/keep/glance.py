"""A session at first sight: what tells it from others, without reading its memories."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from smp_git.git.objects import FOLDER_MODE
from smp_git.model.errors import DamagedError
from smp_git.model.ids import parse_path
from smp_git.model.memory import KINDS, CommitId
from smp_git.model.results import Result
from smp_git.read import sizes
from smp_git.read.snapshot import Snapshot
from smp_git.write.handle import Handle


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance(Result):
    """What tells a session from others; `counts` are its memories by kind.

    >>> session.glance().counts["decision"]
    1
    """

    id: str
    user: str | None
    tags: tuple[str, ...]
    state: str
    created_at: datetime
    last_written_at: datetime
    last_access: datetime
    head: CommitId
    branch: str
    counts: Mapping[str, int]
    size_bytes: int
    quota_bytes: int

    @property
    def memories(self) -> int:
        """How many memories it has."""
        return sum(self.counts.values())


def glance(handle: Handle) -> Glance:
    """Return a session at first sight."""

    def answer(snapshot: Snapshot) -> Glance:
        said = snapshot.metadata
        return Glance(
            id=handle.name,
            user=said.user,
            tags=said.tags,
            state=handle.state(handle.clock()),
            created_at=said.created_at,
            last_written_at=snapshot.commit.time,
            last_access=handle.used_at(),
            head=snapshot.id,
            branch=handle.reader.ref.removeprefix("refs/heads/"),
            counts=_counts(snapshot),
            size_bytes=sizes.tracked_bytes(handle.reader, snapshot),
            quota_bytes=handle.settings.quota_bytes,
        )

    return handle.read(None, answer)


def _counts(snapshot: Snapshot) -> dict[str, int]:
    """Return how many files of each kind there are, past the folders that cannot be read."""
    found = {}
    for kind in KINDS:
        number = 0
        for path, tree in snapshot.page_ids(kind).items():
            with suppress(DamagedError):
                children = snapshot.repository.tree(tree).items()
                names = [name for name, child in children if child.mode != FOLDER_MODE]
                number += sum(parse_path(f"{path}/{name}") is not None for name in names)
        found[kind] = number
    return {kind: number for kind, number in found.items() if number}
