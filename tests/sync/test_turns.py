"""Replicas that sync with one remote at once take turns: none is kept out for long.

The sentence: beside a replica that writes and syncs all the time every sync of another
gets through; who was killed while it waited holds nobody up; the error after all that
time names who came first.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from smp_git.git.transport import EMPTY_TREE
from smp_git.model.errors import ConflictError
from smp_git.sync import exchange, remotes
from tests.support import ROOT, git
from tests.sync.support import Machine, hook, sound, tree

_WRITES = """
import sys
from pathlib import Path
from smp_git import Store
root, name, done = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
with Store.open(root / name).session("shop") as session:
    number = 0
    while not done.exists():
        session.add("finding", f"{name} {(number := number + 1)}", agent=name)
        session.sync()
"""

# What somebody else pushes each time before a push gets through.
_FIRST = """unset GIT_QUARANTINE_PATH
export GIT_COMMITTER_NAME=smp-zzzz GIT_COMMITTER_EMAIL=zzzz@smp GIT_AUTHOR_NAME=ada GIT_AUTHOR_EMAIL=a@smp
git update-ref refs/heads/main $(git commit-tree 'main^{tree}' -p main -m settings)"""


def _marks(hub: Path) -> str:
    return git(hub, "for-each-ref", "refs/smp/waiting")


def test_a_replica_that_must_merge_gets_through_beside_one_that_writes_all_the_time(
    tmp_path: Path,
) -> None:
    hub, done = tmp_path / "hub.git", tmp_path / "done"
    one, two = Machine(tmp_path, "one"), Machine(tmp_path, "two")
    one.begin(hub).close()
    slow = two.clone(hub)
    busy = subprocess.Popen(
        [sys.executable, "-c", _WRITES, str(tmp_path), "one", str(done)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
    )
    try:
        for number in range(12):
            slow.add("learning", f"slow {number}", agent="b")
            assert slow.sync().advertised == slow.head
    finally:
        done.touch()
        assert busy.wait(60) == 0
    with one.store.session("shop") as other:
        for session in (other, slow, other, slow):
            session.sync()
        assert tree(other) == tree(slow)
        sound(other)
    sound(slow)
    assert _marks(hub) == ""


def test_who_waits_is_let_go_first_and_a_mark_that_nobody_takes_away_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remotes, "COURTESY_SECONDS", 1.5)
    hub = tmp_path / "hub.git"
    session = Machine(tmp_path, "one").begin(hub)
    git(hub, "hash-object", "-t", "tree", "-w", os.devnull)
    git(hub, "update-ref", "refs/smp/waiting/dead", EMPTY_TREE)

    started = time.monotonic()
    session.sync()
    assert time.monotonic() - started < 1, "who has nothing to push does not wait"
    assert _marks(hub)
    session.add("finding", "one", agent="a")
    session.sync()

    assert _marks(hub) == ""
    assert session.sync().rounds == 1


def test_the_error_names_who_came_first_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "_PATIENCE_SECONDS", 1.0)
    hub = tmp_path / "hub.git"
    session = Machine(tmp_path, "one").begin(hub)
    script = hook(hub, "pre-receive", f"grep -q refs/heads/main || exit 0\n{_FIRST}")
    session.add("finding", "one", agent="a")

    with pytest.raises(
        ConflictError, match=r"moved \d+ times in 1 s .*; replica zzzz wrote"
    ) as caught:
        session.sync()

    assert (
        caught.value.hint == "what was fetched is merged; sync again when the other replica is idle"
    )
    assert _marks(hub) == ""
    script.unlink()
    session.sync()
    sound(session)
