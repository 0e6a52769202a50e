"""Whether a loop goes on while a write waits for the lock that another one holds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

from smp_git import Session


def goes_on(session: Session, write: Callable[[], Awaitable[object]]) -> bool:
    """Hold the lock until the loop has turned fifty times beside a write."""
    held, go = threading.Event(), threading.Event()

    def hold() -> None:
        with (
            Session(session.path, session._handle.clock) as other,
            other._handle.writer.holding("x"),
        ):
            held.set()
            go.wait(20)

    async def work() -> bool:
        turns, waiting = 0, asyncio.ensure_future(write())
        while turns < 50 and not waiting.done():
            await asyncio.sleep(0.002)
            turns += 1
        was_waiting = not waiting.done()
        go.set()
        await waiting
        return was_waiting

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert held.wait(20)
        return asyncio.run(work())
    finally:
        go.set()
        holder.join()
