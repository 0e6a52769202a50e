"""The hooks of a session or a server: installed, listed, removed; the session as they see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from smp_git.format import metadata
from smp_git.git import disk, layout
from smp_git.git.repository import goes_on
from smp_git.model.errors import FormatError, InvalidError, NotFoundError
from smp_git.model.memory import CommitId, Value, agent_name
from smp_git.model.secrets.rules import Rules
from smp_git.model.settings import Settings
from smp_git.read.snapshot import Reader, Snapshot
from smp_git.write.writer import Writer


@dataclass(frozen=True, slots=True)
class Gate:
    """A session as a hook sees it."""

    writer: Writer
    rules: Rules
    agent: str

    @property
    def reader(self) -> Reader:
        """The session's reader."""
        return self.writer.reader

    @property
    def git(self) -> Path:
        """The folder of the repository."""
        return self.reader.repository.git

    def base(self) -> Snapshot | None:
        """Return the commit that is checked out, whatever branch it is on; None if there is none."""
        repository = self.reader.repository
        name = repository.checked_out()
        head = repository.head(name) if name.startswith("refs/") else CommitId(name)
        return self.reader.at(head) if head else None

    def is_under_way(self) -> bool:
        """Whether Git is in the midst of something that it goes on with."""
        return goes_on(self.git)

    def close(self) -> None:
        """Let go of the repository."""
        self.reader.close()


def open_gate(folder: Path, settings: Settings, clock: Callable[[], datetime]) -> Gate:
    """Open the session in `folder`."""
    reader = Reader(folder, durable=settings.durable)
    said = told(reader.snapshot())
    user = said.get("user")
    rules = settings.rules.overridden(metadata.settings(said), metadata.PATH)
    writer = Writer(reader, clock, timeout_seconds=settings.lock_timeout_seconds)
    return Gate(writer, rules, agent_name(user) if isinstance(user, str) else "user")


def told(snapshot: Snapshot) -> Mapping[str, Value]:
    """Return what a session says of itself; raise FormatError if it says nothing."""
    blob = snapshot.repository.find(snapshot.tree, metadata.PATH)
    if blob is None:
        raise FormatError(f"{snapshot.repository.path} is a Git repository, but not a session")
    return metadata.mapping(snapshot.repository.blob(blob))


class Installed(NamedTuple):
    """The hooks of one repository, each with its state."""

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
    return state(session)


def install_on_server(bare: Path) -> Installed:
    """Install the hooks of a server in a bare repository."""
    _check_bare(bare)
    with disk.reporting(f"the hooks of {bare}"):
        layout.install_server_hooks(bare)
    return state_on_server(bare)


def state(session: Path) -> Installed:
    """Return the state of a session's hooks."""
    return Installed(session, layout.hooks(session / ".git" / "hooks"))


def state_on_server(bare: Path) -> Installed:
    """Return the state of a server's hooks."""
    _check_bare(bare)
    return Installed(bare, layout.hooks(bare / "hooks", layout.SERVER))


def remove(session: Path) -> Installed:
    """Remove the hooks of a session that this program installed."""
    with disk.reporting(f"the hooks of {session}"):
        layout.remove_hooks(session / ".git" / "hooks")
    return state(session)


def remove_from_server(bare: Path) -> Installed:
    """Remove the hooks of a server that this program installed."""
    _check_bare(bare)
    with disk.reporting(f"the hooks of {bare}"):
        layout.remove_hooks(bare / "hooks", layout.SERVER)
    return state_on_server(bare)


def _check_bare(path: Path) -> None:
    if not path.exists():
        raise NotFoundError(
            f"{path} does not exist", hint="git init --bare makes a repository for a server"
        )
    if (path / ".git").exists():
        raise InvalidError(
            f"{path} is not a bare repository",
            hint="smp hooks install, without --server, is for a session",
        )
    if not all((path / name).exists() for name in ("HEAD", "objects", "refs")):
        raise InvalidError(f"{path} is not a Git repository", hint="git init --bare makes one")
