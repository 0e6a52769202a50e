"""A text taken out of history is gone from every version, and its memory lives on."""

from __future__ import annotations

import re

import pytest

from smp_git import Session, Store
from smp_git.model.errors import InvalidError, RefusedError
from smp_git.model.ids import is_life
from smp_git.remove.interrupted import site_of
from tests.recovery.support import everything
from tests.recovery.test_recovery import keys_of
from tests.support import git

SECRET = "Project Nightingale"


@pytest.fixture
def secretive(session: Session) -> Session:
    session.add("decision", f"Staff {SECRET} first", rationale="by need", tags=["staff"])
    session.add("finding", "Nothing here", agent="veritas", links=[("references", "DEC-0001")])
    session.edit("FIND-0001", text=f"It delays {SECRET}")
    session.edit("FIND-0001", text="It delays a project")
    session.set_state("veritas", {"working_memory": {SECRET: ["on", SECRET]}})
    return session


def test_the_text_is_nowhere_and_the_memories_live_on(store: Store, secretive: Session) -> None:
    done = secretive.redact(SECRET)

    assert done.ids == ("DEC-0001", "FIND-0001", "state-veritas")
    assert done.left == ()
    assert SECRET.encode() not in everything(store.path)
    memory = secretive.get("DEC-0001")
    assert memory.content == "Staff [REDACTED] first"
    assert memory.title == "Staff [REDACTED] first"
    assert (is_life(memory.life), memory.tags) == (True, ("staff",))
    assert secretive.get("FIND-0001").content == "It delays a project"
    assert secretive.state("veritas") == {"working_memory": {"[REDACTED]": ["on", "[REDACTED]"]}}
    assert secretive.check() == ()


def test_what_was_redacted_is_not_restorable(store: Store, secretive: Session) -> None:
    secretive.redact(SECRET)

    assert secretive.trash() == ()
    assert list(store.path.rglob("*.tar.gz*")) == []
    secretive.delete("DEC-0001")
    secretive.restore("DEC-0001", with_history=True)
    assert SECRET.encode() not in everything(store.path)


def test_a_pattern_and_a_replacement_of_ones_own(secretive: Session) -> None:
    done = secretive.redact(re.compile(r"project \w+", re.IGNORECASE), "the project")

    assert "DEC-0001" in done.ids
    assert secretive.get("DEC-0001").content == "Staff the project first"


def test_a_memory_that_is_only_in_the_history_goes(session: Session) -> None:
    session.add("decision", f"Staff {SECRET}")
    session.undo()

    done = session.redact(SECRET)

    assert (done.ids, done.gone) == ((), ("DEC-0001",))
    assert done.receipt is not None
    assert done.receipt.proof.clean
    assert session.verify().clean
    # What is left of it is in the history, so that it can be told elsewhere; the memory stays away.
    assert [version.subject for version in session.log()[:2]] == ["redact batch", "redact decision DEC-0001"]  # fmt: skip
    assert session.get("DEC-0001", at="HEAD~1").content == "Staff [REDACTED]"
    assert session.memories() == ()


def test_a_comment_that_holds_it_goes_with_it(store: Store, session: Session) -> None:
    session.add("decision", "With a comment")
    file = session.file("DEC-0001")
    file.write_text(f"# about {SECRET}\n" + file.read_text())
    session.commit()

    session.redact(SECRET)

    assert SECRET.encode() not in everything(store.path)
    assert session.get("DEC-0001").content == "With a comment"


def test_the_copies_of_a_redacted_memory_go(secretive: Session) -> None:
    secretive.delete("DEC-0001")
    secretive.restore("DEC-0001")

    done = secretive.redact(SECRET)

    assert done.left == ()
    assert secretive.trash() == ()
    assert opened_copies(secretive) == []


def test_what_stands_only_in_a_sealed_copy_is_redacted_there(store: Store, secretive: Session) -> None:  # fmt: skip
    """The copy is replaced by one without the text; it can still be restored."""
    secretive.add("decision", f"Close {SECRET}", rationale="by need")
    secretive.edit("DEC-0002", rationale="by haste")
    secretive.delete("DEC-0002")

    done = secretive.redact(SECRET)

    assert done.left == ()
    assert "DEC-0002" in done.gone
    assert "DEC-0002" not in done.ids
    assert [item.id for item in secretive.trash()] == ["DEC-0002"]
    assert [data for data in opened_copies(secretive) if SECRET.encode() in data] == []
    secretive.restore("DEC-0002", with_history=True)
    back = secretive.get("DEC-0002")
    assert (back.content, back.fields["rationale"]) == ("Close [REDACTED]", "by haste")
    assert SECRET.encode() not in everything(store.path)
    assert secretive.verify().clean


