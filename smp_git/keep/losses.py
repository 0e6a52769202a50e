"""Memories that plain Git removed without a word: what is gone, and what brings it back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.format import messages
from smp_git.git import references
from smp_git.git.objects import COMMIT, Commit
from smp_git.git.references import HEADS, REMOTES, SEEN, TAGS, is_ancestor, merge_bases
from smp_git.model.errors import DamagedError
from smp_git.model.ids import parse_path, sort_key
from smp_git.model.memory import CommitId, MemoryId
from smp_git.read.replica import OURS
from smp_git.read.snapshot import Reader, Snapshot

_EXPLAINED = ("remove", "undo", "redo", "rollback")
_LOG: Final = "logs/refs/heads/main"
# As many of Git's own moves of main are looked at.
_LOOKED_AT: Final = 20
_MOVE = re.compile(r"([0-9a-f]{40}) [0-9a-f]{40} ")
# What keeps a commit, here or on a remote.
_KEEPING: Final = (HEADS, TAGS, SEEN, REMOTES, "refs/smp/rescue/")


def problems(reader: Reader) -> list[str]:
    """Say which commits of others removed memories without a word, and what brings them back.

    A removal is explained by a tombstone or by a line of the commit's message; it is
    mended when the memory is there again.
    """
    snapshot = reader.main()
    seen, known = reader.local.vetted()
    known = known | {commit.id: _removed(snapshot, commit) for commit in _since(snapshot, seen)}
    found = {name: ids for name, ids in known.items() if ids}
    if snapshot.id != seen:
        with suppress(OSError):
            # A session that can only be read is looked through again.
            reader.local.note_vetted(snapshot.id, found)
    buried = snapshot.said
    out = []
    for name, ids in found.items():
        gone = [each for each in ids if snapshot.blob(each) is None and not buried.names(each)]
        if gone:
            out.append(_sentence(name, gone, snapshot.id))
    return out + [str(loss) for loss in losses(reader)]


class Loss(NamedTuple):
    """Writes that a Git command took off main and nothing else has: the last one, and how many."""

    head: CommitId
    commits: int
    ids: tuple[MemoryId, ...]

    def __str__(self) -> str:
        writes = "1 write" if self.commits == 1 else f"{self.commits} writes"
        return f"a Git command removed {writes} from main that nothing else has ({', '.join(self.ids)}); to bring them back: git merge {self.head[:12]}"


def losses(reader: Reader) -> list[Loss]:
    """Return the writes that `git reset` and its like took off main, the latest first.

    Git's own log names them, as long as it has them; what a deletion took is not there.
    """
    repository = reader.repository
    names = _left_by_git(repository.git)
    if not names:
        return []
    refs, _ = references.read_each(repository.git)
    tips = [CommitId(tip) for ref, tip in refs.items() if ref.startswith(_KEEPING)]
    tips = [tip for tip in tips if _is_commit(reader, tip)]
    found: list[Loss] = []
    for name in names:
        if not repository.has(name) or any(
            is_ancestor(repository, name, each.head) for each in found
        ):
            continue
        try:
            gone = repository.beyond([name], tips)
            ids = _lost_by(reader.main(), name, gone) if gone else ()
        except DamagedError:
            # A deletion or a gc took a part of it.
            continue
        if ids:
            found.append(Loss(name, len(gone), ids))
    return found


def _is_commit(reader: Reader, name: CommitId) -> bool:
    try:
        return reader.repository.raw(bytes.fromhex(name))[0] == COMMIT
    except DamagedError:
        return False


def news(reader: Reader) -> list[Loss]:
    """Return the losses that were not reported yet, and note that they are now."""
    found = losses(reader)
    known = reader.local.reported() if found else []
    new = [each for each in found if each.head not in known]
    if new:
        with suppress(OSError):
            reader.local.note_reported([each.head for each in found])
    return new


def _left_by_git(git: Path) -> list[CommitId]:
    """Return where main was before each of Git's own last moves of it, the latest first."""
    try:
        lines = (git / _LOG).read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    moves = [_MOVE.match(line) for line in lines[: -_LOOKED_AT - 1 : -1]]
    return list(dict.fromkeys(CommitId(move[1]) for move in moves if move))


def _lost_by(now: Snapshot, name: CommitId, gone: Iterable[CommitId]) -> tuple[MemoryId, ...]:
    """Return the memories that are as they were before the commits that are gone."""
    repository = now.repository
    bases = merge_bases(repository, now.id, name)
    before = repository.commit(bases[0]).tree if bases else None
    buried = now.said
    tree = repository.commit(name).tree
    found: dict[MemoryId, None] = {}
    for each in gone:
        commit = repository.commit(each)
        above = repository.commit(commit.parents[0]).tree if commit.parents else None
        for path, _, _ in repository.changes(above, commit.tree):
            place = parse_path(path)
            if place is None or buried.names(place.text):
                continue
            then, base = (
                repository.find(tree, path),
                repository.find(before, path) if before else None,
            )
            if then not in (None, base) and repository.find(now.tree, path) == base:
                found[place.text] = None
    return tuple(sorted(found, key=sort_key))


def _sentence(commit: str, names: list[str], head: CommitId) -> str:
    short = commit[:12]
    cure = "smp undo" if commit == head else f"smp rollback {short}~1 {names[0]}"
    more = f", and the others alike: {', '.join(names[1:])}" if names[1:] and commit != head else ""
    listed = ", ".join(names)
    return f"commit {short} removed {listed} without saying so; to bring it back: {cure}{more}"


def _since(snapshot: Snapshot, seen: str | None) -> Iterator[Commit]:
    """Yield the commits after `seen` that somebody else made."""
    for commit in snapshot.walk():
        if commit.id == seen:
            return
        if len(commit.parents) == 1 and not commit.committer_email.endswith(OURS):
            yield commit


def _removed(snapshot: Snapshot, commit: Commit) -> list[str]:
    repository = snapshot.repository
    told = {touch.id for touch in messages.read(commit.message).touches if touch.verb in _EXPLAINED}
    try:
        parent = repository.commit(commit.parents[0])
        changes = list(repository.changes(parent.tree, commit.tree))
    except DamagedError as error:
        snapshot.pass_over(f"what commit {commit.id[:12]} changed", error)
        return []
    gone = (parse_path(path) for path, _, new in changes if new is None)
    return [place.text for place in gone if place is not None and place.text not in told]
