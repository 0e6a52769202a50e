"""What it costs to have the library in a process: time to import, memory resident."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench.samples import interleaved
from tests.bench.table import rows, times
from tests.bench.workload import filled
from tests.support import ROOT

_STATEMENTS = (
    "pass",
    "import pygit2",
    "import pygit2, typer",
    "import smp_git",
    "from smp_git import Store",
)
_STEPS = """
import json, sys
def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))
out = {"python": resident()}
import pygit2
out["import pygit2"] = resident()
from smp_git import Store
out["import smp_git"] = resident()
session = Store.open(sys.argv[1]).session("bench")
out["session opened"] = resident()
session.get("DEC-0001")
out["one memory read"] = resident()
session.add("decision", "one more decision of this session")
out["one memory added"] = resident()
session.memories()
out["all memories read"] = resident()
session.close()
print(json.dumps(out))
"""


def run(folder: Path, *, short: bool) -> Iterator[str]:
    """Yield the tables of import time and resident memory."""
    works = {f'python -c "{text}"': _importing(text) for text in _STATEMENTS}
    yield "\nimport, as a whole process\n"
    yield times(interleaved(works, 3 if short else 30), 'python -c "import pygit2"')
    size = 100 if short else 10_000
    filled(folder / "store", size).close()
    yield f"\nresident memory, MiB, with a session of {size:,}\n"
    yield rows(
        ("after", "MiB"), [(step, f"{mib:.1f}") for step, mib in _resident(folder / "store")]
    )


def _importing(statement: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", statement], cwd=ROOT, check=True)


def _resident(store: Path) -> list[tuple[str, float]]:
    if not Path("/proc/self/status").exists():
        return []
    done = subprocess.run(
        [sys.executable, "-c", _STEPS, str(store)], cwd=ROOT, check=True, capture_output=True, text=True
    )  # fmt: skip
    return list(json.loads(done.stdout).items())
