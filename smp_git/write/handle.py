"""An open session: the one value that every operation on it is handed, and what follows its writes."""

from __future__ import annotations

import atexit
import json
import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from smp_git.format import metadata
from smp_git.format.metadata import Metadata
from smp_git.git import staging
from smp_git.git.objects import BLOB, FILE_MODE, TREE, Child, Object, write_tree
from smp_git.git.references import ACCESS
from smp_git.git.repository import MAIN, MovedError, Repository
from smp_git.model.errors import InvalidError, RefusedError, SmpError
from smp_git.model.ids import sort_key
from smp_git.model.lifecycle import UPKEEP, State
from smp_git.model.memory import CommitId, agent_name
from smp_git.model.settings import InSession, Settings
from smp_git.model.times import When, moment_of
from smp_git.read.counts import FILE, Accesses, Counts
from smp_git.read.replica import Identity
from smp_git.read.snapshot import Reader, Snapshot

if TYPE_CHECKING:
    from smp_git.model.secrets.rules import Rules
    from smp_git.write.stage import Stage
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

    def __init__(self, reader: Reader, new: Callable[[], Writer]) -> None:
        self._reader = reader
        self._new = new
        self._made: dict[None, Writer] = {}
        self._dirty = threading.Event()
        self._refreshing = threading.Lock()
        self._last_write = 0.0
        self._process = 0
        self._behind = False
        self.has_written = False
        reader.watched = weakref.WeakMethod(self.note_moved)
        _keepers.add(self)

    @property
    def writer(self) -> Writer:
        """The writer, made by the first who needs it: most programs only read."""
        # Of two threads that come at once, both get the one that is there first.
        return self._made.get(None) or self._made.setdefault(None, self._new_writer())

    def _new_writer(self) -> Writer:
        made = self._new()
        made.watched = weakref.WeakMethod(self.note_write)
        return made

    def note_write(self) -> None:
        """Remember that the index is behind."""
        self._behind = self.has_written = True
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
        reader = self._reader
        with suppress(SmpError):
            return not self._behind and staging.is_current(
                reader.repository.git, reader.main().tree
            )
        return False

    def stop(self) -> None:
        """Refresh the index and keep it no longer; nothing goes on in the background after it."""
        # A forked child has the lock as it was, but not the thread that may hold it.
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
    # What was written is there without it; the next open refreshes the index.
    with suppress(SmpError), writer.holding("refreshing Git's index", patience_seconds) as now:
        if reader.repository.checked_out() == MAIN:
            tree = now.tree if reader.ref == MAIN else reader.main().tree
            return staging.refresh(reader.repository, tree)
        return True
    return False


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


