"""A clock that is wrong: at 1970, at 2100, and right again; nothing is lost or refused for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.model.errors import MemoryNotFoundError
from tests.conftest import Clock
from tests.support import git
from tests.sync.support import Machine

WRONG = [datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 6, 1, tzinfo=UTC)]
RIGHT = datetime(2026, 3, 1, tzinfo=UTC)


def worked(session: Session, word: str) -> list[str]:
    """Write, edit, resolve, delete and restore; return what must be there."""
    names: list[str] = []
    names.append(session.add("finding", f"{word} is slow", agent="a", severity="low").id)
    names.append(session.add("decision", f"{word} is kept", agent="a").id)
    names.append(session.add("turn", f"{word} was said", agent="a").id)
    session.edit(names[1], text=f"{word} is kept for ever", agent="a")
    session.resolve(names[0], action="mended")
    session.delete(names[2])
    session.restore(names[2])
    return names


@pytest.mark.parametrize("wrong", WRONG, ids=["1970", "2100"])
def test_what_is_written_by_a_wrong_clock_is_there_when_it_is_right(
    store: Store, clock: Clock, wrong: datetime
) -> None:
    names: list[str] = []
    for number, now in enumerate((RIGHT, wrong, RIGHT + timedelta(hours=1))):
        clock.now = now
        if not number:
            store.create_session("shop", user="ada").close()
        with store.session("shop") as session:
            names += worked(session, f"Vendor{number}")
            found = session.query("vendor0 vendor1 vendor2", limit=None)
            assert {hit.id for hit in found} == set(names)
            assert [each.id for each in session.trash()] == []
            assert session.context().text
        assert store.maintain().failed == {}
    with store.session("shop") as session:
        assert {memory.id for memory in session.memories()} == set(names)
        assert session.check() == ()
        assert git(session.path, "fsck", "--strict", "--no-dangling") == ""


@pytest.mark.parametrize("wrong", WRONG, ids=["1970", "2100"])
def test_a_replica_whose_clock_is_wrong_agrees_with_the_others(
    tmp_path: Path, wrong: datetime
) -> None:
    one, two = Machine(tmp_path, "one"), Machine(tmp_path, "two")
    session = one.begin(tmp_path / "hub.git")
    names = [*worked(session, "Vendor0"), "DEC-0001"]
    session.sync()
    other = two.clone(tmp_path / "hub.git")
    two.clock.now = wrong
    names = [*worked(other, "Vendor1"), *names]
    other.delete(names[4])
    for each in (other, session, other):
        each.sync()
    for each in (session, other):
        assert {memory.id for memory in each.memories()} == set(names) - {names[4]}
        with pytest.raises(MemoryNotFoundError):
            each.get(names[4])
        assert each.check() == ()
    assert session.head == other.head
    session.close()
    other.close()
