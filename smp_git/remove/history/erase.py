"""The one way in which memories leave history: plan, seal, publish, sweep, prove."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.format import document, imports
from smp_git.format.metadata import PATH as METADATA
from smp_git.format.records import Tombstones
from smp_git.git import locks, references, staging
from smp_git.git.locks import locked
from smp_git.git.references import HEADS, TAGS
from smp_git.git.repository import MAIN, Repository
from smp_git.model.errors import (
    ConflictError,
    InvalidFileError,
    LockedError,
    MemoryNotFoundError,
    RefusedError,
)
from smp_git.model.ids import parse_id
from smp_git.model.memory import CommitId, agent_name
from smp_git.read import sizes
from smp_git.remove.history import journal, prove, sweep
from smp_git.remove.history import plan as guards
from smp_git.remove.history.journal import Brought, Counts, Incoming, Journal, Receipt, RewriteOrder
from smp_git.remove.history.places import PlaceNames
from smp_git.remove.history.plan import RewritePlan, effective, is_staged_gone, make_plan
from smp_git.remove.history.publish import Publisher, check_unedited, reassign
from smp_git.remove.history.renaming import Move, raised
from smp_git.remove.history.search import DeadVersion, Search, needles
from smp_git.write import commit
from smp_git.write.handle import BACKUP, GLOBAL
from smp_git.write.writer import Writer

# How often another deletion may come between before this one gives up.
_MOST_PLANS: Final = 5
_PATIENCE_SECONDS: Final = 60.0
# What a process that was killed was about to start has its locks for a moment longer.
_MOMENT_SECONDS: Final = 0.1


def erase(writer: Writer, ids: Iterable[str], order: RewriteOrder) -> Receipt:
    """Take memories out of history, physically, and prove it; return the receipt.

    Raises RefusedError, with nothing changed, where a deletion could not be complete.
    """
    names = tuple(dict.fromkeys(parse_id(each).text for each in ids))
    if not names:
        raise RefusedError("nothing to delete was named")
    receipt = rewrite(writer, replace(order, ids=names))
    assert receipt is not None  # noqa: S101 - what is named is there
    return receipt


def erase_arrived(
    writer: Writer,
    arrived: Tombstones,
    order: RewriteOrder,
    *,
    again: bool = False,
    plan: RewritePlan | None = None,
) -> Receipt | None:
    """Take what was deleted elsewhere out of history; return None if nothing of it was here.

    Only the versions are sealed that no remote had when it was last seen. With `again`
    what was deleted here before is looked for too: plain Git may have brought it back.
    A `plan` that was made for the same is carried out if nothing has come between.
    """
    # A branch may name what this replica has not acted on yet: plain Git can merge one.
    is_done = writer.reader.local.tombstones().covers(arrived)
    if is_done and not again and order.replacement is None:
        return None
    arrived = arrived | effective(writer.reader) if again else arrived
    return rewrite(writer, replace(order, arrived=arrived), plan)


def rewrite(writer: Writer, order: RewriteOrder, plan: RewritePlan | None = None) -> Receipt | None:
    """Carry out one deletion: plan, seal, publish, sweep, prove; return its receipt.

    The lock of deletions and that of Git's gc are held throughout, the session's only from
    sealing to sweeping: writers go on while it plans and proves. Returns None if nothing
    of what was deleted elsewhere is here.
    """
    order = replace(order, by=agent_name(order.by), deletion=order.deletion or _new_name(order.now))
    if not order.upgrades:
        writer.ready()
    clock = _Clock()
    with _alone(writer, "deleting", _PATIENCE_SECONDS):
        _finish_left(writer)
        with _planned(writer, order, plan, clock) as work:
            if work is None:
                return None
            _seal(work)
            publisher = _publish(work)
            removed = _sweep(work, publisher)
        receipt = _prove(work, publisher, removed)
        if order.settle is not None:
            receipt = order.settle(receipt)
        journal.reached("settled")
        journal.close(writer.reader.local.folder, order.deletion)
    return receipt


# The steps of one deletion


class _Clock:
    """Stopwatch of the parts of a deletion."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.monotonic()

    def lap(self, name: str) -> None:
        """Note the time since the last part."""
        now = time.monotonic()
        self.laps[name] = round(self.laps.get(name, 0.0) + now - self._last, 3)
        self._last = now


