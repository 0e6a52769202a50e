"""Pictures of a terminal, as they are made for the docs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests import pictures
from tests.web.browser import browser, require_browser

pytestmark = pytest.mark.slow


def test_commands_of_a_terminal_are_in_the_pictures(tmp_path: Path) -> None:
    require_browser()
    store = pictures.told(tmp_path, pictures.Calendar(datetime(2026, 10, 26, 9, 0, tzinfo=UTC)))

    with browser(tmp_path / "profile") as driver:
        pictures.terminal(driver, store.path, tmp_path, tmp_path)

    screens = {name: (tmp_path / f"{name}.html").read_text("utf-8") for name in pictures.TYPED}
    for name, lines in pictures.TYPED.items():
        assert screens[name].count("<b>$</b>") == len(lines)
        assert "\x1b" not in screens[name]
        assert (tmp_path / f"terminal-{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "did you mean show?" in screens["wrong"]
