"""Memories of other programs taken in, and as many added here: seconds (L5), and the memory used (L12)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from smp_git import Store
from tests.bench.table import bound, rows
from tests.bench.workload import texts

_HEAD = ("", "seconds", "processor s", "ms each", "largest MB")
_IMPORT = "import sys; from smp_git import Store; Store.open(sys.argv[1]).import_(sys.argv[2], quota=1 << 26)"

_ADD = """
import json, sys
from smp_git import Store
with Store.open(sys.argv[1]).create_session("added", overrides={"quota_bytes": 1 << 26}) as session:
    with open(sys.argv[2]) as file:
        session.add_many({"kind": "decision", "text": json.loads(line)["data"]["decision"]} for line in file)
"""
_READ = "import json, sys; [json.loads(line) for line in open(sys.argv[2])]"


def run(folder: Path, *, short: bool) -> Iterator[str]:
    """Yield the table and the bounds of an import."""
    count = 200 if short else 10_000
    store = Store.init(folder / "intake")
    log = folder / "log.jsonl"
    with log.open("w") as file:
        for number, text in enumerate(islice(texts(), count)):
            data = {"decision": text, "by": "architect"}
            line = {
                "id": f"m{number}",
                "type": "decision",
                "ts": "2026-01-11T14:30:00Z",
                "data": data,
            }
            file.write(json.dumps(line) + "\n")
    found = {
        name: _process(code, store.path, log)
        for name, code in {
            "lines parsed alone": _READ,
            "smp import": _IMPORT,
            "smp import, again": _IMPORT,
            "Session.add_many of the same": _ADD,
        }.items()
    }
    yield f"\n{count:,} memories of a log of {log.stat().st_size / 1e6:.1f} MB\n"
    yield rows(_HEAD, [_row(name, *took, count) for name, took in found.items()])
    yield ""
    yield bound("L5", f"seconds for an import of {count:,}", found["smp import"][0], 10)
    yield bound("L12", "MB of an import", found["smp import"][2], 300)


def _row(name: str, seconds: float, cpu: float, megabytes: float, count: int) -> tuple[str, ...]:
    each = f"{seconds / count * 1e3:.3f}"
    return name, f"{seconds:.2f}", f"{cpu:.2f}", each, f"{megabytes:.0f}"


_MEASURED = """
import resource, sys, time
started = time.perf_counter()
exec(sys.argv.pop(1))
used = resource.getrusage(resource.RUSAGE_SELF)
print(time.perf_counter() - started, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""


def _process(code: str, store: Path, log: Path) -> tuple[float, float, float]:
    """Run code in a process of its own; return seconds passed, of processor, and MB."""
    command = [sys.executable, "-c", _MEASURED, code, str(store), str(log)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, cpu, megabytes = map(float, done.stdout.split())
    return seconds, cpu, megabytes
