"""The one way in which memories leave history: plan, seal, publish, remove, prove."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from smp_git.format.metadata import PATH as METADATA
from smp_git.format.records import Tombstones
from smp_git.git import locks, references, staging
from smp_git.git.locks import locked
from smp_git.git.objects import ObjectId
from smp_git.git.references import HEADS, TAGS
from smp_git.git.repository import MAIN, Repository
from smp_git.model.errors import ConflictError, LockedError, MemoryNotFoundError, RefusedError
from smp_git.model.ids import FIRST, PURGED, REDACTED, Lives, deleted, parse_id
from smp_git.model.memory import CommitId, MemoryId, agent_name
from smp_git.remove.history import journal, prove, publish, sweep
from smp_git.remove.history import plan as guards
from smp_git.remove.history.finder import Search
from smp_git.remove.history.generations import raised
from smp_git.remove.history.journal import Counts, Journal, Receipt
from smp_git.remove.history.moves import Move
from smp_git.remove.history.needles import DeadVersion, needles
from smp_git.remove.history.places import PlaceNames
from smp_git.remove.history.plan import RewritePlan, is_staged_gone, make_plan
from smp_git.remove.history.prove import Proof
from smp_git.remove.history.publish import Brought, Publisher
from smp_git.remove.history.tombstones import effective
from smp_git.write import commit
from smp_git.write.writer import Writer

__all__ = [
    "Counts",
    "DeadVersion",
    "Proof",
    "Receipt",
    "erase",
    "erase_arrived",
    "is_interrupted",
    "move",
    "resume",
]

# How often another deletion may come between before this one gives up.
_MOST_PLANS: Final = 5
# One deletion at a time; the next one waits for the proof of the one before.
_LOCK: Final = "erasing/lock"
_PATIENCE_SECONDS: Final = 60.0
# What a process that was killed was about to start has its locks for a moment longer.
_MOMENT_SECONDS: Final = 0.1

Seal = Callable[[Sequence[DeadVersion]], None]
# The versions that the sealed copy of a deletion holds.
Recall = Callable[[str], Iterable[DeadVersion]]
# What belongs to a deletion beside the session; until it returns, the next open does it again.
Settle = Callable[[Receipt], None]
SettleAgain = Callable[[Journal, Receipt], None]


class Replacement(Protocol):
    """What stands where the deleted stood: a redaction's texts, of a life that begins.

    What is `removed` is brought and taken out again by an ordinary commit: it was removed
    so before, and stands in the history only.
    """

    removed: set[str]

    def records(self, plan: RewritePlan) -> Tombstones:
        """Return the records of what ends and what begins."""

    def files(self, plan: RewritePlan) -> Brought:
        """Return the files that each branch gets, as its tip is now."""


class Incoming(NamedTuple):
    """What came from elsewhere and nothing names yet: its objects, and the tips that reach what lives."""

    tips: Collection[bytes] = ()
    objects: Collection[bytes] = frozenset()


# Brings it into the session, where nothing else can take it away before it is named.
Adopt = Callable[[], Incoming]


class _Order(NamedTuple):
    """What is to be deleted, by whom and why."""

    ids: tuple[MemoryId, ...]
    purge: bool
    by: str
    now: datetime
    deletion: str
    seal: Seal | None
    reason: str | None = None
    deadline: datetime | None = None
    # What was deleted elsewhere: then no ids are named, and no commit of ours names them.
    arrived: Tombstones = Tombstones()
    adopt: Adopt = Incoming
    replacement: Replacement | None = None
    upgrades: bool = False
    reasons: Mapping[str, str] = MappingProxyType({})
    settle: Settle | None = None


class _Erased(NamedTuple):
    """What a deletion came to, before its proof."""

    plan: RewritePlan
    known: Tombstones
    versions: tuple[DeadVersion, ...]
    removed: sweep.Removed
    commit: CommitId


def erase(
    writer: Writer,
    ids: Iterable[str],
    *,
    purge: bool = False,
    reason: str | None = None,
    reasons: Mapping[str, str] | None = None,
    by: str = "user",
    seal: Seal | None = None,
    now: datetime,
    deletion: str | None = None,
    deadline: datetime | None = None,
    replacement: Replacement | None = None,
    settle: Settle | None = None,
) -> Receipt:
    """Take memories out of history, physically, and prove it; return the receipt.

    `seal` gets every version that is about to go, those that were deleted before and
    that plain Git brought back included, and must return only when its copy is durable;
    if it raises, nothing has changed. With a `replacement` the memories go on as another
    life. `settle` is told when all is done, and when it returns the deletion is over.
    Raises RefusedError, with nothing changed, where a deletion could not be complete.
    """
    names = tuple(dict.fromkeys(parse_id(each).text for each in ids))
    if not names:
        raise RefusedError("nothing to delete was named")
    name = deletion or _new_name(now)
    order = _Order(
        names,
        purge,
        agent_name(by),
        now,
        name,
        seal,
        reason,
        deadline,
        replacement=replacement,
        reasons=reasons or {},
        settle=settle,
    )
    receipt = _erased(writer, order)
    assert receipt is not None  # noqa: S101 - what is named is there
    return receipt


def erase_arrived(
    writer: Writer,
    arrived: Tombstones,
    *,
    by: str,
    seal: Seal | None,
    now: datetime,
    deletion: str | None = None,
    again: bool = False,
    replacement: Replacement | None = None,
    settle: Settle | None = None,
    plan: RewritePlan | None = None,
    adopt: Adopt = Incoming,
) -> Receipt | None:
    """Take what was deleted elsewhere out of history; return None if nothing of it was here.

    `seal` gets only the versions that no remote had when it was last seen. With `again`
    what was deleted here before is looked for too: plain Git may have brought it back.
    The `replacement` is what stands in the place of what goes, on top of each branch. A
    `plan` that was made for the same is carried out if nothing has come between; `adopt`
    brings in what came with it.
    """
    # A branch may name what this replica has not acted on yet: plain Git can merge one.
    is_done = writer.reader.local.tombstones().covers(arrived)
    if is_done and not again and replacement is None:
        return None
    arrived = arrived | effective(writer.reader) if again else arrived
    name = deletion or _new_name(now)
    order = _Order(
        ids=(),
        purge=False,
        by=agent_name(by),
        now=now,
        deletion=name,
        seal=seal,
        arrived=arrived,
        adopt=adopt,
        replacement=replacement,
        settle=settle,
    )
    return _erased(writer, order, plan)


def upgrade(writer: Writer, now: datetime) -> None:
    """Bring a session of format 1 to the present one, on every branch, in one rewrite."""
    if not effective(writer.reader):
        _raise_format(writer)
        return
    order = _Order(
        ids=(),
        purge=False,
        by="user",
        now=now,
        deletion=_new_name(now),
        seal=None,
        replacement=Upgrade(),
        upgrades=True,
    )
    try:
        _erased(writer, order)
    except RefusedError as error:
        session = writer.reader.path.name
        raise RefusedError(
            f"session {session} is of format 1, and its first write brings it to format 2: {error.message}",
            hint=error.hint,
        ) from error


def move(writer: Writer, moves: Iterable[Move], now: datetime, *, by: str) -> None:
    """Give memories another id, in all of history; all or nothing, finished after a crash.

    Raises RefusedError, with nothing changed, where history cannot be rewritten as a whole.
    """
    entry = Journal(
        deletion=_new_name(now),
        step=journal.PUBLISHING,
        at=now,
        by=agent_name(by),
        purge=False,
        tombstones=Tombstones(),
        arrived=True,
        moves=tuple(moves),
    )
    writer.ready()
    with _alone(writer, "giving memories another id", _PATIENCE_SECONDS):
        _resumed(writer)
        _moved(writer, entry)
        journal.close(writer.reader.local.folder, entry.deletion)


def _moved(writer: Writer, entry: Journal) -> None:
    """Plan without the lock, then publish under it; plan anew if a deletion came between."""
    for _ in range(_MOST_PLANS):
        guards.check(writer.reader.repository.git)
        plan = make_plan(writer.reader, (), moves=entry.moves)
        with closing(plan), writer.holding("giving memories another id"):
            if writer.reader.local.epoch() == plan.epoch:
                plan.update()
                publish.check_unedited(plan, entry)
                publish.publish(writer, plan, entry)
                return
    raise _rewritten(writer)


def _rewritten(writer: Writer) -> ConflictError:
    return ConflictError(
        f"session {writer.reader.path.name} is being rewritten by others",
        hint="try again when they are done",
    )


def _raise_format(writer: Writer) -> None:
    """Give each branch the present format; nothing was ever deleted, so history stays."""
    reader = writer.reader
    with writer.holding("bringing a session to format 2"):
        repository = reader.repository
        for ref, tip in references.read(repository.git).items():
            data = raised(repository, tip) if ref.startswith(HEADS) else None
            if data is not None and (ref == MAIN or repository.checked_out() != ref):
                made = commit.carrying(reader.at(CommitId(tip)), {METADATA: data})
                writer.publish(ref, CommitId(tip), made.id, made.tree, made.objects)


class Upgrade:
    """Gives each branch the metadata and the records of the present format."""

    def __init__(self) -> None:
        self.removed: set[str] = set()

    def records(self, plan: RewritePlan) -> Tombstones:
        """Return everything that is known, with the lives that were generations."""
        return plan.known

    def files(self, plan: RewritePlan) -> Brought:
        """Return the metadata of each branch."""
        found: dict[str, dict[str, bytes]] = {}
        for ref, tip in plan.history.refs.items():
            data = raised(plan.repository, tip.hex()) if ref.startswith(HEADS) else None
            if data is not None:
                found[ref] = {METADATA: data}
        return found


def _new_name(now: datetime) -> str:
    return f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


def _erased(writer: Writer, order: _Order, plan: RewritePlan | None = None) -> Receipt | None:
    if not order.upgrades:
        writer.ready()
    clock = _Clock()
    smp = writer.reader.local.folder
    with _alone(writer, "deleting", _PATIENCE_SECONDS):
        _resumed(writer)
        done = _planned(writer, order, plan, clock)
        if done is None:
            with writer.holding("deleting"):
                writer.reader.local.keep_tombstones(order.arrived)
            return None
        found = prove.verify(writer.reader, done.known, done.versions)
        clock.lap("proof")
        receipt = _receipt(writer, order, done, found, clock)
        if order.settle is not None:
            order.settle(receipt)
        journal.reached("settled")
        journal.close(smp, order.deletion)
    return receipt


def _receipt(writer: Writer, order: _Order, done: _Erased, found: Proof, clock: _Clock) -> Receipt:
    gone = tuple(dict.fromkeys(each.id for each in done.versions))
    return Receipt(
        deletion=order.deletion,
        ids=order.ids or gone,
        also=tuple(name for name in gone if order.ids and name not in order.ids),
        purged=order.purge,
        reason=order.reason,
        by=order.by,
        at=order.now,
        deadline=order.deadline,
        commit=done.commit,
        counts=_counts(done),
        proof=found,
        out_of_reach=_out_of_reach(writer.reader.repository, done.plan, PlaceNames(done.versions)),
        seconds=clock.laps,
    )


def is_interrupted(writer: Writer) -> bool:
    """Whether a deletion is under way in another process, or was interrupted."""
    return journal.exists(writer.reader.local.folder)


def resume(
    writer: Writer, recall: Recall | None = None, settle: SettleAgain | None = None
) -> Receipt | None:
    """Finish or undo an interrupted deletion, or let go of what one left that had not begun.

    Returns the receipt of the deletion that was finished, None if there was none or it
    was undone because nothing had changed yet. `recall` gives the versions that its
    sealed copy holds, so that their texts are searched for; `settle` does what belongs
    to the deletion beside the session, as far as that was not done.
    """
    git = writer.reader.repository.git
    try:
        if journal.exists(writer.reader.local.folder):
            with _alone(writer, "finishing a deletion", _MOMENT_SECONDS):
                return _resumed(writer, recall, settle)
        with locked(git / _LOCK, time.monotonic() + _MOMENT_SECONDS, "finishing a deletion"):
            locks.forget(git)
    except LockedError:
        # Whoever holds it is at work on it, or Git packs, and it is finished later.
        pass
    return None


@contextmanager
def _alone(writer: Writer, doing: str, patience_seconds: float) -> Iterator[None]:
    """Let no other deletion and no gc of Git's be at work.

    A gc that began before would put what it has read into a pack of its own afterwards.
    """
    git = writer.reader.repository.git
    deadline = time.monotonic() + patience_seconds
    with locked(git / _LOCK, deadline, doing), locks.kept_out(git, deadline, doing):
        yield


def _resumed(
    writer: Writer, recall: Recall | None = None, settle: SettleAgain | None = None
) -> Receipt | None:
    smp = writer.reader.local.folder
    kept = journal.read(smp)
    if kept is None:
        return None
    # What is brought in the place of what goes is in the journal only from the next step on.
    brings = kept.redacts or kept.arrived
    if kept.step == journal.SEALING or (brings and kept.step == journal.SEALED):
        journal.close(smp, kept.deletion)
        return None
    if kept.moves:
        with writer.holding("giving memories another id"):
            guards.check(writer.reader.repository.git)
            with closing(make_plan(writer.reader, (), moves=kept.moves)) as plan:
                publish.publish(writer, plan, kept)
        journal.close(smp, kept.deletion)
        return None
    clock = _Clock()
    with writer.holding("finishing a deletion"):
        guards.check(writer.reader.repository.git)
        done = _finished(writer, kept, tuple(recall(kept.deletion)) if recall else (), clock)
    found = prove.verify(writer.reader, done.known, done.versions)
    clock.lap("proof")
    order = _Order(
        kept.ids, kept.purge, kept.by, kept.at, kept.deletion, None, kept.reason, kept.deadline
    )
    receipt = _receipt(writer, order, done, found, clock)
    if settle is not None:
        settle(kept, receipt)
    journal.close(smp, kept.deletion)
    return receipt


class _Clock:
    """How long each part took."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.monotonic()

    def lap(self, name: str) -> None:
        """Note the time since the last part."""
        now = time.monotonic()
        self.laps[name] = self.laps.get(name, 0.0) + now - self._last
        self._last = now


