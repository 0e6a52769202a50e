"""Order, journal and receipt of a deletion: what is asked for, what is under way, what was done."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from smp_git.format import records
from smp_git.format.records import Tombstones
from smp_git.git import disk
from smp_git.git.objects import ObjectId
from smp_git.model.ids import FIRST, PURGED, REDACTED, Lives, deleted, expired
from smp_git.model.memory import CommitId, MemoryId
from smp_git.model.results import Result, plain
from smp_git.read.replica import ERASURE
from smp_git.remove.history.plan import RewritePlan
from smp_git.remove.history.prove import Proof
from smp_git.remove.history.renaming import Move
from smp_git.remove.history.search import DeadVersion

# What each branch gets in the place of what goes: files by path.
Brought = Mapping[str, Mapping[str, bytes]]
Seal = Callable[[Sequence[DeadVersion]], None]
# What belongs to a deletion beside the session; until it returns, the next open does it again.
Settle = Callable[["Receipt"], "Receipt"]


class Replacement(Protocol):
    """Files in the place of the deleted: a redaction's texts, of a life that begins.

    What is `removed` is brought and taken out again by an ordinary commit: it was removed
    so before, and is in the history only.
    """

    removed: set[str]

    def records(self, plan: RewritePlan) -> Tombstones:
        """Return the records of what ends and what begins."""

    def files(self, plan: RewritePlan) -> Brought:
        """Return the files that each branch gets, as its tip is now."""


class Incoming(NamedTuple):
    """Fetched objects that nothing names yet, and the tips that reach what lives."""

    tips: Collection[bytes] = ()
    objects: Collection[bytes] = frozenset()


# Brings it into the session, where nothing else can take it away before it is named.
Adopt = Callable[[], Incoming]

_NONE: Final = Tombstones()


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteOrder:
    """Order of a deletion: its memories, by whom and why.

    `seal` gets every version that is about to go, those that were deleted before and
    that plain Git brought back included, and must return only when its copy is durable;
    if it raises, nothing has changed. With a `replacement` the memories go on as another
    life. `settle` gets the receipt when all is done and returns it as it is kept; then the
    deletion is over.
    """

    now: datetime
    by: str = "user"
    ids: tuple[MemoryId, ...] = ()
    purge: bool = False
    # Whether time asks for it, and nobody: then what was made of it may stay.
    expires: bool = False
    deletion: str = ""
    reason: str | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    deadline: datetime | None = None
    # What was deleted elsewhere: then no ids are named, and no commit of ours names them.
    arrived: Tombstones = _NONE
    adopt: Adopt = Incoming
    replacement: Replacement | None = None
    upgrades: bool = False
    seal: Seal | None = None
    settle: Settle | None = None

    def versions_to_seal(
        self, plan: RewritePlan, versions: Sequence[DeadVersion]
    ) -> tuple[DeadVersion, ...]:
        """Return what is sealed: what was asked for, and what plain Git brought back.

        What was redacted or purged is gone for good; of what was deleted elsewhere, only
        what no remote had when it was last seen is sealed.
        """
        if self.arrived:
            return plan.unshared(tuple(versions))
        return tuple(
            each
            for each in versions
            if each.id in self.ids or not is_final(plan.known.lives(each.id), each.life)
        )

    def records(self, plan: RewritePlan, versions: Sequence[DeadVersion]) -> Tombstones:
        """Return what is recorded: every life that is known of what was asked for ends."""
        if self.replacement is not None:
            return self.arrived | self.replacement.records(plan)
        if self.arrived:
            return self.arrived
        found: dict[MemoryId, set[str]] = {name: set() for name in self.ids}
        for each in versions:
            if each.id in found and each.life is not None:
                found[each.id].add(each.life)
        return Tombstones.of(
            {name: self._ended(there, plan.known.lives(name)) for name, there in found.items()}
        )

    def _ended(self, lives: Iterable[str], before: Lives) -> Lives:
        """Return what is recorded of one memory."""
        if self.expires:
            return expired(lives, before)
        return deleted(lives, purged=self.purge, before=before)


def is_final(known: Lives, life: str | None) -> bool:
    """Whether a version is gone for good: purged, or overtaken by a redaction."""
    return bool({PURGED, REDACTED} & known.ended_by(life or FIRST))


# Before SEALED nothing has changed, so the deletion is undone; from then on it is finished.
SEALING: Final = "sealing"
SEALED: Final = "sealed"
PUBLISHING: Final = "publishing"
REMOVING: Final = "removing"
PROVING: Final = "proving"


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """One deletion under way."""

    deletion: str
    step: str
    at: datetime
    by: str
    purge: bool
    tombstones: Tombstones
    # Another replica has written the commit that names the deleted.
    arrived: bool = False
    ids: tuple[MemoryId, ...] = ()
    reason: str | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    deadline: datetime | None = None
    redacts: bool = False
    upgrades: bool = False
    removed: tuple[str, ...] = ()
    # The memories that take another id; then nothing is deleted.
    moves: tuple[Move, ...] = ()
    # What takes the place of what goes: the files of each branch, by path.
    brought: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    old: Mapping[str, str] = field(default_factory=dict)
    new: Mapping[str, str] = field(default_factory=dict)

    def stepped(self, step: str) -> Journal:
        """Return the journal at another step."""
        return replace(self, step=step)

    def files(self, plan: RewritePlan) -> Brought:
        """Return the files that an interrupted redaction was about to bring."""
        blob = plan.repository.blob
        return {
            ref: {path: blob(ObjectId(name)) for path, name in files.items()}
            for ref, files in self.brought.items()
        }


def begun(order: RewriteOrder, plan: RewritePlan, versions: Sequence[DeadVersion]) -> Journal:
    """Return the journal with which a deletion begins."""
    brings, is_own = order.replacement, not order.arrived and not order.upgrades
    return Journal(
        deletion=order.deletion,
        step=SEALING,
        at=order.now,
        by=order.by,
        purge=order.purge,
        tombstones=order.records(plan, versions),
        ids=order.ids,
        reason=order.reason,
        reasons=order.reasons,
        deadline=order.deadline,
        arrived=not is_own,
        upgrades=order.upgrades,
        redacts=brings is not None and is_own,
        removed=tuple(sorted(brings.removed)) if brings else (),
    )


def write(smp: Path, journal: Journal) -> None:
    """Write a journal, durable."""
    said = {each.name: plain(getattr(journal, each.name)) for each in fields(journal)}
    said |= {
        "tombstones": records.write(journal.tombstones).decode(),
        "moves": [list(each) for each in journal.moves],
    }
    text = json.dumps(said)
    disk.replace_durably(smp / ERASURE, text.encode(), smp / f"{ERASURE}.tmp")
    reached(journal.step)


def read(smp: Path) -> Journal | None:
    """Return the journal of an interrupted deletion, or None."""
    try:
        kept = json.loads(disk.content(smp / ERASURE) or b"")
    except ValueError:
        # It is replaced whole, so a torn one was never acknowledged.
        return None
    said = {each.name: kept[each.name] for each in fields(Journal) if each.name in kept}
    said |= {name: tuple(said.get(name, ())) for name in ("ids", "removed")}
    said |= {
        "at": datetime.fromisoformat(kept["at"]),
        "deadline": datetime.fromisoformat(kept["deadline"]) if kept.get("deadline") else None,
        "tombstones": records.read(kept["tombstones"].encode()),
        "moves": tuple(Move(old, new, tuple(roots)) for old, new, roots in kept.get("moves", ())),
    }
    return Journal(**said)


def close(smp: Path, deletion: str) -> None:
    """Remove the journal of a deletion that is done; another's stays."""
    kept = read(smp)
    if kept is None or kept.deletion == deletion:
        (smp / ERASURE).unlink(missing_ok=True)


def reached(step: str) -> None:
    """Mark a point at which a crash is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts(Result):
    """Counts of what a deletion changed."""

    versions: int
    commits_rewritten: int
    commits_dropped: int
    objects_removed: int
    bytes_removed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt(Result):
    """Receipt of a deletion: what it removed and proved, and what it could not reach.

    `also` are memories that were deleted before, and that plain Git had brought back.

    >>> receipt = session.delete("FIND-0001", reason="not ours")
    >>> (receipt.ids, receipt.reason, receipt.proof.clean)
    (('FIND-0001',), 'not ours', True)
    """

    deletion: str
    ids: tuple[MemoryId, ...]
    also: tuple[MemoryId, ...]
    purged: bool
    # Of a redaction: the memories live on, and `left` are the kinds of places in which
    # the text is left.
    redacted: bool = False
    reason: str | None
    by: str
    at: datetime
    deadline: datetime | None
    commit: CommitId
    counts: Counts
    proof: Proof
    left: tuple[str, ...] = ()
    out_of_reach: tuple[str, ...]
    seconds: Mapping[str, float]

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        # What is kept of a deletion names no object.
        return {name: value for name, value in Result.as_json(self).items() if name != "commit"}
