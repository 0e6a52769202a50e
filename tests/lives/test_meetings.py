"""Deletions, redactions and restorations that meet: each case as a person would tell it."""

from __future__ import annotations

import subprocess
from itertools import permutations
from pathlib import Path

import pytest

from smp_git import Session
from smp_git.model.errors import AlreadyExistsError, RefusedError, SmpError
from tests import independent_scan
from tests.lives.meeting import Meeting, X, Y, reachable
from tests.support import git, own
from tests.sync.images import settled
from tests.sync.support import Machine


@pytest.fixture
def meeting(tmp_path: Path) -> Meeting:
    return Meeting(tmp_path)


def _nowhere(meeting: Meeting, folder: Path, *texts: str) -> None:
    for place in (folder / "A", folder / "B"):
        for where, data in independent_scan.everything(place):
            assert not [text for text in texts if text.encode() in data], where
    for remote in meeting.remotes:
        assert not [text for text in texts if text.encode() in reachable(remote)]


@pytest.mark.parametrize("order", ["AB", "BA"])
def test_two_redactions_at_one_time_take_both_texts_out(meeting: Meeting, tmp_path: Path, order: str) -> None:  # fmt: skip
    meeting.do("A", ("redact x",))
    meeting.do("B", ("redact y",))
    meeting.settle(order)

    memory = meeting.sessions["A"].get("DEC-0001")
    assert memory.fields["rationale"] == "alpha [REDACTED] bravo [REDACTED] charlie"
    assert "contested" not in memory.fields
    assert memory == meeting.sessions["B"].get("DEC-0001")
    _nowhere(meeting, tmp_path, X, Y)


@pytest.mark.parametrize("more", [(), ("edit g",), ("edit g", "delete", "restore")])
@pytest.mark.parametrize("order", ["AB", "BA"])
def test_a_redaction_here_and_a_restoration_there_bring_no_text_back(meeting: Meeting, tmp_path: Path, order: str, more: tuple[str, ...]) -> None:  # fmt: skip
    meeting.do("A", ("redact x",))
    meeting.do("B", ("delete", "restore", *more))
    meeting.settle(order)

    memory = meeting.sessions["B"].get("DEC-0001")
    assert memory.fields["rationale"] == f"alpha [REDACTED] bravo {Y} charlie"
    if more == ("edit g",):
        assert memory.fields["side_note"] == "new bside gtext"
    _nowhere(meeting, tmp_path, X)


@pytest.mark.parametrize("order", ["AB", "BA"])
def test_a_deletion_is_stronger_than_a_redaction_elsewhere(meeting: Meeting, tmp_path: Path, order: str) -> None:  # fmt: skip
    meeting.do("A", ("delete",))
    meeting.do("B", ("redact x",))
    meeting.settle(order)

    assert meeting.shown().startswith("gone")
    _nowhere(meeting, tmp_path, X)


def test_a_copy_that_was_sealed_when_a_redaction_came_is_not_restored(meeting: Meeting, tmp_path: Path) -> None:  # fmt: skip
    b = meeting.sessions["B"]
    b.edit("DEC-0001", impact=f"and {X} again")
    meeting.do("A", ("redact x",))
    meeting.settle("AB")

    with pytest.raises(AlreadyExistsError):
        b.restore("DEC-0001")
    assert not [item for item in b.trash() if item.id == "DEC-0001"]
    assert b.get("DEC-0001").fields["impact"] == "and [REDACTED] again"
    _nowhere(meeting, tmp_path, X)


def test_a_restoration_never_replaces_a_newer_memory(meeting: Meeting) -> None:
    a, b = meeting.sessions.values()
    meeting.do("A", ("delete",))
    meeting.settle("AB")
    meeting.do("A", ("restore", "edit g"))
    meeting.settle("AB")

    with pytest.raises(AlreadyExistsError, match="not deleted"):
        b.restore("DEC-0001")
    assert b.get("DEC-0001").fields["side_note"] == "new aside gtext"
    assert a.get("DEC-0001") == b.get("DEC-0001")


def test_what_a_dropped_branch_had_is_merged_into_the_living_memory(meeting: Meeting) -> None:
    session = meeting.sessions["A"]
    with session.branch("idea") as idea:
        idea.edit("DEC-0001", **own(side_note="from the idea"))
    session.edit("DEC-0001", rationale="later on main")
    session.drop_branch("idea")

    done = session.restore("DEC-0001")

    memory = session.get("DEC-0001")
    assert done.merged == ("DEC-0001",)
    assert memory.life == ""
    said = [str(memory.fields["side_note"]), *(str(item) for item in session.conflicts())]
    assert any("from the idea" in text for text in said)
    assert "later on main" in (str(memory.fields["rationale"]), *said)


