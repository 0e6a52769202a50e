"""Nothing that is gone from a store comes back with an import: archived, deleted, compacted, removed."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from smp_git import Session, Store
from tests.conftest import Clock
from tests.support import git, smp

SOURCE = "claude-code:s-1"


def _transcript(path: Path, count: int, said: str = "Turn") -> Path:
    rows = (
        {
            "type": "assistant" if number % 2 else "user",
            "uuid": f"u-{number}",
            "sessionId": "s-1",
            "timestamp": f"2026-01-01T09:{number:02}:00Z",
            "message": {"role": "user", "content": f"{said} number {number}"},
        }
        for number in range(count)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _texts(session: Session) -> list[str]:
    return [memory.content for memory in session.memories()]


def test_archived_session_stays_archived_where_nothing_is_new(store: Store, tmp_path: Path) -> None:
    path = _transcript(tmp_path / "a.jsonl", 3)
    store.import_(path)
    store.archive_session("claude-code-s-1", "done with it")

    again = store.import_(path)

    assert (again.added, again.sessions[0].known, again.problems) == (0, 3, ())
    assert store.sessions() == ()
    assert [each.session for each in store.archived_sessions()] == ["claude-code-s-1"]


def test_archived_session_comes_back_with_what_is_new(store: Store, tmp_path: Path) -> None:
    path = _transcript(tmp_path / "a.jsonl", 3)
    store.import_(path)
    with store.session("claude-code-s-1") as session:
        session.delete("turn-0002")
    store.archive_session("claude-code-s-1")

    again = store.import_(_transcript(path, 5))

    assert again.added == 2
    with store.session("claude-code-s-1") as session:
        assert _texts(session) == [f"Turn number {n}" for n in (0, 2, 3, 4)]
    assert [line.action for line in store.audit("claude-code-s-1")][-1] == "unarchive"


def _deleted(store: Store, _: Clock) -> None:
    store.delete_session("claude-code-s-1", "too personal")


def _deleted_from_the_archive(store: Store, _: Clock) -> None:
    store.archive_session("claude-code-s-1")
    store.delete_session("claude-code-s-1")


def _purged(store: Store, clock: Clock) -> None:
    _deleted(store, clock)
    store.purge_session("claude-code-s-1")


def _expired(store: Store, clock: Clock) -> None:
    _deleted_from_the_archive(store, clock)
    clock.now += timedelta(days=31)
    store.maintain()
    assert store.deleted_sessions() == ()


@pytest.mark.parametrize("how", [_deleted, _deleted_from_the_archive, _purged, _expired])
def test_deleted_session_is_not_imported_again(
    store: Store, tmp_path: Path, clock: Clock, how: Callable[[Store, Clock], None]
) -> None:
    path = _transcript(tmp_path / "a.jsonl", 3)
    store.import_(path)
    how(store, clock)

    again = store.import_(_transcript(path, 4))

    assert (again.added, [each.was_deleted for each in again.sessions]) == (0, [True])
    assert store.sessions() == ()
    assert store.import_(path, again=True).added == 4
    assert store.import_(path).sessions[0].known == 4


def test_deleted_session_comes_in_where_one_is_named(store: Store, tmp_path: Path) -> None:
    path = _transcript(tmp_path / "a.jsonl", 3)
    store.import_(path)
    store.delete_session("claude-code-s-1")

    assert store.import_(path, session="mine").added == 3


def test_command_names_the_sessions_that_were_deleted(store: Store, tmp_path: Path) -> None:
    path = _transcript(tmp_path / "a.jsonl", 3)
    store.import_(path)
    store.delete_session("claude-code-s-1")

    done = smp("--root", store.path, "import", path)

    assert done.stdout == "nothing to import\n"
    assert f"1 session was deleted here, and not imported: {SOURCE}; --again" in done.stderr
    assert "imported 3 turns" in smp("--root", store.path, "import", path, "--again").stdout


def test_part_that_was_deleted_is_not_imported_again(store: Store, tmp_path: Path) -> None:
    path = _transcript(tmp_path / "a.jsonl", 40, "word " * 400)
    done = store.import_(path, quota=40_000)
    names = [each.session for each in done.sessions]
    assert len(names) > 2
    store.delete_session(names[1])
    store.delete_session(names[0])
    store.purge_session(names[0])

    again = store.import_(path, quota=40_000)

    assert again.added == 0
    assert sum(each.deleted for each in again.sessions) > 0
    assert store.sessions() == tuple(names[2:])


def test_compacted_memories_are_not_imported_again(
    store: Store, tmp_path: Path, clock: Clock
) -> None:
    path = tmp_path / "log.jsonl"
    lines = (
        {"id": f"m{n}", "type": "conversation", "ts": f"2025-01-01T09:{n % 60:02}:00Z",
         "data": {"role": "user", "content": f"We talk about thing number {n}. " * 20}}
        for n in range(120)
    )  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    store.import_(path)
    clock.now += timedelta(days=300)
    with store.session("log") as session:
        session.compact("60%")
        kept = len(session.memories("turn"))
        assert kept < 120

    again = store.import_(path)

    assert (again.added, again.sessions[0].deleted) == (0, 120 - kept)


def test_what_a_person_removed_by_hand_is_not_imported_again(store: Store, tmp_path: Path) -> None:
    path = _transcript(tmp_path / "a.jsonl", 3)
    store.import_(path)
    with store.session("claude-code-s-1") as session:
        first, second = (session.get(f"turn-000{number}").path for number in (1, 2))
        place = session.path
    git(place, "rm", "-q", first)
    git(place, "commit", "-q", "-m", "tidy up")
    with store.session("claude-code-s-1") as session:
        session.repair()
        (place / second).unlink()
        session.commit()

    assert store.import_(path).added == 0


def test_import_that_was_undone_can_be_done_again(store: Store, tmp_path: Path) -> None:
    path = _transcript(tmp_path / "a.jsonl", 3)
    store.import_(path)
    with store.session("claude-code-s-1") as session:
        session.undo()
        assert _texts(session) == []

    assert store.import_(path).added == 3


def _recorded(store: Store) -> Session:
    """Return a session into which turns were recorded as they were said."""
    session = store.create_session("work")
    for number in range(3):
        session.add("turn", f"Turn number {number}", role="user", source=f"{SOURCE}/u-{number}")
    return session


def _keep(store: Store) -> None:
    assert store.sessions()[0] == "work"


def _archive(store: Store) -> None:
    store.archive_session("work")


def _delete(store: Store) -> None:
    store.delete_session("work")


def _purge(store: Store) -> None:
    store.delete_session("work")
    store.purge_session("work")


@pytest.mark.parametrize("how", [_keep, _archive, _delete, _purge])
def test_turn_that_was_recorded_does_not_come_again_with_its_transcript(
    store: Store, tmp_path: Path, how: Callable[[Store], None]
) -> None:
    with _recorded(store) as session:
        session.delete("turn-0002")
    how(store)

    again = store.import_(_transcript(tmp_path / "a.jsonl", 4))

    assert again.added == 1 if how is not _purge else again.added in (1, 2)
    with store.session("claude-code-s-1") as session:
        assert _texts(session)[-1] == "Turn number 3"


def test_what_the_source_deleted_since_is_named(store: Store, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(
        '{"id": "m1", "type": "finding", "ts": "2026-01-01T00:00:00Z", "data": {"issue": "One"}}\n'
    )
    store.import_(log)
    with log.open("a") as file:
        file.write('{"id": "m1", "deleted": true, "ts": "2026-01-12T00:00:00Z"}\n')

    (problem,) = store.import_(log).problems

    assert "deleted there" in problem.reason
    assert "delete FIND-0001" in problem.reason
