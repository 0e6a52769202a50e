"""Which references travel, and under which names a remote's are remembered."""

from __future__ import annotations

from typing import Final

from smp_git.git.references import ACCESS, HEADS, REMOTES, SEEN, TAGS, TRAVELLING
from smp_git.git.repository import MAIN

__all__ = [
    "ACCESS",
    "HEADS",
    "MAIN",
    "REMOTES",
    "RESCUE",
    "SEEN",
    "TAGS",
    "branch_of",
    "rescue",
    "shown",
    "tracking",
    "travels",
]

RESCUE: Final = "refs/smp/rescue/"


def travels(ref: str) -> bool:
    """Whether a reference is part of what is synced."""
    return ref.startswith(TRAVELLING)


def tracking(remote: str, ref: str) -> str:
    """Return the reference that remembers what a remote's reference named, once cleaned."""
    return f"{SEEN}{remote}/{ref.removeprefix('refs/')}"


def shown(remote: str, ref: str) -> str:
    """Return the reference by which plain Git remembers a remote's branch."""
    return f"{REMOTES}{remote}/{ref.removeprefix(HEADS)}"


def branch_of(ref: str) -> str:
    """Return the name of a branch as a person says it."""
    return ref.removeprefix(HEADS)


def rescue(remote: str, ref: str) -> str:
    """Return the reference that keeps local work aside when a remote is refused."""
    return f"{RESCUE}{remote}/{branch_of(ref)}"