@pytest.mark.parametrize("life", ["generation: 2  # mine", "generation: 0x2", "generation: +2", "generation:\n  2", '"generation": 2'])  # fmt: skip
def test_a_generation_typed_by_hand_costs_nobody_a_memory(session: Session, life: str) -> None:
    session.add("decision", "Keep this one")
    session.add("decision", "Delete that one")
    file = session.path / "decisions/000/DEC-0001.yaml"
    file.write_text(file.read_text().replace("kind: decision\n", f"kind: decision\n{life}\n"))
    session.commit()
    receipt = session.delete("DEC-0002")

    assert session.get("DEC-0001").content == "Keep this one"
    assert (receipt.ids, receipt.also) == (("DEC-0002",), ())
    assert session.get("DEC-0001").life == ""
    assert session.check() == ()


def test_an_old_version_put_back_by_hand_is_refused_after_a_redaction(session: Session) -> None:
    session.add("decision", "Pay", rationale=f"the code is {X}")
    old = (session.path / "decisions/000/DEC-0001.yaml").read_text()
    session.redact(X)
    file = session.path / "decisions/000/DEC-0001.yaml"
    file.write_text(old)

    with pytest.raises(RefusedError, match="redacted"):
        session.commit()
    git(session.path, "checkout", "--", ".")
    assert session.check() == ()


def test_a_life_that_is_left_out_by_hand_is_written_back(session: Session) -> None:
    session.add("decision", "Pay")
    session.delete("DEC-0001")
    session.restore("DEC-0001")
    life = session.get("DEC-0001").life
    file = session.path / "decisions/000/DEC-0001.yaml"
    text = file.read_text().replace(f"life: {life}\n", "").replace("Pay", "Pay later")
    file.write_text(text)
    session.commit()

    memory = session.get("DEC-0001")
    assert (memory.life, memory.content) == (life, "Pay later")


def test_what_plain_git_brings_back_is_neither_shown_nor_called_sound(session: Session, tmp_path: Path) -> None:  # fmt: skip
    session.add("decision", f"Say {X}")
    session.add("decision", "Stay")
    old = tmp_path / "old"
    subprocess.run(["git", "clone", "-q", session.path, old], check=True)
    session.delete("DEC-0001", purge=True)
    for command in (("fetch", "-q", str(old), "main"), ("reset", "-q", "--hard", "FETCH_HEAD")):
        git(session.path, *command)

    assert [memory.id for memory in session._handle.reader.snapshot().memories()] == ["DEC-0002"]
    assert session.query(X).hits == ()
    with pytest.raises(SmpError, match="deleted"):
        session.get("DEC-0001")
    assert [problem.code for problem in session.check()] == ["brought_back"]
    receipt = session.delete("DEC-0002")
    assert receipt.also == ("DEC-0001",)
    assert session.check() == ()


def test_a_plain_merge_of_two_lives_is_refused(meeting: Meeting) -> None:
    a, b = meeting.sessions.values()
    meeting.do("A", ("delete", "restore"))
    meeting.do("B", ("edit g",))
    a.sync()
    a.close()
    subprocess.run(["git", "fetch", "-q", "origin"], cwd=b.path, check=True)
    done = subprocess.run(["git", "merge", "-q", "origin/main"], cwd=b.path, capture_output=True, text=True, check=False)  # fmt: skip

    assert done.returncode != 0


def test_undo_does_not_take_a_redaction_back(session: Session) -> None:
    session.add("decision", f"Pay {X}")
    session.redact(X)

    with pytest.raises(RefusedError, match="redaction"):
        session.undo()
    assert session.get("DEC-0001").content == "Pay [REDACTED]"


def test_a_redaction_of_a_removed_memory_leaves_an_edit_elsewhere_alive(meeting: Meeting, tmp_path: Path) -> None:  # fmt: skip
    meeting.do("A", ("remove", "redact x"))
    meeting.do("B", ("edit g",))
    meeting.settle("AB")

    memory = meeting.sessions["A"].get("DEC-0001")
    assert memory.fields["side_note"] == "new bside gtext"
    _nowhere(meeting, tmp_path, X)


def _edited_by_hand(session: Session, place: str) -> None:
    """Change a memory's file and do not commit it: in the folder, or only in Git's index."""
    file = session.file("DEC-0001")
    before = file.read_text()
    file.write_text(f"{before}note: an hour of {X}\n")
    if place == "staged":
        git(session.path, "add", "-A")
        file.write_text(before)


@pytest.mark.parametrize("place", ["in the folder", "staged"])
def test_an_uncommitted_edit_is_not_lost_to_a_redaction_elsewhere(meeting: Meeting, tmp_path: Path, place: str) -> None:  # fmt: skip
    b = meeting.sessions["B"]
    _edited_by_hand(b, place)
    meeting.do("A", ("redact x",))
    meeting.sessions["A"].sync()
    before = b.head

    with pytest.raises(RefusedError, match=r"DEC-0001.*not committed") as refused:
        b.sync()

    assert "smp commit" in str(refused.value.hint)
    assert b.head == before
    if place == "staged":
        git(b.path, "checkout", "-q", "--", ".")
    b.commit()
    meeting.settle("BA")
    assert meeting.sessions["A"].get("DEC-0001").fields["note"] == "an hour of [REDACTED]"
    _nowhere(meeting, tmp_path, X)


