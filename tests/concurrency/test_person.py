"""A person with plain Git beside the writers: nothing acknowledged is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.git import staging
from tests.concurrency.writers import LIBRARY, assert_clean, assert_sound, beside, writing
from tests.support import ROOT, git


@pytest.fixture
def with_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the hooks find the command `smp` of this checkout."""
    program = tmp_path / "bin/smp"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m smp_git "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)


def _behind(session: Session) -> str:
    """Add a memory that Git's index does not see; return its id."""
    name = session.add("finding", "Not in the index", agent="a").id
    assert f"D  findings/000/{name}.yaml" in git(session.path, "status", "--porcelain")
    return name


@pytest.mark.slow
@pytest.mark.usefixtures("with_command")
@pytest.mark.parametrize("options", [(), ("-a",), ("metadata.yaml",)], ids=["staged", "all", "one"])
def test_plain_commit_keeps_what_the_index_has_not_seen(
    session: Session, options: tuple[str, ...]
) -> None:
    name = _behind(session)
    file = session.path / "metadata.yaml"
    file.write_text(file.read_text() + "# mine\n")
    git(session.path, "add", "metadata.yaml")
    git(session.path, "commit", "-q", "-m", "by hand", *options)

    assert session.get(name).content == "Not in the index"
    assert git(session.path, "show", "--format=", "--name-only", "HEAD") == "metadata.yaml\n"
    session.close()
    assert_clean(session.path)


def test_memory_dropped_by_a_plain_commit_is_reported_and_brought_back(session: Session) -> None:
    name = _behind(session)
    git(session.path, "commit", "-q", "--no-verify", "-m", "by hand")
    (problem,) = session.info().problems
    assert name in problem
    assert "smp undo" in problem
    session.undo()

    assert session.get(name).content == "Not in the index"
    assert session.info().problems == ()


def test_memory_dropped_before_later_writes_is_brought_back_by_rollback(session: Session) -> None:
    name = _behind(session)
    git(session.path, "commit", "-q", "--no-verify", "-m", "by hand")
    session.add("learning", "Later", agent="a")
    (problem,) = session.info().problems
    command, revision, lost = problem.rpartition("smp ")[2].split()
    assert (command, lost) == ("rollback", name)
    session.rollback(revision, lost)

    assert session.info().problems == ()
    assert session.get(name).content == "Not in the index"


def test_removal_that_the_message_explains_is_no_problem(session: Session) -> None:
    name = session.add("finding", "Wrong", agent="a").id
    session.check()
    git(session.path, "rm", "-q", f"findings/000/{name}.yaml")
    git(session.path, "commit", "-q", "--no-verify", "-m", f"remove finding {name}")

    assert not [one for one in session.info().problems if "without saying so" in one]


def test_what_a_person_staged_stays_staged(session: Session) -> None:
    memory = session.add("finding", "No MFA", agent="a")
    session.check()
    file = session.file(memory.id)
    file.write_text(file.read_text() + "note: mine\n")
    git(session.path, "add", str(file))
    session.add("finding", "Another", agent="a")
    session.close()

    assert git(session.path, "status", "--porcelain") == f"M  {memory.path}\n"


def test_revert_by_plain_git_stays_staged(session: Session) -> None:
    memory = session.add("finding", "No MFA", agent="a", severity="low")
    session.edit(memory.id, severity="high")
    session.check()
    git(session.path, "revert", "--no-commit", "HEAD")
    staging.refresh(session._handle.reader.repository, session._handle.reader.snapshot().tree)

    assert f"M  {memory.path}\n" in git(session.path, "status", "--porcelain")


def test_index_that_git_wrote_back_is_brought_up_again(session: Session) -> None:
    session.check()
    old = (session.path / ".git/index").read_bytes()
    name = session.add("finding", "No MFA", agent="a").id
    session.check()
    (session.path / ".git/index").write_bytes(old)
    assert f"{name}.yaml" in git(session.path, "status", "--porcelain")
    session.close()
    with Store.open(session.path.parents[1]).session("busy"):
        pass

    assert_clean(session.path)


def test_edit_committed_past_the_hooks_is_no_staged_one_after_the_next_write(
    session: Session,
) -> None:
    memory = session.add("finding", "No MFA", agent="a")
    session.check()
    file = session.file(memory.id)
    file.write_text(file.read_text().replace("No MFA", "No second factor"))
    git(session.path, "commit", "-q", "-a", "--no-verify", "-m", "by hand")
    session.edit(memory.id, agent="a", severity="high")
    session.close()

    assert_clean(session.path)


def _disturb(path: Path, done: threading.Event) -> None:
    commands = (
        ("add", "-A"),
        ("commit", "-q", "-m", "by hand"),
        ("gc", "-q"),
        ("pack-refs", "--all"),
        ("status",),
    )
    while not done.is_set():
        for command in commands:
            # Git gives up when the index or the branch moved under it.
            subprocess.run(["git", *command], cwd=path, check=False, capture_output=True)


@pytest.mark.slow
@pytest.mark.usefixtures("with_command")
def test_person_commits_and_packs_while_many_write(session: Session) -> None:
    session.close()
    root = session.path.parents[1]
    with beside(_disturb, session.path), writing(root, 60, [LIBRARY] * 4) as writers:
        for writer in writers:
            writer.waited()
    with Store.open(root).session("busy") as again:
        assert not [one for one in again.info().problems if "without saying so" in one]

    assert_sound(root, [name for writer in writers for name in writer.acknowledged()])
