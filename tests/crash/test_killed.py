"""Killed at every verb of a write: the old state or the new one, and nothing to clear up."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from smp_git import Store
from smp_git.model.errors import LockedError
from tests.concurrency.writers import assert_clean
from tests.crash.children import (
    DIED,
    MAKING,
    NEVER,
    OPERATIONS,
    VERBS,
    assert_ready,
    die_at,
    ended,
    state,
    two,
)
from tests.support import git

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def _prepared(store: Store, name: str) -> Path:
    with store.create_session(name) as session:
        session.add("finding", "No MFA", severity="critical", agent="a")
        session.add("learning", "Something learned", agent="a")
        session.add("finding", "No limits", agent="a")
        return session.path


def _do(path: Path, operation: str) -> None:
    with Store.open(path.parents[1]).session(path.name) as session:
        OPERATIONS[operation](session)


@pytest.mark.parametrize("leaving", [False, True], ids=["entering", "leaving"])
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_killed_first_write_is_whole_or_not_at_all(
    tmp_path: Path, operation: str, verb: str, leaving: bool
) -> None:
    store = Store.init(tmp_path / "store")
    path, twin = _prepared(store, "shop"), _prepared(store, "twin")
    before = state(path)
    _do(twin, operation)

    def killed() -> None:
        with store.session("shop") as session:
            die_at(VERBS[verb], leaving=leaving)
            OPERATIONS[operation](session)

    assert ended(killed) == (0 if (operation, verb) in NEVER else DIED)
    assert state(path) in (before, state(twin))
    assert_ready(path)


@pytest.mark.parametrize("leaving", [False, True], ids=["entering", "leaving"])
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_killed_later_write_is_whole_or_not_at_all(
    tmp_path: Path, operation: str, verb: str, leaving: bool
) -> None:
    store = Store.init(tmp_path / "store")
    path, twin = _prepared(store, "shop"), _prepared(store, "twin")
    with store.session("twin") as session:
        two(session)
        before = state(twin)
        OPERATIONS[operation](session)

    def killed() -> None:
        with store.session("shop") as session:
            two(session)
            die_at(VERBS[verb], leaving=leaving)
            OPERATIONS[operation](session)

    assert ended(killed) == (0 if (operation, verb) in NEVER else DIED)
    assert state(path) in (before, state(twin))
    assert_ready(path)


@pytest.mark.parametrize("call", [2, 3, 4, 5])
@pytest.mark.parametrize("verb", ["place", "check_out_file"])
def test_killed_between_the_files_of_a_write(tmp_path: Path, verb: str, call: int) -> None:
    store = Store.init(tmp_path / "store")
    path, twin = _prepared(store, "shop"), _prepared(store, "twin")
    before = state(path)
    _do(twin, "transaction")

    def killed() -> None:
        with store.session("shop") as session:
            die_at(VERBS[verb], leaving=False, call=call)
            OPERATIONS["transaction"](session)

    assert ended(killed) == DIED
    assert state(path) == (before if verb == "place" else state(twin))
    assert_ready(path)


@pytest.mark.parametrize("verb", ["mark_pending", "publish", "check_out_file", "rewrite_index"])
def test_killed_again_while_repairing(tmp_path: Path, verb: str) -> None:
    store = Store.init(tmp_path / "store")
    path = _prepared(store, "shop")

    def killed_once() -> None:
        with store.session("shop") as session:
            die_at(VERBS["check_out"], leaving=False)
            OPERATIONS["transaction"](session)

    def killed_again() -> None:
        die_at(VERBS[verb], leaving=False)
        with store.session("shop") as session:
            session.add("finding", "Never said", agent="a")

    assert ended(killed_once) == DIED
    assert ended(killed_again) == DIED
    assert_ready(path)


@pytest.mark.parametrize("leaving", [False, True], ids=["entering", "leaving"])
@pytest.mark.parametrize("verb", MAKING)
def test_killed_while_a_session_is_made(tmp_path: Path, verb: str, leaving: bool) -> None:
    store = Store.init(tmp_path / "store")

    def killed() -> None:
        die_at(MAKING[verb], leaving=leaving)
        store.create_session("shop", tags=["x"])

    assert ended(killed) == DIED
    for aside in store.path.glob("active/.new-*"):
        os.utime(aside, (time.time() - 3600,) * 2)
    if "shop" not in store.sessions():
        store.create_session("shop", tags=["x"]).close()
    store.create_session("next").close()
    assert_ready(store.path / "active/shop")
    assert not list(store.path.glob("active/.new-*"))


def test_ref_lock_of_a_dead_git_is_given_up(tmp_path: Path) -> None:
    store = Store.init(tmp_path / "store")
    path = _prepared(store, "shop")
    lock = path / ".git/refs/heads/main.lock"
    lock.write_text("")
    os.utime(lock, (time.time() - 3600,) * 2)
    _do(path, "add")

    assert_ready(path)


def test_ref_lock_of_a_live_git_is_waited_for_and_never_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.init(tmp_path / "store")
    path = _prepared(store, "shop")
    lock = path / ".git/refs/heads/main.lock"
    monkeypatch.setattr("smp_git.git.repository._REF_LOCK_SECONDS", 0.3)
    with store.session("shop") as session:
        lock.write_text("")
        head = session.head
        with pytest.raises(LockedError, match=r"main\.lock"):
            session.add("finding", "Too early", agent="a")
        assert lock.exists()
        assert session.head == head
        lock.unlink()

    assert_ready(path)


def test_index_lock_of_a_live_git_is_never_removed(tmp_path: Path) -> None:
    store = Store.init(tmp_path / "store")
    path = _prepared(store, "shop")
    lock = path / ".git/index.lock"
    lock.write_text("")
    with store.session("shop") as session:
        session.add("finding", "While git holds its index", agent="a")
    assert lock.exists()
    lock.unlink()

    assert_ready(path)


def test_broken_or_missing_local_files_are_made_anew(tmp_path: Path) -> None:
    store = Store.init(tmp_path / "store")
    path = _prepared(store, "shop")
    given = set(state(path))
    for name in ("pending.json", "counters.json", "index-tree", "boot", "vetted.json"):
        for data in (b"", b"\0" * 60, b'{"a'):
            (path / ".git/smp" / name).write_bytes(data)
            assert_ready(path)
    (path / ".git/index").write_bytes(b"\0" * 200)
    (path / ".git/smp/index-tree").unlink()
    assert_ready(path)
    shutil.rmtree(path / ".git/smp")
    with store.session("shop") as session:
        assert session.add("finding", "Another replica now", agent="a").id not in given
    assert_clean(path)


def test_plain_git_goes_on_where_a_killed_writer_stopped(tmp_path: Path) -> None:
    store = Store.init(tmp_path / "store")
    path = _prepared(store, "shop")

    def killed() -> None:
        with store.session("shop") as session:
            die_at(VERBS["clear_pending"], leaving=True)
            OPERATIONS["add"](session)

    assert ended(killed) == DIED
    with store.session("shop"):
        pass
    (path / "decisions/000/DEC-0001.yaml").touch()
    git(path, "commit", "-q", "--no-verify", "--allow-empty", "-m", "by hand")
    assert "DEC-0001" in state(path)
