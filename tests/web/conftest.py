"""A session to look at, a page that is served, and somebody who may see it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from smp_git import Session, Store
from tests.web.served import Served, Visitor, served


@pytest.fixture
def shop(session: Session) -> Session:
    """A session with a history, links, a branch, and something forgotten."""
    session.add("turn", "Two concerns: no MFA, no timeout", agent="veritas", speaker="Veritas")
    session.add("finding", "No MFA", agent="veritas", severity="critical", turn_ref="turn-0001")
    session.add(
        "decision", "Use OAuth", agent="architect", tags=["security"], rationale="A standard",
        links=[("resolves", "FIND-0001")],
    )  # fmt: skip
    session.edit("DEC-1", rationale="A proven standard", agent="ada")
    session.resolve("FIND-1", agent="veritas", action="required now")
    session.add("finding", "No timeout", agent="veritas", severity="high")
    with session.branch("idea") as aside:
        aside.edit("DEC-1", impact="high")
    session.add("learning", "Ada is ill", agent="ada")
    session.delete("LEARN-0001", reason="private", by="ada")
    return session


@pytest.fixture
def server(store: Store) -> Iterator[Served]:
    with served(store) as found:
        yield found


@pytest.fixture
def visitor(server: Served) -> Visitor:
    found = Visitor(server)
    found.enter()
    return found
