"""Undo and rollback: the past as a new commit."""

from __future__ import annotations

import pytest

from smp_git import Session
from smp_git.model.errors import ConflictError, MemoryNotFoundError, RefusedError
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


# Undo of one memory, of one commit, and redo


def texts(session: Session) -> dict[str, str]:
    return {memory.id: memory.content for memory in session.memories()}


def test_redo_takes_undos_back_one_by_one(session: Session) -> None:
    states = [texts(session)]
    session.add("decision", "a", agent="ada")
    states.append(texts(session))
    session.edit("DEC-1", text="b")
    states.append(texts(session))
    session.add("finding", "c", agent="ada")
    states.append(texts(session))

    for _ in range(2):
        for expected in (2, 1, 0):
            session.undo()
            assert texts(session) == states[expected]
        for expected in (1, 2, 3):
            session.redo()
            assert texts(session) == states[expected]
    with pytest.raises(RefusedError, match="nothing to redo"):
        session.redo()
    session.undo()
    session.add("turn", "d", agent="ada")
    with pytest.raises(RefusedError, match="nothing to redo"):
        session.redo()


def test_undo_of_a_memory_leaves_the_others_alone(session: Session) -> None:
    session.add("decision", "a", agent="ada")
    session.edit("DEC-1", text="b")
    with session.transaction("ada") as tx:
        tx.edit("DEC-1", text="c")
        tx.add("finding", "d")

    session.undo("DEC-1")
    assert texts(session) == {"DEC-0001": "b", "FIND-0001": "d"}
    session.undo()
    assert texts(session) == {"DEC-0001": "b"}
    session.undo("dec1")
    assert texts(session) == {"DEC-0001": "a"}
    session.redo()
    assert texts(session) == {"DEC-0001": "b"}


def test_undo_of_a_commit_leaves_later_ones_alone(session: Session) -> None:
    session.add("decision", "a", agent="ada")
    session.edit("DEC-1", text="b")
    edited = session.head
    session.add("finding", "c", agent="ada")

    session.undo(revision=edited)
    assert texts(session) == {"DEC-0001": "a", "FIND-0001": "c"}
    with pytest.raises(RefusedError, match="nothing to undo"):
        session.undo(revision=edited)
    session.undo()
    assert texts(session) == {"DEC-0001": "a"}
    session.undo()
    assert texts(session) == {}


def test_undo_of_a_commit_that_was_written_over_is_refused(session: Session) -> None:
    session.add("decision", "a", agent="ada")
    session.edit("DEC-1", text="b")
    session.edit("DEC-1", text="c")

    with pytest.raises(ConflictError, match="changed since: DEC-0001"):
        session.undo(revision="HEAD~1")
    with pytest.raises(RefusedError, match="beginning"):
        session.undo(revision="HEAD~3")
    assert texts(session) == {"DEC-0001": "c"}


def test_undo_after_a_deletion_is_refused_and_points_to_restore(session: Session) -> None:
    session.add("decision", "a", agent="ada")
    session.add("finding", "b", agent="ada")
    session.delete("FIND-0001")

    for way in ({}, {"id": "FIND-1"}, {"revision": "HEAD"}):
        with pytest.raises(RefusedError, match="is a deletion") as refused:
            session.undo(**way)
        assert "smp restore FIND-0001" in (refused.value.hint or "")
    assert texts(session) == {"DEC-0001": "a"}
    session.undo("DEC-1")
    session.redo()
    session.restore("find1")
    session.undo()
    assert texts(session) == {"DEC-0001": "a"}


def test_undos_are_told_apart_after_history_was_rewritten(session: Session) -> None:
    session.add("decision", "a", agent="ada")
    session.edit("DEC-1", text="b")
    with session.transaction("ada") as tx:
        tx.edit("DEC-1", text="c")
        tx.add("turn", "secret")
    session.undo("DEC-1")
    session.delete("turn-0001")
    session.add("finding", "d", agent="ada")
    session.undo()

    session.undo("DEC-1")
    assert texts(session) == {"DEC-0001": "a"}


def test_a_deletion_is_restored_whole_by_its_id(session: Session) -> None:
    session.add("decision", "a", agent="ada", tags=["x"])
    session.add("finding", "b", agent="ada", tags=["x"])
    session.add("turn", "c", agent="ada")
    session.delete("turn-0001")
    receipt = session.delete(tags=["x"])

    assert session.restore(receipt.deletion).ids == ("DEC-0001", "FIND-0001")
    assert texts(session) == {"DEC-0001": "a", "FIND-0001": "b"}
