"""A year, day by day: states, archives, retention, trash and purges, and a bound for the disk."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from smp_git import Store
from smp_git.keep.maintenance import Maintained
from tests.conftest import Clock
from tests.support import git, untyped

DAYS = 365
SESSIONS = 30
# While sessions begin and are left, each day is lived; then every eleventh: no limit, of
# 7, 30 or 90 days, is a multiple of that, so each is met from either side.
# With SMP_YEAR=daily no day is left out, which takes seven minutes.
DAILY, STRIDE = (DAYS, 1) if os.environ.get("SMP_YEAR") == "daily" else (24, 11)
TURNS_ARE_KEPT = timedelta(days=90)
# For how many days a session is used, and on which share of those that are lived.
LONG, MONTHS, WEEK = (DAYS, 0.3), (60, 0.2), (5, 0.5)
USES = (LONG, MONTHS, WEEK, MONTHS, WEEK, WEEK)
# What was written so long ago to the minute may be there or not.
DOUBT = timedelta(minutes=10)


@dataclass
class Diary:
    """What was done to a session, and so what must be true of it."""

    lasts: int
    share: float
    begun: int
    used_at: datetime
    written: dict[str, datetime] = field(default_factory=dict)

    def is_used(self, day: int, chance: float) -> bool:
        """Whether it is used on a day."""
        return day - self.begun < self.lasts and chance < self.share

    def expected(self, now: datetime) -> tuple[set[str], set[str]]:
        """Return which memories must be there, and which may be or not."""
        ages = {name: now - at for name, at in self.written.items()}
        turns = {name: age for name, age in ages.items() if name.startswith("turn")}
        doubtful = {name for name, age in turns.items() if abs(age - TURNS_ARE_KEPT) < DOUBT}
        gone = {name for name, age in turns.items() if age > TURNS_ARE_KEPT}
        return ages.keys() - gone - doubtful, doubtful


class Year:
    """A store for a year, and the diary of each of its sessions."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store, self.clock, self.random = store, clock, random.Random(7)
        self.begins = (clock.now + timedelta(days=1)).replace(hour=9, minute=0, second=0)
        self.diaries: dict[str, Diary] = {}

    def day(self, number: int) -> None:
        """Begin two sessions in the first weeks, and use those that are in use."""
        self.clock.now = self.begins + timedelta(days=number)
        for begun in range(len(self.diaries), min(2 * number + 2, SESSIONS)):
            name, (lasts, share) = f"s{begun:02}", USES[begun % len(USES)]
            self.store.create_session(name, user="ada").close()
            self.diaries[name] = Diary(lasts, share, number, self.clock.now)
        for name, diary in self.diaries.items():
            if diary.is_used(number, self.random.random()):
                self.use(name, diary)

    def use(self, name: str, diary: Diary) -> None:
        """Write a few memories, read one, and sometimes delete one."""
        there, _ = diary.expected(self.clock.now)
        with self.store.session(name) as session:
            for _ in range(self.random.choice((1, 2, 4))):
                kind = self.random.choice(("turn", "decision", "decision", "decision"))
                text = f"{name} says {self.random.random()} " * 10
                made = session.add(untyped(kind), text, agent="a").id
                diary.written[made] = self.clock.now
                there.add(made)
            chosen = self.random.choice(sorted(there))
            if self.random.random() < 0.12:
                session.delete(chosen)
                del diary.written[chosen]
            else:
                session.get(chosen)
        diary.used_at = self.clock.now


@pytest.mark.slow
def test_a_year_day_by_day(store: Store, clock: Clock) -> None:
    store.configure(
        {
            "durability": "relaxed",
            "auto_purge": True,
            "auto_restore": True,
            "retention": {"turn": TURNS_ARE_KEPT.days, "strict": True, "decision": None},
        }
    )
    year, found = Year(store, clock), set[str]()
    for step, number in enumerate((*range(DAILY), *range(DAILY, DAYS, STRIDE)), start=1):
        year.day(number)
        done = store.maintain()
        assert done.failed == {}, (number, done.failed)
        found |= {each.step for each in done.actions}
        if step % 7 == 0:
            _as_specified(year, done)
    # The clock moves with each reading: past the hour at which everything was written.
    clock.now += timedelta(hours=2)
    store.maintain()
    assert store.maintain().actions == ()
    assert {"archive", "retention", "purge", "packing"} <= found, "each was due in that year"
    assert len(store.archived_sessions()) >= 2 * SESSIONS // 3


def _as_specified(year: Year, done: Maintained) -> None:
    now = done.at
    for name, diary in year.diaries.items():
        unused = now - diary.used_at
        if any(abs(unused - timedelta(days=days)) < DOUBT for days in (1, 7, 30)):
            continue
        state = done.states[name]
        assert (state == "archived") is (unused >= timedelta(days=30)), (name, state, unused)
        if state != "archived":
            assert (state == "decaying") is (unused >= timedelta(days=7)), (name, state, unused)
            with year.store.session(name) as session:
                there = {memory.id for memory in session.memories()}
                wanted, doubtful = diary.expected(now)
                assert there - doubtful == wanted, name
                assert all(each.deadline >= now for each in session.trash())
    _is_bounded(year)
    assert year.store.check() == ()
    for name in year.store.sessions():
        assert git(year.store.path / "active" / name, "status", "--porcelain") == ""


def _is_bounded(year: Year) -> None:
    """70 KB for a session, and 5 KB for each memory of it, deleted ones and history included."""
    memories = sum(len(diary.written) for diary in year.diaries.values())
    size = sum(each.stat().st_size for each in year.store.path.rglob("*") if each.is_file())
    assert size < 70_000 * len(year.diaries) + 5_000 * memories + 2_000_000, (size, memories)
