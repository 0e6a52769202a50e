"""The session that everybody here is busy with."""

from __future__ import annotations

from pathlib import Path

import pytest

from smp_git import Session, Store


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """The session `busy`, on the real clock."""
    return Store.init(tmp_path / "store").create_session("busy")
