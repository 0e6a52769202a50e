"""Loose objects put into packs, and small packs into one, while others read and write.

What is packed can be read at every moment: a pack is durable before a loose copy goes. The
caller keeps deletions and Git's own gc out (`locks.rewriting`), so that nothing comes back
that one of them has removed.
"""

from __future__ import annotations

import hashlib
import os
import time
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.git import command, disk, storage
from smp_git.git.objects import COMMIT, FOLDER_MODE, Child, raw_commit, read_tree
from smp_git.git.storage import Packed
from smp_git.model.errors import GitMissingError

# So many objects, and bytes of them, are in memory at a time.
_MOST_OBJECTS: Final = 4_000
_MOST_BYTES: Final = 16_000_000
_DIGITS: Final = 2
_THOROUGHLY: Final = 6
# More packs make every look for an object slower.
_MOST_PACKS: Final = 8
_PACK_SUFFIXES: Final = (".idx", ".pack", ".rev", ".bitmap", ".mtimes", ".promisor")


class Packing(NamedTuple):
    """What was packed: how many objects, the bytes of their files before and of packs after.

    `left` are loose objects that there was no time for, `damaged` those that cannot be read.
    """

    objects: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    left: int = 0
    damaged: int = 0


def count_loose(git: Path) -> int:
    """Return how many loose objects there are."""
    with os.scandir(git / "objects") as folders:
        return sum(len(os.listdir(each)) for each in folders if len(each.name) == _DIGITS)  # noqa: PTH208 - of every session, every day


def pack_loose(git: Path, seconds: float) -> Packing:
    """Pack loose objects, the oldest first, until there are none or the time is over."""
    deadline = time.monotonic() + seconds
    objects = git / "objects"
    waiting = _oldest_first(objects)
    done, at = Packing(), 0
    while at < len(waiting) and (at == 0 or time.monotonic() < deadline):
        batch, damaged = _read(waiting, at)
        at += len(batch) + damaged
        before, after = _pack(objects, batch)
        done = Packing(
            done.objects + len(batch),
            done.bytes_before + before,
            done.bytes_after + after,
            damaged=done.damaged + damaged,
        )
    return done._replace(left=len(waiting) - at)


class _Loose(NamedTuple):
    """A loose object that was read: its file, what it is, and how large the file is."""

    path: Path
    type: bytes
    data: bytes
    size: int


def _oldest_first(objects: Path) -> list[tuple[bytes, Path]]:
    """Return the loose objects in the order in which they were written, so that series stay together."""
    found = []
    for name, path in storage.loose(objects):
        # Git's own gc may have been quicker before it was kept out.
        with suppress(FileNotFoundError):
            found.append((path.stat().st_mtime_ns, name, path))
    return [(name, path) for _, name, path in sorted(found)]


def _read(waiting: list[tuple[bytes, Path]], start: int) -> tuple[dict[bytes, _Loose], int]:
    """Return the next objects that fit into memory, and how many between cannot be read."""
    batch: dict[bytes, _Loose] = {}
    damaged = size = 0
    for name, path in waiting[start : start + _MOST_OBJECTS]:
        item = _loose(name, path)
        if item is None:
            damaged += 1
            continue
        batch[name] = item
        size += len(item.data)
        if size > _MOST_BYTES:
            break
    return batch, damaged


def _loose(name: bytes, path: Path) -> _Loose | None:
    """Return an object whose bytes have its name, None if they have not."""
    try:
        stored = path.read_bytes()
        data = zlib.decompress(stored)
    except (OSError, zlib.error):
        return None
    if hashlib.sha1(data, usedforsecurity=False).digest() != name:
        return None
    head, _, body = data.partition(b"\0")
    return _Loose(path, head.partition(b" ")[0], body, len(stored))


def _pack(objects: Path, batch: dict[bytes, _Loose]) -> tuple[int, int]:
    """Put objects into a pack, durable, and remove their files; return the bytes before and after."""
    if not batch:
        return 0, 0
    bases = _Bases(batch)
    made = storage.pack(
        (Packed(name, each.type, each.data, bases.of.get(name)) for name, each in batch.items()),
        _THOROUGHLY,
    )
    with storage.Written(objects) as written:
        storage.store_pack(objects, made, written)
        written.flush()
    for each in batch.values():
        each.path.unlink(missing_ok=True)
    for folder in {each.path.parent for each in batch.values()}:
        # Whoever writes into it again makes it anew, as beside Git's own gc.
        with suppress(OSError):
            folder.rmdir()
    return sum(each.size for each in batch.values()), len(made.pack) + len(made.idx)


class _Bases:
    """What each file and folder of a batch was in the commit before, where that is in it too."""

    def __init__(self, batch: dict[bytes, _Loose]) -> None:
        self._batch = batch
        self._trees: dict[bytes, dict[str, Child]] = {}
        self.of: dict[bytes, bytes] = {}
        for each in batch.values():
            if each.type == COMMIT:
                raw = raw_commit(each.data)
                before = batch.get(raw.parents[0]) if raw.parents else None
                if before is not None:
                    self._compare(raw_commit(before.data).tree, raw.tree)

    def _compare(self, old: bytes, new: bytes) -> None:
        if old == new or old not in self._batch or new not in self._batch or new in self.of:
            return
        self.of[new] = old
        before = self._tree(old)
        for name, child in self._tree(new).items():
            was = before.get(name)
            if was is None or was.id == child.id:
                continue
            if child.mode == was.mode == FOLDER_MODE:
                self._compare(bytes.fromhex(was.id), bytes.fromhex(child.id))
            elif bytes.fromhex(was.id) in self._batch:
                self.of.setdefault(bytes.fromhex(child.id), bytes.fromhex(was.id))

    def _tree(self, name: bytes) -> dict[str, Child]:
        if name not in self._trees:
            self._trees[name] = read_tree(self._batch[name].data)
        return self._trees[name]


# Packs


def mergeable(git: Path) -> list[Path]:
    """Return the packs that are better one: the smallest, until the next is larger than all of them.

    None, as long as there are few. A pack that somebody keeps is left alone.
    """
    found = []
    for index in storage.indexes(git / "objects"):
        pack = index.with_suffix(".pack")
        if not any(pack.with_suffix(each).exists() for each in (".keep", ".promisor")):
            found.append((pack.stat().st_size, pack))
    if len(found) <= _MOST_PACKS:
        return []
    found.sort()
    sums = list(accumulate(size for size, _ in found))
    # From the largest down: one that is larger than all below it together stays.
    end = len(found)
    while end > 1 and found[end - 1][0] > sums[end - 2]:
        end -= 1
    return [pack for _, pack in found[:end]] if end > 1 else []


def merge_packs(git: Path, packs: Collection[Path]) -> bool:
    """Write one pack of all that is in some; they stay until `remove_packs`. False without git."""
    try:
        command.pack_objects(git, sorted({name for pack in packs for name in _names(pack)}))
    except GitMissingError:
        return False
    return True


def _names(pack: Path) -> list[bytes]:
    return storage.names(pack.with_suffix(".idx"))


def remove_packs(folder: Path, packs: Iterable[Path]) -> Iterator[Path]:
    """Remove packs one by one, and yield each; everything in them is elsewhere."""
    # No index over several packs may name one that is about to go.
    for each in folder.glob("multi-pack-index*"):
        each.unlink(missing_ok=True)
    for pack in packs:
        for suffix in _PACK_SUFFIXES:
            pack.with_suffix(suffix).unlink(missing_ok=True)
        yield pack
    disk.flush_folder(folder)
