"""The quota: known without a walk, never exceeded by a write, and room made in time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.errors import QuotaExceededError
from smp_git.read import sizes
from smp_git.read.derived import SOURCES, sources_of
from tests.conftest import Clock
from tests.support import git, python


def _counted(session: Session) -> int:
    """Return the bytes of the tracked files as Git lists them."""
    listed = git(session.path, "ls-tree", "-r", "-l", "HEAD").splitlines()
    return sum(int(line.split()[3]) for line in listed)


def _turn(number: int) -> str:
    return (
        f"Message {number}: we agreed to pay {number * 7} euros to Vendor{number}. "
        + "filler " * 30
    )


def test_size_follows_every_write(session: Session, store: Store) -> None:
    for number in range(5):
        session.add("turn", _turn(number), agent="user")
        assert session.info().size_bytes == _counted(session)
    session.set_state("veritas", {"current_context": "a"})
    session.add("finding", "Slow", severity="low")
    session.resolve("FIND-1")
    session.undo()
    assert session.info().size_bytes == _counted(session)
    session.close()
    with store.session("shop") as again:
        again.add("decision", "Go")
        assert again._handle.reader.size is not None
        assert again.info().size_bytes == _counted(again)
        again.delete("turn-0001")
        assert again.info().size_bytes == _counted(again) == again.size().bytes


def test_a_write_beyond_the_quota_is_refused_with_the_figures(
    store: Store, session: Session
) -> None:
    session.add("finding", "Slow", severity="low")
    session.configure({"quota_bytes": 20_000, "auto_compact": False})
    session.add("turn", "x" * 10_000)
    before, head = _counted(session), session.head

    with pytest.raises(QuotaExceededError) as caught:
        session.add("turn", "y" * 10_000)

    assert f"{before:,} of 20,000 bytes" in caught.value.message
    assert caught.value.recoverable
    assert session.head == head
    with pytest.raises(QuotaExceededError), session.transaction() as transaction:
        transaction.add("turn", "z" * 10_000)
    assert session.head == head
    # What makes room, or takes next to nothing, goes on.
    session.resolve("FIND-1")
    session.delete("turn-0001")
    assert session.add("turn", "y" * 10_000).id


def test_a_session_above_its_quota_can_still_be_worked_with(
    session: Session, tmp_path: Path
) -> None:
    session.add("finding", "Slow", severity="low")
    session.add("turn", "x" * 30_000)
    session.configure({"quota_bytes": 20_000})

    assert any("nothing can be added" in each for each in session.size().advice)
    with pytest.raises(QuotaExceededError):
        session.add("decision", "No room")
    session.add_remote("origin", tmp_path / "hub.git", create=True)
    assert session.sync().pushed
    session.resolve("FIND-1")
    session.compact()
    session.delete("turn-0001")
    assert session.sync().pushed
    session.add("decision", "Room")
    session.configure({"quota_bytes": None})


def test_eleven_entries_of_a_megabyte(store: Store, clock: Clock) -> None:
    with store.create_session("large") as session:
        written = 0
        for number in range(11):
            try:
                session.add("artifact", chr(97 + number) * 1_048_576, agent="user")
                written += 1
            except QuotaExceededError:
                assert written == 9
            clock.now = clock.now.replace(hour=(clock.now.hour + 1) % 24)
        assert written == 9
        assert _counted(session) <= 10_485_760
        assert len(session.memories("artifact")) == 9


def _is_accounted_for(session: Session, names: set[str]) -> bool:
    """Whether each memory is there, named by a summary, or in the history."""
    there = {memory.id for memory in session.memories()}
    named = {
        name
        for each in session.memories("artifact")
        for name in sources_of(each.fields.get(SOURCES))
    }
    touched = set(git(session.path, "log", "--format=", "--name-only", "--diff-filter=A").split())
    return all(
        name in there or name in named or any(f"/{name}." in path for path in touched)
        for name in names
    )


def test_filling_by_one_writer_stays_below_the_quota(store: Store, clock: Clock) -> None:
    quota = 120_000
    store.configure({"quota_bytes": quota, "durability": "relaxed"})
    kept, names = set(), set()
    with store.create_session("full") as session:
        for number in range(520):
            if number % 10 == 0:
                clock.now += timedelta(days=1)
            names.add(session.add("turn", _turn(number), agent="user").id)
            if number % 60 == 0:
                kept.add(session.add("decision", f"Decision {number} about Vendor{number}").id)
                kept.add(
                    session.add("finding", f"Open {number} in Vendor{number}", severity="low").id
                )
            assert session.info().size_bytes <= quota
        assert _counted(session) <= quota
        assert session.info().last_compaction is not None
        assert kept <= {memory.id for memory in session.memories()}
        assert _is_accounted_for(session, names | kept)
        assert session.check() == ()


_WRITER = """
import json, sys
from datetime import UTC, datetime, timedelta
from smp_git import Store
from smp_git.errors import LockedError, QuotaExceededError

