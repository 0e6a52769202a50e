"""A session and its remotes: what comes in and goes out, and what is refused with its reason."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.model.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidError,
    NotFoundError,
    RefusedError,
    RemoteRefusedError,
    SyncError,
    UntrustedError,
)
from smp_git.model.ids import is_life
from tests import independent_scan
from tests.support import ROOT, git
from tests.sync.support import Machine, head, hook, plain_files, sound, tree


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return tmp_path / "hub.git"


@pytest.fixture
def one(tmp_path: Path, hub: Path) -> Iterator[Session]:
    with Machine(tmp_path, "one").begin(hub) as session:
        yield session
        sound(session)


@pytest.fixture
def two(tmp_path: Path, one: Session, hub: Path) -> Iterator[Session]:
    with Machine(tmp_path, "two").clone(hub) as session:
        yield session
        sound(session)


# What comes in and goes out


def test_success_is_the_remotes_own_word(one: Session, hub: Path) -> None:
    one.add("finding", "No backups", agent="veritas")
    result = one.sync()
    assert result.advertised == one.head == head(hub)
    assert (result.fetched, result.pushed, result.rounds) == (0, 1, 1)


def test_nothing_to_do_is_success_without_a_push(one: Session) -> None:
    one.sync()
    result = one.sync()
    assert (result.fetched, result.pushed, result.advertised) == (0, 0, one.head)


def test_what_two_wrote_is_in_both(one: Session, two: Session) -> None:
    one.edit("DEC-1", agent="architect", impact="high")
    two.edit("DEC-1", agent="veritas", rationale="known")
    mine = two.add("finding", "No backups", agent="veritas")
    one.sync()
    result = two.sync()
    assert result.merged == ("main",)
    assert not result.contested
    one.sync()
    assert tree(one) == tree(two)
    assert dict(one.get("DEC-1").fields) == {"impact": "high", "rationale": "known"}
    assert one.get(mine.id).content == "No backups"


def test_many_that_came_in_are_checked_out(one: Session, two: Session) -> None:
    names = [one.add("finding", f"number {number}", agent="a").id for number in range(20)]
    one.sync()

    assert two.sync().fetched == 20
    assert [two.get(name).content for name in names] == [f"number {number}" for number in range(20)]
    there = git(two.path, "ls-tree", "-r", "--name-only", "main").splitlines()
    assert all((two.path / path).is_file() for path in there)


def test_tag_alone_is_no_commit_that_came(one: Session, two: Session, hub: Path) -> None:
    commit = git(hub, "commit-tree", "-m", "aside", "-p", "main", "main^{tree}").strip()
    git(hub, "tag", "aside", commit)

    assert two.sync().fetched == 0
    assert git(two.path, "rev-parse", "aside").strip() == commit


@pytest.mark.parametrize("here_too", [True, False], ids=["on both", "there only"])
def test_branch_moves_into_a_folder_of_its_own_name(one: Session, two: Session, hub: Path, here_too: bool) -> None:  # fmt: skip
    """`x` becomes `x/y`: the file of the first stands where the second needs a folder."""
    git(one.path, "branch", "x")
    one.sync()
    two.sync()
    for session in (one, two) if here_too else (one,):
        git(session.path, "branch", "-m", "x", "x/y")
    # By hand: to sync it, too, would have to remove the one before it makes the other.
    git(hub, "branch", "-m", "x", "x/y")
    one.add("finding", "in between", agent="a")
    one.sync()

    two.sync()

    branches = ["refs/heads/main", "refs/heads/x/y"]
    for place in (one.path, two.path, hub):
        assert git(place, "for-each-ref", "--format=%(refname)", "refs/heads").split() == branches
    assert tree(one) == tree(two)


def test_branch_in_a_folder_gives_way_to_one_of_the_folders_name(one: Session, two: Session, hub: Path) -> None:  # fmt: skip
    one.branch("a/b").close()
    one.sync()
    two.sync()
    one.drop_branch("a/b")
    one.sync()
    two.sync()
    with one.branch("a") as branch:
        branch.add("finding", "On a", agent="a")
    one.sync()

    two.sync()
    two.sync()

    assert {branch.name for branch in two.branches()} == {"a", "main"}
    assert head(hub, "a") == git(two.path, "rev-parse", "a").strip()


@pytest.mark.parametrize(("theirs", "ours"), [("x", "x/y"), ("x/y", "x")])
def test_branches_that_cannot_stand_side_by_side_are_named(one: Session, two: Session, theirs: str, ours: str) -> None:  # fmt: skip
    one.branch(theirs).close()
    one.sync()
    two.branch(ours).close()

    with pytest.raises(ConflictError, match=f"branch {theirs} of origin cannot exist beside {ours} here") as caught:  # fmt: skip
        two.sync()

    assert f"git branch -m {ours} NAME" in (caught.value.hint or "")
    git(two.path, "branch", "-m", ours, "z")
    two.sync()
    assert {branch.name for branch in two.branches()} == {theirs, "z", "main"}


def test_server_of_plain_files_is_cloned_and_followed(tmp_path: Path, one: Session, hub: Path) -> None:  # fmt: skip
    """Git puts the index of a pack down before the pack, and one pack after the other."""
    for number in range(3):
        one.add("finding", f"In pack {number}", agent="a")
        one.sync()
        git(hub, "repack", "-qd")
    git(hub, "update-server-info")
    with plain_files(tmp_path) as folder, Machine(tmp_path, "two").store.clone(f"{folder}hub.git") as two:  # fmt: skip
        assert tree(two) == tree(one)
        one.add("finding", "Later", agent="a")
        one.sync()
        git(hub, "repack", "-qd")
        git(hub, "update-server-info")
        assert two.fetch().fetched == 1
        indexes = (two.path / ".git/objects/pack").glob("*.idx")
        assert all(each.with_suffix(".pack").exists() for each in indexes)


def test_branch_that_a_person_has_checked_out_waits_for_him(one: Session, two: Session, hub: Path) -> None:  # fmt: skip
    idea = one.branch("idea")
    one.sync()
    two.sync()
    git(two.path, "switch", "-q", "idea")
    with idea:
        added = idea.add("finding", "On idea", agent="a")
    theirs = one.add("finding", "On main", agent="a")
    one.sync()

    with pytest.raises(RefusedError, match="branch idea is checked out"):
        two.sync()

    assert two.get(theirs.id).content == "On main"
    assert git(two.path, "status", "--porcelain") == ""
    git(two.path, "switch", "-q", "main")
    assert git(two.path, "status", "--porcelain") == ""
    two.sync()
    two.switch("idea")
    assert two.get(added.id).content == "On idea"
    two.switch("main")


def test_the_same_field_is_contested_and_settled(one: Session, two: Session) -> None:
    one.edit("DEC-1", agent="architect", impact="high")
    one.sync()
    two.edit("DEC-1", agent="veritas", impact="low")
    (conflict,) = two.sync().contested
    assert (conflict.id, conflict.field) == ("DEC-0001", "impact")
    one.sync()
    assert [memory.id for memory in one.conflicts()] == ["DEC-0001"]
    one.resolve_conflict("DEC-0001")
    one.sync()
    two.sync()
    assert two.conflicts() == ()
    assert tree(one) == tree(two)


def test_a_clone_writes_under_a_tag_of_its_own(one: Session, two: Session) -> None:
    left, right = one.add("finding", "A", agent="a"), two.add("finding", "B", agent="b")
    assert left.id == "FIND-0001"
    assert right.id.startswith("FIND-0001-")


def test_access_counts_travel(one: Session, two: Session) -> None:
    for _ in range(3):
        two.get("DEC-0001")
    two.sync()
    one.get("DEC-0001")
    one.sync()
    assert one._handle.accesses.totals()["DEC-0001"].times == 4


def test_branches_and_tags_travel(one: Session, two: Session, hub: Path) -> None:
    with one.branch("idea") as idea:
        idea.add("decision", "Use SQLite", agent="architect")
        tip = idea.head
    one.tag("before")
    one.sync()
    two.sync()
    assert {branch.name for branch in two.branches()} == {"idea", "main"}
    assert git(two.path, "rev-parse", "idea").strip() == tip == head(hub, "idea")
    assert [tag.name for tag in two.tags()] == ["before"]


def test_a_branch_that_was_dropped_goes_everywhere(one: Session, two: Session, hub: Path) -> None:
    with one.branch("idea") as idea:
        idea.add("decision", "Use SQLite", agent="architect")
    one.sync()
    two.sync()
    one.drop_branch("idea")
    one.sync()
    assert "idea" not in git(hub, "branch", "--list")
    (said,) = two.sync().notes
    assert "branch idea was dropped on origin" in said
    assert {branch.name for branch in two.branches()} == {"main"}
    assert "refs/smp/rescue/origin/idea" in git(two.path, "for-each-ref")


def test_a_dropped_branch_that_got_more_elsewhere_stays(one: Session, two: Session) -> None:
    one.branch("idea").close()
    one.sync()
    two.sync()
    one.drop_branch("idea")
    two.switch("idea")
    added = two.add("decision", "Use SQLite", agent="architect")
    two.switch("main")
    two.sync()
    one.sync()
    one.switch("idea")
    assert one.get(added.id).content == "Use SQLite"
    one.switch("main")


@pytest.mark.parametrize("way", ["fetch", "push"])
def test_a_branch_that_was_only_looked_at_is_nobodys_to_drop(one: Session, two: Session, hub: Path, way: str) -> None:  # fmt: skip
    with one.branch("idea") as idea:
        idea.add("decision", "Use SQLite", agent="architect")
        tip = idea.head
    one.sync()

    getattr(two, way)()

    assert head(hub, "idea") == tip
    assert {branch.name for branch in two.branches()} == {"main"}
    assert git(two.path, "rev-parse", "origin/idea").strip() == tip
    two.push()
    assert head(hub, "idea") == tip
    two.sync()
    assert head(hub, "idea") == tip == git(two.path, "rev-parse", "idea").strip()


@pytest.mark.parametrize("way", ["fetch", "push"])
def test_a_branch_dropped_here_that_got_more_is_joined_after_a_look(one: Session, two: Session, hub: Path, way: str) -> None:  # fmt: skip
    with one.branch("idea") as idea:
        one.sync()
        two.sync()
        two.drop_branch("idea")
        added = idea.add("decision", "Use SQLite", agent="architect")
    one.sync()

    getattr(two, way)()
    two.sync()

    assert head(hub, "idea") == git(one.path, "rev-parse", "idea").strip()
    two.switch("idea")
    assert two.get(added.id).content == "Use SQLite"
    two.switch("main")


@pytest.mark.parametrize("way", ["fetch", "push"])
def test_a_branch_dropped_there_does_not_come_back_after_a_look(one: Session, two: Session, hub: Path, way: str) -> None:  # fmt: skip
    one.branch("idea").close()
    one.sync()
    two.sync()
    one.drop_branch("idea")
    one.sync()

    if way == "fetch":
        two.fetch()
    else:
        with pytest.raises(ConflictError, match="has not merged"):
            two.push()
    (said,) = two.sync().notes

    assert "branch idea was dropped on origin" in said
    assert "idea" not in git(hub, "branch", "--list")
    assert {branch.name for branch in two.branches()} == {"main"}


def test_what_moves_there_while_something_else_is_pushed_is_not_replaced(one: Session, two: Session, hub: Path) -> None:  # fmt: skip
    """The remote's main gets a commit at the moment at which it takes a branch."""
    idea = one.branch("idea")
    one.sync()
    two.sync()
    added = two.add("finding", "Unseen", agent="b")
    git(two.path, "push", "-q", str(hub), "main:refs/aside/main")
    moving = hook(hub, "post-receive", "git update-ref refs/heads/main refs/aside/main")
    with idea:
        idea.add("decision", "Use SQLite", agent="architect")
    one.sync()
    moving.unlink()
    assert head(hub) == two.head

    one.sync()

    assert head(hub) == two.head == one.head
    assert one.get(added.id).content == "Unseen"


