"""An open session: the one value that every operation on it is handed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

from smp_git.format import metadata
from smp_git.format.metadata import Metadata
from smp_git.git.objects import BLOB, FILE_MODE, TREE, Child, Object, write_tree
from smp_git.git.references import ACCESS
from smp_git.git.repository import MAIN, MovedError, Repository
from smp_git.model.errors import RefusedError, SmpError
from smp_git.model.ids import sort_key
from smp_git.model.memory import CommitId, agent_name
from smp_git.model.secrets.rules import Rules
from smp_git.model.settings import Settings
from smp_git.read import history
from smp_git.read.counts import FILE, Accesses, Counts
from smp_git.read.replica import Identity
from smp_git.read.snapshot import Reader, Snapshot
from smp_git.write import commit
from smp_git.write.git_index import IndexKeeper
from smp_git.write.writer import Writer

_T = TypeVar("_T")
# The session of what holds across sessions.
GLOBAL = "global"


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A store: its folder, settings and clock, and what the environment says of it."""

    path: Path
    settings: Settings
    clock: Callable[[], datetime]
    keys: Callable[[], Path | None]
    surroundings: Callable[[], Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """An open session, on one branch of it."""

    reader: Reader
    writer: Writer
    keeper: IndexKeeper
    accesses: Accesses
    clock: Callable[[], datetime]
    settings: Settings
    home: Home | None = None
    # The folder of the session of what holds across sessions, unless this is it.
    shared: Path | None = None
    # The rules of the metadata that was read last, and the writer of main beside a branch.
    known: dict[Metadata, Rules] = field(default_factory=dict, repr=False)
    mains: list[Writer] = field(default_factory=list, repr=False)

    @property
    def name(self) -> str:
        """The session's name, which is its folder's: a copy keeps the metadata."""
        return self.reader.path.name

    @property
    def metadata(self) -> Metadata:
        """What the session says of itself now."""
        return self.reader.snapshot().metadata

    @property
    def rules(self) -> Rules:
        """Which secrets are kept out, as the settings and the session say now."""
        said = self.metadata
        found = self.known.get(said)
        if found is None:
            found = self.settings.redaction.overridden(said.overrides, metadata.PATH)
            self.known.clear()
            self.known[said] = found
        return found

    @property
    def main_writer(self) -> Writer:
        """The writer of what concerns the whole session, which is on main."""
        if self.reader.ref == MAIN:
            return self.writer
        if not self.mains:
            reader = Reader(self.reader.path, durable=self.settings.durable)
            limit = self.settings.lock_timeout_seconds
            self.mains.append(Writer(reader, self.clock, timeout_seconds=limit))
        return self.mains[0]

    def at_home(self) -> Home:
        """Return the store of the session; raise RefusedError if it is in none."""
        if self.home is None:
            raise RefusedError("this session is in no store, so nothing could be recovered")
        return self.home

    def actor(self, given: str | None) -> str:
        """Return who acts: the session's user unless somebody is named."""
        if given:
            return agent_name(self.rules.name(given, "the name of an agent"))
        user = self.metadata.user
        return agent_name(user) if user else "user"

    def moment(self, at: datetime | str) -> datetime:
        """Return the time that is meant; raise InvalidRevisionError."""
        return history.moment_of(at, self.clock())

    def at(self, revision: str | datetime) -> Snapshot:
        """Return the session as it was at a revision."""
        return history.at_revision(self.reader, revision, self.clock())

    def read(self, at: str | datetime | None, answer: Callable[[Snapshot], _T]) -> _T:
        """Return an answer on the present session, or on an earlier one."""
        return history.read_at(self.reader, at, self.clock(), answer)

    def refuse_aside(self, why: str) -> None:
        """Raise RefusedError on a branch other than main, whose files are in the folder."""
        if self.reader.ref != MAIN:
            raise RefusedError(
                f"the folder shows main, so {why}", hint="smp --branch main, or smp switch main"
            )


# A shorter journal stays what it is, unless it is to be pushed.
_FOLD_BYTES: Final = 64_000


def fold_counts(accesses: Accesses, writer: Writer, *, everything: bool = False) -> None:
    """Keep what was counted, and move a long journal into this replica's reference.

    With `everything` a short one is moved too, so that it can be pushed.
    """
    accesses.flush()
    if accesses.journal_size() < (1 if everything else _FOLD_BYTES):
        return
    with suppress(SmpError, MovedError), writer.holding("counting accesses"):
        identity = writer.identity()
        ref = ACCESS + identity.tag
        repository, counts = writer.reader.repository, accesses.counted(ref)
        _publish(repository, ref, counts, identity, writer.clock())
        accesses.clear()


def _publish(
    repository: Repository, ref: str, counts: Counts, identity: Identity, at: datetime
) -> None:
    """Replace the reference by one parentless commit with these counts."""
    ordered = {name: list(counts[name]) for name in sorted(counts, key=sort_key)}
    blob = Object(BLOB, json.dumps(ordered, separators=(",", ":")).encode() + b"\n")
    tree = Object(TREE, write_tree({FILE: Child(FILE_MODE, blob.id)}))
    made = commit.of_accesses(tree.id, identity, at)
    with repository.store([blob, tree, made]) as written:
        repository.publish(ref, repository.head(ref), CommitId(made.id), written)