def _planned(
    writer: Writer, order: _Order, plan: RewritePlan | None, clock: _Clock
) -> _Erased | None:
    """Plan without the lock, then carry out under it; plan anew if a deletion came between.

    Returns None if nothing that arrived is of concern here.
    """
    for _ in range(_MOST_PLANS):
        guards.check(writer.reader.repository.git)
        plan = plan or make_plan(writer.reader, order.ids, order.arrived, upgrades=order.upgrades)
        if order.arrived and order.replacement is None and not plan.is_concerned():
            plan.close()
            return None
        _check_ids(plan, order)
        clock.lap("plan")
        with writer.holding("deleting"):
            clock.lap("wait")
            if writer.reader.local.epoch() == plan.epoch:
                return _carried_out(writer, order, plan, clock)
        plan.close()
        # What came was looked at beside what was known before: it may hold what has gone since.
        plan, order = None, order._replace(adopt=Incoming)
    raise _rewritten(writer)


def _check_ids(plan: RewritePlan, order: _Order) -> None:
    there = {each.id for each in plan.versions()}
    for each in order.ids:
        if each in there or (plan.known.names(each) and (order.purge or order.replacement)):
            continue
        if plan.known.names(each):
            raise RefusedError(f"{each} is deleted already", hint="smp trash lists it")
        raise MemoryNotFoundError(f"no memory {each}, now or before")


