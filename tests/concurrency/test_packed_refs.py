"""A person's `git pack-refs` beside what moves, drops and reads references: none is lost."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.git import references
from smp_git.model.errors import LockedError
from tests.concurrency.writers import assert_sound, beside
from tests.support import git


def _names(session: Session) -> list[str]:
    return sorted(branch.name for branch in session.branches())


def _pack(path: Path, done: threading.Event) -> None:
    while not done.is_set():
        subprocess.run(["git", "pack-refs", "--all"], cwd=path, check=False, capture_output=True)


def _move(path: Path, done: threading.Event) -> None:
    while not done.is_set():
        git(path, "update-ref", "refs/heads/aside", "main~1")
        git(path, "update-ref", "refs/heads/aside", "main")


def test_lock_of_git_is_waited_for(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "_LOCK_SECONDS", 0.1)
    session.branch("aside").close()
    git(session.path, "pack-refs", "--all")
    lock = session.path / ".git/packed-refs.lock"
    lock.write_text("of somebody else")

    with pytest.raises(LockedError, match=r"packed-refs\.lock"):
        session.drop_branch("aside")
    assert lock.read_text() == "of somebody else"
    assert _names(session) == ["aside", "main"]

    lock.unlink()
    session.drop_branch("aside")
    assert git(session.path, "branch", "--list", "aside") == ""
    assert list(session.path.glob(".git/**/*lock")) == [session.path / ".git/smp/lock"]


def test_lock_of_a_process_that_died_holds_nobody_up(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(references, "_LOCK_SECONDS", 0)
    session.branch("aside").close()
    own = session.path / ".git/smp/packed-lock"
    own.touch()
    (session.path / ".git/packed-refs.lock").hardlink_to(own)

    session.drop_branch("aside")

    assert not own.exists()
    assert not (session.path / ".git/packed-refs.lock").exists()


def test_lock_of_a_process_that_died_is_gone_after_the_next_open(session: Session) -> None:
    own = session.path / ".git/smp/packed-lock"
    session.close()
    own.touch()
    (session.path / ".git/packed-refs.lock").hardlink_to(own)
    with Store.open(session.path.parents[1]).session("busy"):
        pass

    git(session.path, "pack-refs", "--all")
    assert not own.exists()


def test_reference_that_is_being_packed_is_read(session: Session) -> None:
    session.add("finding", "No MFA", agent="a")
    git(session.path, "branch", "aside")
    with beside(_pack, session.path), beside(_move, session.path):
        for _ in range(400):
            assert {"refs/heads/main", "refs/heads/aside"} <= references.read(session.path / ".git").keys()  # fmt: skip
            assert "refs/heads/aside" in session._handle.reader.repository.references()


@pytest.mark.slow
def test_pack_refs_beside_branches_and_deletions_loses_nothing(session: Session) -> None:
    names: list[str] = []
    with beside(_pack, session.path):
        for number in range(60):
            names.append(session.add("finding", f"Number {number}", agent="a").id)
            with session.branch(f"try/{number}") as aside:
                aside.add("finding", "only there", agent="a")
            if number % 3:
                session.drop_branch(f"try/{number}")
            if number % 10 == 5:
                session.delete(names.pop(), by="a")
    assert _names(session) == sorted(["main", *(f"try/{n}" for n in range(0, 60, 3))])
    session.close()
    assert_sound(session.path.parents[1], names)
