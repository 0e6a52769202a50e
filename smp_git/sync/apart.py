"""Twins parted before anything is merged: what is here, and what came in, with ids of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from smp_git.format.records import Tombstones
from smp_git.git import references
from smp_git.remove.history.erase import move
from smp_git.remove.history.moves import Move, moves_in
from smp_git.remove.history.rewrite import History, Rewriter
from smp_git.remove.history.tombstones import effective
from smp_git.remove.site import Site
from smp_git.sync.bringing import keep
from smp_git.sync.quarantine import Quarantine
from smp_git.sync.twins import part

# How often a new id may be another memory's too.
_MOST_TRIES: Final = 5
_REASON: Final = "another memory had the same id"


class Apart(NamedTuple):
    """What came in as it is now, which memories took another id, and sentences that say so."""

    there: Mapping[str, str]
    moved: tuple[Move, ...] = ()
    notes: tuple[str, ...] = ()


def apart(site: Site, remote: str, held: Quarantine, there: Mapping[str, str], told: Tombstones, by: str) -> Apart:  # fmt: skip
    """Give one of two memories that have one id another, in all of its history."""
    reader = site.reader
    moved: list[Move] = []
    notes: list[str] = []
    for _ in range(_MOST_TRIES):
        reader.snapshot()
        ours = references.read(reader.repository.git)
        found = part(held.repository, ours, there, effective(reader) | told)
        if found.ours:
            now = site.writer.clock()
            move(site.writer, found.ours, now, by=by)
            names = [name for each in found.ours for name in (each.old, each.new)]
            site.note("move", at=now, by=by, ids=names, reason=_REASON)
        if found.theirs:
            there = _moved(held, there, found.theirs)
        notes += [_said(each, "here") for each in found.ours]
        notes += [_said(each, f"of {remote}") for each in found.theirs]
        moved += [*found.ours, *found.theirs]
        if not found:
            break
    return Apart(there, tuple(moved), tuple(notes))


def _moved(held: Quarantine, there: Mapping[str, str], moves: tuple[Move, ...]) -> dict[str, str]:
    """Return what came in with some memories under another id."""
    found = moves_in(held.repository, there.values(), moves)
    rewriter = Rewriter(held.repository.raw, Tombstones(), moves=found)
    refs = rewriter.rewritten(History({ref: bytes.fromhex(tip) for ref, tip in there.items()})).refs
    keep(held, rewriter.made)
    return {ref: tip.hex() for ref, tip in refs.items()}


def _said(move: Move, where: str) -> str:
    return f"{move.old} {where} is {move.new} now: {_REASON}"
