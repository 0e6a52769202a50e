"""Packing beside everything else: nothing is lost, nothing that was removed comes back."""

from __future__ import annotations

import subprocess
import sys
import threading
import zlib
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.git import packing, storage
from smp_git.keep import growth
from smp_git.model.errors import LockedError
from tests.concurrency.writers import COMMAND, LIBRARY, assert_sound, beside, writing
from tests.independent_scan import scan
from tests.support import gc_at_work, git, python


def fill(session: Session, count: int = 40) -> list[str]:
    return [
        session.add("turn" if n % 2 else "decision", f"number {n} of some text " * 5, agent="a").id
        for n in range(count)
    ]


def objects(session: Session) -> dict[str, str]:
    """Return the type and content of every object, as Git lists them."""
    names = git(session.path, "cat-file", "--batch-all-objects", "--batch-check").splitlines()
    return {line.split()[0]: line for line in names}


def packs(session: Session) -> list[Path]:
    return sorted((session.path / ".git/objects/pack").glob("*.pack"))


def test_everything_is_there_as_before_and_smaller(session: Session) -> None:
    names = fill(session)
    session.edit(names[2], text="another text")
    before, log = objects(session), git(session.path, "log", "-p", "--no-color")
    done = growth.pack(session._handle, 60, 1)
    assert done.objects == len(before)
    assert done.bytes_after * 2 < done.bytes_before
    assert (done.left, done.damaged, packing.count_loose(session.path / ".git")) == (0, 0, 0)
    assert objects(session) == before
    assert git(session.path, "log", "-p", "--no-color") == log
    assert [memory.id for memory in session.memories()]
    _assert_sound(session, names)


def _assert_sound(session: Session, names: list[str]) -> None:
    session.close()
    assert_sound(session.path.parents[1], names)


def test_a_damaged_object_stays_where_it_is_and_the_rest_is_packed(session: Session) -> None:
    fill(session, 6)
    path = next(path for _, path in storage.loose(session.path / ".git/objects"))
    whole = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(zlib.compress(zlib.decompress(whole)[:-1] + b"?"))
    done = growth.pack(session._handle, 60, 1)
    assert done.damaged == 1
    assert [each for _, each in storage.loose(session.path / ".git/objects")] == [path]
    path.write_bytes(whole)
    _assert_sound(session, [])


def test_batches_end_with_the_time(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "_MOST_OBJECTS", 20)
    names = fill(session, 20)
    first = growth.pack(session._handle, 0, 1)
    assert first.objects == 20
    assert first.left > 0
    assert growth.pack(session._handle, 60, 1).left == 0
    _assert_sound(session, names)


# A close looks into a few folders to tell how many objects are loose: these are far more.
MANY, WRITES = 100, 150


def test_a_close_after_many_writes_packs(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "MANY_LOOSE", MANY)
    names = fill(session, WRITES)
    assert packing.count_loose(session.path / ".git") > 8 * MANY
    session.close()
    assert packing.count_loose(session.path / ".git") == 0
    _assert_sound(session, names)


def test_closes_without_time_keep_up_with_what_is_written(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = fill(session, WRITES)
    session.close()
    # Whatever the machine, each close has time for one batch and no more.
    monkeypatch.setattr(growth, "MANY_LOOSE", MANY)
    monkeypatch.setattr(growth, "_AT_CLOSE_SECONDS", 0)
    monkeypatch.setattr(packing, "_MOST_OBJECTS", MANY)
    store, git_folder = Store.open(session.path.parents[1]), session.path / ".git"
    before = packing.count_loose(git_folder)
    for number in range(25):
        with store.session("busy") as again:
            names.append(again.add("finding", f"one more, number {number}", agent="a").id)
        after = packing.count_loose(git_folder)
        assert before - after <= MANY, "a close packs one batch"
        before = after
    assert before < 4 * MANY, "and the batches outrun the writes"
    _assert_sound(session, names)


def test_a_close_without_a_write_does_not(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(session, WRITES)
    session.close()
    monkeypatch.setattr(growth, "MANY_LOOSE", MANY)
    with Store.open(session.path.parents[1]).session("busy") as again:
        again.memories()
    assert packs(session) == []


def test_nothing_is_packed_beside_a_gc_or_a_deletion(session: Session) -> None:
    fill(session, 4)
    with gc_at_work(session.path), pytest.raises(LockedError):
        growth.pack(session._handle, 60, 0.1)
    assert packs(session) == []


def test_without_git_it_packs_too(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    names = fill(session)
    done = python(
        "import sys; from pathlib import Path; from smp_git import Store; from smp_git.keep import growth\n"
        "import os; os.environ['PATH'] = '/nonexistent'\n"
        "with Store.open(sys.argv[1]).session('busy') as s: print(growth.pack(s._handle, 60, 1).objects)",
        session.path.parents[1],
    )
    assert int(done.stdout) > 100
    _assert_sound(session, names)


def test_many_small_packs_become_few(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "_MOST_PACKS", 3)
    names = []
    with Store.open(session.path.parents[1]).session("busy") as other:
        for _ in range(6):
            names += fill(session, 5)
            growth.pack(session._handle, 60, 1)
        other.memories()
        assert growth.merge_packs(session._handle, 1) == 6
        assert len(packs(session)) == 1
        assert {memory.id for memory in other.memories()} == set(names)
        names.append(other.add("finding", "a write after it", agent="b").id)
    assert growth.merge_packs(session._handle, 1) == 0
    _assert_sound(session, names)


PACKS = """
import sys, time
from smp_git import Store
from smp_git.git import packing
from smp_git.keep import growth
from smp_git.model.errors import LockedError
packing._MOST_OBJECTS, packing._MOST_PACKS = 50, 2
rounds = 0
with Store.open(sys.argv[1]).session("busy") as session:
    while sys.stdin.readable() and time.monotonic() < float(sys.argv[2]):
        try:
            growth.pack(session._handle, 5, 5)
            growth.merge_packs(session._handle, 5)
        except LockedError:
            continue
        rounds += 1
print(rounds)
"""


def _looping(store: Path, seconds: float) -> subprocess.Popen[str]:
    import time

    return subprocess.Popen(
        [sys.executable, "-c", PACKS, str(store), str(time.monotonic() + seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_writers_readers_and_gits_own_commands_go_on(session: Session) -> None:
    store = session.path.parents[1]
    packer = _looping(store, 10)

    def read(path: Path, done: threading.Event) -> None:
        with Store.open(path.parents[1]).session("busy") as reader:
            while not done.is_set():
                assert all(memory.content for memory in reader.memories())
                git(path, "log", "--stat", "-3")

    with beside(read, session.path), writing(store, 60, [LIBRARY, LIBRARY, COMMAND]) as writers:
        for writer in writers[:2]:
            writer.waited()
        names = [name for writer in writers for name in writer.acknowledged()]
    out, errors = packer.communicate(timeout=120)
    assert packer.returncode == 0, errors
    assert int(out) > 1
    _assert_sound(session, names)


@pytest.mark.slow
def test_nothing_that_was_deleted_comes_back(session: Session) -> None:
    store = session.path.parents[1]
    names = fill(session, 30)
    packer = _looping(store, 12)
    secrets = []
    for number in range(12):
        text = f"xyzzy-{number}-plugh"
        secrets.append(text.encode())
        name = session.add("finding", f"the {text} stood here", agent="a").id
        assert session.delete(name, purge=True).proof.clean
    _, errors = packer.communicate(timeout=120)
    assert packer.returncode == 0, errors
    assert scan(session.path, secrets) == []
    _assert_sound(session, names)


DIES = """
import os, sys
from smp_git import Store
from smp_git.git import disk, packing, storage
from smp_git.keep import growth
wanted, seen = int(sys.argv[2]), []
packing._MOST_OBJECTS, packing._MOST_PACKS = 40, 1

def around(home, name):
    real = getattr(home, name)
    def told(*args, **kwargs):
        for when in ("before", "after"):
            seen.append(name)
            if len(seen) == wanted:
                os._exit(73)
            done = real(*args, **kwargs) if when == "before" else done
        return done
    setattr(home, name, told)

for home, name in ((storage, "store_pack"), (storage.Written, "flush"), (packing, "_read"),
                   (packing.command, "pack_objects"), (disk, "flush_folder")):
    around(home, name)
from pathlib import Path
around(Path, "unlink")
with Store.open(sys.argv[1]).session("busy") as session:
    growth.pack(session._handle, 60, 1)
    growth.merge_packs(session._handle, 1)
print(len(seen))
"""


@pytest.mark.slow
def test_killed_at_any_step_nothing_is_missing(tmp_path: Path) -> None:
    def made(name: str) -> tuple[Store, list[str]]:
        store = Store.init(tmp_path / name)
        with store.create_session("busy") as session:
            return store, fill(session, 12)

    store, _ = made("whole")
    steps = int(python(DIES, store.path, 0).stdout)
    # Every object removed is a step of its own: a sample of them is enough.
    for step in [*range(1, 12), *range(12, steps - 12, 9), *range(steps - 12, steps + 1)]:
        store, names = made(f"at-{step}")
        assert python(DIES, store.path, step, check=False).returncode == 73
        with store.session("busy") as session:
            growth.pack(session._handle, 60, 1)
            growth.merge_packs(session._handle, 1)
            assert packing.count_loose(session.path / ".git") == 0
        assert_sound(store.path, names)
