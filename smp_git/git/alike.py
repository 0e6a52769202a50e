"""How far two texts are alike, from their beginning or from their end."""

from __future__ import annotations

from typing import Final

# So many bytes are compared as two numbers; differences tend to be near the end.
_COMPARED: Final = 512
_NEAR: Final = 256


def common(left: bytes, right: bytes) -> int:
    """Return how many bytes two texts begin with in common."""
    high = min(len(left), len(right))
    if left[:high] == right[:high]:
        return high
    low = 0
    middle = high - _NEAR
    while high - low > _COMPARED:
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle
        middle = (low + high) // 2
    differing = int.from_bytes(left[low:high]) ^ int.from_bytes(right[low:high])
    return high - (differing.bit_length() + 7) // 8


def common_end(left: bytes, right: bytes, most: int) -> int:
    """Return how many bytes, of at most so many, two texts end with in common."""
    left, right = left[len(left) - most :], right[len(right) - most :]
    if left == right:
        return most
    low = 0
    while most - low > _COMPARED:
        middle = (low + most) // 2
        if left[middle:most] == right[middle:most]:
            most = middle
        else:
            low = middle
    size = len(left)
    differing = int.from_bytes(left[low:most], "little") ^ int.from_bytes(right[low:most], "little")
    return size - low - (differing.bit_length() + 7) // 8
