"""Twins and namesakes parted before anything is merged: one of two memories takes another id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from smp_git.format.records import Tombstones
from smp_git.git import references
from smp_git.git.references import HEADS, SEEN
from smp_git.git.repository import Repository
from smp_git.remove.history.erase import move
from smp_git.remove.history.moves import Move, moves_in
from smp_git.remove.history.plan import RewritePlan
from smp_git.remove.history.rewrite import History, Rewriter
from smp_git.remove.history.tombstones import effective
from smp_git.remove.site import Site
from smp_git.sync.bring import keep
from smp_git.sync.namesakes import moved_away, part
from smp_git.sync.quarantine import Quarantine
from smp_git.sync.twins import heads

# How often a new id may be another memory's too.
_MOST_TRIES: Final = 5
_REASON: Final = "another memory had the same id"


class Apart(NamedTuple):
    """What came in as it is now, which memories took another id, and sentences that say so.

    `records` are what was told, and end memories too that had taken another id when they
    were deleted under the old one; `heads` are the branches here that were looked at.
    """

    there: Mapping[str, str]
    records: Tombstones
    heads: Mapping[str, str]
    moved: tuple[Move, ...] = ()
    notes: tuple[str, ...] = ()


def apart(
    site: Site,
    remote: str,
    held: Quarantine,
    there: Mapping[str, str],
    told: Tombstones,
    by: str,
    plan: RewritePlan | None = None,
) -> Apart:
    """Give one of two memories that have one id another, in all of its history.

    Branches that are about to follow a deletion are compared as they are in the `plan`.
    """
    reader = site.reader
    moved: list[Move] = []
    notes: list[str] = []
    looked_at: Mapping[str, str] = {}
    for _ in range(_MOST_TRIES):
        reader.snapshot()
        looked_at = references.read(reader.repository.git)
        ours = _as_planned(plan, held, looked_at)
        found = part(held.repository, ours, there, effective(reader) | told, looked_at)
        if found.ours:
            now, plan = site.writer.clock(), None
            move(site.writer, found.ours, now, by=by)
            names = [name for each in found.ours for name in (each.old, each.new)]
            site.note("move", at=now, by=by, ids=names, reason=_REASON)
        if found.theirs:
            there = _moved(held.repository, there, found.theirs)
        notes += [_said(each, "here") for each in found.ours]
        notes += [_said(each, f"of {remote}") for each in found.theirs]
        moved += [*found.ours, *found.theirs]
        if not found:
            break
    ours = _as_planned(plan, held, references.read(reader.repository.git))
    records = moved_away(held.repository, ours, there, effective(reader) | told)
    return Apart(there, told | records, heads(looked_at), tuple(moved), tuple(notes))


def _as_planned(
    plan: RewritePlan | None, held: Quarantine, ours: Mapping[str, str]
) -> Mapping[str, str]:
    """Return what becomes of our references if that came in too: then both sides hardly differ."""
    if plan is None:
        return ours
    steps, there = plan.rewriter.steps, held.repository
    made = {ref: steps.get(bytes.fromhex(tip)) for ref, tip in ours.items()}
    return {
        ref: step.new.hex() if (step := made[ref]) and there.has(step.new.hex()) else tip
        for ref, tip in ours.items()
    }


def apart_there(
    repository: Repository, there: Mapping[str, str], pushed: Mapping[str, str], known: Tombstones
) -> Mapping[str, str]:
    """Return what a server holds as replicas bring it together with what is pushed.

    Whatever is there has been published; a memory of it moves only as on every replica.
    """
    published = {f"{SEEN}{ref}": tip for ref, tip in there.items() if ref.startswith(HEADS)}
    for _ in range(_MOST_TRIES):
        moves = part(repository, {**there, **published}, pushed, known).ours
        if not moves:
            break
        there = _moved(repository, there, moves)
        published |= {f"{SEEN}{ref}": tip for ref, tip in there.items() if ref.startswith(HEADS)}
    return there


def _moved(
    repository: Repository, there: Mapping[str, str], moves: tuple[Move, ...]
) -> dict[str, str]:
    """Return references with some memories under another id."""
    found = moves_in(repository, there.values(), moves)
    rewriter = Rewriter(repository.raw, Tombstones(), moves=found)
    refs = rewriter.rewritten(History({ref: bytes.fromhex(tip) for ref, tip in there.items()})).refs
    keep(repository, rewriter.made)
    return {ref: tip.hex() for ref, tip in refs.items()}


def _said(move: Move, where: str) -> str:
    return f"{move.old} {where} is {move.new} now: {_REASON}"
