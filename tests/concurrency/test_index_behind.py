"""Git's index, and the branch itself, after a kill or a person's command: put right, or told."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from smp_git import Session, Store
from tests.concurrency.writers import assert_clean
from tests.support import git, python, smp

# Longer than the quiet time after which a handle looks after the index.
PATIENCE = 15.0
_DIES = """
import os, signal, sys
from smp_git import Store
session = Store.open(sys.argv[1]).session("busy")
session.add("finding", "Not in the index", agent="a")
os.kill(os.getpid(), signal.SIGKILL)
"""


def _killed_writer(session: Session) -> None:
    assert python(_DIES, session.path.parents[1], check=False).returncode < 0
    assert "D  findings" in git(session.path, "status", "--porcelain")


def test_index_that_a_killed_writer_left_behind_is_refreshed_by_a_handle_that_only_reads(
    session: Session,
) -> None:
    session.add("decision", "Use PostgreSQL", agent="a")
    session._handle.keeper.flush()
    _killed_writer(session)

    assert len(session.memories()) == 2
    end = time.monotonic() + PATIENCE
    while git(session.path, "status", "--porcelain") and time.monotonic() < end:
        time.sleep(0.1)

    assert_clean(session.path)


def test_index_that_was_removed_is_made_anew_with_all_files(session: Session) -> None:
    session.add("decision", "Use PostgreSQL", agent="a")
    session.close()
    assert_clean(session.path)
    (session.path / ".git/index").unlink()

    with Store.open(session.path.parents[1]).session("busy") as again:
        again.add("finding", "After it", agent="a")

    assert_clean(session.path)
    git(session.path, "commit", "-q", "--allow-empty", "-m", "by hand")
    assert len(git(session.path, "ls-tree", "-r", "--name-only", "HEAD").split()) == 8


# Writes that Git takes off


@pytest.fixture
def reset(tmp_path: Path) -> Session:
    """A session of which a person has taken the last writes off."""
    store = Store.init(tmp_path / "store", clock=lambda: datetime.now(UTC))
    session = store.create_session("shop")
    session.add("decision", "Use PostgreSQL", agent="a")
    session.add("finding", "first", agent="a")
    session.edit("DEC-0001", agent="a", impact="high")
    session.close()
    git(session.path, "reset", "-q", "--hard", "HEAD~2")
    return store.session("shop")


def test_reset_over_writes_that_nothing_else_has_is_told_once_and_shown_until_it_is_undone(
    reset: Session,
) -> None:
    (told,) = reset.news()

    assert told.startswith(
        "a Git command removed 2 writes from main that nothing else has (DEC-0001, FIND-0001)"
    )
    assert reset.news() == ()
    assert reset.info().problems == (told,)
    new = reset.add("learning", "Later", agent="a").id
    reset.close()
    command = told.rpartition("to bring them back: ")[2].split()
    git(reset.path, *command[1:3], "--no-edit", *command[2:])

    with Store.open(reset.path.parents[1]).session("shop") as session:
        assert session.info().problems == ()
        assert session.get("FIND-0001").content == "first"
        assert session.get("DEC-0001").fields["impact"] == "high"
        assert session.get(new).content == "Later"


def test_the_next_command_tells_of_a_reset(reset: Session) -> None:
    root = reset.path.parents[1]
    first = smp("--root", root, "-s", "shop", "add", "finding", "Later")
    second = smp("--root", root, "-s", "shop", "list")

    assert "note: a Git command removed 2 writes from main" in first.stderr
    assert "Git command" not in second.stderr


def test_a_commit_that_a_person_amended_or_a_remote_has_is_no_loss(tmp_path: Path) -> None:
    with Store.init(tmp_path / "store").create_session("shop") as session:
        session.add("decision", "Use PostgreSQL", agent="a")
        session.add("finding", "first", agent="a")
    git(session.path, "commit", "-q", "--amend", "-m", "by hand")
    with Store.open(tmp_path / "store").session("shop") as session:
        assert session.news() == ()
        session.add_remote("origin", tmp_path / "hub.git", create=True)
        session.add("finding", "second", agent="a")
        session.sync()
    git(session.path, "reset", "-q", "--hard", "HEAD~1")
    with Store.open(tmp_path / "store").session("shop") as session:
        assert session.news() == ()
        session.sync()
        assert session.get("FIND-0002").content == "second"


def test_what_was_deleted_is_no_loss(reset: Session) -> None:
    reset.add("finding", "again", agent="a")
    reset.delete("DEC-0001")

    assert reset.news() == ()
    assert reset.verify().clean
