"""A person's `git gc` beside writers: nothing acknowledged is lost, and no write fails."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from smp_git import Session, Store
from smp_git.git import disk
from smp_git.git.repository import Repository
from smp_git.write import git_index
from tests.concurrency.writers import COMMAND, LIBRARY, assert_sound, beside, writing
from tests.support import gc_at_work, git, python


def _assert_sound(session: Session, names: Sequence[str]) -> None:
    session.close()
    assert_sound(session.path.parents[1], names)


def _files(session: Session) -> set[Path]:
    """Return the files of objects and packs."""
    objects = session.path / ".git/objects"
    return {*objects.glob("??/*"), *objects.glob("pack/pack-*")}


def _prune_now(session: Session, before: set[Path]) -> None:
    """Take the loose objects that were not there before."""
    for file in _files(session) - before:
        if file.parent.name != "pack":
            file.unlink()


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody empty the write-ahead line in the background, however slow the disk is."""
    monkeypatch.setattr(git_index, "_QUIET_SECONDS", 60.0)


# While a gc with --prune=now is at work that looked before, and takes what nothing named then


def test_first_write_outlives_a_gc(session: Session) -> None:
    before = _files(session)
    with gc_at_work(session.path):
        name = session.add("finding", "No MFA", agent="a").id
        _prune_now(session, before)

    _assert_sound(session, [name])


def test_writes_of_a_batch_outlive_a_gc(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    before, known, move = _files(session), set[Path](), Repository._publish_forced

    def noted(*arguments: Any) -> None:
        known.update(_files(session))
        move(*arguments)

    monkeypatch.setattr(Repository, "_publish_forced", noted)
    with gc_at_work(session.path):
        with session.transaction(agent="a") as batch:
            names = [batch.add("finding", f"Number {number}").id for number in range(80)]
        for file in known - before:
            file.unlink()

    _assert_sound(session, names)


@pytest.mark.usefixtures("line")
@pytest.mark.parametrize("ended", [False, True], ids=["at work at the end", "ended before"])
def test_later_writes_outlive_a_gc(session: Session, ended: bool) -> None:
    names = [session.add("finding", "The first", agent="a").id]
    session.check()
    before = _files(session)
    with gc_at_work(session.path):
        names += [session.add("finding", f"Number {number}", agent="a").id for number in range(5)]
        for file in _files(session) - before:
            file.unlink()
        if not ended:
            session.close()

    _assert_sound(session, names)


@pytest.mark.usefixtures("line")
def test_another_process_reads_and_writes_before_what_a_gc_took_is_back(session: Session) -> None:
    names = [session.add("finding", "The first", agent="a").id]
    other = Store.open(session.path.parents[1]).session("busy")
    names.append(other.add("finding", "The second", agent="b").id)
    before = _files(session)
    with gc_at_work(session.path):
        names += [session.add("finding", f"Number {number}", agent="a").id for number in range(3)]
        for file in _files(session) - before:
            file.unlink()
        assert [memory.id for memory in other.memories()] == names
        names.append(other.add("finding", "The last", agent="b").id)
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
        done = subprocess.run([sys.executable, "-c", code, session.path.parents[1]], capture_output=True, check=True, text=True)  # fmt: skip
        _prune_now(session, before)

    _assert_sound(session, done.stdout.split())


_DIES = """
import os, sys
from smp_git import Store
from smp_git.git.repository import Repository
def dying(whole):
    def dies(*arguments):
        whole(*arguments)
        os._exit(73)
    return dies
Repository._put_and_move = dying(Repository._put_and_move)
Repository._publish_forced = dying(Repository._publish_forced)
with Store.open(sys.argv[1]).session("busy").transaction(agent="w") as batch:
    for number in range(int(sys.argv[2])):
        batch.add("finding", f"Number {number}")
"""


@pytest.mark.parametrize("count", [1, 80], ids=["on the line", "as a pack"])
def test_writer_that_dies_right_after_its_branch_moved_leaves_nothing_broken(session: Session, count: int) -> None:  # fmt: skip
    name = session.add("finding", "The first", agent="a").id
    session.close()
    before = _files(session)
    with gc_at_work(session.path):
        assert python(_DIES, session.path.parents[1], count, check=False).returncode == 73
        _prune_now(session, before)

    with Store.open(session.path.parents[1]).session("busy") as again:
        assert len(again.memories()) == 1 + count
    _assert_sound(session, [name])


def test_history_is_whole_while_a_gc_takes_what_was_written(session: Session) -> None:
    session.add("finding", "The first", agent="a")
    before = _files(session)
    with session.branch("aside") as aside, gc_at_work(session.path):
        for number in range(3):
            session.add("finding", f"Number {number}", agent="a")
            aside.add("finding", f"Aside {number}", agent="a")
            _prune_now(session, before)
        assert len(list(session.log())) == 5
        assert session.merge("aside").commit
        assert git(session.path, "fsck", "--strict", "--no-dangling") == ""


def test_pack_of_one_gc_stays_while_it_is_the_only_place(session: Session) -> None:
    names = [session.add("finding", "The first", agent="a").id]
    for number in range(2):
        with gc_at_work(session.path):
            names.append(session.add("finding", f"Number {number}", agent="a").id)
        with session._handle.writer.holding("a pause"):
            session._handle.writer.settle()
        git(session.path, "prune-packed")

    _assert_sound(session, names)


def _prune(path: Path, done: threading.Event) -> None:
    while not done.is_set():
        # It may find what is not named yet incomplete, and gives up.
        subprocess.run(["git", "gc", "-q", "--prune=now"], cwd=path, check=False, capture_output=True)  # fmt: skip


@pytest.mark.slow
def test_gc_that_prunes_at_once_takes_nothing_from_writers(session: Session) -> None:
    session.close()
    root = session.path.parents[1]
    with beside(_prune, session.path), writing(root, 25, [LIBRARY] * 3 + [COMMAND]) as writers:
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


# What one gc after another does on a slow disk: each knows the pack that was made beside the last.
_TAKING = """
import os, sys
pack = f"{sys.argv[1]}/pack"
known = set(os.listdir(pack))
print("ready", flush=True)
while True:
    for name in set(os.listdir(pack)) - known:
        try:
            os.unlink(f"{pack}/{name}")
        except OSError:
            pass
"""


def test_pack_that_the_next_gc_takes_at_once_does_not_fail_a_write(session: Session) -> None:
    session.check()
    with gc_at_work(session.path), _endless(_TAKING, session):
        names = [session.add("finding", f"No {number}", agent="a").id for number in range(100)]
        with session.transaction(agent="a") as batch:
            names += [batch.add("finding", f"Number {number}").id for number in range(5)]
        session.close()

    _assert_sound(session, names)


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no file system in memory")
def test_folder_that_git_packed_and_removed_does_not_fail_a_write() -> None:
    # Names are in no journal here, so each folder is forced out.
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name, Path(name, "ref").open("wb") as file:
        disk.force_data([file.fileno()], [f"{name}/gone"], name)
        disk.force_name(file.fileno(), f"{name}/gone", name)
