from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from smp_git.model.times import format_time, is_relative, parse_duration, parse_time

# A Wednesday.
NOW = datetime(2026, 3, 18, 14, 30, 5, 250_000, tzinfo=UTC)

ABSOLUTE = {
    "2026-01-11": datetime(2026, 1, 11, tzinfo=UTC),
    "2026-01-11T14:30": datetime(2026, 1, 11, 14, 30, tzinfo=UTC),
    "2026-01-11T14:30:07": datetime(2026, 1, 11, 14, 30, 7, tzinfo=UTC),
    "2026-01-11T14:30:07Z": datetime(2026, 1, 11, 14, 30, 7, tzinfo=UTC),
    "2026-01-11t14:30:07z": datetime(2026, 1, 11, 14, 30, 7, tzinfo=UTC),
    " 2026-01-11  14:30:07 ": datetime(2026, 1, 11, 14, 30, 7, tzinfo=UTC),
    "2026-01-11T14:30:07.678Z": datetime(2026, 1, 11, 14, 30, 7, 678_000, tzinfo=UTC),
    "2026-01-11T14:30:07.123456789Z": datetime(2026, 1, 11, 14, 30, 7, 123_456, tzinfo=UTC),
    "2026-01-11T14:30:00+02:00": datetime(2026, 1, 11, 12, 30, tzinfo=UTC),
    "2026-01-11T14:30:00-05:30": datetime(2026, 1, 11, 20, 0, tzinfo=UTC),
    "2026-01-11 14:30:00 +0100": datetime(2026, 1, 11, 13, 30, tzinfo=UTC),
    "2024-02-29": datetime(2024, 2, 29, tzinfo=UTC),
    "0001-01-01T00:00:00Z": datetime(1, 1, 1, tzinfo=UTC),
    "9999-12-31T23:59:59.999999Z": datetime.max.replace(tzinfo=UTC),
}

RELATIVE = {
    "now": NOW,
    "Today": datetime(2026, 3, 18, tzinfo=UTC),
    "yesterday": datetime(2026, 3, 17, tzinfo=UTC),
    "1 second ago": datetime(2026, 3, 18, 14, 30, 4, 250_000, tzinfo=UTC),
    "30 minutes ago": datetime(2026, 3, 18, 14, 0, 5, 250_000, tzinfo=UTC),
    "2 Hours  Ago": datetime(2026, 3, 18, 12, 30, 5, 250_000, tzinfo=UTC),
    "0 days ago": NOW,
    "2 weeks ago": datetime(2026, 3, 4, 14, 30, 5, 250_000, tzinfo=UTC),
    "3 months ago": datetime(2025, 12, 18, 14, 30, 5, 250_000, tzinfo=UTC),
    "26 years ago": datetime(2000, 3, 18, 14, 30, 5, 250_000, tzinfo=UTC),
    "45s": datetime(2026, 3, 18, 14, 29, 20, 250_000, tzinfo=UTC),
    "30m": datetime(2026, 3, 18, 14, 0, 5, 250_000, tzinfo=UTC),
    "3h": datetime(2026, 3, 18, 11, 30, 5, 250_000, tzinfo=UTC),
    "2d": datetime(2026, 3, 16, 14, 30, 5, 250_000, tzinfo=UTC),
    "2d ago": datetime(2026, 3, 16, 14, 30, 5, 250_000, tzinfo=UTC),
    "1w": datetime(2026, 3, 11, 14, 30, 5, 250_000, tzinfo=UTC),
    "6mo": datetime(2025, 9, 18, 14, 30, 5, 250_000, tzinfo=UTC),
    "1y": datetime(2025, 3, 18, 14, 30, 5, 250_000, tzinfo=UTC),
    "last hour": datetime(2026, 3, 18, 13, 30, 5, 250_000, tzinfo=UTC),
    "last day": datetime(2026, 3, 17, 14, 30, 5, 250_000, tzinfo=UTC),
    "last week": datetime(2026, 3, 11, 14, 30, 5, 250_000, tzinfo=UTC),
    "last month": datetime(2026, 2, 18, 14, 30, 5, 250_000, tzinfo=UTC),
    "last year": datetime(2025, 3, 18, 14, 30, 5, 250_000, tzinfo=UTC),
    "last monday": datetime(2026, 3, 16, tzinfo=UTC),
    "last tuesday": datetime(2026, 3, 17, tzinfo=UTC),
    "last Wednesday": datetime(2026, 3, 11, tzinfo=UTC),
    "last thursday": datetime(2026, 3, 12, tzinfo=UTC),
    "last sunday": datetime(2026, 3, 15, tzinfo=UTC),
}

NOT_TIMES = [
    "",
    "soon",
    "tomorrow",
    "2 days",
    "-2 days ago",
    "1.5h",
    "1M",
    "2D",
    "2 d",
    "days ago",
    "last fortnight",
    "last monday ago",
    "20260111",
    "2026-1-11",
    "2026-01-11T14",
    "2026-01-11T14:30:00.Z",
    "2026-01-11T14:30:00+24:00",
    "2026-01-11Z",
    "\u0662026-01-11",
    "2026-01-11T14:30:00Z; rm",
]

NOT_EXISTING = [
    "2026-02-30",
    "2026-13-01",
    "0000-01-01",
    "2026-01-11T24:00:00Z",
    "2026-01-11T14:30:60Z",
    "0001-01-01T00:00:00+05:00",
    "9999-12-31T23:59:59-05:00",
    "2026 years ago",
    "999999999999 weeks ago",
    "999999999999 years ago",
    "740000 days ago",
]

