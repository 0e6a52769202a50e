"""Plan of a deletion: what is known to be deleted, what forbids the rewrite, the rewrite in memory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from smp_git.format import readme, records
from smp_git.format.document import life_of
from smp_git.format.records import Tombstones, tombstone
from smp_git.git import command, references, staging, storage
from smp_git.git.objects import (
    BLOB,
    COMMIT,
    ObjectId,
    object_id,
    raw_commit,
    read_commit,
    read_tree,
)
from smp_git.git.references import HEADS, REMOTES, SEEN
from smp_git.git.repository import Repository, in_progress
from smp_git.model.errors import DamagedError, LockedError, RefusedError
from smp_git.model.ids import FIRST, PURGED, Lives, parse_id, parse_path
from smp_git.model.memory import KINDS, CommitId, MemoryId
from smp_git.read.snapshot import Reader
from smp_git.remove.history.judge import Judge
from smp_git.remove.history.reading import Read, peeled
from smp_git.remove.history.renaming import Move, moves_in, renames
from smp_git.remove.history.rewrite import Gone, History, Rewriter, RewrittenCommit
from smp_git.remove.history.search import DeadVersion


def effective(reader: Reader) -> Tombstones:
    """Return the union of all tombstones that this replica knows."""
    refs = references.read(reader.repository.git).items()
    tips = (bytes.fromhex(tip) for ref, tip in refs if is_proof(ref))
    return reader.local.tombstones() | named(reader.repository.raw, tips)


def is_proof(ref: str) -> bool:
    """Whether what a reference says was deleted counts: not what plain Git fetched past every check."""
    return not ref.startswith(REMOTES)


def named(read: Read, tips: Iterable[bytes]) -> Tombstones:
    """Return the union of the tombstones at some commits and tags."""
    blobs = {blob for tip in set(tips) if (blob := _blob(read, tip)) is not None}
    found = [item for blob in blobs for item in records.read(read(blob)[1]).items]
    return Tombstones(found)


def _blob(read: Read, tip: bytes) -> bytes | None:
    kind, data = peeled(read, tip)
    if kind != COMMIT:
        return None
    entry = read_tree(read(raw_commit(data).tree)[1]).get(records.PATH)
    return bytes.fromhex(entry.id) if entry is not None else None


_FOLDERS: Final = frozenset(kind.folder for kind in KINDS.values())
_PARTIAL: Final = {
    "shallow": "it is a shallow clone, whose older history is elsewhere",
    "info/grafts": "it has grafts, which hide history",
    "objects/info/http-alternates": "it borrows objects from another repository",
}


def check(git: Path) -> None:
    """Raise RefusedError, with the reason, if a deletion here could not be complete.

    Raises GitMissingError where the git command is not installed.
    """
    command.program()
    if what := in_progress(git):
        raise _refused(git, f"{what} is in progress", "finish or abort it first")
    for name, what in _PARTIAL.items():
        if (git / name).exists():
            raise _refused(git, what, "delete in the whole repository")
    _check_neighbours(git)
    objects = git / "objects"
    marks = (objects / "pack").glob("*.keep")
    kept = sorted(mark.name for mark in marks if not storage.is_marked_by_us(objects, mark))
    check_files(git)
    if kept:
        raise _refused(git, f"a pack is marked to be kept ({kept[0]})", "remove that mark first")


def check_files(git: Path) -> None:
    """Raise RefusedError if something could not be read, changed or removed when its turn comes."""
    for folder, what in (
        (git / "objects", "objects"),
        (git / "smp", "its local files"),
        (git.parent, ""),
    ):
        for path in _closed(folder, is_deep=bool(what)):
            name = path.relative_to(git.parent).as_posix()
            raise _refused(git, f"{name} cannot be read or changed", "change its owner or its mode")
    for path in (git / "smp").iterdir():
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            # Scratch of another process, which is done with it.
            continue
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            raise _refused(git, f".git/smp/{path.name} is not a file", "remove it")


def _closed(folder: Path, *, is_deep: bool) -> Iterator[Path]:
    """Yield folders that cannot be changed and, below `.git`, files that cannot be read."""
    stack = [(str(folder), 0)]
    while stack:
        here, depth = stack.pop()
        try:
            with os.scandir(here) as found:
                entries = list(found)
        except FileNotFoundError:
            continue
        except PermissionError:
            entries = []
        if _is_closed(here, os.R_OK | os.W_OK | os.X_OK):
            yield Path(here)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                # Of the session only the folders of memories, and their pages.
                if is_deep or depth == 1 or (depth == 0 and entry.name in _FOLDERS):
                    stack.append((entry.path, depth + 1))
            elif is_deep and _is_closed(entry.path, os.R_OK):
                yield Path(entry.path)


def _is_closed(path: str, mode: int) -> bool:
    """Whether something is there, still, and cannot be used so."""
    # It may have been away for the moment of the first question.
    return not os.access(path, mode) and os.path.lexists(path) and not os.access(path, mode)


def _check_neighbours(git: Path) -> None:
    alternates = git / "objects" / "info" / "alternates"
    if alternates.exists() and alternates.read_bytes().strip():
        raise _refused(
            git, "it borrows objects from another repository", "clone it without --shared"
        )
    folder = git / "worktrees"
    worktrees = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if worktrees:
        raise _refused(
            git,
            f"it has linked worktrees ({', '.join(worktrees)})",
            "remove them with git worktree first",
        )


def check_index(git: Path) -> None:
    """Raise LockedError or RefusedError if Git's index could not be cleaned now."""
    why = staging.obstacle(git)
    if why == staging.HELD:
        raise LockedError(
            f"nothing was deleted from session {git.parent.name}: {why}",
            hint="try again when it is done",
        )
    if why:
        raise _refused(git, why, "git status says more")


