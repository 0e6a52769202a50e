"""Sessions made and opened, memories got by id (L11)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from smp_git import Session, Store
from tests.bench.samples import Samples, interleaved
from tests.bench.table import bound, times
from tests.bench.workload import fill, filled

_CREATE = "create session (durable)"
_DELETE = "delete session of 20"


def run(folder: Path, *, short: bool) -> Iterator[str]:
    """Yield the table and bounds of creating, opening and getting."""
    size = 100 if short else 10_000
    filled(folder / "full", size).close()
    store = Store.open(folder / "full")
    opened = store.session("bench")
    rng, rounds = random.Random(3), 3 if short else 40

    def some() -> str:
        return f"DEC-{rng.randrange(1, size + 1):04d}"

    works: dict[str, Callable[[], object]] = {
        _CREATE: _creating(Store.init(folder / "new")),
        _DELETE: _deleting(folder / "gone", rounds),
        f"open session of {size:,}": lambda: store.session("bench").close(),
        f"open session of {size:,}, get one": lambda: _get_once(store, some()),
        "get by id, open session": lambda: opened.get(some()),
        "get by id, read before": lambda: opened.get("DEC-0001"),
        "get by abbreviation": lambda: opened.get("DEC-7"),
    }
    found = interleaved(works, rounds)
    yield "\nsessions and single reads\n"
    yield times(found, "get by id, open session")
    yield from _bounds(found)
    opened.close()


def _bounds(found: dict[str, Samples]) -> Iterator[str]:
    yield ""
    yield bound("L11", "create session, ms p50", found[_CREATE].p50 * 1e3, 100)
    yield bound("L11", "get by id, ms p95", found["get by id, open session"].p95 * 1e3, 5)
    yield bound("L11", "delete session, ms p50", found[_DELETE].p50 * 1e3, 100)


def _creating(store: Store) -> Callable[[], object]:
    made: list[Session] = []

    def create() -> None:
        made.append(store.create_session())

    return create


def _deleting(folder: Path, rounds: int) -> Callable[[], object]:
    store = Store.init(folder)
    for number in range(rounds):
        with store.create_session(f"session-{number}", user="architect") as session:
            fill(session, 20)
    left = count()
    return lambda: store.delete_session(f"session-{next(left)}")


def _get_once(store: Store, memory_id: str) -> None:
    with store.session("bench") as session:
        session.get(memory_id)
