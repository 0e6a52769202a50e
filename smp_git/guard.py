"""Memories that a plain `git commit` would drop, or has dropped, because its index was behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from smp_git.format import messages
from smp_git.format.ids import parse_path, sort_key
from smp_git.git import staging
from smp_git.git.objects import Commit
from smp_git.git.repository import MAIN
from smp_git.local import OURS
from smp_git.memory import CommitId
from smp_git.snapshot import Reader, Snapshot
from smp_git.transaction import Writer

_EXPLAINED = ("remove", "undo", "rollback")


def before_commit(writer: Writer, index_file: Path) -> bool:
    """Bring the index that Git is about to commit up to the session's head.

    What the person staged stays. Returns False if the index is held by somebody else;
    the commit must then not go on. This is what `smp hook pre-commit` does with
    `$GIT_INDEX_FILE`.
    """
    with writer.holding("refreshing the index of a commit"):
        repository = writer.reader.repository
        if repository.checked_out() != MAIN:
            return True
        own = index_file.resolve() == (repository.git / "index").resolve()
        return staging.refresh(repository, writer.reader.main().tree, None if own else index_file)


def problems(reader: Reader) -> list[str]:
    """Say which commits of others removed memories without a word, and what brings them back.

    A removal is explained by a tombstone or by a line of the commit's message; it is
    mended when the memory stands again.
    """
    snapshot = reader.main()
    seen, known = reader.local.vetted()
    known = known | {commit.id: _removed(snapshot, commit) for commit in _since(snapshot, seen)}
    found = {name: ids for name, ids in known.items() if ids}
    if snapshot.id != seen:
        with suppress(OSError):
            # A session that can only be read is looked through again.
            reader.local.note_vetted(snapshot.id, found)
    buried = _Buried(snapshot)
    out = []
    for name, ids in found.items():
        gone = [each for each in ids if snapshot.blob(each) is None and each not in buried]
        if gone:
            out.append(_sentence(name, gone, snapshot.id))
    return out


def _sentence(commit: str, names: list[str], head: CommitId) -> str:
    short = commit[:12]
    cure = "smp undo" if commit == head else f"smp rollback {short}~1 {names[0]}"
    more = f", and the others alike: {', '.join(names[1:])}" if names[1:] and commit != head else ""
    listed = ", ".join(names)
    return f"commit {short} removed {listed} without saying so; to bring it back: {cure}{more}"


def _since(snapshot: Snapshot, seen: str | None) -> Iterator[Commit]:
    """Yield the commits after `seen` that somebody else made."""
    for commit in snapshot.repository.walk(snapshot.id):
        if commit.id == seen:
            return
        if len(commit.parents) == 1 and not commit.committer_email.endswith(OURS):
            yield commit


def _removed(snapshot: Snapshot, commit: Commit) -> list[str]:
    repository = snapshot.repository
    told = {touch.id for touch in messages.read(commit.message).touches if touch.verb in _EXPLAINED}
    parent = repository.commit(commit.parents[0])
    gone = (
        parse_path(path)
        for path, _, new in repository.changes(parent.tree, commit.tree)
        if new is None
    )
    return [place.text for place in gone if place is not None and place.text not in told]


class _Buried:
    """The ids that the tombstones name, one by one or as ranges."""

    def __init__(self, snapshot: Snapshot) -> None:
        blob = snapshot.repository.find(snapshot.tree, "tombstones.yaml")
        text = snapshot.repository.blob(blob).decode("utf-8", "replace") if blob else ""
        self._ranges = [_ends(json.loads(line[2:])["id"]) for line in text.splitlines()]

    def __contains__(self, memory_id: str) -> bool:
        place = sort_key(memory_id)
        return any(
            first[0] == place[0] and first[1] <= place[1] <= last[1] and first[2] == place[2]
            for first, last in self._ranges
        )


def _ends(text: str) -> tuple[tuple[int, int, str], tuple[int, int, str]]:
    first, _, last = text.partition("..")
    return sort_key(first), sort_key(last or first)
