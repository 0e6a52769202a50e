"""Deletion with proof, beside git-filter-repo and gc (L6)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

from smp_git import Store
from smp_git.remove.history.erase import erase
from smp_git.remove.history.journal import RewriteOrder
from tests.bench import table
from tests.bench.workload import texts

_T = TypeVar("_T")
_RIVAL = "git-filter-repo"
# What is told of either side.
_WHAT = ("processor s", "passed s", "MB after")
# Where an environment has its programs, which need not be on the path.
_BESIDE_PYTHON = Path(sys.executable).with_name(_RIVAL)


def built(folder: Path, count: int) -> Path:
    """Return a store of one session with `count` commits, all objects loose."""
    store = Store.init(folder)
    config = folder / "config.yaml"
    config.write_text(config.read_text() + "durability: relaxed\n")
    with Store.open(folder).create_session("bench", user="architect") as session:
        source = texts(1)
        for _ in range(count):
            session.add("decision", next(source), agent="architect", tags=["database"])
    return store.path


def run(folder: Path, *, short: bool = False) -> Iterator[str]:
    """Measure and yield tables."""
    count = 300 if short else 10_000
    store = built(folder / "loose", count)
    packed = folder / "packed"
    shutil.copytree(store, packed)
    subprocess.run(["git", "repack", "-adq"], cwd=packed / "active/bench", check=True)
    cases = {
        "first": [1],
        "middle": [count // 2],
        "last": [count - 1],
        "100 at once": [50 + place * (count - 50) // 100 for place in range(100)],
    }
    rows, bounds = [], []
    for form, source in (("packed", packed), ("loose", store)):
        for name, numbers in cases.items():
            ids = [f"DEC-{number:04d}" for number in numbers]
            ours, parts = deleted(source, folder / "ours", ids)
            rival = filtered(source, folder / "rival", ids)
            rows.append(
                [f"{form}, {name}", *ours.cells, *(rival.cells if rival else ("",) * 3), parts]
            )
            if rival is not None and len(ids) == 1:
                ratio = rival.processor / ours.processor
                bounds.append(table.bound("L6", f"{form}, {name}: processor time of {_RIVAL} / smp", ratio, 1, least=True))  # fmt: skip
    head = ["case", *(f"{who} {what}" for who in ("smp", "rival") for what in _WHAT), "of which passed s"]  # fmt: skip
    yield f"{count:,} commits; smp with proof; the rival is {_RIVAL} with its gc, and takes out the paths only, not the index lines\n"
    yield table.rows(head, rows)
    yield "\n" + "\n".join(bounds) if bounds else f"\n{_RIVAL} is not installed"


class Cost(NamedTuple):
    """What a deletion costs, and how large it leaves the objects."""

    processor: float
    passed: float
    megabytes: float

    @property
    def cells(self) -> tuple[str, str, str]:
        """The figures as they are shown."""
        return f"{self.processor:.2f}", f"{self.passed:.2f}", f"{self.megabytes:.1f}"


def measured(place: Path, work: Callable[[], _T]) -> tuple[Cost, _T]:
    """Return what some work costs, programs it starts included, and its result."""
    before, started = sum(os.times()[:4]), time.perf_counter()
    result = work()
    passed, processor = time.perf_counter() - started, sum(os.times()[:4]) - before
    size = sum(each.stat().st_size for each in (place / "active/bench/.git/objects").rglob("*"))
    return Cost(processor, passed, size / 1e6), result


def deleted(source: Path, place: Path, ids: Sequence[str]) -> tuple[Cost, str]:
    """Delete from a copy; return the cost in all, and the time by part."""
    _copy(source, place)
    with Store.open(place).session("bench") as session:
        cost, receipt = measured(place, lambda: erase(session._handle.writer, ids, RewriteOrder(by="bench", now=datetime.now(UTC))))  # fmt: skip
    assert receipt.proof.clean, receipt.proof.hits
    return cost, ", ".join(f"{name} {value:.2f}" for name, value in receipt.seconds.items())


def filtered(source: Path, place: Path, ids: Sequence[str]) -> Cost | None:
    """Take the same paths out of a copy with the rival, gc included; None where it is not installed."""
    rival = str(_BESIDE_PYTHON) if _BESIDE_PYTHON.exists() else shutil.which(_RIVAL)
    if rival is None:
        return None
    _copy(source, place)
    paths = [f"--path=decisions/{int(name[4:]) // 100:03d}/{name}.yaml" for name in ids]
    command = [rival, *paths, "--invert-paths", "--force", "--quiet"]
    where = place / "active/bench"
    return measured(place, lambda: subprocess.run(command, cwd=where, check=True, stdout=subprocess.DEVNULL))[0]  # fmt: skip


def _copy(source: Path, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(source, place)
