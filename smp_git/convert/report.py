"""Reports of imports: what became of each session of a source, and what could not be read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields

from smp_git.convert.entries import Trouble
from smp_git.model.secrets.rules import Report


@dataclass(slots=True, kw_only=True)
class Imported:
    """What became of one session of the source.

    `was_deleted` is one that was deleted here as a whole, so that nothing of it came in.
    """

    session: str
    source: str
    created: bool = False
    added: Counter[str] = field(default_factory=Counter)
    updated: Counter[str] = field(default_factory=Counter)
    known: int = 0
    deleted: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    redacted: Report = ()
    problems: list[Trouble] = field(default_factory=list)
    was_deleted: bool = False

    @property
    def says_something(self) -> bool:
        """Whether anything but problems is told of the session."""
        return bool(
            self.added
            or self.updated
            or self.known
            or self.deleted
            or self.left_out
            or self.created
            or self.was_deleted
        )

    def take_back(self, before: Imported) -> None:
        """Say again what was said before."""
        for each in fields(self):
            setattr(self, each.name, getattr(before, each.name))

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "session": self.session,
            "source": self.source,
            "created": self.created,
            "added": dict(self.added),
            "updated": dict(self.updated),
            "known": self.known,
            "deleted": self.deleted,
            "left_out": dict(self.left_out),
            "redacted": dict(self.redacted),
            "problems": [each.as_json() for each in self.problems],
            "was_deleted": self.was_deleted,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """What an import did: the format it found, and what became of each session.

    >>> done = store.import_(folder / "notes")
    >>> (done.format, done.added)
    ('notes', 1)
    """

    format: str
    sessions: tuple[Imported, ...]
    dry_run: bool = False

    @property
    def problems(self) -> tuple[Trouble, ...]:
        """What could not be read or stored; everything else was."""
        return tuple(each for session in self.sessions for each in session.problems)

    @property
    def added(self) -> int:
        """How many memories were added."""
        return sum(session.added.total() for session in self.sessions)

    @property
    def updated(self) -> int:
        """How many memories were changed because the source changed."""
        return sum(session.updated.total() for session in self.sessions)

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "format": self.format,
            "dry_run": self.dry_run,
            "added": self.added,
            "updated": self.updated,
            "sessions": [session.as_json() for session in self.sessions],
        }
