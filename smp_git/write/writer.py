"""The write path: lock, look again, stage, store, publish, check out."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from smp_git.format import dialect, messages, records
from smp_git.format.document import life_of
from smp_git.format.messages import Touch
from smp_git.format.metadata import Metadata
from smp_git.git.disk import reporting
from smp_git.git.locks import ThreadLock, locked
from smp_git.git.objects import Commit, Object, ObjectId
from smp_git.git.references import HEADS
from smp_git.git.repository import MAIN, MovedError, Repository, is_shallow
from smp_git.git.storage import Written
from smp_git.model.errors import (
    ConflictError,
    DamagedError,
    InvalidError,
    LockedError,
    QuotaExceededError,
    RefusedError,
    SmpError,
)
from smp_git.model.ids import Id, parse_id, parse_path
from smp_git.model.memory import CommitId, Kind, agent_name
from smp_git.model.settings import Settings
from smp_git.model.times import format_time
from smp_git.read import sizes
from smp_git.read.replica import Identity, new_tag
from smp_git.read.snapshot import Reader, Snapshot
from smp_git.write.commit import Assembly, assemble, check_out, signed
from smp_git.write.commit import TreeChange as AssembledChange
from smp_git.write.recovery import repair
from smp_git.write.stage import Stage

if TYPE_CHECKING:
    from smp_git.model.secrets.rules import Report

# How often a person's own commit may come between before the write gives up.
_MOST_MOVES: Final = 20

# Means a write that changes no checked-out file: whoever comes next is to repair.
_UNSHOWN: Final = {"refs": None}

# What is done even beyond the quota: it takes next to nothing, or makes room.
_ALWAYS: Final = ("resolve", "remove", "pin", "unpin", "unlink", *messages.LASTING)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The result of a write: its commit, and the memories it touched.

    >>> change = session.undo()
    >>> [(touch.verb, touch.id) for touch in change.touches]
    [('undo', 'DEC-0001')]
    """

    commit: CommitId | None
    touches: tuple[Touch, ...] = ()
    left: tuple[str, ...] = ()
    redacted: Report = ()

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        out: dict[str, object] = {
            "commit": self.commit,
            "touched": [
                {"id": t.id, "kind": t.kind, "change": t.verb or "add"} for t in self.touches
            ],
            "left": list(self.left),
        }
        if self.redacted:
            out["redacted"] = dict(self.redacted)
        return out


class Work(NamedTuple):
    """The work of one of several commits, and its agent."""

    agent: str
    do: Callable[[Stage], None]
    subject: str | None = None
    # Whether its message names the memories that it touches.
    named: bool = True


