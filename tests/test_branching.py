"""Branches of a session: ideas tried aside, merged or dropped, beside what a person does with Git."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.git.repository import MAIN
from smp_git.model.errors import (
    AlreadyExistsError,
    InvalidError,
    NotFoundError,
    RefusedError,
)
from smp_git.model.ids import is_life
from smp_git.write.stage import Stage
from tests.conftest import Clock
from tests.support import before_next_write, git, own, python


@pytest.fixture
def aside(session: Session) -> Iterator[Session]:
    """A handle on a branch, with one decision on both."""
    session.add("decision", "Use MySQL", impact="high")
    with session.branch("try/redis") as handle:
        yield handle


def ids(session: Session) -> list[str]:
    return [memory.id for memory in session.memories()]


def status(session: Session) -> str:
    """What Git says of the folder, once its index is up to date."""
    session._handle.keeper.flush()
    return git(session.path, "status", "--porcelain")


def test_what_is_written_aside_is_not_on_main(session: Session, aside: Session) -> None:
    aside.add("finding", "Redis is fast")
    aside.edit("DEC-1", impact="low")

    assert ids(session) == ["DEC-0001"]
    assert session.get("DEC-1").fields["impact"] == "high"
    assert ids(aside) == ["DEC-0001", "FIND-0001"]
    assert status(session) == ""
    assert not (session.path / "findings").exists()


def test_a_branch_nobody_wrote_against_is_moved_forward(session: Session, aside: Session) -> None:
    aside.add("finding", "Redis is fast")

    result = session.merge("try/redis")

    assert not result.is_merge
    assert [touch.id for touch in result.touches] == ["FIND-0001"]
    assert session.head == aside.head
    assert (session.path / "findings/000/FIND-0001.yaml").is_file()
    assert status(session) == ""


def test_a_merge_brings_both_together(session: Session, aside: Session) -> None:
    aside.edit("DEC-1", rationale="fast")
    aside.add("finding", "Redis is fast")
    session.edit("DEC-1", impact="low")
    session.add("finding", "on main")

    result = session.merge("try/redis", agent="judge")

    assert result.is_merge
    assert {touch.id for touch in result.touches} == {"DEC-0001", "FIND-0001"}
    found = session.get("DEC-1").fields
    assert (found["impact"], found["rationale"]) == ("low", "fast")
    assert ids(session) == ["DEC-0001", "FIND-0001", "FIND-0002"]
    assert "contested" not in found
    assert git(session.path, "fsck", "--strict") == ""
    assert session.log()[0].subject == "merge branch try/redis: 1 finding, edit 1 decision"
    assert git(session.path, "log", "-1", "--format=%an %P").split() == [
        "judge", session.log()[0].commit and git(session.path, "rev-parse", "HEAD^1").strip(), aside.head,
    ]  # fmt: skip
    assert git(session.path, "log", "--graph", "--oneline").count("*") == 7
    assert status(session) == ""
    assert session.merge("try/redis").touches == ()


def test_a_merge_the_other_way_round_gives_the_same_files(session: Session, aside: Session) -> None:
    aside.edit("DEC-1", impact="low")
    session.edit("DEC-1", impact="medium")
    session.tag("before")

    session.merge("try/redis")
    with session.branch("again") as other:
        pass
    git(session.path, "update-ref", "refs/heads/again", "before")
    aside.merge("again")
    other.close()

    tree = "^{tree}"
    assert git(session.path, "rev-parse", f"main{tree}") == git(session.path, "rev-parse", f"try/redis{tree}")  # fmt: skip


def test_numbers_are_never_given_twice(session: Session, aside: Session) -> None:
    given = [
        handle.add("finding", f"finding {number}").id
        for number, handle in enumerate((session, aside, aside, session, aside, session))
    ]
    aside.close()
    session.drop_branch("try/redis")
    given.append(session.add("finding", "last").id)

    assert given == [f"FIND-{number:04d}" for number in range(1, 8)]


def test_numbers_survive_lost_counters(session: Session, aside: Session) -> None:
    aside.add("finding", "aside")
    (session.path / ".git/smp/counters.json").unlink()

    assert session.add("finding", "on main").id == "FIND-0002"


def test_a_handle_is_bound_to_another_branch(session: Session, aside: Session) -> None:
    aside.add("finding", "aside")
    session.switch("try/redis")

    assert session.current_branch == "try/redis"
    assert ids(session) == ["DEC-0001", "FIND-0001"]
    assert [hit.id for hit in session.query("aside").hits] == ["FIND-0001"]
    session.switch("main")
    assert session.query("aside").hits == ()


def test_branches_are_listed(session: Session, aside: Session) -> None:
    found = session.branches()

    assert [(branch.name, branch.is_current) for branch in found] == [
        ("main", True), ("try/redis", False),
    ]  # fmt: skip
    assert [branch.is_current for branch in aside.branches()] == [False, True]


@pytest.mark.parametrize(
    "name",
    ["", "A", "a b", "a..b", "a.lock", "/a", "a/", "a//b", "-a", "a~1", "é", "x" * 101, "a."],
)
def test_a_name_that_git_or_a_file_system_would_not_take_is_refused(
    session: Session, name: str
) -> None:
    with pytest.raises(InvalidError):
        session.branch(name)
    with pytest.raises(InvalidError):
        session.tag(name)


def test_a_name_that_is_taken_is_refused(session: Session, aside: Session) -> None:
    session.tag("v1")

    for make in (lambda: session.branch("try/redis"), lambda: session.branch("main"), lambda: session.tag("v1")):  # fmt: skip
        with pytest.raises(AlreadyExistsError):
            make()
    for name in ("try", "try/redis/more"):
        with pytest.raises(InvalidError, match="cannot exist beside"):
            session.branch(name)


@pytest.mark.parametrize("name", ["nope", "../main", "", "MAIN"])
def test_an_unknown_branch_is_named(session: Session, name: str) -> None:
    for ask in (session.switch, session.merge, session.drop_branch):
        with pytest.raises(NotFoundError, match="no branch"):
            ask(name)


def test_tags_stand_wherever_a_revision_does(session: Session, aside: Session) -> None:
    made = session.tag("before", "HEAD")
    session.edit("DEC-1", impact="low")

    assert session.tags() == (made,)
    assert session.get("DEC-1", at="before").fields["impact"] == "high"
    assert git(session.path, "rev-parse", "before").strip() == made.commit


# Contested values


def test_tag_that_waits_for_a_redaction_names_what_that_left(
    store: Store, session: Session
) -> None:
    session.add("decision", "Use plugh-0451")
    with store.session("shop") as other:
        before_next_write(session, lambda: other.redact("plugh-0451"))

        made = session.tag("v1")

    assert made.commit == session.head
    assert session.check() == ()
    assert session.verify().clean


def test_contested_values_are_listed_and_settled(session: Session, aside: Session) -> None:
    aside.edit("DEC-1", impact="low", rationale="fast")
    session.edit("DEC-1", impact="medium", rationale="known")
    result = session.merge("try/redis")
    tag = session.conflicts()[0].replica

    assert [(found.field, found.kept, found.others) for found in result.contested] == [
        ("impact", "medium", ("low",)), ("rationale", "known", ("fast",)),
    ]  # fmt: skip
    assert [(found.id, found.field, found.kept, found.value) for found in session.conflicts()] == [
        ("DEC-0001", "impact", "medium", "low"), ("DEC-0001", "rationale", "known", "fast"),
    ]  # fmt: skip

    session.resolve_conflict("DEC-1", "impact")
    assert [found.field for found in session.conflicts()] == ["rationale"]
    settled = session.resolve_conflict("DEC-1", take=tag)

    assert (settled.fields["impact"], settled.fields["rationale"]) == ("medium", "fast")
    assert session.conflicts() == ()
    assert session.log()[0].subject == "resolve decision DEC-0001"


def test_a_third_value_settles_one_field(session: Session, aside: Session) -> None:
    aside.edit("DEC-1", text="Use Redis", impact="low")
    session.edit("DEC-1", text="Use PostgreSQL", impact="medium")
    session.merge("try/redis")

    with pytest.raises(InvalidError, match="decision, impact"):
        session.resolve_conflict("DEC-1", value="both")
    assert session.resolve_conflict("DEC-1", "decision", value="Use both").content == "Use both"
    with pytest.raises(NotFoundError, match="nothing is contested in decision"):
        session.resolve_conflict("DEC-1", "decision")
    with pytest.raises(NotFoundError, match="replica 'none'"):
        session.resolve_conflict("DEC-1", take="none")


def test_secrets_do_not_come_in_by_a_settled_value(session: Session, aside: Session) -> None:
    aside.edit("DEC-1", impact="low")
    session.edit("DEC-1", impact="medium")
    session.merge("try/redis")

    secret = "AKIA" + "IOSFODNN7EXAMPLE"
    made = session.resolve_conflict("DEC-1", value=f"key {secret}")

    assert secret not in str(made.fields)


def test_nobody_sets_contested_values(session: Session) -> None:
    session.add("decision", "Use MySQL")
    item = {"field": "impact", "value": "x", "at": "2026-01-11T14:30:00Z", "replica": "aaaa"}

    with pytest.raises(InvalidError, match="contested"):
        session.add("decision", "Use Redis", **own(contested=[item]))
    with pytest.raises(InvalidError, match="contested"):
        session.edit("DEC-1", **own(contested=[item]))
    with pytest.raises(InvalidError, match="contested"):
        session.set_state("ada", {"contested": [item]})


def test_a_contested_state_is_settled_by_the_next_one(session: Session, aside: Session) -> None:
    aside.set_state("ada", {"current_context": "there"})
    session.set_state("ada", {"current_context": "here", "memory_refs": ["DEC-0001"]})
    session.merge("try/redis")

    assert [found.value for found in session.conflicts()] == ["there"]
    assert "contested" not in session.state("ada")
    session.set_state("ada", {**session.state("ada"), "current_context": "on"})
    assert session.conflicts() == ()


def test_a_contested_text_is_deleted_with_its_memory(session: Session, aside: Session) -> None:
    aside.edit("DEC-1", impact="the secret of the other side")
    session.edit("DEC-1", impact="medium")
    session.merge("try/redis")

    receipt = session.delete("DEC-0001", purge=True)

    assert receipt.proof.clean
    assert session.verify().clean
    assert b"the secret of" not in git(session.path, "log", "-p", "--all").encode()


# Dropping


def test_what_only_a_dropped_branch_held_can_be_restored(session: Session, aside: Session) -> None:
    aside.add("finding", "Redis is fast")
    aside.edit("FIND-1", severity="high")
    aside.edit("DEC-1", impact="low")
    aside.close()

    gone = session.drop_branch("try/redis")

    assert [branch.name for branch in session.branches()] == ["main"]
    assert gone.ids == ("FIND-0001", "DEC-0001")
    assert [(item.id, item.versions) for item in session.trash()] == [("FIND-0001", 2), ("DEC-0001", 1)]  # fmt: skip
    session.restore("FIND-0001", with_history=True)
    assert session.get("FIND-1").fields["severity"] == "high"
    assert len(session.history("FIND-1")) == 2
    session.restore("DEC-0001")
    assert session.get("DEC-1").fields["impact"] == "low"
    assert session.trash() == ()


def test_a_merged_branch_is_dropped_without_a_copy(session: Session, aside: Session) -> None:
    aside.add("finding", "Redis is fast")
    aside.close()
    session.merge("try/redis")

    assert session.drop_branch("try/redis").deletion is None
    assert session.trash() == ()


def test_the_copy_of_a_dropped_branch_ends_without_a_deletion(
    session: Session, aside: Session
) -> None:
    aside.edit("DEC-1", impact="low")
    aside.add("finding", "Redis is fast")
    aside.close()
    session.drop_branch("try/redis")

    assert session.purge("FIND-0001").copies == 1
    session.purge(older_than="0s")

    assert session.trash() == ()
    assert session.get("DEC-1").fields["impact"] == "high"
    assert not (session.path / "tombstones.yaml").exists()


def test_without_a_place_for_keys_nothing_is_dropped(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setenv("HOME", "/")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    with Store.init(tmp_path / "other", clock=clock).create_session("shop") as session:
        with session.branch("idea") as handle:
            handle.add("finding", "only here")
        with pytest.raises(RefusedError) as refused:
            session.drop_branch("idea")

        assert "--discard" in str(refused.value.hint)
        assert session.branches()[1].name == "idea"
        assert session.drop_branch("idea", discard=True).ids == ()


def test_what_cannot_be_dropped_is_refused(session: Session, aside: Session) -> None:
    with pytest.raises(RefusedError, match="main"):
        session.drop_branch("main")
    with pytest.raises(RefusedError, match="is in use here"):
        aside.drop_branch("try/redis")
    git(session.path, "checkout", "-q", "try/redis")
    with pytest.raises(RefusedError, match="checked out"):
        session.drop_branch("try/redis")
    git(session.path, "checkout", "-q", "main")


def test_a_handle_on_a_dropped_branch_says_so(session: Session, aside: Session) -> None:
    session.drop_branch("try/redis")

    with pytest.raises(NotFoundError, match="no branch try/redis"):
        aside.memories()
    aside.switch("main")
    assert ids(aside) == ["DEC-0001"]


# History


def test_history_over_merges_has_each_commit_once(session: Session, aside: Session) -> None:
    aside.edit("DEC-1", impact="low")
    session.edit("DEC-1", rationale="known")
    session.merge("try/redis")
    session.edit("DEC-1", status="final")

    found = [version.commit for version in session.history("DEC-1")]
    told = git(session.path, "log", "--format=%H", "--full-history", "--", "decisions/000/DEC-0001.yaml").split()  # fmt: skip

    assert len(found) == len(set(found)) == 5
    assert set(told) <= set(found)
    assert [(item.id, item.change) for item in session.diff("HEAD~2", "HEAD~1")] == [("DEC-0001", "changed")]  # fmt: skip


def test_blame_follows_a_field_through_a_merge(session: Session, aside: Session) -> None:
    aside.edit("DEC-1", impact="low", agent="eve")
    session.edit("DEC-1", rationale="known", agent="bob")
    session.merge("try/redis")

    told = {item.field: item.agent for item in session.blame("DEC-1")}

    assert told == {
        "created_at": "user-123", "agent": "user-123", "decision": "user-123",
        "impact": "eve", "rationale": "bob", "updated_at": "bob",
    }  # fmt: skip


def test_a_merge_is_rolled_back_but_not_undone(session: Session, aside: Session) -> None:
    aside.edit("DEC-1", impact="low")
    session.edit("DEC-1", rationale="known")
    session.merge("try/redis")

    with pytest.raises(RefusedError, match="is a merge"):
        session.undo()
    session.rollback("HEAD~1")

    assert session.get("DEC-1").fields["impact"] == "high"


# The folder, and a person


def test_the_folder_shows_main_whatever_the_handle_does(session: Session, aside: Session) -> None:
    aside.edit("DEC-1", impact="low")
    file = session.path / "decisions/000/DEC-0001.yaml"
    file.write_text(file.read_text().replace("impact: high", "impact: by hand"))

    for ask in (aside.commit, lambda: aside.file("DEC-1")):
        with pytest.raises(RefusedError, match="the folder shows main"):
            ask()
    session.commit()
    assert session.get("DEC-1").fields["impact"] == "by hand"
    assert aside.get("DEC-1").fields["impact"] == "low"
    assert aside.check() == ()


def test_a_merge_leaves_what_a_person_is_editing(session: Session, aside: Session) -> None:
    aside.edit("DEC-1", impact="low")
    session.add("finding", "on main")
    file = session.path / "decisions/000/DEC-0001.yaml"
    file.write_text(file.read_text() + "note: mine\n")

    assert session.merge("try/redis").left == ("decisions/000/DEC-0001.yaml",)
    session.commit()

    assert session.get("DEC-1").fields == {"impact": "low", "note": "mine"}


def test_a_branch_that_a_person_made_with_git_is_merged(session: Session) -> None:
    session.add("decision", "Use MySQL", impact="high")
    assert status(session) == ""
    git(session.path, "checkout", "-q", "-b", "Feature/By-Hand")
    file = session.path / "decisions/000/DEC-0001.yaml"
    file.write_text(file.read_text().replace("impact: high", "impact: low # cheap"))
    git(session.path, "commit", "-q", "--no-verify", "-am", "by hand")
    git(session.path, "checkout", "-q", "main")
    session.edit("DEC-1", rationale="known")

    session.merge("Feature/By-Hand")

    assert "impact: low # cheap" in file.read_text()
    assert session.get("DEC-1").fields == {"impact": "low", "rationale": "known"}
    session.drop_branch("Feature/By-Hand")


def test_a_merge_by_git_of_different_memories_is_the_same(session: Session, aside: Session) -> None:
    aside.add("finding", "aside")
    session.add("learning", "on main")
    session.tag("before")
    session.merge("try/redis")
    wanted = git(session.path, "rev-parse", "HEAD^{tree}")

    assert status(session) == ""
    git(session.path, "checkout", "-q", "-b", "by-git", "before")
    git(session.path, "merge", "-q", "--no-verify", "--no-edit", "try/redis")

    assert git(session.path, "rev-parse", "HEAD^{tree}") == wanted
    git(session.path, "checkout", "-q", "main")


def test_a_branch_of_another_session_is_refused(session: Session, store: Store) -> None:
    with store.create_session("other") as other:
        other.add("decision", "elsewhere")
        git(session.path, "fetch", "-q", str(other.path), "main:refs/heads/foreign")

    with pytest.raises(RefusedError, match="no commit in common"):
        session.merge("foreign")
    git(session.path, "branch", "-D", "foreign")


def test_a_deletion_reaches_every_branch_and_stays(session: Session, aside: Session) -> None:
    aside.edit("DEC-1", impact="low")
    aside.add("finding", "aside")
    aside.delete("DEC-0001")
    session.add("learning", "on main")

    session.merge("try/redis")

    assert ids(session) == ["FIND-0001", "LEARN-0001"]
    assert aside.tags() == ()
    session.restore("DEC-0001")
    life = session.get("DEC-1").life
    assert is_life(life)
    aside.merge("main")
    assert aside.get("DEC-1").life == life
    assert session.verify().clean


def test_a_dead_writer_of_a_branch_leaves_nothing_in_the_way(
    session: Session, aside: Session
) -> None:
    code = """
