"""Branches and tags that no replica takes in: left out and named, so that the rest is synced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.git import transport
from smp_git.git.objects import COMMIT
from smp_git.git.repository import Repository
from smp_git.git.transport import Access as Way
from smp_git.model.errors import DamagedError, UntrustedError, shown
from smp_git.sync.inspect import headers
from smp_git.sync.inspect.inspection import Inspection
from smp_git.sync.names import HEADS, TAGS, is_fit
from smp_git.sync.quarantine import Quarantine

_DEEPEST_TAG: Final = 5
# How often a remote may name others while it is looked at.
_MOST_LOOKS: Final = 3


class Fetched(NamedTuple):
    """What came in, the look at it, and the references that were left out with what they name."""

    held: Quarantine
    inspection: Inspection
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
            tip = headers.tag(data, tip).target.hex()
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
def fetched(session: Path, address: str, way: Way, look: Callable[[Quarantine, Mapping[str, str]], Inspection]) -> Iterator[Fetched]:  # fmt: skip
    """Yield what came in, without the references that no replica takes in.

    `look` fetches into a quarantine without some references, and begins to inspect.
    """
    left_out: dict[str, str] = {}
    for _ in range(_MOST_LOOKS):
        with Quarantine(session) as held:
            try:
                inspection = look(held, left_out)
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
                    yield Fetched(held, inspection, left_out)
                    return
        left_out |= more
    raise UntrustedError(f"{address}: it names other branches each time it is asked")
