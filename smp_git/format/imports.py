"""Digests of imported memories that were deleted, so that no later import brings them back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

from smp_git.model.memory import Memory

PATH: Final = "imports.yaml"
# Ends the name of a field that keeps what a source said where a memory takes something else.
GIVEN: Final = "_given"
_SOURCE: Final = re.compile(r"[a-z0-9-]+:[^/]*/.+", re.DOTALL)
_LINE: Final = re.compile(rb"- ([0-9a-f]{32})")


def is_source(text: str) -> bool:
    """Whether a text names a memory of another program: FORMAT:SESSION/ID."""
    return _SOURCE.fullmatch(text) is not None


def source_of(memory: Memory) -> str | None:
    """Return what a memory was called in the program that it was imported from, if it was."""
    for name in (f"source{GIVEN}", "source"):
        value = memory.fields.get(name)
        if isinstance(value, str) and is_source(value):
            return value
    return None


def digest(uid: str, source: str) -> str:
    """Return what stands for the source of a memory; by the uid it differs from session to session."""
    return hashlib.blake2b(source.encode(), key=uid.encode()[:64], digest_size=16).hexdigest()


def read(data: bytes) -> frozenset[str]:
    """Return the digests of a file; what is none is passed over."""
    return frozenset(
        found[1].decode() for found in map(_LINE.fullmatch, data.split(b"\n")) if found
    )


def write(digests: Iterable[str]) -> bytes:
    """Return the file of some digests, sorted."""
    return "".join(f"- {each}\n" for each in sorted(set(digests))).encode()