@pytest.mark.parametrize("moment", ["pre-receive", "post-receive"])
def test_deletion_while_a_push_is_under_way_is_published_too(tmp_path: Path, one: Session, hub: Path, moment: str) -> None:  # fmt: skip
    """Another process deletes what is being pushed, before or after the remote has it."""
    gone = one.add("finding", "The swordfish is here", agent="a")
    stays = one.add("finding", "Kept", agent="a")
    program = f'"{sys.executable}" -m smp_git --root "{tmp_path / "one"}" -s shop'
    once = tmp_path / "done"
    hook(hub, moment, f'[ -e "{once}" ] || {{ : > "{once}"; PYTHONPATH="{ROOT}" {program} delete {gone.id} >&2; }}')  # fmt: skip

    result = one.sync()

    assert once.exists()
    assert result.advertised == one.head == head(hub)
    assert {memory.id for memory in one.memories("finding")} == {stays.id}
    assert "swordfish" not in git(hub, "log", "-p", "--all")
    one.add("finding", "Later", agent="a")
    assert one.sync().pushed == 1
    one.delete(stays.id)


def test_a_remote_that_lost_its_main_branch_is_refused(one: Session, hub: Path) -> None:
    one.branch("idea").close()
    one.sync()
    git(hub, "update-ref", "-d", "refs/heads/main")

    with pytest.raises(RefusedError, match="has no main branch, though it held this session"):
        one.sync()

    assert "refs/heads/main" not in git(hub, "for-each-ref")
    one.sync(accept=True)
    assert head(hub) == one.head


