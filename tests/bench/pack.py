"""10,000 single writes, packed: time, memory and bytes, beside Git's own ways (L9)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from smp_git import Store
from tests.bench.table import bound, rows
from tests.bench.workload import texts
from tests.support import ROOT

_OURS = """
import sys
from pathlib import Path
from smp_git.git import packing
packing.pack_loose(Path(sys.argv[1]) / ".git", 600)
"""
# libgit2's own packer, as a program without Git would use it.
_LIBGIT2 = """
import sys
import pygit2
from pathlib import Path
from smp_git.git import storage
git = Path(sys.argv[1]) / ".git"
builder = pygit2.PackBuilder(pygit2.Repository(str(git)))
builder.set_threads(1)
for name, _ in storage.loose(git / "objects"):
    builder.add(pygit2.Oid(raw=name))
builder.write(str(git / "objects/pack"))
for _, path in storage.loose(git / "objects"):
    path.unlink()
"""
_GIT = ("-c", "pack.threads=1", "repack", "-q", "-d")


def run(folder: Path, *, short: bool) -> Iterator[str]:
    """Yield what packing costs and brings."""
    store = Store.init(folder / "store")
    (store.path / "config.yaml").write_text(
        "format: 1\nquota_bytes: 1000000000\ndurability: relaxed\n"
    )
    own, count = 0, 100 if short else 10_000
    with Store.open(store.path).create_session("bench") as session:
        for _, text in zip(range(count), _texts(), strict=False):
            memory = session.add("decision", text)
            own += session.file(memory.id).stat().st_size
        place = session.path
    ways = {
        "smp": [sys.executable, "-c", _OURS],
        "git repack": ["git", "-C", "{}", *_GIT],
        "libgit2": [sys.executable, "-c", _LIBGIT2],
    }
    found = {}
    for name, command in ways.items():
        copy = folder / name.replace(" ", "-")
        shutil.copytree(place, copy)
        found[name] = (copy, *_measured(command, copy))
    before = _bytes(place / ".git")
    yield f"\n{count:,} single writes packed: {before:,} bytes in .git before\n"
    yield rows(
        ("", "seconds", "processor s", "MB of memory", "bytes in .git after", "share"),
        [
            [
                name,
                f"{wall:.1f}",
                f"{cpu:.1f}",
                f"{memory:.0f}",
                f"{size:,}",
                f"{size / before:.3f}",
            ]
            for name, (copy, wall, cpu, memory) in found.items()
            if (size := _bytes(copy / ".git"))
        ],
    )
    yield ""
    whole = _bytes(found["smp"][0])
    yield bound("L9", "bytes checked out and .git / bytes of the memories", whole / own, 3)


def _texts() -> Iterator[str]:
    """Yield texts that make memories of about 1 KB."""
    pairs = texts()
    return (one + two[: 1_000 - len(one)] for one, two in zip(pairs, pairs, strict=False))


def _measured(command: list[str], copy: Path) -> tuple[float, float, float]:
    """Run a command on a session; return seconds, processor seconds and megabytes."""
    arguments = [each.format(copy) if each == "{}" else each for each in command]
    if "{}" not in command:
        arguments.append(str(copy))
    started = time.monotonic()
    process = subprocess.Popen(arguments, cwd=ROOT)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{arguments[0]} failed")
    seconds = time.monotonic() - started
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
