"""A person's `git gc` beside writers: they wait for it, and nothing acknowledged is lost."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from smp_git import Session, Store
from smp_git.git import disk
from smp_git.git.repository import Repository
from tests.concurrency.writers import COMMAND, LIBRARY, assert_sound, beside, writing
from tests.support import gc_at_work, python


def _assert_sound(session: Session, names: Sequence[str]) -> None:
    session.close()
    assert_sound(session.path.parents[1], names)


def _files(session: Session) -> set[Path]:
    """Return the files of objects and packs."""
    objects = session.path / ".git/objects"
    return {*objects.glob("??/*"), *objects.glob("pack/pack-*")}


def _add(session: Session) -> list[str]:
    return [session.add("finding", "Added", agent="a").id]


def _batch(session: Session) -> list[str]:
    with session.transaction(agent="a") as batch:
        return [batch.add("finding", f"Number {number}").id for number in range(80)]


def _merge(session: Session) -> list[str]:
    with session.branch("aside") as aside:
        names: list[str] = [aside.add("finding", "Aside", agent="a").id]
        names.append(session.add("finding", "On main", agent="a").id)
        session.merge("aside")
    return names


WRITES = {"add": _add, "batch": _batch, "merge": _merge}
# Moments of a write: the objects stored, on the disk, the branch compared, just moved.
MOMENTS: dict[str, tuple[Any, str]] = {
    "stored": (Repository, "store"),
    "fsynced": (disk, "flush_data"),
    "compared": (Repository, "_compare"),
    "moved": (Repository, "_move"),
}


# As often as a write that is merged moves a branch, and once more.
_TIMES = 4


def _after(moment: str, do: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Do something right after the first such moments."""
    owner, name = MOMENTS[moment]
    original, calls = getattr(owner, name), count()

    def then(*given: Any) -> Any:
        result = original(*given)
        if next(calls) < _TIMES:
            do()
        return result

    monkeypatch.setattr(owner, name, then)


def _remove_loose(session: Session, before: set[Path]) -> None:
    """Do what a gc does that looked before."""
    for file in _files(session) - before:
        if file.parent.name != "pack":
            file.unlink()


COMMANDS = {
    "gc": ("gc", "-q", "--prune=now"),
    "repack": ("repack", "-q", "-a", "-d"),
    "prune": ("prune", "--expire=now"),
}


def _run(path: Path, name: str) -> None:
    # It may find the branch locked, or what is not named yet incomplete, and gives up.
    subprocess.run(["git", *COMMANDS[name]], cwd=path, check=False, capture_output=True)


