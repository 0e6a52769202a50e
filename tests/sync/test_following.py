"""A deletion that comes in: a session rewrites its own history, and most of what came is just that."""

from __future__ import annotations

from pathlib import Path

import pytest

from smp_git import Session
from smp_git.git import storage
from smp_git.model.errors import UntrustedError
from smp_git.model.memory import MemoryId
from tests import independent_scan
from tests.support import git
from tests.sync.support import Machine, sound, tree

_NO_HOOKS = ("-c", "core.hooksPath=/dev/null", "-c", "user.name=eve", "-c", "user.email=e@x")
_MANY = 40


def _two(folder: Path) -> tuple[Session, Session, list[MemoryId]]:
    """Return two replicas that have synced, and the memories of either."""
    one = Machine(folder, "one").begin(folder / "hub.git")
    names = [one.add("finding", f"About xyzzy {n}", agent="a").id for n in range(_MANY)]
    one.sync()
    return one, Machine(folder, "two").clone(folder / "hub.git"), names


def _plain(folder: Path, *arguments: str) -> str:
    return git(folder, *_NO_HOOKS, *arguments)


@pytest.mark.parametrize("ahead", [False, True], ids=["in step", "ahead"])
def test_what_a_session_makes_itself_is_not_new(tmp_path: Path, ahead: bool) -> None:
    one, two, names = _two(tmp_path)
    mine = [two.add("finding", "Here only", agent="b").id] if ahead else []
    one.delete(names[:1])
    one.sync()

    result = two.sync()

    assert (result.fetched, result.rewritten) == (1, (names[0],))
    assert not independent_scan.scan(two.path, [b"About xyzzy 0"])
    assert {each.id for each in two.query(limit=100).hits} >= {*names[1:], *mine}
    one.sync()
    assert tree(one) == tree(two)
    sound(two)


def test_what_came_in_stands_once_after_a_deletion(tmp_path: Path) -> None:
    """It is what this session would write: a second pack of the same would take as much again."""
    one, two, names = _two(tmp_path)
    one.delete(names[:1])
    one.sync()
    two.sync()

    there = [
        name
        for index in storage.indexes(two.path / ".git/objects")
        for name in storage.names(index)
    ]
    assert len(there) == len(set(there)) > _MANY
    assert "prune-packable: 0\n" in git(two.path, "count-objects", "-v")
    assert not independent_scan.unreachable(two.path / ".git")


def test_what_plain_git_fetched_is_not_taken_for_ours(tmp_path: Path) -> None:
    """It was never looked through, and stands here all the same when the deletion comes in."""
    one, two, names = _two(tmp_path)
    one.delete(names[:1])
    one.sync()
    plain = tmp_path / "plain"
    git(tmp_path, "clone", "-q", "hub.git", "plain")
    (plain / "link").symlink_to("/etc/passwd")
    _plain(plain, "add", "link")
    _plain(plain, "commit", "-qm", "a link")
    _plain(plain, "rm", "-q", "link")
    _plain(plain, "commit", "-qm", "no link")
    _plain(plain, "push", "-q", "origin", "main")
    _plain(two.path, "fetch", "-q", "origin")
    before = git(two.path, "rev-parse", "main")

    with pytest.raises(UntrustedError, match="a link"):
        two.sync()

    assert git(two.path, "rev-parse", "main") == before


def test_branch_on_the_history_from_before_is_made_clean(tmp_path: Path) -> None:
    """It stands on commits of ours that are sound, but hold what was deleted."""
    one, two, names = _two(tmp_path)
    plain = tmp_path / "plain"
    git(tmp_path, "clone", "-q", "hub.git", "plain")
    (plain / "notes.md").write_text("aside\n")
    _plain(plain, "add", "notes.md")
    _plain(plain, "commit", "-qm", "aside")
    one.delete(names[:1])
    one.sync()
    _plain(plain, "push", "-q", "origin", "main:side")

    two.sync()

    assert [each.name for each in two.branches()] == ["main", "side"]
    assert not independent_scan.scan(two.path, [b"About xyzzy 0"])
    assert not git(tmp_path / "hub.git", "log", "--all", "--format=%h", "--", f"*{names[0]}.yaml")
    sound(two)
