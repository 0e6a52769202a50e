"""Whether a remote's history goes on from what was seen of it before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from smp_git.git.ancestry import is_ancestor, merge_bases
from smp_git.git.repository import MAIN
from smp_git.model.errors import RefusedError
from smp_git.model.memory import CommitId
from smp_git.read.snapshot import Reader
from smp_git.sync.names import HEADS, branch_of, rescue, tracking
from smp_git.sync.state import Seen

_WAY_OUT: Final = "what is here is complete; smp sync --accept brings the remote up to it again"


def check(reader: Reader, remote: str, clean: Mapping[str, str], *, accept: bool) -> list[str]:
    """Raise RefusedError if main of the remote is unrelated, or lost what it had.

    What is here is then kept under a rescue reference too; the caller holds the lock.
    Another branch may have been dropped and pushed anew: returns sentences that say so.
    """
    repository = reader.repository
    own = repository.head(MAIN)
    main = clean.get(MAIN)
    if main and own and not merge_bases(repository, own, CommitId(main)):
        raise _refused(reader, remote, MAIN, "has a history that shares nothing with this one", "compare them with git log; a new clone is smp clone")  # fmt: skip
    notes = []
    for ref, tip in clean.items():
        if not ref.startswith(HEADS) or accept:
            continue
        before = repository.head(tracking(remote, ref))
        if before is not None and not is_ancestor(repository, before, CommitId(tip)):
            if ref == MAIN:
                raise _refused(reader, remote, ref, _lost(reader, before, tip), _WAY_OUT)
            notes.append(f"branch {branch_of(ref)} was made anew on {remote}; what is here is joined with it")  # fmt: skip
    return notes


def check_not_emptied(reader: Reader, remote: str, there: Mapping[str, str], seen: Seen, *, accept: bool) -> None:  # fmt: skip
    """Raise RefusedError if a remote that held this session has no main branch now."""
    if MAIN not in there and seen.refs.get(MAIN) and not accept:
        what = "has no main branch" if there else "is empty"
        raise _refused(reader, remote, MAIN, f"{what}, though it held this session", _WAY_OUT)


def _lost(reader: Reader, before: CommitId, tip: str) -> str:
    count = len(reader.repository.beyond([before], [CommitId(tip)]))
    commits = "1 commit" if count == 1 else f"{count} commits"
    return f"went back: it no longer has {commits} that it had"


def _refused(reader: Reader, remote: str, ref: str, what: str, hint: str) -> RefusedError:
    repository = reader.repository
    own, aside = repository.head(ref), rescue(remote, ref)
    if own is not None:
        repository.point({aside: own})
    return RefusedError(
        f"remote {remote} {what} (branch {branch_of(ref)}), so nothing was merged", hint=hint
    )