def _carried_out(writer: Writer, order: _Order, plan: RewritePlan, clock: _Clock) -> _Erased:
    """Do what needs the lock: the tail, sealing, publishing, removal."""
    guards.check(plan.repository.git)
    guards.check_index(plan.repository.git)
    plan.update()
    guards.check_readable(plan.repository.git, plan.unreadable(order.ids))
    versions = (*plan.versions(), *plan.uncommitted(order.now))
    entry = Journal(
        deletion=order.deletion,
        step=journal.SEALING,
        at=order.now,
        by=order.by,
        purge=order.purge,
        tombstones=_records(plan, versions, order),
        ids=order.ids,
        reason=order.reason,
        reasons=order.reasons,
        deadline=order.deadline,
        arrived=bool(order.arrived) or order.upgrades,
        upgrades=order.upgrades,
        redacts=order.replacement is not None and not order.arrived and not order.upgrades,
        removed=tuple(sorted(order.replacement.removed)) if order.replacement else (),
    )
    smp = writer.reader.local.folder
    journal.write(smp, entry)
    try:
        if order.seal is not None:
            order.seal(
                plan.unshared(versions) if order.arrived else _to_seal(plan, versions, order)
            )
    except BaseException:
        journal.close(smp, order.deletion)
        raise
    journal.write(smp, entry.stepped(journal.SEALED))
    clock.lap("seal")
    files = order.replacement.files if order.replacement else None
    return _published(writer, entry, plan, versions, clock, files, order.adopt)


