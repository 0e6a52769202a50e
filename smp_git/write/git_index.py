"""Git's index, refreshed behind the writes; memories that a plain commit dropped because it was behind."""

from __future__ import annotations

import atexit
import os
import re
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.format import messages
from smp_git.git import references, staging
from smp_git.git.objects import COMMIT, Commit
from smp_git.git.references import HEADS, REMOTES, SEEN, TAGS, is_ancestor, merge_bases
from smp_git.git.repository import MAIN
from smp_git.model.errors import DamagedError, SmpError
from smp_git.model.ids import parse_path, sort_key
from smp_git.model.memory import CommitId, MemoryId
from smp_git.read.replica import OURS
from smp_git.read.snapshot import Reader, Snapshot
from smp_git.write.writer import Writer

# After this long without a write a person may be looking.
_QUIET_SECONDS: Final = 1.0
# Another process that wrote this recently will refresh the index itself.
_RECENT: Final = timedelta(seconds=3)
# Nobody waits longer than this for what the next one may do as well.
_PATIENCE_SECONDS: Final = 0.2

_keepers: weakref.WeakSet[IndexKeeper] = weakref.WeakSet()


class IndexKeeper:
    """Refreshes the index of one session some time after its writes."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self._dirty = threading.Event()
        self._refreshing = threading.Lock()
        self._last_write = 0.0
        self._process = 0
        self._behind = False
        writer.watched = weakref.WeakMethod(self.note_write)
        writer.reader.watched = weakref.WeakMethod(self.note_moved)
        _keepers.add(self)

    def note_write(self) -> None:
        """Remember that the index is behind."""
        self._behind = True
        self.note_behind()

    def note_moved(self) -> None:
        """Remember that the session moved; whoever moved it may die before he refreshes the index."""
        self.note_behind(_RECENT.total_seconds() - _QUIET_SECONDS)

    def note_behind(self, later_seconds: float = 0.0) -> None:
        """Remember that somebody, who may be dead by now, left the index behind."""
        self._last_write = time.monotonic() + later_seconds
        if not self._dirty.is_set():
            self._dirty.set()
        if self._process != os.getpid():
            # A forked child has no thread of its own yet.
            self._process = os.getpid()
            self._refreshing = threading.Lock()
            threading.Thread(
                target=_keep, args=(weakref.ref(self),), name="smp-index", daemon=True
            ).start()

    def wait(self) -> None:
        """Wait until a write is some time ago."""
        self._dirty.wait()
        while (rest := self._last_write + _QUIET_SECONDS - time.monotonic()) > 0:
            time.sleep(rest)

    def flush(self) -> None:
        """Refresh the index now, if it was left behind."""
        if self._dirty.is_set():
            self._dirty.clear()
            mine, self._behind = self._behind, False
            refresh(self.writer, None if mine else _PATIENCE_SECONDS)

    def flush_idly(self) -> None:
        """Refresh the index if nobody writes now, and look again later otherwise.

        Nobody waits for long in the background: it would keep the next write of this
        process from its place in the queue.
        """
        with self._refreshing:
            if self not in _keepers:
                return
            self._dirty.clear()
            if not self._is_done() and not refresh(self.writer, _PATIENCE_SECONDS):
                self.note_behind()

    def _is_done(self) -> bool:
        """Whether others wrote, not we, and refreshed the index themselves."""
        reader = self.writer.reader
        with suppress(SmpError):
            return not self._behind and staging.is_current(
                reader.repository.git, reader.main().tree
            )
        return False

    def stop(self) -> None:
        """Refresh the index and keep it no longer; nothing goes on in the background after it."""
        # A forked child has the lock as it stood, but not the thread that may hold it.
        with self._refreshing if self._process == os.getpid() else nullcontext():
            _keepers.discard(self)
        self.flush()


def _keep(reference: weakref.ref[IndexKeeper]) -> None:
    while True:
        keeper = reference()
        if keeper is None or keeper not in _keepers:
            return
        dirty = keeper._dirty  # noqa: SLF001 - the thread must not keep its keeper alive
        del keeper
        if dirty.wait(_QUIET_SECONDS) and (keeper := reference()) is not None:
            keeper.wait()
            keeper.flush_idly()
            del keeper


def _quietly(keeper: IndexKeeper) -> None:
    try:
        keeper.flush()
    except SmpError:
        # The next open finds the index behind and refreshes it.
        return


@atexit.register
def _flush_all() -> None:
    for keeper in list(_keepers):
        _quietly(keeper)


def refresh(writer: Writer, patience_seconds: float | None = None) -> bool:
    """Refresh the index unless somebody else is writing, who will do it; return whether it is."""
    reader = writer.reader
    # What was written stands without it; the next open refreshes the index.
    with suppress(SmpError), writer.holding("refreshing Git's index", patience_seconds) as now:
        if reader.repository.checked_out() == MAIN:
            tree = now.tree if reader.ref == MAIN else reader.main().tree
            return staging.refresh(reader.repository, tree)
        return True
    return False


_EXPLAINED = ("remove", "undo", "rollback")
_LOG: Final = "logs/refs/heads/main"
# As many of Git's own moves of main are looked at.
_LOOKED_AT: Final = 20
_MOVE = re.compile(r"([0-9a-f]{40}) [0-9a-f]{40} ")
# What keeps a commit, here or on a remote.
_KEEPING: Final = (HEADS, TAGS, SEEN, REMOTES, "refs/smp/rescue/")


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
    refs = references.read(repository.git)
    tips = [CommitId(tip) for ref, tip in refs.items() if ref.startswith(_KEEPING)]
    tips = [tip for tip in tips if repository.raw(bytes.fromhex(tip))[0] == COMMIT]
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


def news(reader: Reader) -> list[Loss]:
    """Return the losses that nobody was told of yet, and note that they were told."""
    found = losses(reader)
    known = reader.local.told() if found else []
    new = [each for each in found if each.head not in known]
    if new:
        with suppress(OSError):
            reader.local.note_told([each.head for each in found])
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
    """Return the memories that stand as they did before the commits that are gone."""
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
