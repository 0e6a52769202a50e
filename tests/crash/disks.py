"""Disks to break: file systems in a file or in memory, mounted where the machine allows it."""

from __future__ import annotations

import filecmp
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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


def image(file: Path, *options: str) -> Path:
    """Make a file that holds an empty ext4."""
    with file.open("wb") as out:
        out.truncate(64 << 20)
    run("mkfs.ext4", "-q", "-F", *options, file)
    return file


def copied(medium: Path, copy: Path) -> None:
    """Copy a mounted image as it is at one moment, nothing forced out for it.

    The kernel may write at any time, and a copy made meanwhile is of no moment at all.
    """
    for _ in range(50):
        shutil.copyfile(medium, copy)
        if filecmp.cmp(medium, copy, shallow=False):
            return
    pytest.fail("the system never stopped writing to the image")