# Beside a gc with --prune=now, which takes what nothing named when it looked


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("write", WRITES)
def test_write_outlives_a_command_at_any_moment(session: Session, write: str, moment: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    names = _add(session)
    _after(moment, lambda: _run(session.path, command), monkeypatch)
    names += WRITES[write](session)
    monkeypatch.undo()

    _assert_sound(session, names)


@pytest.mark.parametrize("write", WRITES)
def test_write_outlives_a_gc_that_looked_just_before_the_branch_moved(session: Session, write: str, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    names = _add(session)
    before, move = _files(session), disk.rename_into
    with ExitStack() as ends:

        def began(scratch: Path | str, path: Path | str) -> None:
            if not str(path).endswith("heads/main"):
                move(scratch, path)
                if "/refs/" in str(path):
                    # Whatever the other branch names, a gc that looks later knows.
                    before.update(_files(session))
                return
            ends.enter_context(gc_at_work(session.path))
            move(scratch, path)

        monkeypatch.setattr(disk, "rename_into", began)
        names += WRITES[write](session)
        monkeypatch.undo()
        _remove_loose(session, before)

    _assert_sound(session, names)


@pytest.mark.parametrize("write", WRITES)
def test_writes_and_reads_go_on_beside_a_gc(session: Session, write: str) -> None:
    names = _add(session)
    other = Store.open(session.path.parents[1]).session("busy")
    names.append(other.add("finding", "The second", agent="b").id)
    before = _files(session)
    with gc_at_work(session.path):
        names += WRITES[write](session)
        _remove_loose(session, before)
        assert {memory.id for memory in other.memories()} == set(names)
        names.append(other.add("finding", "The last", agent="b").id)
        _remove_loose(session, before)
    other.close()

    _assert_sound(session, names)


def test_writer_that_dies_beside_a_gc_leaves_nothing_broken(session: Session) -> None:
    session.add("finding", "The first", agent="a")
    session.check()
    before = _files(session)
    code = (
        "import os, sys; from smp_git import Store; s = Store.open(sys.argv[1]).session('busy');"
        "[print(s.add('finding', f'No {n}', agent='w').id, flush=True) for n in range(4)]; os._exit(0)"
    )
    with gc_at_work(session.path):
        done = python(code, session.path.parents[1])
        _remove_loose(session, before)

    _assert_sound(session, done.stdout.split())


_DIES = """
import os, subprocess, sys
from smp_git import Store
from smp_git.git import disk
from smp_git.git.repository import Repository
root, count, moment = sys.argv[1], int(sys.argv[2]), sys.argv[3]
owner, name = {"stored": (Repository, "store"), "fsynced": (disk, "flush_data")}[moment]
original, move = getattr(owner, name), Repository._move
def pruned(*given):
    result = original(*given)
    subprocess.run(["git", "gc", "-q", "--prune=now"], cwd=f"{root}/active/busy", capture_output=True)
    return result
def dies(*given):
    if move(*given):
        os._exit(73)
    return False
setattr(owner, name, pruned)
Repository._move = dies
with Store.open(root).session("busy").transaction(agent="w") as batch:
    for number in range(count):
        batch.add("finding", f"Number {number}")
"""


@pytest.mark.parametrize("moment", ["stored", "fsynced"])
@pytest.mark.parametrize("count", [1, 80], ids=["loose", "as a pack"])
def test_writer_that_dies_right_after_its_branch_moved_leaves_nothing_broken(session: Session, count: int, moment: str) -> None:  # fmt: skip
    name = session.add("finding", "The first", agent="a").id
    session.close()
    assert python(_DIES, session.path.parents[1], count, moment, check=False).returncode == 73

    with Store.open(session.path.parents[1]).session("busy") as again:
        assert len(again.memories()) == 1 + count
    _assert_sound(session, [name])


def _pruning(path: Path, done: threading.Event) -> None:
    while not done.is_set():
        _run(path, "gc")


@pytest.mark.slow
def test_gc_that_prunes_at_once_takes_nothing_from_writers(session: Session) -> None:
    session.close()
    root = session.path.parents[1]
    with beside(_pruning, session.path), writing(root, 25, [LIBRARY] * 3 + [COMMAND]) as writers:
        for writer in writers:
            writer.waited()

    assert_sound(root, [name for writer in writers for name in writer.acknowledged()])


@pytest.mark.slow
def test_gc_that_prunes_at_once_takes_nothing_from_writers_that_are_killed(session: Session) -> None:  # fmt: skip
    session.close()
    root, told = session.path.parents[1], list[str]()
    with beside(_pruning, session.path):
        for _ in range(10):
            with writing(root, 1_000, [LIBRARY] * 2) as writers:
                while not any(writer.acknowledged() for writer in writers):
                    time.sleep(0.05)
                time.sleep(random.uniform(0, 0.5))
            told += [name for writer in writers for name in writer.acknowledged()]
            for writer in writers:
                writer.told.unlink()

    assert told
    assert_sound(root, told)


def _repacking(path: Path, done: threading.Event) -> None:
    while not done.is_set():
        _run(path, "repack")


_BATCHES = """
import sys
from smp_git import Store
root, name, count, told = sys.argv[1:]
with open(told, "a") as out, Store.open(root).session("busy") as session:
    for number in range(int(count)):
        with session.transaction(agent=name) as batch:
            ids = [batch.add("finding", f"{name} saw {number}.{each}").id for each in range(70)]
        print(*ids, sep=chr(10), file=out, flush=True)
print(0)
"""


@pytest.mark.slow
def test_repack_takes_nothing_from_writers(session: Session) -> None:
    session.close()
    root = session.path.parents[1]
    with beside(_repacking, session.path), writing(root, 20, [LIBRARY, _BATCHES, _BATCHES]) as writers:  # fmt: skip
        for writer in writers:
            writer.waited()

    assert_sound(root, [name for writer in writers for name in writer.acknowledged()])


# Folders and files that a gc takes for empty or for litter


@contextmanager
def _endless(code: str, session: Session) -> Iterator[None]:
    """Let a process do something to the object store without end."""
    command = [sys.executable, "-c", code, f"{session.path}/.git/objects"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


# What `git gc` does again and again to the folders that its packing has emptied.
_TIDYING = """
import os, sys
folders = [f"{sys.argv[1]}/{number:02x}" for number in range(256)]
print("ready", flush=True)
while True:
    for folder in folders:
        try:
            os.rmdir(folder)
        except OSError:
            pass
"""


def test_folder_that_a_gc_removes_before_its_first_object_is_made_again(session: Session) -> None:
    with _endless(_TIDYING, session):
        names = [session.add("finding", f"No {number}", agent="a").id for number in range(200)]

    _assert_sound(session, names)


# What `git gc --prune=now` does once to files that are being written.
_SWEEPING = """
import os, sys
print("ready", flush=True)
while True:
    for name in os.listdir(sys.argv[1]):
        if name.startswith("tmp_"):
            try:
                os.unlink(f"{sys.argv[1]}/{name}")
            except OSError:
                pass
"""


def test_file_that_a_gc_takes_for_litter_is_written_again(session: Session) -> None:
    with _endless(_SWEEPING, session):
        names = [session.add("finding", f"No {number}", agent="a").id for number in range(100)]

    _assert_sound(session, names)


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no file system in memory")
def test_folder_that_git_packed_and_removed_does_not_fail_a_write() -> None:
    # Names are in no journal here, so each folder is forced out.
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name, Path(name, "ref").open("wb") as file:
        disk.flush_data([file.fileno()], [f"{name}/gone"], name)
        disk.flush_name(file.fileno(), f"{name}/gone", name)
