"""Progress of a command: a line on stderr, on a terminal alone, for who waits longer than a second."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

# Nobody wonders before.
_PATIENCE_SECONDS: Final = 1.0
_BEAT_SECONDS: Final = 0.25
_ERASE: Final = "\r\x1b[K"


class Progress:
    """The line of the command that runs; other threads than the one that draws may tell of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._over.set()
        self._started = 0.0
        self._text = ""
        self._is_drawn = False
        self._waits = 0

    @contextmanager
    def of(self, what: str) -> Iterator[None]:
        """Show that something is done, as long as it takes."""
        if not _is_watched():
            yield
            return
        self._text, self._started = what, time.monotonic()
        self._over = threading.Event()
        thread = threading.Thread(target=self._draw, args=(self._over,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.stop()
            thread.join()

    def tell(self, text: str) -> None:
        """Say how far it is."""
        if text:
            self._text = text

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Leave the terminal to something else for a while: an output, a person who types."""
        with self._lock:
            self._waits += 1
            self._erase()
        try:
            yield
        finally:
            with self._lock:
                self._waits -= 1

    def stop(self) -> None:
        """Show nothing more."""
        self._over.set()
        with self._lock:
            self._erase()

    def _erase(self) -> None:
        if self._is_drawn:
            self._is_drawn = False
            _write(_ERASE)

    def _draw(self, over: threading.Event) -> None:
        pause = _PATIENCE_SECONDS
        while not over.wait(pause):
            pause = _BEAT_SECONDS
            with self._lock:
                if self._waits or over.is_set():
                    continue
                seconds = time.monotonic() - self._started
                width = shutil.get_terminal_size().columns - 1
                said = f"{self._text} … {seconds:.0f} s"
                _write(f"\r{said if len(said) <= width else said[: width - 1] + '…'}\x1b[K")
                self._is_drawn = True


PROGRESS: Final = Progress()


def listener() -> Callable[[str], None] | None:
    """Return what takes the lines in which another program says how far it is, if somebody looks."""
    return PROGRESS.tell if _is_watched() else None


def counting(what: str) -> Callable[[int], None]:
    """Return what tells how many of something are done."""
    return lambda count: PROGRESS.tell(f"{what} {count:,}")


def _is_watched() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _write(text: str) -> None:
    # If nobody is there any more, the command goes on.
    with suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()
