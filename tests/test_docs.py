"""The documentation holds: its examples run, its links resolve, its lists are complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import pages
from tests.support import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
README = ROOT / "README.md"


def _runnable(page: Path, block: pages.Block) -> bool:
    # What sets a machine up is shown in the README, and is not for a test to run.
    first = block.text.startswith("$ smp") or page != README
    return block.language == "python" or (block.language == "console" and first)


def _with_examples() -> list[Path]:
    found = [page for page in (README, *PAGES) if page.exists()]
    return [
        page for page in found if any(_runnable(page, b) for b in pages.blocks(page.read_text()))
    ]


@pytest.mark.parametrize("page", _with_examples(), ids=lambda page: page.stem)
def test_examples_do_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "desk"
    folder.mkdir()
    desk = pages.Desk(folder)
    for block in pages.blocks(page.read_text()):
        if _runnable(page, block):
            desk.run(block)
