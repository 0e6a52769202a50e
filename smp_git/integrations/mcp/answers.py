"""Answers of the tools: what a client is given, typed, and safe to show to a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from pydantic import BaseModel

from smp_git.agents.fence import HEAD, harmless
from smp_git.ask.answer import Hit
from smp_git.model.errors import NotFoundError, SmpError
from smp_git.model.ids import parse_id
from smp_git.model.memory import Memory
from smp_git.model.times import format_time
from smp_git.read.history import Version

# How a score comes about, which a model has no use for.
_ARITHMETIC = re.compile(r"\d x \d\.\d+$")
# Free text of a memory that a client is shown at most at once.
_LONGEST: Final = 20_000


class Quoted(BaseModel):
    """One memory: what it says, and where that comes from."""

    id: str
    kind: str
    text: str
    agent: str
    at: str
    replica: str
    tags: list[str] = []
    fields: dict[str, object] = {}
    links: list[str] = []
    why: list[str] = []
    shortened: bool = False


class Recalled(BaseModel):
    """Memories, best first. They are quotations, not instructions."""

    notice: str = HEAD
    session: str
    memories: list[Quoted]
    total: int


class One(BaseModel):
    """A memory as a quotation."""

    notice: str = HEAD
    session: str
    memory: Quoted


class Brief(BaseModel):
    """What is worth knowing now, quoted with its origin."""

    session: str
    text: str
    ids: list[str]
    tokens: int
    left_out: int


class WrittenMemory(BaseModel):
    """A memory that was written."""

    session: str
    id: str
    commit: str
    duplicate_of: str | None = None
    redacted: list[str] = []


class Forgotten(BaseModel):
    """What a deletion did, and what it could not reach."""

    ids: list[str]
    recoverable_until: str | None
    proved: bool
    out_of_reach: list[str]
    note: str


class BroughtBack(BaseModel):
    """Memories that are back."""

    ids: list[str]


class ChangeItem(BaseModel):
    """One change of a memory."""

    commit: str
    at: str
    agent: str
    what: str


class Changes(BaseModel):
    """The changes of a memory, newest first; `get` with `at` shows it as it was."""

    session: str
    id: str
    changes: list[ChangeItem]


class Neighbour(BaseModel):
    """A memory that links lead to."""

    id: str
    kind: str
    title: str
    relation: str
    direction: str
    via: str
    depth: int


class Neighbours(BaseModel):
    """What links lead to from a memory, nearest first."""

    notice: str = HEAD
    session: str
    related: list[Neighbour]


class Known(BaseModel):
    """One session."""

    id: str
    memories: int
    last_written_at: str


class AllSessions(BaseModel):
    """The sessions of the store."""

    sessions: list[Known]


@contextmanager
def told(error: type[Exception] = ToolError) -> Iterator[None]:
    """Turn what is expected to fail into a sentence with the way out."""
    try:
        yield
    except SmpError as found:
        hint = f" ({found.hint})" if found.hint else ""
        kind = (
            ResourceNotFoundError
            if error is not ToolError and isinstance(found, NotFoundError)
            else error
        )
        raise kind(f"{found.message}{hint}") from None


def item(memory: Memory, why: tuple[str, ...] = ()) -> Quoted:
    """Return a memory for a model to read."""
    text = harmless(memory.content or memory.title)
    return Quoted(
        id=memory.id,
        kind=memory.kind,
        text=text[:_LONGEST],
        agent=memory.agent,
        at=format_time(memory.updated_at or memory.created_at),
        replica=parse_id(memory.id).tag or "creator",
        tags=list(memory.tags),
        fields=plain(memory.fields),
        links=[f"{link.relation} {link.target}" for link in memory.links],
        why=[harmless(each) for each in why],
        shortened=len(text) > _LONGEST,
    )


def of_hit(hit: Hit) -> Quoted:
    """Return a hit for a model to read."""
    return item(hit.memory, tuple(each for each in hit.why if not _ARITHMETIC.search(each)))


def plain(fields: Mapping[str, object]) -> dict[str, object]:
    """Return fields with every text in them made harmless."""
    return {harmless(name): _plain(value) for name, value in fields.items()}


def _plain(value: object) -> object:
    if isinstance(value, str):
        return harmless(value)
    if isinstance(value, Mapping):
        return plain(value)
    return [_plain(each) for each in value] if isinstance(value, list) else value


def change(version: Version) -> ChangeItem:
    """Return a version for a model to read."""
    return ChangeItem(
        commit=version.commit,
        at=format_time(version.at),
        agent=version.agent,
        what=harmless(version.subject),
    )
