"""Every place where deleted bytes survive: cleaned, or refused with the reason."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.format.records import Tombstones, tombstone
from smp_git.model import ids
from smp_git.model.errors import MemoryNotFoundError, RefusedError
from smp_git.remove.history.erase import erase
from smp_git.remove.history.journal import RewriteOrder
from smp_git.remove.history.prove import verify
from tests import golden
from tests.conftest import Clock
from tests.erasure.test_sentinel import SENTINEL, deleted
from tests.independent_scan import scan
from tests.support import git


def filled(session: Session) -> Path:
    session.add("decision", "this one stays as it is", agent="a")
    session.add("decision", f"{SENTINEL} is the text that goes", agent="a")
    session.edit("DEC-0002", agent="a", text=f"{SENTINEL} is edited")
    session.add("decision", "this one stays as well", agent="a")
    session.close()
    return session.path


def put(path: Path, text: str = SENTINEL) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _staged(folder: Path) -> None:
    target = folder / "decisions/000/DEC-0002.yaml"
    target.write_text(target.read_text() + f"# {SENTINEL}\n")
    git(folder, "add", "-A")


def _dangling(folder: Path) -> None:
    git(folder, "commit", "--allow-empty", "-qm", f"amended away: {SENTINEL}")
    git(folder, "reset", "-q", "--hard", "HEAD~1")


def _tracking(folder: Path) -> None:
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD~1")
    git(folder, "update-ref", "refs/original/refs/heads/main", "HEAD~2")
    git(folder, "update-ref", "refs/smp/kept", "HEAD~1")


def _packed_refs(folder: Path) -> None:
    git(folder, "branch", "other", "HEAD~1")
    git(folder, "pack-refs", "--all")


def _lightweight_tag(folder: Path) -> None:
    git(folder, "tag", "v0", "HEAD~2")


def _uncommitted(folder: Path) -> None:
    target = folder / "decisions/000/DEC-0002.yaml"
    target.write_text(target.read_text() + f"# {SENTINEL} again\n")


def _graph(folder: Path) -> None:
    git(folder, "repack", "-adq", "--write-bitmap-index")
    git(folder, "commit-graph", "write", "--reachable", "--changed-paths")
    git(folder, "multi-pack-index", "write", "--bitmap")


def _cruft(folder: Path) -> None:
    _dangling(folder)
    git(folder, "reflog", "expire", "--expire=now", "--all")
    git(folder, "repack", "-dq", "--cruft")


def _split_packs(folder: Path) -> None:
    git(folder, "repack", "-dq")
    git(folder, "commit", "--allow-empty", "-qm", "another")
    git(folder, "repack", "-dq")


CLEANED: dict[str, Callable[[Path], object]] = {
    "staged edit": _staged,
    "uncommitted edit": _uncommitted,
    "dangling commit": _dangling,
    "tracking and other references": _tracking,
    "packed references": _packed_refs,
    "lightweight tag": _lightweight_tag,
    "commit graph, bitmaps, multi-pack index": _graph,
    "cruft pack": _cruft,
    "several packs": _split_packs,
    "ORIG_HEAD": lambda f: put(f / ".git/ORIG_HEAD", git(f, "rev-parse", "HEAD")),
    "FETCH_HEAD": lambda f: put(f / ".git/FETCH_HEAD"),
    "COMMIT_EDITMSG": lambda f: put(f / ".git/COMMIT_EDITMSG"),
    "MERGE_MSG": lambda f: put(f / ".git/MERGE_MSG"),
    "SQUASH_MSG": lambda f: put(f / ".git/SQUASH_MSG"),
    "reflogs": lambda f: put(f / ".git/logs/refs/heads/main"),
    "rr-cache": lambda f: put(f / ".git/rr-cache/ab/preimage"),
    "lost-found": lambda f: put(f / ".git/lost-found/other/abc"),
    "scratch object": lambda f: put(f / ".git/objects/pack/tmp_pack_abc"),
    "search cache": lambda f: put(f / ".git/smp/search.db"),
    "unknown local file": lambda f: put(f / ".git/smp/anything"),
    "pending marker": lambda f: put(f / ".git/smp/pending.json", json.dumps({"decisions/000/DEC-0002.yaml": None})),
    "editor backup": lambda f: put(f / "decisions/000/DEC-0002.yaml~"),
    "swap file": lambda f: put(f / "decisions/000/.DEC-0002.yaml.swp"),
    "conflict copy": lambda f: put(f / "decisions/000/DEC-0002 (conflicted copy).yaml"),
    "backup of the index": lambda f: put(f / "decisions/000/index.yaml~"),
}  # fmt: skip


@pytest.mark.parametrize("place", CLEANED)
def test_place_is_cleaned(session: Session, clock: Clock, place: str) -> None:
    folder = filled(session)
    CLEANED[place](folder)

    with Session(folder, clock) as opened:
        receipt = deleted(opened, clock, "DEC-0002")

    assert scan(folder, [SENTINEL.encode()]) == []
    assert receipt.proof.clean, receipt.proof.hits
    assert git(folder, "fsck", "--full", "--strict", "--no-dangling") == ""
    assert git(folder, "status", "--porcelain") == ""


def test_log_of_an_earlier_version_holds_nothing_of_the_deleted(tmp_path: Path) -> None:
    place = golden.cut_off(tmp_path)
    log = place / ".git/smp/redo"
    data = log.read_bytes()
    with Store.open(tmp_path / "store").session("golden") as session:
        # As a program of an earlier version may leave it that still runs.
        log.write_bytes(data)
        receipt = session.delete("DEC-0001")

        assert not log.exists()
        assert scan(place, [b"Use PostgreSQL"]) == []
        assert receipt.proof.clean, receipt.proof.hits
        session.add("decision", "and on", agent="a")
        assert session.check() == ()


def _merging(folder: Path) -> None:
    put(folder / ".git/MERGE_HEAD", git(folder, "rev-parse", "HEAD~1"))


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "merge": (_merging, "a merge is in progress"),
    "rebase": (lambda f: (f / ".git/rebase-merge").mkdir(), "a rebase is in progress"),
    "cherry-pick": (lambda f: put(f / ".git/CHERRY_PICK_HEAD"), "cherry-pick"),
    "bisection": (lambda f: put(f / ".git/BISECT_LOG"), "a bisection"),
    "alternates": (lambda f: put(f / ".git/objects/info/alternates", "/x\n"), "borrows objects"),
    "kept pack": (lambda f: put(f / ".git/objects/pack/pack-1.keep", ""), "marked to be kept"),
    "worktree": (lambda f: git(f, "worktree", "add", "-q", str(f.parent / "wt"), "HEAD~1"), "wt"),
    "tag of a file": (lambda f: git(f, "tag", "blob", "HEAD:metadata.yaml"), "refs/tags/blob"),
    "shallow clone": (lambda f: put(f / ".git/shallow", git(f, "rev-parse", "HEAD~1")), "shallow"),
}


@pytest.mark.parametrize("place", REFUSED)
def test_place_is_refused_with_its_reason(store: Store, clock: Clock, tmp_path: Path, place: str) -> None:  # fmt: skip
    with store.create_session("elsewhere") as session:
        folder = filled(session)
    moved = tmp_path / "moved"
    folder.rename(moved)
    prepare, reason = REFUSED[place]
    prepare(moved)
    before = git(moved, "for-each-ref")

    with Session(moved, clock) as opened, pytest.raises(RefusedError, match=reason):
        deleted(opened, clock, "DEC-0002")

    assert git(moved, "for-each-ref") == before
    assert not (moved / ".git/smp/erasure.json").exists()


def test_other_uncommitted_edits_stay(session: Session, clock: Clock) -> None:
    folder = filled(session)
    other = folder / "decisions/000/DEC-0003.yaml"
    other.write_text(other.read_text() + "# mine\n")
    git(folder, "add", "decisions/000/DEC-0003.yaml")
    with Session(folder, clock) as opened:
        deleted(opened, clock, "DEC-0002")

    assert other.read_text().endswith("# mine\n")
    assert git(folder, "diff", "--cached", "--name-only") == "decisions/000/DEC-0003.yaml\n"
    git(folder, "checkout", "-q", "HEAD", "--", "decisions/000/DEC-0003.yaml")


def test_same_text_in_a_live_memory_is_named_and_stays(session: Session, clock: Clock) -> None:
    session.add("decision", f"{SENTINEL} is said here", agent="a")
    session.add("finding", f"{SENTINEL} is said here", agent="a")

    receipt = deleted(session, clock, "DEC-0001")

    assert receipt.proof.clean
    assert receipt.proof.also_in == ("FIND-0001",)
    assert SENTINEL in session.get("FIND-0001").content


def test_copy_that_a_person_tracks_is_a_hit(session: Session, clock: Clock) -> None:
    folder = filled(session)
    (folder / "copy.txt").write_text((folder / "decisions/000/DEC-0002.yaml").read_text())
    with Session(folder, clock) as opened:
        receipt = deleted(opened, clock, "DEC-0002")

    assert not receipt.proof.clean
    assert "the file copy.txt" in receipt.proof.hits
    (folder / "copy.txt").unlink()


def test_unknown_id_and_second_deletion_are_refused(session: Session, clock: Clock) -> None:
    session.add("decision", "one that goes away", agent="a")
    with pytest.raises(MemoryNotFoundError):
        deleted(session, clock, "DEC-0009")
    deleted(session, clock, "DEC-0001")
    with pytest.raises(RefusedError):
        deleted(session, clock, "DEC-0001")


def test_purge_of_the_deleted_raises_its_record(session: Session, clock: Clock) -> None:
    session.add("decision", "one that goes away", agent="a")
    deleted(session, clock, "DEC-0001")
    deleted(session, clock, "DEC-0001", purge=True)

    assert session.log()[0].subject == "purge decision DEC-0001"
    assert session._handle.reader.snapshot().tombstones == Tombstones(
        [tombstone("DEC-0001", ids.deleted(purged=True))]
    )


def test_numbers_are_not_given_again_even_without_counters(session: Session, clock: Clock) -> None:
    session.add("decision", "one that goes away", agent="a")
    deleted(session, clock, "DEC-0001")
    os.truncate(session.path / ".git/smp/counters.json", 0)

    assert session.add("decision", "the next one", agent="a").id == "DEC-0002"


def test_handmade_file_of_a_deleted_id_is_refused(session: Session, clock: Clock) -> None:
    session.add("decision", "one that goes away", agent="a")
    kept = (session.path / "decisions/000/DEC-0001.yaml").read_bytes()
    deleted(session, clock, "DEC-0001")
    target = session.path / "decisions/000/DEC-0001.yaml"
    target.parent.mkdir(parents=True)
    target.write_bytes(kept)

    with pytest.raises(RefusedError, match="DEC-0001 was deleted"):
        session.commit()
    target.unlink()
    target.parent.rmdir()


def test_undo_of_a_deletion_is_refused_and_the_write_before_can_be_named(
    session: Session, clock: Clock
) -> None:
    session.add("decision", "one that stays for now", agent="a")
    session.add("decision", "one that goes away", agent="a")
    deleted(session, clock, "DEC-0002")

    with pytest.raises(RefusedError, match="the latest write is a deletion"):
        session.undo()
    assert [memory.id for memory in session.memories()] == ["DEC-0001"]

    session.undo("DEC-0001")

    assert session.memories() == ()


def test_open_handles_answer_without_it_and_write_whole_commits(session: Session, clock: Clock) -> None:  # fmt: skip
    session.add("decision", "one that stays for now", agent="a")
    session.add("decision", f"{SENTINEL} goes away", agent="a")
    with Session(session.path, clock) as other:
        assert len(other.memories()) == 2
        erase(session._handle.writer, ["DEC-0002"], RewriteOrder(by="a", now=clock()))
        with pytest.raises(MemoryNotFoundError):
            other.get("DEC-0002")
        maps = Path("/proc/self/maps")
        if maps.exists():
            held = [line for line in maps.read_text().splitlines() if str(session.path) in line]
            assert not [line for line in held if "(deleted)" in line]
        other.add("decision", "written by the old handle", agent="b")

    assert git(session.path, "fsck", "--full", "--strict", "--no-dangling") == ""


def test_proof_is_repeated_for_all_tombstones(session: Session, clock: Clock) -> None:
    session.add("decision", "one that goes away", agent="a")
    deleted(session, clock, "DEC-0001")
    reader = session._handle.reader

    assert verify(reader, reader.snapshot().tombstones).clean
    put(session.path / "notes.yaml", '- {"id":"DEC-0001","blob":"0"}\n')
    assert verify(reader, reader.snapshot().tombstones).hits == ("an index line of notes.yaml",)


def test_rollback_never_brings_back_the_deleted(session: Session, clock: Clock) -> None:
    session.add("decision", "one that stays for now", agent="a")
    session.add("decision", "one that goes away", agent="a")
    session.edit("DEC-0001", text="one that was edited", agent="a")
    deleted(session, clock, "DEC-0002")

    with pytest.raises(RefusedError, match="DEC-0002 was deleted"):
        session.rollback("HEAD~1", "DEC-0002")
    session.rollback("HEAD~2")

    assert [m.content for m in session.memories()] == ["one that stays for now"]
