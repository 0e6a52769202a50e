"""New commits sent and taken in beside plain Git, and a clone up to its first answer (L8)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from smp_git import Store
from tests.bench.samples import Samples, interleaved, settle
from tests.bench.table import bound, times
from tests.bench.workload import fill, texts
from tests.support import git

_QUIET_SECONDS = 1.5
OUT, IN = "smp sync, out", "smp sync, in"
PUSH, FETCH, PULL = "git push", "git fetch", "git pull --ff-only"


def run(folder: Path, *, short: bool) -> Iterator[str]:
    """Yield the tables and bounds of syncing."""
    for new in (1, 10) if short else (1, 100, 1_000):
        rounds = 2 if short else 5 if new == 1_000 else 25
        found = _exchanges(folder / str(new), new, 50 if short else 1_000, rounds)
        noun = "new commit" if new == 1 else "new commits"
        yield f"\n{new:,} {noun}\n"
        yield times(found, PUSH)
        yield ""
        both = (found[OUT].p50 + found[IN].p50) / (found[PUSH].p50 + found[FETCH].p50)
        yield bound("L8", f"sync of {new:,} out / git push, p50", found[OUT].p50 / found[PUSH].p50, 2)  # fmt: skip
        yield bound("L8", f"sync of {new:,} in / git fetch, p50", found[IN].p50 / found[FETCH].p50, 2)  # fmt: skip
        yield bound("L8", f"sync of {new:,} out and in / git push and git fetch, p50", both, 2)
    size = 100 if short else 10_000
    yield f"\na clone of {size:,} memories up to its first answer\n"
    yield times(_clones(folder / "clone", size, 1 if short else 5), "git clone")


def _exchanges(folder: Path, new: int, size: int, rounds: int) -> dict[str, Samples]:
    """Return the times of sending and taking in `new` commits, each round new ones."""
    left = _store(folder / "left").create_session("bench", user="architect")
    fill(left, size)
    left.add_remote("origin", folder / "hub.git", create=True)
    left.sync()
    right = _store(folder / "right").clone(str(folder / "hub.git"))
    git(folder, "clone", "-q", "--bare", "hub.git", "twin.git")
    git(folder, "clone", "-q", "twin.git", "plain")
    source = texts(seed=7)
    found: dict[str, list[float]] = {name: [] for name in (OUT, PUSH, IN, FETCH, PULL)}
    for number in range(rounds):
        for _ in range(new):
            left.add("decision", next(source), agent="architect")
        # Until what goes on behind the writes is done.
        time.sleep(_QUIET_SECONDS)
        sending: list[tuple[str, Callable[[], object]]] = [
            (OUT, left.sync),
            (PUSH, lambda: git(left.path, "push", "-q", str(folder / "twin.git"), "main")),
        ]
        taking: list[tuple[str, Callable[[], object]]] = [
            (IN, right.sync),
            (FETCH, lambda: git(folder / "plain", "fetch", "-q")),
        ]
        # Turn by turn, so that neither always comes first.
        for works in (sending, taking):
            for name, work in works if number % 2 else reversed(works):
                found[name].append(_timed(work))
        found[PULL].append(_timed(lambda: git(folder / "plain", "pull", "-q", "--ff-only")))
    left.close()
    right.close()
    return {name: Samples(list(each)) for name, each in found.items()}


def _clones(folder: Path, size: int, rounds: int) -> dict[str, Samples]:
    with _store(folder / "left").create_session("bench", user="architect") as session:
        fill(session, size)
        session.add_remote("origin", folder / "hub.git", create=True)
        session.sync()
    store = _store(folder / "right")

    copies = (f"copy-{number}" for number in count())

    def cloned(text: str | None) -> None:
        with store.clone(str(folder / "hub.git"), next(copies)) as session:
            assert session.query(text, kinds=["decision"]).hits

    works: dict[str, Callable[[], object]] = {
        "git clone": lambda: git(folder, "clone", "-q", "hub.git", next(copies)),
        "smp clone, a structured query": lambda: cloned(None),
        "smp clone, a text query": lambda: cloned("database latency"),
    }
    return interleaved(works, rounds)


def _store(folder: Path) -> Store:
    return Store.init(folder)


def _timed(work: Callable[[], object]) -> float:
    settle()
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
