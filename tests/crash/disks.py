"""Disks to break: file systems in a file or in memory, mounted where the machine allows it."""

from __future__ import annotations

import filecmp
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest


def run(*command: object) -> None:
    """Run a command of the system; skip the test if the machine does not allow it."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{command[0]} is not possible here: {done.stderr.strip()[:100]}")


@contextmanager
def mounted(place: Path, *options: object) -> Iterator[Path]:
    """Mount something at `place` for a while."""
    if shutil.which("mount") is None:
        pytest.skip("there is no mount command")
    place.mkdir(exist_ok=True)
    run("mount", *options, place)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


class FileSystem(NamedTuple):
    """A kind of file system: how it is made and mounted, and what mends it after a cut."""

    name: str
    size: int
    make: tuple[str, ...]
    quiet: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    repair: tuple[str, ...] = ()

    def image(self, file: Path) -> Path:
        """Make a file that holds an empty one."""
        if shutil.which(self.make[0]) is None:
            pytest.skip(f"there is no {self.make[0]} here")
        with file.open("wb") as out:
            out.truncate(self.size)
        run(*self.make, file)
        return file

    def mounted(self, place: Path, file: Path) -> AbstractContextManager[Path]:
        """Mount one so that it writes as little of itself as it may."""
        return mounted(place, "-o", ",".join(("loop", *self.quiet)), file)

    def after_a_cut(self, place: Path, copy: Path) -> AbstractContextManager[Path]:
        """Mount a copy as a machine does that starts again."""
        if self.repair:
            subprocess.run([*self.repair, str(copy)], check=False, capture_output=True)
        return mounted(place, "-o", ",".join(("loop", *self.again)), copy)


_E2FSCK: Final = ("e2fsck", "-fy")
FILE_SYSTEMS: Final = (
    # The journal itself brings nothing out while the copy is made.
    FileSystem("ext4", 64 << 20, ("mkfs.ext4", "-q", "-F"), ("commit=300",), (), _E2FSCK),
    FileSystem(
        "ext4-without-journal",
        64 << 20,
        ("mkfs.ext4", "-q", "-F", "-O", "^has_journal"),
        repair=_E2FSCK,
    ),
    FileSystem("xfs", 300 << 20, ("mkfs.xfs", "-q", "-f"), again=("nouuid",)),
    FileSystem("btrfs", 128 << 20, ("mkfs.btrfs", "-q", "-f", "--mixed"), ("commit=300",)),
)


def copied(medium: Path, copy: Path) -> None:
    """Copy a mounted image as it is at one moment, nothing forced out for it.

    The kernel may write at any time, and a copy made meanwhile is of no moment at all.
    """
    for _ in range(50):
        shutil.copyfile(medium, copy)
        if filecmp.cmp(medium, copy, shallow=False):
            return
    pytest.fail("the system never stopped writing to the image")
