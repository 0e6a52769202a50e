"""Random histories of what works beside writing and deleting: see `tests.lives.beside`.

More of them: `python -m tests.lives.beside 1000 1200` (seeds from, to).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lives.beside import tried

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_lost_and_nothing_comes_back(tmp_path: Path, seed: int) -> None:
    run = tried(tmp_path, seed)
    assert run.problems == [], run.log
