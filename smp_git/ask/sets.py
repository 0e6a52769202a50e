"""Sets of slots as the bits of numbers: an intersection costs next to nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final


class Sets:
    """A set of slots for each key."""

    def __init__(self, bits: dict[tuple[str, str], int] | None = None) -> None:
        self._bits = bits or {}
        self._waiting: dict[tuple[str, str], list[int]] = {}

    def add(self, key: tuple[str, str], slot: int) -> None:
        """Put a slot into a set."""
        self._waiting.setdefault(key, []).append(slot)

    def all(self) -> dict[tuple[str, str], int]:
        """Return every set by its key."""
        for key in list(self._waiting):
            self.get(key)
        return self._bits

    def remove(self, key: tuple[str, str], slot: int) -> None:
        """Take a slot out of a set."""
        self._bits[key] = self.get(key) & ~(1 << slot)

    def get(self, key: tuple[str, str]) -> int:
        """Return a set."""
        waiting = self._waiting.pop(key, None)
        if waiting:
            self._bits[key] = self._bits.get(key, 0) | bits_of(waiting)
        return self._bits.get(key, 0)


def bits_of(slots: Iterable[int]) -> int:
    """Return the set of some slots."""
    listed = list(slots)
    if not listed:
        return 0
    marks = bytearray(max(listed) // 8 + 1)
    for slot in listed:
        marks[slot >> 3] |= 1 << (slot & 7)
    return int.from_bytes(marks, "little")


_BITS: Final = [[bit for bit in range(8) if byte >> bit & 1] for byte in range(256)]


def slots_of(bits: int) -> Iterator[int]:
    """Yield the slots of a set, lowest first."""
    data = bits.to_bytes((bits.bit_length() + 7) // 8, "little")
    for place, byte in enumerate(data):
        if byte:
            start = place << 3
            for bit in _BITS[byte]:
                yield start + bit
