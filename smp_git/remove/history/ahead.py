"""Objects read ahead: commits, parents first, with the trees that a rewrite looks into."""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from smp_git.git import command
from smp_git.git.repository import Repository
from smp_git.remove.history import pages
from smp_git.remove.history.pages import FOLDER, INDEX_NAME

# So many commits are kept with their trees at a time.
_BLOCK: Final = 2_048
# Fewer objects are read faster one by one than by starting a program for them.
_FEW: Final = 64
_INDEX_ENTRY: Final = b"100644 %s\0" % INDEX_NAME
_ID_SIZE: Final = 20

# The pages that are looked into, by the folder of their kind.
Wanted = Mapping[bytes, frozenset[bytes]]


class Ahead:
    """Reads any object, and many at once before they are asked for."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._kept: dict[bytes, tuple[bytes, bytes]] = {}
        self._asked: set[bytes] = set()
        self._seen: set[bytes] = set()

    def read(self, name: bytes) -> tuple[bytes, bytes]:
        """Return the type and bytes of an object."""
        found = self._kept.get(name)
        return found if found is not None else self._repository.raw(name)

    def blocks(
        self, tips: Iterable[bytes], beside: Iterable[bytes], wanted: Wanted
    ) -> Iterator[list[bytes]]:
        """Yield the commits that `tips` reach and those `beside` do not, a block at a time.

        Parents come before children. The objects of a block are at hand until the next.
        """
        commits = command.history(self._repository.git, tips, beside)
        for at in range(0, len(commits), _BLOCK):
            block = commits[at : at + _BLOCK]
            self._load(block, wanted)
            yield block
        self._kept.clear()

    def _load(self, commits: list[bytes], wanted: Wanted) -> None:
        self._kept.clear()
        read = self._many
        roots = read({unhexlify(data[5:45]) for data in read(commits)})
        for folder, names in wanted.items():
            places = (pages.folder_at(data, folder) for data in roots)
            found = read({r[p.id : p.end] for r, p in zip(roots, places, strict=True) if p})
            if b"" not in names:
                found = read({each for data in found for each in self._pages(data, names)})
            read({each for data in found for each in _indexes(data)})

    def _pages(self, folder: bytes, names: frozenset[bytes]) -> Iterator[bytes]:
        if len(names) <= pages.MANY:
            yield from (folder[p.id : p.end] for _, p in pages.folders_at(folder, names))
            return
        fresh = [each for each in pages.pieces(folder) if each not in self._seen]
        self._seen.update(fresh)
        for entry in map(pages.entry, fresh):
            if entry.mode == FOLDER and entry.name in names:
                yield entry.id

    def _many(self, names: Iterable[bytes]) -> list[bytes]:
        """Return the bytes of the objects that were not asked for before, and keep them."""
        fresh = [name for name in names if name not in self._asked]
        if len(fresh) < _FEW:
            return [self.read(name)[1] for name in fresh]
        self._asked.update(fresh)
        found = command.objects(self._repository.git, fresh)
        self._kept.update(found)
        return [data for _, data in found.values()]


def _indexes(page: bytes) -> Iterator[bytes]:
    at = page.find(_INDEX_ENTRY)
    if at >= 0:
        start = at + len(_INDEX_ENTRY)
        yield page[start : start + _ID_SIZE]
