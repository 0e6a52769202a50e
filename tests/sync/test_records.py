"""Records of deletions that a person takes back with plain Git: every remote gets them again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest

from smp_git import Session
from smp_git.format import records
from smp_git.format.records import Tombstones
from tests import independent_scan
from tests.support import git
from tests.sync.images import settled
from tests.sync.support import Machine, head

_PLAIN = ("-c", "core.hooksPath=/dev/null", "-c", "user.name=eve", "-c", "user.email=e@x")
_TEXT = "Keep the Postgres-of-Zanzibar"
_NAME = "DEC-0002"
_ENDS: dict[str, Callable[[Session], object]] = {
    "delete": lambda session: session.delete(_NAME),
    "purge": lambda session: session.delete(_NAME, purge=True),
    "redact": lambda session: session.redact("Zanzibar"),
    "redact and delete": lambda session: (session.redact("Zanzibar"), session.delete(_NAME)),
    "restore and delete": lambda session: (
        session.delete(_NAME),
        session.restore(_NAME),
        session.delete(_NAME),
    ),
}  # fmt: skip


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return tmp_path / "hub.git"


@pytest.fixture
def three(tmp_path: Path, hub: Path) -> list[Session]:
    """Three replicas that have a memory."""
    one = Machine(tmp_path, "one").begin(hub)
    one.add("decision", _TEXT, agent="a", rationale="for now")
    one.sync()
    return [one, *(Machine(tmp_path, name).clone(hub) for name in ("two", "three"))]


def plain(folder: Path, *arguments: str) -> str:
    return git(folder, *_PLAIN, *arguments)


def take_back(folder: Path, commit: str = "HEAD") -> None:
    plain(folder, "revert", "--no-edit", commit)


def said(folder: Path, ref: str = "main") -> Tombstones:
    if not git(folder, "ls-tree", ref, records.PATH):
        return Tombstones()
    return records.read(git(folder, "show", f"{ref}:{records.PATH}").encode())


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
@pytest.mark.parametrize("end", _ENDS)
def test_a_revert_of_a_deletion_lowers_no_record(three: list[Session], hub: Path, end: str, order: tuple[int, ...]) -> None:  # fmt: skip
    one = three[0]
    _ENDS[end](one)
    known = said(one.path)
    take_back(one.path)
    assert not said(one.path).covers(known)
    for number in order:
        three[number].sync()
    settled(three, [hub])
    assert said(hub).covers(known)
    for session in three:
        assert independent_scan.scan(session.path, [b"Zanzibar"]) == []


@pytest.mark.parametrize("end", _ENDS)
def test_a_person_takes_a_deletion_back_and_pushes_that(three: list[Session], hub: Path, tmp_path: Path, end: str) -> None:  # fmt: skip
    one, two, _ = three
    git(tmp_path, "clone", "-q", "hub.git", "person")
    _ENDS[end](one)
    one.sync()
    ended = one.head
    two.sync()
    known = said(hub)
    plain(tmp_path / "person", "fetch", "-q", "origin")
    plain(tmp_path / "person", "reset", "-q", "--hard", "origin/main")
    take_back(tmp_path / "person", ended)
    plain(tmp_path / "person", "push", "-q", "origin", "main")
    assert not said(hub).covers(known)
    two.sync()
    assert said(hub).covers(known)
    settled(three, [hub])


def test_replicas_that_bring_back_the_same_make_the_same_commit(three: list[Session], hub: Path, tmp_path: Path) -> None:  # fmt: skip
    one, two, last = three
    one.delete(_NAME)
    for session in (one, two, last):
        session.sync()
    git(tmp_path, "clone", "-q", "hub.git", "person")
    take_back(tmp_path / "person")
    plain(tmp_path / "person", "push", "-q", "origin", "main")
    shutil.copytree(hub, tmp_path / "second.git")
    last.add_remote("second", tmp_path / "second.git")
    two.sync("origin")
    last.sync("second")
    assert two.head == last.head == head(hub) == head(tmp_path / "second.git")
    assert git(hub, "log", "-1", "--format=%s", "main") == "bring back records\n"


def test_what_has_all_records_gets_no_commit(three: list[Session], hub: Path) -> None:
    one, two, _ = three
    one.delete(_NAME)
    one.sync()
    two.sync()
    assert one.head == two.head == head(hub)
    assert "bring back" not in git(hub, "log", "--format=%s", "main")


def test_the_file_of_records_is_removed(three: list[Session], hub: Path) -> None:
    one, _, last = three
    one.redact("Zanzibar")
    one.delete(_NAME)
    one.sync()
    known = said(hub)
    plain(one.path, "rm", "-q", records.PATH)
    plain(one.path, "commit", "-qm", "no records")
    one.add("decision", "Another", agent="a")
    one.sync()
    assert said(hub) == known
    last.sync()
    settled(three, [hub])


def test_a_redaction_of_what_this_replica_never_had_stays_where_it_is(three: list[Session], hub: Path, tmp_path: Path) -> None:  # fmt: skip
    """No replica would take in the record alone; it goes out with what the redaction left."""
    one, two, last = three
    one.add_remote("second", tmp_path / "second.git", create=True)
    one.sync("second")
    two.add_remote("second", tmp_path / "second.git")
    one.add("decision", "Pay the Doge-of-Venice", agent="a")
    one.redact("Doge-of-Venice")
    one.sync("origin")
    two.fetch("origin")
    two.add("finding", "It is so", agent="b")
    two.sync("second")
    last.add_remote("second", tmp_path / "second.git")
    last.sync("second")
    settled(three, [hub, tmp_path / "second.git"])
    assert said(hub).names("DEC-0003")
