"""What each test of the command line begins with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from smp_git.cli.common import SAID


@pytest.fixture(autouse=True)
def _nothing_said() -> Iterator[None]:
    """Forget the options of a call that a test made in its own process."""
    SAID.clear()
    yield
    SAID.clear()
