"""Redaction: secrets replaced in a text or a nested value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

from smp_git.model.errors import InvalidError
from smp_git.model.regexes import Bounded
from smp_git.model.secrets import REPLACEMENT
from smp_git.model.secrets.assignments import SecretKind, is_secret_value, kind_of_key
from smp_git.model.secrets.evidence import LONG_WORD, SecretPattern
from smp_git.model.secrets.patterns import PATTERNS

KIND: Final = "{kind}"
# What is passed through unread: placeholders, so that a redacted text stays as it
# is, and what is long and random by nature: images, certificates and public keys.
_OPAQUE: Final = r"""
    ( \[REDACTED(?::[a-z0-9-]{1,64})?\]
    | %s
    | data:(?:image|font|audio|video)/[\w.+-]{1,64}(?:;[\w=.-]{1,64}){0,4};base64,[\w+/=-]*+
    | -----BEGIN[ ](?:[A-Z0-9]{1,20}[ ]){0,3}(?:CERTIFICATE|PUBLIC[ ]KEY)-----[\w+/=\s\\]*+
    )
    """
# Signs that nobody sees, between two that belong to a token or a word of this alphabet.
_INVISIBLE: Final = re.compile(
    r"(?<=[!-~])[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]+(?=[!-~])"
)
# A cut changes what is beside the rest, so a text is searched until nothing is
# found; two passes do for all but hostile texts, which must not buy more than this.
MAX_PASSES = 4
# The part of a line that a pattern sees at once if it is the user's: a quadratic one
# would else use up its time on a line of 20,000 characters, and refuse what can be written.
MAX_LINE = 512
_LINE = re.compile(
    rf"[^\n]{{0,{MAX_LINE}}}(?:\n|\Z)|[^\n]{{0,{MAX_LINE - 1}}}\s|[^\n]{{1,{MAX_LINE}}}"
)


# Each match, and where the part of the text begins that it is of.
_Matches: TypeAlias = "Iterator[tuple[int, re.Match[str]]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSecrets:
    """The number of secrets of one kind that were replaced."""

    name: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """A text without its secrets, and a report that does not repeat them."""

    text: str
    found: tuple[FoundSecrets, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactedValue:
    """A nested value without its secrets, and a report that does not repeat them."""

    value: object
    found: tuple[FoundSecrets, ...]


@cache
def _opaque(replacement: str) -> re.Pattern[str]:
    """Return what is passed through unread where `replacement` stands for secrets."""
    own = re.escape(replacement).replace(re.escape(KIND), "[a-z0-9-]{1,64}")
    return re.compile(_OPAQUE % own, re.VERBOSE | re.ASCII)


def redact(
    text: str,
    patterns: Sequence[SecretPattern] = PATTERNS,
    allow: Collection[str] = (),
    replacement: str = REPLACEMENT,
) -> Redacted:
    """Return `text` with every secret replaced by a placeholder, e.g. `[REDACTED:jwt]`.

    Redacting a redacted text changes nothing. A secret equal to one of `allow` stays.
    """
    task = _Task(patterns, allow, replacement)
    text = task.redact(text)
    return Redacted(text=text, found=_report(task.counts))


def redact_value(
    value: object,
    patterns: Sequence[SecretPattern] = PATTERNS,
    allow: Collection[str] = (),
    replacement: str = REPLACEMENT,
) -> RedactedValue:
    """Return `value` with every secret in its strings replaced, in keys of mappings too.

    Mappings and sequences are walked, anything else stays. A string under a key
    such as `password` or `api_key` counts as assigned to it, and so does the value
    beside a name: `{"name": "DB_PASSWORD", "value": …}`.
    """
    task = _Task(patterns, allow, replacement)
    cleaned = task.visit(value)
    return RedactedValue(value=cleaned, found=_report(task.counts))


class _Task:
    """One search of a text, or walk through a nested value, and what it has found."""

    def __init__(
        self, patterns: Sequence[SecretPattern], allow: Collection[str], replacement: str
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._patterns = patterns
        self._allow = allow
        self._replacement = replacement
        self._opaque = _opaque(replacement)
        self._known: dict[tuple[str, str], list[int]] = {}
        # The time that the user's patterns have left.
        self._bounded: dict[str, Bounded] = {}

    def redact(self, text: str) -> str:
        """Return a text without secrets, also those with invisible characters in them."""
        if _INVISIBLE.search(text):
            text = self._searched_through(text)
        return self._searched(text)

    def _searched_through(self, text: str) -> str:
        """Return a text without its invisible characters if secrets turn up where they were."""
        bare = _Task(self._patterns, self._allow, self._replacement)
        told = _Task(self._patterns, self._allow, self._replacement)
        bare._bounded = told._bounded = self._bounded
        bare._searched(_INVISIBLE.sub("", text))
        told._searched(text)
        return _INVISIBLE.sub("", text) if bare.counts.total() > told.counts.total() else text

    def _searched(self, text: str) -> str:
        for _ in range(MAX_PASSES):
            total = self.counts.total()
            text = self._pass(text)
            if self.counts.total() == total:
                break
        return text

    def visit(self, value: object) -> object:
        """Return a value without secrets."""
        match value:
            case str():
                return self.redact(value)
            case Mapping():
                return self._visit_mapping(value)
            case tuple():
                return tuple(self.visit(item) for item in value)
            case bytes() | bytearray() | memoryview():
                return value
            case Sequence():
                return [self.visit(item) for item in value]
            case _:
                return value

    def _visit_mapping(self, value: Mapping[object, object]) -> dict[object, object]:
        named = next((value[name] for name in _NAMES if isinstance(value.get(name), str)), None)
        out: dict[object, object] = {}
        for key, item in value.items():
            kind = _kind(key) or (_kind(named) if key in _VALUES else None)
            cleaned = self._assigned(self.visit(item), kind)
            out[self._visit_key(key, out)] = cleaned
        return out

    def _visit_key(self, key: object, taken: Mapping[object, object]) -> object:
        """Return a key without secrets; two that become the same are told apart."""
        if not isinstance(key, str):
            return key
        new = cleaned = self.redact(key)
        number = 1
        while new != key and new in taken:
            number += 1
            new = f"{cleaned} {number}"
        return new

    def _assigned(self, value: object, kind: SecretKind | None) -> object:
        """Return what is assigned to a key of `kind`, replaced where it is a secret."""
        if kind is None:
            return value
        if isinstance(value, list | tuple):
            return type(value)(self._assigned(item, kind) for item in value)
        if isinstance(value, dict):
            return {
                key: self._assigned(item, kind) if key in _VALUES else item
                for key, item in value.items()
            }
        if not isinstance(value, str) or value in self._allow:
            return value
        known = any(pattern.name == kind.value for pattern in self._patterns)
        if not known or self._opaque.search(value) or not is_secret_value(kind, value):
            return value
        self.counts[kind.value] += 1
        return self._placeholder(kind.value)

    def _placeholder(self, kind: str) -> str:
        return self._replacement.replace(KIND, kind)

    def _pass(self, text: str) -> str:
        """Search `text` once with each pattern.

        The pieces alternate between plain text (even) and what is not read (odd); a
        pattern sees each plain piece as if it were the whole text.
        """
        self._known.clear()
        pieces = self._opaque.split(text)
        for pattern in _wanted(self._patterns, pieces):
            cut: list[str] = []
            # Where a text repeats itself, so do its pieces.
            clean: set[str] = set()
            for place, piece in enumerate(pieces):
                start = None if place % 2 or piece in clean else _first_hit(piece, pattern)
                if start is None:
                    cut.append(piece)
                    continue
                found = self._cut(piece, start, pattern)
                if len(found) == 1:
                    clean.add(piece)
                cut.extend(found)
            self.counts[pattern.name] += (len(cut) - len(pieces)) // 2
            pieces = cut
        return "".join(pieces)

    def _cut(self, text: str, start: int, pattern: SecretPattern) -> list[str]:
        """Return plain text and placeholders in turn, plain text first and last."""
        pieces: list[str] = []
        end = 0
        group, found = self._matches(text, start, pattern)
        for offset, match in found:
            first, last = match.span(group)
            if first == last or offset + first < end or match[group] in self._allow:
                continue
            if pattern.accepts is None or pattern.accepts(match):
                pieces += (text[end : offset + first], self._placeholder(pattern.name))
                end = offset + last
        pieces.append(text[end:])
        return pieces

    def _matches(self, text: str, start: int, pattern: SecretPattern) -> tuple[str | int, _Matches]:
        """Return the group that is the secret, and each match with what to add to its places."""
        if pattern.bounded:
            bounded = self._bounded.setdefault(pattern.source, pattern.bounded.again())
            group = _group(bounded.groups)
            return group, _by_line(text, bounded, group, pattern.name)
        found: _Matches
        if pattern.anchors:
            found = self._anchored(text, pattern)
        else:
            found = ((0, match) for match in pattern.regex.finditer(text, start))
        return _group(pattern.regex.groupindex), found

    def _anchored(self, text: str, pattern: SecretPattern) -> _Matches:
        """Yield each match at an anchor, which is found faster than a regex finds it."""
        folded = text.lower()
        if len(folded) != len(text):
            for match in pattern.regex.finditer(text):
                yield 0, match
            return
        end = 0
        places = [place for each in pattern.anchors for place in self._places(folded, each)]
        for place in sorted(places) if len(places) > 1 else places:
            found = pattern.regex.match(text, place) if place >= end else None
            if found:
                yield 0, found
                end = found.end()

    def _places(self, text: str, anchor: str) -> list[int]:
        """Return where `anchor` is; many patterns ask for the same ones."""
        known = self._known.get((text, anchor))
        if known is None:
            known = self._known[text, anchor] = _places(text, anchor)
        return known


# Keys of a mapping that name what is under another of its keys.
_NAMES: Final = ("name", "key", "variable", "field")
_VALUES: Final = ("value", "default", "current", "new", "old", "plain", "prod", "dev", "staging")


def _kind(key: object) -> SecretKind | None:
    return kind_of_key(key) if isinstance(key, str) else None


def _wanted(patterns: Sequence[SecretPattern], pieces: Sequence[str]) -> Iterator[SecretPattern]:
    """Yield the patterns whose keywords are in the plain pieces of a text."""
    folded = "\n".join(pieces[::2]).lower()
    # Most words of a text are in it more than once, and few are as long as a token.
    words = set(folded.split())
    vocabulary = "\n".join(words)
    tokens = "\n".join([word for word in words if len(word) >= LONG_WORD])
    for pattern in patterns:
        if pattern.keywords:
            seen = tokens if pattern.is_token else vocabulary
            for word in pattern.keywords:
                if word in seen:
                    break
            else:
                continue
        if pattern.phrases and not any(phrase in folded for phrase in pattern.phrases):
            continue
        yield pattern


def _first_hit(text: str, pattern: SecretPattern) -> int | None:
    """Return where `pattern` is to start on `text`, None if it finds nothing there."""
    if len(text) < pattern.shortest:
        return None
    if pattern.bounded or pattern.anchors:
        return 0
    match = pattern.regex.search(text)
    return match.start() if match else None


def _group(groups: Container[str]) -> str | int:
    return "secret" if "secret" in groups else 0


def _by_line(text: str, pattern: Bounded, group: str | int, name: str) -> _Matches:
    try:
        for line in _LINE.finditer(text):
            # A pattern may search backwards, or find its secret ahead.
            for match in sorted(pattern.matches(line[0]), key=lambda each: each.start(group)):
                yield line.start(), match
    except TimeoutError:
        raise InvalidError(
            f"the redaction pattern {name} takes too long on this text, so nothing was written",
            hint="write it without nested repetitions, in redaction_patterns",
        ) from None


def _places(text: str, word: str) -> list[int]:
    places = []
    place = text.find(word)
    while place >= 0:
        places.append(place)
        place = text.find(word, place + 1)
    return places


def _report(counts: Counter[str]) -> tuple[FoundSecrets, ...]:
    return tuple(
        FoundSecrets(name=name, count=count) for name, count in sorted(counts.items()) if count
    )
