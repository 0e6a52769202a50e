"""Maintenance of 100 sessions, one after another in a store, and a check of 10,000 memories (L10)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from smp_git import Store
from tests.bench.samples import settle
from tests.bench.table import bound, rows
from tests.bench.workload import filled, texts

_Found = TypeVar("_Found")
_QUOTA = 10_485_760


class _Clock:
    """A clock that is moved from one maintenance to the next."""

    now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def run(folder: Path, *, short: bool) -> Iterator[str]:
    """Yield what maintenance costs on the days of a store, and a check of a large session."""
    sessions, each = (5, 4) if short else (100, 40)
    clock = _Clock()
    store = Store.init(folder / "store", clock=clock)
    store.configure({"durability": "relaxed", "quota_bytes": _QUOTA})
    _fill(store, sessions, each)
    yield f"\nmaintenance of {sessions} sessions of {each} single writes, quota {_QUOTA:,} bytes each\n"
    table = []
    for name, days in (
        ("after the writes", 0),
        ("nothing changed", 1),
        ("the check of every week", 8),
        ("not used for a month", 31),
        ("all archived", 32),
    ):
        clock.now = _Clock.now + timedelta(days=days)
        wall, busy, done = _timed(store.maintain)
        steps = Counter(action.step for action in done.actions)
        did = ", ".join(f"{count} x {step}" for step, count in steps.items()) or "nothing"
        table.append([name, f"{wall:.2f}", f"{busy:.2f}", f"{busy / sessions * 1e3:.1f}", did])
    yield rows(("", "seconds", "processor s", "of it ms a session", "did"), table)
    yield from _check(folder / "large", 100 if short else 10_000)


def _fill(store: Store, sessions: int, each: int) -> None:
    source = texts()
    for number in range(sessions):
        with store.create_session(f"s{number:03}") as session:
            for _ in range(each):
                session.add("decision", next(source))


def _check(folder: Path, count: int) -> Iterator[str]:
    with filled(folder, count, durable=False) as session:
        wall, busy, found = _timed(session.check)
        yield f"\nsmp check of {count:,} memories\n"
        yield rows(
            ("", "seconds", "processor s", "problems"),
            [["check", f"{wall:.2f}", f"{busy:.2f}", f"{len(found)}"]],
        )
        yield ""
        yield bound("L10", f"seconds to check {count:,} memories", wall, 5)
        yield bound("L10", "processor seconds of that", busy, 5)


def _timed(work: Callable[[], _Found]) -> tuple[float, float, _Found]:
    """Do the work; return seconds, processor seconds and what came of it."""
    settle()
    started, busy = time.perf_counter(), time.process_time()
    found = work()
    return time.perf_counter() - started, time.process_time() - busy, found
