"""Processor time of starting, with several installations side by side.

`BENCH_PYTHONS` lists their interpreters, separated as in PATH; the running one if not set.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.bench.table import rows
from tests.bench.workload import filled
from tests.support import ROOT

_SMP = ("-m", "smp_git")


def run(folder: Path, *, short: bool) -> Iterator[str]:
    """Yield the table of starts."""
    filled(folder / "store", 100).close()
    session = folder / "store/active/bench"
    here = ("--root", str(folder / "store"), "-s", "bench")
    works: Mapping[str, Sequence[str]] = {
        'python -c "pass"': ("-c", "pass"),
        'python -c "import pygit2"': ("-c", "import pygit2"),
        "smp hook post-commit": (*_SMP, "hook", "post-commit"),
        "smp show": (*_SMP, *here, "show", "DEC-0001"),
        "smp add": (*_SMP, *here, "add", "decision", "one more"),
        "smp --help": (*_SMP, "--help"),
    }
    pythons = os.environ.get("BENCH_PYTHONS", sys.executable).split(os.pathsep)
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(3 if short else 20):
        for name, arguments in works.items():
            for python in pythons:
                spent = _processor_seconds([python, *arguments], session)
                found.setdefault((name, python), []).append(spent)
    yield "\nprocessor time of whole commands, ms, the least of all rounds\n"
    yield rows(
        ("", *map(_typer, pythons)),
        [[name, *(f"{min(found[name, each]) * 1e3:.0f}" for each in pythons)] for name in works],
    )


def _processor_seconds(command: Sequence[str], folder: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    names = {key: value for key, value in os.environ.items() if not key.startswith("SMP_")}
    subprocess.run(
        command, cwd=folder, env={**names, "PYTHONPATH": str(ROOT)}, check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _typer(python: str) -> str:
    code = "import importlib.metadata as m; print('typer', m.version('typer'))"
    return subprocess.run(
        [python, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()