@pytest.mark.parametrize("place", ["in the folder", "staged"])
@pytest.mark.parametrize("end", ["delete", "purge"])
def test_an_uncommitted_edit_goes_with_a_deletion_elsewhere_and_is_in_its_copy(meeting: Meeting, tmp_path: Path, place: str, end: str) -> None:  # fmt: skip
    b = meeting.sessions["B"]
    _edited_by_hand(b, place)
    meeting.do("A", (end,))
    meeting.settle("AB")
    _nowhere(meeting, tmp_path, "an hour of")

    if end == "delete":
        b.restore("DEC-0001", with_history=True)
        said = [b.get("DEC-0001", at=each.commit).fields for each in b.history("DEC-0001")]
        assert f"an hour of {X}" in [fields.get("note") for fields in said]
    else:
        with pytest.raises(RefusedError, match="purged"):
            b.restore("DEC-0001")


def test_without_a_redaction_nothing_is_masked(meeting: Meeting) -> None:
    meeting.do("A", ("delete", "restore", "edit g"))
    meeting.do("B", ("delete", "restore", "edit f"))
    meeting.settle("BA")

    memory = meeting.sessions["B"].get("DEC-0001")
    assert memory.fields["rationale"] == "new bside ftext"
    assert memory.fields["side_note"] == "new aside gtext"
    assert not any(meeting.notes.values())


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
@pytest.mark.parametrize("is_behind", [False, True], ids=["", "and a branch that is behind"])
def test_a_branch_meets_what_main_has_just_come_to(tmp_path: Path, order: tuple[int, ...], is_behind: bool) -> None:  # fmt: skip
    """What the join on main shows is known before any history has it."""
    hub, words = tmp_path / "hub.git", ("xantippe", "yggdrasil", "zuleikha")
    one = Machine(tmp_path, "one").begin(hub)
    one.add("decision", "kiwi", agent="a", rationale=f"alpha {' bravo '.join(words)} charlie")
    one.sync()
    sessions = [one, *(Machine(tmp_path, name).clone(hub) for name in ("two", "three"))]
    for session, word in zip(sessions, words, strict=True):
        if is_behind and session is sessions[-1]:
            with session.branch("idea") as idea:
                idea.edit("DEC-0002", agent="c", impact="delta")
        session.redact(word)
    first, second, last = (sessions[number] for number in order)
    first.sync()
    second.sync()
    if "idea" not in [each.name for each in second.branches()]:
        with second.branch("idea") as idea:
            idea.edit("DEC-0002", agent="b", **own(side_note="echo"))
    second.sync()
    last.sync()
    settled(sessions, [hub])
    for session in sessions:
        for ref in ("main", "idea"):
            file = git(session.path, "show", f"{ref}:decisions/000/DEC-0002.yaml")
            assert "decision: kiwi\n" in file, ref
            assert "alpha" in file, ref
    for name in ("one", "two", "three"):
        assert independent_scan.scan(tmp_path / name, [word.encode() for word in words]) == []


def test_redactions_that_met_a_deletion_keep_nobody_from_syncing(tmp_path: Path) -> None:
    """Both are dead, and no history has what either left."""
    hub = tmp_path / "hub.git"
    one = Machine(tmp_path, "one").begin(hub)
    name = one.add("decision", "kiwi", agent="a", rationale=f"{X} and {Y}").id
    one.sync()
    two, three = (Machine(tmp_path, each).clone(hub) for each in ("two", "three"))
    one.redact(X)
    one.delete(name)
    two.delete(name)
    two.restore(name)
    two.redact(Y)

    settled([one, two, three], [hub])

    assert name not in [each.id for each in three.memories()]
    for each in ("one", "two", "three"):
        assert independent_scan.scan(tmp_path / each, [X.encode(), Y.encode()]) == []


def test_what_a_later_life_says_is_no_trace_of_an_earlier_one(tmp_path: Path) -> None:
    machines = [Machine(tmp_path, name) for name in "AB"]
    a = machines[0].begin(tmp_path / "r.git")
    name = a.add("decision", "Use kiwi7 for every long harvest", agent="a").id
    a.sync()
    b = machines[1].clone(tmp_path / "r.git")
    b.edit(name, **own(side_note="noted at bravo alone"))
    a.delete(name)
    a.sync()
    b.sync()
    a.restore(name)
    a.edit(name, impact="large")
    a.file(name).unlink()
    a.commit()
    a.sync()
    b.sync()

    # B keeps what it alone had; the history of both still has the life that was restored.
    assert [item.id for item in b.trash()] == [name]
    proof = b.verify()
    assert proof.hits == ()
    assert proof.text_searched
    assert proof.also_in == (name,)
