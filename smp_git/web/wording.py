"""Values as a page says them: times, sizes, counts, fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final, cast

from smp_git.format import yamlfile
from smp_git.model.memory import Value
from smp_git.model.times import format_time

# A unit, how many seconds it has, and from how many seconds on it is used.
_UNITS: Final = (
    ("year", 31_536_000, 31_536_000),
    ("month", 2_592_000, 5_184_000),
    ("day", 86_400, 86_400),
    ("hour", 3_600, 3_600),
    ("minute", 60, 60),
)
_SIZES: Final = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_FEW: Final = 10
_EXCERPT: Final = 260
_LABEL: Final = 14


def distance(length: timedelta) -> str:
    """Return a length of time in one unit: `2 hours`."""
    seconds = abs(length.total_seconds())
    for name, unit, least in _UNITS:
        if seconds >= least:
            return plural(int(seconds // unit), name)
    return "a moment"


def ago(at: datetime, now: datetime) -> str:
    """Return how far a time is from now: `2 hours ago`, `in 3 days`."""
    length = now - at
    if abs(length) < timedelta(minutes=1):
        return "just now"
    told = distance(length)
    return f"{told} ago" if length > timedelta() else f"in {told}"


def days_left(until: datetime, now: datetime) -> str:
    """Return how long there is until a deadline."""
    left = until - now
    if left <= timedelta():
        return "over"
    if left < timedelta(days=1):
        return f"{distance(left)} left"
    return f"{plural(round(left / timedelta(days=1)), 'day')} left"


def local(at: datetime) -> datetime:
    """Return a time in the time zone of this machine."""
    return at.astimezone()


def day(at: datetime) -> str:
    """Return the day of a time: `Sun 11 Jan 2026`."""
    return f"{local(at):%a} {local(at).day} {local(at):%b %Y}"


def short_day(at: datetime) -> str:
    """Return the day of a time without its weekday: `11 Jan 2026`."""
    return f"{local(at).day} {local(at):%b %Y}"


def clock(at: datetime) -> str:
    """Return the time of day: `14:30`."""
    return f"{local(at):%H:%M}"


def moment(at: datetime) -> str:
    """Return a time to the minute: `11 Jan 2026, 14:30`."""
    return f"{short_day(at)}, {clock(at)}"


def exact(at: datetime) -> str:
    """Return a time as it is stored, for programs and for who looks closer."""
    return format_time(at)


def parsed(text: str) -> datetime:
    """Return the time that a stored text says."""
    return datetime.fromisoformat(text)


def size(number: float) -> str:
    """Return a number of bytes: `1.2 MB`."""
    for unit, name in _SIZES:
        if number >= unit:
            amount = number / unit
            return f"{amount:.1f} {name}" if amount < _FEW else f"{amount:,.0f} {name}"
    return f"{int(number):,} bytes" if number != 1 else "1 byte"


def plural(number: int, noun: str, nouns: str = "") -> str:
    """Return a number of things: `1 memory`, `1,234 memories`."""
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def memories(number: int) -> str:
    """Return a number of memories."""
    return plural(number, "memory", "memories")


def named(field: str) -> str:
    """Return the name of a field as it is spoken."""
    return field.replace("_", " ").strip() or field


def as_text(value: Value) -> str:
    """Return the value of a field as lines for a person: nested ones as YAML."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        if not any(isinstance(item, (list, dict)) for item in value):
            return ", ".join(as_text(item) for item in value)
        return yamlfile.written({"": value}).partition("\n")[2].rstrip()
    if isinstance(value, Mapping):
        return yamlfile.written(cast("Mapping[str, Value]", value)).rstrip() if value else "{}"
    return str(value)


def percent(part: float, whole: float) -> float:
    """Return how many percent a part is of the whole, from 0 to 100."""
    return min(100.0, max(0.0, 100 * part / whole)) if whole else 0.0


def excerpt(content: str, title: str) -> str:
    """Return the beginning of a text on one line, without the title that stands above it."""
    text = " ".join(content.split())
    rest = text.removeprefix(title.rstrip("…")).lstrip(" .:,;-–—") if title else text
    rest = rest or text
    return rest if len(rest) <= _EXCERPT else f"{rest[: _EXCERPT - 1].rsplit(' ', 1)[0]}…"


def plain(title: str, name: str) -> str:
    """Return a title without the signs of a heading; the id of what has none."""
    return title.lstrip("# ") or name


def body(content: str, title: str) -> str:
    """Return a text without the title that stands above it."""
    text = content.strip()
    return text.removeprefix(title).lstrip() if title and not title.endswith("…") else text


def short_id(name: str) -> str:
    """Return an id that fits below a dot of a graph."""
    return name if len(name) <= _LABEL else f"{name[: _LABEL - 1]}…"


FILTERS: Final[Mapping[str, Callable[..., object]]] = {
    "ago": ago,
    "as_text": as_text,
    "body": body,
    "clock": clock,
    "day": day,
    "days": lambda number: distance(timedelta(days=number)),
    "days_left": days_left,
    "exact": exact,
    "excerpt": excerpt,
    "memories": memories,
    "moment": moment,
    "named": named,
    "number": "{:,}".format,
    "parsed": parsed,
    "plain": plain,
    "plural": plural,
    "short_day": short_day,
    "short_id": short_id,
    "size": size,
}
