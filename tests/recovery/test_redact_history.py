"""A text taken out of history is gone from every version, and its memory lives on."""

from __future__ import annotations

import re

import pytest

from smp_git import Session, Store
from smp_git.errors import InvalidError, RefusedError
from smp_git.lives import is_life
from tests.recovery.support import everything
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
    assert list(store.path.rglob("redacted.tar.gz")) == []
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
    assert all("DEC-0001" not in version.subject for version in session.log()[1:])


def test_a_comment_that_holds_it_goes_with_it(store: Store, session: Session) -> None:
    session.add("decision", "With a comment")
    file = session.file("DEC-0001")
    file.write_text(f"# about {SECRET}\n" + file.read_text())
    session.commit()

    session.redact(SECRET)

    assert SECRET.encode() not in everything(store.path)
    assert session.get("DEC-0001").content == "With a comment"


def test_the_copies_of_a_redacted_memory_go_and_those_of_others_are_named(secretive: Session) -> None:  # fmt: skip
    secretive.add("decision", f"Close {SECRET}")
    secretive.delete("DEC-0001")
    secretive.restore("DEC-0001")
    secretive.delete("DEC-0002")

    done = secretive.redact(SECRET)

    assert done.left == ("the sealed copy of DEC-0002",)
    assert [item.id for item in secretive.trash()] == ["DEC-0002"]


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