class _Work(NamedTuple):
    """A deletion under way, whose plan is up to date; the caller holds the lock."""

    writer: Writer
    order: RewriteOrder
    plan: RewritePlan
    entry: Journal
    versions: tuple[DeadVersion, ...]
    clock: _Clock

    @property
    def known(self) -> Tombstones:
        """Everything that is gone when this is done."""
        return self.plan.known | self.entry.tombstones

    def reach(self, step: str) -> None:
        """Write into the journal that a step is reached."""
        journal.write(self.writer.reader.local.folder, self.entry.stepped(step))


@contextmanager
def _planned(
    writer: Writer, order: RewriteOrder, plan: RewritePlan | None, clock: _Clock
) -> Iterator[_Work | None]:
    """Plan without the lock, and hold it for what follows; plan anew if a deletion came between.

    Yields None if nothing of what was deleted elsewhere is here.
    """
    for _ in range(_MOST_PLANS):
        guards.check(writer.reader.repository.git)
        plan = plan or make_plan(writer.reader, order.ids, order.arrived, upgrades=order.upgrades)
        with closing(plan):
            if order.arrived and order.replacement is None and not plan.is_concerned():
                with writer.holding("deleting"):
                    writer.reader.local.keep_tombstones(order.arrived)
                yield None
                return
            _check_ids(plan, order)
            clock.lap("plan")
            with writer.holding("deleting"):
                clock.lap("wait")
                if writer.reader.local.epoch() == plan.epoch:
                    yield _up_to_date(writer, order, plan, clock)
                    return
        # Another deletion ran: what was fetched was cleaned by older tombstones, so it is not adopted.
        plan, order = None, replace(order, adopt=Incoming)
    raise _rewritten(writer)


def _check_ids(plan: RewritePlan, order: RewriteOrder) -> None:
    there = {each.id for each in plan.versions()}
    for each in order.ids:
        if each in there or (plan.known.names(each) and (order.purge or order.replacement)):
            continue
        if plan.known.names(each):
            raise RefusedError(f"{each} is deleted already", hint="smp trash lists it")
        raise MemoryNotFoundError(f"no memory {each}, now or before")


def _up_to_date(writer: Writer, order: RewriteOrder, plan: RewritePlan, clock: _Clock) -> _Work:
    """Take in what was written since the plan was made, and check once more."""
    git = plan.repository.git
    guards.check(git)
    guards.check_index(git)
    plan.update()
    guards.check_readable(git, plan.unreadable(order.ids))
    versions = (*plan.versions(), *plan.uncommitted(order.now))
    return _Work(writer, order, plan, journal.begun(order, plan, versions), versions, clock)


def _seal(work: _Work) -> None:
    """Have a copy made of what goes and can be restored; if that fails, nothing has changed."""
    work.reach(journal.SEALING)
    try:
        if work.order.seal is not None:
            work.order.seal(work.order.versions_to_seal(work.plan, work.versions))
    except BaseException:
        journal.close(work.writer.reader.local.folder, work.order.deletion)
        raise
    work.reach(journal.SEALED)
    work.clock.lap("seal")


def _publish(work: _Work) -> Publisher:
    """Write the new history and move every reference to it."""
    local, repository, known = work.writer.reader.local, work.plan.repository, work.known
    brings = work.order.replacement or work.entry
    publisher = Publisher(
        work.writer, work.plan, work.entry, brings, work.versions, work.order.adopt()
    )
    publisher.prepare()
    work.clock.lap("write")
    # From here on it is finished, whatever happens.
    journal.write(local.folder, publisher.entry(journal.PUBLISHING))
    # Git's index would keep the objects of the deleted alive.
    tree = publisher.tree_shown()
    if tree is not None and not staging.expel(
        repository, tree, lambda path, blob: is_staged_gone(path, blob, known, repository)
    ):
        raise _index_held(repository)
    journal.reached("index cleaned")
    publisher.publish()
    # Not before: a sync that runs now takes what these name for gone from every reference.
    local.keep_tombstones(known)
    local.raise_epoch()
    sizes.follow_rewrite(work.writer.reader)
    work.clock.lap("publish")
    return publisher


