"""Which regexes of a user are accepted."""

from __future__ import annotations

from functools import partial

import pytest

from smp_git.model.secrets import compile_user_pattern, redact
from tests.redact.hostile import UNITS, repeated, seconds

ACCEPTED = [
    r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Z|a-z]{2,}\b",
    r"\b[A-Za-z0-9]{32,}\b",
    r"password[\s:=]+[^\s]+",
    r"ACME-\d{6}",
    r"(?i)project[- ]?(?:alpha|beta)",
    r"10\.\d{1,3}\.\d{1,3}\.\d{1,3}",
    r"(?:\d{4}[ -]?){3}\d{4}",
    r"acme_(?P<secret>[a-z0-9]{20,})",
    r"(?<=id=)\w+",
    r"[\w.]+\.acme\.internal",
    r"\x41\u00e9+",
    r"a{,3}b",
]
REFUSED = [
    r"(a+)+$",
    r"(a|a)*b",
    r"(.*)*x",
    r"a*a*b",
    r".*.*=.*x",
    r"(\w+\s?)+$",
    r"(a*)\1",
    r"x*",
    r"",
    r"[",
    r"(?=a+)b",
    r"(?>a+)b",
    r"\w+\d+!",
    r"(?:a?){30}a{30}",
    r"((a{1,3}){1,3}){1,3}b",
    r"(?x) a b",
    r"a|",
    r"\b",
    "[[a]b",
    "a" * 301,
]


@pytest.mark.parametrize("source", ACCEPTED)
def test_an_accepted_pattern_is_bounded_on_hostile_text(source: str) -> None:
    act = partial(redact, patterns=[compile_user_pattern(source)])

    slowest = max(seconds(act, repeated(unit, 30_000)) for unit in UNITS if unit)

    # Quadratic in a part of a line is allowed; a hang is not.
    assert slowest < 2


@pytest.mark.parametrize("source", REFUSED)
def test_a_pattern_that_may_hang_or_matches_nothing_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match=r"pattern|group|look-around"):
        compile_user_pattern(source)


def test_a_name_that_makes_no_placeholder_is_refused() -> None:
    with pytest.raises(ValueError, match="lower case"):
        compile_user_pattern("ACME", "My Name")


def test_the_group_secret_is_what_a_user_pattern_replaces() -> None:
    pattern = compile_user_pattern(r"badge (?P<secret>\d{4})", "badge")

    assert redact("badge 1234", [pattern]).text == "badge [REDACTED:badge]"


def test_a_long_line_is_searched_whole() -> None:
    pattern = compile_user_pattern(r"ACME-\d{6}")

    result = redact("some words " * 400 + "ACME-123456", [pattern])

    assert result.text.endswith("[REDACTED:custom]")
