"""What compactions took out, at its deadline: erased from history in one rewrite, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from smp_git import Memory, Session, Store
from smp_git.keep.compacted import due, erase_due
from smp_git.model.errors import ConflictError, MemoryNotFoundError
from tests.conftest import Clock
from tests.independent_scan import scan
from tests.support import STEPS, before_next_write, git, python
from tests.sync.support import Machine

SECRET = "plugh-0451-of-the-cave"


def compacted(session: Session, clock: Clock) -> tuple[list[str], list[str]]:
    """Take out old learnings and summarise a conversation; return what went, and what stayed."""
    gone: list[str] = [
        session.add("learning", f"{SECRET} {number} was learned " + "x" * 300, agent="a").id
        for number in range(8)
    ]
    clock.now += timedelta(days=191)
    for number in range(60):
        text = f"We agreed that Vendor{number} gets {number} euros. " + "and so on " * 30
        session.add("turn", text, agent="user")
    kept: list[str] = [session.add("decision", "stays", agent="a").id]
    clock.now += timedelta(days=9)
    kept.append(session.add("turn", "yesterday", agent="user").id)
    done = session.compact(1 - 1e-9)
    assert {"decayed", "conversation"} <= {step.name for step in done.steps}
    assert {each.id for each in session.compacted()} >= set(gone)
    return gone, kept


def used(store: Store, clock: Clock, days: float) -> None:
    """Let some days go by, on which the session is used."""
    clock.now += timedelta(days=days)
    with store.session("shop") as session:
        session.get("DEC-0001")


def test_it_is_recoverable_until_the_deadline_and_erased_after_it(
    store: Store, clock: Clock
) -> None:
    with store.create_session("shop") as session:
        gone, kept = compacted(session, clock)
        path, before = session.path, {each.id for each in session.compacted()}
    used(store, clock, 29)
    assert "erase" not in {each.step for each in store.maintain().actions}
    with store.session("shop") as session:
        session.bring_back(gone[0])
        assert SECRET in session.get(gone[0]).content
    used(store, clock, 2)
    planned = store.maintain(dry_run=True)
    assert scan(path, [SECRET.encode()])

    done = store.maintain()

    (erased,) = [each for each in done.actions if each.step == "erase"]
    assert (erased.session, erased.count) == ("shop", len(before) - 1)
    assert [each.step for each in planned.actions if each.step == "erase"] == ["erase"]
    text = f"{SECRET} 0 was learned".encode()
    assert scan(path, [f"{SECRET} {n} was learned".encode() for n in range(1, 8)]) == []
    assert scan(path, [text]), "what was brought back is there"
    with store.session("shop") as session:
        there = {memory.id for memory in session.memories()}
        assert {*kept, gone[0]} <= there
        assert session.compacted() == ()
        with pytest.raises(MemoryNotFoundError):
            session.bring_back(gone[1])
        assert session.check() == ()
        assert session.trash() == ()
        (line,) = [each for each in session.audit() if each.action == "purge"]
        assert set(line.ids) == before - {gone[0]}
    assert git(path, "fsck", "--strict", "--no-dangling") == ""
    assert store.maintain().actions == ()


def summary_of(session: Session) -> Memory:
    """Return the summary that a compaction made."""
    (found,) = [each for each in session.memories("artifact") if each.fields["type"] == "summary"]
    return found


def test_what_a_branch_still_has_is_not_erased(store: Store, clock: Clock) -> None:
    with store.create_session("shop") as session:
        session.add("learning", f"{SECRET} was learned " + "x" * 300)
        clock.now += timedelta(days=200)
        with session.branch("idea") as idea:
            idea.edit("LEARN-1", text="learned twice")
        assert session.compact(1 - 1e-9).commit
        clock.now += timedelta(days=31)
        session.add("decision", "in use")

        assert "erase" not in {each.step for each in store.maintain().actions}

        session.merge("idea")
        assert session.get("LEARN-1").content == "learned twice"


def test_what_is_brought_back_while_it_falls_due_stays(store: Store, clock: Clock) -> None:
    with store.create_session("shop") as session, store.session("shop") as other:
        for number in range(2):
            session.add("learning", f"{number} was learned " + "x" * 300)
        clock.now += timedelta(days=200)
        session.compact(1 - 1e-9)
        clock.now += timedelta(days=31)
        ids = due(session._handle, clock.now)
        before_next_write(session, lambda: other.bring_back("LEARN-1"))

        with pytest.raises(ConflictError):
            erase_due(session._handle, ids, clock.now, "a")

        assert session.get("LEARN-1").content.startswith("0 was learned")
        assert due(session._handle, clock.now) == ("LEARN-0002",)


def test_a_summary_outlives_the_turns_that_time_erases(tmp_path: Path) -> None:
    one, two = Machine(tmp_path, "one"), Machine(tmp_path, "two")
    session = one.begin(tmp_path / "hub.git")
    compacted(session, one.clock)
    session.sync()
    summary = summary_of(session)
    assert "Vendor7 gets" in git(session.path, "log", "-p", "--all")
    session.close()
    other = two.clone(tmp_path / "hub.git")
    used(one.store, one.clock, 31)
    assert "erase" in {each.step for each in one.store.maintain().actions}
    for _ in range(2):
        with one.store.session("shop") as session:
            session.sync()
        other.sync()
    with one.store.session("shop") as session:
        for each in (session, other):
            assert summary_of(each).content == summary.content
            assert "Vendor7 gets 7 euros. and so on" not in git(each.path, "log", "-p", "--all")
        # Who wishes a turn gone, that is in the history no more, still reaches what tells of it.
        assert session.delete("turn-0055", purge=True).proof.clean
        assert session.head
    other.close()


def test_a_wish_that_meets_the_deadline_reaches_the_summary(tmp_path: Path) -> None:
    one, two = Machine(tmp_path, "one"), Machine(tmp_path, "two")
    session = one.begin(tmp_path / "hub.git")
    other = two.clone(tmp_path / "hub.git")
    for number in range(60):
        text = f"We agreed that Vendor{number} gets {number} euros. " + "and so on " * 30
        session.add("turn", text, agent="user")
    session.sync()
    other.sync()
    one.clock.now += timedelta(days=9)
    session.compact(1 - 1e-9)
    assert "Vendor7 " in summary_of(session).content
    session.close()
    used(one.store, one.clock, 31)
    one.store.maintain()
    other.delete("turn-0008", purge=True)
    other.sync()
    with one.store.session("shop") as session:
        session.sync()
        other.sync()
        session.sync()
        for each in (session, other):
            assert all("Vendor7 " not in memory.content for memory in each.memories())
        assert session.head == other.head
    other.close()
    assert scan(one.store.path, [b"Vendor7 "]) == []


def test_a_replica_erases_what_another_one_erased(tmp_path: Path) -> None:
    one, two = Machine(tmp_path, "one"), Machine(tmp_path, "two")
    session = one.begin(tmp_path / "hub.git")
    gone, _ = compacted(session, one.clock)
    session.sync()
    other = two.clone(tmp_path / "hub.git")
    assert {each.id for each in other.compacted()} >= set(gone)
    session.close()
    one.clock.now += timedelta(days=31)
    with one.store.session("shop") as session:
        session.get("DEC-0001")
    one.store.maintain()
    with one.store.session("shop") as session:
        session.sync()
        other.sync()
        session.sync()
        assert other.head == session.head
    other.close()
    assert scan(other.path, [SECRET.encode()]) == []


DIES = (
    STEPS
    + """
from datetime import datetime
now = datetime.fromisoformat(sys.argv[3])
store = Store.open(sys.argv[1], clock=lambda: now)
store.maintain()
print(len(seen))
"""
)


@pytest.mark.slow
def test_killed_while_it_is_erased_the_next_run_completes_it(tmp_path: Path) -> None:
    def made(name: str) -> tuple[Store, Clock]:
        clock = Clock()
        store = Store.init(tmp_path / name, clock=clock)
        store.configure({"durability": "relaxed"})
        with store.create_session("shop") as session:
            compacted(session, clock)
        used(store, clock, 31)
        return store, clock

    store, clock = made("whole")
    steps = int(python(DIES, store.path, 0, clock.now.isoformat()).stdout)
    assert steps > 2
    for step in range(1, steps + 1):
        store, clock = made(f"at-{step}")
        assert python(DIES, store.path, step, clock.now.isoformat(), check=False).returncode == 73
        assert store.maintain().failed == {}
        assert scan(store.path, [SECRET.encode()]) == [], step
        assert store.check() == ()
        with store.session("shop") as session:
            assert [line.action for line in session.audit()].count("purge") == 1, step
