"""Records and lives that do not go together: what no honest replica sends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from smp_git.format.records import Tombstones
from smp_git.git.references import HEADS
from smp_git.git.repository import Repository
from smp_git.model.errors import UnfoundedError
from smp_git.model.ids import parse_id
from smp_git.model.lives import REDACT, generation
from smp_git.model.memory import CommitId
from smp_git.sync.inspect.inspection import Inspected
from smp_git.write.merge.meeting import is_ended
from smp_git.write.merge.versions import History

_WAY_OUT: Final = "smp sync --accept makes the remote as this replica is"


def check_lives(inspected: Inspected, known: Tombstones) -> None:
    """Raise UnfoundedError for a life at a tip that no record explains."""
    for name, found in inspected.lives.items():
        lives = known.lives(name)
        for life in sorted(found):
            if not lives.explains(life) and not generation(life):
                raise UnfoundedError(f"{name} is there in a life that no record explains", hint=_WAY_OUT)  # fmt: skip


def check_redactions(repository: Repository, tips: Mapping[str, str], before: Tombstones, told: Tombstones) -> None:  # fmt: skip
    """Raise UnfoundedError for a redaction that would end a memory and that nobody has.

    Its life stands in some history, or it was deleted. `before` is what was known here.
    """
    for each in told.items:
        if each.lives.is_plain:
            continue
        name, known = each.first.text, before.lives(each.first.text) | each.lives
        fresh = [
            life
            for life in each.lives.redactions - before.lives(name).redactions
            if known.edges[life].cause == REDACT and not is_ended(known, life)
        ]
        if fresh:
            there = _lives_of(repository, tips, parse_id(name).path)
            for life in fresh:
                if not any(life in known.past(other) for other in there):
                    raise UnfoundedError(
                        f"{name} was redacted according to a record, and no history has what was left of it",
                        hint=_WAY_OUT,
                    )


def _lives_of(repository: Repository, tips: Mapping[str, str], path: str) -> frozenset[str]:
    commits = [CommitId(tip) for ref, tip in tips.items() if ref.startswith(HEADS)]
    return History(repository, commits, [path]).said(path).lives
