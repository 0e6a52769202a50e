"""The main path of a session: add, edit, read, undo."""

from __future__ import annotations

import contextlib
from pathlib import Path
from random import Random

import pytest

from smp_git import Session, Store
from smp_git.model.errors import ConflictError, MemoryNotFoundError, RefusedError
from smp_git.model.given import NewKind
from tests.support import git


def test_added_memory_reads_back_equal(session: Session) -> None:
    memory = session.add(
        "decision",
        "Use PostgreSQL",
        agent="architect",
        tags=["database"],
        rationale="ACID",
        links=[("resolves", "FIND-0001")],
    )

    assert session.get(memory.id) == memory
    assert session.get("DEC-1").fields["rationale"] == "ACID"


def test_each_write_is_one_commit(session: Session) -> None:
    memory = session.add("finding", "No MFA", severity="critical", agent="veritas")
    session.resolve(memory.id, agent="veritas", action="MFA added")

    assert [version.subject for version in session.log()] == [
        "resolve finding FIND-0001",
        "finding FIND-0001: No MFA",
        "create session",
    ]


def test_plain_git_sees_a_clean_session(session: Session) -> None:
    session.add("turn", "Hello\r\nworld  ", agent="user")
    session.close()

    assert git(session.path, "status", "--porcelain") == ""
    assert git(session.path, "fsck", "--strict") == ""


def test_transaction_is_one_commit(session: Session) -> None:
    before = len(session.log())
    with session.transaction(agent="veritas", reason="verification") as tx:
        finding = tx.add("finding", "Session timeout is missing")
        decision = tx.add("decision", "Set it to 15 minutes")
        tx.link(decision.id, "resolves", finding.id)
        tx.set_state("veritas", {"working_memory": {"concerns": ["timeout"]}})

    assert len(session.log()) == before + 1
    assert session.get(decision.id).links == (("resolves", finding.id),)
    assert session.state("veritas") == {"working_memory": {"concerns": ["timeout"]}}


def test_failed_transaction_leaves_nothing(session: Session) -> None:
    head = session.head
    with contextlib.suppress(ZeroDivisionError), session.transaction(agent="a") as tx:
        tx.add("learning", "something")
        raise ZeroDivisionError

    assert session.head == head


def test_transactions_leave_no_gaps_but_for_ids_that_they_gave(session: Session) -> None:
    with session.transaction() as tx:
        assert [tx.add("turn", f"{n}").id for n in range(22)][-1] == "turn-0022"
    assert session.add("turn", "after a commit").id == "turn-0023"

    aborted = session.transaction()
    assert [aborted.add("turn", f"{n}").id for n in range(3)][-1] == "turn-0026"
    aborted.rollback()
    assert session.add("turn", "after a rollback").id == "turn-0027"

    with contextlib.suppress(ZeroDivisionError), session.transaction() as tx:
        tx.add("turn", "a")
        raise ZeroDivisionError
    assert session.add("turn", "after a failure").id == "turn-0029"


def test_no_id_is_given_twice_whatever_transactions_do(store: Store, session: Session) -> None:
    given: list[str] = []
    for seed in range(8):
        random, opened = Random(seed), [session, store.session("shop")]
        running = [each.transaction() for each in opened * 2]
        while running:
            tx, act = random.choice(running), random.random()
            if act < 0.8:
                given.append(tx.add("turn", f"{seed} {len(given)}").id)
            else:
                running.remove(tx)
                (tx.commit if act < 0.9 else tx.rollback)()
            if random.random() < 0.1:
                given.append(random.choice(opened).add("turn", f"{seed} {len(given)}").id)
        opened[1].close()

    assert len(given) == len(set(given)) > 100


def test_transaction_refuses_what_changed_meanwhile(session: Session) -> None:
    memory = session.add("decision", "Use Redis", agent="a")
    tx = session.transaction(agent="a")
    tx.edit(memory.id, status="proposed")
    session.edit(memory.id, status="rejected")
    head = session.head

    with pytest.raises(ConflictError):
        tx.commit()
    assert session.head == head
    assert session.get(memory.id).status == "rejected"


