"""Compressed copies looked into: archives, bundles, packs and objects of other repositories.

Everything is read in pieces and up to a bound, so that neither a large file nor one that
was made to swell takes the memory or the day.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import shutil
import struct
import subprocess
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, NamedTuple

from smp_git.git import command, layout, storage
from smp_git.git.objects import BLOB
from smp_git.model.errors import SmpError
from smp_git.remove.history import reading
from smp_git.remove.history.reading import OVERLAP, PIECE

HEAD: Final = 512
# So much is inflated of everything together, and so large may be what Git takes apart.
MOST_BYTES: Final = 512 << 20
_LARGEST_PACK: Final = 256 << 20
_LARGEST_NESTED: Final = 32 << 20
_DEEPEST: Final = 3
_LARGEST_DICTIONARY: Final = 96 << 20
_BUNDLE: Final = re.compile(rb"# v[23] git bundle\n")
_LONGEST_HEADER: Final = 1 << 20
_LOOSE: Final = re.compile(r"(?:.*/)?[0-9a-f]{2}/[0-9a-f]{38}")
_TAR: Final = slice(257, 262)
# Where a zip archive says how long the list of its files is; with 64 bits it says -1 there.
_ZIP_TAIL: Final = (1 << 16) + 22
_ZIP_END: Final = b"PK\x05\x06"
_LARGEST_LIST: Final = 8 << 20
# What this program does not open.
_CLOSED: Final = {
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!\x1a\x07": "a rar archive",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"\x04\x22\x4d\x18": "an lz4 file",
    b"\x1f\x9d": "a compress file",
    b"%PDF-": "a PDF",
    b"Salted__": "an encrypted file",
    b"age-encryption.org/": "an encrypted file",
}
_BROKEN: Final = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError,
    RuntimeError, NotImplementedError, ValueError, struct.error, KeyError, MemoryError,
)  # fmt: skip


class ClosedError(Exception):
    """The content of a file is not looked into, or not all of it; says why."""


class Inner(NamedTuple):
    """Bytes that are inside a compressed file: the type of a Git object, and a piece of it."""

    kind: bytes
    data: bytes


def is_compressed(path: str, head: bytes) -> bool:
    """Whether a file that begins so holds what a search of its bytes would not see."""
    return _opener(path, head) is not None


class Unpacker:
    """Looks into compressed files; one bound is for all of them together."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._left = MOST_BYTES

    def inside(self, path: str, file: IO[bytes], depth: int = 0) -> Iterator[Inner]:
        """Yield what is in a compressed file; raise ClosedError for what cannot be looked into."""
        head = file.read(HEAD)
        file.seek(0)
        opener = _opener(path, head)
        if opener is None:
            return
        if depth >= _DEEPEST:
            raise ClosedError("an archive in an archive, too deep")
        if isinstance(opener, str):
            raise ClosedError(opener)
        try:
            yield from opener(self, file, depth)
        except _BROKEN as error:
            raise ClosedError(f"an archive that cannot be read ({type(error).__name__})") from error

    def _take(self, size: int) -> None:
        """Count bytes; raise ClosedError when it is too much."""
        self._left -= size
        if self._left < 0:
            raise ClosedError(f"only in part: more than {MOST_BYTES >> 20} MB are compressed here")

    # Archives

    def gzip(self, file: IO[bytes], depth: int) -> Iterator[Inner]:
        """Yield what is in a gzip file."""
        return self._inflated(lambda: io.BufferedReader(gzip.GzipFile(fileobj=file)), file, depth)

    def bzip2(self, file: IO[bytes], depth: int) -> Iterator[Inner]:
        """Yield what is in a bzip2 file."""
        return self._inflated(lambda: bz2.BZ2File(file), file, depth)

    def xz(self, file: IO[bytes], depth: int) -> Iterator[Inner]:
        """Yield what is in an xz file."""
        return self._inflated(lambda: io.BufferedReader(_Xz(file)), file, depth)

    def _inflated(
        self, make: Callable[[], IO[bytes]], file: IO[bytes], depth: int
    ) -> Iterator[Inner]:
        with make() as inside:
            is_tar = inside.read(HEAD)[_TAR] == b"ustar"
        file.seek(0)
        with make() as inside:
            yield from self.tar(inside, depth) if is_tar else self._member(inside, "", depth)

    def tar(self, file: IO[bytes], depth: int) -> Iterator[Inner]:
        """Yield the names and files of a tar archive."""
        with tarfile.open(fileobj=file, mode="r|") as archive:
            for member in archive:
                names = f"{member.name}\n{member.linkname}"
                yield Inner(BLOB, names.encode("utf-8", "surrogateescape"))
                inside = archive.extractfile(member) if member.isreg() else None
                if inside is not None:
                    yield from self._member(inside, member.name, depth)

    def zip(self, file: IO[bytes], depth: int) -> Iterator[Inner]:
        """Yield the names and files of a zip archive."""
        _check_number(file)
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                yield Inner(
                    BLOB, member.filename.encode("utf-8", "replace") + b"\n" + member.comment
                )
                if not member.is_dir():
                    with archive.open(member) as inside:
                        yield from self._member(inside, member.filename, depth)

    def _member(self, inside: IO[bytes], name: str, depth: int) -> Iterator[Inner]:
        """Yield a file of an archive in pieces that overlap, or what is compressed in it."""
        head = inside.read(HEAD)
        if is_compressed(name, head):
            whole = head + inside.read(_LARGEST_NESTED)
            if len(whole) > _LARGEST_NESTED:
                raise ClosedError("only in part: it holds a large archive")
            self._take(len(whole))
            yield from self.inside(name, io.BytesIO(whole), depth + 1)
        else:
            yield from self._pieces(BLOB, head + inside.read(PIECE), inside.read)

    def _pieces(self, kind: bytes, piece: bytes, read: Callable[[int], bytes]) -> Iterator[Inner]:
        while piece:
            self._take(len(piece))
            yield Inner(kind, piece)
            more = read(PIECE)
            piece = piece[-OVERLAP:] + more if more else b""

    # Git's own forms

    def loose(self, file: IO[bytes], _: int) -> Iterator[Inner]:
        """Yield a loose object of Git."""
        stream = zlib.decompressobj()

        def read(size: int) -> bytes:
            data = stream.unconsumed_tail or file.read(PIECE)
            return stream.decompress(data, size) if data else b""

        head, _sep, body = read(PIECE).partition(b"\0")
        yield from self._pieces(head.partition(b" ")[0], body, read)

    def bundle(self, file: IO[bytes], depth: int) -> Iterator[Inner]:
        """Yield the lines of a bundle, and the objects of its pack."""
        read = 0
        while (line := file.readline(_LONGEST_HEADER)) not in (b"\n", b""):
            read += len(line)
            yield Inner(BLOB, line)
            if read > _LONGEST_HEADER:
                raise ClosedError("a bundle that cannot be read")
        yield from self.pack(file, depth)

    def pack(self, file: IO[bytes], _: int) -> Iterator[Inner]:
        """Let Git take a pack apart beside the session; what it lacks is looked for in the session."""
        with _repository(self._scratch) as git:
            pack = git / "objects/pack/given.tmp"
            with pack.open("wb") as out:
                while part := file.read(PIECE):
                    if out.tell() + len(part) > _LARGEST_PACK:
                        raise ClosedError(f"a pack of more than {_LARGEST_PACK >> 20} MB")
                    out.write(part)
            _index(git, pack)
            pack.unlink()
            names = [
                name for index in storage.indexes(git / "objects") for name in storage.names(index)
            ]
            for _name, kind, data in reading.some(git, names):
                self._take(len(data))
                yield Inner(kind, data)


