"""Objects as they are stored, nothing remembered of them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pygit2
from pygit2.enums import ObjectType

from smp_git.model.errors import DamagedError

_TYPES: Final = {
    ObjectType.COMMIT: b"commit",
    ObjectType.TREE: b"tree",
    ObjectType.BLOB: b"blob",
    ObjectType.TAG: b"tag",
}


class Objects:
    """The objects of a repository and of those that it borrows from, as they are at first."""

    def __init__(self, git: Path) -> None:
        self._odb = pygit2.Odb(str(git / "objects"))

    def header(self, name: bytes) -> tuple[bytes, int]:
        """Return the type and size of an object without reading it; raise DamagedError."""
        try:
            kind, size = self._odb.read_header(pygit2.Oid(raw=name))
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise DamagedError(f"object {name.hex()[:12]} is missing or broken: {error}") from error
        return _TYPES[kind], size

    def read(self, name: bytes) -> tuple[bytes, bytes]:
        """Return the type and bytes of an object; raise DamagedError."""
        try:
            kind, data = self._odb.read(pygit2.Oid(raw=name))
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise DamagedError(f"object {name.hex()[:12]} is missing or broken: {error}") from error
        return _TYPES[kind], data
