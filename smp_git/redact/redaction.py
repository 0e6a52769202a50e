"""How secrets are replaced in a text or a nested value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from smp_git.redact.assignment import is_secret_value, kind_of_key
from smp_git.redact.pattern import LONG_WORD, Pattern
from smp_git.redact.patterns import PATTERNS

# What is passed through unread: placeholders, so that a redacted text stays as it
# is, and what is long and random by nature: images, certificates and public keys.
_OPAQUE = re.compile(
    r"""
    ( \[REDACTED(?::[a-z0-9-]{1,64})?\]
    | data:(?:image|font|audio|video)/[\w.+-]{1,64}(?:;[\w=.-]{1,64}){0,4};base64,[\w+/=-]*+
    | -----BEGIN[ ](?:[A-Z0-9]{1,20}[ ]){0,3}(?:CERTIFICATE|PUBLIC[ ]KEY)-----[\w+/=\s\\]*+
    )
    """,
    re.VERBOSE | re.ASCII,
)
# A cut changes what stands beside the rest, so a text is searched until nothing is
# found; two passes do for all but hostile texts, which must not buy more than this.
MAX_PASSES = 4
# The part of a line that a pattern sees at once if it is the user's: what bounds the
# quadratic time such a pattern may take.
MAX_LINE = 512
_LINE = re.compile(
    rf"[^\n]{{0,{MAX_LINE}}}(?:\n|\Z)|[^\n]{{0,{MAX_LINE - 1}}}\s|[^\n]{{1,{MAX_LINE}}}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How many secrets of one kind were replaced."""

    name: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """A text without its secrets, and a report that does not repeat them."""

    text: str
    found: tuple[Found, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactedValue:
    """A nested value without its secrets, and a report that does not repeat them."""

    value: object
    found: tuple[Found, ...]


def redact(
    text: str, patterns: Sequence[Pattern] = PATTERNS, allow: Collection[str] = ()
) -> Redacted:
    """Return `text` with every secret replaced by a placeholder such as `[REDACTED:jwt]`.

    Redacting a redacted text changes nothing. A secret equal to one of `allow` stays.
    """
    counts: Counter[str] = Counter()
    text = _redact(text, patterns, allow, counts)
    return Redacted(text=text, found=_report(counts))


def redact_value(
    value: object, patterns: Sequence[Pattern] = PATTERNS, allow: Collection[str] = ()
) -> RedactedValue:
    """Return `value` with every secret in its strings replaced; keys stay.

    Mappings and sequences are walked, anything else stays. A string under a key
    such as `password` or `api_key` counts as assigned to it.
    """
    counts: Counter[str] = Counter()
    cleaned = _Walk(patterns=patterns, allow=allow, counts=counts).visit(value)
    return RedactedValue(value=cleaned, found=_report(counts))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    """One walk through a nested value."""

    patterns: Sequence[Pattern]
    allow: Collection[str]
    counts: Counter[str]

    def visit(self, value: object) -> object:
        match value:
            case str():
                return _redact(value, self.patterns, self.allow, self.counts)
            case Mapping():
                return {key: self._visit_item(key, item) for key, item in value.items()}
            case tuple():
                return tuple(self.visit(item) for item in value)
            case bytes() | bytearray() | memoryview():
                return value
            case Sequence():
                return [self.visit(item) for item in value]
            case _:
                return value

    def _visit_item(self, key: object, value: object) -> object:
        cleaned = self.visit(value)
        kind = kind_of_key(key) if isinstance(key, str) else None
        if kind is None or not isinstance(cleaned, str) or cleaned in self.allow:
            return cleaned
        known = any(pattern.name == kind.value for pattern in self.patterns)
        if not known or _OPAQUE.search(cleaned) or not is_secret_value(kind, cleaned):
            return cleaned
        self.counts[kind.value] += 1
        return f"[REDACTED:{kind.value}]"


def _redact(
    text: str,
    patterns: Sequence[Pattern],
    allow: Collection[str],
    counts: Counter[str],
) -> str:
    for _ in range(MAX_PASSES):
        total = counts.total()
        text = _pass(text, patterns, allow, counts)
        if counts.total() == total:
            break
    return text


def _pass(
    text: str,
    patterns: Sequence[Pattern],
    allow: Collection[str],
    counts: Counter[str],
) -> str:
    """Search `text` once with each pattern.

    The pieces alternate between plain text (even) and what is not read (odd); a
    pattern sees each plain piece as if it were the whole text.
    """
    pieces = _OPAQUE.split(text)
    folded = "\n".join(pieces[::2]).lower()
    # Most words of a text stand in it more than once, and few are as long as a token.
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
        cut: list[str] = []
        for place, piece in enumerate(pieces):
            start = None if place % 2 else _first_hit(piece, pattern)
            if start is None:
                cut.append(piece)
            else:
                cut.extend(_cut(piece, start, pattern, allow))
        counts[pattern.name] += (len(cut) - len(pieces)) // 2
        pieces = cut
    return "".join(pieces)


def _first_hit(text: str, pattern: Pattern) -> int | None:
    """Return where `pattern` is to start on `text`, None if it finds nothing there."""
    if len(text) < pattern.shortest:
        return None
    if pattern.by_line or pattern.anchors:
        return 0
    match = pattern.regex.search(text)
    return match.start() if match else None


def _cut(text: str, start: int, pattern: Pattern, allow: Collection[str]) -> list[str]:
    """Return plain text and placeholders in turn, plain text first and last."""
    pieces: list[str] = []
    end = 0
    group = "secret" if "secret" in pattern.regex.groupindex else 0
    for offset, match in _matches(text, start, pattern):
        first, last = match.span(group)
        if first == last or match[group] in allow:
            continue
        if pattern.accepts is None or pattern.accepts(match):
            pieces += (text[end : offset + first], pattern.placeholder)
            end = offset + last
    pieces.append(text[end:])
    return pieces


def _matches(text: str, start: int, pattern: Pattern) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield each match of `pattern`, with what to add to its positions."""
    if pattern.anchors:
        yield from _anchored(text, pattern)
        return
    if not pattern.by_line:
        for match in pattern.regex.finditer(text, start):
            yield 0, match
        return
    for line in _LINE.finditer(text):
        for match in pattern.regex.finditer(line[0]):
            yield line.start(), match


def _anchored(text: str, pattern: Pattern) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield each match that begins at an anchor, which is found faster than a regex finds it."""
    folded = text.lower()
    if len(folded) != len(text):
        for match in pattern.regex.finditer(text):
            yield 0, match
        return
    end = 0
    for place in _places(folded, pattern.anchors):
        found = pattern.regex.match(text, place) if place >= end else None
        if found:
            yield 0, found
            end = found.end()


def _places(text: str, anchors: Sequence[str]) -> list[int]:
    """Return where any of `anchors` stands."""
    places = []
    for anchor in anchors:
        place = text.find(anchor)
        while place >= 0:
            places.append(place)
            place = text.find(anchor, place + 1)
    return sorted(places)


def _report(counts: Counter[str]) -> tuple[Found, ...]:
    return tuple(Found(name=name, count=count) for name, count in sorted(counts.items()) if count)
