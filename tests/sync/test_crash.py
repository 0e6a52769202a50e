"""A sync killed at any step: nothing is lost, nothing comes back, and the next sync succeeds."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from smp_git.git import transport
from smp_git.git.repository import Repository
from smp_git.remove import delete
from smp_git.sync import inbound, integrate, outbound, remotes
from smp_git.sync.inspect.inspection import Inspection
from smp_git.sync.quarantine import Quarantine
from smp_git.write.writer import Writer
from tests import independent_scan
from tests.crash.children import DIED, die_at, ended
from tests.support import ROOT, git, git_input
from tests.sync.support import Machine, head, sound, tree

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

SECRET = "Zanzibar-secret-of-the-crash"

# Every step of a sync that leaves something on the disk or on the remote.
VERBS: dict[str, tuple[Any, str]] = {
    "ask": (transport, "advertised"),
    "fetch": (Quarantine, "fetch"),
    "inspect the tips": (Inspection, "look_at_tips"),
    "inspect": (Inspection, "look_through"),
    "clean": (inbound, "cleaned"),
    "follow": (delete, "follow"),
    "adopt": (Quarantine, "adopt"),
    "lineage": (inbound, "check_related"),
    "integrate": (inbound, "integrate"),
    "join": (integrate, "join"),
    "publish": (Writer, "publish"),
    "reference": (Repository, "publish"),
    "leave": (Quarantine, "__exit__"),
    "note": (remotes, "keep_seen"),
    "push": (transport, "push"),
    "track": (outbound, "track"),
}


@pytest.fixture
def machines(tmp_path: Path) -> list[Machine]:
    """Two replicas that parted: one has deleted, the other has edited and added."""
    hub = tmp_path / "hub.git"
    one, two = Machine(tmp_path, "one"), Machine(tmp_path, "two")
    with one.begin(hub) as left:
        gone = left.add("decision", SECRET, agent="a")
        left.sync()
        with two.clone(hub) as right:
            left.delete(gone.id)
            left.edit("DEC-1", agent="a", impact="high")
            left.sync()
            right.edit("DEC-1", agent="b", rationale="known")
            right.add("finding", "No backups", agent="b")
    return [one, two]


def finished(machines: list[Machine], hub: Path) -> None:
    """Open what a crash left and sync: everything is there, and nothing that was deleted."""
    sessions = [machine.store.session("shop") for machine in machines]
    for session in reversed(sessions):
        session.sync()
    sessions[1].sync()
    assert tree(sessions[0]) == tree(sessions[1])
    assert sessions[0].head == head(hub)
    for session in sessions:
        sound(session)
        assert dict(session.get("DEC-1").fields) == {"impact": "high", "rationale": "known"}
        assert "No backups" in {memory.content for memory in session.memories("finding")}
        assert independent_scan.scan(session.path, [SECRET.encode()]) == []
        session.close()
    assert git(hub, "log", "--all", "-S", SECRET, "--format=%h") == ""


@pytest.mark.parametrize("leaving", [False, True], ids=["entering", "leaving"])
@pytest.mark.parametrize("verb", VERBS)
def test_killed_at_a_step(machines: list[Machine], tmp_path: Path, verb: str, leaving: bool) -> None:  # fmt: skip
    def killed() -> None:
        with machines[1].store.session("shop") as session:
            die_at(VERBS[verb], leaving=leaving)
            session.sync()

    assert ended(killed) == DIED
    finished(machines, tmp_path / "hub.git")


@pytest.mark.parametrize(("verb", "call"), [("ask", 2), ("note", 2), ("reference", 2), ("reference", 3)])  # fmt: skip
def test_killed_at_a_later_call(machines: list[Machine], tmp_path: Path, verb: str, call: int) -> None:  # fmt: skip
    def killed() -> None:
        with machines[1].store.session("shop") as session:
            die_at(VERBS[verb], leaving=True, call=call)
            session.sync()

    assert ended(killed) == DIED
    finished(machines, tmp_path / "hub.git")


@pytest.mark.parametrize("seed", range(12))
def test_killed_at_any_moment(machines: list[Machine], tmp_path: Path, seed: int) -> None:
    code = "import sys; from smp_git import Store; Store.open(sys.argv[1]).session('shop').sync()"
    child = subprocess.Popen([sys.executable, "-c", code, str(machines[1].store.path)], cwd=ROOT)
    time.sleep(random.Random(seed).uniform(0.1, 0.9))
    child.send_signal(signal.SIGKILL)
    child.wait()
    finished(machines, tmp_path / "hub.git")


def test_what_a_killed_sync_held_is_swept(machines: list[Machine], tmp_path: Path) -> None:
    place = machines[1].store.path / "active/shop/.git/syncing/incoming"

    def killed() -> None:
        with machines[1].store.session("shop") as session:
            die_at(VERBS["inspect"], leaving=False)
            session.sync()

    assert ended(killed) == DIED
    assert _folders(place)
    with machines[1].store.session("shop") as session:
        session.delete("DEC-0001", purge=True)
        assert not _folders(place)
        assert session.verify().clean


def _folders(place: Path) -> list[Path]:
    return [each for each in place.iterdir() if each.is_dir()]


def test_commits_without_their_trees_that_a_killed_sync_left_are_completed(tmp_path: Path) -> None:
    """Killed between two objects of a history that it made clean: only the commits are here."""
    hub = tmp_path / "hub.git"
    one, two = Machine(tmp_path, "one"), Machine(tmp_path, "two")
    with one.begin(hub) as left, two.clone(hub) as right:
        gone = left.add("decision", SECRET, agent="a").id
        left.sync()
        right.sync()
        left.add("finding", "No backups", agent="a")
        left.add("finding", "No tests", agent="a")
        left.sync()
        right.delete(gone)
    copy = Machine(tmp_path, "copy")
    shutil.copytree(right.path, copy.store.path / "active/shop")
    with copy.store.session("shop") as ahead:
        inbound_only = ahead.fetch()
        assert inbound_only.fetched
        new = git(ahead.path, "rev-list", "--all").split()
    for name in new:
        data = git(ahead.path, "cat-file", "commit", name)
        git_input(right.path, data.encode(), "hash-object", "-t", "commit", "-w", "--stdin")

    for machine in (two, one, two):
        with machine.store.session("shop") as session:
            session.sync()
            sound(session)
            assert {memory.content for memory in session.memories("finding")} == {"No backups", "No tests"}  # fmt: skip
