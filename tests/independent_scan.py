"""Looks for byte strings in a folder, inside and outside Git's objects; shares no code with smp.

    python tests/independent_scan.py FOLDER TEXT...

Walks every file below FOLDER byte by byte; inflates every loose object with zlib;
unpacks every pack with `git unpack-objects` into an empty repository and inflates what
comes out; and lists every object by `git cat-file`. Prints where a text was found and
exits with 1 if it was.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path


def scan(folder: Path, texts: list[bytes]) -> list[str]:
    """Return the places under `folder` in which one of `texts` stands."""
    found = [place for place, data in everything(folder) if any(text in data for text in texts)]
    names = [str(p) for p in folder.rglob("*") if any(t in os.fsencode(p.name) for t in texts)]
    return found + names


def everything(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield every file, every loose object and every packed object with its bytes."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        data = path.read_bytes()
        yield str(path), data
        if path.parent.parent.name == "objects" and len(path.parent.name) == 2:
            yield f"{path} (inflated)", zlib.decompress(data)
        if path.suffix == ".pack":
            yield from packed(path)
    for git in sorted(folder.rglob(".git")):
        yield from listed(git)


def packed(pack: Path) -> Iterator[tuple[str, bytes]]:
    """Yield every object of a pack."""
    with tempfile.TemporaryDirectory() as scratch:
        git(["init", "-q", "--bare", scratch])
        git(["--git-dir", scratch, "unpack-objects", "-q"], pack.read_bytes())
        for path in Path(scratch).glob("objects/??/*"):
            yield f"{pack}: {path.parent.name}{path.name}", zlib.decompress(path.read_bytes())


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
