"""Whole commands, from the shell's start of a process to its end (L4)."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench.samples import interleaved
from tests.bench.table import bound, times
from tests.bench.workload import filled, texts
from tests.support import ROOT

_BASE = 'python -c "import pygit2, typer"'


def run(folder: Path, *, short: bool) -> Iterator[str]:
    """Yield the table and bounds of whole commands."""
    sizes = (0, 100) if short else (0, 10_000)
    works: dict[str, Callable[[], object]] = {
        _BASE: _command(folder, "-c", "import pygit2, typer"),
        'python -c "pass"': _command(folder, "-c", "pass"),
        'python -c "import pygit2"': _command(folder, "-c", "import pygit2"),
    }
    for size in sizes:
        works |= _smp(folder / str(size), size)
    found = interleaved(works, 3 if short else 30)
    yield "\nwhole commands\n"
    yield times(found, _BASE)
    if importlib.util.find_spec("smp_git.__main__") is None:
        yield "\nsmp_git has no command line yet"
        return
    yield ""
    for name, each in found.items():
        if name.startswith("smp"):
            yield bound("L4", f"{name} / import pygit2, typer, p50", each.p50 / found[_BASE].p50, 3)


def _smp(folder: Path, size: int) -> dict[str, Callable[[], object]]:
    filled(folder, max(size, 1)).close()
    if importlib.util.find_spec("smp_git.__main__") is None:
        return {}
    source = texts(seed=9)
    smp = ("-m", "smp_git", "--root", str(folder), "-s", "bench")
    return {
        f"smp add, {size:,} memories": lambda: _command(
            folder, *smp, "add", "decision", next(source)
        )(),
        f"smp show, {size:,} memories": _command(folder, *smp, "show", "DEC-0001"),
        f"smp hook post-commit, {size:,} memories": _command(
            folder / "active/bench", "-m", "smp_git", "hook", "post-commit"
        ),
    }


def _command(cwd: Path, *arguments: str) -> Callable[[], object]:
    names = {key: value for key, value in os.environ.items() if not key.startswith("SMP_")}
    return lambda: subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**names, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
    )
