"""What a deletion meets besides: a held index, notes of hand edits, syncs, no git command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.format.records import Tombstone, Tombstones
from smp_git.git import layout
from smp_git.model import ids
from smp_git.model.errors import GitMissingError, LockedError, RefusedError
from smp_git.model.ids import parse_id
from smp_git.remove.history.erase import erase
from smp_git.remove.history.journal import RewriteOrder
from smp_git.remove.history.prove import verify
from smp_git.remove.history.search import DeadVersion
from tests.conftest import Clock
from tests.erasure.test_places import filled
from tests.erasure.test_sentinel import SENTINEL, deleted
from tests.support import ROOT, git


def _refused(session: Session, clock: Clock, error: type[Exception], words: str) -> None:
    sealed: list[DeadVersion] = []
    before = git(session.path, "for-each-ref")
    with pytest.raises(error, match=words):
        erase(
            session._handle.writer,
            ["DEC-0002"],
            RewriteOrder(by="a", now=clock(), seal=sealed.extend),
        )

    assert sealed == []
    assert git(session.path, "for-each-ref") == before
    assert not (session.path / ".git/smp/erasure.json").exists()


def test_nothing_is_sealed_while_git_holds_its_index(session: Session, clock: Clock) -> None:
    folder = filled(session)
    held = folder / ".git/index.lock"
    held.touch()
    with Session(folder, clock) as opened:
        _refused(opened, clock, LockedError, "another Git process holds its index")
        held.unlink()
        assert deleted(opened, clock, "DEC-0002").proof.clean


def test_nothing_is_sealed_while_the_index_has_conflicts(session: Session, clock: Clock) -> None:
    folder = filled(session)
    name = git(folder, "rev-parse", "HEAD:metadata.yaml").strip()
    rows = "".join(f"100644 {name} {stage}\ta.txt\n" for stage in (1, 2, 3))
    subprocess.run(["git", "update-index", "--index-info"], cwd=folder, input=rows.encode(), check=True)  # fmt: skip
    with Session(folder, clock) as opened:
        _refused(opened, clock, RefusedError, "its index has conflicts")
    git(folder, "reset", "-q")


def test_where_hand_edits_came_from_is_forgotten_of_the_deleted_only(session: Session, clock: Clock) -> None:  # fmt: skip
    for number in range(3):
        session.add("decision", f"decision number {number}", agent="a")
    session.add("finding", "a finding", agent="a")
    for path in ("decisions/000/DEC-0002.yaml", "findings/000/FIND-0001.yaml"):
        file = session.path / path
        file.write_text(file.read_text() + "# mine\n")
    session.edit("DEC-0002", agent="a", confidence="high")
    session.edit("FIND-0001", agent="a", confidence="high")
    kept = session.path / ".git/smp/left.json"
    assert len(json.loads(kept.read_bytes())) == 2

    deleted(session, clock, "DEC-0002")

    assert list(json.loads(kept.read_bytes())) == ["findings/000/FIND-0001.yaml"]
    git(session.path, "checkout", "-q", "HEAD", "--", "findings")


def test_no_object_of_the_deleted_is_named_behind_the_pending_marker(session: Session, clock: Clock) -> None:  # fmt: skip
    session.add("decision", "one that goes away", agent="a")
    session.edit("DEC-0001", agent="a", confidence="high")
    name = git(session.path, "rev-parse", "HEAD~1:decisions/000/DEC-0001.yaml").strip()

    deleted(session, clock, "DEC-0001")

    for file in (session.path / ".git/smp").iterdir():
        assert name.encode() not in file.read_bytes(), file


def test_memory_of_very_many_long_lines_goes(session: Session, clock: Clock) -> None:
    lines = [f"line {number * 7919 % 20_011:05d} of a very long text" for number in range(20_000)]
    session.add("artifact", "\n".join(lines), agent="a")
    session.add("decision", "one that stays here", agent="a")

    receipt = deleted(session, clock, "ART-0001")

    assert receipt.proof.clean
    assert receipt.proof.text_searched


def test_one_line_of_very_many_is_found(session: Session, clock: Clock) -> None:
    lines = [f"line {number:05d} of a very long text" for number in range(20_000)]
    session.add("artifact", "\n".join(lines), agent="a")
    session.add("decision", f"as {lines[12_345]} says", agent="a")

    assert deleted(session, clock, "ART-0001").proof.also_in == ("DEC-0001",)


@pytest.mark.parametrize(
    "words",
    [
        ["delete", "DEC-0002", "--yes"],
        ["delete", "DEC-0002", "--purge", "--yes"],
        ["redact", SENTINEL, "--yes"],
        ["verify"],
        ["sync"],
        ["remote", "add", "hub", "elsewhere.git"],
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_what_needs_the_git_command_says_so_and_changes_nothing(
    store: Store, tmp_path: Path, words: list[str]
) -> None:
    session = store.create_session("s", user="a")
    folder = filled(session)
    git(tmp_path, "init", "-q", "--bare", "origin.git")
    git(folder, "remote", "add", "origin", str(tmp_path / "origin.git"))
    before = _files(folder)
    nowhere = tmp_path / "empty"
    nowhere.mkdir()

    done = _smp(store, nowhere, *words)

    assert done.returncode == GitMissingError.exit_status, done.stdout + done.stderr
    assert done.stderr.splitlines() == [
        "smp: deletions, merges and remotes need the git command, which is not on the PATH",
        "hint: install Git, or add its folder to the PATH",
    ]
    assert _files(folder) == before


def test_writing_and_reading_need_no_git_command(store: Store, tmp_path: Path) -> None:
    filled(store.create_session("s", user="a"))
    nowhere = tmp_path / "empty"
    nowhere.mkdir()

    for words in (["add", "decision", "one more"], ["query", "more"], ["log"], ["check"]):
        done = _smp(store, nowhere, *words)
        assert done.returncode == 0, done.stderr


def _smp(store: Store, programs: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": str(programs), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "smp_git", "--root", str(store.path), "-s", "s", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def _files(folder: Path) -> dict[str, bytes]:
    """Return the objects, the references and the files of a session."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not {"smp", "erasing", "syncing"} & {*path.relative_to(folder).parts[:2]}
    }


