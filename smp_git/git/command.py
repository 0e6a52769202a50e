"""The git command, where there is one, untouched by anybody's configuration."""

from __future__ import annotations

import shutil
import subprocess
from binascii import unhexlify
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

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


def pack_objects(git: Path, names: Iterable[bytes]) -> bool:
    """Write a pack of these objects, reusing what is packed already; return whether it worked."""
    base = git / "objects" / "pack" / "pack"
    asked = b"".join(name.hex().encode() + b"\n" for name in names)
    rest = ("-q", "--window=0", "--compression=1", "--delta-base-offset", str(base))
    if _asked(git, asked, "pack-objects", *rest) is None:
        return False
    disk.force_folder(base.parent)
    return True


def reachable(git: Path, tips: set[bytes]) -> set[bytes] | None:
    """Return everything that some commits and tags reach, None if the command cannot say."""
    asked = b"".join(tip.hex().encode() + b"\n" for tip in tips)
    done = _asked(git, asked, "rev-list", "--objects", "--no-object-names", "--stdin")
    return None if done is None else set(map(unhexlify, done.split()))


def history(git: Path, tips: Iterable[bytes], beside: Iterable[bytes]) -> list[bytes]:
    """Return the commits that `tips` reach and those `beside` do not, parents first.

    Nothing is returned where the command cannot say.
    """
    asked = [f"{tip.hex()}\n" for tip in tips] + [f"^{tip.hex()}\n" for tip in beside]
    done = _asked(git, "".join(asked).encode(), "rev-list", "--topo-order", "--reverse", "--stdin")
    return list(map(unhexlify, done.split())) if done is not None else []


class FileChange(NamedTuple):
    """One file that a commit has otherwise than one of its parents; None where it is not."""

    commit: str
    path: str
    old: str | None
    new: str | None


def file_changes(git: Path, tips: Iterable[str], paths: Iterable[str]) -> list[FileChange]:
    """Return how the commits that `tips` reach change some files, oldest first.

    A merge is compared with each of its parents. Nothing is returned where the command
    cannot say.
    """
    asked = "".join([*(f"{tip}\n" for tip in tips), "--\n", *(f"{path}\n" for path in paths)])
    form = ("--raw", "--no-abbrev", "--no-renames", "--no-color", "--format=%x00%H")
    walk = ("--full-history", "--topo-order", "--reverse", "-m", "--root", "--stdin")
    done = _asked(git, asked.encode(), "log", *walk, *form)
    found: list[FileChange] = []
    commit = ""
    for line in (done or b"").decode("utf-8", "replace").splitlines():
        if line.startswith("\0"):
            commit = line[1:]
        elif line.startswith(":"):
            meta, _, path = line.partition("\t")
            _, _, old, new, _ = meta.split(" ")
            found.append(FileChange(commit, path, _name(old), _name(new)))
    return found


def messages(git: Path, tips: Iterable[str], beside: Iterable[str], start: str) -> bytes:
    """Return the messages with a line that begins so, of what `tips` reach and not those `beside`.

    Nothing is returned where the command cannot say.
    """
    asked = "".join([*(f"{tip}\n" for tip in tips), *(f"^{tip}\n" for tip in beside)])
    return _asked(git, asked.encode(), "log", "--stdin", f"--grep=^{start}", "--format=%B") or b""


def _name(text: str) -> str | None:
    return text if text.strip("0") else None


def objects(git: Path, names: Iterable[bytes]) -> dict[bytes, tuple[bytes, bytes]]:
    """Return the type and bytes of many objects, of those that can be read."""
    asked = b"".join(name.hex().encode() + b"\n" for name in names)
    data = _asked(git, asked, "cat-file", "--batch", "--buffer") or b""
    found: dict[bytes, tuple[bytes, bytes]] = {}
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        head = data[at:end].split(b" ")
        at = end + 1
        if len(head) == 3:  # noqa: PLR2004 - id, type, size; else it says what is missing
            stop = at + int(head[2])
            found[unhexlify(head[0])] = head[1], data[at:stop]
            at = stop + 1
    return found


def _asked(git: Path, text: bytes, *rest: str) -> bytes | None:
    """Return what a command answers to a text, None if it fails or is not there."""
    if program() is None:
        return None
    done = subprocess.run(  # noqa: S603 - our own arguments
        arguments(git, *rest),
        input=text,
        env=environment(),
        capture_output=True,
        check=False,
    )
    return None if done.returncode else done.stdout
