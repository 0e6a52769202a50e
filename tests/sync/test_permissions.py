"""Folders that may not be read or written: a sentence, and nothing half done."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.sync.support import Machine

# Root without the right to pass by the rights of files is like anybody.
_WITHOUT = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")
_IS_ROOT = os.geteuid() == 0

pytestmark = pytest.mark.skipif(
    _IS_ROOT and shutil.which("setpriv") is None, reason="root reads everything"
)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Path]:
    """Two stores `one` and `two` and a remote `hub.git`; afterwards everything can be removed."""
    Machine(tmp_path, "one").begin(tmp_path / "hub.git").close()
    Machine(tmp_path, "two").store.close()
    yield tmp_path
    for place in (tmp_path, *tmp_path.rglob("*")):
        if place.is_dir():
            place.chmod(0o755)


def _refused(folder: Path, *arguments: str) -> str:
    """Run a command that has to say in a sentence why it cannot; return what it says."""
    done = subprocess.run(
        [*(_WITHOUT if _IS_ROOT else ()), sys.executable, "-P", "-m", "smp_git", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode > 2, done.stdout + done.stderr
    assert done.stderr.startswith("smp: "), done.stderr
    return done.stderr


@pytest.mark.parametrize("command", ["sync", "fetch", "push"])
def test_remote_that_may_not_be_read(shop: Path, command: str) -> None:
    (shop / "hub.git").chmod(0)
    assert "hub.git" in _refused(shop, "--root", "one", command)


def test_repository_is_not_made_where_nothing_may_be_read(shop: Path) -> None:
    (shop / "hub.git").chmod(0)
    said = _refused(shop, "--root", "one", "remote", "add", "other", "hub.git", "--create")
    assert "permission denied" in said


def test_clone_into_a_store_that_may_not_be_written(shop: Path) -> None:
    (shop / "two" / "active").mkdir(exist_ok=True)
    (shop / "two" / "active").chmod(0o555)
    assert "permission denied" in _refused(shop, "--root", "two", "clone", "hub.git")


@pytest.mark.parametrize("action", ["install", "remove"])
def test_hooks_that_may_not_be_written(shop: Path, action: str) -> None:
    (shop / "one/active/shop/.git/hooks").chmod(0o555)
    assert "permission denied" in _refused(shop, "--root", "one", "hooks", action)
