"""Archives: active or archived at every moment, the same to the byte, found by their summary."""

from __future__ import annotations

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.keep.archive import opened_within
from smp_git.model.errors import (
    AlreadyExistsError,
    RefusedError,
    SessionArchivedError,
    SessionNotFoundError,
)
from smp_git.remove.history.places import place_of
from tests.conftest import Clock
from tests.independent_scan import scan
from tests.support import STEPS, git, python, smp

SECRET = "plugh-0451-of-the-cave"


def filled(store: Store, name: str = "shop") -> Session:
    session = store.create_session(name, user="ada", tags=["web"])
    session.add("decision", "Use PostgreSQL for the orders", tags=["data.storage"], agent="a")
    session.edit("DEC-0001", text="Use PostgreSQL for all orders")
    session.add("finding", f"the token {SECRET} stood in the log", agent="b")
    session.add("turn", "please make the checkout faster", agent="a")
    with session.branch("idea") as idea:
        idea.add("decision", "on a branch", agent="a")
    session.tag("v1")
    session.delete(session.add("finding", "deleted before", agent="a").id)
    (session.path / "notes.txt").write_text("what a person put here")
    return session


def state_of(folder: Path) -> dict[str, str]:
    """Return the references, the files and what Git says of them."""
    return {
        "refs": git(folder, "for-each-ref"),
        "log": git(folder, "log", "--all", "--format=%H %T %an %at %s"),
        "status": git(folder, "status", "--porcelain"),
        "fsck": git(folder, "fsck", "--full", "--strict", "--no-dangling"),
    }


def test_it_comes_back_as_it_was_to_the_commit_id(store: Store) -> None:
    session = filled(store)
    session.close()
    before, tag = state_of(session.path), (session.path / ".git/smp/replica.json").read_text()

    said = store.archive_session("shop", "finished", by="ada")

    assert store.sessions() == ()
    assert sorted(each.name for each in (store.path / "archived/shop").iterdir()) == [
        "archive.tar.gz", "origin.json", "summary.yaml",
    ]  # fmt: skip
    assert said.text("reason") == "finished"
    assert said.number("original_size_bytes") > 0
    place = store.unarchive_session("shop", "again", by="ada")
    assert state_of(place) == before
    assert (place / "notes.txt").read_text() == "what a person put here"
    with store.session("shop") as back:
        assert back.check() == ()
        assert back.add("decision", "after", agent="a").id == "DEC-0003", "the same replica"
        assert [item.id for item in back.trash()] == ["FIND-0002"]
        back.restore("FIND-0002")
        assert back.get("FIND-0002").content == "deleted before"
    assert tag.partition('"tag"')[2][:9] in (place / ".git/smp/replica.json").read_text()
    assert not (store.path / "archived/shop").exists()
    lines = [(line.action, line.reason) for line in store.audit("shop") if "archive" in line.action]
    assert lines == [("archive", "finished"), ("unarchive", "again")]


def test_an_archived_session_says_how_it_comes_back(store: Store) -> None:
    filled(store).close()
    store.archive_session("shop")
    with pytest.raises(SessionArchivedError, match="shop is archived") as raised:
        store.session("sho")
    assert (raised.value.code, raised.value.session_id) == ("session_archived", "shop")
    assert "smp unarchive shop" in str(raised.value.hint)
    with pytest.raises(AlreadyExistsError):
        store.create_session("SHOP")
    with pytest.raises(SessionNotFoundError):
        store.unarchive_session("other")
    store.global_session().close()
    with pytest.raises(RefusedError, match="global"):
        store.archive_session("global")


def test_it_is_restored_by_itself_where_the_settings_say_so(store: Store, clock: Clock) -> None:
    filled(store).close()
    store.archive_session("shop")
    (store.path / "config.yaml").write_text("format: 1\nauto_restore: on\n")
    with Store.open(store.path, clock=clock).session("shop") as session:
        assert session.get("DEC-0001").content.startswith("Use PostgreSQL")


def test_a_query_over_all_sessions_finds_it_by_its_summary(store: Store) -> None:
    filled(store).close()
    with store.create_session("other") as other:
        other.add("decision", "PostgreSQL is fast", agent="a")
    store.archive_session("shop")
    answer = store.query("postgresql orders")
    assert [hit.session for hit in answer] == ["other"]
    (found,) = answer.archived
    assert (found.session, found.total) == ("shop", 1)
    assert found.lines[0] == "DEC-0001 Use PostgreSQL for all orders"
    assert store.query("elephants").archived == ()
    assert [each.session for each in store.query(tags=["data"]).archived] == ["shop"]
    assert store.query("postgresql", kinds=["finding"]).archived == ()
    store.close()


