"""What plain Git does with a session's remotes between two syncs: it misleads nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from smp_git import Session
from smp_git.model.errors import DamagedError, RefusedError, UntrustedError
from tests import independent_scan
from tests.support import git, own
from tests.sync.support import Machine, head, sound, tree

_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")


def _two(folder: Path) -> tuple[Session, Session, Path]:
    """Return two replicas that have synced with one remote, and the remote."""
    hub = folder / "hub.git"
    one = Machine(folder, "one").begin(hub)
    two = Machine(folder, "two").clone(hub)
    return one, two, hub


def _plain(session: Session, *arguments: str) -> None:
    git(session.path, *_NO_HOOKS, *arguments)


def test_branch_that_plain_git_fetched_is_taken_and_not_dropped(tmp_path: Path) -> None:
    one, two, hub = _two(tmp_path)
    with one.branch("idea") as idea:
        idea.add("finding", "Aside", agent="a")
    one.sync()
    tip = head(hub, "idea")

    _plain(two, "fetch", "-q", "origin")
    two.sync()

    assert head(hub, "idea") == tip
    assert [each.name for each in two.branches()] == ["main", "idea"]


def test_branches_of_a_plain_clone_are_not_dropped(tmp_path: Path) -> None:
    one, _, hub = _two(tmp_path)
    with one.branch("idea") as idea:
        idea.add("finding", "Aside", agent="a")
    one.sync()
    third = Machine(tmp_path, "three").store
    git(third.path, "clone", "-q", str(hub), "active/shop")
    session = third.session("shop")
    session.sync()

    assert [each.name for each in session.branches()] == ["main", "idea"]
    assert head(hub, "idea")


def test_deleted_memory_that_went_out_past_the_hooks_goes_everywhere(tmp_path: Path) -> None:
    one, two, hub = _two(tmp_path)
    one.add("finding", "About xyzzy", agent="a")
    one.sync()
    two.sync()
    two.add("learning", "Else", agent="a")
    two.delete("FIND-0001")
    _plain(two, "fetch", "-q", "origin")
    _plain(two, "checkout", "-q", "origin/main", "--", "findings")
    _plain(two, "commit", "-q", "-m", "by hand")
    _plain(two, "merge", "-q", "-s", "ours", "--no-edit", "origin/main")
    _plain(two, "push", "-q", "origin", "main")

    for session in (one, two, one, two):
        session.sync()

    assert tree(one) == tree(two)
    for session in (one, two):
        assert "FIND-0001" not in [memory.id for memory in session.memories()]
        sound(session)
        assert independent_scan.scan(session.path, [b"xyzzy"]) == []
    assert head(hub) == one.head


def test_what_plain_git_fetched_unmerged_is_taken_out_too(tmp_path: Path) -> None:
    one, two, hub = _two(tmp_path)
    one.add("finding", "About xyzzy", agent="a")
    one.sync()
    two.sync()
    git(tmp_path, "clone", "-q", str(hub), "stale")
    two.delete("FIND-0001")
    two.sync()
    git(tmp_path / "stale", "push", "-q", "--force", "origin", "main:refs/heads/old")
    _plain(two, "fetch", "-q", "origin")

    for session in (two, one, two):
        session.sync()

    for session in (one, two):
        sound(session)
        assert independent_scan.scan(session.path, [b"xyzzy"]) == []


def test_edit_committed_past_the_hooks_is_not_staged_after_a_merge_elsewhere(
    tmp_path: Path,
) -> None:
    one, two, _ = _two(tmp_path)
    file = one.file("DEC-0001")
    file.write_text(file.read_text().replace("PostgreSQL", "MySQL"))
    _plain(one, "commit", "-q", "-a", "-m", "by hand")
    one.edit("DEC-0001", agent="a", rationale="It is known")
    one.sync()
    two.edit("DEC-0001", agent="b", impact="high")
    two.sync()
    one.sync()

    sound(one)


@pytest.mark.parametrize("merges", [False, True])
@pytest.mark.parametrize("writes", [False, True])
def test_deletion_arrives_after_a_plain_fetch_or_merge(
    tmp_path: Path, writes: bool, merges: bool
) -> None:
    one, two, hub = _two(tmp_path)
    one.add("finding", "About xyzzy", agent="a")
    one.add("finding", "Else", agent="a")
    one.sync()
    two.sync()
    if writes:
        two.add("learning", "Mine", agent="b")
    one.delete("FIND-0001")
    one.sync()

    _plain(two, "fetch", "-q", "origin")
    if merges:
        two._handle.keeper.flush()
        _plain(two, "merge", "-q", "-s", "ours", "--no-edit", "origin/main")
    two.sync()
    _plain(one, "fetch", "-q", "origin")
    one.sync()

    assert tree(one) == tree(two)
    assert head(hub) == one.head == two.head
    for session in (one, two):
        assert "FIND-0001" not in [memory.id for memory in session.memories()]
        assert session.get("FIND-0002").content == "Else"
        sound(session)
        assert independent_scan.scan(session.path, [b"xyzzy"]) == []


def test_what_plain_git_fetched_seals_before_it_deletes_and_harms_nothing(tmp_path: Path) -> None:
    one, two, _ = _two(tmp_path)
    one.add("finding", "About xyzzy", agent="a")
    one.add("finding", "Else", agent="a")
    one.sync()
    two.sync()
    two.edit("FIND-0001", agent="b", **own(note="only here"))
    one.delete("FIND-0001")
    one.sync()
    _plain(two, "fetch", "-q", "origin")

    two.delete("FIND-0002")
    assert two.get("FIND-0001").fields["note"] == "only here"
    two.sync()

    assert [memory.id for memory in two.memories()] == ["DEC-0001"]
    two.restore("FIND-0001")
    assert two.get("FIND-0001").fields["note"] == "only here"


def test_garbage_that_plain_git_fetched_stops_no_deletion(tmp_path: Path) -> None:
    one, two, hub = _two(tmp_path)
    one.add("finding", "About xyzzy", agent="a")
    one.sync()
    two.sync()
    git(tmp_path, "clone", "-q", str(hub), "person")
    (tmp_path / "person" / "tombstones.yaml").write_text("- {")
    git(tmp_path / "person", "add", "-A")
    git(tmp_path / "person", "commit", "-q", "-m", "by hand")
    git(tmp_path / "person", "push", "-q", "origin", "HEAD:refs/heads/odd")
    _plain(two, "fetch", "-q", "origin")

    two.delete("FIND-0001")

    sound(two)


def _shallow(folder: Path, hub: Path) -> Session:
    store = Machine(folder, "shallow").store
    git(store.path, "clone", "-q", "--depth", "1", f"file://{hub}", "active/shop")
    return store.session("shop")


def test_shallow_clone_is_not_synced_and_says_what_makes_it_whole(tmp_path: Path) -> None:
    one, _, hub = _two(tmp_path)
    one.add("finding", "Else", agent="a")
    one.sync()
    session = _shallow(tmp_path, hub)
    session.add("learning", "Mine", agent="b")
    one.delete("FIND-0001")
    one.sync()

    for exchange in (session.sync, session.fetch, session.push):
        with pytest.raises(RefusedError, match="session shop is a shallow clone") as caught:
            exchange()
        assert caught.value.hint == "git fetch --unshallow brings that"
    with pytest.raises(DamagedError, match="this is a shallow clone"):
        session.history("DEC-0001")
    _plain(session, "fetch", "-q", "--unshallow")
    session.sync()
    one.sync()
    assert tree(one) == tree(session)
    sound(session)


def test_shallow_remote_is_refused(tmp_path: Path) -> None:
    one, two, hub = _two(tmp_path)
    one.add("finding", "Else", agent="a")
    one.sync()
    git(tmp_path, "clone", "-q", "--bare", "--depth", "1", f"file://{hub}", "shallow.git")
    two.add_remote("shallow", tmp_path / "shallow.git")

    with pytest.raises(RefusedError, match="remote shallow is a shallow clone"):
        two.sync("shallow")
    with pytest.raises(UntrustedError) as caught:
        Machine(tmp_path, "three").clone(tmp_path / "shallow.git")
    assert "shallow clone cannot be a remote" in str(caught.value.hint)
