"""Reading: now, at a revision, at a time."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from smp_git import Session
from smp_git.model.errors import InvalidError, InvalidRevisionError, MemoryNotFoundError
from tests.support import git


@pytest.fixture
def edited(session: Session) -> Session:
    """A session with one decision, edited once."""
    session.add("decision", "Use Redis", agent="a")
    session.edit("DEC-0001", text="Use Valkey")
    return session


@pytest.mark.parametrize(
    "text",
    ["", " ", "HEAD~999", "HEAD~99999999999999999999", "HEAD@{99}", "HEAD..HEAD", "HEAD^9", "HEADLINE", "^HEAD", "--all",
     "-1", "..", "main:decisions", "HEAD:metadata.yaml", "HEAD^{tree}", "HEAD^{/", ":/redis", "garbage", "\0", "a\0b",
     "\ud800", "x" * 10_000, "2026-99-99", "2026-01-11T99:00", "0" * 40, "2 days", "last never", "*", "refs/heads/", 5, None],
)  # fmt: skip
def test_text_that_is_no_revision_is_refused(edited: Session, text: Any) -> None:
    for door in (lambda: edited.get("DEC-1", at=text or ""), lambda: edited.diff(text, "HEAD"), lambda: edited.rollback(text)):  # fmt: skip
        with pytest.raises(InvalidRevisionError) as caught:
            door()
        assert len(caught.value.message) < 300


@pytest.mark.parametrize("text", ["HEAD~1", "HEAD^", "main~1", "refs/heads/main~1", "HEAD^{}~1", "@~1", "HEAD~0^"])  # fmt: skip
def test_revision_of_git_names_a_commit(edited: Session, text: str) -> None:
    assert edited.get("DEC-1", at=text).content == "Use Redis"


def test_abbreviated_commit_and_tag_name_a_commit(edited: Session) -> None:
    first = edited.log()[1].commit
    git(edited.path, "tag", "v1", first)

    assert edited.get("DEC-1", at=first[:8]).content == "Use Redis"
    assert edited.get("DEC-1", at="v1").content == "Use Redis"


def test_time_before_the_session_is_its_beginning(edited: Session) -> None:
    assert edited.memories(at="2020-01-01") == ()
    assert [(item.change, item.id) for item in edited.diff("2020-01-01")] == [("added", "DEC-0001")]


def test_time_in_the_future_is_now(edited: Session) -> None:
    assert edited.get("DEC-1", at="2999-01-01").content == "Use Valkey"


def test_time_outside_the_calendar_is_refused(edited: Session) -> None:
    there = timezone(timedelta(hours=5))
    with pytest.raises(InvalidError):
        edited.memories(at=datetime.min.replace(tzinfo=there))


def test_naive_time_is_refused(edited: Session) -> None:
    moment = edited.log()[1].at

    assert edited.get("DEC-1", at=moment).content == "Use Redis"
    with pytest.raises(InvalidError, match="has no time zone"):
        edited.get("DEC-1", at=moment.replace(tzinfo=None))


def test_snapshot_stays_as_it_was(edited: Session) -> None:
    before = edited._handle.reader.snapshot()
    edited.edit("DEC-0001", text="Use Memcached")

    assert before.get("DEC-0001").content == "Use Valkey"


def test_caller_cannot_change_what_the_next_one_reads(session: Session) -> None:
    memory = session.add("decision", "Use Redis", agent="a", alternatives=[{"name": "x"}])
    found: Any = session.get(memory.id).fields["alternatives"]
    found[0]["name"] = "changed"

    assert session.get(memory.id).fields["alternatives"] == [{"name": "x"}]


def test_number_of_several_replicas_asks_which(session: Session) -> None:
    session.add("decision", "Use Redis", agent="a")
    file = session.path / "decisions/000/DEC-0001-k3fq.yaml"
    file.write_text("created_at: 2026-01-11\ndecision: Use TLS\n")
    session.commit()

    assert session.get("DEC-0001").content == "Use Redis"
    assert session.get("DEC-1-k3fq").content == "Use TLS"
    with pytest.raises(InvalidError, match="several") as caught:
        session.get("DEC-1")
    assert caught.value.hint == "one of DEC-0001, DEC-0001-k3fq"


@pytest.mark.parametrize("text", ["DEC-0002", "FIND-1", "state-nobody", "turn-9999", "DEC-0001-zzzz"])  # fmt: skip
def test_absent_memory_is_not_found(edited: Session, text: str) -> None:
    with pytest.raises(MemoryNotFoundError, match=text):
        edited.get(text)
