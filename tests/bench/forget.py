"""A deletion on its way from one replica to another, beside plain Git, and its restoration (L6, L8, L12)."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from smp_git import Store
from tests.bench import erase, table
from tests.bench.samples import settle
from tests.bench.workload import filled
from tests.support import ROOT, git, python

DELETE, OUT, IN = "smp delete", "smp sync, out", "smp sync, in"
PUSH, FETCH = "git push --force", "git fetch"
# In a process of its own: what a command takes begins with what its parent has.
_BUILD = """
import sys
from pathlib import Path
from tests.bench.forget import build
build(Path(sys.argv[1]), int(sys.argv[2]))
"""
# What `resource` counts in.
_MEGABYTE = 1e6 if sys.platform == "darwin" else 1e6 / 1024


class _Cost(NamedTuple):
    """What a command and the programs it starts take: seconds, and the most memory of one of them."""

    passed: float
    processor: float
    megabytes: float


def run(folder: Path, *, short: bool = False) -> Iterator[str]:
    """Measure and yield tables and bounds."""
    count = 300 if short else 20_000
    rounds = 1 if short else 3
    found: dict[str, list[_Cost]] = {name: [] for name in (DELETE, PUSH, OUT, FETCH, IN)}
    # Addresses stay as they are, so each round is in the same place.
    place, built = folder / "place", folder / "built"
    python(_BUILD, place, count)
    place.rename(built)
    for number in range(rounds):
        shutil.copytree(built, place, symlinks=True)
        for name, cost in _round(place).items():
            found[name].append(cost)
        place.rename(folder / f"round-{number}")
    yield f"\nthe first of {count:,} memories, each a commit, deleted; whole commands, in each column the median of {rounds}\n"
    yield _told(found)
    yield ""
    passed = _medians(found, 0)
    yield table.bound("L6", "smp delete, s", passed[DELETE], 12)
    yield table.bound("L8", "sync of a deletion out / git push --force", passed[OUT] / passed[PUSH], 3)  # fmt: skip
    yield table.bound("L8", "sync of a deletion in / git fetch", passed[IN] / passed[FETCH], 6)
    for name in (DELETE, OUT, IN):
        yield table.bound("L12", f"{name}, MB", _medians(found, 2)[name], 300)
    yield from _restored(folder / "restored", *((100, 30, 5) if short else (1_000, 600, 30)))


def build(folder: Path, count: int) -> None:
    """Make a session, a hub, and what either program cloned from it."""
    erase.built(folder / "left", count)
    git(folder / "left/active/bench", "repack", "-adq")
    with Store.open(folder / "left").session("bench") as session:
        session.add_remote("origin", folder / "hub.git", create=True)
        session.sync()
    git(folder, "clone", "-q", "--bare", "hub.git", "twin.git")
    git(folder, "clone", "-q", "twin.git", "plain")
    Store.init(folder / "right").clone(str(folder / "hub.git")).close()


def _round(folder: Path) -> Mapping[str, _Cost]:
    """Delete the first memory and exchange that, by either program."""
    left, twin = folder / "left/active/bench", folder / "twin.git"
    return {
        DELETE: _smp(folder / "left", "delete", "DEC-0001"),
        PUSH: _command("git", "-C", left, "push", "-q", "--force", twin, "main"),
        OUT: _smp(folder / "left", "sync"),
        FETCH: _command("git", "-C", folder / "plain", "fetch", "-q"),
        IN: _smp(folder / "right", "sync"),
    }


def _smp(store: Path, *arguments: str) -> _Cost:
    return _command(sys.executable, "-m", "smp_git", *arguments, "--root", store, "-s", "bench")


def _command(*arguments: object) -> _Cost:
    settle()
    names = {key: value for key, value in os.environ.items() if not key.startswith("SMP_")}
    before, started = os.times(), time.perf_counter()
    process = subprocess.Popen(
        [str(each) for each in arguments],
        env={**names, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    passed = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    after = os.times()
    processor = sum(after[2:4]) - sum(before[2:4])
    return _Cost(passed, processor, used.ru_maxrss / _MEGABYTE)


def _medians(found: Mapping[str, list[_Cost]], column: int) -> dict[str, float]:
    return {name: statistics.median(each[column] for each in costs) for name, costs in found.items()}  # fmt: skip


def _told(found: Mapping[str, list[_Cost]]) -> str:
    columns = [_medians(found, column) for column in range(3)]
    beside = {OUT: PUSH, IN: FETCH}
    rows = []
    for name in found:
        ratios = [f"{c[name] / c[beside[name]]:.2f}" if name in beside else "" for c in columns[:2]]
        figures = [f"{column[name]:.2f}" for column in columns[:2]]
        rows.append([name, *figures, f"{columns[2][name]:.0f}", *ratios])
    head = ["", "passed s", "processor s", "largest process MB", "ratio passed", "ratio processor"]
    return table.rows(head, rows)


def _restored(folder: Path, memories: int, deleted: int, batches: int) -> Iterator[str]:
    """Delete memories in batches, then bring all of them back at once."""
    ids = [f"DEC-{number + 1:04d}" for number in range(deleted)]
    size = deleted // batches
    with filled(folder, memories, durable=False) as session:
        deletion = sum(
            _seconds(lambda at=at: session.delete(ids[at : at + size]))  # type: ignore[misc]
            for at in range(0, deleted, size)
        )
        restoration = _seconds(lambda: session.restore(ids))
        assert session.query(kinds=["decision"], limit=1).total == memories
    yield f"\n{deleted} of {memories:,} memories: deleted in {batches} batches in {deletion:.2f} s, restored at once in {restoration:.2f} s\n"
    yield table.bound("L6", "restore / their deletion", restoration / deletion, 1)


def _seconds(work: Callable[[], object]) -> float:
    settle()
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