def _sweep(work: _Work, publisher: Publisher) -> sweep.Removed:
    """Remove what holds the deleted from the folder and from `.git`; return how much it was."""
    plan, known = work.plan, work.known
    work.reach(journal.REMOVING)
    publisher.check_out(known)
    journal.reached("checked out")
    sweep.tidy(plan.repository.git, known)
    journal.reached("tidied")
    wanted = needles(known, work.versions)
    holds = Search(wanted.texts, wanted.phrases).is_in
    # What is staged now may be an object that was there and that nothing names yet.
    with staging.held(plan.repository.git) as is_mine:
        if not is_mine:
            raise _index_held(plan.repository)
        dead = sweep.dead(plan.repository, plan.rewriter, publisher.tips(), known, holds)
        removed = sweep.remove_objects(plan.repository, dead)
    sweep.drop_vectors(plan.repository.git)
    plan.close()
    work.writer.reader.local.raise_epoch()
    work.writer.reader.reopen()
    work.reach(journal.PROVING)
    work.clock.lap("remove")
    return removed


def _prove(work: _Work, publisher: Publisher, removed: sweep.Removed) -> Receipt:
    """Look for the deleted wherever it could be left; return the receipt."""
    order, entry = work.order, work.entry
    found = prove.verify(work.writer.reader, work.known, work.versions)
    work.clock.lap("proof")
    gone = tuple(dict.fromkeys(each.id for each in work.versions))
    changed = [step for step in work.plan.rewriter.steps.values() if step.new != step.old]
    dropped = sum(step.dropped for step in changed)
    return Receipt(
        deletion=entry.deletion,
        ids=order.ids or gone,
        also=tuple(name for name in gone if order.ids and name not in order.ids),
        purged=entry.purge,
        reason=entry.reason,
        by=entry.by,
        at=entry.at,
        deadline=entry.deadline,
        commit=publisher.head,
        counts=Counts(
            versions=len(work.versions),
            commits_rewritten=len(changed) - dropped,
            commits_dropped=dropped,
            objects_removed=removed.objects,
            bytes_removed=removed.bytes,
        ),
        proof=found,
        out_of_reach=_out_of_reach(work),
        seconds=work.clock.laps,
    )


def _out_of_reach(work: _Work) -> tuple[str, ...]:
    """Say what else holds the history from before, without any address's credentials."""
    repository, plan, names = work.writer.reader.repository, work.plan, PlaceNames(work.versions)
    remotes = sorted(repository.remotes())
    moved = [
        name.removeprefix(TAGS)
        for name, tip in sorted(plan.history.refs.items())
        if name.startswith(TAGS) and plan.result.refs.get(name) != tip
    ]
    modules = repository.git / "modules"
    submodules = sorted(each.name for each in modules.iterdir()) if modules.is_dir() else []
    return (
        *(f"remote {name}: holds it until it is synced" for name in remotes),
        *(
            f"tag {names.file(name)}: anyone who fetched it keeps it until their next sync"
            for name in moved
            if remotes
        ),
        *(f"submodule {name}: a repository of its own, not looked into" for name in submodules),
        *(
            f"export {names.file(place)} of {at[:10]}: a copy, not looked into"
            for place, at in work.writer.reader.local.exports().items()
            if Path(place).exists()
        ),
        *_backup(repository.git.parent),
        *(f"{place}: not looked into" for place in _programs(work.versions)),
        "clones, backups and file system snapshots made before",
    )


def _programs(versions: Iterable[DeadVersion]) -> list[str]:
    """Return what other programs still hold of memories that came from them."""
    found = set[str]()
    for each in versions:
        with suppress(InvalidFileError):
            source = imports.source_of(document.decode(each.data, each.path))
            found |= {imports.kept_by(source)} if source else set()
    return sorted(found)


def _backup(session: Path) -> Iterator[str]:
    """Yield the backup that a migration made beside the store, if it is still there."""
    store = session.parents[1] if session.name != GLOBAL else session.parent
    place = store.parent / BACKUP
    if place.is_dir():
        yield f"{BACKUP}: the backup of a migration, not looked into"


def _index_held(repository: Repository) -> LockedError:
    return LockedError(
        f"another Git process holds the index of session {repository.path.name}",
        hint="the deletion is finished when the session is opened next",
    )


# Deletions that were interrupted


