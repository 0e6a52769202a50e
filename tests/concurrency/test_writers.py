"""Many writers at once: nothing acknowledged is lost, nobody waits too long."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.model.errors import LockedError, StorageError
from tests.concurrency.writers import COMMAND, LIBRARY, assert_clean, assert_sound, writing
from tests.support import git

# Later Pythons warn of any fork beside a thread, which is what is tried here.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store with the session `busy`, on the real clock."""
    store = Store.init(tmp_path / "store")
    store.create_session("busy").close()
    return store.path


def _session(root: Path) -> Session:
    return Store.open(root).session("busy")


class Holder:
    """A process that holds the session's lock until it is told to let go."""

    def __init__(self, root: Path) -> None:
        context = multiprocessing.get_context("fork")
        self._held, self._go = context.Event(), context.Event()
        self._process = context.Process(target=self._hold, args=(root,))
        self._process.start()
        assert self._held.wait(20)
        assert self._process.pid is not None
        self.pid = self._process.pid

    def _hold(self, root: Path) -> None:
        with _session(root) as session, session._handle.writer.holding("waiting"):
            self._held.set()
            self._go.wait()

    def let_go(self) -> None:
        """Let it release the lock and end."""
        self._go.set()
        self._process.join()

    def kill(self) -> None:
        """Kill it where it is."""
        self._process.kill()
        self._process.join()


@pytest.fixture
def holder(root: Path) -> Iterator[Holder]:
    holder = Holder(root)
    yield holder
    holder.kill()


def _tell(root: Path, told: Path) -> None:
    with _session(root) as session, told.open("w", buffering=1) as out:
        for number in range(1000):
            print(session.add("finding", f"{number}", agent="a").id, file=out)


def _write(root: Path, name: str, count: int) -> list[str]:
    with _session(root) as session:
        return [session.add("finding", f"{name} {n}", agent=name).id for n in range(count)]


def test_few_writers_lose_nothing(root: Path) -> None:
    with ProcessPoolExecutor(3, multiprocessing.get_context("fork")) as pool:
        done = [pool.submit(_write, root, f"w{number}", 6) for number in range(3)]
        acknowledged = [name for each in done for name in each.result()]

    assert_sound(root, acknowledged)


