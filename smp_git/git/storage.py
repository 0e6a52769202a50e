"""How new objects reach the object store: loose, or many at once as a pack."""

from __future__ import annotations

import hashlib
import os
import secrets
import struct
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from smp_git.git import disk, locks, packs
from smp_git.git.objects import (
    BLOB,
    COMMIT,
    TREE,
    Object,
    ObjectId,
    deflate,
    framed,
    stored,
)
from smp_git.git.packs import Pack, Packed

# From here on one pack costs less than its objects would as files of their own.
_PACK_FROM: Final = 64
_PACK_TYPES: Final = {COMMIT: 1, TREE: 2, BLOB: 3}
_LARGE_OFFSET: Final = 1 << 31
# Takes one block of the disk, compressed or not.
_SMALL: Final = 4_000
# A gc with --prune=now takes what is being written for litter.
_TRIES: Final = 20


class Written:
    """New objects on the disk whose data is not yet forced out; keeps them open until then."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fds: list[int] = []
        self._folders: set[str] = set()
        # What a record of the write-ahead line may stand for; a pack is more than that.
        self.objects: list[tuple[ObjectId, bytes]] = []
        self.packs: list[Pack] = []
        self.counters: Mapping[str, int] = {}
        self.is_loose = True

    def keep(self, fd: int, folder: str) -> None:
        """Take over an open file in `folder` that must be durable before anything names it."""
        self._fds.append(fd)
        self._folders.add(folder)

    @property
    def size(self) -> int:
        """How many bytes the objects take."""
        return sum(len(data) for _, data in self.objects)

    def keep_object(self, fd: int, folder: str, name: ObjectId, data: bytes) -> None:
        """Take over the open file of a loose object."""
        self.keep(fd, folder)
        self.objects.append((name, data))

    def outlive_gc(self) -> None:
        """See to it that no gc takes what was written before a reference named it."""
        for made in self.packs:
            index = self._folder / f"pack/{made.name}.idx"
            if locks.runs(self._folder.parent) or not index.exists():
                write_pack(self._folder, _renamed(made))
        if self.objects:
            outlive_gc(self._folder, dict(self.objects))

    def keep_files(self, top: Path) -> None:
        """Make the files that stand below `top` durable as well, and their names."""
        self.is_loose = False
        for path in top.rglob("*"):
            self._folders.add(str(path.parent))
            if path.is_file():
                self.keep(os.open(path, os.O_RDONLY), str(path.parent))

    def force(self) -> None:
        """Force the files out, names and all."""
        self.force_data()
        disk.force_names(str(self._folder))

    def force_data(self) -> None:
        """Force the data out; the sync of the file that publishes it makes it durable."""
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


def sweep(folder: Path) -> None:
    """Remove the files without content that a power cut left in the object store at `folder`.

    Nothing that was forced out looks so; a pack and its index go together.
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
    if len(objects) >= _PACK_FROM:
        _store_pack(folder, objects, written)
        return
    for item in objects:
        _store_loose(folder, item, written)


def _store_loose(folder: Path, item: Object, written: Written) -> None:
    name = item.id
    above = f"{folder}/{name[:2]}"
    path = f"{above}/{name[2:]}"
    data = framed(item.type, item.data)
    standing = _standing(path, data) if os.access(path, os.F_OK) else None
    if standing is not None:
        fd, data = standing
    else:
        data = stored(data) if len(data) <= _SMALL else deflate(data)
        fd = _place(path, data, f"{folder}")
    written.keep_object(fd, above, name, data)


def _standing(path: str, data: bytes) -> tuple[int, bytes] | None:
    """Return the file at `path`, open, and its bytes, if it holds the object `data`.

    Whoever wrote it, a dead writer or Git itself, may not have forced it out, and a
    power cut leaves empty files and NULs under names that look taken.
    """
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with suppress(OSError, zlib.error):
        found = os.pread(fd, os.fstat(fd).st_size, 0)
        if zlib.decompress(found) == data:
            # Looks new again, so that a gc at this moment does not take it for litter.
            os.utime(path)
            return fd, found
    os.close(fd)
    return None


def restore(folder: Path, name: ObjectId, data: bytes) -> None:
    """Write the file of a loose object again, unless it holds `data` in some form."""
    path = f"{folder}/{name[:2]}/{name[2:]}"
    standing = _standing(path, zlib.decompress(data))
    os.close(standing[0] if standing is not None else _place(path, data, f"{folder}"))


def outlive_gc(folder: Path, items: Mapping[ObjectId, bytes]) -> None:
    """See to it that no gc takes loose objects that were written before a reference named them.

    With --prune=now it takes what nothing named when it looked. It leaves packs alone that
    were not there when it looked, and whatever it took stands here as it stood on the disk.
    """
    if locks.runs(folder.parent):
        repeat(folder, items)
        return
    for name, data in items.items():
        if not os.access(f"{folder}/{name[:2]}/{name[2:]}", os.F_OK):
            restore(folder, name, data)


def repeat(folder: Path, items: Mapping[ObjectId, bytes]) -> Path:
    """Put loose objects into a new pack as well; return its path without a suffix."""
    objects = (unframed(data) for data in items.values())
    made = packs.pack(Packed(bytes.fromhex(each.id), each.type, each.data) for each in objects)
    return write_pack(folder, _renamed(made))


def _renamed(made: Pack) -> Pack:
    """Return a pack under a name that no gc can know."""
    return made._replace(name=f"pack-{secrets.token_hex(20)}")


def write_pack(folder: Path, made: Pack) -> Path:
    """Put a pack into the object store at `folder`, on the medium; return its path, no suffix."""
    stem = folder / "pack" / made.name
    # The index makes the pack visible, so it comes last.
    for suffix, data in ((".pack", made.pack), (".idx", made.idx)):
        path = stem.with_suffix(suffix)
        # Not in the object store, where a gc may take it for litter.
        disk.replace_durably(path, data, folder.parent / "smp" / "pack.tmp", 0o400)
    return stem


def unframed(data: bytes) -> Object:
    """Return the object that a loose file holds."""
    head, _, body = zlib.decompress(data).partition(b"\0")
    return Object(head.partition(b" ")[0], body)


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


def _store_pack(folder: Path, objects: Sequence[Object], written: Written) -> None:
    data, rows = _pack({item.id: item for item in objects})
    names = b"".join(bytes.fromhex(name) for name, _, _ in rows)
    name = f"pack-{hashlib.sha1(names, usedforsecurity=False).hexdigest()}"
    made = Pack(name, data, _index(rows, data[-20:]))
    # The index makes the pack visible, so it comes last.
    written.is_loose = False
    written.packs.append(made)
    for suffix, part in ((".pack", made.pack), (".idx", made.idx)):
        path = f"{folder}/pack/{name}{suffix}"
        written.keep(_place(path, part, f"{folder}"), f"{folder}/pack")


def _pack(objects: dict[ObjectId, Object]) -> tuple[bytes, list[tuple[ObjectId, int, int]]]:
    """Return a pack, and (id, offset, crc) of each object in it, sorted by id."""
    parts = [b"PACK" + struct.pack(">II", 2, len(objects))]
    offset = len(parts[0])
    rows: list[tuple[ObjectId, int, int]] = []
    for name, item in objects.items():
        entry = _entry_head(_PACK_TYPES[item.type], len(item.data)) + deflate(item.data)
        rows.append((name, offset, zlib.crc32(entry)))
        parts.append(entry)
        offset += len(entry)
    body = b"".join(parts)
    return body + hashlib.sha1(body, usedforsecurity=False).digest(), sorted(rows)


def _entry_head(kind: int, size: int) -> bytes:
    out = bytearray()
    byte = kind << 4 | size & 0x0F
    size >>= 4
    while size:
        out.append(byte | 0x80)
        byte = size & 0x7F
        size >>= 7
    out.append(byte)
    return bytes(out)


def _index(rows: list[tuple[ObjectId, int, int]], pack_sum: bytes) -> bytes:
    """Return the index (version 2) of a pack."""
    counts = [0] * 256
    for name, _, _ in rows:
        counts[int(name[:2], 16)] += 1
    fanout = [sum(counts[: place + 1]) for place in range(256)]
    large = [offset for _, offset, _ in rows if offset >= _LARGE_OFFSET]
    places = iter(range(len(large)))
    offsets = (o if o < _LARGE_OFFSET else _LARGE_OFFSET | next(places) for _, o, _ in rows)
    body = b"\xfftOc" + struct.pack(">I256I", 2, *fanout)
    body += b"".join(bytes.fromhex(name) for name, _, _ in rows)
    body += struct.pack(f">{len(rows)}I", *(crc for _, _, crc in rows))
    body += struct.pack(f">{len(rows)}I", *offsets)
    body += struct.pack(f">{len(large)}Q", *large) + pack_sum
    return body + hashlib.sha1(body, usedforsecurity=False).digest()
