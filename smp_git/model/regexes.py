"""A user's regular expression, bounded in length, size and time: the owner of `regex`.

Python's `re` backtracks without end on a careless pattern, and nothing stops it. `regex`
takes a limit with each call; here the calls of one piece of work share one limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from time import thread_time
from typing import Any, Final, NamedTuple

LONGEST: Final = 1_000
# `regex` writes out what is repeated by a number: this much takes up to 80 MB, and
# (?:(?:a{1000}){1000}){1000} all the memory there is.
_MOST_REPEATED: Final = 100_000
_FLAGS: Final = ("IGNORECASE", "MULTILINE", "DOTALL", "VERBOSE", "ASCII", "UNICODE")
_LEAST_SECONDS: Final = 0.001
_PART: Final = re.compile(
    r"\\.|(?P<open>\()|(?P<close>\))|\{(?P<least>\d*),?(?P<most>\d*)\}|.", re.DOTALL
)


class Limit(NamedTuple):
    """Seconds of processor time, and how many more for each million characters."""

    seconds: float
    per_million: float = 0.0


# For what one memory says, before it is written.
WRITING: Final = Limit(1.0, 2.0)
# For all memories that one condition of a query looks at.
ASKING: Final = Limit(1.0)
# For everything that one redaction searches.
REDACTING: Final = Limit(5.0, 2.0)


class Bounded:
    """A pattern that may take so much time in all.

    `search` and its like raise TimeoutError when the time is used up. A ValueError says
    what is wrong with a pattern.
    """

    def __init__(self, source: str, limit: Limit, flags: int = 0) -> None:
        self.source = source
        self._pattern = _compiled(source, flags)
        self._limit = limit
        self._left = limit.seconds

    def again(self) -> Bounded:
        """Return the same pattern for another piece of work."""
        fresh = object.__new__(Bounded)
        fresh.source, fresh._pattern = self.source, self._pattern
        fresh._limit, fresh._left = self._limit, self._limit.seconds
        return fresh

    @property
    def groups(self) -> frozenset[str]:
        """The names of its groups."""
        return frozenset(self._pattern.groupindex)

    def search(self, text: str) -> bool:
        """Whether the pattern fits anywhere in a text."""
        return (
            self._timed(text, lambda limit: self._pattern.search(text, timeout=limit)) is not None
        )

    def count(self, text: str) -> int:
        """Return how often the pattern fits in a text."""
        return len(self._timed(text, lambda limit: self._pattern.findall(text, timeout=limit)))

    def matches(self, text: str) -> list[re.Match[str]]:
        """Return each match, which has the verbs of one of `re`."""
        return self._timed(  # type: ignore[no-any-return]
            text, lambda limit: list(self._pattern.finditer(text, timeout=limit))
        )

    def replace(self, text: str, replacement: str) -> str:
        """Return a text with everything that fits replaced."""
        return str(
            self._timed(
                text, lambda limit: self._pattern.sub(lambda _: replacement, text, timeout=limit)
            )
        )

    def _timed(self, text: str, call: Callable[[float], Any]) -> Any:  # noqa: ANN401 - what `regex` returns
        self._left += len(text) * self._limit.per_million / 1_000_000
        # Of this thread, as `regex` counts: who waits for a busy machine uses nothing up.
        started = thread_time()
        try:
            return call(max(self._left, _LEAST_SECONDS))
        finally:
            self._left -= thread_time() - started


def _compiled(source: str, flags: int) -> Any:  # noqa: ANN401 - a compiled pattern of another library
    if _size(source) > len(source) + _MOST_REPEATED:
        raise ValueError("it repeats too much")
    import regex  # noqa: PLC0415 - few programs use a pattern of a user

    wanted = 0
    for name in _FLAGS:
        if flags & getattr(re, name):
            wanted |= getattr(regex, name)
    try:
        return regex.compile(source, wanted)
    except (regex.error, RecursionError, OverflowError, MemoryError, KeyError) as error:
        raise ValueError(str(error)) from None


def _size(source: str) -> int:
    """Return how long a pattern is at least, once its counted repetitions are written out."""
    sizes, last = [0], 0
    for part in _PART.finditer(source):
        if part["open"]:
            sizes.append(0)
        elif part["close"]:
            # One that closes nothing may be in a comment; then all so far may be its group.
            last = sizes.pop() if len(sizes) > 1 else sizes[0]
            sizes[-1] += last
        elif part["least"] or part["most"]:
            times = max(1, int(part["most"] or part["least"]))
            sizes[-1] += last * (times - 1)
            last *= times
        else:
            last = 1
            sizes[-1] += 1
    return sum(sizes)
