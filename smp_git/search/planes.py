"""Numbers of many documents at once, bit by bit.

A whole number per document is kept as planes: plane `i` is one long integer that holds
bit `i` of every document's number, the document at place `p` in its bit `p`. So a sum
over ten thousand documents is a few operations on integers, and finding the highest
sums is a walk over the planes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

Planes = list[int]

# Turns a byte per document into a digit per document, for each of the eight planes.
_DIGITS: Final = [bytes(48 + (byte >> bit & 1) for byte in range(256)) for bit in range(8)]


class Sums(NamedTuple):
    """The sums of some documents, the `members`; others have none."""

    planes: Planes
    members: int


def spread(numbers: bytes) -> Planes:
    """Return the planes of one byte per document."""
    backwards = numbers[::-1] or b"\0"
    return [int(backwards.translate(digits), 2) for digits in _DIGITS]


def plus(left: Planes, right: Planes) -> Planes:
    """Return the sums of two numbers each."""
    if len(left) < len(right):
        left, right = right, left
    out: Planes = []
    carry = 0
    for one, other in zip(left, right, strict=False):
        either = one ^ other
        out.append(either ^ carry)
        carry = one & other | either & carry
    for one in left[len(right) :]:
        out.append(one ^ carry)
        carry &= one
    if carry:
        out.append(carry)
    return out


def times(planes: Planes, factor: int, drop: int) -> Planes:
    """Return the products with `factor`, without their `drop` lowest bits."""
    out: Planes = []
    for bit in range(factor.bit_length()):
        if factor >> bit & 1:
            out = plus(out, [0] * bit + planes)
    return out[drop:]


def same(number: int, members: int) -> Planes:
    """Return the planes of one number for all members, and 0 for others."""
    return [members if number >> bit & 1 else 0 for bit in range(number.bit_length())]


def within(planes: Planes, members: int) -> Planes:
    """Return the numbers of the members, and 0 for others."""
    return [plane & members for plane in planes]


def doubled(planes: Planes, members: int) -> Planes:
    """Return the numbers, those of the members twice."""
    others = ~members
    return [
        plane & others | below & members
        for plane, below in zip([*planes, 0], [0, *planes], strict=True)
    ]


def bar(several: Iterable[Sums], count: int) -> int:
    """Return the highest number that `count` members reach, all sums together; 0 if none."""
    every = list(several)
    higher = [0] * len(every)
    level = [sums.members for sums in every]
    number = 0
    for bit in range(max((len(sums.planes) for sums in every), default=0) - 1, -1, -1):
        held = [
            open_ & sums.planes[bit] if bit < len(sums.planes) else 0
            for open_, sums in zip(level, every, strict=True)
        ]
        reached = sum(map(int.bit_count, higher)) + sum(map(int.bit_count, held))
        if reached >= count:
            number |= 1 << bit
            level = held
        else:
            higher = [above | more for above, more in zip(higher, held, strict=True)]
            level = [open_ & ~more for open_, more in zip(level, held, strict=True)]
    return number


def reaching(sums: Sums, number: int) -> int:
    """Return the members whose sum is `number` or more."""
    if number <= 0:
        return sums.members
    if number.bit_length() > len(sums.planes):
        return 0
    higher, level = 0, sums.members
    for bit in range(len(sums.planes) - 1, -1, -1):
        plane = sums.planes[bit]
        if number >> bit & 1:
            level &= plane
        else:
            higher |= level & plane
            level &= ~plane
    return higher | level


def members_of(places: Iterable[int], size: int) -> int:
    """Return the set of some places below `size`."""
    marks = bytearray(b"0" * (size or 1))
    for place in places:
        marks[size - 1 - place] = 49
    return int(marks, 2)


def places_of(members: int) -> Iterator[int]:
    """Yield the places of a set, lowest first."""
    digits = f"{members:b}"[::-1]
    place = digits.find("1")
    while place >= 0:
        yield place
        place = digits.find("1", place + 1)
