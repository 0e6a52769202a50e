"""A process that dies while it deletes, restores or redacts loses nothing and leaves nothing half."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from smp_git import Store
from tests.recovery.conftest import SENTINEL
from tests.recovery.support import everything
from tests.support import python

pytestmark = pytest.mark.slow

DIES = """
import os, sys
from smp_git import Store
from smp_git.remove import {module} as module
real = module.{name}
def dying(*args, **kwargs):
    if {after}:
        real(*args, **kwargs)
    os._exit(73)
module.{name} = dying
with Store.open(sys.argv[1]).session("shop") as session:
    {act}
"""


def die(store: Path, act: str, module: str, name: str, *, after: bool = False) -> None:
    code = DIES.format(act=act, module=module, name=name, after=after)
    done = python(code, store, check=False)
    assert done.returncode == 73, done.stderr


@pytest.fixture
def place(tmp_path: Path, isolated_environment: Path) -> Path:
    assert os.environ["HOME"] == str(isolated_environment)
    store = Store.init(tmp_path / "store")
    with store.create_session("shop", user="ada") as session:
        session.add("decision", f"{SENTINEL} the first")
        session.edit("DEC-0001", text=f"{SENTINEL} the second")
        session.add("finding", "It matters")
    return store.path


def test_killed_before_erasing_starts_the_memory_lives_and_the_copy_goes(place: Path) -> None:
    die(place, 'session.delete("DEC-0001")', "delete", "erase")
    store = Store.open(place)
    with store.session("shop") as session:
        assert session.get("DEC-0001").content == f"{SENTINEL} the second"
        assert session.trash() == ()
    assert store.check() == ()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", ["keep", "create", "sealed"])
def test_killed_while_sealing_it_is_as_if_nothing_had_begun(place: Path, name: str, after: bool) -> None:  # fmt: skip
    module = {"keep": "trash.Trash", "create": "seal.Keys", "sealed": "seal"}[name]
    code = DIES.format(act='session.delete("DEC-0001")', module="trash", name="_x", after=after)
    head, _, method = module.partition(".")
    code = code.replace("import trash as module", f"import {head} as home")
    code = code.replace("real = module._x", f"module = home.{method}\nreal = module.{name}" if method else f"module = home\nreal = module.{name}")  # fmt: skip
    code = code.replace("module._x = dying", f"module.{name} = dying")
    done = python(code, place, check=False)
    assert done.returncode == 73, done.stderr

    store = Store.open(place)
    with store.session("shop") as session:
        assert session.get("DEC-0001").content == f"{SENTINEL} the second"
        session.delete("DEC-0001")
        assert [item.id for item in session.trash()] == ["DEC-0001"]
        session.restore("DEC-0001")
    assert len(list((place / "deleted" / "shop").iterdir())) == 1
    assert store.check() == ()


def test_killed_after_erasing_the_memory_can_be_restored(place: Path) -> None:
    die(place, 'session.delete("DEC-0001")', "delete", "erase", after=True)
    with Store.open(place).session("shop") as session:
        assert [memory.id for memory in session.memories()] == ["FIND-0001"]
        session.restore("DEC-0001", with_history=True)
        assert session.get("DEC-0001").content == f"{SENTINEL} the second"


@pytest.mark.parametrize("name", ["_history", "_mark"])
def test_killed_while_restoring_with_history_all_versions_are_back_or_none(place: Path, name: str) -> None:  # fmt: skip
    with Store.open(place).session("shop") as session:
        session.delete("DEC-0001")
    die(place, 'session.restore("DEC-0001", with_history=True)', "restore", name, after=name == "_history")  # fmt: skip

    with Store.open(place).session("shop") as session:
        if name == "_history":
            assert [memory.id for memory in session.memories()] == ["FIND-0001"]
            assert [item.id for item in session.trash()] == ["DEC-0001"]
            session.restore("DEC-0001", with_history=True)
        assert session.get("DEC-0001").content == f"{SENTINEL} the second"
        assert len(session.history("DEC-0001")) == 2
        assert session.trash() == ()


def test_killed_after_a_redaction_erased_the_memory_goes_on_without_the_text(place: Path) -> None:
    die(place, f'session.redact("{SENTINEL}")', "redact", "erase", after=True)
    store = Store.open(place)
    with store.session("shop") as session:
        assert session.get("DEC-0001").content == "[REDACTED] the second"
        assert session.check() == ()
    assert SENTINEL.encode() not in everything(place)
    assert list(place.rglob("*.tar.gz*")) == []


def test_killed_before_a_redaction_erases_nothing_is_changed(place: Path) -> None:
    die(place, f'session.redact("{SENTINEL}")', "redact", "erase")
    with Store.open(place).session("shop") as session:
        assert session.get("DEC-0001").content == f"{SENTINEL} the second"


def test_killed_between_publishing_a_purge_and_destroying_the_copy(place: Path) -> None:
    with Store.open(place).session("shop") as session:
        session.delete("DEC-0001")
    die(place, 'session.purge("DEC-0001")', "purge", "drop_copies")

    store = Store.open(place)
    with store.session("shop") as session:
        assert session.trash() == ()
    store.purge_expired()
    assert list(place.rglob("backup*")) == []
    assert store.key_folder is not None
    assert list(store.key_folder.rglob("*.key")) == []


def test_killed_while_a_session_moves_it_is_here_or_there(place: Path) -> None:
    code = """
import os, sys
from pathlib import Path
from smp_git import Store
real = Path.rename
def rename(self, target):
    if self.name == "shop": os._exit(73)
    return real(self, target)
Path.rename = rename
Store.open(sys.argv[1]).delete_session("shop")
"""
    assert python(code, place, check=False).returncode == 73

    store = Store.open(place)
    assert store.sessions() == ("shop",)
    assert store.deleted_sessions() == ()
    store.delete_session("shop")
    assert [record.session_id for record in store.deleted_sessions()] == ["shop"]
