"""The branches for macOS and Windows, run on this system with the values of another one.

The sentence: where the program does something else on another system, that is a whole way
through it, in which nothing is missing. What the systems themselves do is not tried here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from smp_git.git import disk
from tests.support import ROOT, python

# What is imported first has chosen its own way already; the rest takes the other system's.
_AS_ON = """
import fcntl, json, os, subprocess, sys
from collections import Counter
import filelock, pygit2, shutil, tempfile
called = Counter()
real = fcntl.fcntl
fcntl.F_FULLFSYNC = 51
def full(fd, command, *rest):
    if command != fcntl.F_FULLFSYNC:
        return real(fd, command, *rest)
    called["F_FULLFSYNC"] += 1
    return os.fsync(fd)
fcntl.fcntl = full
flock = fcntl.flock
def locked(fd, operation):
    called["waits in the kernel"] += not operation & (fcntl.LOCK_NB | fcntl.LOCK_UN)
    return flock(fd, operation)
fcntl.flock = locked
sys.platform = sys.argv[1]

from smp_git import Store
store = Store.init(sys.argv[2])
with store.create_session("shop", user="ada") as session:
    holds = subprocess.Popen([sys.executable, "-c", sys.argv[3], sys.argv[2]], stdout=subprocess.PIPE)
    holds.stdout.readline()
    for number in range(40):
        session.add("finding", f"number {number}", agent="a")
    holds.communicate()
    session.add_remote("origin", sys.argv[2] + "-hub", create=True)
    session.sync()
    clean = session.delete("FIND-0001").proof.clean
    session.restore("FIND-0001")
    session.sync()
    count = len(session.memories())
    sound = session.check() == () and session.verify().clean
print(json.dumps({"called": called, "count": count, "clean": clean, "sound": sound}))
"""

# Another process, which holds the lock of the session for a moment.
_HOLDS = """
import sys, time
from smp_git import Store
with Store.open(sys.argv[1]).session("shop") as session:
    with session._handle.writer.holding("waiting"):
        print("held", flush=True)
        time.sleep(0.5)
"""


def _as_on(system: str, folder: Path) -> dict[str, object]:
    home = folder / "home"
    home.mkdir()
    environment = {
        **os.environ,
        "HOME": str(home),
        "LOCALAPPDATA": str(home / "AppData" / "Local"),
        "PYTHONPATH": str(ROOT),
        # An ending of programs there: git is found by its own name.
        "PATHEXT": "git",
    }
    environment.pop("XDG_DATA_HOME", None)
    done = subprocess.run(
        [sys.executable, "-c", _AS_ON, system, str(folder / "store"), _HOLDS],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["count"], told["clean"], told["sound"]) == (40, True, True)
    called: dict[str, object] = told["called"]
    return called


def test_macos_writes_through_the_cache_of_the_drive(tmp_path: Path) -> None:
    called = _as_on("darwin", tmp_path)
    # Before each of 40 writes the objects, and then the branch.
    assert isinstance(called["F_FULLFSYNC"], int)
    assert called["F_FULLFSYNC"] > 80
    assert list((tmp_path / "home/Library/Application Support/smp-git/keys").iterdir())


def test_windows_waits_for_a_lock_without_the_kernel(tmp_path: Path) -> None:
    called = _as_on("win32", tmp_path)
    assert not called.get("waits in the kernel")
    assert list((tmp_path / "home/AppData/Local/smp-git/keys").iterdir())


def test_this_system_waits_for_a_lock_in_the_kernel(tmp_path: Path) -> None:
    called = _as_on(sys.platform, tmp_path)
    assert called["waits in the kernel"]
    assert list((tmp_path / "home/.local/share/smp-git/keys").iterdir())


_WITHOUT_FOLDERS_AND_GROUPS = """
import os, subprocess, sys
from smp_git.git import command, disk
process = subprocess.Popen(["sleep", "60"], start_new_session=True)
groups = []
os.killpg = lambda group, number: groups.append(group)
os.name = "nt"
disk.flush_folder(sys.argv[1])
assert command._limited(command.Leash(silence_seconds=1, total_seconds=1, reply_bytes=1, cpu_seconds=1)) == []
command._end(process)
assert process.returncode == -15 and not groups
"""


def test_windows_opens_no_folder_and_ends_processes_one_by_one(tmp_path: Path) -> None:
    """It keeps names by itself, and has neither groups of processes nor a shell with limits."""
    folder = str(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError):
        disk.flush_folder(folder)
    python(_WITHOUT_FOLDERS_AND_GROUPS, folder)
