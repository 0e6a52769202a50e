"""How long redaction takes on hostile text."""

from __future__ import annotations

from functools import partial

import pytest

from smp_git.redact import PATTERNS, Pattern, redact
from tests.redact.hostile import UNITS, repeated, seconds

# Acceptance limits: 30 KB within 200 ms for each pattern, 1 MB within 1 s for all.
SMALL, SMALL_SECONDS = 30_000, 0.2
LARGE, LARGE_SECONDS = 1_000_000, 1.0


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(pattern, id=f"{number}-{pattern.name}")
        for number, pattern in enumerate(PATTERNS)
    ],
)
def test_each_pattern_is_fast_on_hostile_repetitions(pattern: Pattern) -> None:
    act = partial(redact, patterns=[pattern])

    slowest = max(seconds(act, repeated(unit, SMALL)) for unit in UNITS if unit)

    assert slowest < SMALL_SECONDS


@pytest.mark.slow
@pytest.mark.parametrize("unit", sorted({*UNITS} - {""}), ids=ascii)
def test_a_hostile_megabyte_takes_less_than_a_second(unit: str) -> None:
    assert seconds(redact, repeated(unit, LARGE)) < LARGE_SECONDS
