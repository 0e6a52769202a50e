"""Numbers of many documents side by side in one long integer.

Each document has a lane of sixteen bits, so that one addition adds numbers to those of
all documents. A set of documents is a byte each: 255 for a member, else 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import Final, NamedTuple

BITS: Final = 16
BYTES: Final = BITS // 8
MOST: Final = (1 << BITS) - 1
_TO_MEMBERS: Final = bytes(255 * (byte > 0) for byte in range(256))
_HALF: Final = bytes(min(byte, 127) for byte in range(256))
_MEMBER: Final = re.compile(rb"[^\0]")
# All bytes below another.
_BELOW: Final = [bytes(range(byte)) for byte in range(256)]


class Sums(NamedTuple):
    """The sums of some documents, of which there are `size`; those of others count as 0."""

    lanes: int
    size: int
    members: bytes | None = None


def joined(low: bytes, high: bytes) -> int:
    """Return the numbers with these low and high bytes."""
    every = bytearray(BYTES * len(low))
    every[0::2] = low
    every[1::2] = high
    return int.from_bytes(every, "little")


def parted(lanes: int, size: int) -> tuple[bytes, bytes]:
    """Return the low and the high bytes of numbers."""
    every = lanes.to_bytes(BYTES * size, "little")
    return every[0::2], every[1::2]


def within(lanes: int, members: bytes) -> int:
    """Return the numbers of the members, and 0 for others."""
    return lanes & joined(members, members)


def halved(lanes: int, members: bytes) -> int:
    """Return half the numbers of the members, rounded down, and 0 for others."""
    return lanes >> 1 & joined(members, members.translate(_HALF))


def same(number: int, members: bytes) -> int:
    """Return one number for all members, and 0 for others."""
    return number * (joined(members, bytes(len(members))) // 255)


# Sets


def members_of(places: Iterable[int], size: int) -> bytes:
    """Return the set of some places below `size`."""
    marks = bytearray(size)
    for place in places:
        marks[place] = 255
    return bytes(marks)


def nonzero(numbers: bytes) -> bytes:
    """Return the documents whose byte is not 0."""
    return numbers.translate(_TO_MEMBERS)


def either(sets: Iterable[bytes], size: int) -> bytes:
    """Return who is in any of some sets."""
    found = 0
    for members in sets:
        found |= int.from_bytes(members, "little")
    return found.to_bytes(size, "little")


def both(left: bytes, right: bytes) -> bytes:
    """Return who is in two sets."""
    found = int.from_bytes(left, "little") & int.from_bytes(right, "little")
    return found.to_bytes(len(left), "little")


def places_of(members: bytes) -> Iterator[int]:
    """Yield the places of a set, lowest first."""
    return (match.start() for match in _MEMBER.finditer(members))


# The highest


def likely(several: Sequence[Sums], count: int, slack: float) -> list[list[int]] | None:
    """Return the places, sums by sums, that can be among the highest `count` of all.

    Sums may be too low by `slack`. Only high bytes are looked at, so that some places are
    returned that cannot. None means that this tells nothing about any place.
    """
    highs = [_high(sums) for sums in several]
    every = b"".join(highs)
    # The greatest number that `count` high bytes reach, by halves.
    bar = 0
    for bit in range(7, -1, -1):
        higher = bar | 1 << bit
        if len(every.translate(None, _BELOW[higher])) >= count:
            bar = higher
    least = ceil(bar * 256 - slack) // 256
    if least < 1:
        return None
    enough = bytes(least) + b"\xff" * (256 - least)
    return [list(places_of(high.translate(enough))) for high in highs]


def _high(sums: Sums) -> bytes:
    high = parted(sums.lanes, sums.size)[1]
    return high if sums.members is None else both(high, sums.members)
