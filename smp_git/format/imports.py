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
# Ids that are given once: a fork of a conversation has those of the one that it is a fork of.
_UNIQUE: Final = ("claude-code",)
_KEPT: Final = {"claude-code": "transcripts of Claude Code, in ~/.claude/projects"}
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


def own_name(source: str) -> str:
    """Return the name of a source without its session, where a copy of that keeps the ids."""
    program, _, rest = source.partition(":")
    return f"{program}:/{rest.partition('/')[2]}" if program in _UNIQUE else source


def kept_by(source: str) -> str:
    """Return in words what still holds a memory of another program."""
    program = source.partition(":")[0]
    return _KEPT.get(program, f"what was imported from {program}")


def digest(uid: str, source: str) -> str:
    """Return what stands for the source of a memory; by the uid it differs from session to session."""
    name, key = own_name(source).encode(), uid.encode()[:64]
    return hashlib.blake2b(name, key=key, digest_size=16).hexdigest()


def read(data: bytes) -> frozenset[str]:
    """Return the digests of a file; what is none is passed over."""
    return frozenset(
        found[1].decode() for found in map(_LINE.fullmatch, data.split(b"\n")) if found
    )


def write(digests: Iterable[str]) -> bytes:
    """Return the file of some digests, sorted."""
    return "".join(f"- {each}\n" for each in sorted(set(digests))).encode()
