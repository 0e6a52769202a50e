"""Every object of a repository, inflated, one after the other."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Final, NamedTuple

from smp_git.git import command, incoming, packs
from smp_git.git.repository import Repository
from smp_git.model.errors import DamagedError, SmpError
from smp_git.remove.history.files import OVERLAP

# A larger object comes in pieces.
_LARGEST: Final = 32 << 20


class Piece(NamedTuple):
    """An object, or a piece of a large one: then the first has the id, the others none."""

    name: bytes
    kind: bytes
    data: bytes


def objects(repository: Repository) -> Iterator[Piece]:
    """Yield every object of a session, loose, packed or fetched by a sync that is under way."""
    if command.program() is not None:
        yield from _by_command(repository.git, "--batch-all-objects", "--unordered")
    else:
        for name in repository.everything():
            kind, data = repository.raw(name)
            yield Piece(name.hex().encode(), kind, data)
    for place in sorted((repository.git / incoming.PLACE).glob("*/.git")):
        yield from _coming_in(place)


def some(git: Path, names: Iterable[bytes]) -> Iterator[Piece]:
    """Yield some objects of a repository."""
    if command.program() is None:
        repository = Repository(git.parent)
        try:
            yield from (Piece(name.hex().encode(), *repository.raw(name)) for name in names)
        finally:
            repository.close()
        return
    with tempfile.TemporaryFile() as asked:
        asked.writelines(name.hex().encode() + b"\n" for name in names)
        asked.seek(0)
        yield from _by_command(git, asked=asked)


def _coming_in(git: Path) -> Iterator[Piece]:
    """Yield the objects that a sync under way has fetched; they may go meanwhile."""
    try:
        names = [name for name, _ in packs.loose(git / "objects")]
        for index in packs.indexes(git / "objects"):
            names += packs.names(index)
        if names:
            yield from some(git, names)
    except (FileNotFoundError, SmpError):
        # Who fetched it removes it.
        if git.is_dir() and (git / "objects").is_dir():
            raise


def _by_command(git: Path, *rest: str, asked: IO[bytes] | None = None) -> Iterator[Piece]:
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


def _parsed(out: IO[bytes]) -> Iterator[Piece]:
    while head := out.readline():
        name, kind, *size = head.split()
        if size:
            yield from _pieces(out, name, kind, int(size[0]))


def _pieces(out: IO[bytes], name: bytes, kind: bytes, size: int) -> Iterator[Piece]:
    """Yield an object, at once unless it is very large."""
    data = out.read(min(size, _LARGEST))
    left = size - len(data)
    yield Piece(name, kind, data)
    while left and data:
        end, data = data[-OVERLAP:], out.read(min(left, _LARGEST))
        left -= len(data)
        yield Piece(b"", kind, end + data)
    out.read(1)
