"""The words and numbers in which a time may be written.

Every time is an aware UTC `datetime`. A caller's naive one is refused: it may be of any zone.
A relative time needs the caller's `now`, so the same text and the same `now`
always give the same answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Final, TypeAlias

from smp_git.model.errors import InvalidError

# A time as a caller may give it: words, a moment, a day, or how long ago.
When: TypeAlias = str | date | timedelta
# From the caller's now to the time meant.
_Way: TypeAlias = Callable[[datetime], datetime]

_TIME_EXAMPLES: Final = "'2026-01-11T14:30:00Z', '2 days ago' or 'last week'"
_DURATION_EXAMPLES: Final = "'30d', '12h' or '2 weeks'"
_SHOWN_LENGTH: Final = 60
_DECEMBER: Final = 12

# The offset may follow a space and lack its colon: `git log --date=iso` prints it so.
_ABSOLUTE: Final = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:[.](?P<fraction>[0-9]{1,9}))?)?"
    r"(?: ?(?P<offset>[Zz]|[+-](?:[01][0-9]|2[0-3]):?[0-5][0-9]))?)?"
)
# Twelve digits hold every second since the year 1.
_LONG: Final = re.compile(r"([0-9]{1,12}) (second|minute|hour|day|week|month|year)s?( ago)?")
_SHORT: Final = re.compile(r"([0-9]{1,12})(s|m|h|d|w|mo|y)( ago)?")
_SHORT_UNITS: Final = {
    "s": "second",
    "m": "minute",
    "h": "hour",
    "d": "day",
    "w": "week",
    "mo": "month",
    "y": "year",
}
_SECONDS: Final = {
    "second": 1,
    "minute": 60,
    "hour": 3_600,
    "day": 86_400,
    "week": 604_800,
    "month": 2_592_000,
    "year": 31_536_000,
}
_MONTHS: Final = {"month": 1, "year": 12}
_WEEKDAYS: Final = (
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
)


def parse_time(text: str, now: datetime) -> datetime:
    """Return the moment that `text` names, seen from `now`, in UTC.

    A date is its midnight, and so are `today`, `yesterday` and `last monday`
    (the Monday before today).
    `last hour`, `day`, `week`, `month` and `year` mean one of it ago.
    Months and years keep the day of the month, or take the month's last day.
    Short units are lower case, because `1M` could be a minute or a month.
    Digits beyond the microsecond are cut off.

    Raises:
        ValueError: `text` is not a time, does not exist, or lies outside the
            years 1 to 9999; the message names the text and gives examples.
    """
    way = _way(_words(text))
    if way is None:
        raise ValueError(f"{_shown(text)} is not a time; write {_TIME_EXAMPLES}")
    try:
        return way(_utc(now))
    except (OverflowError, ValueError) as error:
        raise ValueError(
            f"{_shown(text)} is not a time that exists in the years 1 to 9999; "
            f"write {_TIME_EXAMPLES}"
        ) from error


def moment_of(given: When, now: datetime) -> datetime:
    """Return the moment that a caller means, seen from `now`, in UTC; raise InvalidError."""
    if isinstance(given, datetime):
        return aware(given)
    try:
        if isinstance(given, timedelta):
            return _utc(now) - given
        return parse_time(str(given), now)
    except OverflowError:
        raise InvalidError(f"{given} ago lies outside the years 1 to 9999") from None
    except ValueError as error:
        raise InvalidError(str(error)) from None


def aware(moment: datetime) -> datetime:
    """Return `moment` in UTC; raise InvalidError if it is naive, or outside of all years."""
    if moment.tzinfo is None:
        raise InvalidError(f"{moment} has no time zone", hint="give one, e.g. datetime.now(UTC)")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise InvalidError(f"{moment} in UTC lies outside the years 1 to 9999") from None


def parse_duration(text: str) -> timedelta:
    """Return the length of time that `text` names, e.g. `30d` or `2 weeks`.

    A month counts as 30 days and a year as 365, since a length has no calendar.

    Raises:
        ValueError: `text` is not a duration or is too long to be represented.
    """
    amount = _amount(_words(text))
    if amount is None or amount.group(3):
        raise ValueError(f"{_shown(text)} is not a duration; write {_DURATION_EXAMPLES}")
    try:
        return timedelta(seconds=int(amount[1]) * _SECONDS[_unit(amount)])
    except OverflowError as error:
        raise ValueError(
            f"{_shown(text)} is too long a duration; write {_DURATION_EXAMPLES}"
        ) from error


def format_time(moment: datetime) -> str:
    """Return `moment` as RFC 3339 in UTC: the one spelling that is stored.

    The seconds have six decimals, or none when the microseconds are zero, and
    `parse_time` gives back exactly `moment`.
    The texts of two times need not sort as the times do.

    Raises:
        ValueError: `moment` in UTC lies outside the years 1 to 9999.
    """
    try:
        utc = _utc(moment)
    except OverflowError as error:
        raise ValueError(f"{moment} in UTC is outside the years 1 to 9999") from error
    return utc.replace(tzinfo=None).isoformat() + "Z"


def is_relative(text: str) -> bool:
    """Return whether `text` is a time that depends on now; never raise."""
    return _relative(_words(text)) is not None


def _words(text: str) -> str:
    return " ".join(text.split())


def _shown(text: str) -> str:
    if len(text) <= _SHOWN_LENGTH:
        return repr(text)
    return repr(text[:_SHOWN_LENGTH] + "…")


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is UTC:
        return moment
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC)


def _way(words: str) -> _Way | None:
    absolute = _ABSOLUTE.fullmatch(words)
    if absolute is not None:
        return lambda _now: _absolute(absolute)
    return _relative(words)


def _absolute(match: re.Match[str]) -> datetime:
    parts = match.groupdict(default="")
    moment = datetime.fromisoformat(parts["date"]).replace(
        hour=int(parts["hour"] or 0),
        minute=int(parts["minute"] or 0),
        second=int(parts["second"] or 0),
        microsecond=int(parts["fraction"][:6].ljust(6, "0")),
        tzinfo=UTC,
    )
    return moment - _offset(parts["offset"])


def _offset(text: str) -> timedelta:
    if text in ("", "Z", "z"):
        return timedelta()
    size = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return -size if text.startswith("-") else size


def _relative(words: str) -> _Way | None:
    anchor = _ANCHORS.get(words.lower())
    if anchor is not None:
        return anchor
    amount = _amount(words)
    if amount is None or (amount.re is _LONG and not amount.group(3)):
        return None
    return partial(_before, count=int(amount[1]), unit=_unit(amount))


def _amount(words: str) -> re.Match[str] | None:
    return _SHORT.fullmatch(words) or _LONG.fullmatch(words.lower())


def _unit(amount: re.Match[str]) -> str:
    return _SHORT_UNITS.get(amount[2], amount[2])


def _before(now: datetime, *, count: int, unit: str) -> datetime:
    if unit in _MONTHS:
        return _months_before(now, count * _MONTHS[unit])
    return now - timedelta(seconds=count * _SECONDS[unit])


def _months_before(now: datetime, months: int) -> datetime:
    year, month = divmod(now.year * 12 + now.month - 1 - months, 12)
    last_day = month_length(year, month + 1)
    return now.replace(year=year, month=month + 1, day=min(now.day, last_day))


def month_length(year: int, month: int) -> int:
    """Return the number of days of a month."""
    if month == _DECEMBER:
        return 31
    return (date(year, month + 1, 1) - date(year, month, 1)).days


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _weekday_before(now: datetime, *, weekday: int) -> datetime:
    days = (now.weekday() - weekday - 1) % 7 + 1
    return _midnight(now) - timedelta(days=days)


_ANCHORS: Final[Mapping[str, _Way]] = {
    "now": lambda now: now,
    "today": _midnight,
    "yesterday": lambda now: _midnight(now) - timedelta(days=1),
    **{
        f"last {unit}": partial(_before, count=1, unit=unit)
        for unit in ("hour", "day", "week", "month", "year")
    },
    **{
        f"last {name}": partial(_weekday_before, weekday=number)
        for number, name in enumerate(_WEEKDAYS)
    },
}
