"""Print the packages of pyproject.toml, one a line: `lowest` pinned, `newest` by name."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

_PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def packages(which: str) -> list[str]:
    """Return the requirements for pip; raise ValueError for a dependency without a lower bound."""
    listed = tomllib.loads(_PROJECT.read_text())["project"]["dependencies"]
    found = dict(each.split(">=") for each in listed)
    return [f"{name}=={low}" if which == "lowest" else name for name, low in found.items()]


sys.stdout.write("\n".join(packages(sys.argv[1])) + "\n")
