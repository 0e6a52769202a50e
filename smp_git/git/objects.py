"""Git objects as bytes: ids, trees, commits; read without a cache."""

from __future__ import annotations

import hashlib
import os
import re
import struct
import zlib
from binascii import hexlify, unhexlify
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final, NamedTuple, NewType

from smp_git.git import libgit2
from smp_git.model.errors import DamagedError
from smp_git.model.memory import CommitId

ObjectId = NewType("ObjectId", str)

BLOB: Final = b"blob"
TREE: Final = b"tree"
COMMIT: Final = b"commit"

FILE_MODE: Final = "100644"
FOLDER_MODE: Final = "40000"

# Opening a pipe waits for whoever writes into it.
READING: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
# An entry of a tree: its mode, its name, and the id in bytes.
ENTRY: Final = re.compile(rb"([^ \0]+) ([^\0]+)\0(.{20})", re.DOTALL)
# The bytes of an entry besides its mode and its name.
_BESIDE: Final = 22
EMPTY_TREE: Final = ObjectId("4b825dc642cb6eb9a060e54bf8d69288fbee4904")


class Child(NamedTuple):
    """One entry of a tree."""

    mode: str
    id: ObjectId


@dataclass(frozen=True, slots=True)
class Object:
    """An object that is to be stored; `id` is its name."""

    type: bytes
    data: bytes
    id: ObjectId = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", object_id(self.type, self.data))


class Commit(NamedTuple):
    """A commit taken apart."""

    id: CommitId
    tree: ObjectId
    parents: tuple[CommitId, ...]
    author: str
    author_email: str
    committer_email: str
    time: datetime
    message: str


class Signature(NamedTuple):
    """An author or committer, with the time."""

    name: str
    email: str
    at: datetime

    def __str__(self) -> str:
        return f"{self.name} <{self.email}> {int(self.at.timestamp())} +0000"


def framed(kind: bytes, data: bytes) -> bytes:
    """Return an object as Git hashes and stores it."""
    return b"%s %d\0%s" % (kind, len(data), data)


def object_id(kind: bytes, data: bytes) -> ObjectId:
    """Return the name of an object."""
    return ObjectId(hashlib.sha1(framed(kind, data), usedforsecurity=False).hexdigest())


def deflate(data: bytes) -> bytes:
    """Return `data` compressed quickly: maintenance packs it better later."""
    return zlib.compress(data, 1)


def stored(data: bytes) -> bytes:
    """Return `data`, at most 65,535 bytes, as a zlib stream that is not compressed."""
    size = len(data)
    head = b"\x78\x01\x01" + struct.pack("<HH", size, size ^ 0xFFFF)
    return b"".join((head, data, struct.pack(">I", zlib.adler32(data))))


def write_tree(children: Mapping[str, Child]) -> bytes:
    """Return the bytes of a tree, sorted as Git demands."""
    return b"".join([row for _, row in sorted(map(_row, children, children.values()))])


@lru_cache(maxsize=4096)
def _row(name: str, child: Child) -> tuple[bytes, bytes]:
    """Return an entry of a tree: its place and its bytes."""
    raw = name.encode("utf-8", "surrogateescape")
    place = raw + b"/" if child.mode == FOLDER_MODE else raw
    return place, b"%s %s\0%s" % (child.mode.encode(), raw, bytes.fromhex(child.id))


def read_tree(data: bytes) -> dict[str, Child]:
    """Return the entries of a tree by name; raise ValueError if it is none."""
    out: dict[str, Child] = {}
    size = 0
    for mode, name, raw in ENTRY.findall(data):
        out[name.decode("utf-8", "surrogateescape")] = Child(mode.decode(), ObjectId(raw.hex()))
        size += len(mode) + len(name) + _BESIDE
    if size != len(data):
        raise ValueError(f"{len(data) - size} bytes of a tree are no entry")
    return out


def write_commit(
    tree: ObjectId,
    parents: tuple[CommitId, ...],
    author: Signature,
    committer: Signature,
    message: str,
) -> bytes:
    """Return the bytes of a commit."""
    head = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    head += [f"author {author}", f"committer {committer}", "", message]
    return "\n".join(head).encode("utf-8", "surrogateescape")


def read_commit(commit_id: CommitId, data: bytes) -> Commit:
    """Return the parts of a commit; raise DamagedError if it is none."""
    head, _, message = data.partition(b"\n\n")
    tree = ""
    parents: list[CommitId] = []
    people: dict[bytes, bytes] = {}
    for line in head.split(b"\n"):
        key, _, value = line.partition(b" ")
        if key == b"tree":
            tree = value.decode()
        elif key == b"parent":
            parents.append(CommitId(value.decode()))
        else:
            people.setdefault(key, value)
    try:
        author, author_email, _ = _person(people[b"author"])
        _, committer_email, time = _person(people[b"committer"])
    except (KeyError, ValueError) as error:
        raise DamagedError(f"commit {commit_id[:12]} cannot be read: {error}") from None
    text = message.decode("utf-8", "replace")
    return Commit(
        commit_id, ObjectId(tree), tuple(parents), author, author_email, committer_email, time, text
    )


class Raw(NamedTuple):
    """A commit's bytes, taken apart as far as they can be put together again."""

    tree: bytes
    parents: tuple[bytes, ...]
    rest: bytes
    message: bytes


def raw_commit(data: bytes) -> Raw:
    """Return a commit's tree, parents, other header lines and message."""
    head, _, message = data.partition(b"\n\n")
    at = 46
    parents = []
    while data.startswith(b"parent ", at):
        parents.append(unhexlify(data[at + 7 : at + 47]))
        at += 48
    return Raw(unhexlify(data[5:45]), tuple(parents), head[at:] + b"\n", message)


# A signature is of the bytes that it signs.
_SIGNATURE: Final = re.compile(
    rb"^(?:gpgsig|gpgsig-sha256|mergetag) [^\n]*\n(?: [^\n]*\n)*", re.MULTILINE
)


def changed_commit(raw: Raw, tree: bytes, parents: Iterable[bytes]) -> bytes:
    """Return the bytes of a commit with another tree and other parents, not signed any more."""
    rest = raw.rest
    if b"gpgsig" in rest or b"mergetag" in rest:
        rest = _SIGNATURE.sub(b"", rest)
    head = b"".join([b"parent %s\n" % hexlify(each) for each in parents])
    return b"tree %s\n%s%s\n%s" % (hexlify(tree), head, rest, raw.message)


def _person(line: bytes) -> tuple[str, str, datetime]:
    name, _, rest = line.decode("utf-8", "replace").rpartition(" <")
    email, _, when = rest.partition("> ")
    seconds = int(when.split(" ")[0])
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError):
        moment = datetime.max.replace(tzinfo=UTC)
    return name, email, moment


# By the numbers that Git's format gives them.
_TYPES: Final = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}


def _unreadable() -> tuple[type[Exception], ...]:
    """Return what reading may raise; only a failure asks, and may load libgit2 for it."""
    return KeyError, ValueError, OSError, zlib.error, libgit2.GitError


class ObjectStore:
    """The objects below a folder, and below those that it borrows from.

    A loose object is read here: libgit2 never comes back from one that was cut off
    (libgit2 #7342), and writes past its buffer for one that lies about its size (#7177).
    While nothing is in packs, a question loads no libgit2 and takes a quarter less.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = f"{folder}"
        # Whether the last object was in a pack: those that are read in a row most often are.
        self._is_packed = False

    @cached_property
    def _all(self) -> libgit2.Odb:
        return libgit2.Odb(self._folder)

    @cached_property
    def _packed(self) -> libgit2.Odb:
        packed = libgit2.Odb()
        packed.add_backend(libgit2.OdbBackendPack(self._folder), 1)
        return packed

    def __contains__(self, name: str) -> bool:
        return name in self._all

    def read(self, name: str) -> tuple[bytes, bytes]:
        """Return the type and bytes of an object, verified; raise DamagedError."""
        if self._is_packed:
            with suppress(*_unreadable()):
                return self._elsewhere(self._packed, name)
        try:
            found = self._loose(name)
            self._is_packed = found is None
            return found or self._elsewhere(self._all, name)
        except _unreadable() as error:
            first = error
        if isinstance(first, KeyError) or not self._is_loose(name):
            raise unreadable(name, first) from first
        try:
            return self._elsewhere(self._packed, name)
        except _unreadable():
            raise unreadable(name, first) from first

    @property
    def looks_into_packs(self) -> bool:
        """Whether an object was not loose, and libgit2 was loaded for it."""
        return not {"_all", "_packed"}.isdisjoint(vars(self))

    def needs_libgit2(self, name: str) -> bool:
        """Whether libgit2 would have to be loaded for an object: one in a pack, the first that is read."""
        return not self.looks_into_packs and not self._is_loose(name)

    def is_whole(self, name: str) -> bool:
        """Whether the file of a loose object holds it."""
        try:
            return self._loose(name) is not None
        except _unreadable():
            return False

    def _is_loose(self, name: str) -> bool:
        return os.access(self._path(name), os.F_OK)

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name[:2]}/{name[2:]}"

    def _loose(self, name: str) -> tuple[bytes, bytes] | None:
        """Return an object that is a file of its own, None if it is not."""
        try:
            fd = os.open(self._path(name), READING)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            stored = os.read(fd, os.fstat(fd).st_size + 1)
        finally:
            os.close(fd)
        whole = zlib.decompress(stored)
        if hashlib.sha1(whole, usedforsecurity=False).hexdigest() != name:
            raise ValueError(name)
        head, _, data = whole.partition(b"\0")
        return head.partition(b" ")[0], data

    def _elsewhere(self, objects: libgit2.Odb, name: str) -> tuple[bytes, bytes]:
        kind, data = objects.read(name)
        return _TYPES[kind], data

    def header(self, name: str) -> tuple[bytes, int]:
        """Return the type and size of an object without reading it; raise DamagedError."""
        try:
            kind, size = self._all.read_header(name)
            return _TYPES[kind], size
        except _unreadable() as error:
            raise unreadable(name, error) from error


def unreadable(name: str, error: Exception) -> DamagedError:
    """Return the error that says what is wrong with an object, and the way out."""
    what = "missing" if isinstance(error, KeyError) else "broken"
    return DamagedError(
        f"object {name[:12]} is {what}",
        hint="smp check names what is concerned; smp repair repairs it from what remains",
    )


class RawObjects:
    """The objects of a repository and of those that it borrows from, as they are at first."""

    def __init__(self, git: Path) -> None:
        self._objects = ObjectStore(git / "objects")

    def header(self, name: bytes) -> tuple[bytes, int]:
        """Return the type and size of an object without reading it; raise DamagedError."""
        return self._objects.header(name.hex())

    def read(self, name: bytes) -> tuple[bytes, bytes]:
        """Return the type and bytes of an object; raise DamagedError."""
        return self._objects.read(name.hex())
