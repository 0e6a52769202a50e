"""The hooks of a session or a server: installed, listed, removed; nobody else's is touched."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from smp_git.git import disk, layout
from smp_git.model.errors import InvalidError, NotFoundError


class Installed(NamedTuple):
    """The hooks of one repository, each with how it stands."""

    path: Path
    hooks: Mapping[str, str]

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {"path": str(self.path), "hooks": dict(self.hooks)}


def install(session: Path) -> Installed:
    """Install the hooks and the merge driver of a session."""
    with disk.reporting(f"the hooks of {session}"):
        layout.set_up(session / ".git")
        layout.install_hooks(session / ".git" / "hooks")
    return standing(session)


def install_on_server(bare: Path) -> Installed:
    """Install the hooks of a server in a bare repository."""
    _check_bare(bare)
    with disk.reporting(f"the hooks of {bare}"):
        layout.install_server_hooks(bare)
    return standing_on_server(bare)


def standing(session: Path) -> Installed:
    """Return how the hooks of a session stand."""
    return Installed(session, layout.hooks(session / ".git" / "hooks"))


def standing_on_server(bare: Path) -> Installed:
    """Return how the hooks of a server stand."""
    _check_bare(bare)
    return Installed(bare, layout.hooks(bare / "hooks", layout.SERVER))


def remove(session: Path) -> Installed:
    """Remove the hooks of a session that this program installed."""
    with disk.reporting(f"the hooks of {session}"):
        layout.remove_hooks(session / ".git" / "hooks")
    return standing(session)


def remove_from_server(bare: Path) -> Installed:
    """Remove the hooks of a server that this program installed."""
    _check_bare(bare)
    with disk.reporting(f"the hooks of {bare}"):
        layout.remove_hooks(bare / "hooks", layout.SERVER)
    return standing_on_server(bare)


def _check_bare(path: Path) -> None:
    if not path.exists():
        raise NotFoundError(f"{path} does not exist", hint="git init --bare makes a repository for a server")  # fmt: skip
    if (path / ".git").exists():
        raise InvalidError(f"{path} is no bare repository", hint="smp hooks install, without --server, is for a session")  # fmt: skip
    if not all((path / name).exists() for name in ("HEAD", "objects", "refs")):
        raise InvalidError(f"{path} is no Git repository", hint="git init --bare makes one")
