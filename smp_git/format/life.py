"""The life that a memory's file says it belongs to: the one reader of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from smp_git.format import yamlfile
from smp_git.model import lives
from smp_git.model.errors import InvalidError, InvalidFileError, shown
from smp_git.model.lives import FIRST
from smp_git.model.memory import Value

KEY: Final = "life"
OLD_KEY: Final = "generation"

# The first lines as the program writes them.
_HEAD: Final = re.compile(
    rb"id: [\x21-\x7e]+\nkind: [a-z]+\n"
    rb"(?:life: ([a-z][a-z0-9-]{0,31})\n|generation: ([1-9][0-9]{0,6})\n)?created_at: "
)
# A line that begins a key of its own, or nothing that could be one. Any other, or one
# that names a life, takes the reader of YAML.
_ODD: Final = re.compile(rb"^(?![A-Za-z_][A-Za-z0-9_.-]*:|[ \n#-]|\Z)|^(?:life|generation):", re.MULTILINE)  # fmt: skip


def life_of(file: bytes, path: str) -> str | None:
    """Return the life that the file of a memory at `path` says, None if that cannot be told.

    The same file says the same wherever it is asked: reading, merging, rewriting.
    """
    front = _front(file) if path.endswith(".md") else file
    if front is None:
        return None
    found = _HEAD.match(front)
    if found is not None and not _ODD.search(front, found.end()):
        return _named(found)
    try:
        return life_in(yamlfile.read(front.decode(), path))
    except (InvalidFileError, InvalidError, UnicodeDecodeError):
        return None


def _front(file: bytes) -> bytes | None:
    end = yamlfile.front_end(file)
    return file[4 : end + 1] if end is not None else None


def _named(found: re.Match[bytes]) -> str | None:
    if found[1] is not None:
        name = found[1].decode()
        return name if lives.is_life(name) else None
    return lives.of_generation(int(found[2])) if found[2] is not None else FIRST


def life_in(mapping: Mapping[str, Value]) -> str:
    """Return the life that the keys of a memory's file say; raise InvalidError."""
    if KEY in mapping:
        name = mapping[KEY]
        if OLD_KEY in mapping or not lives.is_life(name):
            raise InvalidError(f"{KEY} is the name that smp gave this life, not {shown(name)}")
        return str(name)
    number = mapping.get(OLD_KEY, 1)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise InvalidError(f"{OLD_KEY} is a whole number from 1, not {shown(number)}")
    return lives.of_generation(number)