def _finished(
    writer: Writer, entry: Journal, recalled: tuple[DeadVersion, ...], clock: _Clock
) -> _Erased:
    """Carry an interrupted deletion to its end; the caller holds the lock."""
    plan = make_plan(writer.reader, (), entry.tombstones, upgrades=entry.upgrades)
    versions = tuple(dict.fromkeys((*plan.versions(), *recalled)))
    return _published(writer, entry, plan, versions, clock, lambda plan: _left_by(plan, entry))


def _left_by(plan: RewritePlan, entry: Journal) -> Brought:
    """Return the files that an interrupted redaction was about to bring."""
    blob = plan.repository.blob
    return {
        ref: {path: blob(ObjectId(name)) for path, name in files.items()}
        for ref, files in entry.brought.items()
    }


def _published(
    writer: Writer,
    entry: Journal,
    plan: RewritePlan,
    versions: tuple[DeadVersion, ...],
    clock: _Clock,
    files: Callable[[RewritePlan], Brought] | None,
    adopt: Adopt = Incoming,
) -> _Erased:
    smp = writer.reader.local.folder
    known = plan.known | entry.tombstones
    incoming = adopt()
    publisher = Publisher(writer, plan, entry, files, versions, incoming.objects)
    head = publisher.prepare()
    clock.lap("write")
    # From here on it is finished, whatever happens.
    journal.write(smp, publisher.entry(journal.PUBLISHING))
    _expel(plan.repository, publisher.tree_shown(), known)
    journal.reached("index cleaned")
    publisher.publish()
    # Not before: a sync that runs now takes what these name for gone from every reference.
    writer.reader.local.keep_tombstones(known)
    writer.reader.local.raise_epoch()
    clock.lap("publish")
    journal.write(smp, entry.stepped(journal.REMOVING))
    publisher.check_out(known)
    journal.reached("checked out")
    sweep.tidy(plan.repository.git, known)
    journal.reached("tidied")
    removed = _removed(plan, (*publisher.tips(), *incoming.tips), known, versions)
    plan.close()
    writer.reader.local.raise_epoch()
    writer.reader.reopen()
    journal.write(smp, entry.stepped(journal.PROVING))
    clock.lap("remove")
    return _Erased(plan, known, versions, removed, head)


