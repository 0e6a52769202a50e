"""Objects as they are stored, nothing remembered of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pygit2
from pygit2.enums import ObjectType

from smp_git.git.packfile import PackFile
from smp_git.model.errors import DamagedError

_TYPES: Final = {
    ObjectType.COMMIT: b"commit",
    ObjectType.TREE: b"tree",
    ObjectType.BLOB: b"blob",
    ObjectType.TAG: b"tag",
}


class Objects:
    """The objects of a repository and of those that it borrows from, as they are at first.

    Small `packs` of the repository are held in memory; what they have is at hand.
    """

    def __init__(self, git: Path, packs: Iterable[PackFile] = ()) -> None:
        self._odb = pygit2.Odb(str(git / "objects"))
        self._packs = list(packs)

    def commits_at_hand(self) -> list[bytes]:
        """Return the ids of the commits that are held in memory."""
        return [name for pack in self._packs for name in pack.commits()]

    def at_hand(self, name: bytes) -> tuple[bytes, bytes] | None:
        """Return the type and bytes of an object that is held in memory, None if it is not."""
        for pack in self._packs:
            if (known := pack.read(name)) is not None:
                return known
        return None

    def header(self, name: bytes) -> tuple[bytes, int]:
        """Return the type and size of an object without reading it; raise DamagedError."""
        for pack in self._packs:
            if (known := pack.header(name)) is not None:
                return known
        try:
            kind, size = self._odb.read_header(pygit2.Oid(raw=name))
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise DamagedError(f"object {name.hex()[:12]} is missing or broken: {error}") from error
        return _TYPES[kind], size

    def read(self, name: bytes) -> tuple[bytes, bytes]:
        """Return the type and bytes of an object; raise DamagedError."""
        if (known := self.at_hand(name)) is not None:
            return known
        try:
            kind, data = self._odb.read(pygit2.Oid(raw=name))
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise DamagedError(f"object {name.hex()[:12]} is missing or broken: {error}") from error
        return _TYPES[kind], data
