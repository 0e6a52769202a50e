"""Which references travel, and under which names a remote's are remembered."""

from __future__ import annotations

import re
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
    "is_fit",
    "rescue",
    "shown",
    "tracking",
    "travels",
]

_LONGEST: Final = 200
_ID = re.compile(r"[0-9a-f]{40}")
_REPLICA = re.compile(r"[a-z][a-z0-9]{3}")
RESCUE: Final = "refs/smp/rescue/"


def travels(ref: str) -> bool:
    """Whether a reference is part of what is synced."""
    return ref.startswith(TRAVELLING)


def is_fit(ref: str) -> bool:
    """Whether a reference has a name that every replica can give it too."""
    parts = ref.split("/")
    name = "/".join(parts[2:])
    is_plain = len(ref) <= _LONGEST and ref.isprintable()
    if not is_plain or any(part.startswith("-") for part in parts):
        return False
    if ref.startswith(ACCESS):
        return _REPLICA.fullmatch(ref.removeprefix(ACCESS)) is not None
    return ref.startswith((HEADS, TAGS)) and name not in ("", "HEAD") and not _ID.fullmatch(name)


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