def resume(writer: Writer) -> None:
    """Finish or undo an interrupted deletion, or remove the locks of one that had not begun."""
    git = writer.reader.repository.git
    # Whoever holds the lock is at work on it, or Git packs, and it is finished later.
    with suppress(LockedError):
        if writer.reader.local.is_erasing():
            with _alone(writer, "finishing a deletion", _MOMENT_SECONDS):
                _finish_left(writer)
        else:
            with locked(
                git / locks.REWRITING, time.monotonic() + _MOMENT_SECONDS, "finishing a deletion"
            ):
                locks.forget(git)


@contextmanager
def interrupted(writer: Writer) -> Iterator[Journal | None]:
    """Keep others from deleting, and yield the journal of a deletion to be finished, if there is one.

    The deletion is over when this is left. Raises LockedError if somebody is at work on it.
    """
    with _alone(writer, "finishing a deletion", _MOMENT_SECONDS):
        kept = journal.read(writer.reader.local.folder)
        yield kept
        if kept is not None:
            journal.close(writer.reader.local.folder, kept.deletion)


def finish(writer: Writer, kept: Journal, recalled: Iterable[DeadVersion] = ()) -> Receipt | None:
    """Finish an interrupted deletion; return its receipt, None if nothing had changed yet.

    The versions that its sealed copy holds are `recalled`, so that their texts are searched for.
    """
    # What is brought in the place of what goes is in the journal only from the next step on.
    brings = kept.redacts or kept.arrived
    if kept.step == journal.SEALING or (brings and kept.step == journal.SEALED):
        return None
    doing = "giving memories another id" if kept.moves else "finishing a deletion"
    with writer.holding(doing):
        guards.check(writer.reader.repository.git)
        if kept.moves:
            with closing(make_plan(writer.reader, (), moves=kept.moves)) as plan:
                reassign(writer, plan, kept)
            return None
        plan = make_plan(writer.reader, (), kept.tombstones, upgrades=kept.upgrades)
        versions = tuple(dict.fromkeys((*plan.versions(), *recalled)))
        work = _Work(
            writer, RewriteOrder(ids=kept.ids, now=kept.at), plan, kept, versions, _Clock()
        )
        publisher = _publish(work)
        removed = _sweep(work, publisher)
    return _prove(work, publisher, removed)


def _finish_left(writer: Writer) -> None:
    """Finish what another process left, without what belongs to it beside the session."""
    kept = journal.read(writer.reader.local.folder)
    if kept is not None:
        finish(writer, kept)
        journal.close(writer.reader.local.folder, kept.deletion)


def _alone(writer: Writer, doing: str, patience_seconds: float) -> AbstractContextManager[None]:
    """Let no other deletion and no gc of Git's be at work."""
    deadline = time.monotonic() + patience_seconds
    return locks.rewriting(writer.reader.repository.git, deadline, doing)


# Memories that take another id


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
        _finish_left(writer)
        _move(writer, entry)
        journal.close(writer.reader.local.folder, entry.deletion)


def _move(writer: Writer, entry: Journal) -> None:
    """Plan without the lock, then publish under it; plan anew if a deletion came between."""
    for _ in range(_MOST_PLANS):
        guards.check(writer.reader.repository.git)
        plan = make_plan(writer.reader, (), moves=entry.moves)
        with closing(plan), writer.holding("giving memories another id"):
            if writer.reader.local.epoch() == plan.epoch:
                plan.update()
                check_unedited(plan, entry)
                reassign(writer, plan, entry)
                return
    raise _rewritten(writer)


def _rewritten(writer: Writer) -> ConflictError:
    return ConflictError(
        f"session {writer.reader.path.name} is being rewritten by others",
        hint="try again when they are done",
    )


def _new_name(now: datetime) -> str:
    return f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


# Sessions of format 1


def upgrade(writer: Writer, now: datetime) -> None:
    """Bring a session of format 1 to the present one, on every branch, in one rewrite."""
    if not effective(writer.reader):
        _raise_format(writer)
        return
    try:
        rewrite(writer, RewriteOrder(now=now, replacement=_Upgrade(), upgrades=True))
    except RefusedError as error:
        session = writer.reader.path.name
        raise RefusedError(
            f"session {session} is of format 1, and its first write brings it to format 2: {error.message}",
            hint=error.hint,
        ) from error


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


class _Upgrade:
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
