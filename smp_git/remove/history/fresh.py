"""What is new in a text beside the one that was looked at before it: versions are mostly alike."""

from __future__ import annotations

from typing import Final

from smp_git.git.packs import common, common_end

# Versions of one thing begin alike; of so many bytes of them the last one is kept.
_KEY: Final = 24
_MOST_KEPT: Final = 1 << 24
# Versions differ most often near their end; a short stretch is not worth telling exactly.
_NEAR: Final = 256
_SHORT: Final = 1_024


class Fresh:
    """Tells what of a text was not in one that was looked at before it."""

    def __init__(self) -> None:
        self._last: dict[bytes, bytes] = {}
        self._size = 0

    def stretch(self, data: bytes) -> tuple[int, int] | None:
        """Return where begins and ends what is new in `data`, None if nothing is.

        Of no length, it is where two stretches now meet that did not before.
        """
        key = data[:_KEY]
        old = self._last.get(key, b"")
        if old.startswith(data):
            return None
        self._size += len(data) - len(old)
        if self._size > _MOST_KEPT:
            self._last.clear()
            self._size = len(data)
        self._last[key] = data
        most = min(len(old), len(data))
        near = max(0, most - _NEAR)
        if old[:near] == data[:near] and len(data) - near < _SHORT:
            return near, len(data)
        start = common(old, data)
        return start, len(data) - common_end(old, data, most - start)