moments = st.datetimes(timezones=st.just(UTC))
offsets = st.integers(-23 * 60, 23 * 60).map(lambda m: timezone(timedelta(minutes=m)))


@pytest.mark.parametrize("text", ABSOLUTE)
def test_absolute_time_is_read_as_utc(text: str) -> None:
    assert parse_time(text, NOW) == ABSOLUTE[text]
    assert not is_relative(text)


@pytest.mark.parametrize("text", RELATIVE)
def test_relative_time_counts_back_from_now(text: str) -> None:
    assert parse_time(text, NOW) == RELATIVE[text]
    assert is_relative(text)


@pytest.mark.parametrize("text", NOT_TIMES)
def test_other_text_is_refused_by_name_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time; write '2026-") as caught:
        parse_time(text, NOW)

    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("text", NOT_EXISTING)
def test_time_that_does_not_exist_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="in the years 1 to 9999") as caught:
        parse_time(text, NOW)

    assert repr(text) in str(caught.value)


def test_long_text_is_shortened_in_the_error() -> None:
    with pytest.raises(ValueError, match="is not a time") as caught:
        parse_time("x" * 1_000_000, NOW)

    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("text", "now", "expected"),
    [
        ("1 month ago", datetime(2026, 3, 31, tzinfo=UTC), "2026-02-28T00:00:00Z"),
        ("1 month ago", datetime(2024, 3, 30, tzinfo=UTC), "2024-02-29T00:00:00Z"),
        ("1 year ago", datetime(2024, 2, 29, tzinfo=UTC), "2023-02-28T00:00:00Z"),
        ("13 months ago", datetime(2026, 1, 31, tzinfo=UTC), "2024-12-31T00:00:00Z"),
    ],
)
def test_months_and_years_stay_within_the_month(text: str, now: datetime, expected: str) -> None:
    assert format_time(parse_time(text, now)) == expected


def test_naive_now_counts_as_utc() -> None:
    assert parse_time("today", NOW.replace(tzinfo=None)) == RELATIVE["Today"]


def test_day_begins_at_midnight_in_utc_wherever_now_was_read() -> None:
    tokyo = timezone(timedelta(hours=9))

    assert parse_time("today", datetime(2026, 3, 18, 3, tzinfo=tokyo)) == datetime(
        2026, 3, 17, tzinfo=UTC
    )


@pytest.mark.parametrize("text", ["soon", "", "2026-02-30", "2 days"])
def test_text_that_is_no_time_is_not_relative(text: str) -> None:
    assert not is_relative(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30d", timedelta(days=30)),
        ("12h", timedelta(hours=12)),
        ("2 weeks", timedelta(days=14)),
        ("1 Minute", timedelta(seconds=60)),
        ("5s", timedelta(seconds=5)),
        ("6mo", timedelta(days=180)),
        ("1y", timedelta(days=365)),
        ("0d", timedelta()),
    ],
)
def test_duration_is_read(text: str, expected: timedelta) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "30", "-1d", "2d ago", "2 days ago", "1M", "now"])
def test_other_text_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; write '30d'") as caught:
        parse_duration(text)

    assert repr(text) in str(caught.value)


def test_duration_beyond_what_can_be_represented_is_refused() -> None:
    with pytest.raises(ValueError, match="'999999999999y' is too long a duration"):
        parse_duration("999999999999y")


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (datetime(2026, 1, 11, 14, 30, tzinfo=UTC), "2026-01-11T14:30:00Z"),
        (NOW.replace(tzinfo=None), "2026-03-18T14:30:05.250000Z"),
        (NOW, "2026-03-18T14:30:05.250000Z"),
        (datetime(7, 1, 1, tzinfo=UTC), "0007-01-01T00:00:00Z"),
        (
            datetime(2026, 1, 11, 1, tzinfo=timezone(timedelta(hours=2))),
            "2026-01-10T23:00:00Z",
        ),
    ],
)
def test_time_is_written_in_one_canonical_form(moment: datetime, expected: str) -> None:
    assert format_time(moment) == expected


def test_time_that_leaves_the_calendar_in_utc_is_not_written() -> None:
    moment = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))

    with pytest.raises(ValueError, match="outside the years 1 to 9999"):
        format_time(moment)


@given(moments)
def test_written_time_reads_back_exactly(moment: datetime) -> None:
    assert parse_time(format_time(moment), NOW) == moment


@given(moments, offsets)
def test_offset_of_a_written_time_does_not_matter(utc: datetime, offset: timezone) -> None:
    assume(2 <= utc.year <= 9998)
    moment = utc.astimezone(offset)

    assert parse_time(moment.isoformat(), NOW) == moment
    assert parse_time(format_time(moment), NOW) == moment


@given(
    st.integers(0, 10**12 - 1),
    st.sampled_from(["second", "minutes", "hour", "days", "weeks", "month", "years"]),
    moments,
)
def test_counting_back_stays_in_the_calendar_or_is_refused(
    count: int, unit: str, now: datetime
) -> None:
    try:
        earlier = parse_time(f"{count} {unit} ago", now)
    except ValueError:
        return

    assert earlier <= now


@given(st.text(max_size=40))
def test_any_text_is_a_time_or_a_value_error(text: str) -> None:
    is_relative(text)
    with suppress(ValueError):
        parse_time(text, NOW)
    with suppress(ValueError):
        parse_duration(text)
