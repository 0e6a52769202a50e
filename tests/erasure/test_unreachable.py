"""After a deletion no object is left that nothing reaches, unless it was just written and is innocent."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from smp_git import Session
from smp_git.remove.history import journal
from smp_git.remove.history.erase import erase
from smp_git.remove.history.journal import RewriteOrder
from smp_git.remove.history.search import DeadVersion
from tests.conftest import Clock
from tests.erasure.test_places import filled
from tests.erasure.test_sentinel import SENTINEL, deleted
from tests.independent_scan import scan, unreachable
from tests.support import git, git_input

DRAFT = "a draft of other words that nobody ever committed 5501"
ABOVE = {
    "comment": f"# {DRAFT}\nid: DEC-0002\n",
    "empty line": f"\nid: DEC-0002\ndecision: {DRAFT}\n",
    "byte order mark": f"\ufeffid: DEC-0002\ndecision: {DRAFT}\n",
    "other order": f"decision: {DRAFT}\nid: DEC-0002\n",
    "no id at all": f"decision: {DRAFT}\n",
}


def discarded(folder: Path, text: str) -> None:
    """Stage a draft of a memory and think better of it."""
    file = folder / "decisions/000/DEC-0002.yaml"
    kept = file.read_bytes()
    file.write_text(text)
    git(folder, "add", "decisions")
    git(folder, "reset", "-q")
    file.write_bytes(kept)


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
@pytest.mark.parametrize("form", ABOVE)
def test_discarded_draft_is_gone(session: Session, clock: Clock, form: str, packed: bool) -> None:
    folder = filled(session)
    discarded(folder, ABOVE[form])
    if packed:
        git(folder, "repack", "-adkq")
    assert scan(folder, [DRAFT.encode()])
    with Session(folder, clock) as opened:
        receipt = deleted(opened, clock, "DEC-0002", purge=True)

    assert scan(folder, [DRAFT.encode()]) == []
    assert unreachable(folder) == []
    assert receipt.proof.clean
    assert git(folder, "fsck", "--full", "--strict", "--no-dangling") == ""


def test_what_a_person_staged_stays(session: Session, clock: Clock) -> None:
    folder = filled(session)
    (folder / "notes.txt").write_text("staged and not yet committed\n")
    git(folder, "add", "notes.txt")
    tree = git(folder, "write-tree").strip()
    with Session(folder, clock) as opened:
        deleted(opened, clock, "DEC-0002")

    assert git(folder, "show", ":notes.txt") == "staged and not yet committed\n"
    assert git(folder, "fsck", "--full", "--strict", "--no-dangling") == ""
    assert scan(folder, [SENTINEL.encode()]) == []
    assert subprocess.run(["git", "cat-file", "-e", tree], cwd=folder, check=False).returncode
    git(folder, "rm", "-q", "--cached", "notes.txt")
    (folder / "notes.txt").unlink()


def test_what_another_process_has_just_written_stays_unless_it_holds_the_deleted(session: Session, clock: Clock) -> None:  # fmt: skip
    """Nothing names it yet; a commit, a fetch or a stash of a person is about to."""
    folder = filled(session)
    made: dict[str, str] = {}

    def seal(_: Sequence[DeadVersion]) -> None:
        for name, text in {
            "innocent": "of another thing\n",
            **ABOVE,
            "text": f"{SENTINEL} is edited",
        }.items():
            made[name] = git_input(folder, text.encode(), "hash-object", "-w", "--stdin")
        tree = git_input(folder, f"100644 blob {made['innocent']}\ta.txt\n".encode(), "mktree")
        made["commit"] = git_input(folder, b"m\n", "commit-tree", tree)
        bad = git_input(folder, f"100644 blob {made['text']}\ta.txt\n".encode(), "mktree")
        made["its commit"] = git_input(folder, b"m\n", "commit-tree", bad)

    with Session(folder, clock) as opened:
        erase(opened._handle.writer, ["DEC-0002"], RewriteOrder(by="a", now=clock(), seal=seal))

    left = {name for name, each in made.items() if _is_there(folder, each)}
    assert left == {"innocent", "commit", "no id at all"}
    assert scan(folder, [SENTINEL.encode()]) == []
    with Session(folder, clock) as opened:
        deleted(opened, clock, "DEC-0003")
    assert unreachable(folder) == []


def test_nobody_stages_an_object_while_it_goes(session: Session, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """It was there, unreachable, so that Git would write nothing and rely on it."""
    folder = filled(session)
    git_input(folder, b"of another thing\n", "hash-object", "-w", "--stdin")
    (folder / "notes.txt").write_text("of another thing\n")
    staged: list[int] = []

    def reached(step: str) -> None:
        if step == "loose removed":
            done = subprocess.run(["git", "add", "notes.txt"], cwd=folder, capture_output=True, check=False)  # fmt: skip
            staged.append(done.returncode)

    monkeypatch.setattr(journal, "reached", reached)
    with Session(folder, clock) as opened:
        deleted(opened, clock, "DEC-0002")

    assert staged == [128]
    git(folder, "add", "notes.txt")
    assert git(folder, "show", ":notes.txt") == "of another thing\n"
    git(folder, "rm", "-qf", "notes.txt")


def _is_there(folder: Path, name: str) -> bool:
    return subprocess.run(["git", "cat-file", "-e", name], cwd=folder, check=False).returncode == 0
