"""The write-ahead log of earlier versions: what it has is brought back, what a person did stays."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from smp_git import Session, Store
from smp_git.git import disk
from smp_git.read.replica import Identity, Local
from smp_git.write.recovery import _records, before_reading
from tests import golden
from tests.concurrency.writers import assert_clean
from tests.crash.children import DIED, die_at, ended
from tests.crash.disks import mounted, run
from tests.support import git
from tests.test_golden import said

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

MAIN = "refs/heads/main"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A session of which the log alone has the last six writes."""
    return golden.cut_off(tmp_path)


@pytest.fixture
def whole(path: Path) -> Path:
    """The same when no power was cut: the log has nothing that is not in its place."""
    data = _log(path).read_bytes()
    before_reading(path)
    git(path, "reset", "-q", "--hard")
    _log(path).write_bytes(data)
    return path


def _log(path: Path) -> Path:
    return path / ".git/smp/redo"


def _heads(path: Path) -> list[dict[str, Any]]:
    return [head for head, _ in _records(_log(path).read_bytes())]


def _names(path: Path) -> list[str]:
    return [name for head in _heads(path) for name, _ in head["objects"]]


def _object(path: Path, name: str) -> Path:
    return path / ".git/objects" / name[:2] / name[2:]


def _main(path: Path) -> Path:
    return path / ".git" / MAIN


def _blank(file: Path, data: bytes) -> None:
    if file.exists():
        file.chmod(0o600)
    file.write_bytes(data)


def _put_back(path: Path, data: bytes, time_ns: int) -> None:
    """Bring back the file of the reference as it was, the power having been cut."""
    _main(path).unlink(missing_ok=True)
    _main(path).write_bytes(data)
    os.utime(_main(path), ns=(time_ns, time_ns))


def _opened(path: Path) -> Session:
    return Store.open(path.parents[1]).session(path.name)


def _assert_all_there(path: Path) -> None:
    with _opened(path) as session:
        expected = (golden.WRITE_AHEAD / "memories.json").read_text()
        assert said(golden.memories_of(session)) == said(expected)
        assert session.check() == ()
        assert not _log(path).exists()
    assert_clean(path)


def test_plain_git_sees_what_the_log_has_as_soon_as_the_session_was_opened(path: Path) -> None:
    last = _heads(path)[-1]["new"]
    before_reading(path)

    assert git(path, "rev-parse", "main").strip() == last
    assert git(path, "fsck", "--strict", "--no-dangling") == ""
    assert not _log(path).exists()


@pytest.mark.parametrize("left", [None, b"", bytes(60), b"x\x01\x2b"], ids=["missing", "empty", "NULs", "half"])  # fmt: skip
def test_objects_that_were_lost_are_written_again(whole: Path, left: bytes | None) -> None:
    for name in _names(whole):
        _object(whole, name).unlink(missing_ok=True)
        if left is not None:
            _object(whole, name).write_bytes(left)

    _assert_all_there(whole)


@pytest.mark.parametrize("data", [b"", bytes(41), b"0123"], ids=["empty", "NULs", "half"])
def test_torn_reference_is_moved_to_the_newest_write(whole: Path, data: bytes) -> None:
    _main(whole).write_bytes(data)

    _assert_all_there(whole)


@pytest.mark.parametrize("back", range(6))
def test_reference_that_went_back_is_moved_forward(whole: Path, back: int) -> None:
    commit, time_ns, _ = _heads(whole)[back]["stood"]
    _put_back(whole, f"{commit}\n".encode(), time_ns)

    _assert_all_there(whole)


def test_reference_that_was_lost_is_made_again(whole: Path) -> None:
    _main(whole).unlink()

    _assert_all_there(whole)


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


@pytest.mark.parametrize("boot", ["the boot before", "another boot"])
@pytest.mark.parametrize("moved", [_reset, _updated, _packed, _amended])
def test_what_a_person_did_to_the_branch_stays(
    whole: Path, moved: Callable[[Path], None], boot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved(whole)
    head = git(whole, "rev-parse", "HEAD")
    monkeypatch.setattr(disk, "boot", lambda: boot)
    with _opened(whole):
        pass

    assert git(whole, "rev-parse", "HEAD") == head
    assert git(whole, "fsck", "--strict", "--no-dangling") == ""


@pytest.mark.parametrize("damage", ["cut off", "garbled"])
def test_torn_record_is_none(path: Path, damage: str) -> None:
    data, heads = _log(path).read_bytes().rstrip(b"\0"), _heads(path)
    _log(path).write_bytes(data[:-9] if damage == "cut off" else data[:-9] + b"?" + data[-8:])

    assert _heads(path) == heads[:-1]
    with _opened(path) as session:
        assert session.head == heads[-2]["new"]
        assert session.check() == ()


def test_number_that_was_given_is_not_given_again(path: Path) -> None:
    Local(path / ".git").identify(path, Identity("gold", creator=True), path)

    with _opened(path) as session:
        # turn-0001 was added and undone.
        assert session.add("turn", "Another", agent="a").id == "turn-0002"


def test_write_of_an_earlier_version_that_still_runs_is_durable_before_ours(whole: Path) -> None:
    data = _log(whole).read_bytes()
    _log(whole).unlink()
    with _opened(whole) as session:
        _log(whole).write_bytes(data)
        for name in _names(whole):
            _blank(_object(whole, name), b"")
        session.add("finding", "by the present version", agent="a")
        assert not _log(whole).exists()
        assert session.check() == ()


@pytest.mark.parametrize("leaving", [False, True], ids=["entering", "leaving"])
@pytest.mark.parametrize("step", ["replace_durably", "flush_names", "flush_data"])
def test_killed_while_it_brings_back(path: Path, step: str, leaving: bool) -> None:
    def killed() -> None:
        die_at((disk, step), leaving=leaving)
        _opened(path)

    assert ended(killed) == DIED
    _assert_all_there(path)


@pytest.mark.slow
def test_disk_that_is_read_only_is_read_as_it_is_and_brought_back_later(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=4m", "none") as place:
        path = golden.cut_off(place)
        head = git(path, "rev-parse", "main").strip()
        run("mount", "-o", "remount,ro", place)
        with _opened(path) as session:
            assert session.head == head
        run("mount", "-o", "remount,rw", place)

        _assert_all_there(path)


def _lost(path: Path, rng: random.Random) -> None:
    """Take back whatever was not fsynced, as a power cut may."""
    heads = _heads(path)
    objects = {_object(path, name) for name in _names(path)}
    for file in {*objects, *(path / ".git/smp").glob("[cp]*.json"), *path.glob("decisions/**/*")}:
        if file.is_file() and rng.random() < 0.5:
            _blank(file, rng.choice([b"", bytes(50)]))
    commit, time_ns, _ = rng.choice(heads)["stood"]
    how = rng.randrange(3)
    if how == 1:
        _main(path).write_bytes(rng.choice([b"", bytes(41)]))
    elif how == 2:
        _put_back(path, f"{commit}\n".encode(), time_ns)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_lost_nothing_acknowledged_is(whole: Path, seed: int) -> None:
    _lost(whole, random.Random(seed))

    _assert_all_there(whole)
