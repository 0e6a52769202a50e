"""Names of the places of a store: in a project, and in its own folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final

# Where a project has its store, by default.
PLACE: Final = Path(".bmad/sessions")
ACTIVE: Final = "active"
ARCHIVED: Final = "archived"
CONFIG: Final = "config.yaml"