_T = TypeVar("_T")
# No kind of secret is so short, or without a digit or a sign.
_WORD: Final = re.compile(r"[a-z]{1,16}")
# More commits than maintenance makes between two uses of a session.
_LOOKED_BACK: Final = 500
# The session of what holds across sessions.
GLOBAL = "global"
# Beside the store: what a project kept in older formats, as it was before a migration.
BACKUP = "backup-pre-smp"
BACKUP_MANIFEST = "backup.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A store: its folder, settings and clock, and what the environment says of it."""

    path: Path
    settings: Settings
    clock: Callable[[], datetime]
    environment: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """An open session, on one branch of it."""

    reader: Reader
    keeper: IndexKeeper
    accesses: Accesses
    clock: Callable[[], datetime]
    # The settings of the store, which those of the session override.
    defaults: Settings
    home: Home | None = None
    # The folder of the session of what holds across sessions, unless this is it.
    shared: Path | None = None
    # Refuses what may not be written, once it is staged and before it is committed.
    guard: Callable[[Stage], None] | None = None
    # The settings of the metadata that was read last, and the writer of main beside a branch.
    known: dict[Metadata, InSession] = field(default_factory=dict, repr=False)
    mains: list[Writer] = field(default_factory=list, repr=False)

    @property
    def name(self) -> str:
        """The session's name, which is its folder's: a copy keeps the metadata."""
        return self.reader.path.name

    @property
    def writer(self) -> Writer:
        """What makes commits on the session."""
        return self.keeper.writer

    @property
    def metadata(self) -> Metadata:
        """The session's metadata now."""
        return self.reader.snapshot().metadata

    @property
    def in_session(self) -> InSession:
        """The settings that hold now, and what is wrong with those that the session says."""
        said = self.metadata
        found = self.known.get(said)
        if found is None:
            found = self.defaults.as_far_as_possible(said.settings, metadata.PATH)
            self.known.clear()
            self.known[said] = found
        return found

    @property
    def settings(self) -> Settings:
        """The settings that hold now: the store's, and over them the session's."""
        return self.in_session.settings

    @property
    def rules(self) -> Rules:
        """Which secrets are kept out; raise InvalidError if what the session says is not valid."""
        found = self.in_session
        if found.unsafe is not None:
            raise InvalidError(
                f"nothing is written by these rules for secrets: {found.unsafe.message}",
                hint="smp config -s ID unset NAME removes what the session sets",
            )
        return found.settings.rules

    @property
    def main_writer(self) -> Writer:
        """The writer of what concerns the whole session, which is on main."""
        if self.reader.ref == MAIN:
            return self.writer
        if not self.mains:
            from smp_git.write.writer import Writer  # noqa: PLC0415 - on a branch, by few

            reader = Reader(self.reader.path, durable=self.defaults.durable)
            limit = self.defaults.lock_timeout_seconds
            self.mains.append(
                Writer(reader, self.clock, timeout_seconds=limit, defaults=self.defaults)
            )
        return self.mains[0]

    def guarded(self, work: Callable[[Stage], _T]) -> Callable[[Stage], _T]:
        """Return work that is refused if it stages what may not be written here."""
        guard = self.guard
        if guard is None:
            return work

        def do(stage: Stage) -> _T:
            done = work(stage)
            guard(stage)
            return done

        return do

    def at_home(self) -> Home:
        """Return the store of the session; raise RefusedError if it is in none."""
        if self.home is None:
            raise RefusedError("this session is in no store, so nothing could be recovered")
        return self.home

    def actor(self, given: str | None, rules: Rules | None = None) -> str:
        """Return who acts: the session's user unless somebody is named."""
        if given is not None and rules is None and self._is_no_secret(given):
            return agent_name(given)
        if given is not None:
            return agent_name((rules or self.rules).name(given, "the name of an agent"))
        user = self.metadata.user
        return agent_name(user) if user else "user"

    def _is_no_secret(self, name: str) -> bool:
        """Whether the usual rules, which take a while to load, find nothing in a name."""
        found = self.in_session
        is_usual = found.unsafe is None and found.settings.own_rules is None
        return is_usual and _WORD.fullmatch(name) is not None

    def moment(self, at: When) -> datetime:
        """Return the time that is meant; raise InvalidError."""
        return moment_of(at, self.clock())

    def at(self, revision: When) -> Snapshot:
        """Return the session as it was at a revision."""
        from smp_git.read import history  # noqa: PLC0415 - most ask for the present

        return history.at_revision(self.reader, revision, self.clock())

    def read(self, at: When | None, answer: Callable[[Snapshot], _T]) -> _T:
        """Return an answer on the present session, or on an earlier one."""
        if at is None:
            return self.reader.read(answer)
        return self.reader.read(lambda _: answer(self.at(at)))

    def used_at(self) -> datetime:
        """Return when the session was written or read last; what maintenance did does not count."""
        commits = islice(self.reader.repository.walk(self.reader.main().id), _LOOKED_BACK)
        written = next((each.time for each in commits if each.author not in UPKEEP), None)
        moments = (written, self.accesses.last_at(), self.metadata.created_at)
        return max(moment for moment in moments if moment)

    def state(self, now: datetime) -> State:
        """Return where the session is in its life."""
        is_empty = not self.reader.main().commit.parents
        return self.settings.thresholds.state(self.used_at(), now, is_empty=is_empty)

    def refuse_on_a_branch(self, why: str) -> None:
        """Raise RefusedError on a branch other than main, whose files are in the folder."""
        if self.reader.ref != MAIN:
            raise RefusedError(
                f"the folder shows main, so {why}", hint="smp --branch main, or smp switch main"
            )


# A shorter journal stays what it is, unless it is to be pushed.
_FOLD_BYTES: Final = 64_000


def fold_counts(handle: Handle, *, everything: bool = False) -> None:
    """Keep what was counted, and move a long journal into this replica's reference.

    With `everything` a short one is moved too, so that it can be pushed.
    """
    accesses = handle.accesses
    accesses.flush()
    if accesses.journal_size() < (1 if everything else _FOLD_BYTES):
        return
    writer = handle.writer
    with suppress(SmpError, MovedError), writer.holding("counting accesses"):
        identity = writer.identity()
        ref = ACCESS + identity.tag
        repository, counts = writer.reader.repository, accesses.counted(ref)
        _publish(repository, ref, counts, identity, writer.clock())
        accesses.clear()


def _publish(
    repository: Repository, ref: str, counts: Counts, identity: Identity, at: datetime
) -> None:
    """Replace the reference by one parentless commit with these counts."""
    from smp_git.write import commit  # noqa: PLC0415 - not for who only reads

    ordered = {name: list(counts[name]) for name in sorted(counts, key=sort_key)}
    blob = Object(BLOB, json.dumps(ordered, separators=(",", ":")).encode() + b"\n")
    tree = Object(TREE, write_tree({FILE: Child(FILE_MODE, blob.id)}))
    made = commit.of_accesses(tree.id, identity, at)
    with repository.store([blob, tree, made]) as written:
        repository.publish(ref, repository.head(ref), CommitId(made.id), written)
