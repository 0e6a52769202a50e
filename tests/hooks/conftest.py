"""A session as a person with plain Git finds it: the command `smp` is on the path."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.keep.check import check
from smp_git.keep.losses import problems
from smp_git.read.snapshot import Reader
from tests.support import ROOT, git


@pytest.fixture(autouse=True)
def with_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the hooks find the command `smp` of this checkout; return its folder."""
    program = tmp_path / "bin" / "smp"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -P -m smp_git "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    return program.parent


class Person:
    """Somebody who types Git commands in the folder of a session."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def git(self, *arguments: str) -> str:
        """Run a Git command that is expected to work."""
        return git(self.folder, *arguments)

    def tries(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a Git command that may be refused."""
        return subprocess.run(["git", *arguments], cwd=self.folder, capture_output=True, text=True)

    def refused(self, *arguments: str) -> str:
        """Run a Git command that must be refused; return what it says."""
        done = self.tries(*arguments)
        assert done.returncode != 0, done.stdout + done.stderr
        return done.stderr

    def writes(self, path: str, text: str | bytes) -> None:
        """Write a file."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())

    def changes(self, path: str, old: str, new: str) -> None:
        """Replace a text in a file."""
        text = (self.folder / path).read_text()
        assert old in text
        self.writes(path, text.replace(old, new))

    def subjects(self, *arguments: str) -> list[str]:
        """Return the subjects of the commits, newest first."""
        return self.git("log", "--format=%s", *arguments).splitlines()


def assert_whole(folder: Path) -> None:
    """A clean session: sound, nothing left over, no marker of a conflict anywhere."""
    reader = Reader(folder)
    assert check(reader) == ()
    assert problems(reader) == []
    reader.close()
    assert git(folder, "status", "--porcelain") == ""
    assert git(folder, "fsck", "--strict", "--no-dangling") == ""
    assert_no_markers(folder)


def assert_no_markers(folder: Path) -> None:
    """No version of any file on any branch, and no checked-out one, holds a conflict marker."""
    for line in git(folder, "rev-list", "--all", "--objects").splitlines():
        name, _, path = line.partition(" ")
        if path and git(folder, "cat-file", "-t", name) == "blob\n":
            assert not _marked(git(folder, "cat-file", "blob", name)), path
    for file in folder.rglob("*.[ym]*"):
        if file.is_file() and ".git" not in file.parts:
            assert not _marked(file.read_text()), file


def _marked(text: str) -> bool:
    return any(line.startswith(("<<<<<<<", ">>>>>>>", "|||||||")) for line in text.splitlines())


@pytest.fixture
def shop(session: Session) -> Iterator[Person]:
    """The folder of a session with three findings and a decision, which must end up whole."""
    for text in ("No MFA", "Slow checkout", "Old library"):
        session.add("finding", text, agent="veritas")
    session.add("decision", "Use PostgreSQL", agent="architect")
    session.close()
    yield Person(session.path)
    assert_whole(session.path)


def run_smp(folder: Path, *arguments: str) -> str:
    """Run the command in a folder and return what it prints."""
    return subprocess.run(
        ["smp", *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def hub(tmp_path: Path) -> Person:
    """A bare repository on a server, guarded."""
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "hub.git")
    run_smp(tmp_path, "hooks", "install", "--server", "hub.git")
    return Person(tmp_path / "hub.git")


@pytest.fixture
def pushed(shop: Person, hub: Person) -> Person:
    """The session, with its history on the server."""
    shop.git("remote", "add", "origin", str(hub.folder))
    shop.git("push", "-q", "-u", "origin", "main")
    return shop


@pytest.fixture
def stale(pushed: Person, hub: Person, store: Store) -> Person:
    """A plain clone of it that was given the hooks."""
    folder = store.path / "active" / "stale"
    git(store.path, "clone", "-q", str(hub.folder), str(folder))
    run_smp(folder, "-s", "stale", "hooks", "install")
    git(folder, "config", "pull.rebase", "false")
    return Person(folder)
