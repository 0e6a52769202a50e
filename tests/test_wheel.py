"""The wheel, not only the checkout, is what users install."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support import ROOT, git

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT], check=True
    )
    (found,) = folder.glob("smp_git-*.whl")
    return found


def test_wheel_carries_types_and_hooks(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    assert "smp_git/py.typed" in names
    assert "smp_git/hooks/pre-commit" in names
    assert "smp_git/web/templates/report.html" in names
    assert "smp_git/web/static/page.css" in names
    assert not [name for name in names if name.startswith("tests/")]


def test_installed_wheel_runs_the_demo_and_git_smp(wheel: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    bin_folder = tmp_path / "venv" / "bin"
    subprocess.run([bin_folder / "pip", "install", "-q", wheel], check=True)
    shown = subprocess.run(
        [bin_folder / "smp", "demo"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout

    assert "Nothing is wrong with the session: True." in shown
    (session,) = (tmp_path / "smp-demo" / "active").iterdir()
    assert (session / ".git/hooks/pre-commit").is_file()
    log = subprocess.run(
        ["git", "smp", "log", "--root", tmp_path / "smp-demo"],
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": f"{bin_folder}:/usr/bin:/bin"},
    ).stdout
    assert "decision DEC-0002" in log
    if shutil.which("man"):
        page = subprocess.run(
            ["git", "smp", "--help"],
            check=True,
            capture_output=True,
            text=True,
            env={"PATH": f"{bin_folder}:/usr/bin:/bin", "MANPAGER": "cat"},
        ).stdout
        assert "durable memory for AI agents" in page
    offered = subprocess.run(
        [bin_folder / "smp", "completion", "fish"], check=True, capture_output=True, text=True
    ).stdout
    assert "complete -c smp" in offered
    assert git(session, "fsck", "--strict") == ""