def test_an_archived_session_is_deleted_as_it_is_and_comes_back(store: Store) -> None:
    session = filled(store)
    session.close()
    before = state_of(session.path)
    store.archive_session("shop")
    receipt = store.delete_session("shop", "old", by="ada")
    assert (receipt.session, receipt.reason) == ("shop", "old")
    assert store.archived_sessions() == ()
    assert [each.session_id for each in store.deleted_sessions()] == ["shop"]
    store.undelete_session("shop", reason="still needed").close()
    assert state_of(session.path) == before
    assert store.audit("shop", action="undelete_session")[0].reason == "still needed"
    store.archive_session("shop")
    store.delete_session("shop")
    store.purge_session("shop")
    assert scan(store.path, [SECRET.encode()]) == []


def test_a_copy_of_an_archive_is_another_replica(store: Store, tmp_path: Path) -> None:
    filled(store).close()
    store.archive_session("shop")
    shutil.copytree(store.path, tmp_path / "copy")
    other = Store.open(tmp_path / "copy")
    other.unarchive_session("shop")
    with other.session("shop") as copied:
        theirs = copied.add("decision", "there", agent="a").id
    store.unarchive_session("shop")
    with store.session("shop") as session:
        assert session.add("decision", "here", agent="a").id == "DEC-0003"
    assert theirs.startswith("DEC-0003-")


def test_states_follow_the_last_use(store: Store, clock: Clock) -> None:
    with store.create_session("shop") as session:
        assert session.info().state == "created"
        session.add("decision", "first", agent="a")
        assert session.info().state == "active"
        clock.now += timedelta(hours=25)
        assert session.info().state == "idle"
        clock.now += timedelta(days=7)
        assert session.info().state == "decaying"
        (hit,) = store.query("first")
        assert any("decaying session" in why for why in hit.why)
        session.get("DEC-0001")
        assert session.info().state == "active", "reads count"
    store.close()


def test_every_file_of_an_archive_is_on_the_list_of_places(store: Store) -> None:
    filled(store).close()
    store.archive_session("shop")
    files = [path for path in store.path.rglob("*") if path.is_file()]
    names = [path.relative_to(store.path).as_posix() for path in files]
    assert [name for name in names if place_of(name) is None] == []


def test_what_is_deleted_from_an_archive_is_nowhere_in_it(store: Store) -> None:
    filled(store).close()
    store.archive_session("shop", "finished")
    with store.within_archive("shop") as session:
        assert session.delete("FIND-0001", purge=True).proof.clean
    (kept,) = store.archived_sessions()
    assert (kept.text("reason"), SECRET in str(kept.said)) == ("finished", False)
    assert scan(store.path, [SECRET.encode()]) == []
    done = smp("--root", store.path, "-s", "shop", "redact", "make the checkout", "--yes")
    assert "session shop is archived again" in done.stderr
    assert scan(store.path / "archived", [b"make the checkout"]) == []


def test_expired_copies_of_an_archived_session_are_destroyed(store: Store, clock: Clock) -> None:
    filled(store).close()
    store.archive_session("shop")
    clock.now += timedelta(days=31)
    assert store.purge_expired(dry_run=True).ids == ("FIND-0002",)
    assert store.purge_expired().ids == ("FIND-0002",)
    assert not list(store.path.glob("deleted/shop/*/*.sealed"))
    store.unarchive_session("shop")
    with store.session("shop") as session:
        assert session.trash() == ()


