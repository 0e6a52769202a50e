"""Waiting for a lock that ten processes want all the time."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock

from smp_git.git.locks import locked
from tests.bench.table import rows

_PROCESSES = 10
_LIMIT_SECONDS = 600.0
_HEAD = ("", "turns a second", "wait p50 ms", "p99", "longest")

Take = Callable[[], AbstractContextManager[object]]


def run(folder: Path, *, short: bool) -> Iterator[str]:
    """Yield the table of waits."""
    turns, rounds = (5, 1) if short else (60, 5)
    found: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in _WAYS}
    for number in range(rounds):
        for name, way in _WAYS.items():
            place = folder / f"{number}-{name.replace(' ', '-')}"
            (place / "session/.git/smp").mkdir(parents=True)
            seconds, waits = _raced(way, place / "session/.git/smp/lock", turns)
            found[name][0].append(_PROCESSES * turns / seconds)
            found[name][1].extend(waits)
    yield f"\n{_PROCESSES} processes that take the lock in tight loops, and write and sync 4 KB under it\n"
    yield rows(_HEAD, [_row(name, *each) for name, each in found.items()])


def _row(name: str, speeds: list[float], waits: list[float]) -> list[str]:
    waits.sort()
    some = (waits[len(waits) // 2], waits[len(waits) * 99 // 100], waits[-1])
    return [name, f"{sum(speeds) / len(speeds):.0f}", *(f"{wait * 1e3:.1f}" for wait in some)]


def _raced(way: Callable[[Path], Take], lock: Path, turns: int) -> tuple[float, list[float]]:
    context = multiprocessing.get_context("fork")
    start, answers = context.Barrier(_PROCESSES + 1), context.Queue()
    processes = [
        context.Process(target=_work, args=(way, lock, turns, start, answers))
        for _ in range(_PROCESSES)
    ]
    for each in processes:
        each.start()
    start.wait()
    began = time.monotonic()
    waits = [wait for _ in processes for wait in answers.get()]
    seconds = time.monotonic() - began
    for each in processes:
        each.join()
    return seconds, waits


def _work(way: Callable[[Path], Take], lock: Path, turns: int, start: Any, answers: Any) -> None:
    take, waits = way(lock), []
    data = os.open(lock.parent.parent / "data", os.O_RDWR | os.O_CREAT)
    start.wait()
    for _ in range(turns):
        asked = time.monotonic()
        with take():
            waits.append(time.monotonic() - asked)
            os.pwrite(data, os.urandom(4096), 0)
            os.fsync(data)
    answers.put(waits)


def _ours(lock: Path) -> Take:
    return lambda: locked(lock, time.monotonic() + _LIMIT_SECONDS, "measuring")


def _polling(lock: Path) -> Take:
    mine = FileLock(lock)
    return lambda: mine.acquire()


def _kernel(lock: Path) -> Take:
    fd = os.open(lock, os.O_RDWR | os.O_CREAT)

    @contextmanager
    def take() -> Iterator[None]:
        fcntl.flock(fd, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)

    return take


_WAYS = {"smp": _ours, "flock, blocking": _kernel, "filelock, blocking": _polling}
