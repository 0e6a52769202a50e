"""Statistics of a store: the metrics of its sessions, and what its log counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smp_git.keep import every, log
from smp_git.model.errors import SmpError
from smp_git.model.ids import parse_id
from smp_git.model.lifecycle import State
from smp_git.model.results import Result
from smp_git.read import archives, sizes
from smp_git.read.compactions import compactions
from smp_git.remove import sessions
from smp_git.write.handle import Home


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats(Result):
    """Counts of a store; `metrics` are those that monitoring asks for, by name.

    >>> store.stats().kinds["decision"]
    1
    """

    metrics: Mapping[str, object]
    states: Mapping[str, int]
    kinds: Mapping[str, int]
    failed: Mapping[str, SmpError]


@dataclass
class _Sum:
    """What is counted, session by session."""

    states: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    size: int = 0
    history: int = 0
    compactions: int = 0
    damaged: int = 0


def stats(home: Home) -> Stats:
    """Return the statistics of a store; a session that fails is named, and the others count."""
    found, failed = _Sum(), dict[str, SmpError]()
    for name in every.names(home):
        try:
            _add(home, name, found)
        except SmpError as error:
            failed[name] = error
    found.states[State.ARCHIVED] += len(archives.names(home.path))
    found.states[State.DELETED] += len(sessions.deleted(home))
    noted = list(log.lines(home.path))
    codes = Counter(each["metadata"].get("code") for each in noted)
    return Stats(
        metrics={
            "memory.sessions.active": found.states[State.ACTIVE] + found.states[State.CREATED],
            "memory.entries.total": found.kinds.total(),
            "memory.size.bytes": found.size,
            "memory.size.git.bytes": found.history,
            "memory.operations.write.duration_ms": _durations(noted, "writes"),
            "memory.operations.query.duration_ms": _durations(noted, "queries"),
            "memory.locks.contention.count": codes["locked"],
            "memory.compaction.count": found.compactions,
            "memory.errors.corruption.count": codes["damaged"] + found.damaged,
        },
        states={name: count for name, count in found.states.items() if count},
        kinds=dict(sorted(found.kinds.items())),
        failed=failed,
    )


def _add(home: Home, name: str, found: _Sum) -> None:
    with every.opened(home, name) as handle:
        snapshot = handle.reader.main()
        for entry in snapshot.entries():
            found.kinds[parse_id(entry.id).kind.name] += 1
        found.states[handle.state(home.clock())] += 1
        found.size += sizes.tracked_bytes(handle.reader, snapshot)
        found.history += _bytes(handle.reader.path / ".git")
        found.compactions += sum(1 for _ in compactions(snapshot))
        found.damaged += len(snapshot.problems())


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _durations(noted: list[dict[str, Any]], what: str) -> dict[str, object]:
    """Return how often something was done, as the log tells, and how long it took."""
    used = [each["metadata"][what] for each in noted if what in each["metadata"]]
    count = sum(each.get("count", 0) for each in used)
    total = sum(each.get("total_ms", 0) for each in used)
    return {
        "count": count,
        "mean": round(total / count, 2) if count else None,
        "max": max((each.get("most_ms", 0) for each in used), default=None),
    }
