"""Objects as the checked-out files and Git's index have them, for a store that is damaged or packed."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.git import libgit2
from smp_git.git.objects import (
    BLOB,
    FILE_MODE,
    FOLDER_MODE,
    READING,
    TREE,
    Child,
    Object,
    ObjectId,
    object_id,
    write_tree,
)

_EXECUTABLE: Final = "100755"
# A person may have anything beside the memories.
_LARGEST_BYTES: Final = 32 << 20
# Who asks for many objects that nobody has looks through the files once.
_FRESH_SECONDS: Final = 5.0


class Spare(NamedTuple):
    """An object that is whole elsewhere, and where."""

    data: bytes
    place: str


class Standby:
    """The blobs and trees that can be made without the object store, by their ids.

    What is found has the id that was asked for, so it is what was lost, byte for byte.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = f"{folder}"
        self._files: dict[ObjectId, str] = {}
        self._trees: dict[ObjectId, Spare] = {}
        self._looked = 0.0

    def find(self, kind: bytes, name: ObjectId) -> Spare | None:
        """Return an object, None if neither a file nor Git's index leads to it."""
        if name not in self._files and name not in self._trees:
            if self._looked and time.monotonic() - self._looked < _FRESH_SECONDS:
                return None
            self._look()
        if kind == TREE:
            return self._trees.get(name)
        path = self._files.get(name) if kind == BLOB else None
        if path is None:
            return None
        data = self.checked_out(path, name)
        return None if data is None else Spare(data, f"the checked-out file {path}")

    def checked_out(self, path: str, name: ObjectId) -> bytes | None:
        """Return the bytes of a checked-out file, None unless they are the version that is meant."""
        with suppress(OSError):
            fd = os.open(f"{self._folder}/{path}", READING)
            with os.fdopen(fd, "rb") as file:
                seen = os.fstat(fd)
                if stat.S_ISREG(seen.st_mode) and seen.st_size <= _LARGEST_BYTES:
                    data = file.read()
                    return data if object_id(BLOB, data) == name else None
        return None

    def _look(self) -> None:
        found: dict[str, Child] = {}
        for path, mode, data in _checked_out(self._folder):
            child = found[path] = Child(mode, object_id(BLOB, data))
            self._files[child.id] = path
        self._trees = _trees(found, "the checked-out files")
        self._trees |= _trees(_staged(self._folder), "Git's index")
        self._looked = time.monotonic()


def _checked_out(folder: str, above: str = "") -> Iterator[tuple[str, str, bytes]]:
    """Yield the checked-out files with their modes and bytes, links left out."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name == ".git" or entry.is_symlink():
                continue
            if entry.is_dir():
                yield from _checked_out(entry.path, f"{above}{entry.name}/")
                continue
            with suppress(OSError):
                seen = entry.stat()
                if stat.S_ISREG(seen.st_mode) and seen.st_size <= _LARGEST_BYTES:
                    mode = _EXECUTABLE if seen.st_mode & stat.S_IXUSR else FILE_MODE
                    yield f"{above}{entry.name}", mode, Path(entry.path).read_bytes()


def _staged(folder: str) -> dict[str, Child]:
    """Return what Git's index holds, nothing if it cannot be read."""
    from smp_git.git.index_file import IndexFile  # noqa: PLC0415 - looked at when all else failed

    with suppress(libgit2.GitError, OSError, ValueError):
        index = IndexFile(f"{folder}/.git/index")
        return {each.path: Child(f"{each.mode:o}", ObjectId(str(each.id))) for each in index}
    return {}


def _trees(files: Mapping[str, Child], place: str) -> dict[ObjectId, Spare]:
    """Return every tree that some files make, by its id."""
    folders: dict[str, dict[str, Child]] = {"": {}} if files else {}
    for path, child in files.items():
        above, _, name = path.rpartition("/")
        folders.setdefault(above, {})[name] = child
        while above:
            above = above.rpartition("/")[0]
            folders.setdefault(above, {})
    out: dict[ObjectId, Spare] = {}
    # The deepest first, so that each is known when the one above it is made.
    for path in sorted(folders, key=lambda each: -each.count("/") - bool(each)):
        tree = Object(TREE, write_tree(folders[path]))
        out[tree.id] = Spare(tree.data, place)
        above, _, name = path.rpartition("/")
        if path:
            folders[above][name] = Child(FOLDER_MODE, tree.id)
    return out
