"""A copy of a memory's file that a person committed elsewhere is named, and the status says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from smp_git import Session
from tests.conftest import Clock
from tests.erasure.test_places import filled
from tests.erasure.test_sentinel import SENTINEL, deleted
from tests.support import git

FILE = "decisions/000/DEC-0002.yaml"


def _commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--no-verify", "-m", "by hand")


def _moved(folder: Path) -> None:
    (folder / "old").mkdir()
    git(folder, "mv", FILE, "old/DEC-0002.yaml")
    _commit(folder)


def _copied(folder: Path) -> None:
    (folder / "old").mkdir()
    (folder / "old/DEC-0002.yaml").write_bytes((folder / FILE).read_bytes())
    _commit(folder)


def _another_draft(folder: Path) -> None:
    """No text of it is known from any version at its own place."""
    (folder / "old").mkdir()
    (folder / "old/DEC-0002.yaml").write_text("# kept\nid: DEC-0002\ndecision: other words\n")
    _commit(folder)


def _only_in_history(folder: Path) -> None:
    _copied(folder)
    git(folder, "rm", "-q", "old/DEC-0002.yaml")
    _commit(folder)


MADE: dict[str, Callable[[Path], None]] = {
    "moved": _moved,
    "copied": _copied,
    "another draft": _another_draft,
    "only in history": _only_in_history,
}


@pytest.mark.parametrize("how", MADE)
def test_copy_elsewhere_is_named(session: Session, clock: Clock, how: str) -> None:
    folder = filled(session)
    MADE[how](folder)
    with Session(folder, clock) as opened:
        proof = deleted(opened, clock, "DEC-0002").proof

    assert set(proof.hits) == {"a path of history", "the file old/DEC-0002.yaml"}
    assert SENTINEL not in "".join(proof.hits)
    if how != "only in history":
        git(folder, "rm", "-q", "old/DEC-0002.yaml")
        _commit(folder)
