"""Writers in processes of their own, each with a file of what was acknowledged to it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from smp_git import Store
from tests.support import ROOT, git

NAME = "busy"

# Arguments: store, writer, number of memories, file of acknowledged ids.
LIBRARY = """
import os, sys
from smp_git import Store
root, name, count, told = sys.argv[1:]
with open(told, "a") as out, Store.open(root).session("busy") as session:
    for number in range(int(count)):
        memory = session.add("finding", f"{name} saw {number}", agent=name)
        out.write(memory.id + chr(10))
        out.flush()
        os.fsync(out.fileno())
    waited = session.longest_wait_seconds
print(waited)
"""
COMMAND = """
import os, subprocess, sys
root, name, count, told = sys.argv[1:]
with open(told, "a") as out:
    for number in range(int(count)):
        done = subprocess.run(
            [sys.executable, "-m", "smp_git", "--root", root, "-s", "busy", "add", "finding",
             f"{name} saw {number}", "--agent", name],
            capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        out.write(done.stdout.split()[0] + chr(10))
        out.flush()
        os.fsync(out.fileno())
print(0)
"""


class Writer:
    """One writing process."""

    def __init__(self, store: Path, name: str, count: int, code: str) -> None:
        self.told = store.parent / f"{name}.told"
        self.told.touch()
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, str(store), name, str(count), str(self.told)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def acknowledged(self) -> list[str]:
        """Return the ids that were acknowledged so far."""
        return [line for line in self.told.read_text().split("\n")[:-1] if line]

    def waited(self) -> float:
        """Wait for a good end; return the longest wait for the lock."""
        out, errors = self.process.communicate(timeout=600)
        assert self.process.returncode == 0, errors
        return float(out)

    def kill(self) -> None:
        """Kill the process where it is, unless it has ended."""
        self.process.kill()
        if self.process.stdout is not None and not self.process.stdout.closed:
            self.process.communicate()


@contextmanager
def writing(store: Path, memories: int, codes: Sequence[str]) -> Iterator[list[Writer]]:
    """Start a writer of `memories` for each of `codes`; none outlives the block."""
    writers = [Writer(store, f"w{number}", memories, code) for number, code in enumerate(codes)]
    try:
        yield writers
    finally:
        for writer in writers:
            writer.kill()


@contextmanager
def beside(work: Callable[[Path, threading.Event], None], path: Path) -> Iterator[None]:
    """Let `work` go on in a thread until the block ends, however it does."""
    done = threading.Event()
    thread = threading.Thread(target=work, args=(path, done))
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def assert_sound(store: Path, acknowledged: Sequence[str]) -> None:
    """Assert that everything acknowledged is there, once, and that Git and we find no fault."""
    with Store.open(store).session(NAME) as session:
        assert session.check() == ()
        there = {memory.id for memory in session.memories()}
        path = session.path
    assert len(acknowledged) == len(set(acknowledged))
    assert set(acknowledged) <= there
    logged = git(path, "log", "--format=%(trailers:key=Memory,valueonly,separator=%x0A)")
    assert set(acknowledged) <= set(logged.split())
    assert_clean(path)


def assert_clean(path: Path) -> None:
    """Assert that plain Git finds the repository whole and nothing to commit."""
    assert git(path, "fsck", "--strict", "--no-dangling") == ""
    assert git(path, "status", "--porcelain") == ""
    litter = [
        *path.glob(".git/**/tmp_obj_*"),
        *path.glob(".git/smp/*.tmp*"),
        *path.glob(".git/smp/ref"),
        *path.glob(".git/objects/pack/*.keep"),
        *path.glob(".git/**/*.lock"),
        *path.glob("**/*.tmp"),
        *path.parent.glob(".new-*"),
    ]
    assert litter == [], litter
