"""The log of a store: JSON lines without content, with levels, bounded; and the metrics in it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import wraps
from inspect import isgeneratorfunction
from pathlib import Path
from types import FunctionType
from typing import Any, Final, TypeVar

from smp_git.model.errors import (
    AccessError,
    ConflictError,
    DamagedError,
    LockedError,
    QuotaExceededError,
    RefusedError,
    SmpError,
    StorageError,
)
from smp_git.model.times import format_time
from smp_git.write.handle import Home

FILE: Final = "log.jsonl"
_LEVELS: Final = {"off": 0, "error": 1, "warn": 2, "info": 3, "debug": 4}
_ERRORS: Final = (DamagedError, StorageError)
_BLOCKED: Final = (LockedError, ConflictError, QuotaExceededError, AccessError, RefusedError)
WRITES: Final = frozenset(
    [
        "add",
        "edit",
        "resolve",
        "supersede",
        "pin",
        "unpin",
        "link",
        "unlink",
        "set_state",
        "undo",
        "redo",
        "rollback",
        "commit",
        "override",
        "merge",
        "resolve_conflict",
    ]
)
QUERIES: Final = frozenset(
    [
        "query",
        "similar",
        "related",
        "context",
        "topics",
        "timeline",
        "events",
        "summary",
        "aggregate",
        "explain",
    ]
)
# What changes the life of a session or of a memory.
_LIFE: Final = frozenset(
    [
        "create_session",
        "delete_session",
        "undelete_session",
        "purge_session",
        "archive_session",
        "unarchive_session",
        "maintain",
        "purge_expired",
        "anonymize",
        "anonymize_session",
        "clone",
        "compact",
        "delete",
        "purge",
        "redact",
        "restore",
        "repair",
        "sync",
        "fetch",
        "push",
    ]
)
_Door = TypeVar("_Door")


@dataclass(slots=True)
class Used:
    """How often something was done by one handle, and how long it took."""

    count: int = 0
    total_ms: float = 0.0
    most_ms: float = 0.0

    def add(self, milliseconds: float) -> None:
        """Count one more."""
        self.count += 1
        self.total_ms += milliseconds
        self.most_ms = max(self.most_ms, milliseconds)

    def as_json(self) -> dict[str, object]:
        """Return the object that a line has."""
        return {
            "count": self.count,
            "total_ms": round(self.total_ms, 2),
            "most_ms": round(self.most_ms, 2),
        }


@dataclass(slots=True)
class Log:
    """The log of a store, as one handle writes it; a disk that refuses loses only lines."""

    home: Home | None
    component: str
    session: str | None = None
    writes: Used = field(default_factory=Used)
    queries: Used = field(default_factory=Used)

    def note(self, level: str, message: str, **metadata: object) -> None:
        """Add a line, if lines of its level are wanted; no text of a memory or query is in it."""
        home = self.home
        if home is None or _LEVELS[level] > _LEVELS[home.settings.log]:
            return
        line = {
            "timestamp": format_time(datetime.fromtimestamp(time.time(), UTC)),
            "level": level.upper(),
            "component": self.component,
            "session_id": self.session,
            "message": message,
            "metadata": metadata,
        }
        with suppress(OSError):
            _append(home.path / FILE, json.dumps(line) + "\n", home.settings.log_bytes)

    def close(self) -> None:
        """Note how long writes and queries took, if there were any."""
        if self.writes.count or self.queries.count:
            self.note("info", "used", writes=self.writes.as_json(), queries=self.queries.as_json())
            self.writes, self.queries = Used(), Used()

    def did(self, name: str, milliseconds: float, error: SmpError | None) -> None:
        """Note one call of a door."""
        used = {"operation": name, "duration_ms": round(milliseconds, 2)}
        if error is not None:
            level = "error" if isinstance(error, _ERRORS) else "warn"
            if isinstance(error, (*_ERRORS, *_BLOCKED)):
                self.note(
                    level, "blocked" if level == "warn" else "failed", **used, code=error.code
                )
            else:
                self.note("debug", "refused", **used, code=error.code)
            return
        if name in WRITES:
            self.writes.add(milliseconds)
        elif name in QUERIES:
            self.queries.add(milliseconds)
        self.note("info" if name in _LIFE else "debug", "done", **used)


def _append(path: Path, line: str, most: int) -> None:
    with suppress(FileNotFoundError):
        if path.stat().st_size + len(line) > most:
            path.replace(path.with_name(f"{FILE}.1"))
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(fd, line.encode())
    finally:
        os.close(fd)


def logging(door: type[_Door]) -> type[_Door]:
    """Let the public methods of a door be noted in its log, and their errors name its session."""
    for name, method in list(vars(door).items()):
        is_plain = isinstance(method, FunctionType) and not name.startswith("_")
        # A generator returns before it has done anything.
        if is_plain and name != "close" and not isgeneratorfunction(method):
            setattr(door, name, _logged(name, method))
    return door


def _logged(name: str, method: Callable[..., object]) -> Callable[..., object]:
    @wraps(method)
    def run(self: Any, *given: object, **named: object) -> object:  # noqa: ANN401 - of any door
        started, failed = time.perf_counter(), None
        try:
            return method(self, *given, **named)
        except SmpError as error:
            failed = error
            error.session_id = error.session_id or self._log.session
            raise
        finally:
            self._log.did(name, (time.perf_counter() - started) * 1e3, failed)

    return run


def lines(store: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of the log, oldest first; a torn one is passed over."""
    for name in (f"{FILE}.1", FILE):
        with suppress(FileNotFoundError):
            for text in (store / name).read_text("utf-8", "replace").splitlines():
                with suppress(ValueError):
                    found = json.loads(text)
                    if isinstance(found, dict) and isinstance(found.get("metadata"), dict):
                        yield found
