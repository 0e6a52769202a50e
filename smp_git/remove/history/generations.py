"""Generations of format 1 written anew as lives, in all of history: a function of it.

Format 1 numbered the lives of a memory, and two replicas could begin one number apart.
A life of format 2 that was generation 2 is named after the first version that it had.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from smp_git.format import document, metadata
from smp_git.format import records as tombstones
from smp_git.format.document import KEY, OLD_KEY, life_of
from smp_git.format.records import Tombstones
from smp_git.git import command
from smp_git.git.objects import BLOB, ObjectId, object_id
from smp_git.git.repository import Repository
from smp_git.model import ids
from smp_git.model.errors import InvalidFileError
from smp_git.model.ids import GENERATION, Edge, Lives, parse_id
from smp_git.model.memory import CommitId, MemoryId, Value

_CANONICAL: Final = re.compile(rb"^generation: [1-9][0-9]{0,6}\n", re.MULTILINE)
_ORDER: Final = ("id", "kind", KEY, "created_at")


_OLD_LINE: Final = re.compile(rb'"blob":"([0-9a-f]{40})"')
_OLD_NUMBER: Final = re.compile(rb'"gen":[0-9]{1,7}')
_SIZE: Final = re.compile(rb'"size":([0-9]+)')


class Renames:
    """What becomes of the files of generations: new bytes by object id, lives by memory."""

    def __init__(self) -> None:
        self.files: dict[bytes, bytes] = {}
        self.lives: dict[MemoryId, set[str]] = {}
        self._named: dict[bytes, bytes] = {}

    def add(self, blob: str, data: bytes, name: MemoryId, life: str) -> None:
        """Note a file, what becomes of it, and its life."""
        self.files[bytes.fromhex(blob)] = data
        self._named[bytes.fromhex(blob)] = life.encode()
        self.lives.setdefault(name, set()).add(life)

    def index(self, index: bytes) -> bytes:
        """Return an index whose lines name the new files and their lives."""
        if b'"gen":' not in index:
            return index
        return b"".join(map(self._line, index.splitlines(keepends=True)))

    def _line(self, line: bytes) -> bytes:
        match = _OLD_LINE.search(line)
        old = bytes.fromhex(match[1].decode()) if match else b""
        if old not in self.files:
            return line
        new = self.files[old]
        line = line.replace(old.hex().encode(), object_id(BLOB, new).encode(), 1)
        line = _OLD_NUMBER.sub(b'"life":"%s"' % self._named[old], line, count=1)
        return _SIZE.sub(b'"size":%d' % len(new), line, count=1)

    def __bool__(self) -> bool:
        return bool(self.files)

    def records(self) -> Tombstones:
        """Return how the lives came about, as far as format 1 tells."""
        edge = Edge(GENERATION, (ids.FIRST,))
        return Tombstones.of(
            {name: Lives({}, dict.fromkeys(found, edge)) for name, found in self.lives.items()}
        )


def renames(repository: Repository, tips: Iterable[str], known: Tombstones) -> Renames:
    """Return what becomes of every version of a generation above 1 that some commits reach."""
    found = Renames()
    names = {parse_id(name).path: name for name in tombstones.ids_of(known)}
    if not names:
        return found
    named: dict[str, str] = {}
    for change in command.file_changes(repository.git, tips, sorted(names)):
        if change.new is None or change.new in named:
            continue
        data = repository.blob(ObjectId(change.new))
        number = ids.generation(life_of(data, change.path) or ids.FIRST)
        if number < 2 or life_of(data, change.path) != ids.of_generation(number):  # noqa: PLR2004 - the first has no number
            continue
        before = named.get(change.old or "", "")
        life = before if ids.generation(before) == number else ids.of_generation(number, data)
        named[change.new] = life
        found.add(change.new, _renamed(data, change.path, life), names[change.path], life)
    return found


def _renamed(data: bytes, path: str, life: str) -> bytes:
    """Return a file that names its life instead of its generation."""
    plain = _CANONICAL.sub(f"{KEY}: {life}\n".encode(), data, count=1)
    if life_of(plain, path) == life:
        return plain
    changes: dict[str, Value | None] = {OLD_KEY: None, KEY: life}
    spliced = document.spliced(data, path, changes, _ORDER)
    if spliced is not None and life_of(spliced, path) == life:
        return spliced
    try:
        return document.encode(replace(document.decode(data, path), life=life))
    except InvalidFileError:
        return data


def is_old(repository: Repository, tip: str) -> bool:
    """Whether a commit is of a session of format 1."""
    data = _metadata(repository, tip)
    return data is not None and metadata.is_old(data)


def raised(repository: Repository, tip: str) -> bytes | None:
    """Return the metadata of a commit with the present format, None if there is nothing to raise."""
    data = _metadata(repository, tip)
    return metadata.raised(data) if data is not None else None


def _metadata(repository: Repository, tip: str) -> bytes | None:
    blob = repository.find(repository.commit(CommitId(tip)).tree, metadata.PATH)
    return repository.blob(blob) if blob else None
