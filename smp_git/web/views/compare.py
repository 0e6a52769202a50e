"""Two moments of a session compared, memory by memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Final, NamedTuple

from smp_git.read.history import MemoryDiff, Version
from smp_git.web.look import Look
from smp_git.web.views.memory import FieldDelta, deltas
from smp_git.write.branches import Branch, Tag

_MOST: Final = 200


class Difference(NamedTuple):
    """A memory that is another at two moments, and how."""

    diff: MemoryDiff
    deltas: tuple[FieldDelta, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """What differs; beyond so many memories only their number is told."""

    shown: tuple[Difference, ...]
    counts: Mapping[str, int]

    @property
    def total(self) -> int:
        """How many memories differ."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two moments, what differs between them, and moments that can be chosen."""

    old: Version
    new: Version
    differences: Differences
    tags: tuple[Tag, ...]
    branches: tuple[Branch, ...]


def compare(look: Look, old: str, new: str) -> Comparison:
    """Return how a session differs at two revisions or times."""
    session = look.session
    before, after = session.version(old), session.version(new)
    return Comparison(
        old=before,
        new=after,
        differences=differences(session.diff(before.commit, after.commit)),
        tags=session.tags(),
        branches=session.branches(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitView:
    """A commit, and what it changed."""

    version: Version
    differences: Differences


def one_commit(look: Look, name: str) -> CommitView:
    """Return what one commit changed."""
    version = look.session.version(name)
    changes = look.session.changes(at=version.commit)
    found = takewhile(lambda each: each.version.commit == version.commit, changes)
    return CommitView(version=version, differences=differences(each.diff for each in found))


def differences(found: Iterable[MemoryDiff]) -> Differences:
    """Return memories that differ as a page shows them."""
    every = list(found)
    return Differences(
        shown=tuple(Difference(each, tuple(deltas(each))) for each in islice(every, _MOST)),
        counts=Counter(each.change for each in every),
    )