import os, sys
from smp_git import Store
from smp_git.git import repository
session = Store.open(sys.argv[1]).session("shop")
session.switch("try/redis")
session.add("finding", "before")
move = repository.Repository._lock_ref
def dying(self, *arguments):
    move(self, *arguments)
    os._exit(73)
repository.Repository._lock_ref = dying
session.add("finding", "lost")
"""
    done = python(code, session.path.parent.parent, check=False)
    assert done.returncode == 73, done.stderr

    assert session.add("finding", "on main").id >= "FIND-0002"
    aside.add("finding", "aside")

    assert [memory.content for memory in aside.memories("finding")] == ["before", "aside"]
    assert not list((session.path / ".git/refs/heads").rglob("*.lock"))
    assert status(session) == ""
    assert session.check() == ()


def test_the_index_is_kept_for_main_only(session: Session, aside: Session) -> None:
    aside.add("finding", "aside")
    aside.close()
    session.edit("DEC-1", impact="low")
    session.switch("try/redis")
    session.add("finding", "more")
    session.close()

    assert git(session.path, "status", "--porcelain") == ""
    assert git(session.path, "rev-parse", MAIN) != git(session.path, "rev-parse", "try/redis")


def test_packed_branches_and_tags_are_branches_and_tags(session: Session, aside: Session) -> None:
    aside.add("finding", "aside")
    aside.close()
    session.tag("v1")
    git(session.path, "pack-refs", "--all")

    assert [branch.name for branch in session.branches()] == ["main", "try/redis"]
    assert [tag.name for tag in session.tags()] == ["v1"]
    assert session.drop_branch("try/redis").ids == ("FIND-0001",)
    assert git(session.path, "branch", "--list").split() == ["*", "main"]
    session.branch("try/redis").close()
    session.merge("try/redis")


def _put(path: str, data: bytes, stage: Stage) -> None:
    stage.put_file(path, data, "edit")


def test_a_turn_is_settled_too(session: Session, aside: Session) -> None:
    with session.transaction() as tx:
        tx.add("turn", "said")
    aside.merge("main")
    for handle, text in ((aside, "said there"), (session, "said here")):
        file = handle._handle.reader.snapshot().file("turn-0001") or b""
        edited = file.replace(b"said", text.encode())
        handle._handle.writer.run("a", partial(_put, "conversation/000/turn-0001.md", edited))
    session.merge("try/redis")

    (found,) = session.conflicts()
    assert found.field == "content"
    assert session.resolve_conflict("turn-1", take=found.replica).content == found.value


def test_settings_of_a_branch_hold_there_and_come_with_it(session: Session, aside: Session) -> None:
    secret = "AKIA" + "IOSFODNN7EXAMPLE"
    aside.override({"redaction": "off"})

    assert secret in aside.add("finding", f"key {secret}").content
    assert secret not in session.add("finding", f"key {secret} too").content
    session.merge("try/redis")
    assert session.metadata.overrides == {"redaction": "off"}
    assert secret in session.add("finding", f"key {secret} again").content


def test_branch_that_a_person_has_checked_out_is_not_written_behind_his_back(session: Session) -> None:  # fmt: skip
    """His files and index would stay as they were, and his next commit undo the write."""
    with session.branch("idea") as idea:
        git(session.path, "switch", "-q", "idea")
        before = idea.head

        with pytest.raises(RefusedError, match="branch idea is checked out") as caught:
            idea.add("finding", "Unseen", agent="a")

        assert "git switch main" in (caught.value.hint or "")
        assert idea.head == before
        session.add("finding", "On main", agent="a")
        assert git(session.path, "status", "--porcelain") == ""
        git(session.path, "switch", "-q", "main")
        idea.add("finding", "Seen", agent="a")
        assert session.check() == ()


def test_plan_of_a_merge_is_what_the_merge_does(session: Session, aside: Session) -> None:
    aside.edit("DEC-1", impact="low")
    aside.edit("DEC-1", rationale="It is fast")
    aside.add("finding", "Redis is fast")
    session.edit("DEC-1", impact="medium")
    before = session.head

    plan = session.merge("try/redis", dry_run=True)

    assert session.head == before
    assert session.conflicts() == ()
    done = session.merge("try/redis")
    assert plan.is_merge is done.is_merge is True
    assert plan.contested == done.contested != ()
    assert plan.memories == session.diff(before)


def test_plan_of_a_merge_that_only_moves_the_branch(session: Session, aside: Session) -> None:
    assert session.merge("try/redis", dry_run=True).memories == ()
    aside.add("finding", "Redis is fast")

    plan = session.merge("try/redis", dry_run=True)

    assert not plan.is_merge
    assert [(each.id, each.change) for each in plan.memories] == [("FIND-0001", "added")]
    with pytest.raises(NotFoundError):
        session.merge("nowhere", dry_run=True)


def test_contested_value_is_settled_in_a_transaction(session: Session, aside: Session) -> None:
    aside.edit("DEC-1", impact="low")
    session.edit("DEC-1", impact="medium")
    session.merge("try/redis")
    (lost,) = session.conflicts()

    with session.transaction() as tx:
        tx.resolve_conflict("DEC-1", "impact", take=lost.replica)
        tx.edit("DEC-1", **own(note="settled"))

    assert session.conflicts() == ()
    assert session.get("DEC-1").fields["impact"] == "low"
    assert session.get("DEC-1").fields["note"] == "settled"
