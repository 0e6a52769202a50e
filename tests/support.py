"""What several tests need: Git as a person runs it, children that die, a store as text."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from smp_git import Session
from smp_git.read.replica import use_of

ROOT = Path(__file__).resolve().parent.parent
# From linux/prctl.h and linux/capability.h.
_PR_CAPBSET_DROP = 24
_CAP_DAC_OVERRIDE = 1
_CAP_DAC_READ_SEARCH = 2


def git(folder: Path, *arguments: str) -> str:
    """Run the git command in a folder and return what it prints."""
    done = subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


def own(**fields: object) -> dict[str, Any]:
    """Return fields that no kind knows, which a type checker refuses where they are named."""
    return fields


def untyped(value: object) -> Any:
    """Return what a type checker is not to look at: a kind that varies, or a wrong one."""
    return value


def before_next_write(session: Session, act: Callable[[], object]) -> None:
    """Let somebody else act when a session's writer is about to wait for the lock, once."""
    writer = session._handle.writer
    holding = writer.holding

    def late(*arguments: Any) -> Any:
        writer.holding = holding  # type: ignore[method-assign]
        act()
        return holding(*arguments)

    writer.holding = late  # type: ignore[method-assign, assignment]


@contextmanager
def gc_at_work(place: Path) -> Iterator[int]:
    """Say, as Git does, that a process collects garbage in a repository; yield its number."""
    sign = place / ".git/gc.pid"
    with subprocess.Popen(["sleep", "600"]) as process:
        sign.write_text(f"{process.pid} {socket.gethostname()}")
        try:
            yield process.pid
        finally:
            sign.unlink(missing_ok=True)
            process.kill()


def unlisted(folder: Path) -> list[str]:
    """Return the local files of sessions below a folder that are not on the one list of them."""
    found = [
        (path, path.parts[path.parts.index("smp", path.parts.index(".git")) + 1])
        for path in folder.rglob(".git/smp/**/*")
    ]
    return sorted(str(path) for path, name in found if path.is_file() and use_of(name) is None)


# For code of a process of its own: `getrusage` also counts what the process that forked it had.
PEAK = """
import re
def peak_kilobytes():
    with open("/proc/self/status") as file:
        return int(re.search(r"VmHWM:\\s+(\\d+)", file.read())[1])
"""


# For code that dies at one of its steps, or, with 0, says how many there are.
# `around` makes two steps of a function: before it and after it.
STEPS = """
import os, sys
from smp_git import Store
from smp_git.remove.history import journal
wanted, seen = int(sys.argv[2]), []

def reached(step):
    seen.append(step)
    if len(seen) == wanted:
        os._exit(73)

def around(home, name):
    real = getattr(home, name)
    def told(*args, **kwargs):
        reached(f"before {name}")
        done = real(*args, **kwargs)
        reached(f"after {name}")
        return done
    setattr(home, name, told)

journal.reached = reached
"""


def python(code: str, *arguments: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process of its own, with this checkout first on its path."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        check=check,
        capture_output=True,
        text=True,
    )


def lose_rights_of_root() -> None:
    """Let the program that this process becomes obey the modes of files, whoever runs it."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for each in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
            if libc.prctl(_PR_CAPBSET_DROP, each, 0, 0, 0):
                raise OSError(ctypes.get_errno(), "prctl")


def smp(
    *arguments: object,
    cwd: Path | None = None,
    check: bool = True,
    stdin: str = "",
    before: Callable[[], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the command as a person would; `before` runs in its process, before it begins."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "smp_git", *map(str, arguments)],
        cwd=cwd or ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=check,
        capture_output=True,
        text=True,
        input=stdin,
        preexec_fn=before,
    )


def git_bytes(folder: Path, *arguments: str, data: bytes = b"", **environment: str) -> bytes:
    """Run the git command on `data` as its input and return what it prints."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        input=data,
        check=True,
        capture_output=True,
        env={**os.environ, **environment},
    )
    return done.stdout


def git_input(folder: Path, data: bytes, *arguments: str, **environment: str) -> str:
    """Run the git command on `data` as its input and return the one line it prints."""
    return git_bytes(folder, *arguments, data=data, **environment).decode().strip()
