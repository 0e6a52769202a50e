"""What the most used commands show: at three widths in a real terminal, and in a pipe.

The files in `screens/` are the target. `python -m tests.face.test_screens` writes them anew:
look at each change before it is committed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

import pytest

from tests.face.support import a_session, environment, screens

FOLDER: Final = Path(__file__).parent / "screens"
COMMANDS: Final = {
    "list": "list",
    "log": "log",
    "diff": "diff HEAD~4",
    "show": "show DEC-1",
    "query": "query session",
    "status": "status",
}
WIDTHS: Final = (60, 100, 200, None)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")


def _shown(columns: int | None, place: Path) -> dict[str, str]:
    a_session(place / "store").close()
    env = environment(place, SMP_ROOT=str(place / "store"), SMP_SESSION="shop")
    found = screens(list(COMMANDS.values()), columns=columns, env=env)
    names = {command: name for name, command in COMMANDS.items()}
    return {
        f"{names[command]}-{columns or 'pipe'}.txt": text.replace(str(place), "/home/ada")
        for command, text in found.items()
    }


@pytest.mark.parametrize("columns", WIDTHS)
def test_screens_are_the_golden_ones(columns: int | None, tmp_path: Path) -> None:
    shown = _shown(columns, tmp_path)
    golden = {name: (FOLDER / name).read_text("utf-8") for name in shown}

    assert shown == golden


if __name__ == "__main__":
    for width in WIDTHS:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in _shown(width, Path(folder)).items():
                (FOLDER / name).write_text(text, "utf-8")