def test_undo_goes_back_one_write_at_a_time(session: Session) -> None:
    memory = session.add("decision", "Use Redis", agent="a")
    session.edit(memory.id, status="rejected")
    session.undo()
    assert session.get(memory.id).status == "active"
    session.undo()

    with pytest.raises(MemoryNotFoundError):
        session.get(memory.id)
    with pytest.raises(RefusedError):
        session.undo()


def test_undone_number_is_not_given_again(session: Session) -> None:
    session.add("decision", "Use Redis", agent="a")
    session.undo()

    assert session.add("decision", "Use Memcached", agent="a").id == "DEC-0002"


def test_rollback_brings_one_memory_back(session: Session) -> None:
    memory = session.add("decision", "Use Redis", agent="a")
    session.edit(memory.id, text="Use Valkey")
    session.add("learning", "Licences change", agent="a")
    session.rollback("HEAD~2", memory.id)

    assert session.get(memory.id).content == "Use Redis"
    assert len(session.memories("learning")) == 1


def test_reading_the_past_by_revision_and_by_time(session: Session) -> None:
    memory = session.add("decision", "Use Redis", agent="a")
    then = session.get(memory.id).created_at
    session.edit(memory.id, text="Use Valkey")

    assert session.get(memory.id, at="HEAD~1").content == "Use Redis"
    assert session.get(memory.id, at=then).content == "Use Redis"


def test_diff_names_memory_and_field(session: Session) -> None:
    memory = session.add("decision", "Use Redis", agent="a", impact="low")
    session.edit(memory.id, impact="high")
    found = session.diff("HEAD~1", "HEAD")

    assert [(item.id, item.change) for item in found] == [("DEC-0001", "changed")]
    assert ("impact", "low", "high") in found[0].fields


def test_blame_names_who_gave_a_field_its_value(session: Session) -> None:
    memory = session.add("decision", "Use Redis", agent="architect", impact="low")
    session.edit(memory.id, agent="veritas", impact="high")
    blamed = {item.field: item.agent for item in session.blame(memory.id)}

    assert blamed["impact"] == "veritas"
    assert blamed["decision"] == "architect"


def test_preference_of_the_same_key_supersedes(session: Session) -> None:
    old = session.add("preference", "Dark mode", agent="a", category="ui", key="theme")
    new = session.add("preference", "Light mode", agent="a", category="ui", key="theme")

    assert session.get(old.id).status == "superseded"
    assert ("supersedes", old.id) in session.get(new.id).links


def test_duplicate_is_reported_and_can_be_skipped(session: Session) -> None:
    first = session.add("learning", "Users prefer short answers", agent="a")
    again = session.add("learning", "Users prefer short answers", agent="b")
    skipped = session.add(
        "learning", "users prefer SHORT answers!", agent="b", skip_duplicates=True
    )

    assert again.duplicate_of == first.id
    assert skipped.id == again.id
    assert len(session.memories("learning")) == 2


def test_turn_cannot_be_edited(session: Session) -> None:
    turn = session.add("turn", "Hello", agent="user")

    with pytest.raises(RefusedError):
        session.edit(turn.id, text="Goodbye")


def test_persons_edit_is_never_overwritten(session: Session) -> None:
    memory = session.add("decision", "Use Redis", agent="a")
    file = session.file(memory.id)
    mine = file.read_text() + "note: mine\n"
    file.write_text(mine)
    session.edit(memory.id, impact="high")

    assert file.read_text() == mine
    session.rollback("HEAD~1", memory.id)
    session.commit()
    assert session.get(memory.id).fields["note"] == "mine"


def test_comment_survives_an_edit_by_the_program(session: Session) -> None:
    memory = session.add("decision", "Use Redis", agent="a")
    file = session.file(memory.id)
    file.write_text("# decided in haste\n" + file.read_text())
    session.commit(agent="ada")
    session.edit(memory.id, impact="high")

    assert file.read_text().startswith("# decided in haste\n")


