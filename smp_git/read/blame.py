"""Which commit gave a field of a memory, or a whole file, the value that it has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from heapq import heappop, heappush
from typing import Final, NamedTuple

from smp_git.format import document
from smp_git.git.objects import Commit, ObjectId
from smp_git.git.repository import Repository
from smp_git.model.errors import InvalidFileError
from smp_git.model.ids import parse_path
from smp_git.model.memory import CommitId, Memory, Value, is_same

# Stands for the bytes of a file as a whole.
WHOLE: Final = ""
# From so many paths on, comparing two trees is cheaper than looking each path up.
_MANY: Final = 16
_REPLICA = re.compile(r"([a-z][a-z0-9]{3})@smp")

Asked = Mapping[str, Iterable[str]]


class Origin(NamedTuple):
    """A commit, and when the memory said there that it was changed; the later one is greater."""

    at: datetime
    replica: str
    commit: Commit


def is_alike(left: Mapping[str, Value], right: Mapping[str, Value], name: str) -> bool:
    """Whether a field has the same value in two memories, or is in neither."""
    return (name in left) == (name in right) and is_same(left.get(name), right.get(name))


def stamp(memory: Memory) -> datetime:
    """Return when a memory says that it was changed last."""
    return memory.updated_at or memory.created_at


def replica_of(commit: Commit) -> str:
    """Return the tag of the replica that made a commit; empty for a person's own."""
    match = _REPLICA.fullmatch(commit.committer_email)
    return match[1] if match else ""


def origins(repository: Repository, asked: Mapping[CommitId, Asked]) -> dict[tuple[str, str], Origin]:  # fmt: skip
    """Return where fields come from, by path and field; asked of the commits that have them.

    A merge gives no value: of its parents, the one with the same value is followed, and
    if several have it, the latest origin is taken.
    """
    return _Search(repository, asked).found


class _Version(NamedTuple):
    """A file at one commit: its fields, and when it says that it was changed."""

    fields: Mapping[str, Value]
    at: datetime | None


class _Search:
    """Follows fields from commit to commit, newest first."""

    def __init__(self, repository: Repository, asked: Mapping[CommitId, Asked]) -> None:
        self._repository = repository
        self._versions: dict[tuple[str, ObjectId | None], _Version] = {}
        self._wanted: dict[CommitId, dict[str, set[str]]] = {}
        self._queue: list[tuple[float, CommitId]] = []
        self.found: dict[tuple[str, str], Origin] = {}
        for commit, fields in asked.items():
            for path, names in fields.items():
                self._want(commit, path, set(names))
        while self._queue:
            name = heappop(self._queue)[1]
            wanted = self._wanted.pop(name, None)
            if wanted:
                self._look(repository.commit(name), wanted)

    def _want(self, commit: CommitId, path: str, fields: set[str]) -> None:
        if not fields:
            return
        if commit not in self._wanted:
            self._wanted[commit] = {}
            when = self._repository.commit(commit).time
            heappush(self._queue, (-when.timestamp(), commit))
        self._wanted[commit].setdefault(path, set()).update(fields)

    def _look(self, commit: Commit, wanted: Mapping[str, set[str]]) -> None:
        left = {path: set(fields) for path, fields in wanted.items()}
        for name in commit.parents:
            parent = self._repository.commit(name)
            changed = self._changed(parent.tree, commit.tree, wanted)
            for path, fields in wanted.items():
                same = self._same(path, fields, changed[path]) if path in changed else fields
                self._want(name, path, same)
                left[path] -= same
        for path, fields in left.items():
            self._note(commit, path, fields)

    def _changed(self, old: ObjectId, new: ObjectId, paths: Iterable[str]) -> dict[str, tuple[ObjectId | None, ObjectId | None]]:  # fmt: skip
        """Return those of the paths that differ between two trees, with both versions."""
        if old == new:
            return {}
        wanted = set(paths)
        if len(wanted) > _MANY:
            found = self._repository.changes(old, new)
            return {path: (left, right) for path, left, right in found if path in wanted}
        find = self._repository.find
        pairs = {path: (find(old, path), find(new, path)) for path in wanted}
        return {path: pair for path, pair in pairs.items() if pair[0] != pair[1]}

    def _same(self, path: str, fields: set[str], blobs: tuple[ObjectId | None, ObjectId | None]) -> set[str]:  # fmt: skip
        """Return those of the fields that a file has alike in two versions."""
        before, after = (self._version(path, blob) for blob in blobs)
        if before.at is None or after.at is None:
            # A memory that is not there has no field, not even an absent one.
            return set()
        return {name for name in fields - {WHOLE} if is_alike(before.fields, after.fields, name)}

    def _note(self, commit: Commit, path: str, fields: set[str]) -> None:
        if not fields:
            return
        blob = self._repository.find(commit.tree, path)
        at = self._version(path, blob).at or commit.time
        here = Origin(at, replica_of(commit), commit)
        for name in fields:
            known = self.found.get((path, name))
            if known is None or _rank(here) > _rank(known):
                self.found[path, name] = here

    def _version(self, path: str, blob: ObjectId | None) -> _Version:
        found = self._versions.get((path, blob))
        if found is None:
            found = self._versions[path, blob] = self._read(path, blob)
        return found

    def _read(self, path: str, blob: ObjectId | None) -> _Version:
        if blob is None or parse_path(path) is None:
            return _Version({}, None)
        try:
            memory = document.decode(self._repository.blob(blob), path)
        except InvalidFileError:
            return _Version({}, None)
        return _Version(document.fields_of(memory), stamp(memory))


def _rank(origin: Origin) -> tuple[datetime, str, datetime, CommitId]:
    return origin.at, origin.replica, origin.commit.time, origin.commit.id
