"""What redaction of hostile text costs beside plain text of the same length.

A pattern that goes over the same text again and again costs thousands of times as much.
"""

from __future__ import annotations

from functools import cache, partial
from statistics import median

import pytest

from smp_git.model.secrets.evidence import SecretPattern
from smp_git.model.secrets.patterns import PATTERNS
from smp_git.model.secrets.redaction import redact
from tests.redact.hostile import UNITS, repeated, seconds

PLAIN = "The quick brown fox jumps over the lazy dog, and 17 others look on: why? "
# Plain text holds none of the keywords and is hardly searched at all; this holds many.
USUAL = """The finding FIND-0042 shows that 17 of 120 requests failed between 10:00 and 11:30.
We moved the token refresh into the client; key points: the password reset mail is sent twice.
def refresh(self, token: str) -> None: see src/auth/session.py:88
"""
SMALL, SMALL_TIMES = 30_000, 40
LARGE, LARGE_TIMES = 1_000_000, 10


@cache
def plain_seconds(length: int) -> float:
    """Return how long all patterns take for plain text."""
    return median(seconds(redact, repeated(PLAIN, length)) for _ in range(5))


@cache
def usual_seconds() -> float:
    """Return how long all patterns take for text that holds keywords and no secret."""
    return median(seconds(redact, repeated(USUAL, LARGE)) for _ in range(5))


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(pattern, id=f"{number}-{pattern.name}")
        for number, pattern in enumerate(PATTERNS)
    ],
)
def test_each_pattern_is_fast_on_hostile_repetitions(pattern: SecretPattern) -> None:
    act = partial(redact, patterns=[pattern])

    slowest = max(seconds(act, repeated(unit, SMALL)) for unit in UNITS if unit)

    assert slowest < SMALL_TIMES * plain_seconds(SMALL)


@pytest.mark.slow
@pytest.mark.parametrize("unit", sorted({*UNITS} - {""}), ids=ascii)
def test_a_hostile_megabyte_takes_a_few_times_as_long_as_a_usual_one(unit: str) -> None:
    best = min(seconds(redact, repeated(unit, LARGE)) for _ in range(2))

    assert best < LARGE_TIMES * usual_seconds()
