"""The write-ahead line: what it has is brought back, what a person did stays, nothing is left in it."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.git import disk, redo
from smp_git.git.redo import Record, Redo
from smp_git.model.errors import StorageError
from tests.concurrency.writers import assert_clean
from tests.crash.children import ended, two
from tests.support import git

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

MAIN = "refs/heads/main"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Store.init(tmp_path / "store").create_session("shop") as session:
        session.add("finding", "No MFA", severity="low", agent="a")
        return session.path


def _opened(path: Path) -> Session:
    return Store.open(path.parents[1]).session(path.name)


def _three(session: Session) -> None:
    for number in range(3):
        session.add("decision", f"Decision {number}", agent="a")


def _died(path: Path, *works: Callable[[Session], object], boot: str = "the boot before") -> None:
    """Let a process of another boot write and die."""

    def write() -> None:
        disk.boot = lambda: boot  # type: ignore[assignment]
        session = _opened(path)
        two(session)
        for work in works or (_three,):
            work(session)
        os._exit(0)

    assert ended(write) == 0


def _records(path: Path) -> list[Record]:
    return Redo(str(path / ".git")).records()


def _object(path: Path, name: str) -> Path:
    return path / ".git/objects" / name[:2] / name[2:]


def _blank(file: Path, data: bytes) -> None:
    file.chmod(0o600)
    file.write_bytes(data)


def _main(path: Path) -> Path:
    return path / ".git" / MAIN


def _put_back(path: Path, data: bytes, time: int) -> None:
    """Bring back the file of the reference as it was, the power having been cut."""
    _main(path).unlink(missing_ok=True)
    _main(path).write_bytes(data)
    os.utime(_main(path), ns=(time, time))


def _assert_all_there(path: Path) -> None:
    with _opened(path) as session:
        texts = [memory.content for memory in session.memories("decision")]
        assert texts == ["Decision 0", "Decision 1", "Decision 2"]
        assert session.check() == ()
        assert _records(path) == []
    assert_clean(path)


@pytest.mark.parametrize("left", [None, b"", bytes(60), b"x\x01\x2b"], ids=["missing", "empty", "NULs", "half"])  # fmt: skip
def test_objects_that_were_lost_are_written_again(path: Path, left: bytes | None) -> None:
    _died(path)
    names = [name for record in _records(path) for name, _ in record.objects]
    assert names
    for name in names:
        if left is None:
            _object(path, name).unlink(missing_ok=True)
        else:
            _blank(_object(path, name), left)

    _assert_all_there(path)


@pytest.mark.parametrize("boot", ["the boot before", None], ids=["another boot", "same boot"])
def test_objects_that_a_pulled_out_disk_lost_are_written_again(path: Path, boot: str | None) -> None:  # fmt: skip
    _died(path, boot=boot or disk.boot())
    for name, _ in _records(path)[-1].objects:
        _blank(_object(path, name), b"")

    _assert_all_there(path)


@pytest.mark.parametrize("data", [b"", bytes(41), b"0123"], ids=["empty", "NULs", "half"])
def test_torn_reference_is_moved_to_the_newest_write(path: Path, data: bytes) -> None:
    _died(path)
    _main(path).write_bytes(data)

    _assert_all_there(path)


@pytest.mark.parametrize("back", range(5))
def test_reference_that_went_back_is_moved_forward(path: Path, back: int) -> None:
    _died(path)
    stood = _records(path)[min(back, len(_records(path)) - 1)].stood
    _put_back(path, f"{stood.commit}\n".encode(), stood.loose or 0)

    _assert_all_there(path)


def test_reference_that_was_lost_is_made_again(path: Path) -> None:
    git(path, "pack-refs", "--all")
    _died(path)
    _main(path).unlink()

    _assert_all_there(path)


def _reset(path: Path) -> None:
    git(path, "reset", "-q", "--hard", "HEAD~1")


def _updated(path: Path) -> None:
    git(path, "update-ref", MAIN, "HEAD~2")
    git(path, "reset", "-q", "--hard")


def _packed(path: Path) -> None:
    _reset(path)
    git(path, "pack-refs", "--all")


def _amended(path: Path) -> None:
    git(path, "commit", "-q", "--no-verify", "--amend", "--allow-empty", "-m", "by hand")


@pytest.mark.parametrize("boot", ["the boot before", None], ids=["another boot", "same boot"])
@pytest.mark.parametrize("moved", [_reset, _updated, _packed, _amended])
def test_what_a_person_did_to_the_branch_stays(
    path: Path, moved: Callable[[Path], None], boot: str | None
) -> None:
    _died(path, boot=boot or disk.boot())
    moved(path)
    head = git(path, "rev-parse", "HEAD")
    with _opened(path):
        pass

    assert git(path, "rev-parse", "HEAD") == head
    assert git(path, "fsck", "--strict", "--no-dangling") == ""


def test_write_after_a_reset_goes_on_from_there(path: Path) -> None:
    _died(path)
    _reset(path)
    _died(path, lambda session: session.add("decision", "After all", agent="a"))
    last = _records(path)[-1]
    _put_back(path, f"{last.stood.commit}\n".encode(), last.stood.loose or 0)

    with _opened(path) as session:
        assert session.head == last.new
        texts = [memory.content for memory in session.memories("decision")]
        assert texts == ["Decision 0", "Decision 1", "After all"]


@pytest.mark.parametrize("damage", ["cut off", "garbled"])
def test_torn_record_is_none(path: Path, damage: str) -> None:
    _died(path)
    line, records = path / ".git/smp/redo", _records(path)
    data = line.read_bytes()
    at = data.rindex(records[-1].objects[-1][1])
    line.write_bytes(data[:at] + (b"" if damage == "cut off" else b"?" + data[at + 1 :]))
    stood = records[-1].stood
    _put_back(path, f"{stood.commit}\n".encode(), stood.loose or 0)
    (path / "decisions/000/DEC-0003.yaml").unlink()

    assert _records(path) == records[:-1]
    with _opened(path) as session:
        texts = [memory.content for memory in session.memories("decision")]
        assert texts == ["Decision 0", "Decision 1"]
        assert session.check() == ()


def test_write_that_failed_is_not_done_later(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> bool:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch, _opened(path) as session:
        patch.setattr(disk, "boot", lambda: "the boot before")
        two(session)
        stood = _main(path).stat().st_mtime_ns
        head = session.head
        patch.setattr(disk, "exchange", refused)
        with pytest.raises(StorageError):
            session.add("decision", "Refused", agent="a")
        assert all(record.new == head for record in _records(path)[-1:])
        assert _main(path).stat().st_mtime_ns == stood

    with _opened(path) as session:
        assert session.head == head
        assert session.memories("decision") == ()


@pytest.mark.parametrize("step", ["write_all_at", "force_content"])
def test_record_that_could_not_be_put_is_crossed_out(
    path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with _opened(path) as session:
        two(session)
        kept = _records(path)
        original, calls = getattr(disk, step), iter(range(100))

        def refused(*given: object) -> None:
            original(*given)
            if next(calls) == 0:
                raise OSError(5, "Input/output error")

        with monkeypatch.context() as patch:
            patch.setattr(disk, step, refused)
            with pytest.raises(StorageError):
                session.add("decision", "Refused", agent="a")
        assert _records(path) == kept
        _three(session)
        assert len(_records(path)) == len(kept) + 3

    _assert_all_there(path)


def test_full_line_is_emptied_and_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[str] = []
    force_files = disk.force_files

    def noting(paths: list[str], folder: str) -> None:
        forced.extend(paths)
        force_files(paths, folder)

    monkeypatch.setattr(redo, "_MOST", 24 << 10)
    monkeypatch.setattr(disk, "force_files", noting)
    with _opened(path) as session:
        made: list[str] = []
        for number in range(20):
            session.add("decision", f"number {number}", agent="a")
            made += [str(_object(path, name)) for record in _records(path)[-1:] for name, _ in record.objects]  # fmt: skip
        left = {str(_object(path, name)) for record in _records(path) for name, _ in record.objects}
        assert set(made) - left <= set(forced)
        assert forced

    assert_clean(path)


def test_closed_session_leaves_nothing_of_the_line(path: Path) -> None:
    line = path / ".git/smp/redo"
    with _opened(path) as session:
        session.add("finding", "One write needs no line", agent="a")
        assert not line.exists()
        two(session)
        assert b"What is to be done" in line.read_bytes()
        session._handle.keeper.flush()
        assert line.read_bytes().strip(b"\0") == b""
        two(session)
        assert b"What is to be done" in line.read_bytes()

    assert not line.exists()


def test_two_processes_share_the_line(path: Path) -> None:
    with _opened(path) as one, _opened(path) as other:
        two(one)
        two(other)
        for number in range(6):
            (one, other)[number % 2].add("decision", f"number {number}", agent="a")
        records = _records(path)
        assert [record.stood.commit for record in records[-5:]] == [record.new for record in records[-6:-1]]  # fmt: skip
        one._handle.keeper.flush()
        other.add("decision", "the last", agent="a")
        assert len(_records(path)) == 1
        assert len(one.memories("decision")) == 7


def test_number_that_was_given_is_not_given_again(path: Path) -> None:
    def added_and_undone(session: Session) -> None:
        session.add("decision", "Undone", agent="a")
        session.undo(agent="a")

    _died(path, added_and_undone)
    (path / ".git/smp/counters.json").write_text('{"FIND": 1, "turn": 2}\n')

    with _opened(path) as session:
        assert session.add("decision", "Another", agent="a").id == "DEC-0002"


def test_disk_without_room_for_the_line_is_written_to_all_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with _opened(path) as session:
        session.add("finding", "First", agent="a")
        monkeypatch.setattr(disk, "write_all_at", full)
        monkeypatch.setattr(redo.Redo, "_opened", full)
        _three(session)
        monkeypatch.undo()

    assert _records(path) == []
    _assert_all_there(path)


def _lost(path: Path, rng: random.Random) -> None:
    """Take back whatever was not forced out, as a power cut may."""
    records = _records(path)
    files: Iterator[Path] = (
        _object(path, name) for record in records for name, _ in record.objects
    )
    for file in {*files, *(path / ".git/smp").glob("[cp]*.json"), *path.glob("decisions/**/*")}:
        if file.is_file() and rng.random() < 0.5:
            _blank(file, rng.choice([b"", bytes(50)]))
    stood, how = rng.choice(records).stood, rng.randrange(3)
    if how == 1:
        _main(path).write_bytes(rng.choice([b"", bytes(41)]))
    elif how == 2:
        _put_back(path, f"{stood.commit}\n".encode(), stood.loose or 0)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_lost_nothing_acknowledged_is(path: Path, seed: int) -> None:
    rng = random.Random(seed)
    _died(path)
    _lost(path, rng)

    _assert_all_there(path)
