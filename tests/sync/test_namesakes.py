"""A memory under the id of another that was deleted or redacted before the two met."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from smp_git import Session
from smp_git.format import records
from smp_git.sync import inbound
from tests import independent_scan
from tests.support import git
from tests.sync.images import copied, kept, opened, put_back, settled, texts
from tests.sync.support import Machine

ONE = "Keep the Postgres-of-Zanzibar"
OTHER = "Move to the SQLite-of-Samarkand"
ENDS: dict[str, Callable[[Session], object]] = {
    "delete": lambda session: session.delete("DEC-0002"),
    "purge": lambda session: session.delete("DEC-0002", purge=True),
    "redact": lambda session: session.redact("Zanzibar"),
    "delete and restore": lambda session: (session.delete("DEC-0002"), session.restore("DEC-0002")),
    "redact and delete": lambda session: (session.redact("Zanzibar"), session.delete("DEC-0002")),
}  # fmt: skip


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return tmp_path / "hub.git"


@pytest.fixture
def two(tmp_path: Path, hub: Path) -> tuple[Session, Session]:
    """Two containers of one image, one of which writes a while later."""
    left = Machine(tmp_path, "one").begin(hub)
    right = copied(left, tmp_path, "two")
    later(right)
    return left, right


def later(session: Session) -> None:
    session._handle.clock.now += timedelta(minutes=5)  # type: ignore[attr-defined]


def gone(folder: Path, *words: str) -> bool:
    return independent_scan.scan(folder, [word.encode() for word in words]) == []


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("end", ENDS)
def test_a_memory_outlives_another_that_had_its_id(two: tuple[Session, Session], hub: Path, end: str, is_first: bool) -> None:  # fmt: skip
    left, right = two
    left.add("decision", ONE, agent="a", rationale="for now")
    right.add("decision", OTHER, agent="b", rationale="it is smaller")
    right.add("finding", "DEC-0002 costs a day", agent="b", links=[("about", "DEC-0002")])
    ENDS[end](left)
    first, last = (right, left) if is_first else (left, right)
    first.sync()
    told = last.sync()
    ((old, new),) = told.moved
    assert (old, new[:9]) == ("DEC-0002", "DEC-0002-")
    assert any(old in note and new in note for note in told.notes)
    settled(two, [hub])
    for session in two:
        assert session.get(new).content == OTHER
        assert session.get(new).fields["rationale"] == "it is smaller"
        assert session.get("FIND-0001").links[0].target == new
        if end != "delete and restore":
            assert gone(session.path, "Zanzibar")


@pytest.mark.parametrize("end", ENDS)
def test_a_copy_that_nobody_synced_derives_from_what_is_deleted(tmp_path: Path, hub: Path, end: str) -> None:  # fmt: skip
    left = Machine(tmp_path, "one").begin(hub)
    left.add("decision", ONE, agent="a")
    right = copied(left, tmp_path, "two")
    right.edit("DEC-0002", agent="b", rationale="as Zanzibar has it")
    ENDS[end](left)
    left.sync()
    assert not right.sync().moved
    settled([left, right], [hub])
    assert OTHER not in texts(right)
    if end != "delete and restore":
        assert gone(right.path, "Zanzibar")


@pytest.mark.parametrize("end", ENDS)
def test_what_took_another_id_ends_with_the_memory_that_it_is(tmp_path: Path, hub: Path, end: str) -> None:  # fmt: skip
    left = Machine(tmp_path, "one").begin(hub)
    third = copied(left, tmp_path, "three")
    later(third)
    left.add("decision", ONE, agent="a")
    right = copied(left, tmp_path, "two")
    third.add("decision", OTHER, agent="c")
    third.delete("DEC-0002")
    third.sync()
    # The copy meets the deletion of another memory first, and only then that of its own.
    assert right.sync().moved
    ENDS[end](left)
    left.sync()
    settled([left, right, third], [hub])
    for session in (left, right, third):
        found = [each.content for each in session.memories()]
        if end == "delete and restore":
            assert found.count(ONE) == 1
        else:
            assert gone(session.path, "Zanzibar")
        assert gone(session.path, "Samarkand")


def test_a_backup_put_back_gives_the_number_of_what_was_deleted_since(tmp_path: Path, hub: Path) -> None:  # fmt: skip
    session = Machine(tmp_path, "one").begin(hub)
    copy = kept(session, tmp_path)
    session.add("decision", ONE, agent="a")
    session.sync()
    session.delete("DEC-0002")
    session.sync()
    session = put_back(session, copy)
    later(session)
    session.add("decision", OTHER, agent="a")
    ((_, new),) = session.sync().moved
    settled([session], [hub])
    assert session.get(new).content == OTHER
    assert gone(session.path, "Zanzibar")


def test_the_commit_of_a_deletion_says_when_the_memory_was_added_and_no_more(two: tuple[Session, Session]) -> None:  # fmt: skip
    left, _ = two
    added = left.add("decision", ONE, agent="a")
    left.delete("DEC-0002")
    message = git(left.path, "log", "-1", "--format=%B")
    assert f"Began: DEC-0002 {added.created_at:%Y-%m-%dT%H:%M:%SZ}" in message
    assert "Zanzibar" not in message
    later_one = left.add("decision", "Another", agent="a")
    left.delete(later_one.id)
    left.redact("PostgreSQL")
    assert "Began: DEC-0002" in git(left.path, "log", "--format=%B")


def test_where_both_were_added_in_one_second_the_other_is_sealed_and_told(two: tuple[Session, Session], hub: Path) -> None:  # fmt: skip
    left, right = two
    right._handle.clock.now = left._handle.clock.now  # type: ignore[attr-defined]
    left.add("decision", ONE, agent="a")
    right.add("decision", OTHER, agent="b")
    left.delete("DEC-0002")
    left.sync()
    told = right.sync()
    assert told.rewritten == ("DEC-0002",)
    assert [item.id for item in right.trash()] == ["DEC-0002"]
    right.restore("DEC-0002")
    assert right.get("DEC-0002").content == OTHER


@pytest.mark.parametrize("is_shared", [False, True], ids=["", "beside another deletion"])
@pytest.mark.parametrize("where", ["main", "branch", "both"])
@pytest.mark.parametrize("end", ENDS)
def test_a_memory_that_only_this_side_has_outlives_a_deletion_that_comes_in(two: tuple[Session, Session], hub: Path, end: str, where: str, is_shared: bool) -> None:  # fmt: skip
    """What becomes of our history no longer has it: it is found in what is here."""
    left, right = two
    left.add("decision", ONE, agent="a", rationale="for now")
    if where != "branch":
        right.add("decision", OTHER, agent="b")
    with right.branch("idea") as idea:
        if where == "branch":
            idea.add("decision", OTHER, agent="b")
        elif where == "both":
            idea.edit("DEC-0002", agent="b", impact="a smaller bill")
    ENDS[end](left)
    if is_shared:
        left.delete("DEC-0001")
    left.sync()
    ((old, new),) = right.sync().moved
    assert old == "DEC-0002"
    settled(two, [hub])
    for session in two:
        if where != "branch":
            assert session.get(new).content == OTHER
        assert where == "main" or git(session.path, "show", f"idea:decisions/000/{new}.yaml")
        if end != "delete and restore":
            assert gone(session.path, "Zanzibar")


@pytest.mark.parametrize("what", ["DEC-0001", "DEC-0002", "FIND-0001"])
@pytest.mark.parametrize("end", ["delete", "redact", "redact and delete"])
def test_another_process_deletes_between_the_look_and_the_lock(two: tuple[Session, Session], hub: Path, end: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    left, right = two
    left.add("decision", ONE, agent="a")
    right.add("decision", OTHER, agent="b")
    right.add("finding", "Costs a day", agent="b")
    ENDS[end](left)
    left.delete("DEC-0001")
    left.sync()
    rewritten, looks = inbound.Intake.rewrite, iter([True])

    def later_rewritten(*arguments: Any) -> Any:
        if next(looks, False):
            target = next(iter(moved_to(right))) if what == "DEC-0002" else what
            opened(right.path, right).delete(target)
        return rewritten(*arguments)

    monkeypatch.setattr(inbound.Intake, "rewrite", later_rewritten)
    right.sync()
    settled(two, [hub])
    for session in two:
        found = {each.content for each in session.memories()}
        assert (OTHER in found) == (what != "DEC-0002")
        assert ("Costs a day" in found) == (what != "FIND-0001")
        assert gone(session.path, "Zanzibar", "PostgreSQL")


@pytest.mark.parametrize("is_planned", [False, True], ids=["", "beside another deletion"])
@pytest.mark.parametrize("end", ENDS)
def test_another_process_adds_between_the_look_and_the_lock(two: tuple[Session, Session], hub: Path, end: str, is_planned: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """What it adds has the id of what is about to go."""
    left, right = two
    left.add("decision", ONE, agent="a")
    ENDS[end](left)
    if is_planned:
        left.delete("DEC-0001")
    left.sync()
    rewritten, looks = inbound.Intake.rewrite, iter([True])

    def later_rewritten(*arguments: Any) -> Any:
        if next(looks, False):
            added = opened(right.path, right).add("decision", OTHER, agent="b")
            assert added.id == "DEC-0002"
        return rewritten(*arguments)

    monkeypatch.setattr(inbound.Intake, "rewrite", later_rewritten)
    ((old, new),) = right.sync().moved
    assert old == "DEC-0002"
    settled(two, [hub])
    for session in two:
        assert session.get(new).content == OTHER


def moved_to(session: Session) -> list[str]:
    return [each.id for each in session.memories() if each.id.startswith("DEC-0002-")]


@pytest.mark.parametrize("end", ["delete", "purge", "redact"])
def test_the_record_of_what_had_taken_another_id_reaches_everybody(tmp_path: Path, hub: Path, end: str) -> None:  # fmt: skip
    """A replica that comes to it later meets the old id and the new one."""
    left = Machine(tmp_path, "one").begin(hub)
    third = copied(left, tmp_path, "three")
    later(third)
    left.add("decision", ONE, agent="a")
    right = copied(left, tmp_path, "two")
    third.add("decision", OTHER, agent="c")
    third.delete("DEC-0002")
    third.sync()
    ((_, new),) = right.sync().moved
    last = Machine(tmp_path, "last").clone(hub)
    last.edit(new, agent="d", rationale="as Zanzibar has it")
    ENDS[end](left)
    left.sync()
    right.sync()
    assert records.read(git(hub, "show", f"main:{records.PATH}").encode()).is_gone(new)
    last.sync()
    settled([left, right, third, last], [hub])
    for session in (left, right, third, last):
        assert gone(session.path, "Zanzibar")
