"""A deletion killed at any step is finished or undone on the next open."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from smp_git import Session, Store
from tests.conftest import Clock
from tests.independent_scan import scan
from tests.support import ROOT, git, python

SENTINEL = "xyzzy-plugh-the-secret-of-the-cave-0451"

# Dies at the step given, before (-) or after it, with a status of its own.
DELETE = """
import os, sys
from datetime import UTC, datetime
from pathlib import Path
from smp_git import Session
from smp_git.remove.history import journal
from smp_git.remove.history.erase import erase
from smp_git.remove.history.journal import RewriteOrder

store, wanted = Path(sys.argv[1]), int(sys.argv[2])
seen = []

def reached(step):
    seen.append(step)
    if len(seen) == wanted:
        os._exit(73)

def seal(versions):
    with open(store / "sealed", "wb") as file:
        file.write(b"".join(each.data for each in versions))

journal.reached = reached
session = Session(store / "active" / "shop", lambda: datetime.now(UTC))
erase(session._handle.writer, ["DEC-0002"], RewriteOrder(reason=None, by="a", seal=seal, now=datetime(2026, 3, 1, tzinfo=UTC)))
print(len(seen))
"""


def filled(folder: Path, clock: Clock, *, packed: bool) -> Store:
    store = Store.init(folder, clock=clock)
    with store.create_session("shop") as session:
        for number in range(6):
            session.add("decision", f"decision number {number} stays here", agent="a")
        session.edit("DEC-0002", agent="a", text=f"{SENTINEL} now")
        session.add("turn", "the last word", agent="a")
    place = folder / "active" / "shop"
    git(place, "branch", "other", "HEAD~1")
    git(place, "tag", "-a", "v1", "-m", "a tag", "HEAD")
    if packed:
        git(place, "repack", "-adq")
    return store


def checked(store: Store, *, sealed: bool) -> bool:
    """Open after a crash: gone without a trace, or there as before; return whether it is gone."""
    place = store.path / "active" / "shop"
    with store.session("shop") as session:
        gone = "DEC-0002" not in [memory.id for memory in session.memories()]
        assert len(session.memories()) == (6 if gone else 7)
        assert session.check() == ()
    assert not (place / ".git/smp/erasure.json").exists()
    assert git(place, "fsck", "--full", "--strict", "--no-dangling") == ""
    if gone:
        assert sealed
        assert scan(place, [SENTINEL.encode()]) == []
        assert "DEC-0002" in (place / "tombstones.yaml").read_text()
        assert git(place, "status", "--porcelain") == ""
    return gone


@pytest.mark.slow
@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
def test_killed_at_every_step_is_finished_or_undone(tmp_path: Path, clock: Clock, packed: bool) -> None:  # fmt: skip
    whole = filled(tmp_path / "whole", clock, packed=packed)
    steps = int(python(DELETE, whole.path, 0).stdout)
    assert checked(whole, sealed=True)

    outcomes = []
    for step in range(1, steps + 1):
        store = filled(tmp_path / f"at-{step}", clock, packed=packed)
        assert python(DELETE, store.path, step, check=False).returncode == 73
        outcomes.append(checked(store, sealed=(store.path / "sealed").exists()))

    assert outcomes == [False] + [True] * (steps - 1)


def test_killed_while_publishing_is_finished(tmp_path: Path, clock: Clock) -> None:
    store = filled(tmp_path / "store", clock, packed=True)
    assert python(DELETE, store.path, 6, check=False).returncode == 73

    assert checked(store, sealed=True)


@pytest.mark.slow
def test_forty_random_kills(tmp_path: Path, clock: Clock) -> None:
    rng = random.Random(4)
    tips = set()
    for number in range(40):
        store = filled(tmp_path / str(number), Clock(), packed=bool(number % 2))
        child = subprocess.Popen([sys.executable, "-c", DELETE, store.path, "0"], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        time.sleep(rng.uniform(0.15, 0.9))
        child.send_signal(signal.SIGKILL)
        child.wait()
        checked(store, sealed=(store.path / "sealed").exists())
        child = subprocess.run([sys.executable, "-c", DELETE, store.path, "0"], cwd=ROOT, capture_output=True)  # type: ignore[assignment]  # fmt: skip
        assert checked(store, sealed=True)
        tips.add(git(store.path / "active/shop", "log", "-1", "--format=%s %an"))

    assert tips == {"delete decision DEC-0002 a\n"}


def test_session_is_usable_while_a_deletion_is_journalled(tmp_path: Path, clock: Clock) -> None:
    """A handle that was open before the crash writes on; the next open finishes the deletion."""
    store = filled(tmp_path / "store", clock, packed=True)
    with Session(store.path / "active" / "shop", clock) as before:
        assert python(DELETE, store.path, 9, check=False).returncode == 73
        before.add("turn", "written in between", agent="a")
        assert git(before.path, "fsck", "--full", "--strict", "--no-dangling") == ""

    with store.session("shop") as session:
        assert [m.content for m in session.memories("turn")] == ["the last word", "written in between"]  # fmt: skip
        assert scan(session.path, [SENTINEL.encode()]) == []


@pytest.mark.slow
def test_the_next_deletion_of_an_open_session_finishes_the_one_that_was_killed(tmp_path: Path, clock: Clock) -> None:  # fmt: skip
    """Whatever it died at; the session need not be opened anew for it."""
    steps = int(python(DELETE, filled(tmp_path / "whole", clock, packed=True).path, 0).stdout)
    for step in range(1, steps + 1):
        store = filled(tmp_path / f"at-{step}", clock, packed=True)
        with store.session("shop") as before:
            assert python(DELETE, store.path, step, check=False).returncode == 73

            before.delete("DEC-0003")

            gone = {"DEC-0003"} if step == 1 else {"DEC-0002", "DEC-0003"}
            left = {f"DEC-{number:04}" for number in range(1, 7)} - gone
            assert {memory.id for memory in before.memories("decision")} == left
            assert before.check() == ()
            if step > 1:
                assert scan(before.path, [SENTINEL.encode()]) == []
            assert not (before.path / ".git/smp/erasure.json").exists()
