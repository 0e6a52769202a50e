"""Disks that are full or read-only, and a user without a home."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from smp_git import Memory, Store
from smp_git.git import disk
from smp_git.model.errors import SmpError, StorageError
from tests.concurrency.writers import assert_clean
from tests.crash.children import assert_ready, state
from tests.crash.disks import mounted, run
from tests.support import ROOT

pytestmark = pytest.mark.slow


def _until_full(write: Callable[[int], Memory]) -> list[str]:
    """Write until the disk is full; return the ids that were acknowledged."""
    given: list[str] = []
    with suppress(StorageError):
        while True:
            given.append(write(len(given)).id)
    return given


@pytest.mark.parametrize("size", [1, 100, 3_000, 30_000])
def test_full_disk_loses_nothing_and_works_again_when_space_returns(
    tmp_path: Path, size: int
) -> None:
    text = "word " * (size // 5 + 1)
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=3m", "none") as small:
        store = Store.init(small / "store")
        filler = small / "filler"
        filler.write_bytes(b"x" * 1_800_000)
        with store.create_session("shop") as session:
            given = _until_full(
                lambda number: session.add("finding", f"{number} {text}", agent="a")
            )
            given += _until_full(
                lambda number: session.edit(given[0], text=f"{-number} {text}", agent="a")
            )
            with pytest.raises(StorageError, match="the disk is full"):
                session.add("turn", "x" * 900_000, agent="a")
            assert {memory.id for memory in session.memories()} >= set(given)
            filler.unlink()
            given.append(session.add("finding", "There is room", agent="a").id)

        assert state(session.path).keys() >= set(given)
        assert_ready(session.path)


def test_full_disk_makes_no_session(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=1m", "none") as small:
        store = Store.init(small / "store")
        (small / "filler").write_bytes(b"x" * 960_000)
        with pytest.raises(StorageError, match="the disk is full"):
            store.create_session("shop")
        assert store.sessions() == ()
        (small / "filler").unlink()
        store.create_session("shop").close()

        assert_ready(store.path / "active/shop")


def test_full_disk_makes_no_clone(tmp_path: Path) -> None:
    """Wherever it ends, in Git or in the check-out, it is told, and nothing is left."""
    with Store.init(tmp_path / "store").create_session("shop") as session:
        for number in range(100):
            session.add("finding", f"{number} {os.urandom(2_000).hex()}", agent="a")
        session.add_remote("origin", tmp_path / "hub.git", create=True)
        session.sync()
    refused: list[SmpError] = []
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=4m", "none") as small:
        store = Store.init(small / "store")
        for room in range(100_000, 2_400_000, 100_000):
            status = os.statvfs(small)
            (small / "filler").write_bytes(b"x" * (status.f_bavail * status.f_frsize - room))
            try:
                store.clone(str(tmp_path / "hub.git"), "clone").close()
                break
            except SmpError as error:
                refused.append(error)
            assert store.sessions() == ()
            assert not list((store.path / "active").glob(".new-*"))
            (small / "filler").unlink()

        assert store.sessions() == ("clone",)
    assert StorageError in map(type, refused)
    assert all(error.message.isprintable() for error in refused)


def test_read_only_disk_is_read_and_refuses_writes(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=4m", "none") as place:
        store = Store.init(place / "store")
        with store.create_session("shop") as session:
            memory = session.add("finding", "No MFA", agent="a")
            path = session.path
        run("mount", "-o", "remount,ro", place)
        with Store.open(place / "store").session("shop") as session:
            assert session.get(memory.id).content == "No MFA"
            assert session.info().problems == ()
            assert session.check() == ()
            with pytest.raises(StorageError, match="read-only"):
                session.add("finding", "No", agent="a")
        with pytest.raises(SmpError, match="read-only"):
            store.create_session("another")
        run("mount", "-o", "remount,rw", place)

        assert_ready(path)


def test_user_without_a_home_writes(tmp_path: Path) -> None:
    code = (
        "import sys; from smp_git import Store\n"
        "with Store.init(sys.argv[1]).create_session('shop') as session:\n"
        "    print(session.add('finding', 'No MFA', agent='a').id)"
    )
    kept = {name: value for name, value in os.environ.items() if name not in ("HOME", "USER")}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "store")],
        cwd=ROOT, env=kept, capture_output=True, text=True,
    )  # fmt: skip

    assert (done.stdout, done.stderr) == ("FIND-0001\n", "")
    assert_clean(tmp_path / "store/active/shop")


@contextmanager
def _ordinary(folder: Path) -> Iterator[None]:
    """Be a user who owns a folder, and whom read-only files refuse."""
    if os.geteuid():
        yield
        return
    os.chown(folder, 65534, 65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_read_only_file_of_a_dead_writer_does_not_refuse_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    with _ordinary(tmp_path):
        Path("scratch").touch(0o400)
        disk.replace_durably("whole", b"said", "scratch")

        assert Path("whole").read_bytes() == b"said"
        assert not Path("scratch").exists()
