"""The lock by itself: given in turn, with one limit for the whole wait."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from smp_git import Session, Store
from smp_git.git.locks import ThreadLock, locked
from smp_git.model.errors import LockedError, SessionNotFoundError, StorageError

_FORK = multiprocessing.get_context("fork")
_PROCESSES, _TURNS = 4, 40

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a session's lock would be."""
    (tmp_path / "shop/.git/smp").mkdir(parents=True)
    return tmp_path / "shop/.git/smp/lock"


def _take_turns(path: Path, turns: Path, start: Any) -> None:
    start.wait()
    with turns.open("ab", buffering=0) as out:
        for _ in range(_TURNS):
            with locked(path, time.monotonic() + 60, "trying"):
                out.write(b"%d " % os.getpid())
                time.sleep(0.005)


def _together(work: Callable[..., None], *arguments: object, count: int = _PROCESSES) -> None:
    start = _FORK.Barrier(count)
    processes = [_FORK.Process(target=work, args=(*arguments, start)) for _ in range(count)]
    for each in processes:
        each.start()
    for each in processes:
        each.join()
        assert each.exitcode == 0


def _again_share(names: list[Any]) -> float:
    """Return how often the same one had two turns running, while all were at it."""
    ends = [len(names) - names[::-1].index(name) for name in set(names)]
    busy = names[: min(ends)]
    return float(sum(a == b for a, b in pairwise(busy)) / len(busy))


def test_process_that_comes_back_at_once_overtakes_nobody(path: Path, tmp_path: Path) -> None:
    _together(_take_turns, path, tmp_path / "turns")

    names = (tmp_path / "turns").read_text().split()
    assert len(names) == _PROCESSES * _TURNS
    assert _again_share(names) < 0.5


def test_thread_that_comes_back_at_once_overtakes_nobody() -> None:
    lock, names, start = ThreadLock(), list[int](), threading.Barrier(_PROCESSES)

    def work(name: int) -> None:
        start.wait()
        for _ in range(_TURNS):
            assert lock.acquire(time.monotonic() + 60)
            names.append(name)
            time.sleep(0.002)
            lock.release()

    threads = [threading.Thread(target=work, args=(name,)) for name in range(_PROCESSES)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert len(names) == _PROCESSES * _TURNS
    assert _again_share(names) < 0.5


def _hold_for_a_while(root: Path, held: Any) -> None:
    with Store.open(root).session("busy") as session:
        session._handle.writer.timeout_seconds = 60
        with session._handle.writer.holding("holding"):
            held.set()
            time.sleep(0.4)


def test_limit_is_for_the_whole_wait_however_often_the_lock_changes_hands(session: Session) -> None:
    held = _FORK.Event()
    holders = [
        _FORK.Process(target=_hold_for_a_while, args=(session.path.parents[1], held))
        for _ in range(6)
    ]
    for each in holders:
        each.start()
    assert held.wait(20)
    # The others stand in the queue before this one comes.
    time.sleep(0.2)
    session._handle.writer.timeout_seconds = 0.8
    with pytest.raises(LockedError, match=r"stayed locked for 0\.8 s by process \d+ .*holding"):
        session.add("finding", "too late", agent="w")
    for each in holders:
        each.join()

    session.add("finding", "in time", agent="w")


@contextmanager
def _held_elsewhere(path: Path) -> Iterator[int]:
    """Let another process hold the lock; yield its id."""
    go, held = _FORK.Event(), _FORK.Event()

    def hold() -> None:
        with locked(path, time.monotonic() + 60, "holding"):
            held.set()
            go.wait()

    holder = _FORK.Process(target=hold)
    holder.start()
    assert held.wait(20)
    assert holder.pid is not None
    yield holder.pid
    go.set()
    holder.join()


def test_whoever_gave_up_waiting_leaves_the_lock_to_the_next(path: Path) -> None:
    with _held_elsewhere(path) as holder:
        for _ in range(3):
            with (
                pytest.raises(LockedError, match=f"process {holder} "),
                locked(path, time.monotonic() + 0.05, "late"),
            ):
                pass

    with locked(path, time.monotonic() + 20, "in time"):
        pass


def test_whoever_was_interrupted_while_waiting_leaves_the_lock_to_the_next(path: Path) -> None:
    with _held_elsewhere(path):
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt), locked(path, time.monotonic() + 60, "waiting"):
            pass
        signal.signal(signal.SIGALRM, before)

    with locked(path, time.monotonic() + 20, "after it"):
        pass


def _count(path: Path, number: Path, start: Any) -> None:
    start.wait()
    for _ in range(_TURNS):
        with locked(path, time.monotonic() + 60, "counting"):
            before = int(number.read_text())
            time.sleep(0.0005)
            number.write_text(str(before + 1))


def test_lock_file_that_is_removed_again_and_again_lets_one_in_at_a_time(
    path: Path, tmp_path: Path
) -> None:
    number = tmp_path / "number"
    number.write_text("0")
    removing = threading.Event()

    def remove() -> None:
        while not removing.wait(0.003):
            path.unlink(missing_ok=True)

    thread = threading.Thread(target=remove)
    thread.start()
    _together(_count, path, number)
    removing.set()
    thread.join()

    assert number.read_text() == str(_PROCESSES * _TURNS)


def test_where_folders_cannot_be_locked_the_file_is_the_lock(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    whole = fcntl.flock

    def refusing(fd: int, how: int) -> None:
        if Path(f"/proc/self/fd/{fd}").resolve().is_dir():
            raise OSError(9, "Bad file descriptor")
        whole(fd, how)

    monkeypatch.setattr(fcntl, "flock", refusing)
    number = tmp_path / "number"
    number.write_text("0")
    _together(_count, path, number)

    assert number.read_text() == str(_PROCESSES * _TURNS)


def test_file_system_without_locks_says_what_to_do(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    def refusing(fd: int, how: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refusing)
    with (
        pytest.raises(StorageError, match="has no file locks") as told,
        locked(path, time.monotonic() + 1, "trying"),
    ):
        pass

    assert told.value.hint == "keep the store on a local disk"


def test_folder_that_is_gone_is_a_session_that_is_gone(path: Path) -> None:
    path.parent.rmdir()
    path.parent.parent.rmdir()

    with (
        pytest.raises(SessionNotFoundError, match="session shop is no longer at"),
        locked(path, time.monotonic() + 1, "trying"),
    ):
        pass
