"""A session at a glance: who wrote in it, how large it is, what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from smp_git.keep import losses
from smp_git.model.ids import parse_id
from smp_git.model.memory import CommitId, Value
from smp_git.model.results import Result
from smp_git.read import sizes
from smp_git.read.compactions import last_compaction
from smp_git.read.snapshot import Snapshot
from smp_git.sync.exchange import remote_states
from smp_git.sync.outbound import RemoteState
from smp_git.write.handle import Handle


@dataclass(frozen=True, slots=True, kw_only=True)
class Participant(Result):
    """An agent that wrote in a session: how much, and when last."""

    agent: str
    memories: int
    last_active: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo(Result):
    """A session at a glance.

    >>> info = session.info()
    >>> (info.id, info.memories, info.user)
    ('shop', 3, 'ada')
    """

    id: str
    path: str
    created_at: datetime
    user: str | None
    tags: tuple[str, ...]
    context: Mapping[str, Value]
    head: CommitId
    last_written_at: datetime
    state: str
    last_access: datetime
    memories: int
    counts: Mapping[str, int]
    # The agents that the session was made for, and those that wrote in it.
    agents: tuple[str, ...]
    participants: tuple[Participant, ...]
    size_bytes: int
    quota_bytes: int
    quota_percent: float
    decay: Mapping[str, Value]
    overrides: Mapping[str, Value]
    last_compaction: datetime | None
    problems: tuple[str, ...]
    # How many memories and files a repair could not use and kept.
    kept_aside: int = 0
    remotes: tuple[RemoteState, ...] = ()


def info(handle: Handle) -> SessionInfo:
    """Return the session at a glance."""
    return handle.read(None, lambda snapshot: _info(handle, snapshot))


def _info(handle: Handle, snapshot: Snapshot) -> SessionInfo:
    said, entries = snapshot.metadata, snapshot.entries()
    kinds: dict[str, int] = {}
    agents: dict[str, tuple[int, str]] = {}
    for entry in entries:
        kind = parse_id(entry.id).kind.name
        kinds[kind] = kinds.get(kind, 0) + 1
        count, last = agents.get(entry.agent, (0, ""))
        agents[entry.agent] = count + 1, max(last, entry.updated or entry.at)
    size, quota = sizes.tracked_bytes(handle.reader, snapshot), handle.settings.quota_bytes
    left = [f"{path} has an uncommitted edit" for path in handle.writer.left]
    return SessionInfo(
        id=handle.name,
        path=str(handle.reader.path),
        created_at=said.created_at,
        user=said.user,
        tags=said.tags,
        context=said.context,
        head=snapshot.id,
        last_written_at=snapshot.commit.time,
        state=handle.state(handle.clock()),
        last_access=handle.used_at(),
        memories=len(entries),
        counts=kinds,
        participants=tuple(
            Participant(agent=name, memories=count, last_active=last)
            for name, (count, last) in sorted(agents.items())
        ),
        agents=said.agents,
        size_bytes=size,
        quota_bytes=quota,
        quota_percent=round(100 * size / quota, 1),
        decay=handle.settings.decay,
        overrides=said.settings,
        last_compaction=last_compaction(snapshot),
        problems=(
            *snapshot.problems(),
            *losses.problems(handle.reader),
            *handle.in_session.problems,
            *left,
        ),
        kept_aside=handle.reader.local.kept_aside(),
        remotes=remote_states(handle) if handle.home else (),
    )
