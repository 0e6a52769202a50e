"""Random histories of replicas and remotes: see `tests.lives.machine` for what must hold.

More of them: `python -m tests.lives.machine 1000 1200` (seeds from, to).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lives.machine import tried

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


@pytest.mark.parametrize("seed", range(24))
def test_nothing_comes_back_and_nothing_is_lost(tmp_path: Path, seed: int) -> None:
    run, more, problems = tried(tmp_path, seed)
    assert problems == [], run.log
    assert more <= 1, run.log
