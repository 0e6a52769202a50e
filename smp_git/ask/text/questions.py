"""Parts of a question: its words, its phrases, the days and the values of fields that it names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from smp_git.ask.text.words import STOP_WORDS, fold, tokens, words
from smp_git.model.memory import SEVERITIES
from smp_git.model.times import month_length

_MONTHS: Final = "janfebmaraprmayjunjulaugsepoctnovdec"
# 3 June 2023, the 3rd of june, June 3rd, in Sept., 2023-06-03.
_DATE: Final = re.compile(
    r"\b(?P<iso>\d{4}-\d\d-\d\d)\b"
    r"|\b(?:(?P<by>in|during|since|of|last)\s+)?"
    r"(?:(?P<day>\d{1,2})(?:st|nd|rd|th)?\s+(?:of\s+)?)?"
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
    r"(?:\s+(?P<then>\d{1,2})(?:st|nd|rd|th)?\b)?(?:,?\s+(?:of\s+)?(?P<year>\d{4})\b)?",
    re.IGNORECASE,
)
_RELATIVE: Final = re.compile(
    r"\b(?:(?P<day>today|yesterday)|(?P<which>this|last)\s+(?P<period>week|month|year)"
    r"|(?P<count>\d{1,3}|an?)\s+(?P<unit>day|week|month)s?\s+ago)\b",
    re.IGNORECASE,
)
_AGO: Final[Mapping[str, int]] = MappingProxyType(
    {"today": 0, "this": 0, "yesterday": 1, "last": 1, "a": 1, "an": 1}
)
_EPOCH: Final = date(1970, 1, 1).toordinal()


class Days(NamedTuple):
    """A range of days, both ends in it, and the words that name them."""

    first: date
    last: date
    said: str = ""

    @property
    def numbers(self) -> range:
        """The days as they are counted since 1970."""
        return range(self.first.toordinal() - _EPOCH, self.last.toordinal() - _EPOCH + 1)


def named_days(question: str, years: Iterable[int], now: datetime | None = None) -> list[Days]:
    """Return the days that `question` names.

    A date without a year means that date in each of `years`. "Yesterday" and the like
    mean something only when `now` is given. What is no date (31 February) is ignored.
    """
    found = [days for match in _DATE.finditer(question) for days in _calendar_days(match, years)]
    if now is not None:
        today = now.astimezone(UTC).date()
        found += [Days(*_period(today, m), m[0]) for m in _RELATIVE.finditer(question)]
    return found


def _calendar_days(match: re.Match[str], years: Iterable[int]) -> Iterator[Days]:
    """Yield the days of a date; a month alone is none, for "may" and "march" are verbs too."""
    if match["iso"]:
        with suppress(ValueError):
            day = date.fromisoformat(match["iso"])
            yield Days(day, day, match[0])
        return
    number = match["day"] or match["then"]
    if not (match["by"] or number or match["year"]):
        return
    month = _MONTHS.index(match["month"][:3].lower()) // 3 + 1
    for year in [int(match["year"])] if match["year"] else years:
        with suppress(ValueError):
            first = date(year, month, int(number or 1))
            yield Days(first, first if number else _month_end(first), match[0])


def _month_end(day: date) -> date:
    return day.replace(day=month_length(day.year, day.month))


def _period(today: date, match: re.Match[str]) -> tuple[date, date]:
    """Return the first and last day of the day, week (from Monday), month or year of some time ago."""
    said = (match["day"] or match["which"] or match["count"]).lower()
    unit = (match["period"] or match["unit"] or "day").lower()
    ago = int(said) if said.isdecimal() else _AGO[said]
    if unit == "day":
        return today - timedelta(ago), today - timedelta(ago)
    if unit == "week":
        monday = today - timedelta(today.weekday() + 7 * ago)
        return monday, monday + timedelta(6)
    if unit == "year":
        return date(today.year - ago, 1, 1), date(today.year - ago, 12, 31)
    year, month = divmod(today.year * 12 + today.month - 1 - ago, 12)
    first = date(year, month + 1, 1)
    return first, _month_end(first)


# Longer questions are pasted texts; what follows changes nothing but the time it takes.
_LONGEST_CHARACTERS: Final = 20_000
_MOST_WORDS: Final = 256
_MOST_PATTERNS: Final = 16
_PHRASE: Final = re.compile(r"[\"“”„«]([^\"“”„«»]+)[\"“”»]")
# An asterisk at a word or in it, a question mark in it or before it.
_WILD: Final = re.compile(r"\w\*|\*\w|\?\w")
_NO_WILD: Final = re.compile(r"\*\*+|\?(?!\w)")
_WILD_WORD: Final = re.compile(r"[*?]*(?:[^\W_]+[*?]*)+")
# "We" and "our" are everybody's.
_FIRST_PERSON: Final = frozenset({"i", "i'm", "i've", "me", "mine", "my"})
# What a question begins with, or asks to be done; as words these are said everywhere.
_ASKING: Final = frozenset(
    {"find", "found", "give", "know", "list", "look", "search", "show", "tell"}
)


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """Words that must stand side by side, as written; `*` and `?` stand for letters."""

    words: tuple[str, ...]

    @property
    def shown(self) -> str:
        """The pattern as a person writes it."""
        text = " ".join(self.words)
        return text if {"*", "?"} & set(text) else f'"{text}"'

    @cached_property
    def finder(self) -> re.Pattern[str]:
        """What matches the first word of each place, in words with a space before and after each."""
        first, *others = self.words
        # What begins with any letters is found by those that follow, which is faster.
        begin = "" if first.startswith("*") else " "
        after = "".join(f" {_letters(word)}" for word in others)
        return re.compile(f"{begin}{_letters(first.lstrip('*'))}(?={after} )")


def _letters(word: str) -> str:
    """Return a regular expression for a word; of several asterisks only the last looks back."""
    escaped = re.escape(word).replace(r"\?", "[^ ]")
    first, *inner = re.split(r"(?:\\\*)+", escaped)
    last = f"[^ ]*{inner.pop()}" if inner else ""
    return "".join((first, *(f"(?>[^ ]*?{part})" for part in inner), last))


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question taken apart: words to match by stem, patterns to match to the letter.

    `names` are words that may name somebody: `said` holds them all, `capitals` those
    written with a capital.
    """

    text: str
    words: tuple[str, ...]
    patterns: tuple[Pattern, ...]
    said: frozenset[str]
    capitals: frozenset[str]

    @property
    def is_first_person(self) -> bool:
        """Whether the asker speaks of themselves."""
        return not self.said.isdisjoint(_FIRST_PERSON)


