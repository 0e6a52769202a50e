"""Words, stems, dates, snippets."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smp_git.ask.text.questions import named_days
from smp_git.ask.text.snippets import snippet
from smp_git.ask.text.words import stem, tokens, words

YEARS = range(2022, 2024)
NOW = datetime(2023, 5, 3, 12, tzinfo=UTC)  # a Wednesday


@given(st.text(alphabet=st.sampled_from("aZs9'\u2019 -_é\u0301ह\u093f東.\n"), max_size=40))
def test_words_are_the_words_of_tokens(text: str) -> None:
    assert words(text) == [token.word for token in tokens(text)]


@given(st.text(alphabet="abS'9 -", max_size=40))
def test_one_emoji_changes_no_word(text: str) -> None:
    assert words(text + " 🙂") == words(text)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("agreed", "agre"),
        ("plastered", "plaster"),
        ("motoring", "motor"),
        ("hopping", "hop"),
        ("hoping", "hope"),
        ("falling", "fall"),
        ("happy", "happi"),
        ("relational", "relat"),
        ("vietnamization", "vietnam"),
        ("triplicate", "triplic"),
        ("adjustment", "adjust"),
        ("adoption", "adopt"),
        ("probate", "probat"),
        ("controlling", "control"),
        ("sky", "sky"),
        ("bought", "bui"),
        ("as", "as"),
        ("2023", "2023"),
    ],
)
def test_stems_are_porters(word: str, expected: str) -> None:
    assert stem(word) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("2023-05-01", [(5, 1, 5, 1)]),
        ("on 3 June 2023", [(6, 3, 6, 3)]),
        ("June 3rd, 2023", [(6, 3, 6, 3)]),
        ("the 3rd of june, 2023", [(6, 3, 6, 3)]),
        ("in Feb 2023", [(2, 1, 2, 28)]),
        ("today", [(5, 3, 5, 3)]),
        ("yesterday", [(5, 2, 5, 2)]),
        ("2 days ago", [(5, 1, 5, 1)]),
        ("last week", [(4, 24, 4, 30)]),
        ("this month", [(5, 1, 5, 31)]),
        ("a month ago", [(4, 1, 4, 30)]),
        ("this year", [(1, 1, 12, 31)]),
        ("31 February 2023", []),
        ("2023-13-01", []),
        ("they march on", []),
        ("he may", []),
    ],
)
def test_days_are_named(question: str, expected: list[tuple[int, ...]]) -> None:
    days = [(date(2023, a, b), date(2023, c, d)) for a, b, c, d in expected]

    assert [each[:2] for each in named_days(question, YEARS, NOW)] == days


def test_a_date_without_a_year_is_meant_in_every_year() -> None:
    firsts = [days.first.year for days in named_days("on June 3", YEARS)]

    assert firsts == [2022, 2023]


def test_relative_days_mean_nothing_without_a_clock() -> None:
    assert named_days("yesterday", YEARS) == []


@pytest.mark.parametrize(
    ("text", "question", "width", "expected"),
    [
        ("We deployed it.", "deploys", 80, "We **deployed** it."),
        ("a\n\n b", "b", 80, "a **b**"),
        ("one two three four five six", "five", 12, "…**five** six"),
        ("one two three four five six", "nothing", 9, "one two…"),
        ("red car, red bus", '"red bus"', 80, "red car, **red** **bus**"),
        ("deployment", "dep*", 80, "**deployment**"),
        ("", "x", 80, ""),
        ("慢慢地 退款必须 完成", "退款", 80, "慢慢地 **退款**必须 完成"),
        ("slower and slowest", "slow", 80, "**slower** and **slowest**"),
        ("an oauth test of text", "*auth te?t", 80, "an **oauth** **test** of **text**"),
        ("what is a flower?", "flow?", 80, "what is a flower?"),
    ],
)
def test_a_snippet_marks_what_matches(text: str, question: str, width: int, expected: str) -> None:
    assert snippet(text, question, width=width) == expected


@given(st.text(max_size=300), st.text(max_size=30), st.integers(1, 80))
def test_a_snippet_without_its_marks_is_part_of_the_text(
    text: str, question: str, width: int
) -> None:
    shown = snippet(text.replace("*", "").replace("…", ""), question, width=width)

    plain = shown.strip("…").replace("**", "")
    assert plain in " ".join(text.replace("*", "").replace("…", "").split())
    assert len(plain) <= width
