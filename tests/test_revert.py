"""Undo and rollback: the past as a new commit."""

from __future__ import annotations

import pytest

from smp_git import Session
from smp_git.model.errors import MemoryNotFoundError, RefusedError
from tests.support import git, own


def titles(session: Session) -> list[str]:
    return [memory.title for memory in session.memories()]


def test_new_session_has_nothing_to_undo(session: Session) -> None:
    with pytest.raises(RefusedError, match="nothing to undo"):
        session.undo()


def test_undo_of_a_rollback_brings_back_what_it_took(session: Session) -> None:
    session.add("decision", "Use Redis", agent="a")
    session.add("decision", "Use TLS", agent="a")
    session.rollback("HEAD~1")
    session.undo()

    assert titles(session) == ["Use Redis", "Use TLS"]
    session.undo()
    assert titles(session) == ["Use Redis"]


def test_undo_of_a_batch_of_150_takes_it_all_back(session: Session) -> None:
    session.add("decision", "Use Redis", agent="a")
    with session.transaction("importer") as tx:
        for number in range(150):
            tx.add("learning", f"Fact {number}")
    session.undo()
    assert titles(session) == ["Use Redis"]
    session.undo()
    assert titles(session) == []
    with pytest.raises(RefusedError):
        session.undo()

    assert session.add("learning", "Fact", agent="a").id > "LEARN-0150"


def test_numbers_of_an_undone_batch_stay_given_when_the_counters_are_lost(session: Session) -> None:
    with session.transaction("importer") as tx:
        for number in range(150):
            tx.add("learning", f"Fact {number}")
    session.undo()
    (session.path / ".git/smp/counters.json").unlink()
    session._handle.writer._reserved.clear()

    assert session.add("learning", "Fact", agent="a").id == "LEARN-0151"


def test_undo_of_an_edit_by_hand(session: Session) -> None:
    memory = session.add("decision", "Use Redis", agent="a")
    file = session.file(memory.id)
    before = file.read_text()
    file.write_text(before + "note: mine\n")
    session.commit()
    session.undo()

    assert file.read_text() == before


def test_undo_of_a_persons_own_commit(session: Session) -> None:
    memory = session.add("decision", "Use Redis", agent="a")
    session.check()
    file = session.file(memory.id)
    file.write_text("nonsense: [\n")
    git(session.path, "commit", "-q", "--no-verify", "-am", "I know better")
    session.undo()

    assert titles(session) == ["Use Redis"]
    assert session.check() == ()


def test_undo_passes_over_commits_without_memories(session: Session) -> None:
    session.add("decision", "Use Redis", agent="a")
    session.check()
    (session.path / "notes.txt").write_text("mine")
    git(session.path, "add", "notes.txt")
    git(session.path, "commit", "-q", "-m", "my notes")
    session.undo()

    assert titles(session) == []
    assert (session.path / "notes.txt").exists()


def test_undo_of_a_merge_is_refused(session: Session) -> None:
    session.add("decision", "Use Redis", agent="a")
    session.check()
    git(session.path, "checkout", "-q", "-b", "side", "HEAD~1")
    (session.path / "notes.txt").write_text("mine")
    git(session.path, "add", "notes.txt")
    git(session.path, "commit", "-q", "-m", "side")
    git(session.path, "checkout", "-q", "main")
    git(session.path, "merge", "-q", "-m", "merge", "side")

    with pytest.raises(RefusedError, match="merge") as caught:
        session.undo()
    assert caught.value.hint


def test_rollback_to_the_first_commit_empties_the_session(session: Session) -> None:
    session.add("decision", "Use Redis", agent="a")
    session.set_state("veritas", {"on": True})
    session.rollback("HEAD~2")

    assert titles(session) == []
    assert session.metadata.user == "user-123"
    assert session.check() == ()


def test_rollback_that_changes_nothing_writes_nothing(session: Session) -> None:
    session.add("decision", "Use Redis", agent="a")
    head = session.head

    assert session.rollback("HEAD").touches == ()
    assert session.rollback("HEAD", "DEC-1").touches == ()
    assert session.head == head


def test_rollback_of_a_memory_to_before_it_was_is_refused(session: Session) -> None:
    session.add("decision", "Use Redis", agent="a")

    with pytest.raises(MemoryNotFoundError, match="DEC-0001 is not there"):
        session.rollback("HEAD~1", "DEC-0001")


def test_rollback_brings_a_removed_memory_back_under_its_id(session: Session) -> None:
    memory = session.add("decision", "Use Redis", agent="a")
    session.file(memory.id).unlink()
    session.commit()
    session.rollback("HEAD~1", "DEC-1")

    assert session.get(memory.id) == memory


def test_rollback_over_a_file_that_cannot_be_read_is_refused_whole(session: Session) -> None:
    session.add("decision", "Use Redis", agent="a")
    session.check()
    file = session.file("DEC-0001")
    right = file.read_text()
    for text in ("nonsense: [\n", right):
        file.write_text(text)
        git(session.path, "commit", "-q", "--no-verify", "-am", "by hand")
    session.add("learning", "Use hooks", agent="a")
    head = session.head
    with pytest.raises(RefusedError, match="cannot be read") as caught:
        session.rollback("HEAD~2")

    assert "single memories" in str(caught.value.hint)
    assert session.head == head


def test_rollback_leaves_a_persons_edit_alone(session: Session) -> None:
    session.add("decision", "Use Redis", agent="a")
    session.edit("DEC-0001", **own(note=1))
    file = session.file("DEC-0001")
    mine = file.read_text() + "mine: 1\n"
    file.write_text(mine)
    change = session.rollback("HEAD~1")

    assert change.left == ("decisions/000/DEC-0001.yaml",)
    assert file.read_text() == mine
    session.commit()
