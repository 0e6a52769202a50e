"""Many memories at once, and one at a time: seconds, and what the disk holds after (L5)."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from smp_git import Session, Store
from tests.bench.rivals import run_git
from tests.bench.samples import settle
from tests.bench.table import bound, rows
from tests.bench.workload import texts

_HEAD = ("", "seconds", "ratio", "ms each")


def run(folder: Path, *, short: bool) -> Iterator[str]:
    """Yield the tables and bounds of a batch and of as many single writes."""
    count = 200 if short else 10_000
    session = Store.init(folder / "batch").create_session("bench", user="architect")
    steps = dict(_batch(session, count))
    steps |= {
        f"git add -A + commit, core.fsync={fsync}": _seconds(
            _git(session.path, folder / f"git-{fsync}", fsync)
        )
        for fsync in ("all", "none")
    }
    whole = steps["smp transaction"]
    yield f"\nbatch of {count:,} in one transaction\n"
    yield rows(_HEAD, [_row(name, took, whole, count) for name, took in steps.items()])
    yield ""
    yield bound("L5", f"seconds for a batch of {count:,}", whole, 10)
    yield from _single(folder / "single", count)
    yield f"\nobjects after the batch: {_objects(session.path)}"
    session.close()


def _row(name: str, took: float, whole: float, count: int) -> tuple[str, str, str, str]:
    return name, f"{took:.2f}", f"{took / whole:.2f}", f"{took / count * 1e3:.3f}"


def _batch(session: Session, count: int) -> Iterator[tuple[str, float]]:
    given = list(islice(texts(), count))
    settle()
    started = time.perf_counter()
    with session.transaction(agent="architect") as tx:
        for text in given:
            tx.add("decision", text, tags=["database"])
        staged = time.perf_counter()
    done = time.perf_counter()
    yield "smp transaction", done - started
    yield "  of it: staging", staged - started
    yield "  of it: commit and check-out", done - staged
    yield "behind it: Git's index", _seconds(session._handle.keeper.flush)


def _git(source: Path, target: Path, fsync: str) -> Callable[[], object]:
    files = {
        file.relative_to(source): file.read_bytes()
        for file in source.rglob("*.yaml")
        if ".git" not in file.parts
    }

    def work() -> None:
        target.mkdir()
        run_git(target, "init", "-q", "-b", "main")
        for path, data in files.items():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_bytes(data)
        run_git(target, "-c", f"core.fsync={fsync}", "add", "-A")
        run_git(target, "-c", f"core.fsync={fsync}", "commit", "-q", "-m", "all")

    return work


def _seconds(work: Callable[[], object]) -> float:
    settle()
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _single(folder: Path, count: int) -> Iterator[str]:
    session = Store.init(folder).create_session("bench", user="architect")
    source = texts(seed=2)
    took = _seconds(lambda: [session.add("decision", next(source), tags=["database"]) for _ in range(count)])  # fmt: skip
    size = sum(memory.size_bytes for memory in session.memories())
    session.close()
    yield f"\n{count:,} single writes: {took:.1f} s, {took / count * 1e3:.2f} ms each"
    yield f"objects after them: {_objects(session.path)}; the memories have {size / 1e6:.1f} MB"


def _objects(path: Path) -> str:
    told = subprocess.run(
        ["git", "count-objects", "-v"], cwd=path, capture_output=True, text=True, check=True
    ).stdout
    counted = {key: int(value) for key, _, value in (line.partition(": ") for line in told.splitlines())}  # fmt: skip
    loose = [file.stat().st_size for file in (path / ".git/objects").glob("??/*")]
    return (
        f"{counted['count']:,} loose ({sum(loose) / 1e6:.1f} MB of data, {counted['size'] / 1024:.1f} MiB of blocks), "
        f"{counted['in-pack']:,} packed ({counted['size-pack'] / 1024:.1f} MiB)"
    )
