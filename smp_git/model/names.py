"""Names of the places of a store: in a project, and in its own folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final

# Where a project has its store, by default.
PLACE: Final = Path(".bmad/sessions")
ACTIVE: Final = "active"
CONFIG: Final = "config.yaml"