def parse(question: str) -> Question:
    """Return what `question` asks for; every string is a question."""
    text = _NO_WILD.sub(" ", question[:_LONGEST_CHARACTERS])
    quoted = [_pattern(part) for part in _PHRASE.findall(text)]
    loose = _PHRASE.sub(" ", text)
    wild = [_pattern(part) for part in loose.split() if _WILD.search(part)]
    plain = " ".join(part for part in loose.split() if not _WILD.search(part))
    said = tuple(dict.fromkeys(words(plain)))[:_MOST_WORDS]
    patterns = tuple(dict.fromkeys(each for each in quoted + wild if each.words))
    content = tuple(word for word in said if word not in STOP_WORDS)
    # Only stop words are a question too ("the who"), if nothing else was asked.
    content = tuple(word for word in content if word not in _ASKING) or content
    return Question(
        text=text,
        words=content if content or patterns else said,
        patterns=patterns[:_MOST_PATTERNS],
        said=frozenset(said),
        capitals=frozenset(token.word for token in tokens(plain) if plain[token.start].isupper()),
    )


def _pattern(text: str) -> Pattern:
    if _WILD.search(text):
        return Pattern(words=tuple(map(fold, _WILD_WORD.findall(text))))
    return Pattern(words=tuple(words(text)))


# What a score by text keeps where a memory lacks the kind or the value that is asked for.
STEERED_AWAY: Final = 0.5
# Words that name a kind, and those that say what somebody did who wrote one.
_KIND_WORDS: Final = {
    "turn": "say says said mention mentioned",
    "decision": "decision decisions decide decided deciding",
    "finding": "finding findings",
    "preference": "preference preferences prefer prefers preferred",
    "learning": "learnings learn learned learnt lesson lessons",
    "artifact": "artifact artifacts",
}
_KINDS: Final = {word: kind for kind, words in _KIND_WORDS.items() for word in words.split()}
_STATE: Final = re.compile(
    r"\b(working on|waiting for|busy with|blocked (?:by|on))\b", re.IGNORECASE
)
# What has a severity and a status, whatever it is called.
_THINGS: Final = frozenset({"bug", "bugs", "issue", "issues", "problem", "problems"})
_STATUSES: Final[Mapping[str, str]] = MappingProxyType({"unresolved": "open", "unsolved": "open"})


class Steer(NamedTuple):
    """A value that a field should have, and the word of the question that says so."""

    field: str
    value: str
    word: str


class Steering(NamedTuple):
    """All that steers; alone if the question says nothing else."""

    steers: tuple[Steer, ...] = ()
    is_alone: bool = False

    @property
    def words(self) -> frozenset[str]:
        """The words of the question that steer."""
        return frozenset(each.word for each in self.steers)


@lru_cache(maxsize=256)
def _named(text: str) -> tuple[tuple[Steer, ...], tuple[Steer, ...], frozenset[str]]:
    """Return which kinds a question names, which other values it may mean, and all else."""
    asked = parse(text).words
    kinds = [Steer("kind", _KINDS[word], word) for word in asked if word in _KINDS]
    if found := _STATE.search(text):
        kinds.append(Steer("kind", "state", fold(found[1].partition(" ")[0])))
    taken = {each.word for each in kinds}
    rest = [word for word in asked if word not in taken]
    values = [Steer("severity", word, word) for word in rest if word in SEVERITIES]
    values += [Steer("pinned", "true", word) for word in rest if word == "pinned"]
    values += [Steer("status", _STATUSES.get(word, word), word) for word in rest]
    return tuple(kinds), tuple(values), frozenset(rest)


def steering(text: str, has: Callable[[str, str], object], fixed: Sequence[str]) -> Steering:
    """Return what steers the answer to a text.

    `has` tells whether any memory has a value; a filter fixes a field already. An adjective
    like "open" steers what can be open: a kind, a bug, or everything if nothing else is asked.
    """
    kinds, values, rest = _named(text)
    possible = [each for each in values if has(each.field, each.value)]
    plain = rest - {each.word for each in possible}
    if not kinds and plain and not plain & _THINGS:
        possible = []
    found = [each for each in (*kinds, *possible) if each.field not in fixed]
    return Steering(tuple(found), is_alone=bool(found) and not plain - _THINGS)