@pytest.mark.slow
def test_twelve_writers_lose_nothing(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with writing(root, 100, [LIBRARY] * 8 + [COMMAND] * 4) as writers:
        longest = max(writer.waited() for writer in writers)
    with capsys.disabled():
        print(f"\nlongest wait of 12 writers: {longest:.2f} s")

    acknowledged = [name for writer in writers for name in writer.acknowledged()]
    assert len(acknowledged) == 1200
    assert_sound(root, acknowledged)
    with _session(root) as session:
        assert len(session.memories()) == 1200


def _write_many(root: Path, first: int) -> dict[str, set[str]]:
    store = Store.open(root)

    def one(number: int) -> tuple[str, set[str]]:
        with store.create_session(f"s{number:03}") as session:
            return session.id, {session.add("finding", f"No {n}").id for n in range(4)}

    with ThreadPoolExecutor(25) as pool:
        return dict(pool.map(one, range(first, first + 25)))


@pytest.mark.slow
def test_a_hundred_sessions_written_at_once_lose_nothing(root: Path) -> None:
    with ProcessPoolExecutor(4, multiprocessing.get_context("fork")) as pool:
        done = [pool.submit(_write_many, root, first) for first in range(0, 100, 25)]
        acknowledged = {name: ids for each in done for name, ids in each.result().items()}

    assert len(acknowledged) == 100
    store = Store.open(root)
    assert store.check() == ()
    for name, ids in acknowledged.items():
        with store.session(name) as session:
            assert {memory.id for memory in session.memories()} == ids
            assert git(session.path, "status", "--porcelain") == ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_killed_writers_lose_nothing_and_block_nobody(root: Path, seed: int) -> None:
    chance = random.Random(seed)
    with writing(root, 40, [LIBRARY] * 12) as writers:
        while not all(writer.acknowledged() for writer in writers[:3]):
            time.sleep(0.01)
        for writer in writers[:3]:
            time.sleep(chance.random() / 2)
            writer.kill()
        for writer in writers[3:]:
            writer.waited()

    acknowledged = [name for writer in writers for name in writer.acknowledged()]
    with _session(root) as session:
        session._handle.writer.timeout_seconds = 0
        acknowledged.append(session.add("finding", "and then", agent="w").id)
    assert_sound(root, acknowledged)


@pytest.mark.slow
def test_writer_killed_alone_leaves_a_session_that_is_ready(root: Path) -> None:
    chance = random.Random(7)
    acknowledged: list[str] = []
    for number in range(100):
        told = root.parent / f"w{number}.told"
        told.touch()
        writer = multiprocessing.get_context("fork").Process(target=_tell, args=(root, told))
        writer.start()
        while not told.read_text():
            time.sleep(0.002)
        time.sleep(chance.random() / 20)
        writer.kill()
        writer.join()
        acknowledged += told.read_text().split("\n")[:-1]
        with _session(root) as session:
            session._handle.writer.timeout_seconds = 0
            acknowledged.append(session.add("finding", f"after {number}", agent="w").id)
        if number % 10 == 9:
            assert_sound(root, acknowledged)


@pytest.mark.parametrize("count", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_threads_share_one_session(root: Path, count: int) -> None:
    with _session(root) as session, ThreadPoolExecutor(8) as pool:

        def write(name: str) -> list[str]:
            return [session.add("learning", f"{name} {n}", agent=name).id for n in range(count)]

        acknowledged = [one for ids in pool.map(write, [f"t{n}" for n in range(8)]) for one in ids]

    assert len(set(acknowledged)) == 8 * count
    assert_sound(root, acknowledged)


def test_stopped_holder_is_named_and_nothing_breaks(root: Path, holder: Holder) -> None:
    os.kill(holder.pid, signal.SIGSTOP)
    with _session(root) as session:
        session._handle.writer.timeout_seconds = 0.3
        with pytest.raises(LockedError, match=f"process {holder.pid} "):
            session.add("finding", "too late", agent="w")
        os.kill(holder.pid, signal.SIGCONT)
        holder.let_go()
        session._handle.writer.timeout_seconds = 5.0
        name = session.add("finding", "in time", agent="w").id

    assert_sound(root, [name])


@pytest.mark.slow
def test_stopped_writer_goes_on_where_it_was(root: Path) -> None:
    chance = random.Random(3)
    with writing(root, 300, [LIBRARY]) as (writer,):
        for _ in range(20):
            time.sleep(chance.random() / 10)
            os.kill(writer.process.pid, signal.SIGSTOP)
            with _session(root) as session:
                session._handle.writer.timeout_seconds = 0.2
                with suppress(LockedError):
                    session.add("finding", "between", agent="v")
            os.kill(writer.process.pid, signal.SIGCONT)
        writer.waited()

    assert_sound(root, writer.acknowledged())


def test_killed_holder_blocks_nobody(root: Path, holder: Holder) -> None:
    holder.kill()
    with _session(root) as session:
        session._handle.writer.timeout_seconds = 0
        name = session.add("finding", "at once", agent="w").id

    assert_sound(root, [name])


def test_lock_file_that_is_removed_lets_no_second_one_in(root: Path, holder: Holder) -> None:
    (root / "active/busy/.git/smp/lock").unlink()
    with _session(root) as session:
        session._handle.writer.timeout_seconds = 0.3
        with pytest.raises(LockedError):
            session.add("finding", "at the same time", agent="w")
        holder.let_go()

        session.add("finding", "one after the other", agent="w")


def test_lock_file_that_is_a_link_is_refused(root: Path, tmp_path: Path) -> None:
    lock = root / "active/busy/.git/smp/lock"
    lock.unlink(missing_ok=True)
    lock.symlink_to(tmp_path / "elsewhere")
    with _session(root) as session, pytest.raises(StorageError, match="is a link"):
        session.add("finding", "through a link", agent="w")

    assert not (tmp_path / "elsewhere").exists()
    lock.unlink()


@pytest.mark.slow
def test_lock_removed_and_folder_cleaned_while_many_write(root: Path) -> None:
    path = root / "active/busy"
    with writing(root, 60, [LIBRARY] * 4) as writers:
        while any(writer.process.poll() is None for writer in writers):
            (path / ".git/smp/lock").unlink(missing_ok=True)
            # It reports a failure when a file that it was about to remove is gone already.
            subprocess.run(["git", "clean", "-fdxq"], cwd=path, check=False, capture_output=True)
            time.sleep(0.05)
        for writer in writers:
            writer.waited()
    # What was cleaned away between two steps of a write looks removed by hand.
    git(path, "checkout", "-q", "--", ".")

    assert_sound(root, [name for writer in writers for name in writer.acknowledged()])


def test_fork_while_holding_neither_keeps_nor_takes_the_lock(root: Path) -> None:
    with _session(root) as session:
        with session._handle.writer.holding("forking"):
            child = os.fork()
            if child == 0:
                time.sleep(30)
                os._exit(0)
        session._handle.writer.timeout_seconds = 1.0
        session.add("finding", "while the child lives", agent="w")
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_child_forked_beside_a_writing_thread_can_write(root: Path) -> None:
    with _session(root) as session:
        inside, done = threading.Event(), threading.Event()

        def hold() -> None:
            with session._handle.writer.holding("a while"):
                inside.set()
                done.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        inside.wait()
        child = multiprocessing.get_context("fork").Process(
            target=lambda: session.add("finding", "from the child", agent="w")
        )
        child.start()
        done.set()
        child.join(20)
        thread.join()

        assert child.exitcode == 0
        assert [memory.title for memory in session.memories()] == ["from the child"]


def test_child_forked_beside_a_waiting_thread_keeps_no_lock(root: Path, holder: Holder) -> None:
    with _session(root) as session:
        thread = threading.Thread(target=lambda: session.add("finding", "waited", agent="w"))
        thread.start()
        time.sleep(0.2)
        child = os.fork()
        if child == 0:
            time.sleep(30)
            os._exit(0)
        holder.let_go()
        thread.join()
        session._handle.writer.timeout_seconds = 1.0
        session.add("finding", "while the child lives", agent="w")
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_fresh_clone_writes_as_a_replica_of_its_own(root: Path, tmp_path: Path) -> None:
    with _session(root) as session:
        session.add("finding", "here", agent="w")
    other = Store.init(tmp_path / "other").path
    git(tmp_path, "clone", "-q", str(root / "active/busy"), str(other / "active/busy"))
    with _session(other) as clone:
        name = clone.add("finding", "there", agent="w").id
        assert clone.check() == ()

    assert name.startswith(("FIND-0001-", "FIND-0002-"))
    assert_clean(other / "active/busy")