class Writer:
    """Makes commits on one session, one at a time among all threads and processes.

    What is acknowledged is complete, published and, by default, durable. Before
    the reference moves nothing is visible; after it everything is.
    """

    def __init__(
        self,
        reader: Reader,
        clock: Callable[[], datetime],
        *,
        timeout_seconds: float = 5.0,
        defaults: Settings | None = None,
    ) -> None:
        self.reader = reader
        self.clock = clock
        self.timeout_seconds = timeout_seconds
        # The settings of the store, which bound a session; without them nothing does.
        self.defaults = defaults
        self._quota: tuple[Metadata, int] | None = None
        self.longest_wait_seconds = 0.0
        self.left: dict[str, None] = {}
        # Who is told of each write, as long as he is there.
        self.watched: Callable[[], Callable[[], None] | None] = lambda: None
        self._threads = ThreadLock()
        self._identity: Identity | None = None
        # How often history had been rewritten when the identity was read.
        self._identity_epoch = b""
        self._reserved: dict[str, int] = {}
        # The counters as they are on the disk, once looked at under the lock.
        self._counters: dict[str, int] | None = None
        # What has to be done before the first write, for a session of an older format.
        self.before_writing: Callable[[], None] | None = None
        _writers.add(self)

    def ready(self) -> None:
        """Bring the session to the present format, if it is older; before the lock is taken."""
        before, self.before_writing = self.before_writing, None
        if before is None:
            return
        try:
            before()
        except BaseException:
            self.before_writing = before
            raise

    def forget_threads(self) -> None:
        """Wait no longer for threads that a forked child has not got."""
        self._threads = ThreadLock()

    # Locking

    @contextmanager
    def holding(self, doing: str, patience_seconds: float | None = None) -> Iterator[Snapshot]:
        """Hold the session's lock; yield the session as it is under it, a dead writer's work finished."""
        limit = self.timeout_seconds if patience_seconds is None else patience_seconds
        started = time.monotonic()
        deadline = started + limit
        threads = self._threads
        if not threads.acquire(deadline):
            raise LockedError(
                f"session {self.reader.path.name} stayed locked for {limit:g} s by another thread",
                hint="try again",
            )
        try:
            with locked(self.reader.local.lock_path, deadline, doing):
                waited = time.monotonic() - started
                self.longest_wait_seconds = max(self.longest_wait_seconds, waited)
                self._counters = None
                if self._identity_epoch != self.reader.local.epoch():
                    self._identity = None
                with reporting(f"to session {self.reader.path.name}"):
                    if self.reader.local.is_unfinished():
                        repair(self.reader)
                    yield self.reader.snapshot()
        finally:
            threads.release()

    # Writing

    def run_all(self, works: Sequence[Work], reason: str | None = None) -> Change:
        """Commit several stages one after the other, and publish them in one step."""
        self.ready()
        with self.holding("writing several commits") as base:
            for _ in range(_MOST_MOVES):
                try:
                    return self._commit_all(base, works, reason)
                except MovedError:
                    base = self.reader.snapshot()
        raise self._moved()

    def _commit_all(self, base: Snapshot, works: Sequence[Work], reason: str | None) -> Change:
        repository, below = self.reader.repository, base
        objects: list[Object] = []
        touches: tuple[Touch, ...] = ()
        for work in works:
            stage = Stage(below, agent_name(work.agent), self.clock(), partial(self._next, below))
            work.do(stage)
            _refuse_deleted(stage)
            made = self._with_registration(stage, assemble(below, stage.files))
            if made.tree == below.tree:
                continue
            touches = tuple(stage.touches.values())
            head = messages.BATCH if len(touches) > 1 else None
            last = work is works[-1]
            text = messages.write(
                touches if work.named else (),
                stage.agent,
                stage.turn(),
                reason if last else None,
                work.subject or head,
            )
            if work.named:
                self._refuse_beyond_quota(stage, made)
            commit = self._made(stage, made, text)
            new = [*made.objects, commit]
            # For the next one to read; all are made durable when they are published.
            repository.store(new).close()
            objects += new
            below = self.reader.at(CommitId(commit.id))
        changes = [AssembledChange(*each) for each in repository.changes(base.tree, below.tree)]
        shown = Assembly(below.tree, [], changes, {})
        left = self.publish(self.reader.ref, base.id, below.id, shown, objects)
        return Change(commit=below.id, touches=touches, left=tuple(left))

    def _moved(self) -> ConflictError:
        return ConflictError(
            f"session {self.reader.path.name} is being moved by another Git process",
            hint="wait for it to end, then try again",
        )

    def run(
        self,
        agent: str,
        work: Callable[[Stage], _T],
        *,
        reason: str | None = None,
        subject: str | None = None,
    ) -> tuple[_T, Change]:
        """Do `work` on a stage under the lock and commit what it staged.

        `work` may be done again, on a newer snapshot, if a person's own commit came
        between.
        """
        name = agent_name(agent)
        self.ready()
        with self.holding(f"writing for {name}") as base:
            for _ in range(_MOST_MOVES):
                stage = Stage(base, name, self.clock(), partial(self._next, base))
                result = work(stage)
                try:
                    return result, self._commit(stage, reason, subject)
                except MovedError:
                    base = self.reader.snapshot()
        raise self._moved()

    def _commit(self, stage: Stage, reason: str | None, subject: str | None) -> Change:
        base = stage.base
        _refuse_deleted(stage)
        made = assemble(base, stage.files, written=stage.written)
        if made.tree == base.tree:
            return Change(commit=base.id)
        made = self._with_registration(stage, made)
        self._refuse_beyond_quota(stage, made)
        touches = tuple(stage.touches.values())
        told = tuple(touch for touch in touches if not _is_buried(stage, touch))
        head = subject if told == touches else subject or messages.BATCH
        commit = self._made(
            stage, made, messages.write(told, stage.agent, stage.turn(), reason, head)
        )
        taken = [change._replace(taken=stage.taken.get(change.path)) for change in made.changes]
        new = CommitId(commit.id)
        shown = made._replace(changes=taken)
        left = self.publish(self.reader.ref, base.id, new, shown, [*made.objects, commit])
        return Change(commit=new, touches=touches, left=tuple(left))

    def _refuse_beyond_quota(self, stage: Stage, made: Assembly) -> None:
        """Raise QuotaExceededError if the session would grow beyond its quota."""
        touches = stage.touches.values()
        if self.defaults is None or all(touch.verb in _ALWAYS for touch in touches):
            return
        base, sizes_of = stage.base, made.data()
        sized = [(each.old, len(sizes_of[each.new]) if each.new else 0) for each in made.changes]
        before, more = sizes.tracked_bytes(self.reader, base), sizes.growth(base.repository, sized)
        quota = self._quota_of(base)
        if more > 0 and before + more > quota:
            raise QuotaExceededError(
                f"session {self.reader.path.name} has {before:,} of {quota:,} bytes, "
                f"and this write needs {more:,} more; nothing was written",
                hint="smp compact makes room, smp size shows what takes it, smp config set quota_bytes raises it",
            )
        self.reader.size = made.tree, before + more

    def _quota_of(self, base: Snapshot) -> int:
        said = base.metadata
        if self._quota is None or self._quota[0] is not said:
            assert self.defaults is not None  # noqa: S101 - asked before
            found = self.defaults.as_far_as_possible(said.settings, said.id)
            self._quota = said, found.settings.quota_bytes
        return self._quota[1]

    def _with_registration(self, stage: Stage, made: Assembly) -> Assembly:
        """Register this replica in its first commit."""
        base = stage.base
        path, data = self.registration(stage.now)
        if path in stage.files or base.repository.find(base.tree, path) is not None:
            return made
        stage.files[path] = data
        return assemble(base, stage.files, written=stage.written)

    def _made(self, stage: Stage, made: Assembly, text: str) -> Object:
        identity, parents = self.identity(), (stage.base.id,)
        return signed(made.tree, parents, identity, stage.agent, stage.now, text)

    def publish(
        self, ref: str, expected: CommitId, new: CommitId, made: Assembly, objects: Sequence[Object]
    ) -> list[str]:
        """Move a branch to a commit and check out what it changes; the caller holds the lock.

        Returns the files that were left alone because a person had changed them. Raises
        MovedError, with nothing changed, if the branch is not where it is expected, and
        RefusedError if a person has checked out another branch than main, and that one.
        """
        reader = self.reader
        is_shown = reader.repository.checked_out() == ref
        if is_shown and ref != MAIN:
            # Files and index would stay behind, and the person's next commit undo the write.
            raise RefusedError(
                f"branch {ref.removeprefix(HEADS)} is checked out in the folder of session {reader.path.name}",
                hint="commit what you have there and git switch main; then do this again",
            )
        # Marked before anything is written, so that whoever comes next knows of it.
        changes = {change.path: change.old for change in made.changes}
        reader.local.mark_pending(changes if is_shown else _UNSHOWN)
        try:
            with reader.repository.store(objects) as written:
                self._keep_counters(written)
                reader.repository.publish(ref, expected, new, written)
        except BaseException:
            if reader.repository.head(ref) != new:
                reader.local.clear_pending()
            raise
        if watching := self.watched():
            watching()
        reader.know_pages(made.tree, made.pages)
        try:
            left = self._check_out(made) if is_shown else []
        except (OSError, SmpError):
            # The write is done; the next one brings the files up to date before it begins.
            return [change.path for change in made.changes]
        reader.local.clear_pending()
        return left

    def _check_out(self, made: Assembly) -> list[str]:
        reader = self.reader
        data = made.data()
        left = check_out(
            reader.path,
            made.changes,
            lambda blob: data.get(blob) or reader.repository.blob(blob),
            reader.local.scratch("checkout"),
        )
        bases = {change.path: change.old for change in made.changes if change.path in left}
        done = [change.path for change in made.changes if change.path not in left]
        reader.local.note_left_alone(bases, done)
        self.left = dict.fromkeys(left)
        return left

    # Who writes

    def identity(self) -> Identity:
        """Return who writes here, choosing a new tag for a copied or cloned folder."""
        if self._identity is None:
            self._identity_epoch = self.reader.local.epoch()
            kept = self.reader.local.identity(self.reader.path)
            self._identity = kept or Identity(new_tag(), creator=False)
            if kept is None:
                self.reader.local.identify(self.reader.path, self._identity, self.reader.path)
        return self._identity

    def take_new_tag(self) -> None:
        """Take a tag that nobody has; the caller holds the lock.

        Other handles of this replica look who they are when history was rewritten.
        """
        reader = self.reader
        self._identity = Identity(new_tag(), creator=False)
        reader.local.identify(reader.path, self._identity, reader.path)
        reader.local.raise_epoch()
        self._identity_epoch = reader.local.epoch()
        reader.snapshot()

    def registration(self, at: datetime) -> tuple[str, bytes]:
        """Return the file that registers this replica: its path and bytes."""
        tag = self.identity().tag
        said = dialect.write({"tag": tag, "registered_at": format_time(at)})
        return _registered(tag), said.encode()

    def is_registered(self, base: Snapshot) -> bool:
        """Whether this replica has written here; one that has not stays without a tag."""
        known = self.reader.local.identity(self.reader.path)
        return known is not None and bool(base.repository.find(base.tree, _registered(known.tag)))

    # Numbers

    def _next(self, base: Snapshot, kind: Kind) -> Id:
        """Return an id that was never given; the caller holds the lock."""
        number = self._highest(kind, base) + 1
        self._reserved[kind.prefix] = number
        return Id(kind, number, self.identity().suffix)

    def _highest(self, kind: Kind, base: Snapshot) -> int:
        kept = self._kept_counters()
        if not kept:
            kept = self._counted_anew()
            self._reserved = kept | self._reserved
        mine = max(
            self._reserved.get(kind.prefix, 0),
            base.tombstones.highest(kind.prefix, self.identity().suffix),
        )
        there = base.highest(kind.name, self.identity().suffix)
        return max(mine, kept.get(kind.prefix, 0), there)

    def _counted_anew(self) -> dict[str, int]:
        """Return the highest numbers on any branch and in any commit: the counters are gone."""
        suffix = self.identity().suffix
        refs = self.reader.repository.references()
        heads = {head for ref, head in refs.items() if ref.startswith("refs/heads/")}
        found: dict[str, int] = {}
        for place in self._ids_in(heads):
            if place.tag == suffix and not place.name:
                found[place.kind.prefix] = max(place.number, found.get(place.kind.prefix, 0))
        return found

    def _ids_in(self, heads: set[CommitId]) -> Iterator[Id]:
        """Yield the memories that these commits have, and those that any before them touched."""
        repository, lost = self.reader.repository, dict[CommitId, DamagedError]()
        for head in heads:
            yield from (parse_id(entry.id) for entry in self.reader.at(head).entries())
            for commit in repository.walk(head, lost):
                touches = messages.read(commit.message).touches
                for touch in touches:
                    with suppress(InvalidError):
                        yield parse_id(touch.id)
                if not touches:
                    # The message of a batch does not name them.
                    before = _tree_before(repository, commit)
                    places = (
                        parse_path(path) for path, *_ in repository.changes(before, commit.tree)
                    )
                    yield from (place for place in places if place is not None)
        # What a shallow clone has not got is no damage, but nobody knows the numbers in it.
        for error in () if is_shallow(repository.git) else lost.values():
            raise error

    def reserve(self, kind: Kind, count: int) -> range:
        """Return numbers that nobody else will give."""
        self.ready()
        with self.holding("reserving ids") as base:
            first = self._highest(kind, base) + 1
            self._reserved[kind.prefix] = first + count - 1
            self._keep_counters(None)
            return range(first, first + count)

    def give_back(self, left: Mapping[str, range]) -> None:
        """Take back, by prefix, what is left of reservations; the caller holds the lock.

        Where somebody gave numbers since, those left are gaps.
        """
        kept = self._kept_counters()
        lower = {
            prefix: rest.start - 1
            for prefix, rest in left.items()
            if rest and kept.get(prefix) == self._reserved.get(prefix) == rest.stop - 1
        }
        if lower:
            self._reserved |= lower
            self._counters = kept | lower
            self.reader.local.keep_counters(self._counters)

    def _keep_counters(self, written: Written | None) -> None:
        if not self._reserved:
            return
        kept = self._kept_counters()
        merged = kept | {
            prefix: max(number, kept.get(prefix, 0)) for prefix, number in self._reserved.items()
        }
        if merged != kept:
            self.reader.local.keep_counters(merged, written)
            self._counters = merged

    def _kept_counters(self) -> dict[str, int]:
        if self._counters is None:
            self._counters = self.reader.local.counters()
        return self._counters


