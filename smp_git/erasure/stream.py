"""Every object of a repository, inflated, one after the other."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from smp_git.errors import DamagedError
from smp_git.git import command
from smp_git.git.repository import Repository


def objects(repository: Repository) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield the id (in hexadecimal), type and bytes of every object, loose or packed."""
    if command.program() is not None:
        yield from _by_command(repository.git)
        return
    for name in repository.everything():
        kind, data = repository.raw(name)
        yield name.hex().encode(), kind, data


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
