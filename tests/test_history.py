"""Log, diff, blame: what changed, when and by whom."""

from __future__ import annotations

from typing import Any

import pytest

from smp_git import Session
from smp_git.model.errors import InvalidError, MemoryNotFoundError
from tests.support import git, own


def test_history_of_a_memory_has_only_its_commits(session: Session) -> None:
    first = session.add("decision", "Use Redis", agent="a")
    session.add("decision", "Use TLS", agent="b")
    session.edit(first.id, agent="veritas", impact="high")

    assert [version.agent for version in session.history(first.id)] == ["veritas", "a"]


def test_removed_memory_keeps_its_history(session: Session) -> None:
    memory = session.add("decision", "Use Redis", agent="a")
    session.file(memory.id).unlink()
    session.commit(agent="ada")

    assert [version.subject for version in session.history(memory.id)] == [
        "remove decision DEC-0001",
        "decision DEC-0001: Use Redis",
    ]


def test_memory_that_never_was_has_no_history(session: Session) -> None:
    with pytest.raises(MemoryNotFoundError, match="DEC-0099"):
        session.history("DEC-0099")


@pytest.mark.parametrize("limit", [-1, -(10**30)])
def test_negative_limit_is_refused(session: Session, limit: Any) -> None:
    with pytest.raises(InvalidError, match="limit"):
        session.log(limit=limit)


def test_limit_counts_from_the_newest(session: Session) -> None:
    session.add("decision", "Use Redis", agent="a")

    assert [version.subject for version in session.log(limit=1)] == ["decision DEC-0001: Use Redis"]
    assert session.log(limit=0) == ()


def test_diff_names_added_changed_and_removed(session: Session) -> None:
    session.add("decision", "Use Redis", agent="a", impact="low")
    session.add("learning", "Licences change", agent="a")
    start = session.head
    session.edit("DEC-0001", impact=None, **own(note=1))
    session.file("LEARN-0001").unlink()
    session.commit()
    session.add("finding", "No TLS", agent="a")
    found = {str(item.id): item for item in session.diff(start)}

    assert [(i, item.change) for i, item in found.items()] == [
        ("DEC-0001", "changed"), ("FIND-0001", "added"), ("LEARN-0001", "removed"),
    ]  # fmt: skip
    changed = {change.field: change[1:] for change in found["DEC-0001"].fields}
    assert (changed["impact"], changed["note"]) == (("low", None), (None, 1))
    assert found["LEARN-0001"].title == "Licences change"


def test_diff_sees_a_change_of_type(session: Session) -> None:
    session.add("decision", "Use Redis", agent="a", **own(note=1))
    session.edit("DEC-0001", **own(note=True))

    assert "note" in [change.field for change in session.diff()[0].fields]


def test_diff_of_a_revision_with_itself_is_empty(session: Session) -> None:
    assert session.diff("HEAD", "HEAD") == ()


def test_blame_goes_back_over_a_file_that_cannot_be_read(session: Session) -> None:
    session.add("decision", "Use Redis", agent="a", impact="high")
    session.check()
    file = session.file("DEC-0001")
    right = file.read_text()
    for text in ("nonsense: [\n", right):
        file.write_text(text)
        git(session.path, "commit", "-q", "--no-verify", "-am", "by hand")

    assert {item.field: item.agent for item in session.blame("DEC-0001")}["impact"] == "a person"
    session.edit("DEC-0001", **own(note="x"))


def test_a_persons_own_commit_is_in_the_log(session: Session) -> None:
    session.check()
    (session.path / "notes.txt").write_text("mine")
    git(session.path, "add", "notes.txt")
    git(session.path, "commit", "-q", "-m", "my notes\n\nwith a body")

    assert session.log()[0].subject == "my notes"
    assert session.log()[0].touches == ()


def test_changes_of_a_memory_are_its_versions_with_their_fields(session: Session) -> None:
    session.add("decision", "Use Redis", agent="a", impact="low")
    session.add("decision", "Use TLS", agent="b")
    session.edit("DEC-1", agent="veritas", impact="high")

    found = list(session.changes("DEC-1"))

    assert [each.version for each in found] == list(session.history("DEC-1"))
    assert [each.diff.change for each in found] == ["changed", "added"]
    assert ("impact", "low", "high") in found[0].diff.fields
    with pytest.raises(MemoryNotFoundError):
        session.changes("DEC-9")


def test_changes_of_all_are_those_of_each(session: Session) -> None:
    session.add("decision", "Use Redis", agent="a", impact="low")
    with session.branch("idea") as aside:
        aside.edit("DEC-1", impact="high")
        aside.add("finding", "Redis is fast")
    session.edit("DEC-1", **own(note="x"))
    session.merge("idea")
    session.file("FIND-0001").unlink()
    session.commit()

    found = list(session.changes())

    for name in ("DEC-0001", "FIND-0001"):
        assert [each for each in found if each.diff.id == name] == list(session.changes(name))
    assert len({(each.version.commit, each.diff.id) for each in found}) == len(found)


def test_subjects_say_how_many_of_which_kind(session: Session) -> None:
    session.add_many([{"kind": "turn", "content": f"turn {n}"} for n in range(120)])
    session.add_many([{"kind": "finding", "content": f"finding number {n}"} for n in range(12)])
    with session.branch("idea") as idea:
        idea.add("finding", "on the branch")
        idea.edit("FIND-0001", severity="low")
    session.add("learning", "on main")
    session.merge("idea")
    session.configure({"readme": False, "redaction": {"email": "off"}})

    subjects = [each.subject for each in session.log()]
    assert subjects[:2] == [
        "settings: readme, redaction",
        "merge branch idea: 1 finding, edit 1 finding",
    ]
    assert subjects[-3:-1] == ["batch: 12 findings", "batch: 120 turns"]
    assert [each.untold for each in session.log()][-3:-1] == [0, 0]

    session.delete(["turn-0001", "FIND-0013"])
    subjects = [each.subject for each in session.log()]
    assert subjects[-2] == "batch"
    assert "merge" in subjects


def test_undo_of_many_is_redone_though_the_counts_are_gone(session: Session) -> None:
    session.add("learning", "first")
    session.add_many([{"kind": "finding", "content": f"finding number {n}"} for n in range(120)])
    session.undo()
    assert session.log()[0].subject == "undo batch: 120 findings"
    session.delete("FIND-0001", purge=True)
    assert session.log()[1].subject == "undo batch"
    assert not session.memories("finding")
