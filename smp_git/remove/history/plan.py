"""The plan of a deletion: the rewrite in memory, nothing written yet."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from smp_git.format.document import life_of
from smp_git.format.records import Tombstones, tombstone
from smp_git.git import references
from smp_git.git.objects import BLOB, ObjectId, object_id, read_commit
from smp_git.git.references import HEADS, SEEN
from smp_git.git.repository import Repository
from smp_git.model.errors import DamagedError
from smp_git.model.ids import parse_id, parse_path
from smp_git.model.lives import FIRST, PURGED, Lives
from smp_git.model.memory import CommitId, MemoryId
from smp_git.read.snapshot import Reader
from smp_git.remove.history import guards
from smp_git.remove.history.ahead import Ahead
from smp_git.remove.history.generations import Renames, renames
from smp_git.remove.history.moves import Move, moves_in
from smp_git.remove.history.needles import Version
from smp_git.remove.history.rewrite import Gone, History, Rewriter, Step
from smp_git.remove.history.tombstones import is_proof, named

EVERY_LIFE: Final = Lives({FIRST: (PURGED,)})


class Plan:
    """A rewrite, made without the lock and brought up to date under it."""

    def __init__(self, reader: Reader, ids: tuple[MemoryId, ...], more: Tombstones, *, upgrades: bool = False, moves: Iterable[Move] = ()) -> None:  # fmt: skip
        self.repository = Repository(reader.path)
        self._ids = ids
        self._reader = reader
        self._more = more
        self._upgrades = upgrades
        self._moves = tuple(moves)
        self._make()

    def _make(self) -> None:
        self.history = self._read()
        self.known = self._effective() | self._more
        self.renames = (
            renames(self.repository, self._tips(), self.known) if self._upgrades else Renames()
        )
        moves = moves_in(self.repository, self._tips(), self._moves)
        # Where memories take another id, nothing goes.
        dead = Tombstones() if self._moves else self.known
        self.known |= self.renames.records()
        # Every life that is there goes: the record names those that were found.
        everything = Tombstones(tombstone(each, EVERY_LIFE) for each in self._ids)
        ahead = Ahead(self.repository)
        self.rewriter = Rewriter(ahead.read, dead | everything, self.renames, moves)
        self.rewriter.prepare(self.history, ahead)
        self.result = self.rewriter.rewritten(self.history)

    def _tips(self) -> list[str]:
        return [tip.hex() for tip in (*self.history.refs.values(), *self.history.stashed)]

    def close(self) -> None:
        """Let go of the repository."""
        self.repository.close()

    def _read(self) -> History:
        git = self.repository.git
        refs = {name: bytes.fromhex(tip) for name, tip in references.read(git).items()}
        guards.check_tips(git, self.repository.raw, refs)
        stashed = (bytes.fromhex(entry.id) for entry in references.read_stash(git))
        return History(refs, tuple(stashed))

    def _effective(self) -> Tombstones:
        local = self._reader.local.tombstones()
        tips = (tip for ref, tip in self.history.refs.items() if is_proof(ref))
        return local | named(self.repository.raw, tips)

    def update(self) -> None:
        """Take in what was written since; the caller holds the lock."""
        history = self._read()
        if history == self.history:
            return
        if self._upgrades or self._moves:
            self._make()
        else:
            self.history = history
            self.result = self.rewriter.rewritten(history)

    def is_concerned(self) -> bool:
        """Whether anything here changes."""
        return self.result != self.history

    def unreadable(self, ids: tuple[MemoryId, ...]) -> list[str]:
        """Return the files at the tips of branches that would go only because they cannot be read.

        Such a version counts as one of the first life, which may be over while the memory
        lives on. What `ids` name goes in any case.
        """
        gone = {
            version.path: version
            for version in self.versions()
            if version.life is None and version.id not in ids and not self.known.is_gone(version.id)
        }
        tips = [tip for ref, tip in self.history.refs.items() if ref.startswith(HEADS)]
        trees = [self.repository.commit(CommitId(tip.hex())).tree for tip in tips]
        return sorted(
            path
            for path, version in gone.items()
            if any(
                self.repository.find(tree, path) == object_id(BLOB, version.data) for tree in trees
            )
        )

    def unshared(self, versions: tuple[Version, ...]) -> tuple[Version, ...]:
        """Return those of `versions` that no remote had when it was last seen."""
        tips = [tip for name, tip in self.history.refs.items() if name.startswith(SEEN)]
        shared = set(self.rewriter.losses(tips))
        return tuple(v for v in versions if (v.path, object_id(BLOB, v.data)) not in shared)

    def versions(self) -> tuple[Version, ...]:
        """Return the versions that go, oldest first."""
        found: dict[tuple[str, bytes], Version] = {}
        for step in self.rewriter.steps.values():
            if step.touches and step.loss:
                for gone in step.loss:
                    if isinstance(gone, Gone) and (gone.path, gone.id) not in found:
                        found[gone.path, gone.id] = self._version(step, gone)
        return tuple(sorted(found.values(), key=lambda each: (parse_id(each.id).sort_key, each.at)))

    def _version(self, step: Step, gone: Gone) -> Version:
        commit = read_commit(CommitId(step.old.hex()), self.repository.raw(step.old)[1])
        place = parse_path(gone.path)
        assert place is not None  # noqa: S101 - only memories go
        return Version(
            id=place.text,
            path=gone.path,
            life=gone.life,
            at=commit.time,
            agent=commit.author,
            commit=commit.id,
            data=self.repository.raw(gone.id)[1],
        )

    def uncommitted(self, now: datetime) -> tuple[Version, ...]:
        """Return the edits of the deleted that a person has not committed."""
        versions = self.versions()
        known = {(each.id, each.data) for each in versions}
        found = []
        for each in self._ids or dict.fromkeys(each.id for each in versions):
            place = parse_id(each)
            file = self.repository.path / place.path
            if file.is_symlink() or not file.is_file():
                continue
            data = file.read_bytes()
            if (each, data) not in known:
                life = life_of(data, place.path)
                found.append(Version(each, place.path, life, now, "user", "", data))
        return tuple(found)


def make_plan(reader: Reader, ids: Iterable[MemoryId], more: Tombstones | None = None, *, upgrades: bool = False, moves: Iterable[Move] = ()) -> Plan:  # fmt: skip
    """Return the plan of a deletion; raise RefusedError if it could not be complete."""
    return Plan(reader, tuple(ids), more or Tombstones(), upgrades=upgrades, moves=moves)


def is_staged_gone(path: str, blob: ObjectId, known: Tombstones, repository: Repository) -> bool:
    """Whether an entry of Git's index is a version that must be gone."""
    place = parse_path(path)
    if place is None or not known.names(place.text):
        return False
    try:
        file = repository.blob(blob)
    except DamagedError:
        return True
    return known.is_dead(place.text, life_of(file, path))
