"""A guarded server and memories that got one id: a move is taken, a rewrite that loses is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from smp_git import Session
from smp_git.model.ids import parse_id
from smp_git.model.memory import MemoryId
from smp_git.remove.history.erase import move
from smp_git.remove.history.renaming import Move
from tests.hooks.conftest import Person, run_smp
from tests.support import git
from tests.sync.images import copied, settled, texts
from tests.sync.support import Machine, head

pytestmark = pytest.mark.slow

KEPT, MOVED = "Keep PostgreSQL", "Move to SQLite"


class Twins:
    """Two containers of one image; each has told a guarded server of its own."""

    def __init__(self, folder: Path) -> None:
        self.left = Machine(folder, "one").begin(folder / "first.git")
        self.right = copied(self.left, folder, "two")
        self.hubs = [folder / f"{name}.git" for name in ("first", "second")]
        self.sessions = [self.left, self.right]
        self.left.add("decision", KEPT, agent="a")
        self.left.sync()
        for session in self.sessions:
            session.add_remote("second", self.hubs[1], create=True)
        # Later than its twin, so it is this one that moves.
        self.right._handle.clock.now = self.left._handle.clock.now  # type: ignore[attr-defined]
        self.right.add("decision", MOVED, agent="b")
        self.right.add("finding", "DEC-0002 costs a day", agent="b", links=[("about", "DEC-0002")])
        git(self.right.path, "tag", "-a", "noted", "-m", "DEC-0002 is decided")
        self.right.sync("second")
        for hub in self.hubs:
            run_smp(folder, "hooks", "install", "--server", str(hub))

    def forced(self, session: Session, tip: str) -> str:
        """Push to the second server as a person who forces it, and is refused; return what is said."""
        before = git(self.hubs[1], "for-each-ref")
        person = Person(session.path)
        said = person.refused("push", "--no-verify", "--force", str(self.hubs[1]), f"{tip}:main")
        assert git(self.hubs[1], "for-each-ref") == before
        assert "Traceback" not in said
        return said


@pytest.fixture
def twins(tmp_path: Path) -> Twins:
    return Twins(tmp_path)


def test_a_server_takes_the_move_of_a_memory_that_it_has(twins: Twins) -> None:
    told = twins.left.sync("second")

    ((old, new),) = told.moved
    assert old == "DEC-0002"
    assert head(twins.hubs[1]) == twins.left.head
    assert git(twins.hubs[1], "tag", "-l", "--format=%(contents:subject)").strip() == f"{new} is decided"  # fmt: skip
    settled(twins.sessions, twins.hubs)
    for session in twins.sessions:
        assert texts(session) >= {KEPT, MOVED}


@pytest.mark.parametrize("more", [1, 2])
def test_several_moves_and_a_branch_go_together(tmp_path: Path, more: int) -> None:
    twins = Twins(tmp_path)
    for number in range(more):
        twins.left.add("turn", f"Left {number}", agent="a")
        twins.right.add("turn", f"Right {number}", agent="b")
    git(twins.right.path, "branch", "idea")
    twins.left.sync()
    twins.right.sync("second")

    twins.left.sync("second")

    settled(twins.sessions, twins.hubs)
    assert git(twins.hubs[1], "rev-parse", "idea", "main").count("\n") == 2


def test_a_deletion_and_a_move_go_together(twins: Twins) -> None:
    twins.right.add("decision", "To be forgotten", agent="b")
    twins.right.sync("second")
    twins.right.delete("DEC-0003")
    twins.right.sync()

    settled(twins.sessions, twins.hubs)
    assert "To be forgotten" not in git(twins.hubs[1], "log", "-p", "--all")


def test_the_twin_was_deleted_before_the_server_heard_of_it(twins: Twins) -> None:
    """What counts as deleted is its limit (design note 0017); the server stands in nobody's way."""
    twins.right.sync()
    twins.right.delete("DEC-0002")

    settled(twins.sessions, twins.hubs)
    assert KEPT not in texts(twins.left)


# What is no move


@pytest.fixture
def history(twins: Twins) -> str:
    """The history with the move that the second server would take, and has not seen yet."""
    copy = twins.hubs[1].with_name("unguarded.git")
    git(copy.parent, "clone", "-q", "--mirror", str(twins.hubs[1]), str(copy))
    twins.left.add_remote("unguarded", copy)
    assert twins.left.sync("unguarded").moved
    return twins.left.head


def test_a_person_may_push_the_move(twins: Twins, history: str) -> None:
    person = Person(twins.left.path)
    person.git("push", "-q", "--no-verify", "--force", str(twins.hubs[1]), "main", "noted")

    assert head(twins.hubs[1]) == history


def test_a_move_that_leaves_a_commit_out_is_refused(twins: Twins, history: str) -> None:
    last = git(twins.left.path, "log", "-1", "--format=%H", "--grep", "finding FIND-0001", history)

    assert "main would lose what is here" in twins.forced(twins.left, f"{last.strip()}~1")


def test_the_twin_alone_is_refused(twins: Twins) -> None:
    """Whoever has the other memory of that id only would take away the one that is there."""
    assert "main would lose what is here" in twins.forced(twins.left, "main")


@pytest.mark.parametrize(("old", "new"), [("DEC-0001", "DEC-0001-evil"), ("DEC-0002", "DEC-0002-evil")])  # fmt: skip
def test_a_move_that_nobody_else_would_make_is_refused(twins: Twins, old: str, new: str) -> None:
    """Of a memory that has no twin, or to another id than the one that follows from it."""
    path = parse_id(old).path
    root = git(twins.right.path, "log", "--diff-filter=A", "--format=%H", "--", path).strip()
    blob = git(twins.right.path, "rev-parse", f"{root}:{path}").strip()
    move(twins.right._handle.writer, [Move(MemoryId(old), MemoryId(new), (blob,))], twins.right._handle.clock(), by="m")  # fmt: skip
    assert new in {memory.id for memory in twins.right.memories()}
    # Brings the twin in, so that it is there beside what moved.
    twins.right.sync(accept=True)
    assert {KEPT, MOVED} <= texts(twins.right)

    assert "would lose what is here" in twins.forced(twins.right, "main")