root, who, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
start, made = datetime.now(UTC), 0
def clock():
    return start + timedelta(hours=made * 6)
written = []
with Store.open(root, clock=clock).session("full") as session:
    for number in range(count):
        made = number
        try:
            text = f"{who} {number}: we agreed to pay {number * 7} euros to Vendor{number}. " + "filler " * 30
            written.append(session.add("turn", text, agent=who).id)
            if number % 25 == 0:
                written.append(session.add("decision", f"{who} decided {number} on Vendor{number}").id)
        except QuotaExceededError:
            pass
        size = session.info().size_bytes
        assert size <= session.info().quota_bytes, size
print(json.dumps(written))
"""


@pytest.mark.slow
def test_filling_by_six_processes_stays_below_the_quota(store: Store) -> None:
    store.configure({"quota_bytes": 150_000, "lock_timeout_seconds": 120, "durability": "relaxed"})
    store.create_session("full").close()
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(store.path), f"agent{number}", "110"],
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            env=dict(os.environ),
        )
        for number in range(6)
    ]
    written = [json.loads(each.communicate()[0]) for each in running]

    assert [each.returncode for each in running] == [0] * 6
    with store.session("full") as session:
        assert _counted(session) <= 150_000
        names = {name for each in written for name in each}
        decisions = {name for name in names if name.startswith("DEC")}
        assert decisions <= {memory.id for memory in session.memories("decision")}
        assert _is_accounted_for(session, names)
        assert session.info().last_compaction is not None
        assert session.check() == ()


def test_two_values_of_a_setting_hold_for_two_sessions(store: Store) -> None:
    small = store.create_session("small", overrides={"quota_bytes": 20_000})
    with small, pytest.raises(QuotaExceededError):
        small.add("turn", "x" * 30_000)
    with store.create_session("large") as large:
        large.add("turn", "x" * 30_000)


def test_size_says_what_takes_it(session: Session) -> None:
    session.add("artifact", "x" * 9000)
    session.add("turn", "hello")

    found = session.size()

    assert found.bytes == _counted(session) == sum(found.components.values())
    assert found.largest[0].path == "artifacts/000/ART-0001.md"
    assert found.largest[0].percent > 50
    assert found.days_until_quota is not None
    assert found.git_bytes > 9000 // 100
    assert (
        python("import smp_git.session, sys; print('smp_git.keep.compact' in sys.modules)").stdout
        == "False\n"
    )


def test_known_bytes_of_a_tree_that_is_gone_are_counted_anew(session: Session) -> None:
    session.add("turn", "hello")
    session._handle.reader.size = None
    session._handle.reader.local.keep_size("0" * 40, 5)

    assert sizes.tracked_bytes(
        session._handle.reader, session._handle.reader.snapshot()
    ) == _counted(session)


def test_known_bytes_follow_a_deletion_without_counting_anew(session: Session) -> None:
    for number in range(3):
        session.add("decision", f"Use OAuth {number}", agent="ada")

    session.delete("DEC-0002")

    reader = session._handle.reader
    assert reader.size == (reader.snapshot().tree, session.size().bytes)


def test_a_session_near_or_above_its_quota_is_told_once(store: Store) -> None:
    with store.create_session("told", overrides={"quota_bytes": 20_000}) as session:
        assert session.news() == ()
        session.add("artifact", "x" * 16_000)
        (near,) = session.news()
        assert "of 20,000 bytes, " in near
        assert session.news() == ()
    # As after an upgrade, which brings the bound.
    with store.session("told") as session:
        assert session.news() == ()
        session.configure({"quota_bytes": 12_000})
        (above,) = session.news()
        assert "nothing can be added" in above
        assert session.news() == ()
        session.delete("ART-0001")
        assert session.news() == ()
