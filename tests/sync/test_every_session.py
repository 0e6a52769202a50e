"""All sessions of a store synced: several at a time, past each one that fails, with one summary."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from smp_git.git import addresses
from smp_git.model.errors import (
    AlreadyExistsError,
    RemoteNotFoundError,
    RemoteUnreachableError,
)
from tests.support import ROOT, git, smp
from tests.sync.support import Machine, head, hook, sound


def machine(tmp_path: Path, count: int, pattern: str | None = None) -> Machine:
    """A store whose pattern names a folder, with some sessions in it."""
    folder = tmp_path / "memory"
    folder.mkdir(exist_ok=True)
    made = Machine(tmp_path, "one", f"remote: {pattern or folder}/{{session}}.git")
    for number in range(count):
        with made.store.create_session(f"s{number:02}") as session:
            session.add("finding", f"in {number}", agent="x")
    return made


def test_repositories_of_new_sessions_are_made_at_a_path(tmp_path: Path) -> None:
    one = machine(tmp_path, 3)
    results, failed = one.store.sync()
    assert (set(results), failed) == ({"s00", "s01", "s02"}, {})
    with one.store.session("s01") as session:
        assert head(tmp_path / "memory/s01.git") == session.head
        sound(session)
    with one.store.create_session("later") as session:
        assert session.sync().advertised == session.head
        session.add("finding", "more", agent="x")
        assert session.push().pushed == 1


def test_no_repository_is_made_where_the_disk_is_not_mounted(tmp_path: Path) -> None:
    one = machine(tmp_path, 1, f"{tmp_path}/nas/memory")
    _, failed = one.store.sync()
    assert isinstance(failed["s00"], RemoteNotFoundError)
    assert not (tmp_path / "nas").exists()


def test_a_repository_that_was_there_and_is_gone_is_not_made_again(tmp_path: Path) -> None:
    one = machine(tmp_path, 1)
    one.store.sync()
    (tmp_path / "memory/s00.git").rename(tmp_path / "elsewhere")
    _, failed = one.store.sync()
    assert isinstance(failed["s00"], RemoteNotFoundError)
    assert not (tmp_path / "memory/s00.git").exists()


def test_a_repository_that_somebody_began_to_make_is_completed(tmp_path: Path) -> None:
    place = tmp_path / "begun.git"
    addresses.create_bare(place)
    (place / "HEAD").rename(place / "HEAD.4711")
    (place / "config").unlink()
    addresses.create_bare(place)
    assert git(place, "rev-parse", "--is-bare-repository").strip() == "true"
    (tmp_path / "other").mkdir()
    (tmp_path / "other/notes.txt").write_text("somebody's")
    with pytest.raises(AlreadyExistsError):
        addresses.create_bare(tmp_path / "other")


def test_one_that_fails_stops_no_other_and_the_summary_counts_it(tmp_path: Path) -> None:
    one = machine(tmp_path, 3)
    (tmp_path / "memory/s01.git").mkdir()
    (tmp_path / "memory/s01.git/notes.txt").write_text("somebody's")
    done = smp("--root", one.store.path, "sync", "--all-sessions", check=False)
    assert done.returncode == 10
    lines = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["s00", "s02", "2 sessions in sync"]
    assert lines[-1] == "2 sessions in sync: 0 in, 4 out, 1 failed"
    assert "smp: s01: " in done.stderr
    (tmp_path / "memory/s01.git/notes.txt").unlink()
    (tmp_path / "memory/s01.git").rmdir()
    again = smp("--root", one.store.path, "sync", "--all-sessions")
    assert again.stdout.splitlines()[-1] == "3 sessions in sync: 0 in, 2 out"
    assert smp("--root", one.store.path, "sync", "--all-sessions").stdout == (
        "3 sessions in sync: 0 in, 0 out\n"
    )


def test_a_server_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    one = machine(tmp_path, 12, "http://127.0.0.1:1")
    results, failed = one.store.sync()
    assert (results, len(failed)) == ({}, 12)
    assert all(isinstance(each, RemoteUnreachableError) for each in failed.values())
    given_up = [name for name, each in failed.items() if "not tried" in each.message]
    # Those that were under way when it became known.
    assert len(given_up) >= 12 - 2 * 4
    assert all(each.recoverable for each in failed.values())


def test_an_interrupt_lets_those_under_way_end_and_begins_no_other(tmp_path: Path) -> None:
    one = machine(tmp_path, 16)
    one.store.sync()
    for name in one.store.sessions():
        hook(tmp_path / f"memory/{name}.git", "pre-receive", "touch arrived; sleep 1")
        with one.store.session(name) as session:
            session.add("finding", "to be sent", agent="x")
    command = [sys.executable, "-m", "smp_git", "--root", str(one.store.path), "sync", "--all-sessions"]  # fmt: skip
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ))  # fmt: skip
    while not list((tmp_path / "memory").glob("*/arrived")):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert len(list((tmp_path / "memory").glob("*/arrived"))) <= 4
    for each in (tmp_path / "memory").glob("*/hooks/pre-receive"):
        each.unlink()
    results, failed = one.store.sync()
    assert (len(results), failed) == (16, {})
    with one.store.session("s00") as session:
        sound(session)