def _expel(repository: Repository, tree: ObjectId | None, known: Tombstones) -> None:
    """Take the deleted out of Git's index, which would keep their objects alive."""
    if tree is None:
        return
    if not staging.expel(
        repository, tree, lambda path, blob: is_staged_gone(path, blob, known, repository)
    ):
        raise _index_held(repository)


def _index_held(repository: Repository) -> LockedError:
    return LockedError(
        f"another Git process holds the index of session {repository.path.name}",
        hint="the deletion is finished when the session is opened next",
    )


def _removed(
    plan: RewritePlan, tips: Iterable[bytes], known: Tombstones, versions: tuple[DeadVersion, ...]
) -> sweep.Removed:
    wanted = needles(known, versions)
    holds = Search(wanted.texts, wanted.phrases).is_in
    # What is staged now may be an object that was there and that nothing names yet.
    with staging.held(plan.repository.git) as mine:
        if not mine:
            raise _index_held(plan.repository)
        gone = sweep.dead(plan.repository, plan.rewriter, tips, known, holds)
        removed = sweep.remove_objects(plan.repository, gone)
    sweep.drop_vectors(plan.repository.git)
    return removed


def _records(plan: RewritePlan, versions: Sequence[DeadVersion], order: _Order) -> Tombstones:
    """Return what is recorded: every life that is known of what was asked for ends."""
    if order.replacement is not None:
        return order.arrived | order.replacement.records(plan)
    if order.arrived:
        return order.arrived
    found: dict[MemoryId, set[str]] = {name: set() for name in order.ids}
    for each in versions:
        if each.id in found and each.life is not None:
            found[each.id].add(each.life)
    return Tombstones.of(
        {
            name: deleted(there, purged=order.purge, before=plan.known.lives(name))
            for name, there in found.items()
        }
    )


