"""Redaction rules of a session: on or off, the patterns, what is allowed, the replacement."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self, TypeAlias, TypeVar, cast

from smp_git.model.errors import InvalidError, nearest, shown
from smp_git.model.regexes import LONGEST, WRITING, Bounded
from smp_git.model.secrets import REPLACEMENT, SETTINGS
from smp_git.model.secrets.evidence import SecretPattern
from smp_git.model.secrets.patterns import PATTERNS
from smp_git.model.secrets.redaction import KIND, FoundSecrets, redact, redact_value

Report: TypeAlias = "tuple[tuple[str, int], ...]"

# What replaces a text that a person had taken out.
GAP = "[REDACTED]"
_LONGEST = 64
_NAME = re.compile(r"[a-z0-9-]{1,64}")
_REMEMBERED = 1000
_BRACKETED = re.compile(
    r"\[[^\[\]]{1,62}\]|<[^<>]{1,62}>|\([^()]{1,62}\)|\{[^{}]*(?:\{kind\}[^{}]*)?\}|«[^«»]{1,62}»"
)
# What an address or a path may look like by chance.
_OF_ADDRESSES = ("email", "long-token")
# Where a replacement is not to be taken for a secret, though another one is set later.
_PLACES = ("□", "password=□", "api_key: □", "my password is □", '"password": "□"', "token = '□'")
_Name = TypeVar("_Name")
_SWITCH: Mapping[object, bool] = {True: True, False: False, "on": True, "off": False}


class Cleaned(NamedTuple):
    """Text and fields without secrets, and how many were taken out."""

    text: str | None
    fields: dict[str, object]
    redacted: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules by which secrets are redacted before a write; on unless switched off."""

    on: bool = True
    patterns: tuple[SecretPattern, ...] = PATTERNS
    # Those too that are switched off, so that a session can switch them on.
    every: tuple[SecretPattern, ...] = PATTERNS
    allow: frozenset[str] = frozenset()
    replacement: str = REPLACEMENT
    # Names that were found to hold no secret: the same few come with every write.
    clean: set[str] = field(default_factory=set, compare=False, repr=False)

    @property
    def gap(self) -> str:
        """The placeholder for a text that is no known kind of secret."""
        if self.replacement == REPLACEMENT:
            return GAP
        return self.replacement.replace(KIND, "text")

    def text(self, text: str) -> tuple[str, Report]:
        """Return `text` without secrets, and the report of it."""
        if not self.on:
            return text, ()
        done = redact(text, self.patterns, self.allow, self.replacement)
        return done.text, _report(done.found)

    def cleaned(self, text: str | None, fields: Mapping[str, object]) -> Cleaned:
        """Return a memory's text and fields without secrets; what is no text stays."""
        if not self.on:
            return Cleaned(text, dict(fields), ())
        given = {name: value for name, value in fields.items() if value is not None}
        done = redact_value(given, self.patterns, self.allow, self.replacement)
        kept = cast("dict[str, object]", done.value)
        if any(name not in kept for name in given):
            raise _refused("the name of a field", done.found)
        first = redact_value(text, self.patterns, self.allow, self.replacement)
        return Cleaned(
            cast("str | None", first.value),
            {name: kept.get(name) for name in fields},
            _report((*first.found, *done.found)),
        )

    def settings(self, given: Mapping[str, object]) -> dict[str, object]:
        """Return settings without secrets; what redaction itself is told stays."""
        said = {name: value for name, value in given.items() if name not in SETTINGS}
        cleaned = self.cleaned(None, said).fields
        return {name: cleaned.get(name, value) for name, value in given.items()}

    def name(self, text: _Name, what: str) -> _Name:
        """Return the name of something as it is; raise InvalidError if it holds a secret.

        What is no text stays too: whoever checks names says what is wrong with it.
        """
        if self.on and isinstance(text, str):
            self._refuse(text, what)
        return text

    def address(self, text: str) -> None:
        """Raise InvalidError if the address of a remote holds a secret.

        `deploy@host` is no mailbox there, and a folder's name may be random.
        """
        if self.on:
            others = [item for item in self.patterns if item.name not in _OF_ADDRESSES]
            self._refuse(text, "the address of a remote", others)

    def names(self, items: object, what: str) -> tuple[object, ...]:
        """Return names, or pairs of names, as they are; raise InvalidError for a secret."""
        if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
            return cast("tuple[object, ...]", items)
        given = tuple(items)
        if self.on and given:
            self._refuse("\n".join(map(str, given)), what)
        return given

    def _refuse(self, text: str, what: str, patterns: Sequence[SecretPattern] = ()) -> None:
        if text in self.clean:
            return
        done = redact(text, patterns or self.patterns, self.allow)
        if done.found:
            raise _refused(what, done.found)
        if not patterns and len(self.clean) < _REMEMBERED:
            self.clean.add(text)

    def overridden(self, settings: Mapping[str, object], where: str) -> Self:
        """Return these rules with what `settings` says of redaction; raise InvalidError."""
        every = (*self.every, *_patterns(settings.get("redaction_patterns", {}), where))
        off = {each.name for each in self.every} - {each.name for each in self.patterns}
        said, on = settings.get("redaction"), self.on
        if isinstance(said, dict):
            kinds = {name: _kind(name, value, every, where) for name, value in said.items()}
            on, off = True, {*off, *kinds} - {name for name, is_on in kinds.items() if is_on}
        elif "redaction" in settings:
            on, off = _switch(said, where), set()
        allowed = settings.get("redaction_allow", [])
        if not isinstance(allowed, list) or not all(isinstance(item, str) for item in allowed):
            raise InvalidError(
                f"{where}: redaction_allow must be a list of texts, not {shown(allowed)}"
            )
        rules = replace(
            self,
            on=on,
            patterns=tuple(each for each in every if each.name not in off),
            every=every,
            allow=self.allow.union(allowed),
            clean=set(),
        )
        if "redaction_replacement" not in settings:
            return rules
        return replace(
            rules, replacement=_replacement(settings["redaction_replacement"], rules, where)
        )


