"""Merges by processes that die, and by processes that write at once."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from smp_git import Store
from tests.concurrency.writers import assert_clean
from tests.crash.children import DIED, VERBS, assert_ready, die_at, ended, state
from tests.support import untyped

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

# The steps that every merge takes.
STEPS = ("lock", "mark_pending", "store", "publish", "check_out", "check_out_file", "overwrite_file", "clear_pending", "refresh")  # fmt: skip


def _prepared(store: Store, name: str, *, forward: bool) -> Path:
    with store.create_session(name) as session:
        session.add("finding", "No MFA", severity="critical", agent="a")
        with session.branch("idea") as idea:
            idea.edit("FIND-1", category="login", agent="a")
            idea.add("finding", "No limits", agent="a")
        if not forward:
            session.edit("FIND-1", severity="low", agent="a")
        return session.path


@pytest.mark.parametrize("leaving", [False, True], ids=["entering", "leaving"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("forward", [False, True], ids=["merge", "forward"])
def test_a_killed_merge_is_whole_or_not_at_all(
    tmp_path: Path, forward: bool, step: str, leaving: bool
) -> None:
    store = Store.init(tmp_path / "store")
    path, twin = (_prepared(store, name, forward=forward) for name in ("shop", "twin"))
    before = state(path)
    with store.session("twin") as session:
        session.merge("idea")

    def killed() -> None:
        with store.session("shop") as session:
            die_at(VERBS[step], leaving=leaving)
            session.merge("idea")

    assert ended(killed) == DIED
    assert state(path) in (before, state(twin))
    assert_ready(path)


def _writing(store: Path, branch: str, count: int) -> None:
    with Store.open(store).session("shop") as session:
        session.switch(branch)
        for number in range(count):
            session.add("finding", f"{branch} saw {number}", agent=branch)
            session.edit("DEC-1", agent=branch, **untyped({branch: str(number)}))


def _merging(store: Path, count: int) -> None:
    with Store.open(store).session("shop") as session:
        for number in range(count):
            session.merge(("left", "right")[number % 2], agent="merger")


def test_branches_are_written_and_merged_at_once(tmp_path: Path) -> None:
    store, count = Store.init(tmp_path / "store"), 25
    with store.create_session("shop") as session:
        session.add("decision", "Use MySQL")
        for branch in ("left", "right"):
            session.branch(branch).close()
    fork = multiprocessing.get_context("fork")
    children = [
        fork.Process(target=_writing, args=(store.path, branch, count))
        for branch in ("left", "right", "main")
    ]
    children.append(fork.Process(target=_merging, args=(store.path, count)))
    for child in children:
        child.start()
    for child in children:
        child.join(300)
    assert [child.exitcode for child in children] == [0] * len(children)

    with store.session("shop") as session:
        for branch in ("left", "right"):
            session.merge(branch)
        found = session.memories("finding")
        fields = session.get("DEC-1").fields
        assert session.check() == ()
        path = session.path

    assert [memory.id for memory in found] == [f"FIND-{n:04d}" for n in range(1, 3 * count + 1)]
    assert len({memory.content for memory in found}) == 3 * count
    assert fields == dict.fromkeys(("left", "right", "main"), str(count - 1))
    assert_clean(path)
