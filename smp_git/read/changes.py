"""Changes of memories: what each commit of a session changed, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from smp_git.git.objects import Commit, ObjectId
from smp_git.model.errors import DamagedError
from smp_git.model.ids import Id, parse_id, parse_path
from smp_git.model.memory import MemoryId
from smp_git.read.history import MemoryDiff, Version, file_diff, touching, unknown, version_of
from smp_git.read.snapshot import Snapshot


class VersionChange(NamedTuple):
    """One commit, and how it changed one memory; a merge is compared with its first parent.

    >>> [(each.version.agent, each.diff.change) for each in session.changes("DEC-0001")]
    [('ada', 'changed'), ('ada', 'added')]
    """

    version: Version
    diff: MemoryDiff

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {**self.version.as_json(), "diff": self.diff.as_json()}


def changes(snapshot: Snapshot, memory_id: MemoryId) -> tuple[VersionChange, ...]:
    """Return how each commit changed one memory, newest first; raise MemoryNotFoundError."""
    place, repository = parse_id(memory_id), snapshot.repository
    found = tuple(
        VersionChange(version_of(each.commit), file_diff(repository, place, each.before, each.blob))
        for each in touching(snapshot, memory_id)
    )
    if not found:
        raise unknown(snapshot, memory_id)
    return found


def every_change(snapshot: Snapshot) -> Iterator[VersionChange]:
    """Yield how each commit changed each memory, newest first, past what cannot be read."""
    for commit in snapshot.walk():
        try:
            found = sorted(_changed(snapshot, commit), key=lambda each: each.place.sort_key)
            diffs = [file_diff(snapshot.repository, *each) for each in found]
        except DamagedError as error:
            snapshot.pass_over(f"commit {commit.id[:12]}", error)
            continue
        version = version_of(commit)
        yield from (VersionChange(version, each) for each in diffs)


class _Changed(NamedTuple):
    """A file that a commit changed, before and after."""

    place: Id
    before: ObjectId | None
    after: ObjectId | None


def _changed(snapshot: Snapshot, commit: Commit) -> Iterator[_Changed]:
    """Yield what a commit changed; of a merge, what is in none of its parents."""
    repository = snapshot.repository
    trees = [repository.commit(each).tree for each in commit.parents]
    for path, before, after in repository.changes(trees[0] if trees else None, commit.tree):
        place = parse_path(path)
        if place and all(repository.find(tree, path) != after for tree in trees[1:]):
            yield _Changed(place, before, after)
