"""The one way in which memories leave history: plan, seal, publish, remove, prove."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from smp_git.erasure import guards, journal, proof, removal
from smp_git.erasure.finder import Search
from smp_git.erasure.graves import effective
from smp_git.erasure.journal import Journal
from smp_git.erasure.naming import Names
from smp_git.erasure.needles import Version, needles
from smp_git.erasure.plan import Plan, is_staged_gone, make_plan
from smp_git.erasure.proof import Proof
from smp_git.erasure.publish import Publisher
from smp_git.erasure.receipt import Counts, Receipt
from smp_git.errors import ConflictError, LockedError, MemoryNotFoundError, RefusedError
from smp_git.format.ids import parse_id
from smp_git.format.tombstones import Tombstones, tombstone
from smp_git.git import gc, staging
from smp_git.git.objects import ObjectId
from smp_git.git.references import TAGS
from smp_git.git.repository import Repository
from smp_git.lock import locked
from smp_git.memory import CommitId, MemoryId, agent_name
from smp_git.transaction import Writer

__all__ = [
    "Counts",
    "Proof",
    "Receipt",
    "Version",
    "erase",
    "erase_arrived",
    "is_interrupted",
    "resume",
]

# How often another deletion may come between before this one gives up.
_MOST_PLANS: Final = 5
# One deletion at a time; the next one waits for the proof of the one before.
_LOCK: Final = "erasing/lock"
_PATIENCE_SECONDS: Final = 60.0
# What a process that was killed was about to start has its locks for a moment longer.
_MOMENT_SECONDS: Final = 0.1

Seal = Callable[[Sequence[Version]], None]


class _Order(NamedTuple):
    """What is to be deleted, by whom and why."""

    ids: tuple[MemoryId, ...]
    purge: bool
    by: str
    now: datetime
    deletion: str
    seal: Seal | None
    # What was deleted elsewhere: then no ids are named, and no commit of ours names them.
    arrived: Tombstones = Tombstones()


class _Done(NamedTuple):
    """What a deletion came to, before its proof."""

    plan: Plan
    known: Tombstones
    versions: tuple[Version, ...]
    removed: removal.Removed
    commit: CommitId


def erase(writer: Writer, ids: Iterable[str], *, purge: bool = False, reason: str | None = None, by: str = "user", seal: Seal | None = None, now: datetime, deletion: str | None = None, deadline: datetime | None = None) -> Receipt:  # fmt: skip
    """Take memories out of history, physically, and prove it; return the receipt.

    `seal` gets every version that is about to go and must return only when its copy is
    durable; if it raises, nothing has changed. Raises RefusedError, with nothing
    changed, where a deletion could not be complete.
    """
    names = tuple(dict.fromkeys(parse_id(each).text for each in ids))
    if not names:
        raise RefusedError("nothing to delete was named")
    order = _Order(names, purge, agent_name(by), now, deletion or _new_name(now), seal)
    receipt = _erased(writer, order)
    assert receipt is not None  # noqa: S101 - what is named is there
    return replace(receipt, reason=reason, deadline=deadline)


def erase_arrived(writer: Writer, arrived: Tombstones, *, by: str, seal: Seal | None, now: datetime, deletion: str | None = None, again: bool = False) -> Receipt | None:  # fmt: skip
    """Take what was deleted elsewhere out of history; return None if nothing of it was here.

    `seal` gets only the versions that no remote had when it was last seen. With `again`
    what was deleted here before is looked for too: plain Git may have brought it back.
    """
    known = effective(writer.reader)
    if known.covers(arrived) and not again:
        return None
    arrived = arrived | known if again else arrived
    order = _Order((), False, agent_name(by), now, deletion or _new_name(now), seal, arrived)  # noqa: FBT003 - as above
    return _erased(writer, order)


def _new_name(now: datetime) -> str:
    return f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


def _erased(writer: Writer, order: _Order) -> Receipt | None:
    clock = _Clock()
    smp = writer.reader.local.folder
    with _alone(writer, "deleting", _PATIENCE_SECONDS):
        _resumed(writer)
        done = _planned(writer, order, clock)
        if done is None:
            writer.reader.local.keep_tombstones(order.arrived)
            return None
        found = proof.verify(writer.reader, done.known, done.versions)
        clock.lap("proof")
        journal.close(smp, order.deletion)
    return Receipt(
        deletion=order.deletion,
        ids=order.ids or tuple(dict.fromkeys(each.id for each in done.versions)),
        purged=order.purge,
        reason=None,
        by=order.by,
        at=order.now,
        deadline=None,
        commit=done.commit,
        counts=_counts(done),
        proof=found,
        out_of_reach=_out_of_reach(writer.reader.repository, done.plan, Names(done.versions)),
        seconds=clock.laps,
    )


def is_interrupted(writer: Writer) -> bool:
    """Whether a deletion is under way in another process, or was interrupted."""
    return journal.exists(writer.reader.local.folder)


def resume(writer: Writer) -> str | None:
    """Finish or undo an interrupted deletion, or let go of what one left that had not begun.

    Returns the deletion that was finished, an empty text if it was undone because
    nothing had changed yet, None if there was none.
    """
    git = writer.reader.repository.git
    try:
        if journal.exists(writer.reader.local.folder):
            with _alone(writer, "finishing a deletion", _MOMENT_SECONDS):
                return _resumed(writer)
        with locked(git / _LOCK, time.monotonic() + _MOMENT_SECONDS, "finishing a deletion"):
            gc.forget(git)
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
    with locked(git / _LOCK, deadline, doing), gc.kept_out(git, deadline, doing):
        yield


def _resumed(writer: Writer) -> str | None:
    smp = writer.reader.local.folder
    kept = journal.read(smp)
    if kept is None:
        return None
    if kept.step == journal.SEALING:
        journal.close(smp, kept.deletion)
        return ""
    with writer.holding("finishing a deletion"):
        guards.check(writer.reader.repository.git)
        done = _finished(writer, kept)
    proof.verify(writer.reader, done.known, done.versions)
    journal.close(smp, kept.deletion)
    return kept.deletion


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


def _planned(writer: Writer, order: _Order, clock: _Clock) -> _Done | None:
    """Plan without the lock, then carry out under it; plan anew if a deletion came between.

    Returns None if nothing that arrived is of concern here.
    """
    for _ in range(_MOST_PLANS):
        epoch = writer.reader.local.epoch()
        guards.check(writer.reader.repository.git)
        plan = make_plan(writer.reader, order.ids, order.arrived)
        if order.arrived and not plan.is_concerned():
            plan.close()
            return None
        _check_ids(plan, order)
        clock.lap("plan")
        with writer.holding("deleting"):
            clock.lap("wait")
            if writer.reader.local.epoch() == epoch:
                return _carried_out(writer, order, plan, clock)
        plan.close()
    raise ConflictError(
        f"session {writer.reader.path.name} is being rewritten by others",
        hint="try again when they are done",
    )


def _check_ids(plan: Plan, order: _Order) -> None:
    there = {each.id for each in plan.versions()}
    for each in order.ids:
        if each in there or (order.purge and plan.known.mark(each) is not None):
            continue
        if plan.known.mark(each) is not None:
            raise RefusedError(f"{each} is deleted already", hint="smp trash lists it")
        raise MemoryNotFoundError(f"no memory {each}, now or before")


def _carried_out(writer: Writer, order: _Order, plan: Plan, clock: _Clock) -> _Done:
    """Do what needs the lock: the tail, sealing, publishing, removal."""
    guards.check(plan.repository.git)
    guards.check_index(plan.repository.git)
    plan.update()
    versions = (*plan.versions(), *plan.uncommitted(order.now))
    # What plain Git brought back goes too; its own deletion has sealed it or said it is final.
    asked = tuple(each for each in versions if each.id in order.ids)
    found = order.arrived or _tombstones(asked, order, plan.known)
    entry = Journal(
        deletion=order.deletion,
        step=journal.SEALING,
        at=order.now,
        by=order.by,
        purge=order.purge,
        tombstones=found,
        arrived=bool(order.arrived),
    )
    smp = writer.reader.local.folder
    journal.write(smp, entry)
    try:
        if order.seal is not None:
            order.seal(plan.unshared(versions) if order.arrived else asked)
    except BaseException:
        journal.close(smp, order.deletion)
        raise
    journal.write(smp, entry.stepped(journal.SEALED))
    clock.lap("seal")
    return _published(writer, entry, plan, versions, clock)


def _finished(writer: Writer, entry: Journal) -> _Done:
    """Carry an interrupted deletion to its end; the caller holds the lock."""
    plan = make_plan(writer.reader, (), entry.tombstones)
    return _published(writer, entry, plan, (), _Clock())


def _published(writer: Writer, entry: Journal, plan: Plan, versions: tuple[Version, ...], clock: _Clock) -> _Done:  # fmt: skip
    smp = writer.reader.local.folder
    # What has not yet been forced out stands there once more.
    writer.settle(remove=True)
    known = plan.known | entry.tombstones
    publisher = Publisher(writer, plan, entry)
    head = publisher.prepare()
    clock.lap("write")
    _expel(plan.repository, publisher.tree_shown(), known)
    journal.reached("index cleaned")
    writer.reader.local.keep_tombstones(known)
    journal.write(smp, publisher.entry(journal.PUBLISHING))
    publisher.publish()
    writer.reader.local.raise_epoch()
    clock.lap("publish")
    journal.write(smp, entry.stepped(journal.REMOVING))
    publisher.check_out(known)
    journal.reached("checked out")
    removal.tidy(plan.repository.git, known)
    journal.reached("tidied")
    removed = _removed(plan, publisher.tips(), known, versions)
    plan.close()
    writer.reader.local.raise_epoch()
    writer.reader.reopen()
    journal.write(smp, entry.stepped(journal.PROVING))
    clock.lap("remove")
    return _Done(plan, known, versions, removed, head)


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


def _removed(plan: Plan, tips: Iterable[bytes], known: Tombstones, versions: tuple[Version, ...]) -> removal.Removed:  # fmt: skip
    wanted = needles(known, versions)
    holds = Search(wanted.texts, wanted.phrases).is_in
    # What is staged now may be an object that was there and that nothing names yet.
    with staging.held(plan.repository.git) as mine:
        if not mine:
            raise _index_held(plan.repository)
        gone = removal.dead(plan.repository, plan.rewriter, tips, known, holds)
        return removal.remove_objects(plan.repository, plan.rewriter, gone)


def _tombstones(versions: Sequence[Version], order: _Order, known: Tombstones) -> Tombstones:
    """Return a tombstone for each id, up to the highest generation that was found."""
    highest = dict.fromkeys(order.ids, 0)
    for each in versions:
        highest[each.id] = max(highest[each.id], each.generation)
    return Tombstones(
        tombstone(name, max(number, _generation(known, name)), purged=order.purge)
        for name, number in highest.items()
    )


def _generation(known: Tombstones, name: str) -> int:
    mark = known.mark(name)
    return mark.generation if mark else 1


def _counts(done: _Done) -> Counts:
    changed = [step for step in done.plan.rewriter.steps.values() if step.new != step.old]
    dropped = sum(step.dropped for step in changed)
    return Counts(
        versions=len(done.versions),
        commits_rewritten=len(changed) - dropped,
        commits_dropped=dropped,
        objects_removed=done.removed.objects,
        bytes_removed=done.removed.bytes,
    )


def _out_of_reach(repository: Repository, plan: Plan, names: Names) -> tuple[str, ...]:
    """Say what else holds the history from before, without any address's credentials."""
    remotes = sorted(repository.remotes())
    moved = [name.removeprefix(TAGS) for name, tip in sorted(plan.history.refs.items()) if name.startswith(TAGS) and plan.result.refs.get(name) != tip]  # fmt: skip
    return (
        *(f"remote {name}: holds it until it is synced" for name in remotes),
        *(f"tag {names.file(name)}: who has fetched it keeps it until its next sync" for name in moved if remotes),
        *(f"submodule {name}: a repository of its own, not looked into" for name in _submodules(repository)),
        "clones, backups and file system snapshots made before",
    )  # fmt: skip


def _submodules(repository: Repository) -> list[str]:
    folder = repository.git / "modules"
    return sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []
