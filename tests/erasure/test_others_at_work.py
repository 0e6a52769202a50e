"""Writers and readers in other processes while history is rewritten: nothing lost, nothing torn."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.model.errors import LockedError
from smp_git.remove.history import erase as erasing
from smp_git.remove.history.erase import erase
from smp_git.remove.history.journal import RewriteOrder
from tests.conftest import Clock
from tests.support import ROOT, gc_at_work, git

WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from smp_git import Session
with Session(Path(sys.argv[1]), lambda: datetime.now(UTC)) as session:
    for number in range(40):
        print(session.add("turn", f"{sys.argv[2]} says {number}", agent=sys.argv[2]).id, flush=True)
"""
READER = """
import sys, time
from datetime import UTC, datetime
from pathlib import Path
from smp_git import Session
with Session(Path(sys.argv[1]), lambda: datetime.now(UTC)) as session:
    end = time.monotonic() + 4
    while time.monotonic() < end:
        found = session.memories()
        assert len({memory.commit for memory in found}) <= 1
        assert all(memory.content for memory in found)
"""


@pytest.mark.slow
def test_nothing_is_lost_and_nobody_reads_a_torn_state(store: Store, clock: Clock) -> None:
    with store.create_session("busy") as session:
        for number in range(8):
            session.add("decision", f"decision number {number} is about to go", agent="a")
        place = session.path
        writers = [_started(WRITER, place, f"w{number}") for number in range(2)]
        reader = _started(READER, place)
        for number in range(1, 9):
            receipt = erase(
                session._handle.writer, [f"DEC-{number:04d}"], RewriteOrder(by="a", now=clock())
            )
            assert receipt.proof.clean, receipt.proof.hits
        said = [each.communicate(timeout=120) for each in writers]
        written = [line for out, _ in said for line in out.split()]

        assert [error for _, error in said] == ["", ""]
        assert reader.communicate(timeout=60)[1] == ""
        assert [each.returncode for each in (*writers, reader)] == [0, 0, 0]
        assert len(set(written)) == 80
        assert {memory.id for memory in session.memories()} == set(written)
    assert git(place, "fsck", "--full", "--strict", "--no-dangling") == ""


def _started(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# Git's own garbage collection


@pytest.fixture
def shop(store: Store) -> Iterator[Session]:
    with store.create_session("shop") as session:
        session.add("decision", "about to go", agent="a")
        yield session


@contextmanager
def _maintenance_at_work(place: Path) -> Iterator[str]:
    lock = place / ".git/objects/maintenance.lock"
    lock.touch()
    yield str(lock)
    lock.unlink()


@pytest.mark.parametrize("at_work", [gc_at_work, _maintenance_at_work], ids=["gc", "maintenance"])
def test_deletion_waits_for_a_gc_that_is_at_work(shop: Session, clock: Clock, monkeypatch: pytest.MonkeyPatch, at_work: Callable[[Path], AbstractContextManager[object]]) -> None:  # fmt: skip
    monkeypatch.setattr(erasing, "_PATIENCE_SECONDS", 0.3)
    with at_work(shop.path) as named:
        with pytest.raises(LockedError, match="being packed by Git") as told:
            erase(shop._handle.writer, ["DEC-0001"], RewriteOrder(by="a", now=clock()))
        assert str(named) in str(told.value)
        assert shop.get("DEC-0001").content == "about to go"
        monkeypatch.setattr(erasing, "_PATIENCE_SECONDS", 600)
        deleting = threading.Thread(
            target=erase, args=(shop._handle.writer, ["DEC-0001"], RewriteOrder(now=clock()))
        )
        deleting.start()
        deleting.join(0.3)
        assert deleting.is_alive()
    deleting.join()

    assert shop.memories() == ()
    git(shop.path, "maintenance", "run")


@pytest.mark.parametrize("command", [("gc",), ("maintenance", "run", "--task=gc"), ("maintenance", "run", "--task=loose-objects")], ids=" ".join)  # fmt: skip
def test_no_gc_begins_during_a_deletion(shop: Session, clock: Clock, command: tuple[str, ...]) -> None:  # fmt: skip
    def packs() -> list[Path]:
        return [*shop.path.glob(".git/objects/pack/*.pack")]

    def seal(_: object) -> None:
        subprocess.run(["git", *command], cwd=shop.path, capture_output=True, check=False)
        assert packs() == []

    erase(shop._handle.writer, ["DEC-0001"], RewriteOrder(by="a", now=clock(), seal=seal))

    shop.add("decision", "the next", agent="a")
    packed = packs()
    git(shop.path, *command)
    assert packs() != packed


@pytest.mark.parametrize("left", ["dead", "stale", "torn", "strange", "ours"])
def test_what_a_gc_left_that_died_does_not_hold_a_deletion_up(shop: Session, clock: Clock, monkeypatch: pytest.MonkeyPatch, left: str) -> None:  # fmt: skip
    monkeypatch.setattr(erasing, "_PATIENCE_SECONDS", 0)
    sign = shop.path / ".git/gc.pid"
    with subprocess.Popen(["true"]) as gone:
        pass
    alive = f"{os.getpid()} {socket.gethostname()}"
    sign.write_text({"dead": f"{gone.pid} {socket.gethostname()}", "stale": alive, "torn": "", "strange": "² here", "ours": f"{alive} smp (deleting)"}[left])  # fmt: skip
    if left == "stale":
        os.utime(sign, (0, 0))

    erase(shop._handle.writer, ["DEC-0001"], RewriteOrder(by="a", now=clock()))

    assert not sign.exists()


_PLANNING = """
import os, sys
from datetime import UTC, datetime
from pathlib import Path
from smp_git import Session
from smp_git.remove.history import erase
from smp_git.remove.history.journal import RewriteOrder
erase.make_plan = lambda *arguments, **named: os._exit(73)
session = Session(Path(sys.argv[1]), lambda: datetime.now(UTC))
erase.erase(session._handle.writer, ["DEC-0001"], RewriteOrder(by="a", now=datetime.now(UTC)))
"""


def test_deletion_killed_before_it_changed_anything_leaves_no_lock(shop: Session, clock: Clock) -> None:  # fmt: skip
    with _started(_PLANNING, shop.path) as process:
        process.communicate()
        assert process.returncode == 73
    assert (shop.path / ".git/objects/maintenance.lock").exists()
    with Session(shop.path, clock):
        pass

    assert [*shop.path.glob(".git/**/*.lock"), *shop.path.glob(".git/gc.pid*"), *shop.path.glob(".git/smp/gc-lock")] == []  # fmt: skip


_KILLED = """
import os, sys
from datetime import UTC, datetime
from pathlib import Path
from smp_git import Session
from smp_git.remove.history.erase import erase
from smp_git.remove.history.journal import RewriteOrder
session = Session(Path(sys.argv[1]), lambda: datetime.now(UTC))
erase(session._handle.writer, ["DEC-0001"], RewriteOrder(by="a", now=datetime.now(UTC), seal=lambda versions: os._exit(73)))
"""


def test_killed_deletion_keeps_no_gc_out(shop: Session, clock: Clock) -> None:
    with _started(_KILLED, shop.path) as process:
        process.communicate()
        assert process.returncode == 73
    git(shop.path, "gc", "-q")
    assert not (shop.path / ".git/gc.pid").exists()

    assert erase(shop._handle.writer, ["DEC-0001"], RewriteOrder(by="a", now=clock())).proof.clean
    git(shop.path, "maintenance", "run")
    assert [*shop.path.glob(".git/**/*.lock"), *shop.path.glob(".git/smp/gc-lock")] == []


def test_pack_without_an_index_goes_with_the_deletion(shop: Session, clock: Clock) -> None:
    git(shop.path, "gc", "-q")
    (index,) = shop.path.glob(".git/objects/pack/*.idx")
    orphan = index.with_name("pack-" + "1" * 40 + ".pack")
    orphan.write_bytes(index.with_suffix(".pack").read_bytes())

    assert erase(shop._handle.writer, ["DEC-0001"], RewriteOrder(by="a", now=clock())).proof.clean
    assert not orphan.exists()


@pytest.mark.slow
def test_gc_beside_deletions_brings_nothing_back(store: Store, clock: Clock) -> None:
    with store.create_session("shop") as session:
        with session.transaction(agent="a") as batch:
            for number in range(1_500):
                batch.add("finding", f"finding {number}, which stays here")
        names = [session.add("decision", f"sentinel {n:02d} of the cave", agent="a").id for n in range(12)]  # fmt: skip
        place, done = session.path, threading.Event()
        git(place, "gc", "-q")

        def collect() -> None:
            while not done.is_set():
                subprocess.run(["git", "gc", "-q", "--prune=now"], cwd=place, capture_output=True, check=False)  # fmt: skip

        collecting = threading.Thread(target=collect)
        collecting.start()
        try:
            for name in names:
                assert erase(
                    session._handle.writer, [name], RewriteOrder(by="a", now=clock())
                ).proof.clean
        finally:
            done.set()
            collecting.join()
        assert session.check() == ()
    data = subprocess.run(["git", "cat-file", "--batch-all-objects", "--batch"], cwd=place, capture_output=True, check=True).stdout  # fmt: skip
    assert b"sentinel" not in data
    assert git(place, "fsck", "--full", "--strict", "--no-dangling") == ""


@pytest.mark.slow
def test_proof_is_made_beside_a_gc_that_takes_packs(store: Store) -> None:
    with store.create_session("shop") as session:
        for number in range(200):
            session.add("finding", f"finding {number}, which stays here", agent="a")
        done = threading.Event()

        def collect() -> None:
            while not done.is_set():
                subprocess.run(["git", "gc", "-q", "--prune=now"], cwd=session.path, capture_output=True, check=False)  # fmt: skip

        def write() -> None:
            with store.session("shop") as other:
                while not done.wait(0.005):
                    other.add("turn", "something to pack", agent="b")

        beside = [threading.Thread(target=each) for each in (collect, write)]
        for each in beside:
            each.start()
        try:
            for _ in range(30):
                assert session.verify().clean
        finally:
            done.set()
            for each in beside:
                each.join()


def test_mark_that_a_dead_writer_left_on_a_pack_refuses_no_deletion(shop: Session) -> None:
    git(shop.path, "repack", "-a", "-d", "-q")
    (pack,) = (shop.path / ".git/objects/pack").glob("*.pack")
    own = shop.path / ".git/smp/pack-keep"
    own.touch()
    pack.with_suffix(".keep").hardlink_to(own)

    assert shop.delete("DEC-0001").proof.clean
    assert not own.exists()
    assert not list(pack.parent.glob("*.keep"))
