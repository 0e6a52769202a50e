"""A folder for keys that is closed to its user: told in a sentence, and no key is left behind."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from smp_git import Session, Store
from tests.recovery.test_recovery import keys_of
from tests.support import lose_rights_of_root, smp

# Nobody may look into it; or nobody may make anything in it.
CLOSED = (0o000, 0o500)


@pytest.fixture
def local() -> Iterator[Path]:
    """The user's `~/.local`, with nothing in it."""
    place = Path(os.environ["HOME"]) / ".local"
    place.mkdir()
    yield place
    place.chmod(0o700)


def _run(store: Store, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user whom modes keep out."""
    place = ("--root", store.path, "-s", "shop", "--json")
    done = smp(*place, *arguments, check=False, before=lose_rights_of_root)
    assert "Traceback" not in done.stderr
    return done


def _asked(store: Store, *arguments: str) -> tuple[int, dict[str, str]]:
    """Return the status and the error of a command."""
    done = _run(store, *arguments)
    return done.returncode, json.loads(done.stderr)["error"] if done.returncode else {}


@pytest.mark.parametrize("mode", CLOSED)
def test_a_deletion_names_the_closed_folder_and_the_way_out(store: Store, session: Session, local: Path, mode: int) -> None:  # fmt: skip
    session.add("decision", "Close the shop on Mondays", agent="ada")
    local.chmod(mode)

    status, error = _asked(store, "delete", "DEC-0001", "--yes")

    assert status == 7
    assert f"{local} is closed to this user" in error["message"]
    assert "key_dir" in error["hint"]
    assert "--purge" in error["hint"]
    assert _asked(store, "list")[0] == _asked(store, "trash")[0] == _asked(store, "verify")[0] == 0
    assert session.get("DEC-0001").content == "Close the shop on Mondays"
    assert _asked(store, "delete", "DEC-0001", "--purge", "--yes")[0] == 0


def test_no_purge_says_done_while_the_key_is_out_of_reach(store: Store, session: Session, local: Path) -> None:  # fmt: skip
    for text in ("Close the shop on Mondays", "Open it on Sundays"):
        session.add("decision", text, agent="ada")
    # By the clock of the commands below, which is not the one of these tests.
    for name in ("DEC-0001", "DEC-0002"):
        assert _asked(store, "delete", name, "--yes")[0] == 0
    local.chmod(0o000)

    status, error = _asked(store, "purge", "DEC-0001", "--now", "--yes")
    assert status == 7
    assert f"{local} is closed to this user" in error["message"]
    done = _run(store, "purge", "--older-than", "0s", "--yes")
    assert done.returncode == 9
    assert f"{local} is closed to this user" in json.loads(done.stdout)["left"][0]
    status, error = _asked(store, "restore", "DEC-0001")
    assert (status, error["code"]) == (9, "damaged")
    assert "closed to this user" in error["message"]

    local.chmod(0o700)
    assert len(keys_of(store)) == 2
    assert _asked(store, "purge", "DEC-0001", "--now", "--yes")[0] == 0
    assert len(keys_of(store)) == 1


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_copy_that_was_purged_elsewhere_goes_once_its_key_can_go(store: Store, session: Session, local: Path, tmp_path: Path, is_damaged: bool) -> None:  # fmt: skip
    session.add("decision", "Close the shop on Mondays", agent="ada")
    session.add_remote("origin", tmp_path / "remote.git", create=True)
    session.sync()
    with Store.init(tmp_path / "other").clone(str(tmp_path / "remote.git")) as other:
        session.delete("DEC-0001", by="ada")
        other.delete("DEC-0001", purge=True)
        other.sync()
    if is_damaged:
        (record,) = store.path.glob("deleted/shop/*/record.yaml")
        record.write_text("nothing\n")
    local.chmod(0o000)

    assert _asked(store, "sync")[0] == 0
    assert _asked(store, "restore", "DEC-0001")[0] in (7, 9)

    local.chmod(0o700)
    assert len(keys_of(store)) == 1
    session.purge(expired=True)
    assert keys_of(store) == []
    assert list(store.path.rglob("*.sealed")) == []


def test_a_closed_home_is_no_traceback(store: Store, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    session.add("decision", "Close the shop on Mondays", agent="ada")
    closed = tmp_path / "closed"
    (closed / "home").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(closed / "home"))
    closed.chmod(0o000)
    try:
        status, _ = _asked(store, "delete", "DEC-0001", "--yes")
    finally:
        closed.chmod(0o700)

    assert status in (7, 8)