_writers: weakref.WeakSet[Writer] = weakref.WeakSet()


def _forget_after_fork() -> None:
    for writer in list(_writers):
        writer.forget_threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


def _tree_before(repository: Repository, commit: Commit) -> ObjectId | None:
    """Return the tree of a commit's first parent, None if there is none that can be read."""
    with suppress(DamagedError):
        return repository.commit(commit.parents[0]).tree if commit.parents else None
    return None


def _refuse_deleted(stage: Stage) -> None:
    """Raise RefusedError if a deleted memory would come back."""
    known = stage.base.tombstones | records.read(stage.files.get(records.PATH) or b"")
    for path, data in stage.files.items() if known else ():
        place = parse_path(path) if data is not None else None
        if place is not None and data and known.is_dead(place.text, life_of(data, path)):
            raise RefusedError(f"{place.text} was deleted", hint="smp restore brings it back")


def _is_buried(stage: Stage, touch: Touch) -> bool:
    """Whether a removed memory was deleted in an earlier life: then no message names it.

    A rewrite would take the line out, and so make another commit of this one.
    """
    if not stage.base.tombstones.names(touch.id) or touch.verb in messages.LASTING:
        return False
    return stage.files.get(parse_id(touch.id).path, b"") is None


def _registered(tag: str) -> str:
    """Return where the file of a replica is that has written."""
    return f"replicas/{tag}.yaml"
