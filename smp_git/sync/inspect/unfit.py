"""References, records and lives that no honest replica sends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.format.records import Tombstones
from smp_git.git import transport
from smp_git.git.objects import COMMIT
from smp_git.git.references import HEADS
from smp_git.git.repository import Repository
from smp_git.git.transport import Limits
from smp_git.git.transport import RemoteAccess as Way
from smp_git.model.errors import DamagedError, UnfoundedError, UntrustedError, shown
from smp_git.model.ids import REDACT, generation, parse_id
from smp_git.model.memory import CommitId, MemoryId
from smp_git.sync.inspect import inspection
from smp_git.sync.inspect.tips import Tips
from smp_git.sync.quarantine import Quarantine
from smp_git.sync.state import TAGS, is_fit
from smp_git.write.merge.meeting import is_ended
from smp_git.write.merge.versions import MemoryHistory

_WAY_OUT: Final = "smp sync --accept makes the remote as this replica is"


def check_lives(tips: Tips, known: Tombstones) -> None:
    """Raise UnfoundedError for a life at a tip that no record explains."""
    for name, found in tips.lives.items():
        lives = known.lives(name)
        for life in sorted(found):
            if not lives.explains(life) and not generation(life):
                raise UnfoundedError(
                    f"{name} is there in a life that no record explains", hint=_WAY_OUT
                )


def check_redactions(
    repository: Repository, tips: Mapping[str, str], before: Tombstones, told: Tombstones
) -> None:
    """Raise UnfoundedError for a redaction that would end a memory and that nobody has.

    Its life stands in some history, or it was deleted. `before` is what was known here.
    """
    for name in unfounded(repository, tips, before, told):
        raise UnfoundedError(
            f"{name} was redacted according to a record, and no history has what was left of it",
            hint=_WAY_OUT,
        )


def unfounded(
    repository: Repository, tips: Mapping[str, str], before: Tombstones, told: Tombstones
) -> Iterator[MemoryId]:
    """Yield the memories of which a redaction is `told` whose life no history has."""
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
            if any(not any(life in known.past(other) for other in there) for life in fresh):
                yield MemoryId(name)


def _lives_of(repository: Repository, tips: Mapping[str, str], path: str) -> frozenset[str]:
    commits = [CommitId(tip) for ref, tip in tips.items() if ref.startswith(HEADS)]
    return MemoryHistory(repository, commits, [path]).said(path).lives


_DEEPEST_TAG: Final = 5
# How often a remote may name others while it is looked at.
_MOST_LOOKS: Final = 3


class Fetched(NamedTuple):
    """What came in, and the references that were left out with what they name."""

    held: Quarantine
    left_out: Mapping[str, str]


def odd(repository: Repository, refs: Mapping[str, str]) -> dict[str, str]:
    """Return the references with a name that is not fit, and branches and tags of no commit."""
    return {
        ref: tip
        for ref, tip in refs.items()
        if not is_fit(ref)
        or (ref.startswith((HEADS, TAGS)) and not _leads_to_commit(repository, tip))
    }


def _leads_to_commit(repository: Repository, tip: str) -> bool:
    try:
        for _ in range(_DEEPEST_TAG):
            kind, data = repository.raw(bytes.fromhex(tip))
            if kind != b"tag":
                return kind == COMMIT
            tip = inspection.tag(data, tip).target.hex()
    except (DamagedError, UntrustedError):
        # Not for its name: whoever looks at it says what is wrong.
        return True
    return False


def said(ref: str, where: str) -> str:
    """Return the sentence about a reference that is left out."""
    kind = "branch" if ref.startswith(HEADS) else "tag" if ref.startswith(TAGS) else "reference"
    name = ref.removeprefix(HEADS).removeprefix(TAGS)
    why = "it names no commit" if is_fit(ref) else "no session takes one of that name"
    return f"{kind} {shown(name)} {where} is left out: {why}"


@contextmanager
def fetched(session: Path, address: str, way: Way, limits: Limits) -> Iterator[Fetched]:
    """Yield what came in, without the references that no replica takes in."""
    left_out: dict[str, str] = {}
    for _ in range(_MOST_LOOKS):
        with Quarantine(session) as held:
            try:
                held.fetch(address, way, limits, left_out)
            except UntrustedError:
                # What is wrong may be below a name that is left out.
                named = transport.advertised(address, way)
                more = {
                    ref: tip
                    for ref, tip in named.items()
                    if not is_fit(ref) and ref not in left_out
                }
                if not more:
                    raise
            else:
                more = odd(held.repository, held.refs)
                if not more:
                    yield Fetched(held, left_out)
                    return
        left_out |= more
    raise UntrustedError(f"{address}: it names other branches each time it is asked")
