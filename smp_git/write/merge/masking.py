"""Words that a redaction took out, and their removal from what meets it.

No replica may learn what was redacted, so what a redaction meets is compared with what
it shows: a word that was in a version which the redaction knew, and that it no longer
shows, is taken out. It errs towards taking out too much.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Final, NamedTuple

from smp_git.format import document
from smp_git.model.errors import InvalidError
from smp_git.model.ids import parse_id
from smp_git.model.memory import (
    COMMON_FIELDS,
    CONTESTED,
    FIXED,
    KINDS,
    VALUE,
    Memory,
    Value,
    check_fields,
)

MASK: Final = "[REDACTED]"

# Runs of letters and digits; what is between white space; nothing of a placeholder.
_PART: Final = re.compile(r"[^\W_]+|\ufffc")
_CHUNK: Final = re.compile(r"\S+")
_PLACEHOLDER: Final = re.compile(r"\[[A-Z][A-Z0-9_-]{2,40}(?::[A-Za-z0-9_.-]{1,40})?\]")
# Scripts that set no spaces between words are compared by pairs of characters.
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
# Means a placeholder: nothing is a neighbour of anything across one.
_BREAK: Final = "\ufffc"
# Shorter words are in many others by chance.
_TELLING: Final = 4
_LONG: Final = 32

Pair = tuple[str, str]


class Words(NamedTuple):
    """The words of some texts, and which of them are next to each other."""

    words: frozenset[str] = frozenset()
    pairs: frozenset[Pair] = frozenset()

    def __or__(self, other: Words) -> Words:
        return Words(self.words | other.words, self.pairs | other.pairs)

    def __and__(self, other: Words) -> Words:
        return Words(self.words & other.words, self.pairs & other.pairs)

    def __sub__(self, other: Words) -> Words:
        return Words(self.words - other.words, self.pairs - other.pairs)


NONE: Final = Words()


class _Token(NamedTuple):
    start: int
    end: int
    word: str


def _composed(text: str) -> str:
    """Return a text in which letters and their accents are one: so they are compared."""
    return unicodedata.normalize("NFKC", text)


def _folded(text: str) -> str:
    return _composed(text).casefold()


def _blanked(text: str) -> str:
    """Return a text of the same length with a mark that is no word where placeholders are."""
    return _PLACEHOLDER.sub(lambda match: f" {_BREAK}".ljust(len(match[0])), text)


def _parts(text: str) -> Iterator[_Token]:
    """Yield the words of a text in order: runs of letters and digits, pairs of characters."""
    for match in _PART.finditer(text):
        if not _UNSPACED.search(match[0]):
            yield _Token(match.start(), match.end(), _folded(match[0]))
            continue
        for at in range(match.start(), max(match.start() + 1, match.end() - 1)):
            end = min(at + 2, match.end())
            yield _Token(at, end, _folded(text[at:end]))


def _chunks(text: str) -> Iterator[_Token]:
    """Yield what is between white space and is more than one plain word."""
    for match in _CHUNK.finditer(text):
        if not _PART.fullmatch(match[0]) and _PART.search(match[0]):
            yield _Token(match.start(), match.end(), _folded(match[0]))


def words_of(text: str) -> Words:
    """Return the words of a text."""
    plain = _blanked(_composed(text))
    parts = [token.word for token in _parts(plain)]
    found = {*parts, *(token.word for token in _chunks(plain))} - {_BREAK}
    return Words(
        frozenset(found), frozenset(pair for pair in pairwise(parts) if _BREAK not in pair)
    )


def words_of_value(value: Value) -> Words:
    """Return the words of a value, of the keys of mappings too."""
    found = NONE
    for text in _texts(value):
        found |= words_of(text)
    return found


def _texts(value: Value) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def words_of_memory(memory: Memory) -> Words:
    """Return every word that a memory shows, contested values and names of fields included."""
    found = words_of(memory.content) | words_of(memory.agent)
    for tag in memory.tags:
        found |= words_of(tag)
    for name, value in memory.fields.items():
        found |= words_of_value(losses(value) if name == CONTESTED else value)
        if name not in _known_names(memory):
            found |= words_of(name)
    return found


def losses(contested: Value) -> Value:
    """Return the values that lost in earlier merges."""
    entries = contested if isinstance(contested, list) else []
    return [item["value"] for item in entries if isinstance(item, dict) and "value" in item]


def _known_names(memory: Memory) -> frozenset[str]:
    kind = KINDS[memory.kind]
    return frozenset((*kind.fields, *COMMON_FIELDS, kind.main, CONTESTED, "tags", "links", "agent"))


class Hidden:
    """Words that may not be shown, beside those that a redaction shows itself."""

    def __init__(self, known: Words, visible: Words) -> None:
        self._words = (known - visible).words
        # Of a pair with a hidden word that word alone is taken out.
        self._pairs = frozenset(
            pair for pair in (known - visible).pairs if self._words.isdisjoint(pair)
        )
        self._visible = visible.words

    def __bool__(self) -> bool:
        return bool(self._words or self._pairs)

    @cached_property
    def _telling(self) -> frozenset[str]:
        return frozenset(word for word in self._words if len(word) >= _TELLING)

    @cached_property
    def _within(self) -> frozenset[str]:
        """Everything of at least four characters that is in a hidden word."""
        short = (word for word in self._telling if len(word) <= _LONG)
        return frozenset(
            word[start:end]
            for word in short
            for start in range(len(word))
            for end in range(start + _TELLING, len(word) + 1)
        )

    @cached_property
    def _long(self) -> str:
        return "\0".join(word for word in self._telling if len(word) > _LONG)

    def is_hidden(self, word: str) -> bool:
        """Whether a word may not be shown: it is hidden, holds a hidden one, or is in one."""
        if word in self._words:
            return True
        if word in self._visible or len(word) < _TELLING:
            return False
        return word in self._within or word in self._long or self._holds(word)

    def _holds(self, word: str) -> bool:
        if len(word) > _LONG * 2:
            return any(each in word for each in self._telling)
        return any(
            word[start:end] in self._telling
            for start in range(len(word))
            for end in range(start + _TELLING, len(word) + 1)
        )

    def masked(self, text: str) -> str:
        """Return a text without what may not be shown."""
        plain = _composed(text)
        spans = list(self._spans(_blanked(plain)))
        if not spans:
            return text
        text = plain
        out: list[str] = []
        at = 0
        for start, end in _united(spans, text):
            out += [text[at:start], MASK]
            at = end
        return "".join((*out, text[at:]))

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        parts = list(_parts(text))
        for token in parts:
            if token.word != _BREAK and self.is_hidden(token.word):
                yield token.start, token.end
        for token in _chunks(text):
            if token.word in self._words:
                yield token.start, token.end
        for left, right in pairwise(parts):
            if (left.word, right.word) in self._pairs:
                yield left.start, right.end

    def value(self, value: Value) -> Value:
        """Return a value without what may not be shown."""
        if isinstance(value, str):
            return self.masked(value)
        if isinstance(value, dict):
            return {self.masked(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if value is None or isinstance(value, bool):
            return value
        masked = self.masked(str(value))
        return value if masked == str(value) else masked

    def tags(self, tags: Iterable[str]) -> tuple[str, ...]:
        """Return the tags that show nothing hidden."""
        return tuple(tag for tag in tags if self.masked(tag) == tag)

    def _contested(self, contested: Value) -> Value:
        entries = contested if isinstance(contested, list) else []
        return [
            {**item, "value": self.value(item["value"])} if "value" in item else item
            for item in entries
            if isinstance(item, dict)
        ]

    def memory(self, memory: Memory) -> Memory:
        """Return a memory without what may not be shown; a field that is not valid then goes."""
        known = _known_names(memory)
        fixed = FIXED if memory.kind == VALUE else ()
        kept = {
            name: value
            if name in fixed
            else self._contested(value)
            if name == CONTESTED
            else self.value(value)
            for name, value in memory.fields.items()
            if name in known or self.masked(name) == name
        }
        agent = memory.agent if self.masked(memory.agent) == memory.agent else "redacted"
        content = self.masked(memory.content)
        return remade(replace(memory, agent=agent, tags=self.tags(memory.tags)), content, kept)


def remade(memory: Memory, content: str, fields: dict[str, Value]) -> Memory:
    """Return a memory with another text and fields; a field that is not valid goes."""
    place = parse_id(memory.id)
    valid = {name: value for name, value in fields.items() if _is_valid(memory, name, value)}
    checked = check_fields(place.kind, valid)
    return replace(
        memory,
        content=content,
        title=document.title(place, content, checked),
        fields=MappingProxyType(checked),
    )


def _is_valid(memory: Memory, name: str, value: Value) -> bool:
    try:
        check_fields(parse_id(memory.id).kind, {name: value})
    except InvalidError:
        return False
    return True


def _united(spans: Iterable[tuple[int, int]], text: str) -> Iterator[tuple[int, int]]:
    """Yield spans in order, those that touch or have only spaces between them as one."""
    current: tuple[int, int] | None = None
    for start, end in sorted(spans):
        if current is not None and (start <= current[1] or not text[current[1] : start].strip()):
            current = current[0], max(current[1], end)
            continue
        if current is not None:
            yield current
        current = start, end
    if current is not None:
        yield current


def replaced(value: Value, change: Callable[[str], str]) -> Value:
    """Return a value with every text in it changed, keys of mappings included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): replaced(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [replaced(item, change) for item in value]
    return value