def test_second_store_object_sees_the_writes(
    store: Store, session: Session, tmp_path: Path
) -> None:
    session.add("decision", "Use Redis", agent="a")

    with Store.open(tmp_path / "store").session("sh") as other:
        assert [memory.title for memory in other.memories()] == ["Use Redis"]


def test_hand_edit_and_later_write_are_brought_together(session: Session) -> None:
    memory = session.add("finding", "No MFA", agent="veritas", severity="low")
    file = session.file(memory.id)
    file.write_text("# seen by ada\n" + file.read_text().replace("severity: low", "severity: high"))
    session.edit(memory.id, category="missing_requirement")
    assert session.left_alone == (memory.path,)
    session.commit(agent="ada")

    assert dict(session.get(memory.id).fields) == {
        "severity": "high",
        "category": "missing_requirement",
    }
    assert file.read_text().startswith("# seen by ada\n")


def test_hand_edit_and_later_write_of_one_field_conflict(session: Session) -> None:
    memory = session.add("finding", "No MFA", agent="veritas", severity="low")
    file = session.file(memory.id)
    mine = file.read_text().replace("severity: low", "severity: high")
    file.write_text(mine)
    session.edit(memory.id, severity="critical")

    with pytest.raises(ConflictError, match="severity changed by hand and by a later write"):
        session.commit()
    assert file.read_text() == mine
    file.write_text(mine.replace("severity: high", "severity: critical"))
    session.commit()
    assert session.get(memory.id).fields["severity"] == "critical"


def test_glance_tells_what_info_tells(session: Session) -> None:
    session.add("decision", "Use TLS", tags=["security"])
    session.add("finding", "No MFA")
    session.set_state("veritas", {"working_memory": {}})

    glance, info = session.glance(), session.info()

    for name in ("id", "user", "state", "created_at", "last_written_at", "last_access", "head",
                 "memories", "counts", "size_bytes", "quota_bytes"):  # fmt: skip
        assert getattr(glance, name) == getattr(info, name)


def test_version_is_the_commit_that_a_revision_means(session: Session) -> None:
    session.add("decision", "Use TLS")
    session.add("finding", "No MFA")

    assert session.version() == session.log()[0]
    assert session.version("HEAD~1") == session.log()[1]


def test_a_copy_that_was_noted_is_named_by_receipts(session: Session, tmp_path: Path) -> None:
    session.add("decision", "Use TLS")
    (tmp_path / "copy.txt").touch()
    session.note_copy(tmp_path / "copy.txt")

    receipt = session.delete("DEC-0001")

    assert any("copy.txt" in each for each in receipt.out_of_reach)


def test_a_resolution_keeps_what_was_said_of_it(session: Session) -> None:
    both: dict[NewKind, str] = {"finding": "FIND-0001", "decision": "DEC-0001"}
    for kind, name in both.items():
        session.add(kind, "Sessions never end", agent="a")
        session.resolve(
            name, by="ada", action="A limit of an hour", verification="Seen in commit abc123",
            next_steps="A limit for each role",
        )  # fmt: skip
        memory = session.get(name)
        said = dict(memory.fields["resolution"])  # type: ignore[arg-type]
        assert said.pop("resolved_at")
        assert said.pop("status", "") == ("resolved" if kind == "finding" else "")
        assert said == {
            "resolved_by": "ada",
            "action_taken": "A limit of an hour",
            "verification": "Seen in commit abc123",
            "next_steps": "A limit for each role",
        }
        assert session.query(where=[("status", "equals", "resolved")], kinds=[kind]).total == 1
    session.edit("DEC-0001", status="active")
    assert session.query(where=[("status", "equals", "active")]).total == 1
    with session.transaction(agent="a") as tx:
        tx.resolve("DEC-0001", next_steps="none")
    assert session.get("DEC-0001").fields["resolution"]["next_steps"] == "none"  # type: ignore[index,call-overload]
