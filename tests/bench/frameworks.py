"""LangGraph's store beside its own in SQLite: puts, gets and searches one by one (needs the extra langgraph)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from smp_git import Store
from tests.bench.samples import Samples
from tests.bench.table import times

_ITEM = {"name": "Ann", "likes": ["coffee", "short answers"], "visits": 0, "note": "word " * 40}
_NEEDED = ("langgraph.store.base", "langgraph.store.sqlite")


def run(folder: Path, *, short: bool) -> Iterator[str]:
    """Yield a table for each operation."""
    try:
        missing = [name for name in _NEEDED if find_spec(name) is None]
    except ModuleNotFoundError:
        missing = [*_NEEDED]
    if missing:
        yield "skipped: pip install 'smp-git[langgraph]' langgraph-checkpoint-sqlite"
        return
    from langgraph.store.sqlite import SqliteStore

    from smp_git.integrations.langgraph import SmpStore

    count = 50 if short else 1000
    store = Store.init(folder / "store")
    with store.create_session("graph") as session:
        connection = sqlite3.connect(
            folder / "store.db", check_same_thread=False, isolation_level=None
        )
        rival = SqliteStore(connection)
        rival.setup()
        stores = {
            "smp-git, durable": SmpStore(session),
            "SQLite, langgraph-checkpoint-sqlite": rival,
        }
        for what, do in _operations(count).items():
            samples = {name: Samples() for name in stores}
            for number in range(count):
                for name, each in stores.items():
                    samples[name].take(partial(do, each, number))
            yield f"\n{count:,} times {what}, of an item of {len(str(_ITEM))} characters\n"
            yield times(samples, "SQLite, langgraph-checkpoint-sqlite")
        modes = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "journal_mode")
        ]
        yield f"\nSQLite: synchronous {modes[0]}, journal {modes[1]}"
        connection.close()


def _operations(count: int) -> dict[str, Callable[[Any, int], object]]:
    def namespace(number: int) -> tuple[str, ...]:
        return ("users", f"u{number % 50}")

    return {
        "put": lambda store, n: store.put(namespace(n), f"k{n}", {**_ITEM, "visits": n}),
        "get": lambda store, n: store.get(namespace(n), f"k{n}"),
        "put over it": lambda store, n: store.put(namespace(n), f"k{n}", {**_ITEM, "visits": -n}),
        "search of one user": lambda store, n: store.search(namespace(n)),
    }
