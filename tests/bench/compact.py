"""Size: what a full session takes on disk, and how long it takes to check, to archive and to compact it (L9, L10)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from smp_git import Session, Store
from smp_git.errors import QuotaExceededError
from smp_git.git import packing
from tests.bench.samples import settle
from tests.bench.table import bound, rows

_QUOTA = 10_485_760
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class _Clock:
    """A clock that is three minutes later with every turn."""

    turns = 0

    def __call__(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=3 * self.turns)


def run(folder: Path, *, short: bool) -> Iterator[str]:
    """Yield what fits a quota, what it takes on disk, and how fast it is made smaller."""
    quota, clock = (_QUOTA // 50 if short else _QUOTA), _Clock()
    store = Store.init(folder / "store", clock=clock)
    store.configure({"durability": "relaxed", "quota_bytes": quota, "auto_compact": False})
    with store.create_session("full") as session:
        _fill(session, clock, 6 if short else 200)
        yield f"\nA session filled with turns of 1 KB, quota {quota:,} bytes\n"
        own = sum(memory.size_bytes for memory in session.memories())
        packing.pack_loose(session.path / ".git", 600)
        disk = sum(path.lstat().st_size for path in session.path.rglob("*") if path.is_file())
        yield rows(
            ("", "turns", "their bytes", "on disk", "share"),
            [["full", f"{clock.turns:,}", f"{own:,}", f"{disk:,}", f"{disk / own:.2f}"]],
        )
        yield ""
        yield bound("L9", "bytes on disk, of the memories' bytes", disk / own, 3)
        if not short:
            yield bound("L9", "memories of 1 KB that fit", clock.turns, 6_500, least=True)
        check = _timed(session.check)
    archive = _timed(lambda: store.archive_session("full"))
    restore = _timed(lambda: store.unarchive_session("full"))
    clock.turns += 10_000
    with store.session("full") as session:
        done = session.compact("20%", dry_run=True)
        compact = _timed(lambda: session.compact("20%"))
    yield ""
    yield rows(
        ("", "seconds", "processor s", "bytes freed", "commits"),
        [
            ["check", *_cells(check), "", ""],
            ["archive", *_cells(archive), "", ""],
            ["restore", *_cells(restore), "", ""],
            ["compact", *_cells(compact), f"{done.freed_bytes:,}", f"{len(done.steps)}"],
        ],
    )
    yield ""
    yield bound("L10", "seconds to archive", archive[0], 10)
    yield bound("L10", "seconds to compact", compact[0], 5)
    yield bound("L10", "seconds to check", check[0], 5)


def _fill(session: Session, clock: _Clock, size: int) -> None:
    """Add turns, some at a time, until the quota refuses them."""
    with suppress(QuotaExceededError):
        while True:
            with session.transaction() as batch:
                for number in range(size):
                    batch.add("turn", _text(clock.turns + number), agent="user")
            clock.turns += size


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Do the work; return seconds and processor seconds, those of programs that it ran included."""
    settle()
    begun, busy = time.perf_counter(), os.times()
    work()
    spent = sum(os.times()[:4]) - sum(busy[:4])
    return time.perf_counter() - begun, spent


def _cells(times: tuple[float, float]) -> tuple[str, str]:
    return f"{times[0]:.2f}", f"{times[1]:.2f}"


def _text(number: int) -> str:
    """Return a kilobyte that no other text is, in sentences."""
    words = [
        "".join(_LETTERS[(number * 7919 + place * 104_729 + step * step) % 26] for step in range(6))
        for place in range(125)
    ]
    return f"Turn {number}. " + ". ".join(" ".join(words[at : at + 9]) for at in range(0, 125, 9))
