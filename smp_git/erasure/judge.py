"""The judge of lives: whether a file, or a line of an index, is of a life that must be gone.

Everything that removes, proves or looks about asks here, so that there is one reader of
a memory's id and one answer.
"""

from __future__ import annotations

import re
from typing import Final

from smp_git.erasure import pages
from smp_git.erasure.pages import Item
from smp_git.format.tombstones import Tombstones

_BOM: Final = b"\xef\xbb\xbf"
# An id in the first column, wherever it is: a person may write a comment above it.
_ID: Final = re.compile(
    rb"^[\"']?id[\"']?[ \t]*:[ \t]*[\"']?([A-Za-z0-9_-]{1,64})[\"']?[ \t]*(?:#.*)?\r?$",
    re.MULTILINE,
)
_MARKS: Final = (b"\nid", b'\n"id', b"\n'id")
_ABOVE: Final = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\r?\n)*")


class Judge:
    """Answers for one set of tombstones."""

    def __init__(self, known: Tombstones) -> None:
        self._known = known
        self._limits: dict[bytes, int] = {}

    def concerns(self, memory_id: bytes) -> bool:
        """Whether any life of a memory is over."""
        return self._limit(memory_id) > 0

    def is_dead_file(self, data: bytes) -> bool:
        """Whether bytes are a version of a memory's file that must be gone."""
        name = own_id(data)
        limit = self._limit(name) if name else 0
        return bool(limit) and _generation(data) <= limit

    def is_dead_item(self, item: Item) -> bool:
        """Whether an item of an index is of a life that must be gone."""
        return bool(item.id) and item.generation <= self._limit(item.id)

    def _limit(self, memory_id: bytes) -> int:
        found = self._limits.get(memory_id)
        if found is None:
            found = self._limits[memory_id] = self._known.limit_of_text(memory_id)
        return found


def how_many(known: Tombstones) -> int:
    """Return of how many memories a life is over."""
    return sum(each.last.number - each.first.number + 1 for each in known.items)


def own_id(data: bytes) -> bytes:
    """Return the id that a file says of itself, whatever is above it, or nothing."""
    found = pages.own_id(data)
    if found:
        return found
    data = data.removeprefix(_BOM)
    if not data.startswith((b"id", b'"id', b"'id")) and not any(mark in data for mark in _MARKS):
        return b""
    match = _ID.search(data)
    return match[1] if match else b""


def _generation(data: bytes) -> int:
    body = data.removeprefix(_BOM)
    above = _ABOVE.match(body)
    body = body[above.end() :] if above else body
    return pages.generation(body, has_front_matter=body.startswith(b"---"))
