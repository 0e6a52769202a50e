"""Which references travel, and under which names a remote's are remembered."""

from __future__ import annotations

from typing import Final

from smp_git.access import PREFIX as ACCESS
from smp_git.git.repository import MAIN

__all__ = [
    "ACCESS",
    "HEADS",
    "MAIN",
    "RESCUE",
    "TAGS",
    "branch_of",
    "rescue",
    "tracking",
    "travels",
]

HEADS: Final = "refs/heads/"
TAGS: Final = "refs/tags/"
RESCUE: Final = "refs/smp/rescue/"
_REMOTES: Final = "refs/remotes/"
# Tags and access counts of a remote have no place of their own in Git.
_SEEN: Final = "refs/smp/seen/"


def travels(ref: str) -> bool:
    """Whether a reference is part of what is synced."""
    return ref.startswith((HEADS, TAGS, ACCESS))


def tracking(remote: str, ref: str) -> str:
    """Return the reference that remembers what a remote's reference named."""
    if ref.startswith(HEADS):
        return f"{_REMOTES}{remote}/{ref.removeprefix(HEADS)}"
    return f"{_SEEN}{remote}/{ref.removeprefix('refs/')}"


def branch_of(ref: str) -> str:
    """Return the name of a branch as a person says it."""
    return ref.removeprefix(HEADS)


def rescue(remote: str, ref: str) -> str:
    """Return the reference that keeps local work aside when a remote is refused."""
    return f"{RESCUE}{remote}/{branch_of(ref)}"
