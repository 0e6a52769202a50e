"""Raw trees taken apart, and all objects and files of a session, read a piece at a time."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import tempfile
from binascii import unhexlify
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Final, NamedTuple

from smp_git.git import command, layout, references, storage
from smp_git.git.objects import COMMIT, ENTRY, TREE, raw_commit
from smp_git.git.repository import Repository
from smp_git.model.errors import DamagedError, SmpError
from smp_git.model.ids import INDEX

TAG: Final = b"tag"
# An object's type and bytes.
Read = Callable[[bytes], tuple[bytes, bytes]]
FOLDER: Final = b"40000"
INDEX_NAME: Final = INDEX.encode()
_ID_SIZE: Final = 20
_PIECE = re.compile(rb"\d+ [^\0]+\0.{20}", re.DOTALL)


def peeled(read: Read, name: bytes) -> tuple[bytes, bytes]:
    """Return the type and bytes of what a name leads to behind every tag."""
    kind, data = read(name)
    while kind == TAG:
        kind, data = read(unhexlify(data[7:47]))
    return kind, data


class TreeEntry(NamedTuple):
    """One entry of a raw tree."""

    mode: bytes
    name: bytes
    id: bytes


def entries(tree: bytes) -> list[TreeEntry]:
    """Return the entries of a raw tree, in order.

    In 0.4 of the time that `read_tree` takes, for a page of 100, and in bytes: each
    tree of all of history is taken apart by it.
    """
    return [TreeEntry(*each) for each in ENTRY.findall(tree)]


def raw_entries(tree: bytes) -> list[bytes]:
    """Return the entries of a raw tree as they are in it."""
    return _PIECE.findall(tree)


def read_entry(piece: bytes) -> TreeEntry:
    """Return one entry taken apart."""
    mode, _, rest = piece[: -_ID_SIZE - 1].partition(b" ")
    return TreeEntry(mode, rest, piece[-_ID_SIZE:])


def children(tree: bytes) -> list[bytes]:
    """Return the ids that a raw tree names."""
    return [each[2] for each in ENTRY.findall(tree)]


def joined(items: list[TreeEntry]) -> bytes:
    """Return the raw tree of entries that are in order."""
    return b"".join(b"%s %s\0%s" % item for item in items)


# More than this is read in pieces; each begins with the end of the one before.
PIECE: Final = 8 << 20
OVERLAP: Final = 64 << 10
# Git's own: through it `git status` asks a program that watches the folder.
_OF_GIT: Final = frozenset((".git/fsmonitor--daemon.ipc",))
_KINDS: Final = (
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)
_FLAGS: Final = (
    os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
)  # fmt: skip


class Unread(NamedTuple):
    """A place that was not looked into, and why."""

    path: str
    why: str


class Walk:
    """Every regular file below a folder; what is none is noted, what went meanwhile is not."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.unread: list[Unread] = []

    def __iter__(self) -> Iterator[str]:
        """Yield the path of each regular file, from the folder on."""
        stack = [""]
        while stack:
            above = stack.pop()
            for entry in self._listed(above):
                path = above + entry.name
                try:
                    mode = entry.stat(follow_symlinks=False).st_mode
                except FileNotFoundError:
                    continue
                except OSError as error:
                    self.skip(path, f"cannot be looked at ({error.strerror})")
                    continue
                if stat.S_ISDIR(mode):
                    stack.append(f"{path}/")
                elif stat.S_ISREG(mode):
                    yield path
                else:
                    self._note(path, mode)

    def _listed(self, above: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(f"{self._folder}/{above}") as entries:
                return sorted(entries, key=_name)
        except FileNotFoundError:
            return []
        except OSError as error:
            self.skip(above, f"a folder that cannot be listed ({error.strerror})")
            return []

    def _note(self, path: str, mode: int) -> None:
        if stat.S_ISLNK(mode):
            if not self._leads_back(path):
                self.skip(path, "a link to elsewhere")
        elif path not in _OF_GIT:
            self.skip(
                path, next((what for fits, what in _KINDS if fits(mode)), "not a regular file")
            )

    def _leads_back(self, path: str) -> bool:
        """Whether a link leads to what is walked anyway, or to nothing."""
        target = os.path.realpath(f"{self._folder}/{path}")
        top = os.path.realpath(self._folder)
        return target.startswith(f"{top}{os.sep}") or not os.path.lexists(target)

    def skip(self, path: str, why: str) -> None:
        """Note a place that is not looked into."""
        self.unread.append(Unread(path, why))

    def pieces(self, path: str) -> Iterator[bytes]:
        """Yield the bytes of a file, at once or in pieces that overlap; nothing if it is gone."""
        try:
            fd = os.open(f"{self._folder}/{path}", _FLAGS)
        except FileNotFoundError:
            return
        except OSError as error:
            self.skip(path, f"a file that cannot be read ({error.strerror})")
            return
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                yield from pieces(fd)
        except OSError as error:
            self.skip(path, f"a file that cannot be read ({error.strerror})")
        finally:
            os.close(fd)


def opened(path: Path) -> IO[bytes]:
    """Return a regular file, open to read; raise OSError for what is none by now."""
    fd = os.open(path, _FLAGS)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(0, "not a regular file")
    return os.fdopen(fd, "rb")


def pieces(fd: int) -> Iterator[bytes]:
    """Yield the bytes of an open file in pieces that overlap."""
    end = b""
    while True:
        piece = _filled(fd)
        if piece or not end:
            yield end + piece
        if len(piece) < PIECE:
            return
        end = piece[-OVERLAP:]


def _filled(fd: int) -> bytes:
    """Return the next piece, whole unless the file ends."""
    found: list[bytes] = []
    left = PIECE
    while left and (part := os.read(fd, left)):
        found.append(part)
        left -= len(part)
    return b"".join(found)


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name


# A larger object comes in pieces.
_LARGEST: Final = 32 << 20


class FilePiece(NamedTuple):
    """An object, or a piece of a large one: then the first has the id, the others none."""

    name: bytes
    kind: bytes
    data: bytes


def objects(repository: Repository) -> Iterator[FilePiece]:
    """Yield every object of a session, loose, packed or fetched by a sync that is under way."""
    yield from _by_command(repository.git, "--batch-all-objects", "--unordered")
    for place in sorted((repository.git / layout.PLACE).glob("*/.git")):
        yield from _coming_in(place, repository.git)


def some(git: Path, names: Iterable[bytes]) -> Iterator[FilePiece]:
    """Yield some objects of a repository."""
    with tempfile.TemporaryFile() as asked:
        asked.writelines(name.hex().encode() + b"\n" for name in names)
        asked.seek(0)
        yield from _by_command(git, asked=asked)


def _coming_in(git: Path, session: Path) -> Iterator[FilePiece]:
    """Yield the objects that a sync under way has fetched, but those that the session has too.

    They may go meanwhile.
    """
    try:
        names = set(storage.stored_names(git / "objects"))
        if names:
            yield from some(git, names.difference(storage.stored_names(session / "objects")))
    except (FileNotFoundError, SmpError):
        # Who fetched it removes it.
        if git.is_dir() and (git / "objects").is_dir():
            raise


def _by_command(git: Path, *rest: str, asked: IO[bytes] | None = None) -> Iterator[FilePiece]:
    with subprocess.Popen(  # noqa: S603 - our own arguments
        command.arguments(git, "cat-file", "--batch", "--buffer", *rest),
        env=command.environment(),
        stdin=asked or subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=1 << 20,
    ) as process:
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        try:
            yield from _parsed(process.stdout)
        finally:
            process.stdout.close()
        if process.wait():
            raise DamagedError(
                f"not every object of session {git.parent.name} can be read",
                hint="smp check names what is affected",
            )


def _parsed(out: IO[bytes]) -> Iterator[FilePiece]:
    while head := out.readline():
        name, kind, *size = head.split()
        if size:
            yield from _pieces(out, name, kind, int(size[0]))


def _pieces(out: IO[bytes], name: bytes, kind: bytes, size: int) -> Iterator[FilePiece]:
    """Yield an object, at once unless it is very large."""
    data = out.read(min(size, _LARGEST))
    left = size - len(data)
    yield FilePiece(name, kind, data)
    while left and data:
        end, data = data[-OVERLAP:], out.read(min(left, _LARGEST))
        left -= len(data)
        yield FilePiece(b"", kind, end + data)
    out.read(1)


class Reached(NamedTuple):
    """An object that a history reaches, by type, or an entry of a tree, by mode.

    `data` are the bytes of a commit or tag, and the name of an entry, which has a path.
    """

    kind: bytes
    id: bytes
    data: bytes = b""
    path: str = ""


def tips_of(repository: Repository) -> dict[str, bytes]:
    """Return what every reference and every entry of the stash names."""
    found = {name: unhexlify(tip) for name, tip in references.read(repository.git).items()}
    entries = references.read_stash(repository.git)
    return found | {f"stash@{{{n}}}": unhexlify(each.id) for n, each in enumerate(entries)}


def reached(read: Read, tips: Iterable[bytes]) -> Iterator[Reached]:
    """Yield tags and commits, each once, and entries of their trees, each once at each path."""
    stack, seen, below = list(tips), set[bytes](), set[tuple[str, bytes]]()
    while stack:
        name = stack.pop()
        if name in seen:
            continue
        seen.add(name)
        kind, data = read(name)
        yield Reached(kind, name, data)
        if kind == TAG:
            stack.append(unhexlify(data[7:47]))
        elif kind == COMMIT:
            raw = raw_commit(data)
            stack += raw.parents
            yield from _entries_below(read, raw.tree, below)


def _entries_below(read: Read, root: bytes, seen: set[tuple[str, bytes]]) -> Iterator[Reached]:
    stack = [("", root)]
    while stack:
        prefix, tree = stack.pop()
        if (prefix, tree) in seen:
            continue
        seen.add((prefix, tree))
        yield Reached(TREE, tree)
        for entry in entries(read(tree)[1]):
            path = prefix + entry.name.decode("utf-8", "surrogateescape")
            if entry.mode == FOLDER:
                yield Reached(FOLDER, entry.id, entry.name, path)
                stack.append((f"{path}/", entry.id))
            elif (path, entry.id) not in seen:
                seen.add((path, entry.id))
                yield Reached(entry.mode, entry.id, entry.name, path)
