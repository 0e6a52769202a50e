"""Maintenance: what is due and nothing else, once, past what fails, killed anywhere."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from smp_git import Store
from smp_git.git import packing
from smp_git.git.locks import locked
from smp_git.keep import maintenance, retention
from smp_git.keep.maintenance import Maintained
from tests.conftest import Clock
from tests.independent_scan import scan
from tests.support import STEPS, git, python, smp

SECRET = "plugh-0451-of-the-cave"


def configured(store: Store, text: str) -> Store:
    (store.path / "config.yaml").write_text(f"format: 1\n{text}\n")
    return Store(store.path, clock=store.clock)


def steps(done: Maintained) -> list[tuple[str, str, int]]:
    return [(each.session, each.step, each.count) for each in done.actions]


def filled(store: Store, name: str = "shop", count: int = 30) -> None:
    with store.create_session(name, user="ada") as session:
        for number in range(count):
            session.add("turn", f"turn number {number} says {SECRET}", agent="a")


def test_a_second_run_finds_nothing_to_do(store: Store, clock: Clock) -> None:
    filled(store)
    with store.session("shop") as session:
        session.delete("turn-0001")
        git_folder = session.path / ".git"
    clock.now += timedelta(days=31)
    before = packing.count_loose(git_folder)
    planned = store.maintain(dry_run=True)
    assert packing.count_loose(git_folder) == before, "a dry run changes nothing"
    done = store.maintain()
    assert {each.step for each in done.actions} == {"purge", "archive"}
    assert {(s, step) for s, step, _ in steps(planned)} == {(s, step) for s, step, _ in steps(done)}
    assert done.states == {"shop": "archived"}
    again = store.maintain()
    assert (again.actions, again.failed, again.notes) == ((), {}, ())
    assert [each.session for each in store.archived_sessions()] == ["shop"]


def test_maintenance_is_no_use_of_a_session(store: Store, clock: Clock) -> None:
    store = configured(store, "auto_purge: on\nretention: {turn: 5}")
    filled(store)
    clock.now += timedelta(days=20)
    done = store.maintain()
    assert ("shop", "retention", 30) in steps(done)
    with store.session("shop") as session:
        assert session.info().state == "decaying"
        assert len(session.trash()) == 30, "as recoverable as anything that was deleted"
    clock.now += timedelta(days=11)
    assert store.maintain().states["shop"] == "archived"
    clock.now += timedelta(days=20)
    assert ("shop", "purge", 1) in steps(store.maintain())
    assert scan(store.path, [SECRET.encode()]) == []


def test_retention_keeps_what_the_rules_keep(store: Store, clock: Clock) -> None:
    store = configured(store, "auto_purge: on\nretention: {decision: 5, finding: 5}")
    with store.create_session("shop") as session:
        session.add("decision", "still active", agent="a")
        session.add("finding", "still open", agent="a")
        session.add("finding", "pinned", agent="a")
        session.pin("FIND-0002")
        session.add("finding", "done long ago", agent="a")
        for name in ("FIND-0002", "FIND-0003"):
            session.resolve(name)
    clock.now += timedelta(days=6)
    store.maintain()
    with store.session("shop") as session:
        assert {m.id for m in session.memories()} == {"DEC-0001", "FIND-0001", "FIND-0002"}
    store = configured(store, "auto_purge: on\nretention: {decision: 5, finding: 5, strict: true}")
    store.maintain()
    with store.session("shop") as session:
        assert session.memories() == ()


def test_what_is_pinned_while_it_falls_due_stays(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = configured(store, "readme: off\nauto_purge: on\nretention: {learning: 5}")
    filled(store, count=0)
    with store.session("shop") as session:
        session.add("learning", "wanted after all", agent="a")
        clock.now += timedelta(days=6)
        remove = retention.remove

        def late(*arguments: Any) -> Any:
            session.pin("LEARN-0001")
            return remove(*arguments)

        monkeypatch.setattr(retention, "remove", late)
        done = store.maintain()

        assert (steps(done), done.failed) == ([], {})
        assert [each.id for each in session.memories()] == ["LEARN-0001"]


def test_without_auto_purge_it_says_what_is_past_its_time(store: Store, clock: Clock) -> None:
    filled(store)
    clock.now += timedelta(days=91)
    done = store.maintain(dry_run=True)
    assert done.notes == ("shop: 30 past their retention; with auto_purge they are deleted",)


def test_retention_reaches_into_archives(store: Store, clock: Clock) -> None:
    store = configured(store, "auto_purge: on\nretention: {turn: 90}")
    filled(store)
    store.archive_session("shop")
    clock.now += timedelta(days=91)
    assert ("shop", "retention", 30) in steps(store.maintain())
    clock.now += timedelta(days=31)
    store.maintain()
    assert scan(store.path, [SECRET.encode()]) == []
    assert [each.session for each in store.archived_sessions()] == ["shop"]


def test_it_goes_on_past_a_session_that_fails(store: Store, clock: Clock) -> None:
    filled(store, "aaa")
    filled(store, "bbb")
    branch = store.path / "active/aaa/.git/refs/heads/main"
    whole = branch.read_bytes()
    branch.write_bytes(b"\0" * 41)
    done = store.maintain()
    assert list(done.failed) == ["aaa"]
    assert ("bbb", "packing") in {(name, step) for name, step, _ in steps(done)}
    branch.write_bytes(whole)


def test_one_session_alone(store: Store) -> None:
    filled(store, "aaa")
    filled(store, "bbb")
    assert {name for name, _, _ in steps(store.maintain("aaa"))} == {"aaa"}


def flip(file: Path, at: int) -> None:
    """Flip a bit of a file, and leave its time as it was."""
    said, data = file.stat(), bytearray(file.read_bytes())
    data[at] ^= 1
    file.chmod(0o600)
    file.write_bytes(data)
    os.utime(file, ns=(said.st_atime_ns, said.st_mtime_ns))


def test_what_did_not_change_is_verified_once_a_week(store: Store, clock: Clock) -> None:
    filled(store)
    filled(store, "away")
    store.archive_session("away")
    store.maintain()
    archive = store.path / "archived/away/archive.tar.gz"
    (pack,) = (store.path / "active/shop/.git/objects/pack").glob("*.pack")
    for file in (archive, pack):
        flip(file, file.stat().st_size // 2)
    assert store.maintain().notes == (), "neither changed, as far as their times tell"
    assert len(store.check()) > 1, "whoever asks is told at once"
    clock.now += timedelta(days=7)
    found = store.maintain().notes
    assert {each.partition(":")[0] for each in found} == {"away", "shop"}
    assert store.maintain().notes == found, "what is wrong is told every day"
    for file in (archive, pack):
        flip(file, file.stat().st_size // 2)
    assert store.maintain().notes == ()


def test_what_changed_is_verified_at_once(store: Store, clock: Clock) -> None:
    filled(store)
    store.maintain()
    with store.session("shop") as session:
        session.add("decision", "one more", agent="a")
        path = session.path
    index = path / "decisions/000/index.yaml"
    index.write_text(index.read_text() + "# a person was here\n")
    (note,) = store.maintain().notes
    assert note.startswith("shop: decisions/000/index.yaml")
    git(path, "checkout", "decisions")
    clock.now -= timedelta(days=400)
    assert store.maintain().notes == (), "a clock that was put back does no harm"


def test_two_maintainers_do_not_meet(store: Store) -> None:
    filled(store)
    folder = store.path / ".lock/maintain"
    folder.mkdir(parents=True)
    with locked(folder / "lock", 0, "maintaining"):
        done = store.maintain()
    assert done.actions == ()
    assert "another maintenance" in done.notes[0]


def test_a_full_disk_is_told_and_nothing_is_made(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(store)
    monkeypatch.setattr(maintenance, "_LOW_DISK_BYTES", 1 << 60)
    done = store.maintain()
    assert done.actions == ()
    assert "bytes are free" in done.notes[0]


def test_a_session_of_the_trash_is_purged_at_its_deadline(store: Store, clock: Clock) -> None:
    filled(store)
    store.delete_session("shop")
    assert store.maintain().actions == ()
    clock.now += timedelta(days=31)
    assert steps(store.maintain()) == [("shop", "purge", 1)]
    assert store.deleted_sessions() == ()


def test_by_the_command(store: Store) -> None:
    filled(store)
    store.delete_session("shop")
    filled(store)
    root = ("--root", store.path)
    assert "packing" in smp(*root, "maintain", "--all-sessions", "--dry-run").stdout
    assert "packing" in smp(*root, "maintain", "--all-sessions").stdout
    printed = smp(*root, "maintain", "--print-schedule").stdout
    for each in ("OnCalendar", "StartCalendarInterval", "0 4 * * *", f"--root {store.path}"):
        assert each in printed


DIES = (
    STEPS
    + """
from datetime import datetime
from smp_git.keep import archive, growth, maintenance, retention
from smp_git.remove import archive as rooms
for home, name in ((growth, "pack"), (retention, "remove"), (maintenance, "purge_due"),
                   (rooms, "put_away"), (maintenance.sessions, "purge_record")):
    around(home, name)
now = datetime.fromisoformat(sys.argv[3])
store = Store.open(sys.argv[1], clock=lambda: now)
store.maintain()
print(len(seen))
"""
)


@pytest.mark.slow
def test_killed_at_any_step_the_next_run_completes_it(tmp_path: Path) -> None:
    def made(name: str) -> tuple[Store, Clock]:
        clock = Clock()
        store = Store.init(tmp_path / name, clock=clock)
        store = configured(store, "auto_purge: on\nretention: {turn: 20}\ntrash_days: 40")
        filled(store)
        with store.session("shop") as session:
            session.add("decision", "stays", agent="a")
            session.delete(session.add("finding", SECRET, agent="a").id)
        filled(store, "gone", 2)
        store.delete_session("gone")
        clock.now += timedelta(days=50)
        return store, clock

    store, clock = made("whole")
    count = int(python(DIES, store.path, 0, clock.now.isoformat()).stdout)
    for step in range(1, count + 1, 2):
        store, clock = made(f"at-{step}")
        assert python(DIES, store.path, step, clock.now.isoformat(), check=False).returncode == 73
        done = store.maintain()
        assert done.failed == {}, step
        assert store.check() == (), step
        assert store.sessions() == ()
        assert [each.session for each in store.archived_sessions()] == ["shop"], step
        clock.now += timedelta(days=50)
        store.maintain()
        assert scan(store.path, [SECRET.encode()]) == [], step
        store.unarchive_session("shop")
        with store.session("shop") as session:
            assert [each.id for each in session.memories()] == ["DEC-0001"]
