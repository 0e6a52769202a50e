"""The git command, where there is one, untouched by anybody's configuration."""

from __future__ import annotations

import shutil
import subprocess
from binascii import unhexlify
from functools import cache
from pathlib import Path
from typing import Final

from smp_git.git import disk

_ISOLATED: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "pack.writeBitmapHashCache=false",
    "core.fsync=all",
    "pack.threads=1",
)


@cache
def program() -> str | None:
    """Return the git command, or None if there is none."""
    return shutil.which("git")


def arguments(git: Path, *rest: str) -> list[str]:
    """Return a command on a repository."""
    settings = [part for each in _ISOLATED for part in ("-c", each)]
    return [program() or "git", f"--git-dir={git}", *settings, *rest]


def environment() -> dict[str, str]:
    """Return an environment in which nobody's settings reach the command."""
    return {
        "PATH": str(Path(program() or "git").parent),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
    }


def pack_objects(git: Path, names: list[bytes]) -> bool:
    """Write a pack of these objects, reusing what is packed already; return whether it worked."""
    if program() is None:
        return False
    base = git / "objects" / "pack" / "pack"
    done = subprocess.run(  # noqa: S603 - our own arguments
        arguments(git, "pack-objects", "-q", "--window=0", "--delta-base-offset", str(base)),
        input=b"".join(name.hex().encode() + b"\n" for name in names),
        env=environment(),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        return False
    disk.force_folder(base.parent)
    return True


def reachable(git: Path, tips: set[bytes]) -> set[bytes] | None:
    """Return everything that some commits and tags reach, None if the command cannot say."""
    if program() is None:
        return None
    done = subprocess.run(  # noqa: S603 - our own arguments
        arguments(git, "rev-list", "--objects", "--no-object-names", "--stdin"),
        input=b"".join(tip.hex().encode() + b"\n" for tip in tips),
        env=environment(),
        capture_output=True,
        check=False,
    )
    return None if done.returncode else set(map(unhexlify, done.stdout.split()))