def test_store_below_a_folder_that_git_cannot_be_told_is_named(tmp_path: Path, one: Session, hub: Path) -> None:  # fmt: skip
    (tmp_path / "new\nline").mkdir()

    with pytest.raises(InvalidError, match="Git cannot be given a path with such letters"):
        Store.init(tmp_path / "new\nline" / "store").clone(str(hub))


def test_a_remote_that_is_removed_while_it_is_synced_is_forgotten(tmp_path: Path, one: Session, hub: Path) -> None:  # fmt: skip
    begun = tmp_path / "begun"
    hook(hub, "post-receive", f': > "{begun}"; sleep 0.5')
    one.add("finding", "Going out", agent="a")
    with ThreadPoolExecutor(1) as pool:
        syncing = pool.submit(one.sync)
        while not begun.exists() and not syncing.done():
            time.sleep(0.01)
        with Store.open(tmp_path / "one").session("shop") as other:
            other.remove_remote("origin")
        assert syncing.result().advertised == head(hub)

    assert "origin" not in git(one.path, "for-each-ref")
    assert one.remotes == {}


def test_a_tag_that_differs_stays_and_is_named(one: Session, two: Session) -> None:
    one.tag("mark")
    two.add("finding", "B", agent="b")
    two.tag("mark")
    one.sync()
    assert any("tag mark" in note for note in two.sync().notes)


def test_a_tag_that_is_moved_or_removed_is_so_everywhere(
    one: Session, two: Session, hub: Path
) -> None:
    one.tag("mark")
    one.sync()
    two.sync()
    two.add("finding", "B", agent="b")
    two.tag("mark", move=True)
    two.sync()
    one.sync()
    assert [tag.commit for tag in one.tags()] == [two.head]

    one.remove_tag("mark")
    one.sync()
    assert git(hub, "tag") == ""
    assert any("tag mark was removed" in note for note in two.sync().notes)
    assert two.tags() == one.tags() == ()
    for session in (one, two):
        session.sync()
    assert git(hub, "tag") == ""


def test_a_tag_that_was_moved_there_outlives_its_removal_here(one: Session, two: Session) -> None:
    one.tag("mark")
    one.sync()
    two.sync()
    two.add("finding", "B", agent="b")
    two.tag("mark", move=True)
    two.sync()
    one.remove_tag("mark")
    one.sync()
    assert [tag.commit for tag in one.tags()] == [two.head]


def test_a_tag_that_was_moved_here_outlives_its_removal_there(one: Session, two: Session) -> None:
    one.tag("mark")
    one.sync()
    two.sync()
    two.remove_tag("mark")
    two.sync()
    one.add("finding", "B", agent="b")
    one.tag("mark", move=True)
    one.sync()
    two.sync()
    assert [tag.commit for tag in two.tags()] == [tag.commit for tag in one.tags()] != []


def test_several_remotes_one_of_which_lags(tmp_path: Path, one: Session, two: Session) -> None:
    one.add_remote("lag", tmp_path / "lag.git", create=True)
    one.sync("lag")
    one.add("finding", "A", agent="a")
    one.delete("DEC-0001")
    one.sync("origin")
    two.sync()
    two.add_remote("lag", tmp_path / "lag.git")
    result = two.sync("lag")
    assert result.replaced
    assert head(tmp_path / "lag.git") == two.head
    assert "DEC-0001" not in {memory.id for memory in two.memories()}


def test_fetch_only_looks_and_push_only_sends(one: Session, two: Session, hub: Path) -> None:
    two.add("finding", "B", agent="b")
    two.push()
    before = one.head
    assert one.fetch().fetched == 1
    assert one.head == before
    (state,) = one.remote_states()
    assert (state.ahead, state.behind) == (0, 1)
    one.add("finding", "A", agent="a")
    with pytest.raises(ConflictError, match="has not merged"):
        one.push()
    assert head(hub) == two.head
    one.sync()


def test_index_that_lies_is_mended_on_every_branch(tmp_path: Path, one: Session, hub: Path) -> None:
    """By a sync and by a clone alike: nobody reads another's wrong index."""
    one.branch("idea").close()
    one.sync()
    two = Machine(tmp_path, "two").clone(hub)
    plain = tmp_path / "plain"
    git(tmp_path, "clone", "-q", str(hub), str(plain))
    index = plain / "decisions/000/index.yaml"
    index.write_text(index.read_text().replace("Use PostgreSQL", "Use nothing"))
    git(plain, "commit", "-qam", "lie")
    git(plain, "push", "-q", "origin", "HEAD:main", "HEAD:idea")

    three = Machine(tmp_path, "three").clone(hub)
    two.sync()
    one.sync()
    three.sync()

    for session in (one, two, three):
        for branch in ("idea", "main"):
            session.switch(branch)
            assert session.check() == ()
            assert "Use nothing" not in git(session.path, "show", f"{branch}:decisions/000/index.yaml")  # fmt: skip
    for session in (one, two, three) * 2:
        session.sync()
    assert tree(one) == tree(two) == tree(three)
    sound(two)
    sound(three)


def test_a_persons_edit_is_not_overwritten(one: Session, two: Session) -> None:
    path = one.path / "decisions/000/DEC-0001.yaml"
    edited = path.read_text() + "note: by hand\n"
    path.write_text(edited)
    two.edit("DEC-1", agent="veritas", impact="high")
    two.sync()
    result = one.sync()
    assert path.read_text() == edited
    assert any("DEC-0001.yaml is left" in note for note in result.notes)
    one.commit()
    assert dict(one.get("DEC-1").fields) == {"note": "by hand", "impact": "high"}


def test_an_index_that_lies_is_put_right_in_the_way_in(tmp_path: Path, one: Session, hub: Path) -> None:  # fmt: skip
    person = tmp_path / "person"
    git(tmp_path, "clone", "-q", str(hub), str(person))
    index = person / "decisions/000/index.yaml"
    index.write_text(index.read_text().replace("PostgreSQL", "Nonsense"))
    git(person, "commit", "-qam", "a lie")
    git(person, "push", "-q")
    one.sync()
    assert one.query("nonsense").total == 0
    assert one.query(kinds=["decision"]).hits[0].memory.title == "Use PostgreSQL"


def test_one_pattern_serves_all_sessions(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "one", f"remote: {tmp_path}/memory/{{session}}.git")
    for name in ("a", "b"):
        git(tmp_path, "init", "-q", "--bare", "-b", "main", f"memory/{name}.git")
        with machine.store.create_session(name) as session:
            session.add("finding", f"in {name}", agent="x")
    results, failed = machine.store.sync()
    assert set(results) == {"a", "b"}
    assert not failed
    other = Machine(tmp_path, "two", f"remote: {tmp_path}/memory/{{session}}.git")
    with other.store.clone("b") as session:
        assert session.get("FIND-1").content == "in b"
        assert session.sync().pushed == 0


def test_what_holds_across_sessions_is_shared_too(tmp_path: Path) -> None:
    pattern = f"remote: {tmp_path}/memory/{{session}}.git"
    one, two = Machine(tmp_path, "one", pattern), Machine(tmp_path, "two", pattern)
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "memory/global.git")
    with one.store.global_session() as session:
        session.add("preference", "Short answers", agent="ada")
    assert set(one.store.sync().results) == {"global"}
    two.store.clone("global").close()
    with two.store.global_session() as session:
        assert session.get("PREF-1").content == "Short answers"
    assert two.store.sync().results["global"].pushed == 0
    with pytest.raises(AlreadyExistsError):
        two.store.clone("global")


# Deletion travels


def test_what_was_deleted_goes_everywhere(tmp_path: Path, one: Session, two: Session, hub: Path) -> None:  # fmt: skip
    secret = "Zanzibar-secret-of-the-hub"
    made = one.add("decision", f"{secret} stays", agent="a")
    one.sync()
    two.sync()
    one.delete(made.id)
    assert one.sync().replaced
    assert two.sync().rewritten == (made.id,)
    for session in (one, two):
        assert independent_scan.scan(session.path, [secret.encode()]) == []
    assert git(hub, "log", "--all", "-S", secret, "--format=%h") == ""
    assert two.trash() == ()


def test_what_only_this_replica_had_is_sealed_here(one: Session, two: Session) -> None:
    two.edit("DEC-1", agent="b", text="Use PostgreSQL, version 16")
    one.delete("DEC-0001")
    one.sync()
    assert two.sync().rewritten == ("DEC-0001",)
    (item,) = two.trash()
    assert (item.id, item.versions) == ("DEC-0001", 1)
    two.restore("DEC-0001")
    two.sync()
    one.sync()
    assert one.get("DEC-0001").content == "Use PostgreSQL, version 16"


def test_what_plain_git_pushed_of_a_deleted_memory_is_sealed_too(one: Session, two: Session) -> None:  # fmt: skip
    two.edit("DEC-1", agent="b", text="Use PostgreSQL, version 16")
    assert two.check() == ()
    one.add("finding", "Elsewhere", agent="a")
    one.sync()
    one.delete("DEC-0001")
    one.sync()
    # Past the hooks: the deleted memory, with its edit, is on the remote again.
    git(two.path, "-c", "core.hooksPath=/dev/null", "fetch", "-q", "origin")
    git(two.path, "-c", "core.hooksPath=/dev/null", "push", "-qf", "origin", "main")
    one.sync(accept=True)
    two.sync()
    assert [(item.id, item.versions) for item in two.trash()] == [("DEC-0001", 1)]


def test_a_purge_travels(one: Session, two: Session) -> None:
    two.edit("DEC-1", agent="b", text="Use PostgreSQL, version 16")
    one.delete("DEC-0001", purge=True)
    one.sync()
    two.sync()
    assert two.trash() == ()
    with pytest.raises((RefusedError, NotFoundError)):
        two.restore("DEC-0001")


def test_a_later_purge_destroys_the_copies_elsewhere(one: Session, two: Session) -> None:
    two.edit("DEC-1", agent="b", text="Use PostgreSQL, version 16")
    one.delete("DEC-0001")
    one.sync()
    two.sync()
    assert two.trash()
    one.purge("DEC-0001")
    one.sync()
    two.sync()
    assert two.trash() == ()


def test_a_restored_memory_is_accepted_everywhere(one: Session, two: Session) -> None:
    one.delete("DEC-0001")
    one.sync()
    two.sync()
    one.restore("DEC-0001", with_history=True)
    one.sync()
    two.sync()
    assert is_life(two.get("DEC-0001").life)
    assert two.get("DEC-0001").life == one.get("DEC-0001").life
    assert tree(one) == tree(two)


def test_a_stale_clone_cannot_bring_anything_back(tmp_path: Path, one: Session, two: Session, hub: Path) -> None:  # fmt: skip
    secret = "Zanzibar-secret-of-the-clone"
    made = one.add("decision", secret, agent="a")
    one.sync()
    person = tmp_path / "person"
    git(tmp_path, "clone", "-q", str(hub), str(person))
    one.delete(made.id)
    one.sync()
    git(person, "config", "user.name", "p")
    git(person, "config", "user.email", "p@example.com")
    git(person, "pull", "-q", "--no-rebase", "--no-edit")
    git(person, "push", "-q")
    assert secret in git(hub, "show", "main:decisions/000/DEC-0002.yaml")
    one.sync()
    two.sync()
    assert git(hub, "log", "--all", "-S", secret, "--format=%h") == ""
    for session in (one, two):
        assert independent_scan.scan(session.path, [secret.encode()]) == []


def test_a_server_that_keeps_history_is_named(one: Session, two: Session, hub: Path) -> None:
    git(hub, "config", "receive.denyNonFastForwards", "true")
    one.delete("DEC-0001")
    with pytest.raises(RemoteRefusedError, match="deletion not published") as caught:
        one.sync()
    assert caught.value.hint
    (state,) = one.remote_states()
    assert state.withheld
    assert "deletion not published" in str(one.info().remotes[0])
    one.add("finding", "Work goes on", agent="a")
    git(hub, "config", "receive.denyNonFastForwards", "false")
    assert one.sync().replaced
    assert one.remote_states()[0].withheld is None


def test_without_a_place_for_keys_nothing_is_lost(tmp_path: Path, one: Session, hub: Path) -> None:
    with Machine(tmp_path, "two").clone(hub) as two:
        two.edit("DEC-1", agent="b", impact="high")
        one.delete("DEC-0001")
        one.sync()
        keys = tmp_path / "two-keys"
        shutil.rmtree(keys, ignore_errors=True)
        keys.write_text("no folder")
        before = two.head
        with pytest.raises(Exception, match="key"):
            two.sync()
        assert two.head == before
        keys.unlink()
        assert two.sync().rewritten == ("DEC-0001",)


# What is refused


def test_another_session_is_refused(tmp_path: Path, one: Session, two: Session) -> None:
    with Machine(tmp_path, "three").begin(tmp_path / "other.git"):
        pass
    one.add_remote("other", tmp_path / "other.git")
    before = git(one.path, "for-each-ref")
    with pytest.raises(RefusedError, match="holds another session"):
        one.sync("other")
    assert git(one.path, "for-each-ref") == before


def test_a_remote_that_went_back_is_refused(one: Session, hub: Path) -> None:
    one.add("finding", "A", agent="a")
    one.sync()
    git(hub, "update-ref", "refs/heads/main", "main~1")
    one.add("finding", "B", agent="a")
    with pytest.raises(RefusedError, match="went back: it no longer has 1 commit") as caught:
        one.sync()
    assert "--accept" in (caught.value.hint or "")
    assert git(one.path, "rev-parse", "refs/smp/rescue/origin/main").strip() == one.head
    assert one.sync(accept=True).advertised == one.head == head(hub)


def test_an_emptied_remote_is_refused(one: Session, hub: Path) -> None:
    shutil.rmtree(hub)
    git(hub.parent, "init", "-q", "--bare", "-b", "main", str(hub))
    with pytest.raises(RefusedError, match="is empty, though it held this session"):
        one.sync()
    assert one.sync(accept=True).advertised == head(hub)


