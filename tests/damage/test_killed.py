"""Repairs that are killed at any step: the next one completes them, and nothing more is lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from smp_git import Store
from tests.conftest import Clock
from tests.damage.injuries import (
    FILE,
    HOW,
    VICTIM,
    WHAT,
    WHERE,
    copied,
    filled,
    gone,
    loose,
    object_of,
)
from tests.damage.test_damage import alone, is_sound, restored
from tests.support import python

pytestmark = pytest.mark.slow
MEMORIES = 160

DIES = """
import os, sys
from smp_git import Store
from smp_git.git import disk, references, staging, storage
from smp_git.git.repository import Repository
from smp_git.keep import repair, salvage
from smp_git.read.replica import Local
from smp_git.remove import archive
wanted, seen = int(sys.argv[2]), []

def around(home, name):
    real = getattr(home, name)
    def told(*args, **kwargs):
        for when in ("before", "after"):
            seen.append(name)
            if len(seen) == wanted:
                os._exit(73)
            done = real(*args, **kwargs) if when == "before" else done
        return done
    setattr(home, name, told)

for home, name in ((disk, "replace_durably"), (disk, "rename_into"), (storage, "store_pack"),
                   (storage.Written, "flush"), (Repository, "point"), (Repository, "publish"),
                   (references, "drop"), (references, "forget_in_logs"), (staging, "forget"),
                   (staging, "refresh"), (repair, "check_out"), (salvage.Aside, "take"),
                   (salvage.Aside, "note"), (Local, "raise_epoch"), (archive, "_flush"),
                   (archive, "_discard")):
    around(home, name)
Store.open(sys.argv[1]).repair("shop")
print(len(seen))
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a smaller store that every test copies."""
    return filled(tmp_path_factory.mktemp("small") / "store", MEMORIES).path


def _nobody_has(*whats: str):  # type: ignore[no-untyped-def]
    def injure(store: Store) -> None:
        shop = store.path / "active/shop"
        names = [object_of(shop, WHAT[what]) for what in whats]
        alone(shop)
        for name in names:
            gone(loose(shop, name))

    return injure


def _archive(store: Store) -> None:
    store.archive_session("shop")
    HOW["flipped"](store.path / "archived/shop/archive.tar.gz")


INJURIES = {
    "memory and page": _nobody_has("memory", "page index"),
    "earlier": _nobody_has("earlier tree", "earlier commit"),
    "newest": _nobody_has("head commit"),
    "folder and metadata": _nobody_has("page tree", "metadata"),
    "branch and index": lambda store: [
        WHERE[each](store.path / "active/shop") for each in ("branch NUL", "Git's index garbage")
    ],
    "pack": lambda store: WHERE["pack flipped"](store.path / "active/shop"),
    "config": lambda store: WHERE["config garbage"](store.path / "active/shop"),
    "file that does not parse": lambda store: WHERE["broken YAML"](store.path / "active/shop"),
    "archive": _archive,
}
_PACKED = ("pack", "archive")


@pytest.mark.parametrize("injury", INJURIES)
def test_killed_at_any_step_the_next_repair_completes_it(small: Path, tmp_path: Path, injury: str) -> None:  # fmt: skip
    INJURIES[injury](copied(small, tmp_path / "injured", packed=injury in _PACKED))

    def injured(name: str) -> Store:
        shutil.copytree(tmp_path / "injured", tmp_path / name, symlinks=True)
        return Store.open(tmp_path / name, clock=Clock())

    whole = injured("whole")
    steps = int(python(DIES, whole.path, 0).stdout)
    wanted = _memories(whole)
    is_sound(whole)
    assert steps > 2
    for step in range(1, steps + 1, max(1, steps // 10)):
        store = injured(f"at-{step}")
        assert python(DIES, store.path, step, check=False).returncode == 73, step
        again = Store.open(store.path, clock=Clock())
        again.repair("shop")
        assert _memories(again) == wanted, step
        is_sound(again)
        shutil.rmtree(store.path)


def _memories(store: Store) -> dict[str, str]:
    """Return every memory, with the files checked out that a test took away."""
    with store.session("shop") as session:
        restored(session)
        found = {str(each.id): each.content for each in session.memories()}
    assert len(found) >= MEMORIES - 1, FILE
    assert VICTIM in found or len(found) < MEMORIES
    return found
