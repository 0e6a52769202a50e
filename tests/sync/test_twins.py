"""Two memories with one id: containers of one image, a rolled-back machine, a backup put back."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from smp_git import Session
from smp_git.model.errors import RefusedError, RemoteRefusedError
from smp_git.model.memory import MemoryId
from smp_git.remove import audit
from tests import independent_scan
from tests.support import git
from tests.sync.images import copied, kept, opened, put_back, settled, texts
from tests.sync.support import Machine, head


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return tmp_path / "hub.git"


@pytest.fixture
def two(tmp_path: Path, hub: Path) -> tuple[Session, Session]:
    """Two containers of one image: one tag, one set of counters."""
    left = Machine(tmp_path, "one").begin(hub)
    right = copied(left, tmp_path, "two")
    return left, right


@pytest.mark.parametrize("swapped", [False, True])
def test_two_additions_under_one_id_stay_two_memories(
    two: tuple[Session, Session], hub: Path, *, swapped: bool
) -> None:
    left, right = reversed(two) if swapped else two
    one = left.add("decision", "Keep PostgreSQL", agent="a")
    other = right.add("decision", "Move to SQLite", agent="b")
    assert one.id == other.id == "DEC-0002"
    left.sync()
    told = right.sync()
    ((old, new),) = told.moved
    assert old == "DEC-0002"
    assert new.startswith("DEC-0002-")
    assert any(old in note and new in note for note in told.notes)
    assert told.as_json()["moved"] == [{"from": old, "to": new}]
    assert told.contested == ()
    assert right.get(old).content == "Keep PostgreSQL"
    assert right.get(new).content == "Move to SQLite"
    settled(two, [hub])
    assert texts(left) >= {"Keep PostgreSQL", "Move to SQLite"}


def test_no_version_is_left_under_the_old_id_and_the_log_of_both_makes_sense(
    two: tuple[Session, Session], hub: Path
) -> None:
    left, right = two
    left.add("decision", "Keep PostgreSQL", agent="a")
    right.add("decision", "Move to SQLite", agent="b")
    right.edit("DEC-2", agent="b", rationale="smaller")
    left.sync()
    ((_, new),) = right.sync().moved
    path = f"decisions/000/{new}.yaml"
    log = git(right.path, "log", "--format=%s", "--", path).splitlines()
    assert log == [f"edit decision {new}: Move to SQLite", f"decision {new}: Move to SQLite"]
    assert f"Memory: {new}" in git(right.path, "log", "-1", "--format=%B", "--", path)
    old = git(right.path, "log", "-p", "--all", "--", "decisions/000/DEC-0002.yaml")
    assert "SQLite" not in old
    assert len(right.history(new)) == 2


def test_what_names_a_moved_memory_follows(two: tuple[Session, Session], hub: Path) -> None:
    left, right = two
    left.add("turn", "Which database?", agent="a")
    left.add("decision", "Keep PostgreSQL", agent="a")
    turn = right.add("turn", "Shall we move?", agent="b")
    right.add("decision", "Move to SQLite", agent="b", turn_ref=turn.id, tags=["dec-0002"])
    right.add("finding", "DEC-0002 costs a day", agent="b", links=[("about", "DEC-0002")])
    right.edit("DEC-0001", agent="b", rationale="until DEC-0002", status="superseded")
    right.add("turn", "Done", agent="b", memory_refs=["DEC-0002", turn.id])
    git(right.path, "tag", "-a", "moved", "-m", "DEC-0002 is decided")
    left.sync()
    moved = dict(right.sync().moved)
    settled(two, [hub])
    new, said = moved[MemoryId("DEC-0002")], moved[turn.id]
    assert left.get(new).fields["turn_ref"] == said
    assert left.get(new).tags == (new.lower(),)
    assert left.get("FIND-0001").content == f"{new} costs a day"
    assert left.get("FIND-0001").links[0].target == new
    assert left.get("DEC-0001").fields["rationale"] == f"until {new}"
    assert [m.fields["memory_refs"] for m in left.memories() if "memory_refs" in m.fields] == [[new, said]]  # fmt: skip
    assert git(left.path, "tag", "-l", "--format=%(contents:subject)").strip() == f"{new} is decided"  # fmt: skip
    assert {left.get(said).content, left.get(turn.id).content} == {"Which database?", "Shall we move?"}  # fmt: skip


def test_a_link_to_another_session_does_not_follow(two: tuple[Session, Session], hub: Path) -> None:
    left, right = two
    left.add("decision", "Keep PostgreSQL", agent="a")
    right.add("decision", "Move to SQLite", agent="b")
    far = ("references", "other:DEC-0002")
    note = right.add("learning", "see there", links=[far, ("references", "DEC-0002")], agent="b")
    left.sync()
    ((_, new),) = right.sync().moved
    assert right.get(note.id).links == (far, ("references", new))


def test_either_can_be_deleted_and_only_it_goes(two: tuple[Session, Session], hub: Path) -> None:
    left, right = two
    left.add("decision", "Keep the Postgres-of-Zanzibar", agent="a")
    right.add("decision", "Move to the SQLite-of-Samarkand", agent="b")
    left.sync()
    ((old, new),) = right.sync().moved
    settled(two, [hub])
    right.delete(old)
    settled(two, [hub])
    assert "Move to the SQLite-of-Samarkand" in texts(left)
    assert independent_scan.scan(left.path, [b"Postgres-of-Zanzibar"]) == []
    left.delete(new)
    settled(two, [hub])
    for session in two:
        assert texts(session) == {"Use PostgreSQL"}
        assert independent_scan.scan(session.path, [b"SQLite-of-Samarkand"]) == []
    assert independent_scan.scan(hub, [b"nothing of it"]) == []


def test_a_replica_that_finds_its_tag_in_use_takes_another(
    two: tuple[Session, Session], hub: Path
) -> None:
    left, right = two
    before = right._handle.writer.identity().tag
    left.add("decision", "Keep PostgreSQL", agent="a")
    left.sync()
    right.sync()
    assert right._handle.writer.identity().tag != before
    added = right.add("decision", "Move to SQLite", agent="b")
    assert added.id == f"DEC-0002-{right._handle.writer.identity().tag}" or added.id.startswith("DEC-0003-")  # fmt: skip
    assert not right.sync().moved
    settled(two, [hub])
    left.add("decision", "One more", agent="a")
    right.add("decision", "Two more", agent="b")
    settled(two, [hub])
    assert {"One more", "Two more"} <= texts(left)


def test_another_handle_of_the_replica_takes_the_new_tag_too(
    two: tuple[Session, Session], hub: Path
) -> None:
    left, right = two
    other = opened(right.path, right)
    other.add("decision", "Before", agent="b")
    left.add("decision", "Keep PostgreSQL", agent="a")
    left.sync()
    right.sync()
    assert other.add("decision", "After", agent="b").id.endswith(
        right._handle.writer.identity().tag
    )


def test_the_same_import_on_both_sides_is_one_memory(
    two: tuple[Session, Session], hub: Path
) -> None:
    left, right = two
    for session in two:
        session._handle.clock.now = left._handle.clock.now  # type: ignore[attr-defined]
    at = "2026-01-02T03:04:05Z"
    one = [session.add("decision", "Imported", agent="a", at=at) for session in two]
    assert one[0].id == one[1].id
    right.edit("DEC-2", agent="b", rationale="known")
    left.sync()
    assert right.sync().moved == ()
    settled(two, [hub])
    assert [m.content for m in left.memories()].count("Imported") == 1


def test_states_of_agents_are_not_twins(two: tuple[Session, Session], hub: Path) -> None:
    left, right = two
    left.set_state("architect", {"current_context": "here"})
    right.set_state("architect", {"working_memory": "there"})
    left.sync()
    assert right.sync().moved == ()


def test_a_backup_put_back_gives_no_number_again(tmp_path: Path, hub: Path) -> None:
    session = Machine(tmp_path, "one").begin(hub)
    copy = kept(session, tmp_path)
    session.add("decision", "Written after the backup", agent="a")
    session.add("turn", "So be it", agent="a")
    session.sync()
    session = put_back(session, copy)
    session.add("decision", "Written over the backup", agent="a")
    session.add("turn", "So it is not", agent="a")
    assert {old for old, _ in session.sync().moved} == {"DEC-0002", "turn-0001"}
    settled([session], [hub])
    assert texts(session) >= {
        "Written after the backup",
        "Written over the backup",
        "So be it",
        "So it is not",
    }
    assert session.add("decision", "And another", agent="a").id not in {"DEC-0002", "DEC-0001"}


def test_a_machine_rolled_back_over_a_move_makes_the_same_move(
    two: tuple[Session, Session], tmp_path: Path, hub: Path
) -> None:
    left, right = two
    left.add("decision", "Keep PostgreSQL", agent="a")
    left.sync()
    right.add("decision", "Move to SQLite", agent="b")
    copy = kept(right, tmp_path)
    first = right.sync().moved
    right = put_back(right, copy)
    assert right.sync().moved == first
    settled([left, right], [hub])
    assert [m.content for m in left.memories()].count("Move to SQLite") == 1


def test_uncommitted_edits_of_a_memory_that_moves_are_not_lost(
    two: tuple[Session, Session], hub: Path
) -> None:
    left, right = two
    left.add("decision", "Keep PostgreSQL", agent="a")
    left.sync()
    memory = right.add("decision", "Move to SQLite", agent="b")
    file = right.path / memory.path
    file.write_text(file.read_text() + "rationale: typed by hand\n")
    before = right.head
    with pytest.raises(RefusedError, match="DEC-0002"):
        right.sync()
    assert right.head == before
    assert "typed by hand" in file.read_text()


def test_branches_and_what_is_checked_out_follow(two: tuple[Session, Session], hub: Path) -> None:
    left, right = two
    left.add("decision", "Keep PostgreSQL", agent="a")
    left.sync()
    right.add("decision", "Move to SQLite", agent="b")
    git(right.path, "branch", "idea")
    ((_, new),) = right.sync().moved
    assert (right.path / f"decisions/000/{new}.yaml").exists()
    assert "Move to SQLite" in git(right.path, "show", f"idea:decisions/000/{new}.yaml")
    assert "DEC-0002.yaml" not in git(right.path, "ls-tree", "-r", "--name-only", "idea")
    settled(two, [hub])


def test_three_containers_of_one_image(
    two: tuple[Session, Session], tmp_path: Path, hub: Path
) -> None:
    third = copied(two[0], tmp_path, "three")
    sessions = [*two, third]
    for number, session in enumerate(sessions):
        session.add("decision", f"Decided by {number}", agent="a")
        session.add("finding", f"Found by {number}", agent="a", links=[("about", "DEC-0002")])
    for session in reversed(sessions):
        session.sync()
    settled(sessions, [hub])
    found = {m.content: m for m in third.memories()}
    for number in range(3):
        about = found[f"Found by {number}"].links[0].target
        assert third.get(about).content == f"Decided by {number}"


@pytest.mark.parametrize("order", range(4))
def test_where_remotes_have_both_every_replica_moves_the_same(
    two: tuple[Session, Session], tmp_path: Path, hub: Path, order: int
) -> None:
    left, right = two
    second = tmp_path / "second.git"
    left.add_remote("second", second, create=True)
    left.sync("second")
    right.add_remote("second", second)
    reader = Machine(tmp_path, "reader").clone(second)
    git(reader.path, "remote", "rename", "origin", "second")
    one = left.add("decision", "Keep PostgreSQL", agent="a")
    right._handle.clock.now = left._handle.clock.now  # type: ignore[attr-defined]
    other = right.add("decision", "Move to SQLite", agent="b", links=[("about", "DEC-0001")])
    assert one.id == other.id
    left.sync("origin")
    right.sync("second")
    reader.sync("second")
    reader.add_remote("origin", hub)
    reader.add("finding", "Somebody reads", agent="c", links=[("about", other.id)])
    steps = [
        [(left, "second"), (right, "origin"), (reader, "origin")],
        [(right, "origin"), (left, "second"), (reader, "second")],
        [(reader, "second"), (reader, "origin"), (left, "origin"), (right, "second")],
        [(left, "second"), (reader, "origin"), (right, "second"), (right, "origin")],
    ]
    for session, remote in steps[order]:
        session.sync(remote)
    settled([left, right, reader], [hub, second])
    found = {m.content: m for m in reader.memories()}
    assert {"Keep PostgreSQL", "Move to SQLite"} <= found.keys()
    assert found["Keep PostgreSQL"].id == "DEC-0002"
    assert found["Somebody reads"].links[0].target == found["Move to SQLite"].id


def test_a_merge_of_branches_here_meets_no_twins(hub: Path, tmp_path: Path) -> None:
    session = Machine(tmp_path, "one").begin(hub)
    session.branch("idea")
    session.add("decision", "On main", agent="a")
    session.switch("idea")
    session.add("decision", "On the branch", agent="a")
    session.switch("main")
    session.merge("idea")
    assert {"On main", "On the branch"} <= texts(session)
    assert session.conflicts() == ()


def test_a_branch_that_plain_git_fetched_is_not_merged_with_a_twin(
    two: tuple[Session, Session], hub: Path
) -> None:
    left, right = two
    left.add("decision", "Keep PostgreSQL", agent="a")
    left.sync()
    right.add("decision", "Move to SQLite", agent="b")
    git(right.path, "fetch", str(hub), "main:theirs")
    with pytest.raises(RefusedError, match="another memory"):
        right.merge("theirs")
    right.close()
    assert git_status(right.path, "merge", "theirs")
    assert "DEC-0002.yaml" in git(right.path, "diff", "--name-only", "--diff-filter=U")
    git(right.path, "merge", "--abort")
    right = opened(right.path, right)
    assert {new.startswith("DEC-0002-") for _, new in right.sync().moved} == {True}


def git_status(folder: Path, *arguments: str) -> int:
    return subprocess.run(["git", *arguments], cwd=folder, check=False, capture_output=True).returncode  # fmt: skip


def test_a_remote_that_takes_no_forced_push_keeps_what_it_has(
    two: tuple[Session, Session], hub: Path, tmp_path: Path
) -> None:
    left, right = two
    second = tmp_path / "second.git"
    right.add_remote("second", second, create=True)
    left.add("decision", "Keep PostgreSQL", agent="a")
    right._handle.clock.now = left._handle.clock.now  # type: ignore[attr-defined]
    right.add("decision", "Move to SQLite", agent="b")
    left.sync()
    right.sync("second")
    git(second, "config", "receive.denyNonFastForwards", "true")
    left.add_remote("second", second)
    before = head(second)
    with pytest.raises(RemoteRefusedError, match="new ids not published"):
        left.sync("second")
    assert head(second) == before
    assert {"Keep PostgreSQL", "Move to SQLite"} <= texts(left)
    git(second, "config", "receive.denyNonFastForwards", "false")
    left.sync("second")
    right.sync("second")
    assert left.head == right.head == head(second)


def test_the_audit_log_keeps_which_id_became_which(two: tuple[Session, Session], hub: Path) -> None:
    left, right = two
    left.add("decision", "Keep PostgreSQL", agent="a")
    left.sync()
    right.add("decision", "Move to SQLite", agent="b")
    ((old, new),) = right.fetch().moved
    store = next(each for each in right.path.parents if (each / "config.yaml").exists())
    (line,) = [each for each in audit.read(store) if each.action == "move"]
    assert line.ids == (old, new)