def _to_seal(
    plan: RewritePlan, versions: Sequence[DeadVersion], order: _Order
) -> tuple[DeadVersion, ...]:
    """Return what is sealed: what was asked for, and what plain Git brought back.

    What was redacted or purged is gone for good.
    """
    return tuple(
        each
        for each in versions
        if each.id in order.ids or not is_final(plan.known.lives(each.id), each.life)
    )


def is_final(known: Lives, life: str | None) -> bool:
    """Whether a version is gone for good: purged, or overtaken by a redaction."""
    return bool({PURGED, REDACTED} & known.ended_by(life or FIRST))


def _counts(done: _Erased) -> Counts:
    changed = [step for step in done.plan.rewriter.steps.values() if step.new != step.old]
    dropped = sum(step.dropped for step in changed)
    return Counts(
        versions=len(done.versions),
        commits_rewritten=len(changed) - dropped,
        commits_dropped=dropped,
        objects_removed=done.removed.objects,
        bytes_removed=done.removed.bytes,
    )


def _out_of_reach(repository: Repository, plan: RewritePlan, names: PlaceNames) -> tuple[str, ...]:
    """Say what else holds the history from before, without any address's credentials."""
    remotes = sorted(repository.remotes())
    moved = [
        name.removeprefix(TAGS)
        for name, tip in sorted(plan.history.refs.items())
        if name.startswith(TAGS) and plan.result.refs.get(name) != tip
    ]
    return (
        *(f"remote {name}: holds it until it is synced" for name in remotes),
        *(
            f"tag {names.file(name)}: anyone who fetched it keeps it until their next sync"
            for name in moved
            if remotes
        ),
        *(
            f"submodule {name}: a repository of its own, not looked into"
            for name in _submodules(repository)
        ),
        "clones, backups and file system snapshots made before",
    )


def _submodules(repository: Repository) -> list[str]:
    folder = repository.git / "modules"
    return sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []
