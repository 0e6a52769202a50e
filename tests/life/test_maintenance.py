"""Maintenance: what is due and nothing else, once, past what fails, killed anywhere."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.git import packing
from smp_git.git.locks import locked
from smp_git.keep import maintenance
from smp_git.keep.maintenance import Maintained
from tests.conftest import Clock
from tests.independent_scan import scan
from tests.support import git, python, smp

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
    assert "packing" in smp(*root, "maintain", "--all", "--dry-run").stdout
    assert "packing" in smp(*root, "maintain", "--all").stdout
    printed = smp(*root, "maintain", "--print-schedule").stdout
    for each in ("OnCalendar", "StartCalendarInterval", "0 4 * * *", f"--root {store.path}"):
        assert each in printed


DIES = """
import os, sys
from datetime import datetime
from smp_git import Store
from smp_git.keep import archive, growth, maintenance, retention
from smp_git.remove import archive as rooms
from smp_git.remove.history import journal
wanted, seen = int(sys.argv[2]), []

def reached(step):
    seen.append(step)
    if len(seen) == wanted:
        os._exit(73)

def around(home, name):
    real = getattr(home, name)
    def told(*args, **kwargs):
        reached(f"before {name}")
        done = real(*args, **kwargs)
        reached(f"after {name}")
        return done
    setattr(home, name, told)

journal.reached = reached
for home, name in ((growth, "pack"), (retention, "remove"), (maintenance, "purge_due"),
                   (rooms, "put_away"), (maintenance.sessions, "purge_record")):
    around(home, name)
now = datetime.fromisoformat(sys.argv[3])
store = Store.open(sys.argv[1], clock=lambda: now)
store.maintain()
print(len(seen))
"""


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


class Year:
    """A store for a year, and what a diary says must be true of it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store, self.clock, self.random = store, clock, random.Random(7)
        self.used: dict[str, object] = {}
        self.written: dict[str, dict[str, object]] = {}
        self.gone: list[bytes] = []

    def day(self, number: int) -> None:
        self.clock.now = self.clock.now.replace(hour=9, minute=0, second=0) + timedelta(days=1)
        names = [f"s{n:02}" for n in range(30)]
        if number < 30:
            self.store.create_session(names[number], user="ada").close()
            self.used[names[number]], self.written[names[number]] = self.clock.now, {}
        # Ten are used all the year, ten for two months, ten for some days.
        for n, name in enumerate(names[: number + 1]):
            lasts = (365, 60, 5)[n % 3]
            if number - n < lasts and self.random.random() < (0.3 if lasts == 365 else 0.5):
                self.use(name)

    def use(self, name: str) -> None:
        # What retention has taken since is not asked for.
        limit = self.clock.now - timedelta(days=90)
        self.written[name] = {
            each: at
            for each, at in self.written[name].items()
            if not each.startswith("turn") or at > limit  # type: ignore[operator]
        }
        with self.store.session(name) as session:
            self.write(name, session)
            if self.random.random() < 0.2 and self.written[name]:
                chosen = self.random.choice(sorted(self.written[name]))
                session.delete(chosen)
                self.written[name].pop(chosen)
            elif self.written[name]:
                session.get(self.random.choice(sorted(self.written[name])))
        self.used[name] = self.clock.now

    def write(self, name: str, session: Session) -> None:
        kind = self.random.choice(("turn", "decision"))
        made = session.add(kind, f"{name} says {self.random.random()} " * 10, agent="a")
        self.written[name][made.id] = self.clock.now


@pytest.mark.slow
def test_a_year_day_by_day(store: Store, clock: Clock) -> None:
    store = configured(
        store,
        "durability: relaxed\nauto_purge: on\nretention: {turn: 90, strict: true, decision: null}",
    )
    year = Year(store, clock)
    for number in range(365):
        year.day(number)
        done = store.maintain()
        assert done.failed == {}, (number, done.failed)
        if number % 30 == 29:
            _as_specified(year, done)
    # The clock moves with each reading: past the hour at which everything was written.
    clock.now += timedelta(hours=2)
    store.maintain()
    assert store.maintain().actions == ()


def _as_specified(year: Year, done: Maintained) -> None:
    store, now = year.store, done.at
    for name, at in year.used.items():
        unused = now - at  # type: ignore[operator]
        state = done.states[name]
        if any(abs(unused - timedelta(days=n)) < timedelta(minutes=10) for n in (1, 7, 30)):
            continue
        assert (state == "archived") is (unused >= timedelta(days=30)), (name, state, unused)
        if state != "archived":
            assert (state == "decaying") is (unused >= timedelta(days=7)), (name, state, unused)
            with store.session(name) as session:
                there = {each.id for each in session.memories()}
                kept = {
                    each
                    for each, written in year.written[name].items()
                    if not each.startswith("turn") or now - written <= timedelta(days=90)  # type: ignore[operator]
                }
                # Written ninety days ago to the minute: either is right.
                doubtful = {
                    each
                    for each, written in year.written[name].items()
                    if abs(now - written - timedelta(days=90)) < timedelta(minutes=10)  # type: ignore[operator]
                }
                assert there - doubtful == kept - doubtful, name
                assert all(each.deadline >= now for each in session.trash())
                year.written[name] = {each: year.written[name][each] for each in kept}
    memories = sum(len(each) for each in year.written.values())
    size = sum(each.stat().st_size for each in store.path.rglob("*") if each.is_file())
    # 70 KB for a session, and 5 KB for each memory of it, deleted ones and history included.
    assert size < 70_000 * len(year.used) + 5_000 * memories + 2_000_000, (size, memories)
    assert store.check() == ()
    for name in store.sessions():
        assert git(store.path / "active" / name, "status", "--porcelain") == ""
