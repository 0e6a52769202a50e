"""The files below a folder, read without harm: only regular ones, without a wait, a piece at a time."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, NamedTuple

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
            self.skip(path, next((what for fits, what in _KINDS if fits(mode)), "no regular file"))

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
        raise OSError(0, "no regular file")
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
