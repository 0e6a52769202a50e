"""A user's regular expression, bounded in time: the one owner of `regex`, which can be interrupted.

Python's `re` backtracks without end on a careless pattern, and nothing stops it. `regex`
takes a limit with each call; here the calls of one piece of work share one limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from time import perf_counter
from typing import Any, Final

_FLAGS: Final = ("IGNORECASE", "MULTILINE", "DOTALL", "VERBOSE", "ASCII", "UNICODE")
_LEAST_SECONDS: Final = 0.001


class Bounded:
    """A pattern that may take so many seconds in all, and more for each million characters.

    `search` and its like raise TimeoutError when they are used up. A ValueError says
    what is wrong with a pattern.
    """

    def __init__(
        self, source: str, seconds: float, flags: int = 0, per_million: float = 0.0
    ) -> None:
        self.source = source
        self._pattern = _compiled(source, flags)
        self._left = seconds
        self._each = per_million / 1_000_000

    def again(self, seconds: float) -> Bounded:
        """Return the same pattern with a limit of its own."""
        fresh = object.__new__(Bounded)
        fresh.source, fresh._pattern, fresh._left, fresh._each = (
            self.source,
            self._pattern,
            seconds,
            self._each,
        )
        return fresh

    def search(self, text: str) -> bool:
        """Whether the pattern fits anywhere in a text."""
        return (
            self._timed(text, lambda limit: self._pattern.search(text, timeout=limit)) is not None
        )

    def count(self, text: str) -> int:
        """Return how often the pattern fits in a text."""
        return len(self._timed(text, lambda limit: self._pattern.findall(text, timeout=limit)))

    def replace(self, text: str, replacement: str) -> str:
        """Return a text with everything that fits replaced."""
        return str(
            self._timed(
                text, lambda limit: self._pattern.sub(lambda _: replacement, text, timeout=limit)
            )
        )

    def _timed(self, text: str, call: Callable[[float], Any]) -> Any:  # noqa: ANN401 - what `regex` returns
        self._left += len(text) * self._each
        started = perf_counter()
        try:
            return call(max(self._left, _LEAST_SECONDS))
        finally:
            self._left -= perf_counter() - started


def _compiled(source: str, flags: int) -> Any:  # noqa: ANN401 - a compiled pattern of another library
    import regex  # noqa: PLC0415 - few programs use a pattern of a user

    wanted = 0
    for name in _FLAGS:
        if flags & getattr(re, name):
            wanted |= getattr(regex, name)
    try:
        return regex.compile(source, wanted)
    except (regex.error, RecursionError, OverflowError, MemoryError, KeyError) as error:
        raise ValueError(str(error)) from None