def check_readable(git: Path, paths: Iterable[str]) -> None:
    """Raise RefusedError for a file that would be taken for an old version of a living memory."""
    for path in paths:
        raise _refused(
            git,
            f"{path} cannot be read, and its memory still exists",
            f"fix {path} by hand and run smp commit",
        )


def check_tips(git: Path, read: Read, refs: dict[str, bytes]) -> None:
    """Raise RefusedError if a reference cannot be rewritten."""
    for name, tip in refs.items():
        if name.startswith("refs/bisect/"):
            raise _refused(git, "a bisection is in progress", "finish or abort it first")
        try:
            kind, _ = peeled(read, tip)
        except DamagedError as error:
            raise _refused(
                git, f"{name} cannot be read", "smp check names what is affected"
            ) from error
        if kind != COMMIT:
            raise _refused(
                git, f"{name} names a {kind.decode()}, not a commit", "remove that reference first"
            )


def _refused(git: Path, why: str, hint: str) -> RefusedError:
    return RefusedError(f"nothing was deleted from session {git.parent.name}: {why}", hint=hint)


EVERY_LIFE: Final = Lives({FIRST: (PURGED,)})


class RewritePlan:
    """A rewrite, made without the lock and brought up to date under it."""

    def __init__(
        self,
        reader: Reader,
        ids: tuple[MemoryId, ...],
        more: Tombstones,
        *,
        upgrades: bool = False,
        moves: Iterable[Move] = (),
    ) -> None:
        self.repository = Repository(reader.path)
        # It holds for this state of the session, and what was written on top of that since.
        self.epoch = reader.local.epoch()
        self._ids = ids
        self._reader = reader
        self._more = more
        self._upgrades = upgrades
        self._moves = tuple(moves)
        self._make()

    def _make(self) -> None:
        self.history = self._read()
        local = self._reader.local.tombstones()
        proofs = (tip for ref, tip in self.history.refs.items() if is_proof(ref))
        self.known = local | named(self.repository.raw, proofs) | self._more
        tips = [tip.hex() for tip in (*self.history.refs.values(), *self.history.stashed)]
        lives = renames(self.repository, tips, self.known) if self._upgrades else None
        moves = moves_in(self.repository, tips, self._moves) if self._moves else None
        # Where memories take another id, nothing goes.
        dead = Tombstones() if self._moves else self.known
        if lives:
            self.known |= lives.records()
        # Every life that is there goes: the record names those that were found.
        everything = Tombstones(tombstone(each, EVERY_LIFE) for each in self._ids)
        self.rewriter = Rewriter(self.repository.raw, dead | everything, lives, moves)
        self.result = self.rewriter.rewritten(self.history)

    def close(self) -> None:
        """Let go of the repository."""
        self.repository.close()

    def _read(self) -> History:
        git = self.repository.git
        refs = {name: bytes.fromhex(tip) for name, tip in references.read(git).items()}
        check_tips(git, self.repository.raw, refs)
        stashed = (bytes.fromhex(entry.id) for entry in references.read_stash(git))
        return History(refs, tuple(stashed))

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

    def unshared(self, versions: tuple[DeadVersion, ...]) -> tuple[DeadVersion, ...]:
        """Return those of `versions` that no remote had when it was last seen."""
        shared = {
            (gone.path, gone.id.hex())
            for name in self._reached(SEEN)
            for gone in self.rewriter.steps[bytes.fromhex(name)].loss
            if isinstance(gone, Gone)
        }
        return tuple(v for v in versions if (v.path, object_id(BLOB, v.data)) not in shared)

    def _reached(self, prefix: str) -> list[CommitId]:
        """Return the commits that references of a kind reach now."""
        tips = [tip for ref, tip in self.history.refs.items() if ref.startswith(prefix)]
        return self.repository.beyond((CommitId(tip.hex()) for tip in tips), ())

    def becoming(self) -> frozenset[CommitId]:
        """Return the commits that those of the branches become, or stay."""
        steps = self.rewriter.steps
        reached = self._reached(HEADS)
        return frozenset(CommitId(steps[bytes.fromhex(name)].new.hex()) for name in reached)

    def versions(self) -> tuple[DeadVersion, ...]:
        """Return the versions that go, oldest first."""
        found: dict[tuple[str, bytes], DeadVersion] = {}
        for step in self.rewriter.steps.values():
            if step.touches and step.loss:
                for gone in step.loss:
                    if isinstance(gone, Gone) and (gone.path, gone.id) not in found:
                        found[gone.path, gone.id] = self._version(step, gone)
        return tuple(sorted(found.values(), key=lambda each: (parse_id(each.id).sort_key, each.at)))

    def _version(self, step: RewrittenCommit, gone: Gone) -> DeadVersion:
        commit = read_commit(CommitId(step.old.hex()), self.repository.raw(step.old)[1])
        place = parse_path(gone.path)
        assert place is not None  # noqa: S101 - only memories go
        return DeadVersion(
            id=place.text,
            life=gone.life,
            at=commit.time,
            agent=commit.author,
            commit=commit.id,
            data=self.repository.raw(gone.id)[1],
        )

    def uncommitted(self, now: datetime) -> tuple[DeadVersion, ...]:
        """Return the edits of the deleted that a person has not committed, staged or not."""
        versions = self.versions()
        known = {(each.id, each.data) for each in versions}
        names = self._ids or tuple(dict.fromkeys(each.id for each in versions))
        paths = {parse_id(each).path: each for each in names}
        found = []
        for path, data in (*self._in_folder(paths), *staging.files(self.repository, paths)):
            if (paths[path], data) not in known:
                known.add((paths[path], data))
                life = life_of(data, path)
                found.append(DeadVersion(paths[path], life, now, "user", "", data))
        return tuple(found)

    def _in_folder(self, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        for path in paths:
            file = self.repository.path / path
            if file.is_file() and not file.is_symlink():
                yield path, file.read_bytes()


def make_plan(
    reader: Reader,
    ids: Iterable[MemoryId],
    more: Tombstones | None = None,
    *,
    upgrades: bool = False,
    moves: Iterable[Move] = (),
) -> RewritePlan:
    """Return the plan of a deletion; raise RefusedError if it could not be complete."""
    return RewritePlan(reader, tuple(ids), more or Tombstones(), upgrades=upgrades, moves=moves)


def is_staged_gone(path: str, blob: ObjectId, known: Tombstones, repository: Repository) -> bool:
    """Whether an entry of Git's index is a version that must be gone."""
    place = parse_path(path)
    if path != readme.PATH and (place is None or not known.names(place.text)):
        return False
    try:
        file = repository.blob(blob)
    except DamagedError:
        return True
    if place is None:
        return Judge(known).is_in_readme(file)
    return known.is_dead(place.text, life_of(file, path))
