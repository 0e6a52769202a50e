"""The short form of every benchmark runs; the figures are for people, not for tests."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.__main__ import PARTS, main
from tests.support import ROOT

pytestmark = pytest.mark.bench


@pytest.mark.parametrize("part", PARTS)
def test_short_benchmark_prints_a_table(
    part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([part, "--short", "--folder", str(tmp_path)])

    printed = capsys.readouterr().out
    assert f"command: python -m tests.bench {part} --short" in printed
    assert "machine: " in printed
    assert "| --" in printed or "skipped: " in printed


def test_short_benchmark_of_retrieval_prints_a_table() -> None:
    command = [sys.executable, "-m", "tests.bench.retrieval", "--short"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert re.search(r"nDCG@10|skipped: no shared/data", done.stdout)