_Opener = Callable[[Unpacker, IO[bytes], int], Iterator[Inner]]
_OPENERS: Final[dict[bytes, _Opener]] = {
    b"\x1f\x8b": Unpacker.gzip,
    b"BZh": Unpacker.bzip2,
    b"\xfd7zXZ\0": Unpacker.xz,
    b"PK\x03\x04": Unpacker.zip,
    b"PK\x05\x06": Unpacker.zip,
    b"PACK": Unpacker.pack,
}


def _opener(path: str, head: bytes) -> _Opener | str | None:
    """Return what opens a file that begins so, or the word for what nothing here opens."""
    for start, opener in _OPENERS.items():
        if head.startswith(start):
            return opener
    if _BUNDLE.match(head):
        return Unpacker.bundle
    if head[_TAR] == b"ustar":
        return Unpacker.tar
    if _LOOSE.fullmatch(path) and head[:1] == b"\x78":
        return Unpacker.loose
    return next((what for start, what in _CLOSED.items() if head.startswith(start)), None)


class _Xz(io.RawIOBase):
    """An xz stream, with a bound on what its dictionary takes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._stream = lzma.LZMADecompressor(memlimit=_LARGEST_DICTIONARY)

    def readable(self) -> bool:
        return True

    def readinto(self, into: object) -> int:
        view = memoryview(into)  # type: ignore[arg-type]
        while not self._stream.eof:
            fresh = self._file.read(1 << 16) if self._stream.needs_input else b""
            data = self._stream.decompress(fresh, len(view))
            if data:
                view[: len(data)] = data
                return len(data)
            if not fresh and self._stream.needs_input:
                raise EOFError
        return 0


def _check_number(file: IO[bytes]) -> None:
    """Raise ClosedError if listing a zip archive would take the memory."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - _ZIP_TAIL))
    tail = file.read(_ZIP_TAIL)
    file.seek(0)
    at = tail.rfind(_ZIP_END)
    if at >= 0 and int.from_bytes(tail[at + 12 : at + 16], "little") > _LARGEST_LIST:
        raise ClosedError("an archive of very many files")


def _index(git: Path, pack: Path) -> None:
    with pack.open("rb") as file:
        done = subprocess.run(  # noqa: S603 - our own arguments
            command.arguments(git, "index-pack", "--stdin", "--fix-thin"),
            stdin=file,
            env=command.environment(),
            capture_output=True,
            check=False,
        )
    if done.returncode:
        raise ClosedError("a pack or bundle that is not whole")


@contextmanager
def _repository(scratch: Path) -> Iterator[Path]:
    """Yield an empty repository below `scratch`, which is the folder `smp` of a session's `.git`."""
    git = Path(tempfile.mkdtemp(prefix="opened-", dir=scratch))
    try:
        layout.create_scratch(git, [scratch.parent / "objects"])
        yield git
    except SmpError as error:
        raise ClosedError("a pack or bundle that cannot be read") from error
    finally:
        shutil.rmtree(git, ignore_errors=True)