def test_what_cannot_be_reached_is_named(session: Session, clock: Clock) -> None:
    folder = filled(session)
    git(folder, "tag", "-a", "v1", "-m", "one", "HEAD")
    git(folder, "tag", "v0", "HEAD~3")
    git(folder, "remote", "add", "origin", "https://user:pass@example.org/x.git")
    (folder / ".git/modules/lib").mkdir(parents=True)
    with Session(folder, clock) as opened:
        receipt = deleted(opened, clock, "DEC-0002")

    said = receipt.out_of_reach
    assert [each.partition(":")[0] for each in said] == ["remote origin", "tag v1", "submodule lib", "clones, backups and file system snapshots made before"]  # fmt: skip
    assert "pass" not in " ".join(said)


def test_ranges_of_a_million_cost_no_million_steps(session: Session, clock: Clock) -> None:
    folder = filled(session)
    with Session(folder, clock) as opened:
        first, last = parse_id("turn-0001"), parse_id("turn-1000000")
        elsewhere = Tombstones([Tombstone(first, last, ids.deleted(purged=True))])
        opened._handle.reader.local.keep_tombstones(elsewhere)

        receipt = deleted(opened, clock, "DEC-0002")

        assert receipt.proof.clean
        assert verify(opened._handle.reader, elsewhere).clean


def test_what_a_killed_sync_left_goes(session: Session, clock: Clock) -> None:
    folder = filled(session)
    left = folder / ".git" / layout.PLACE / "0123456789abcdef"
    subprocess.run(["git", "clone", "-q", "--mirror", str(folder), str(left / ".git")], check=True)
    with Session(folder, clock) as opened:
        receipt = deleted(opened, clock, "DEC-0002")

    assert receipt.proof.clean
    assert not left.exists()


def test_what_a_sync_under_way_holds_is_looked_through(session: Session, clock: Clock) -> None:
    folder = filled(session)
    with layout.scratch_folder(folder / ".git") as place:
        subprocess.run(["git", "clone", "-q", "--mirror", "--no-local", str(folder), str(place / ".git")], check=True)  # fmt: skip
        with Session(folder, clock) as opened:
            receipt = deleted(opened, clock, "DEC-0002")

        assert not receipt.proof.clean
    with Session(folder, clock) as opened:
        assert verify(opened._handle.reader, opened._handle.reader.snapshot().tombstones).clean


def test_sync_that_ends_while_it_is_looked_through_is_no_fault(session: Session, clock: Clock) -> None:  # fmt: skip
    """Its folder goes file by file: the objects first, the folder of the repository last."""
    folder = filled(session)
    with layout.scratch_folder(folder / ".git") as place, Session(folder, clock) as opened:
        (place / ".git").mkdir()

        assert deleted(opened, clock, "DEC-0002").proof.clean


def test_what_a_sync_under_way_holds_is_looked_through_once(session: Session, clock: Clock) -> None:  # fmt: skip
    """What the session has too is the same, byte for byte."""
    folder = filled(session)
    with Session(folder, clock) as opened:
        before = opened.verify()
    with layout.scratch_folder(folder / ".git") as place:
        subprocess.run(["git", "clone", "-q", "--mirror", "--no-local", str(folder), str(place / ".git")], check=True)  # fmt: skip
        with Session(folder, clock) as opened:
            found = opened.verify()

    assert found.clean
    assert found.objects == before.objects
