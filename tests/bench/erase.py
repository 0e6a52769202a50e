"""`python -m tests.bench.erase [--short]`: deletion with proof beside git-filter-repo and gc."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from smp_git import Store
from smp_git.erasure.erase import erase
from tests.bench import table
from tests.bench.workload import texts

_RIVAL = "git-filter-repo"
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
    count = 1_000 if short else 10_000
    store = built(folder / "loose", count)
    packed = folder / "packed"
    shutil.copytree(store, packed)
    subprocess.run(["git", "repack", "-adq"], cwd=packed / "active/bench", check=True)
    cases = {
        "first": [1],
        "middle": [count // 2],
        "last": [count - 1],
        "100 at once": list(range(50, count, max(1, count // 100)))[:100],
    }
    rows = []
    for form, source in (("loose", store), ("packed", packed)):
        for name, numbers in cases.items():
            ids = [f"DEC-{number:04d}" for number in numbers]
            ours, parts = deleted(source, folder / "ours", ids)
            rival = filtered(source, folder / "rival", ids)
            rows.append([f"{form}, {name}", f"{ours:.2f}", f"{rival:.2f}", f"{rival / ours:.2f}", parts])  # fmt: skip
    head = ["case", "smp s, with proof", f"{_RIVAL} + gc s", "ratio", "of which"]
    yield f"{count:,} commits; the rival takes out the paths only, not the index lines\n"
    yield table.rows(head, rows)


def deleted(source: Path, place: Path, ids: Sequence[str]) -> tuple[float, str]:
    """Delete from a copy; return the time in all, and by part."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(source, place)
    with Store.open(place).session("bench") as session:
        started = time.perf_counter()
        receipt = erase(session._writer, ids, by="bench", now=datetime.now(UTC))
        took = time.perf_counter() - started
    assert receipt.proof.clean, receipt.proof.hits
    return took, ", ".join(f"{name} {value:.2f}" for name, value in receipt.seconds.items())


def filtered(source: Path, place: Path, ids: Sequence[str]) -> float:
    """Take the same paths out of a copy with the rival, gc included; return the time."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(source, place)
    paths = [f"--path=decisions/{int(name[4:]) // 100:03d}/{name}.yaml" for name in ids]
    started = time.perf_counter()
    subprocess.run(
        [
            _BESIDE_PYTHON if _BESIDE_PYTHON.exists() else _RIVAL,
            *paths,
            "--invert-paths",
            "--force",
            "--quiet",
        ],
        cwd=place / "active/bench",
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - started


def main() -> None:
    """Run with a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true")
    short = parser.parse_args().short
    with tempfile.TemporaryDirectory(prefix="smp-bench-") as folder:
        for text in run(Path(folder), short=short):
            print(text, flush=True)


if __name__ == "__main__":
    main()
