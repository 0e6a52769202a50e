"""AGENTS.md: the lines for agents are written once, between marks, and the rest stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from smp_git.integrations.notes import write_notes
from smp_git.model.errors import InvalidError
from tests.support import smp


@pytest.mark.parametrize("before", ["", "# Mine\n", "# Mine\n\nno end of line"])
def test_the_lines_are_written_once_and_the_rest_stays(tmp_path: Path, before: str) -> None:
    path = tmp_path / "AGENTS.md"
    if before:
        path.write_text(before)
    assert write_notes(tmp_path)
    once = path.read_text()

    assert once.startswith(before)
    assert once.count("## Memory") == 1
    assert not write_notes(tmp_path)
    path.write_text(once.replace("## Memory", "## Old") + "\nmore\n")
    assert write_notes(tmp_path)
    assert path.read_text() == once + "\nmore\n"


def test_a_mark_without_its_end_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("<!-- smp: begin -->\nmine\n")
    with pytest.raises(InvalidError, match="without"):
        write_notes(tmp_path)


def test_the_command_writes_them_into_the_project(tmp_path: Path) -> None:
    smp("init", "--agents-md", cwd=tmp_path)
    smp("init", "--agents-md", cwd=tmp_path)

    assert (tmp_path / "AGENTS.md").read_text().count("## Memory") == 1
