"""Every object of a repository, inflated, one after the other."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from smp_git import incoming
from smp_git.errors import DamagedError, SmpError
from smp_git.git import command, packs
from smp_git.git.repository import Repository

# So many objects are read at a time.
_BLOCK: Final = 1_024


def objects(repository: Repository) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield the id (in hexadecimal), type and bytes of every object, loose, packed or fetched."""
    if command.program() is not None:
        yield from _by_command(repository.git)
    else:
        for name in repository.everything():
            kind, data = repository.raw(name)
            yield name.hex().encode(), kind, data
    for place in sorted((repository.git / incoming.PLACE).glob("*/.git")):
        yield from _coming_in(place)


def _coming_in(git: Path) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield the objects that a sync under way has fetched; they may go meanwhile."""
    try:
        names = [name for name, _ in packs.loose(git / "objects")]
        for index in packs.indexes(git / "objects"):
            names += packs.names(index)
    except FileNotFoundError:
        # Who fetched it removes it.
        return
    for at in range(0, len(names), _BLOCK):
        for name, (kind, data) in _read(git, names[at : at + _BLOCK]).items():
            yield name.hex().encode(), kind, data


def _read(git: Path, names: list[bytes]) -> dict[bytes, tuple[bytes, bytes]]:
    found = command.objects(git, names)
    missing = [name for name in names if name not in found]
    try:
        if missing:
            repository = Repository(git.parent)
            found |= {name: repository.raw(name) for name in missing}
    except SmpError:
        if git.is_dir():
            raise
    return found


def _by_command(git: Path) -> Iterator[tuple[bytes, bytes, bytes]]:
    asked = ("cat-file", "--batch-all-objects", "--batch", "--buffer", "--unordered")
    with subprocess.Popen(  # noqa: S603 - our own arguments
        command.arguments(git, *asked),
        env=command.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=1 << 20,
    ) as process:
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        yield from _parsed(process.stdout)
        process.stdout.close()
        if process.wait():
            raise DamagedError(
                f"not every object of session {git.parent.name} can be read",
                hint="smp check names what is affected",
            )


def _parsed(out: IO[bytes]) -> Iterator[tuple[bytes, bytes, bytes]]:
    while head := out.readline():
        name, kind, size = head.split()
        data = out.read(int(size) + 1)
        yield name, kind, data[:-1]
