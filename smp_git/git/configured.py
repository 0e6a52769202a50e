"""The remotes in a repository's own configuration, as a person's Git knows them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pygit2

from smp_git.git import command, disk
from smp_git.model.errors import (
    AlreadyExistsError,
    FormatError,
    LockedError,
    NotFoundError,
    StorageError,
    SyncError,
    shown,
)

_BARE: Final = """\
[core]
	repositoryformatversion = 0
	filemode = true
	bare = true
	fsync = objects,reference
[gc]
	auto = 0
[receive]
	fsckObjects = true
	autogc = false
"""


def remotes(git: Path) -> dict[str, str]:
    """Return the address of each remote by its name, as it stands in the configuration."""
    try:
        config = pygit2.Config(str(git / "config"))
        rows = [(entry.name, str(entry.value)) for entry in config]
    except (pygit2.GitError, UnicodeDecodeError) as error:
        raise FormatError(f"{git / 'config'} cannot be read: {error}") from error
    found: dict[str, str] = {}
    for name, value in rows:
        if name.startswith("remote.") and name.endswith(".url"):
            found.setdefault(name[len("remote.") : -len(".url")], value)
    return found


def add(git: Path, name: str, address: str) -> None:
    """Add a remote whose branches are tracked as usual."""
    if name in remotes(git):
        raise AlreadyExistsError(f"there is a remote {name}", hint="remove it first, or choose another name")  # fmt: skip
    _run(git, "remote", "add", "--", name, address)


def remove(git: Path, name: str) -> None:
    """Forget a remote, with the references that track it."""
    _check_there(git, name)
    _run(git, "remote", "remove", "--", name)


def rename(git: Path, old: str, new: str) -> None:
    """Give a remote another name, and the references that track it."""
    _check_there(git, old)
    if new in remotes(git):
        raise AlreadyExistsError(f"there is a remote {new}", hint="choose another name")
    _run(git, "remote", "rename", "--", old, new)


def _check_there(git: Path, name: str) -> None:
    found = remotes(git)
    if name not in found:
        raise NotFoundError(
            f"no remote {shown(name)}", hint=f"remotes are {', '.join(sorted(found)) or 'none yet'}"
        )


def _run(git: Path, *rest: str) -> None:
    if command.program() is None:
        raise SyncError("remotes need the git command, which is not installed", hint="install git")
    done = subprocess.run(  # noqa: S603 - our own arguments
        command.arguments(git, *rest),
        env=command.environment(),
        capture_output=True,
        check=False,
        text=True,
        errors="replace",
    )
    if done.returncode == 0:
        return
    said = (done.stderr.strip().splitlines() or [""])[-1]
    if "could not lock" in done.stderr:
        raise LockedError(
            f"another Git process holds {git / 'config.lock'}",
            hint="wait for it to end; if none runs, remove that file",
        )
    raise StorageError(f"{git / 'config'} was not changed: {said}")


def create_bare(place: Path) -> None:
    """Make an empty repository that sessions are pushed to; leave one that is there."""
    with disk.reporting(f"a repository at {place}"):
        if (place / "HEAD").is_file() and (place / "objects").is_dir():
            return
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise AlreadyExistsError(f"{place} holds other files", hint="name an empty or a new folder")  # fmt: skip
        for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "hooks"):
            disk.make_folders(place / folder)
        (place / "config").write_text(_BARE)
        # Makes it a repository, so it comes last.
        (place / "HEAD").write_text("ref: refs/heads/main\n")