def test_a_text_only_in_a_sealed_copy_is_found_and_redacted(session: Session) -> None:
    session.add("decision", f"Close {SECRET}")
    session.add("decision", "Open")
    session.delete(["DEC-0001", "DEC-0002"])

    plan = session.redact(SECRET, dry_run=True)
    done = session.redact(SECRET)

    assert (plan.ids, plan.gone) == (done.ids, done.gone) == ((), ("DEC-0001",))
    assert sorted(item.id for item in session.trash()) == ["DEC-0001", "DEC-0002"]
    assert [data for data in opened_copies(session) if SECRET.encode() in data] == []
    session.restore(["DEC-0001", "DEC-0002"])
    assert [memory.content for memory in session.memories()] == ["Close [REDACTED]", "Open"]


def test_a_copy_that_does_not_open_is_named(store: Store, session: Session) -> None:
    session.add("decision", f"Close {SECRET}")
    session.add("finding", f"About {SECRET}")
    session.delete("DEC-0001")
    (item,) = session.trash()
    (key,) = keys_of(store)
    key.write_bytes(bytes(32))

    done = session.redact(SECRET)

    assert done.ids == ("FIND-0001",)
    assert done.left == (f"the sealed copy of {item.deletion}, which does not open",)


def test_a_redaction_is_one_commit_that_says_so(session: Session) -> None:
    session.add("decision", f"Staff {SECRET}")
    session.edit("DEC-0001", text=f"Staff {SECRET} now")

    session.redact(SECRET)

    assert [each.subject for each in session.log()][:-1] == ["redact decision DEC-0001"]
    assert len(session.history("DEC-0001")) == 1


def test_no_branch_keeps_the_text_and_all_go_on_as_one_life(store: Store, session: Session) -> None:
    session.add("decision", f"Staff {SECRET}", rationale="by need")
    with session.branch("aside") as aside:
        session.edit("DEC-0001", text=f"Staff {SECRET} now")

        session.redact(SECRET)

        assert aside.get("DEC-0001").life == session.get("DEC-0001").life
        assert SECRET not in aside.get("DEC-0001").content
    assert SECRET.encode() not in everything(store.path)


def opened_copies(session: Session) -> list[bytes]:
    """Return every version that a sealed copy of the session holds, as plain bytes."""
    trash = site_of(session._handle).trash
    return [version.data for record in trash.records() for version in trash.versions(record)]


def test_a_dry_run_only_tells(secretive: Session) -> None:
    before = secretive.head

    plan = secretive.redact(SECRET, dry_run=True)

    assert plan.ids == ("DEC-0001", "FIND-0001", "state-veritas")
    assert plan.receipt is None
    assert secretive.head == before


def test_a_text_that_is_nowhere_changes_nothing(secretive: Session) -> None:
    before = secretive.head

    assert secretive.redact("no such text").ids == ()
    assert secretive.head == before


@pytest.mark.parametrize("pattern", ["", re.compile("x*")])
def test_what_fits_an_empty_text_is_refused(session: Session, pattern: str | re.Pattern[str]) -> None:  # fmt: skip
    with pytest.raises(InvalidError, match="empty"):
        session.redact(pattern)


def test_a_redaction_that_leaves_no_text_changes_nothing(session: Session) -> None:
    session.add("decision", SECRET)
    before = session.head

    with pytest.raises(InvalidError, match="needs text"):
        session.redact(SECRET, "")
    assert session.head == before
    assert session.trash() == ()


def test_a_file_that_cannot_be_read_is_named_first(session: Session) -> None:
    session.add("decision", f"about {SECRET}")
    file = session.file("DEC-0001")
    file.write_text(file.read_text() + "broken: [\n")
    session.check()  # Git's own commit takes what its index has.
    git(session.path, "commit", "-qam", "broken", "--no-verify")

    with pytest.raises(RefusedError, match="cannot be read"):
        session.redact(SECRET)
    session.delete("DEC-0001")
