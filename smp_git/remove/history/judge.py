"""The judge of lives: whether a file, or a line of an index, is of a life that must be gone.

Everything that removes, proves or looks about asks here, so that there is one reader of
a memory's id and one answer.
"""

from __future__ import annotations

import re
from typing import Final

from smp_git.format.document import life_of
from smp_git.format.records import Tombstones
from smp_git.model.lives import NOTHING, Lives
from smp_git.remove.history import pages
from smp_git.remove.history.pages import Item

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
        self._lives: dict[bytes, Lives] = {}

    def concerns(self, memory_id: bytes) -> bool:
        """Whether any life of a memory is over."""
        return self._of(memory_id) is not NOTHING

    def is_dead_file(self, data: bytes) -> bool:
        """Whether bytes are a version of a memory's file that must be gone."""
        name = own_id(data)
        known = self._of(name) if name else NOTHING
        return known is not NOTHING and known.is_dead(_life(data))

    def is_dead_item(self, item: Item) -> bool:
        """Whether an item of an index is of a life that must be gone."""
        return bool(item.id) and self._of(item.id).is_dead(item.life)

    def _of(self, memory_id: bytes) -> Lives:
        found = self._lives.get(memory_id)
        if found is None:
            found = self._lives[memory_id] = self._known.lives_of_text(memory_id)
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


def _life(data: bytes) -> str | None:
    """Return the life that a file says, whatever is above it; None if that cannot be told."""
    body = data.removeprefix(_BOM)
    above = _ABOVE.match(body)
    body = body[above.end() :] if above else body
    return life_of(body, "x.md" if body.startswith(b"---") else "x.yaml")
