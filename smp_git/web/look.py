"""A session as it is looked at: at one commit, so that a page is of one moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from smp_git.model.memory import CommitId
from smp_git.read.history import Version
from smp_git.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A session at one commit; `asked` is the revision or time that was asked for, if any.

    Whoever looks at a commit by its id uses nothing: no memory counts as read.
    """

    session: Session
    now: datetime
    at: CommitId
    asked: str = ""

    @property
    def is_past(self) -> bool:
        """Whether an earlier state was asked for."""
        return bool(self.asked)

    @property
    def version(self) -> Version:
        """The commit."""
        return self.session.version(self.at)


def look(session: Session, now: datetime, asked: str = "") -> Look:
    """Return a session as it is, or as it was at a revision or time."""
    at = session.version(asked).commit if asked else session.head
    return Look(session=session, now=now, at=at, asked=asked)
