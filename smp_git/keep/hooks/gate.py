"""A session as the hooks of Git see it: its writer, its rules, who it is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from smp_git.format import yamlfile
from smp_git.format.config import Settings
from smp_git.model.errors import FormatError
from smp_git.model.memory import CommitId, Value, agent_name
from smp_git.model.secrets.rules import Rules
from smp_git.read.snapshot import Reader, Snapshot
from smp_git.write.writer import Writer

METADATA: Final = "metadata.yaml"
# States of a repository in which Git goes on by itself with what it remembers.
_UNDER_WAY: Final = ("MERGE_HEAD", "rebase-merge", "rebase-apply", "sequencer", "BISECT_LOG")


@dataclass(frozen=True, slots=True)
class Gate:
    """What a hook needs of a session."""

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

    def standing(self) -> Snapshot | None:
        """Return the commit that is checked out, whatever branch it is on; None if there is none."""
        repository = self.reader.repository
        name = repository.checked_out()
        head = repository.head(name) if name.startswith("refs/") else CommitId(name)
        return self.reader.at(head) if head else None

    def is_under_way(self) -> bool:
        """Whether Git is in the midst of something that it goes on with."""
        return any((self.git / name).exists() for name in _UNDER_WAY)

    def close(self) -> None:
        """Let go of the repository."""
        self.reader.close()


def opened(folder: Path, settings: Settings, clock: Callable[[], datetime]) -> Gate:
    """Open the session in `folder`."""
    reader = Reader(folder, durable=settings.durable)
    said = metadata(reader.snapshot())
    overrides, user = said.get("overrides"), said.get("user")
    rules = settings.redaction.overridden(overrides if isinstance(overrides, dict) else {}, METADATA)  # fmt: skip
    writer = Writer(reader, clock, timeout_seconds=settings.lock_timeout_seconds)
    return Gate(writer, rules, agent_name(user) if isinstance(user, str) else "user")


def metadata(snapshot: Snapshot) -> Mapping[str, Value]:
    """Return what a session says of itself; raise FormatError if it says nothing."""
    blob = snapshot.repository.find(snapshot.tree, METADATA)
    if blob is None:
        raise FormatError(f"{snapshot.repository.path} is a Git repository, but no session")
    return yamlfile.read(snapshot.repository.blob(blob).decode("utf-8", "replace"), METADATA)