def test_an_unrelated_history_is_refused(one: Session, two: Session, hub: Path) -> None:
    files = git(two.path, "ls-tree", "main", "metadata.yaml").split()[2]
    blob = git(hub, "cat-file", "-p", files)
    work = hub.parent / "work"
    git(hub.parent, "init", "-q", "-b", "main", str(work))
    for name in (".gitattributes", ".gitignore"):
        shutil.copy(one.path / name, work / name)
    (work / "metadata.yaml").write_text(blob)
    git(work, "add", "-A")
    git(work, "commit", "-qm", "a new beginning")
    git(work, "push", "-qf", str(hub), "main")
    with pytest.raises(RefusedError, match="shares nothing"):
        one.sync()
    git(one.path, "push", "-qf", str(hub), "main")


@pytest.mark.parametrize("address", ["ext::sh -c id", "-oProxyCommand=id", "https://u:p@host/x.git", ""])  # fmt: skip
def test_addresses_that_could_harm_are_refused(one: Session, address: str) -> None:
    with pytest.raises(InvalidError):
        one.add_remote("bad", address)


def test_a_remote_that_is_not_there(tmp_path: Path, one: Session) -> None:
    one.add_remote("away", tmp_path / "away.git")
    with pytest.raises(SyncError) as caught:
        one.sync("away")
    assert caught.value.exit_status == 10
    with pytest.raises(NotFoundError, match="no remote 'nowhere'"):
        one.sync("nowhere")


def test_a_clone_leaves_nothing_behind_when_it_fails(tmp_path: Path, one: Session, hub: Path) -> None:  # fmt: skip
    machine = Machine(tmp_path, "three")
    work = tmp_path / "work"
    git(tmp_path, "clone", "-q", str(hub), str(work))
    (work / "decisions/000/DEC-0001.yaml").write_text("{")
    git(work, "commit", "-qam", "broken")
    git(work, "push", "-q")
    with pytest.raises(UntrustedError, match="DEC-0001"):
        machine.clone(hub)
    assert list((machine.store.path / "active").iterdir()) == []
    before = one.head
    with pytest.raises(UntrustedError, match="DEC-0001"):
        one.sync()
    assert one.head == before
    git(hub, "update-ref", "refs/heads/main", "main~1")


def test_what_no_replica_would_take_in_is_not_pushed(one: Session, two: Session, hub: Path) -> None:  # fmt: skip
    path = one.path / "decisions/000/DEC-0001.yaml"
    whole, before = path.read_text(), head(hub)
    assert one.check() == ()
    path.write_text("{")
    git(one.path, "commit", "-q", "--no-verify", "-am", "broken")
    with pytest.raises(RefusedError, match=r"no other replica would take in.*DEC-0001"):
        one.sync()
    assert head(hub) == before
    path.write_text(whole)
    git(one.path, "commit", "-q", "--no-verify", "-am", "mended")
    assert one.sync().advertised == head(hub)


def test_a_clone_does_not_replace_a_session(one: Session, hub: Path, tmp_path: Path) -> None:
    machine = Machine(tmp_path, "two")
    machine.clone(hub).close()
    with pytest.raises(AlreadyExistsError, match="shop exists") as caught:
        machine.clone(hub)
    assert "smp sync" in (caught.value.hint or "")
    with machine.store.clone(str(hub), "shop-2") as second:
        assert second.id == "shop-2"


def test_branch_that_was_dropped_and_pushed_again_stands_in_nobodys_way(tmp_path: Path) -> None:
    hub = tmp_path / "hub.git"
    one = Machine(tmp_path, "one").begin(hub)
    idea = one.branch("idea")
    idea.add("finding", "First", agent="a")
    one.sync()
    two, three = (Machine(tmp_path, name).clone(hub) for name in ("two", "three"))
    idea.add("finding", "Second", agent="a")
    one.sync()
    two.sync()
    two.drop_branch("idea", discard=True)
    two.sync()
    three.switch("idea")
    three.add("finding", "Third", agent="c")
    three.sync()

    for session in (one, two, three, one):
        session.sync()

    assert head(hub, "idea") == git(one.path, "rev-parse", "idea").strip()
    assert {each.title for each in idea.memories("finding")} == {"First", "Second", "Third"}
