"""Damage on a disk that is full or read-only: read, named, and repaired once there is room."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from smp_git import Store
from smp_git.model.errors import StorageError
from tests.conftest import Clock
from tests.crash.disks import mounted, run
from tests.damage.injuries import MEMORIES, VICTIM, WHAT, WHERE, copied, gone, loose, object_of
from tests.damage.test_damage import alone, is_sound, restored
from tests.support import smp

pytestmark = pytest.mark.slow


def _lost(*whats: str, also_files: bool = False) -> Callable[[Path], None]:
    def injure(shop: Path) -> None:
        names = [object_of(shop, WHAT[what]) for what in whats]
        if also_files:
            alone(shop)
        for name in names:
            gone(loose(shop, name))

    return injure


INJURIES: dict[str, Callable[[Path], object]] = {
    "what stands in the folder": _lost("memory", "page index", "page tree"),
    "what nobody has": _lost("memory", "page index", also_files=True),
    "pack": WHERE["pack flipped"],
    "Git's index": WHERE["Git's index garbage"],
    "branch": WHERE["branch NUL"],
}
_CLOSED = ("branch",)
_PACKED = ("pack",)


@contextmanager
def _on_a_disk(template: Path, tmp_path: Path, injury: str) -> Iterator[Store]:
    """Yield a store on a disk of its own, injured."""
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=40m", "none") as place:
        store = copied(template, place / "store", packed=injury in _PACKED)
        with store.session("other") as session:
            session.add("finding", "what makes this copy a replica of its own")
        INJURIES[injury](store.path / "active/shop")
        yield store
        store.close()


def _is_read_as_far_as_it_can_be(store: Store, injury: str) -> None:
    """The undamaged session answers, and so does what is left of the damaged one."""
    assert store.query("elsewhere", limit=None).hits
    store.close()
    assert store.check() if injury != "Git's index" else True
    if injury not in _CLOSED:
        with store.session("shop") as session:
            assert len(session.memories()) >= MEMORIES - 1
            assert session.query("said", limit=None).hits
    listed = smp("--root", store.path, "-s", "other", "list")
    assert "Traceback" not in listed.stderr


def _is_repaired(store: Store) -> None:
    store.repair("shop")
    with store.session("shop") as session:
        restored(session)
        assert len(session.memories()) == MEMORIES
        assert session.get(VICTIM).content.startswith("slow page 41")
        session.add("finding", "there is room")
    is_sound(store)


@pytest.mark.parametrize("injury", INJURIES)
def test_a_full_disk_repairs_nothing_and_loses_nothing(template: Path, tmp_path: Path, injury: str) -> None:  # fmt: skip
    with _on_a_disk(template, tmp_path, injury) as store:
        before = _content(store.path / "active/shop/.git/objects")
        free = os.statvfs(store.path)
        (store.path.parent / "filler").write_bytes(bytes(free.f_bavail * free.f_frsize))
        _is_read_as_far_as_it_can_be(store, injury)
        with pytest.raises(StorageError, match="the disk is full"):
            store.repair("shop")
        told = smp("--root", store.path, "-s", "shop", "repair", check=False)
        assert (told.returncode, "Traceback" in told.stderr) == (11, False), told.stderr
        assert before.items() <= _content(store.path / "active/shop/.git").items()
        _is_read_as_far_as_it_can_be(store, injury)
        (store.path.parent / "filler").unlink()
        _is_repaired(store)


def _content(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a folder, by its name."""
    return {each.name: each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize("injury", INJURIES)
def test_a_read_only_disk_is_read_and_repaired_later(template: Path, tmp_path: Path, injury: str) -> None:  # fmt: skip
    with _on_a_disk(template, tmp_path, injury) as store:
        store.close()
        run("mount", "-o", "remount,ro", tmp_path / "disk")
        _is_read_as_far_as_it_can_be(store, injury)
        with pytest.raises(StorageError, match="read-only"):
            store.repair("shop")
        assert smp("--root", store.path, "-s", "shop", "repair", check=False).returncode == 11
        run("mount", "-o", "remount,rw", tmp_path / "disk")
        _is_repaired(store)


@pytest.mark.parametrize("year", [1970, 2100])
@pytest.mark.parametrize("injury", INJURIES)
def test_a_wrong_clock_repairs_the_same(template: Path, tmp_path: Path, injury: str, year: int) -> None:  # fmt: skip
    store = copied(template, tmp_path / "store", packed=injury in _PACKED)
    INJURIES[injury](store.path / "active/shop")
    clock = Clock()
    clock.now = clock.now.replace(year=year, month=1, day=1)
    wrong = Store.open(store.path, clock=clock)
    _is_read_as_far_as_it_can_be(wrong, injury)
    _is_repaired(wrong)
    shutil.rmtree(store.path)


READS = """\
sessions --all
stats
maintain --all-sessions --dry-run
-s shop info
-s shop config
-s shop show DEC-1
-s shop list
-s shop query PG
query PG --all-sessions
-s shop context
-s shop summary
-s shop log
-s shop blame DEC-1
-s shop check
-s shop branch
-s shop export
-s shop size
-s shop trash
-s shop receipt
-s shop verify
-s shop audit
-s shop remote
-s shop compacted
""".splitlines()
WRITES = """\
new more
use shop
archive shop
unarchive old
maintain --all-sessions
config set trash_days=40
-s shop add decision more
-s shop resolve DEC-1
-s shop undo
-s shop rollback HEAD~1
-s shop repair
-s shop branch more
-s shop switch idea
-s shop export --format bundle -o x.bundle
-s shop delete DEC-0001
-s shop redact PG --yes
-s shop anonymize --yes
delete-session shop
undelete-session gone
-s shop sync
sync --all-sessions
-s shop hooks install
""".splitlines()


@pytest.mark.parametrize("kind", ["read-only", "full"])
def test_every_command_says_in_a_sentence_what_the_disk_refuses(tmp_path: Path, kind: str) -> None:
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=24m", "none") as place:
        store = Store.init(place / "store")
        with store.create_session("shop", user="ada") as session:
            session.add("decision", "Use PG", agent="a")
            session.delete(session.add("finding", "deleted", agent="a").id)
            session.add_remote("origin", place / "hub.git", create=True)
            session.sync()
            session.branch("idea").close()
            session.add("finding", "not synced", agent="a")
        for name in ("old", "gone"):
            store.create_session(name).close()
        store.archive_session("old")
        store.delete_session("gone")
        if kind == "full":
            free = os.statvfs(place)
            (place / "filler").write_bytes(bytes(free.f_bavail * free.f_frsize))
        else:
            run("mount", "-o", "remount,ro", place)
        for command in (*READS, *WRITES):
            done = smp("--root", store.path, *command.split(), cwd=place, check=False)
            assert "Traceback" not in done.stderr, (command, done.stderr)
            if command in READS:
                assert done.returncode == 0, (command, done.stderr)
            elif kind == "read-only":
                assert (done.returncode, "read-only" in done.stderr) == (11, True), (command, done.stderr)  # fmt: skip
