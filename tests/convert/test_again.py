"""A second import adds nothing, brings nothing deleted back, and finishes what a kill left."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from smp_git import Session, Store
from tests.support import ROOT, git

FOREIGN = ROOT / "tests/data/foreign"


def _log(path: Path, count: int, first: int = 0) -> Path:
    lines = [
        {"id": f"m{n}", "type": "finding", "ts": f"2026-01-11T14:{n % 60:02}:00Z",
         "data": {"issue": f"Finding number {n} of the log", "severity": "low"}}
        for n in range(first, first + count)
    ]  # fmt: skip
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return path


def _says(session: Session, text: str) -> bool:
    return any(text in memory.content for memory in session.memories())


@pytest.mark.parametrize("name", ["000", "001", "003", "004"])
def test_second_import_adds_nothing_and_makes_no_commit(store: Store, name: str) -> None:
    first = store.import_(FOREIGN / name)
    heads = {each: store.session(each).head for each in store.sessions()}

    again = store.import_(FOREIGN / name)

    assert again.added == 0
    assert sum(each.known for each in again.sessions) == first.added
    assert {each: store.session(each).head for each in store.sessions()} == heads


def test_second_import_takes_what_is_new(store: Store, tmp_path: Path) -> None:
    log = _log(tmp_path / "log.jsonl", 3)
    store.import_(log)
    _log(log, 2, first=3)

    again = store.import_(log)

    assert (again.added, again.sessions[0].known) == (2, 3)
    with store.session("log") as session:
        assert len(session.memories()) == 5
        assert [each.id for each in session.memories()][-1] == "FIND-0005"


@pytest.mark.parametrize("purge", [False, True])
def test_what_was_deleted_here_is_not_imported_again(
    store: Store, tmp_path: Path, *, purge: bool
) -> None:
    log = _log(tmp_path / "log.jsonl", 3)
    store.import_(log)
    with store.session("log") as session:
        session.delete("FIND-0002", purge=purge)

    again = store.import_(log)

    assert (again.added, again.sessions[0].deleted) == (0, 1)
    with store.session("log") as session:
        assert not _says(session, "Finding number 1 of")


def test_what_was_deleted_there_does_not_come_with_an_older_copy(
    store: Store, tmp_path: Path
) -> None:
    log = _log(tmp_path / "log.jsonl", 3)
    older = log.read_text()
    with log.open("a") as file:
        file.write('{"id": "m1", "deleted": true, "ts": "2026-01-12T00:00:00Z"}\n')
    store.import_(log)

    log.write_text(older)
    store.import_(log)

    with store.session("log") as session:
        assert not _says(session, "Finding number 1 of")
        assert len(session.memories()) == 2


def test_what_one_replica_deleted_another_does_not_import(store: Store, tmp_path: Path) -> None:
    log = _log(tmp_path / "log.jsonl", 3)
    store.import_(log)
    other = Store.init(tmp_path / "other")
    with store.session("log") as session:
        session.add_remote("origin", tmp_path / "hub.git", create=True)
        session.sync()
        other.clone(str(tmp_path / "hub.git")).close()
        session.delete("FIND-0002")
        session.sync()
    with other.session("log") as replica:
        replica.sync()

    assert other.import_(log).added == 0
    with other.session("log") as replica:
        assert not _says(replica, "Finding number 1 of")
        assert replica.check() == ()


def test_notes_of_both_replicas_are_united(store: Store, tmp_path: Path) -> None:
    log = _log(tmp_path / "log.jsonl", 4)
    store.import_(log)
    other = Store.init(tmp_path / "other")
    with store.session("log") as session:
        session.add_remote("origin", tmp_path / "hub.git", create=True)
        session.sync()
        with other.clone(str(tmp_path / "hub.git")) as replica:
            session.delete("FIND-0001")
            replica.delete("FIND-0002")
            session.sync()
            replica.sync()
            session.sync()
            assert session.head == replica.head
            assert len((session.path / "imports.yaml").read_text().splitlines()) == 2

    assert store.import_(log).added == 0
    assert other.import_(log).added == 0


def test_the_note_of_a_deletion_says_nothing_of_the_source(store: Store, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Anna Smith.md").write_text("# Anna Smith\n\nShe moved to Aarhus.\n")
    (vault / "Other.md").write_text("# Other\n\nNothing.\n")
    store.import_(vault)

    with store.session("notes-vault") as session:
        receipt = session.delete("ART-0001")
        assert receipt.proof.clean
        assert "Anna" not in git(session.path, "log", "-p", "--all")


def test_import_that_is_killed_is_finished_by_the_next(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(6):
        _log(folder / f"log{number}.jsonl", 60)
    code = "import sys; from smp_git import Store; Store.open(sys.argv[1]).import_(sys.argv[2])"
    for wait in (0.4, 0.7, 1.0):
        command = [sys.executable, "-c", code, str(store.path), str(folder)]
        with subprocess.Popen(command, cwd=ROOT) as child:
            time.sleep(wait)
            child.send_signal(signal.SIGKILL)

    store.import_(folder)

    assert store.import_(folder).added == 0
    for number in range(6):
        with store.session(f"log{number}") as session:
            texts = [memory.content for memory in session.memories()]
            assert len(texts) == len(set(texts)) == 60


def test_two_imports_at_once_bring_each_memory_once(store: Store, tmp_path: Path) -> None:
    """What the other one brought and somebody deleted at once stays away, too."""
    log, acted = _log(tmp_path / "log.jsonl", 201), list[int]()
    store.create_session("shop").close()

    def act(_: int) -> None:
        if not acted:
            acted.append(store.import_(log, session="shop").added)
            with store.session("shop") as session:
                session.delete("FIND-0202", purge=True)

    done = store.import_(log, session="shop", progress=act)

    assert acted == [201]
    (report,) = done.sessions
    assert (done.added, report.known, report.deleted) == (0, 200, 1)
    with store.session("shop") as session:
        assert len(session.memories()) == 200


def test_what_an_agent_writes_during_an_import_stays(store: Store, tmp_path: Path) -> None:
    with store.create_session("old") as old:
        for number in range(200):
            old.values("app").put(("n", str(number)), number)
        old.set_state("coder", {"task": "imported"})
        (tmp_path / "old.jsonl").write_text("".join(old.export("jsonl")))
    new = store.create_session("new")

    def act(_: int) -> None:
        new.set_state("coder", {"task": "written"})
        new.values("app").put(("n", "7"), "written")

    done = store.import_(tmp_path / "old.jsonl", session="new", progress=act)

    assert (done.added, done.sessions[0].known) == (199, 1)
    assert [each.reason for each in done.problems] == [
        "the session has another value under its key",
        "state-coder is here already, and stays as it is",
    ]
    assert new.state("coder") == {"task": "written"}
    kept = new.values("app").get(("n", "7"))
    assert kept is not None
    assert kept.value == "written"
    assert len(new.values("app").list()) == 200
    new.close()


@pytest.mark.parametrize("into", [None, "shop"])
def test_export_of_a_session_brings_nothing_back_into_it(
    store: Store, session: Session, tmp_path: Path, into: str | None
) -> None:
    for text in ("kept", "deleted", "taken out"):
        session.add("decision", text)
    session.values("app").put("theme", "dark")
    session.values("app").put("gone", "erased")
    for name in ("jsonl", "yaml"):
        list(session.export(name, to=tmp_path / f"shop.{name}"))
    session.delete("DEC-0002", purge=True)
    session.file("DEC-0003").unlink()
    session.commit()
    session.values("app").erase("gone")
    head = session.head

    for name in ("jsonl", "yaml"):
        (done,) = store.import_(tmp_path / f"shop.{name}", session=into).sessions
        assert (done.session, done.added, done.known, done.deleted) == ("shop", {}, 2, 3)

    assert session.head == head
    copy = store.import_(tmp_path / "shop.jsonl", session="copy")
    assert copy.added == 5


def test_dry_run_changes_nothing(store: Store) -> None:
    done = store.import_(FOREIGN / "003", dry_run=True)

    assert done.dry_run
    assert done.added == 17
    assert store.sessions() == ()


def test_source_larger_than_the_quota_becomes_several_sessions(
    store: Store, tmp_path: Path
) -> None:
    log = tmp_path / "long.jsonl"
    with log.open("w") as file:
        for number in range(300):
            line = {
                "id": f"m{number}",
                "type": "conversation",
                "ts": f"2026-01-{number // 20 + 1:02}T10:00:{number % 60:02}Z",
                "data": {"role": "user", "content": f"Turn {number}: " + "word " * 600},
            }
            file.write(json.dumps(line) + "\n")

    done = store.import_(log, quota=400_000)

    assert len(done.sessions) > 2
    assert done.added == 300
    days = []
    for each in done.sessions:
        with store.session(each.session) as session:
            days.append({memory.created_at.date() for memory in session.memories()})
    assert all(left.isdisjoint(right) for left, right in pairwise(days))
    assert store.import_(log, quota=400_000).added == 0


def test_everything_goes_into_one_session_if_it_is_named(store: Store) -> None:
    store.import_(FOREIGN / "000", session="mine")
    store.import_(FOREIGN / "004", session="mine")

    assert store.sessions() == ("mine",)
    assert store.import_(FOREIGN / "004", session="mine").added == 0
