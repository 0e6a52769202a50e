"""A plain `git push` from a session: nothing that was deleted leaves."""

from __future__ import annotations

import pytest

from smp_git import Store
from smp_git.model.ids import is_life
from tests.hooks.conftest import Person
from tests.support import git

pytestmark = pytest.mark.slow

ONE = "findings/000/FIND-0001.yaml"


@pytest.fixture
def bare(shop: Person) -> Person:
    """A repository that takes anything."""
    folder = shop.folder.parent.parent.parent / "bare.git"
    git(folder.parent, "init", "-q", "--bare", "-b", "main", folder.name)
    shop.git("remote", "add", "origin", str(folder))
    shop.git("push", "-q", "-u", "origin", "main")
    return Person(folder)


def _delete(store: Store, memory_id: str) -> None:
    with store.session("shop") as session:
        session.delete(memory_id, purge=True)


def test_session_without_deletions_is_pushed(shop: Person, bare: Person) -> None:
    assert bare.git("rev-parse", "main") == shop.git("rev-parse", "main")


def test_history_after_a_deletion_is_pushed(shop: Person, bare: Person, store: Store) -> None:
    _delete(store, "FIND-0001")
    shop.git("push", "-q", "--force", "origin", "main")
    with store.session("shop") as session:
        session.add("finding", "After", agent="b")
    shop.git("push", "-q")

    assert bare.git("rev-parse", "main") == shop.git("rev-parse", "main")
    assert "No MFA" not in bare.git("log", "-p", "main")


def test_what_a_plain_pull_brought_back_does_not_leave(shop: Person, bare: Person, store: Store) -> None:  # fmt: skip
    _delete(store, "FIND-0001")
    shop.git("fetch", "-q", "origin")
    done = shop.tries("merge", "-q", "--no-edit", "origin/main")
    assert "FIND-0001 had been deleted" in done.stderr
    said = shop.refused("push", "-q", "origin", "main:aside")

    assert "aside holds what was deleted: FIND-0001" in said
    assert "smp sync" in said
    assert bare.git("for-each-ref", "--format=%(refname)").split() == ["refs/heads/main"]
    shop.git("reset", "-q", "--hard", "HEAD~1")


def test_title_in_a_message_does_not_leave(shop: Person, bare: Person, store: Store) -> None:
    _delete(store, "FIND-0001")
    shop.git("push", "-q", "--force", "origin", "main")
    shop.git("commit", "-q", "--allow-empty", "-m", "finding FIND-0001: No MFA")
    said = shop.refused("push", "-q")

    assert "main holds what was deleted" in said
    shop.git("reset", "-q", "--hard", "HEAD~1")


def test_restored_memory_is_pushed(shop: Person, bare: Person, store: Store) -> None:
    with store.session("shop") as session:
        session.delete("FIND-0001")
        session.restore("FIND-0001")
        life = session.get("FIND-0001").life
    store.session("shop").close()
    shop.git("push", "-q", "--force", "origin", "main")

    assert f"\nlife: {life}\n" in bare.git("show", f"main:{ONE}")
    assert is_life(life)


def test_branch_of_the_remote_is_removed(shop: Person, bare: Person, store: Store) -> None:
    shop.git("push", "-q", "origin", "main:aside")
    _delete(store, "FIND-0001")
    shop.git("push", "-q", "origin", ":aside")

    assert bare.git("branch", "--format=%(refname:short)").split() == ["main"]
