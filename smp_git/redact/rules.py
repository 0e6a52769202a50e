"""Which secrets one session keeps out: on or off, the patterns, what is allowed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Self, TypeAlias, cast

from smp_git.errors import InvalidError, shown
from smp_git.redact.custom import compile_user_pattern
from smp_git.redact.pattern import Pattern
from smp_git.redact.patterns import PATTERNS
from smp_git.redact.redaction import Found, redact, redact_value

Report: TypeAlias = "tuple[tuple[str, int], ...]"

SETTINGS = ("redaction", "redaction_patterns", "redaction_allow")
_SWITCH: Mapping[object, bool] = {True: True, False: False, "on": True, "off": False}


class Cleaned(NamedTuple):
    """What may be stored: text and fields without secrets, and how many were taken out."""

    text: str | None
    fields: dict[str, object]
    redacted: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is redacted in a session before it is written; on unless switched off."""

    on: bool = True
    patterns: tuple[Pattern, ...] = PATTERNS
    allow: frozenset[str] = frozenset()

    def text(self, text: str) -> tuple[str, Report]:
        """Return `text` without secrets, and the report of it."""
        if not self.on:
            return text, ()
        done = redact(text, self.patterns, self.allow)
        return done.text, _report(done.found)

    def cleaned(self, text: str | None, fields: Mapping[str, object]) -> Cleaned:
        """Return a memory's text and fields without secrets; what is no text stays."""
        given = dict(fields)
        if not self.on:
            return Cleaned(text, given, ())
        found: list[Found] = []
        for name, value in given.items():
            # One mapping at a time, so that a field's own name counts.
            done = redact_value({name: value}, self.patterns, self.allow)
            given |= cast("dict[str, object]", done.value)
            found += done.found
        first = redact_value(text, self.patterns, self.allow)
        return Cleaned(cast("str | None", first.value), given, _report((*first.found, *found)))

    def overridden(self, settings: Mapping[str, object], where: str) -> Self:
        """Return these rules with what `settings` says of redaction; raise InvalidError."""
        on = _switch(settings.get("redaction", self.on), where)
        added = _patterns(settings.get("redaction_patterns", {}), where)
        allowed = settings.get("redaction_allow", [])
        if not isinstance(allowed, list) or not all(isinstance(item, str) for item in allowed):
            raise InvalidError(f"{where}: redaction_allow is a list of texts, not {shown(allowed)}")
        return replace(
            self, on=on, patterns=(*self.patterns, *added), allow=self.allow.union(allowed)
        )


def merged(reports: Iterable[Report]) -> Report:
    """Return several reports as one."""
    total: Counter[str] = Counter()
    for report in reports:
        for name, count in report:
            total[name] += count
    return tuple(sorted(total.items()))


def _report(found: Iterable[Found]) -> Report:
    return merged(((item.name, item.count),) for item in found)


def _switch(value: object, where: str) -> bool:
    on = _SWITCH.get(value) if isinstance(value, (bool, str)) else None
    if on is None:
        raise InvalidError(f"{where}: redaction is on or off, not {shown(value)}")
    return on


def _patterns(value: object, where: str) -> tuple[Pattern, ...]:
    if isinstance(value, list):
        return tuple(_pattern("custom", source, where) for source in value)
    if isinstance(value, dict):
        return tuple(_pattern(name, source, where) for name, source in value.items())
    raise InvalidError(f"{where}: redaction_patterns maps names to regular expressions")


def _pattern(name: str, source: object, where: str) -> Pattern:
    if not isinstance(source, str):
        raise InvalidError(f"{where}: the pattern {name} is text, not {shown(source)}")
    try:
        return compile_user_pattern(source, name)
    except ValueError as error:
        raise InvalidError(
            f"{where}: redaction_patterns, {name}: {error}",
            hint="a simpler pattern, with something fixed between its repetitions",
        ) from None