def merged(reports: Iterable[Report]) -> Report:
    """Return several reports as one."""
    total: Counter[str] = Counter()
    for report in reports:
        for name, count in report:
            total[name] += count
    return tuple(sorted(total.items()))


def _report(found: Iterable[FoundSecrets]) -> Report:
    return merged(((item.name, item.count),) for item in found)


def _refused(what: str, found: Iterable[FoundSecrets]) -> InvalidError:
    kinds = ", ".join(item.name for item in found)
    return InvalidError(
        f"{what} holds a secret ({kinds}); nothing was written",
        hint="choose another name, or allow this one in redaction_allow",
    )


def _replacement(value: object, rules: Rules, where: str) -> str:
    """Return what stands for secrets, if that can be known again wherever it is."""
    text = value if isinstance(value, str) else ""
    if (
        len(text) > _LONGEST
        or not _BRACKETED.fullmatch(text)
        or not text.isprintable()
        or text.count(KIND) > 1
    ):
        raise InvalidError(
            f"{where}: redaction_replacement must be one line of 3 to {_LONGEST} characters in brackets",
            hint="e.g. [REDACTED], or <secret: {kind}> with the kind of secret in it",
        )
    filled = text.replace(KIND, "token")
    for line in (place.replace("□", filled) for place in _PLACES):
        if redact(line, rules.patterns, rules.allow).text != line:
            raise InvalidError(
                f"{where}: redaction_replacement looks like a secret itself",
                hint="e.g. [REDACTED], or <secret: {kind}> with the kind of secret in it",
            )
    return text


def _switch(value: object, where: str) -> bool:
    on = _SWITCH.get(value) if isinstance(value, (bool, str)) else None
    if on is None:
        raise InvalidError(
            f"{where}: redaction must be on or off, not {shown(value)}",
            hint="or say which kinds, e.g. {email: off}",
        )
    return on


def _kind(name: str, value: object, every: Iterable[SecretPattern], where: str) -> bool:
    """Whether a kind of secret is on; raise InvalidError if there is none of this name."""
    known = sorted({each.name for each in every})
    if name not in known:
        meant = nearest(str(name), known)
        raise InvalidError(
            f"{where}: redaction knows no kind of secret {shown(name)}",
            hint=f"perhaps {meant}" if meant else f"one of {', '.join(known)}",
        )
    return _switch(value, f"{where}: {name}")


def _patterns(value: object, where: str) -> tuple[SecretPattern, ...]:
    if isinstance(value, list):
        return tuple(_pattern("custom", source, where) for source in value)
    if isinstance(value, dict):
        return tuple(_pattern(name, source, where) for name, source in value.items())
    raise InvalidError(f"{where}: redaction_patterns must map names to regular expressions")


def _pattern(name: str, source: object, where: str) -> SecretPattern:
    if not isinstance(source, str):
        raise InvalidError(f"{where}: the pattern {name} must be text, not {shown(source)}")
    try:
        return compile_user_pattern(source, name)
    except ValueError as error:
        raise InvalidError(
            f"{where}: redaction_patterns, {name}: {error}",
            hint="a regular expression as Python has them, which fits no empty text",
        ) from None


def compile_user_pattern(source: str, name: str = "custom") -> SecretPattern:
    """Return the pattern of a user's regex, which may hold a group `secret`; raise ValueError."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"a pattern's name is lower case letters, digits, -: {name!r}")
    if len(source) > LONGEST:
        raise ValueError(f"the pattern is longer than {LONGEST:,} characters")
    try:
        bounded = Bounded(source, WRITING)
        fits_nothing = bounded.again().search("")
    except ValueError as error:
        raise ValueError(f"the pattern does not compile: {error}") from None
    except TimeoutError:
        raise ValueError("the pattern takes too long") from None
    if fits_nothing:
        raise ValueError("the pattern matches the empty text")
    return SecretPattern(name=name, source=source, bounded=bounded, shortest=1)
