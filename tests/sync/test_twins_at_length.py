"""Twins where a process dies, and in random histories of containers and backups."""

from __future__ import annotations

import random
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from smp_git import Session
from smp_git.git import disk, storage
from smp_git.git.repository import Repository
from smp_git.model.memory import MemoryId
from smp_git.read.replica import Local
from smp_git.remove.history import erase, journal, publish, sweep
from smp_git.remove.history.publish import Publisher
from smp_git.sync import inbound, twins
from tests.crash.children import DIED, die_at, ended
from tests.support import git, untyped
from tests.sync.images import copied, kept, opened, put_back, settled
from tests.sync.support import Machine

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

# Every step of a move that leaves something on the disk, in the order in which they come.
VERBS: dict[str, tuple[Any, str]] = {
    "find": (twins, "part"),
    "move": (twins, "move"),
    "plan": (erase, "make_plan"),
    "prepare": (Publisher, "prepare"),
    "pack": (storage, "write_pack"),
    "mark": (Local, "mark_pending"),
    "journal": (journal, "write"),
    "publish": (Publisher, "publish"),
    "reference": (Publisher, "_move"),
    "epoch": (Local, "raise_epoch"),
    "check out": (publish, "check_out"),
    "file": (disk, "replace_file"),
    "clear": (Local, "clear_pending"),
    "remove": (sweep, "remove_objects"),
    "unlink": (sweep, "_unlink_loose"),
    "close": (journal, "close"),
    "clean": (inbound, "cleaned"),
    "identify": (Local, "identify"),
    "integrate": (inbound, "integrate"),
    "point": (Repository, "point"),
}


@pytest.fixture
def containers(tmp_path: Path) -> list[Path]:
    """Two containers of one image; one has synced, the other has written on two branches."""
    hub = tmp_path / "hub.git"
    left = Machine(tmp_path, "one").begin(hub)
    right = copied(left, tmp_path, "two")
    left.add("decision", "Keep PostgreSQL", agent="a")
    left.add("turn", "Which database?", agent="a")
    left.sync()
    right.add("decision", "Move to SQLite", agent="b")
    right.add("turn", "Shall we move?", agent="b", memory_refs=["DEC-0002"])
    git(right.path, "branch", "idea")
    git(right.path, "tag", "noted")
    right.edit("DEC-0001", agent="b", rationale="until DEC-0002")
    for session in (left, right):
        session.close()
    return [left.path, right.path]


def finished(containers: list[Path], hub: Path) -> None:
    """Open what a crash left and sync: both texts are there, under two ids, and rest."""
    sessions = [opened(path) for path in reversed(containers)]
    settled(sessions, [hub])
    for session in sessions:
        found = {memory.content: memory for memory in session.memories()}
        new = found["Move to SQLite"].id
        assert found["Keep PostgreSQL"].id == "DEC-0002"
        assert found["Which database?"].id == "turn-0001"
        assert found["Shall we move?"].fields["memory_refs"] == [new]
        assert session.get("DEC-0001").fields["rationale"] == f"until {new}"
        assert len(found) == len(session.memories())
        assert not session._handle.reader.local.is_erasing()
        log = git(session.path, "log", "--all", "-p", "--", "decisions/000/DEC-0002.yaml")
        assert "SQLite" not in log


@pytest.mark.parametrize("leaving", [False, True], ids=["entering", "leaving"])
@pytest.mark.parametrize("verb", VERBS)
def test_killed_at_a_step(containers: list[Path], tmp_path: Path, verb: str, leaving: bool) -> None:  # fmt: skip
    def killed() -> None:
        with opened(containers[1]) as session:
            die_at(VERBS[verb], leaving=leaving)
            session.sync()

    assert ended(killed) == DIED
    finished(containers, tmp_path / "hub.git")


@pytest.mark.parametrize(("verb", "call"), [("reference", 2), ("reference", 3), ("file", 3), ("file", 6)])  # fmt: skip
def test_killed_at_a_later_call(containers: list[Path], tmp_path: Path, verb: str, call: int) -> None:  # fmt: skip
    def killed() -> None:
        with opened(containers[1]) as session:
            die_at(VERBS[verb], leaving=True, call=call)
            session.sync()

    assert ended(killed) == DIED
    finished(containers, tmp_path / "hub.git")


class World:
    """Containers of one image that write, link, sync and are put back to earlier states."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self._folder = folder
        self._numbers = count()
        self.remotes = [folder / "hub.git", folder / "second.git"][: self.random.choice((1, 2))]
        first = Machine(folder, "c0").begin(self.remotes[0])
        if len(self.remotes) > 1:
            first.add_remote("second", self.remotes[1], create=True)
            first.sync("second")
        copies = range(1, self.random.choice((2, 3)))
        self.sessions = [first, *(copied(first, folder, f"c{each}") for each in copies)]
        self.kept: dict[int, Path] = {}
        # What was written, and to the text of which memory each text links.
        self.texts = {"Use PostgreSQL"}
        self.links: dict[str, str] = {}

    def step(self) -> None:
        """Do something somewhere."""
        where = self.random.randrange(len(self.sessions))
        verbs = (self._add, self._add, self._add, self._edit, self._sync, self._keep, self._put_back)  # fmt: skip
        self.random.choice(verbs)(where)

    def _add(self, where: int) -> None:
        session, kind = self.sessions[where], self.random.choice(("decision", "turn", "finding"))
        text = f"Said as number {next(self._numbers)} in {where}"
        target = self.random.choice([None, *session.memories()])
        links = [("about", target.id)] if target else []
        session.add(untyped(kind), text, agent="a", links=links)
        self.texts.add(text)
        if target:
            self.links[text] = target.content

    def _edit(self, where: int) -> None:
        session = self.sessions[where]
        memory = self.random.choice([*session.memories("decision"), *session.memories("finding")])
        session.edit(memory.id, agent="a", **untyped({f"note_{next(self._numbers)}": "noted"}))

    def _sync(self, where: int) -> None:
        self.sessions[where].sync(self.random.choice(["origin", "second"][: len(self.remotes)]))

    def _keep(self, where: int) -> None:
        folder = self._folder / f"kept{next(self._numbers)}"
        folder.mkdir()
        self.kept[where] = kept(self.sessions[where], folder)

    def _put_back(self, where: int) -> None:
        if where in self.kept:
            self.sessions[where].sync("origin")
            self.sessions[where] = put_back(self.sessions[where], self.kept[where])


@pytest.mark.parametrize("seed", range(24))
def test_random_histories(tmp_path: Path, seed: int) -> None:
    world = World(tmp_path, seed)
    for _ in range(30):
        world.step()
    settled(world.sessions, world.remotes)
    for session in world.sessions:
        found = {memory.content: memory for memory in session.memories()}
        assert found.keys() == world.texts
        assert len(session.memories()) == len(found)
        for text, target in world.links.items():
            assert found[text].links[0].target == found[target].id
    _check_deletions(world, seed)


def _check_deletions(world: World, seed: int) -> None:
    """Delete one after the other: each takes only itself."""
    left: Session = world.sessions[-1]
    for memory in random.Random(seed).sample(list(left.memories()), 3):
        left.delete(MemoryId(memory.id))
        world.texts.remove(memory.content)
        settled(world.sessions, world.remotes)
        assert {each.content for each in world.sessions[0].memories()} == world.texts
