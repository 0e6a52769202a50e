"""Two sides of a session merged, beside `git merge` of the same commits."""

from __future__ import annotations

import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from smp_git import Session, Store
from smp_git.format.records import Tombstones
from smp_git.git.repository import MAIN
from smp_git.write.merge.trees import merge
from tests.bench import table
from tests.bench.workload import filled, texts

_RUNS = 3
_AT_ONCE = 10
_EDITS = 7


class _Cost(NamedTuple):
    """Processor time and time passed, in seconds."""

    processor: float
    passed: float


def _changed(session: Session, count: int, *, first: int, title: str) -> None:
    """Make `count` changes: of ten in a commit seven edits, one of a memory that the other side edits too."""
    source = texts(first)
    for start in range(0, count, _AT_ONCE):
        with session.transaction(agent="architect") as tx:
            for step in range(_AT_ONCE):
                if step >= _EDITS:
                    tx.add("decision", next(source), tags=["database"])
                    continue
                number = start + step if step else start
                tx.edit(
                    f"DEC-{(number if not step else first + number) + 1:04d}",
                    title=f"{title} {start}",
                )


def _built(folder: Path, memories: int, changes: int) -> Path:
    """Return a store whose session has a branch `theirs`, both sides with changes."""
    with filled(folder, memories, durable=False) as session:
        theirs = session.branch("theirs")
        _changed(theirs, changes, first=changes, title="theirs")
        theirs.close()
        _changed(session, changes, first=3 * changes, title="ours")
        place = session.path
    # As `git` would have it, so that both read one pack.
    subprocess.run(["git", "repack", "-adq"], cwd=place, check=True)
    return folder


def _least(run: Callable[[], _Cost]) -> _Cost:
    found = [run() for _ in range(_RUNS)]
    return _Cost(min(cost.processor for cost in found), min(cost.passed for cost in found))


def _ours(store: Path, aside: Path) -> _Cost:
    shutil.rmtree(aside, ignore_errors=True)
    shutil.copytree(store, aside)
    with Store.open(aside).session("bench") as session:
        before, started = time.process_time(), time.perf_counter()
        session.merge("theirs")
        return _Cost(time.process_time() - before, time.perf_counter() - started)


def _pure(store: Path) -> _Cost:
    with Store.open(store).session("bench") as session:
        repository = session._handle.reader.repository
        heads = repository.head(MAIN), repository.head("refs/heads/theirs")
        before, started = time.process_time(), time.perf_counter()
        merge(repository, heads[0] or session.head, heads[1] or session.head, Tombstones())
        return _Cost(time.process_time() - before, time.perf_counter() - started)


def _git(store: Path, aside: Path, *command: str) -> _Cost:
    shutil.rmtree(aside, ignore_errors=True)
    shutil.copytree(store, aside)
    place = aside / "active" / "bench"
    subprocess.run(["git", "status"], cwd=place, check=True, capture_output=True)
    before, started = _children(), time.perf_counter()
    # Page indexes conflict, so that it ends with 1.
    subprocess.run(["git", *command], cwd=place, check=False, capture_output=True)
    return _Cost(_children() - before, time.perf_counter() - started)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(folder: Path, *, short: bool = False) -> Iterator[str]:
    """Measure and yield a table."""
    memories, changes = (500, 50) if short else (5_000, 500)
    store = _built(folder / "store", memories, changes)
    aside = folder / "aside"
    who = ("-c", "user.name=bench", "-c", "user.email=bench@example.com")
    found = {
        "git merge": _least(lambda: _git(store, aside, *who, "merge", "--no-edit", "theirs")),
        "git merge-tree": _least(lambda: _git(store, aside, "merge-tree", "--write-tree", "main", "theirs")),
        "smp merge, in a program": _least(lambda: _ours(store, aside)),
        "of which the merge itself": _least(lambda: _pure(store)),
    }  # fmt: skip
    base = found["git merge"]
    rows = [
        [name, f"{cost.processor:.3f}", f"{cost.passed:.3f}", f"{cost.processor / base.processor:.2f}"]
        for name, cost in found.items()
    ]  # fmt: skip
    yield f"{memories:,} memories, {changes} changes on each side; git leaves the page indexes and every memory that both changed in conflict\n"
    yield table.rows(["", "processor s", "passed s", "ratio of processor"], rows)
