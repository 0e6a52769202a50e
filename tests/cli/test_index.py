"""`smp index`: what it prints, for people and as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from smp_git import Store
from smp_git.ask.text.meanings import find_encoder


def smp(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "smp_git", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "SMP_ROOT": str(folder / "store")},
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = Store.init(tmp_path / "store")
    with store.create_session("s", user="ada") as session:
        session.add("decision", "a cat sat")
    return tmp_path


def test_index_says_what_it_did(folder: Path) -> None:
    is_installed = find_encoder() is not None
    first = smp(folder, "index")
    again = smp(folder, "--json", "index")

    ending = "1 vector made" if is_installed else "by words alone"
    assert first.stdout == f"1 memory indexed, {ending}\n"
    assert first.stderr == ""
    assert json.loads(again.stdout) == {
        "memories": 1,
        "made": 0,
        "missing": 0,
        "semantic": is_installed,
    }


def test_progress_tells_of_pages_that_are_read(folder: Path) -> None:
    told: list[tuple[str, int, int]] = []
    with Store.open(folder / "store").session("s") as session:
        session.add("turn", "a dog ran")
        session.index(progress=lambda *said: told.append(said))
        assert told[:2] == [("pages", 1, 2), ("pages", 2, 2)]
        del told[:]
        session.index(progress=lambda *said: told.append(said))
        assert "pages" not in [what for what, *_ in told]


def test_on_without_the_packages_says_the_way_out(folder: Path) -> None:
    if find_encoder() is not None:
        pytest.skip("the extra `semantic` is installed")
    (folder / "store/config.yaml").write_text("format: 1\nsemantic: on\n")
    done = smp(folder, "query", "cat")

    assert done.returncode == 4
    assert "semantic is on, but smp-git[semantic] is not installed" in done.stderr
    assert "pip install 'smp-git[semantic]'" in done.stderr
    assert "Traceback" not in done.stderr
