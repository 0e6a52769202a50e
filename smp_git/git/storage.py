"""Object store: new objects, loose or many at once as a pack, and their durability."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from smp_git.git import disk, locks, packs
from smp_git.git.objects import (
    Object,
    deflate,
    framed,
    stored,
)
from smp_git.git.packs import Pack, Packed

# From here on one pack costs less than its objects would as files of their own.
_PACK_FROM: Final = 64
# Takes one block of the disk, compressed or not.
_SMALL: Final = 4_000
# What the marks of ours are links to.
_OWN_MARK: Final = "smp/pack-keep"
# A gc with --prune=now takes what is being written for garbage.
_TRIES: Final = 20


class Written:
    """New objects on the disk whose data is not yet fsynced; keeps them open until then."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fds: list[int] = []
        self._folders: set[str] = set()
        # Each loose object by its file.
        self._loose: dict[str, Object] = {}
        self._marks: list[Path] = []

    def keep(self, fd: int, folder: str) -> None:
        """Take over an open file in `folder` that must be durable before anything names it."""
        self._fds.append(fd)
        self._folders.add(folder)

    def keep_loose(self, fd: int, path: str, item: Object) -> None:
        """Take over the open file of a loose object."""
        self.keep(fd, os.path.dirname(path))  # noqa: PTH120 - a Path costs more than the call
        self._loose[path] = item

    def mark(self, pack: Path) -> None:
        """Let Git leave a pack alone until this is closed, as it does with packs that it fetches.

        A repacking that began before a reference reached the pack would remove it afterwards.
        """
        own, mark = _own_mark(self._folder), pack.with_suffix(".keep")
        own.touch(0o600)
        with suppress(FileExistsError):
            os.link(own, mark)
        self._marks.append(mark)

    def is_exposed(self) -> bool:
        """Whether a `git gc` has removed loose objects, or may: no reference names them yet."""
        if not self._loose:
            return False
        there = all(os.access(path, os.F_OK) for path in self._loose)
        return not there or locks.runs(self._folder.parent)

    def pack(self) -> None:
        """Put the loose objects into a pack as well, where no `git gc` removes them."""
        _store_marked(self._folder, self._loose.values(), self)
        self._loose.clear()

    def keep_files(self, top: Path) -> None:
        """Make the files that stand below `top` durable as well, and their names."""
        for path in top.rglob("*"):
            self._folders.add(str(path.parent))
            if path.is_file():
                self.keep(os.open(path, os.O_RDONLY), str(path.parent))

    def force(self) -> None:
        """Make the files durable, names and all."""
        self.force_data()
        disk.force_names(str(self._folder))

    def force_data(self) -> None:
        """Fsync the data; the fsync of the file that publishes it makes all durable."""
        disk.force_data(self._fds, (*self._folders, str(self._folder)), str(self._folder))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files."""
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()
        if self._marks:
            disk.drop_own_lock(_own_mark(self._folder), *self._marks)
            self._marks.clear()


def _own_mark(folder: Path | str) -> Path:
    return Path(folder).parent / _OWN_MARK


def is_marked_by_us(objects: Path, mark: Path) -> bool:
    """Whether a write of ours, under way or dead, has marked a pack to be kept."""
    with suppress(FileNotFoundError):
        return mark.samefile(_own_mark(objects))
    return False


def drop_marks(objects: Path) -> None:
    """Remove the marks that a writer of ours left when it died; the caller holds the lock."""
    disk.drop_own_lock(_own_mark(objects), *(objects / "pack").glob("*.keep"))


def sweep(folder: Path) -> None:
    """Remove the files without content that a power cut left in the object store at `folder`.

    Nothing that was fsynced looks so; a pack and its index go together.
    """
    for path in (*folder.glob("[0-9a-f][0-9a-f]/*"), *folder.glob("pack/pack-*")):
        with suppress(FileNotFoundError):
            if _is_blank(path):
                path.unlink()
                if path.suffix in (".pack", ".idx"):
                    path.with_suffix(".idx").unlink(missing_ok=True)


def _is_blank(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(8) in (b"", bytes(8))


def store(folder: Path, objects: Sequence[Object], written: Written) -> None:
    """Put `objects` into the object store at `folder`."""
    if len(objects) >= _PACK_FROM or (objects and locks.runs(folder.parent)):
        _store_marked(folder, {item.id: item for item in objects}.values(), written)
        return
    for item in objects:
        _store_loose(folder, item, written)


def _store_marked(folder: Path, objects: Iterable[Object], written: Written) -> None:
    """Put objects as a pack that Git leaves alone until a reference has reached it."""
    made = packs.pack(Packed(bytes.fromhex(each.id), each.type, each.data) for each in objects)
    written.mark(folder / "pack" / made.name)
    store_pack(folder, made, written)


def _store_loose(folder: Path, item: Object, written: Written) -> None:
    path = f"{folder}/{item.id[:2]}/{item.id[2:]}"
    data = framed(item.type, item.data)
    standing = _standing(path, data) if os.access(path, os.F_OK) else None
    if standing is not None:
        fd, data = standing
    else:
        data = stored(data) if len(data) <= _SMALL else deflate(data)
        fd = _place(path, data, f"{folder}")
    written.keep_loose(fd, path, item)


def _standing(path: str, data: bytes) -> tuple[int, bytes] | None:
    """Return the file at `path`, open, and its bytes, if it holds the object `data`.

    Whoever wrote it, a dead writer or Git itself, may not have fsynced it, and a
    power cut leaves empty files and NULs under names that look taken.
    """
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with suppress(OSError, zlib.error):
        found = os.pread(fd, os.fstat(fd).st_size, 0)
        if zlib.decompress(found) == data:
            # Looks new again, so that a gc at this moment does not take it for garbage.
            os.utime(path)
            return fd, found
    os.close(fd)
    return None


def write_pack(folder: Path, objects: Iterable[Packed]) -> None:
    """Put objects as a pack into the object store at `folder`, durable."""
    with Written(folder) as written:
        store_pack(folder, packs.pack(objects), written)
        written.force()


def store_pack(folder: Path, made: Pack, written: Written) -> None:
    """Put a pack into the object store at `folder`."""
    stem = folder / "pack" / made.name
    # The index makes the pack visible, so it comes last.
    for suffix, data in ((".pack", made.pack), (".idx", made.idx)):
        written.keep(_place(f"{stem}{suffix}", data, f"{folder}"), f"{stem.parent}")


def _place(path: str, data: bytes, folder: str) -> int:
    """Write a file of the object store at `folder`; return its descriptor.

    All are made in one folder: ext4 puts a new file beside its folder, and looks for a
    place there among those given up a moment ago.
    """
    scratch = f"{folder}/tmp_obj_smp{os.getpid()}"  # noqa: S108 - in the object store, as Git has it
    left = _TRIES
    while True:
        left -= 1
        fd = disk.created(scratch)
        try:
            disk.write_all(fd, data)
            disk.rename_into(scratch, path)
        except BaseException as error:
            os.close(fd)
            gone = isinstance(error, FileNotFoundError) and not os.path.lexists(scratch)
            if not gone or not left:
                Path(scratch).unlink(missing_ok=True)
                raise
        else:
            return fd