def test_check_and_anonymize_reach_archives_and_global(store: Store) -> None:
    with filled(store) as session:
        # A copy that took its place would be without what is on another branch alone.
        session.merge("idea")
    with store.global_session() as shared:
        shared.add("preference", "ada likes short answers", agent="ada")
    store.archive_session("shop")
    archive = store.path / "archived/shop/archive.tar.gz"
    whole = archive.read_bytes()
    archive.write_bytes(whole[: len(whole) // 2])
    assert any(each.startswith("shop: its archive cannot be read") for each in store.check())
    archive.write_bytes(whole)
    made = store.anonymize()
    assert {each.session for each in made} >= {"global"}
    assert [each.session for each in store.archived_sessions()] == [
        each.session for each in made if each.session != "global"
    ]
    with store.global_session() as shared:
        assert "ada" not in shared.memories()[0].content


def test_a_sync_of_all_sessions_reaches_an_archive(store: Store, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    other = Store.init(tmp_path / "other", clock=store.clock)
    with filled(store) as session:
        session.add_remote("origin", tmp_path / "remote.git")
        session.sync()
    store.archive_session("shop")
    assert store.sync().results == {}, "nothing is new there"
    with other.clone(str(tmp_path / "remote.git")) as clone:
        clone.delete("FIND-0001", purge=True)
        clone.sync()
    results, failed = store.sync()
    assert (results["shop"].rewritten, failed) == (("FIND-0001",), {})
    assert [each.session for each in store.archived_sessions()] == ["shop"]
    assert scan(store.path / "archived", [SECRET.encode()]) == []


DIES = (
    STEPS
    + """
from datetime import UTC, datetime
from smp_git.git import disk
from smp_git.remove import archive
for home, name in ((archive, "_write"), (archive, "_unpack"), (archive, "_keep_identity"),
                   (archive, "_discard"), (disk, "flush_folder"), (archive.shutil, "rmtree")):
    around(home, name)
ACT
print(len(seen))
"""
)


@pytest.mark.slow
@pytest.mark.parametrize("act", ["archive_session", "unarchive_session"])
def test_killed_at_any_step_it_is_active_or_archived(tmp_path: Path, act: str) -> None:
    def made(name: str) -> tuple[Store, str]:
        store = Store.init(tmp_path / name)
        with store.create_session("shop", user="ada") as session:
            session.add("decision", f"one {SECRET}", agent="a")
            head = session.head
        if act == "unarchive_session":
            store.archive_session("shop")
        return store, head

    code = DIES.replace("ACT", f"Store.open(sys.argv[1]).{act}('shop')")
    store, _ = made("whole")
    steps = int(python(code, store.path, 0).stdout)
    outcomes = set()
    for step in range(1, steps + 1):
        store, head = made(f"at-{step}")
        died = python(code, store.path, step, check=False)
        # How many folders are flushed depends on the names of objects, which are random.
        assert died.returncode == 73 or int(died.stdout) < step, died.stderr
        is_active = "shop" in store.sessions()
        assert is_active is (store.archived_sessions() == ()), step
        outcomes.add(is_active)
        if not is_active:
            store.unarchive_session("shop")
        with store.session("shop") as session:
            assert session.head == head, step
            assert session.check() == ()
            assert session.delete("DEC-0001", purge=True).proof.clean, step
        left = scan(store.path, [SECRET.encode()])
        assert left == [], (step, left)
    assert outcomes == {True, False}


def test_purged_session_is_nowhere_though_its_archiving_was_killed(store: Store) -> None:
    filled(store).close()
    store.archive_session("shop")
    archived, aside = store.path / "archived" / "shop", store.path / "aside"
    shutil.copytree(archived, aside)
    store.unarchive_session("shop")
    # As a process leaves it that dies between two steps, and in the middle of a removal.
    shutil.copytree(store.path / "active" / "shop", archived.with_name(".gone-0451abcd.shop"))
    aside.rename(archived)

    store.delete_session("shop")

    assert store.archived_sessions() == ()
    store.purge_session("shop")
    assert scan(store.path, [SECRET.encode()]) == []


def test_two_that_look_into_an_archive_take_turns(store: Store) -> None:
    filled(store).close()
    store.archive_session("shop", "done", by="ada")

    def look() -> int:
        with opened_within(store._home, "shop") as handle:
            return len(handle.reader.snapshot().memories())

    with ThreadPoolExecutor(1) as pool:
        with opened_within(store._home, "shop") as handle:
            second = pool.submit(look)
            time.sleep(0.3)
            assert not second.done()
            count = len(handle.reader.snapshot().memories())
        assert second.result() == count

    (archived,) = store.archived_sessions()
    assert (archived.text("reason"), archived.text("archived_by")) == ("done", "ada")


def test_by_the_command(store: Store) -> None:
    filled(store).close()
    done = smp("--root", store.path, "archive", "shop", "--reason", "finished")
    assert done.stdout.startswith("archived shop\n")
    assert smp("--root", store.path, "sessions", "--all").stdout.strip().endswith("archived")
    refused = smp("--root", store.path, "-s", "shop", "info", check=False)
    assert (refused.returncode, "smp unarchive shop" in refused.stderr) == (7, True)
    found = smp("--root", store.path, "query", "postgresql", "--all-sessions").stdout
    assert "archived shop: 1 in its summary; smp unarchive shop" in found
    assert smp("--root", store.path, "unarchive", "shop").stdout == "shop\n"
    assert "decaying, last used" in smp("--root", store.path, "-s", "shop", "info").stdout
