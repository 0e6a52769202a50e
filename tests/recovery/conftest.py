"""What the tests of recovery share: a session with something in it, and the bytes of a store."""

from __future__ import annotations

import pytest

from smp_git import Session

SENTINEL = "Zanzibar-sentinel-of-recovery"


@pytest.fixture
def told(session: Session) -> Session:
    """A session with a decision of three versions, and a finding that links to it."""
    session.add("decision", f"{SENTINEL} the first", agent="architect", tags=["team.people"])
    session.edit("DEC-0001", text=f"{SENTINEL} the second", agent="veritas")
    session.edit("DEC-0001", text=f"{SENTINEL} the third", agent="architect")
    session.add("finding", "It matters", agent="veritas", links=[("references", "DEC-0001")])
    return session
