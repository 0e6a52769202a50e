"""Looks for byte strings in a folder, inside and outside Git's objects; shares no code with smp.

    python tests/independent_scan.py FOLDER TEXT...

Walks every regular file below FOLDER byte by byte; inflates every loose object with zlib;
unpacks every pack and every bundle with `git unpack-objects` into an empty repository and
inflates what comes out; opens what is compressed (gzip, bzip2, xz, zip, tar), one in the
other; and lists every object by `git cat-file`. Prints where a text was found and exits
with 1 if it was.

`scan_words` finds a text of several short lines wherever they are broken or set in, and
`unreachable` names the objects that nothing reaches.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import stat
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path


def scan(folder: Path, texts: list[bytes]) -> list[str]:
    """Return the places under `folder` in which one of `texts` stands."""
    return _found(folder, lambda data: any(text in data for text in texts))


def scan_words(folder: Path, text: str) -> list[str]:
    """Return the places in which the words of a text stand one after the other."""
    words = [re.escape(word) for word in re.findall(r"\w+", text)]
    gap = rb"(?:[\W_]|\\[nrt])+"
    wanted = re.compile(gap.join(word.encode() for word in words), re.IGNORECASE)
    return _found(folder, lambda data: wanted.search(data) is not None)


def _found(folder: Path, holds: Callable[[bytes], bool]) -> list[str]:
    found = [place for place, data in everything(folder) if holds(data)]
    return found + [str(path) for path in _below(folder) if holds(os.fsencode(path.name))]


def everything(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield every file, every object and everything compressed, with its bytes."""
    for path in _below(folder):
        try:
            if not stat.S_ISREG(path.lstat().st_mode):
                continue
            data = path.read_bytes()
        except FileNotFoundError:
            # An open session takes its locks and half-made files away meanwhile.
            continue
        yield str(path), data
        yield from inflated(str(path), data)
    for git in sorted(folder.rglob(".git")):
        yield from listed(git)


def _below(folder: Path) -> list[Path]:
    """Return what is below a folder, itself and links' targets left out."""
    found = []
    for above, folders, files in os.walk(folder):
        found += [Path(above, name) for name in (*folders, *files)]
    return sorted(found)


def inflated(place: str, data: bytes, depth: int = 0) -> Iterator[tuple[str, bytes]]:
    """Yield what is compressed in some bytes, and what is compressed in that."""
    for name, inside in _inside(place, data):
        yield name, inside
        if depth < 4:
            yield from inflated(name, inside, depth + 1)


def _inside(place: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    for start, opened in STREAMS.items():
        if data.startswith(start):
            try:
                yield f"{place} (inflated)", opened(data)
            except (OSError, EOFError, zlib.error, lzma.LZMAError):
                continue
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield from ((f"{place}: {name}", archive.read(name)) for name in archive.namelist())
    if data[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            for member in tar:
                inside = tar.extractfile(member) if member.isreg() else None
                yield f"{place}: {member.name}", inside.read() if inside else b""
    if data.startswith((b"PACK", b"# v2 git bundle\n", b"# v3 git bundle\n")):
        yield from packed(place, data[data.index(b"PACK") :])


STREAMS: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ": lzma.decompress,
    b"\x78": lambda data: zlib.decompress(data),
}


def packed(place: str, pack: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield every object of a pack."""
    with tempfile.TemporaryDirectory() as scratch:
        git(["init", "-q", "--bare", scratch])
        git(["--git-dir", scratch, "unpack-objects", "-q"], pack)
        for path in Path(scratch).glob("objects/??/*"):
            yield f"{place}: {path.parent.name}{path.name}", zlib.decompress(path.read_bytes())


def listed(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield every object that Git itself knows of."""
    out = git(["--git-dir", str(folder), "cat-file", "--batch-all-objects", "--batch"])
    at = 0
    while at < len(out):
        end = out.index(b"\n", at)
        name, _, size = out[at:end].split()
        yield f"{folder}: {name.decode()}", out[end + 1 : end + 1 + int(size)]
        at = end + 2 + int(size)


def unreachable(folder: Path) -> list[str]:
    """Return the objects of a session that no reference, reflog or index reaches."""
    out = git(["-C", str(folder), "fsck", "--unreachable", "--no-progress", "--full"])
    return [line for line in out.decode().splitlines() if line.startswith("unreachable ")]


def git(arguments: list[str], data: bytes = b"") -> bytes:
    done = subprocess.run(["git", *arguments], input=data, capture_output=True, check=True)
    return done.stdout


if __name__ == "__main__":
    places = scan(Path(sys.argv[1]), [text.encode() for text in sys.argv[2:]])
    print("\n".join(places))
    sys.exit(1 if places else 0)
