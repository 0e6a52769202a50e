"""The text or pattern of a redaction, in every form, and a memory without it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from smp_git.format import document
from smp_git.model.errors import InvalidError, InvalidFileError, RefusedError
from smp_git.model.ids import parse_id
from smp_git.model.memory import (
    COMMENTS,
    COMMON_FIELDS,
    CONTESTED,
    VALUE,
    Memory,
    Value,
    agent_name,
)
from smp_git.model.regexes import REDACTING, Bounded
from smp_git.write.merge.masking import remade

# A replacement beside what stays may give the text again, as "ab" taken out of "aabb" does.
_MOST_ROUNDS: Final = 64
_BREAK: Final = re.compile(r"\r\n|\r|\n")
_ESCAPE: Final = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|(.))", re.DOTALL
)
_ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "0": "\0"}
_INDENT: Final = re.compile(r"[ \t]*\r?\n[ \t]*(?:[#>*|+-][ \t]+)*")
_WIDE: Final = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_HIGHEST: Final = 0x10FFFF
_T = TypeVar("_T")


class Wanted:
    """One text or compiled pattern; every answer takes its time from one limit."""

    def __init__(self, pattern: str | re.Pattern[str]) -> None:
        self._plain = pattern if isinstance(pattern, str) else None
        self._bounded = _bounded(pattern)
        # For what is in a file, where the lines of a text may be set in.
        self._loose = _loose(pattern) or self._bounded
        plain = self._plain or ""
        # Only where nothing in the text is ever written in another way.
        self._is_simple = (
            bool(plain)
            and plain.isascii()
            and plain.isprintable()
            and not set(plain) & set("\"'\\")
        )
        if self._plain == "" or self.fits(""):
            raise InvalidError("what is to be redacted is empty, or fits an empty text")

    def fits(self, text: str) -> bool:
        """Whether it is in a text, composed or decomposed."""
        return any(self._search(form) for form in _composed(text))

    def replace(self, text: str, replacement: str) -> str:
        """Return a text without it; raise InvalidError if the replacement brings it back.

        What a pattern fits is replaced once: beside what stays it may fit again, which is
        for whoever wrote it to judge.
        """
        for _ in range(_MOST_ROUNDS):
            form = next((form for form in _composed(text) if self._search(form)), None)
            if form is None:
                return text
            text = _timed(partial(self._bounded.replace, form, replacement))
            if self._plain is None:
                return text
        raise InvalidError(
            "the replacement contains the text to be removed", hint="choose another replacement"
        )

    def holds(self, value: Value) -> bool:
        """Whether it is in a value, its keys, or a number as it is written."""
        if isinstance(value, dict):
            return any(self.fits(key) or self.holds(item) for key, item in value.items())
        if isinstance(value, list):
            return any(map(self.holds, value))
        return value is not None and not isinstance(value, bool) and self.fits(str(value))

    def is_in(self, data: bytes) -> bool:
        """Whether it is in the bytes of a file, quoted, escaped or set in."""
        if self._is_simple:
            assert self._plain is not None  # noqa: S101 - only a plain text is simple
            return self._plain.encode() in data or (data[:2] in _WIDE and self.fits(_decoded(data)))
        return _timed(
            lambda: any(
                each.search(form)
                for form in _forms(_decoded(data))
                for each in {self._bounded, self._loose}
            )
        )

    def count(self, data: bytes) -> int:
        """Return how often it is in the bytes of a file."""
        return _timed(
            lambda: max(
                each.count(form)
                for form in _forms(_decoded(data))
                for each in {self._bounded, self._loose}
            )
        )

    def _search(self, text: str) -> bool:
        return _timed(lambda: self._bounded.search(text))


def _timed(call: Callable[[], _T]) -> _T:
    try:
        return call()
    except TimeoutError:
        raise InvalidError(
            "the pattern takes too long, so nothing was redacted",
            hint="write it without nested repetitions, or name the text itself",
        ) from None


def _loose(pattern: str | re.Pattern[str]) -> Bounded | None:
    """Return the pattern of several lines without what sets them in."""
    if isinstance(pattern, str) and _BREAK.search(pattern):
        return _bounded(_INDENT.sub("\n", _BREAK.sub("\n", pattern)))
    return None


def _bounded(pattern: str | re.Pattern[str]) -> Bounded:
    if isinstance(pattern, str):
        lines = _BREAK.split(unicodedata.normalize("NFC", pattern))
        return Bounded(r"\r?\n".join(map(re.escape, lines)), REDACTING)
    if not isinstance(pattern.pattern, str):
        raise InvalidError("a pattern is of text, not of bytes")
    try:
        return Bounded(pattern.pattern, REDACTING, pattern.flags)
    except ValueError as error:
        raise InvalidError(f"not a regular expression: {error}") from None


def _decoded(data: bytes) -> str:
    return data.decode(_WIDE.get(data[:2], "utf-8"), "replace")


def _composed(text: str) -> Iterator[str]:
    """Yield a text as it is, and composed and decomposed where that is something else."""
    yield text
    if not text.isascii():
        yield from {unicodedata.normalize(form, text) for form in ("NFC", "NFD")} - {text}


def _forms(text: str) -> Iterator[str]:
    """Yield what a file says: as it is, with its lines not set in, with its escapes undone."""
    found = {text: None}
    if "\\" in text:
        found[_joined(_ESCAPE.sub(_unescaped, text))] = None
    if "''" in text:
        found[text.replace("''", "'")] = None
    for each in (*found, *(_INDENT.sub("\n", each) for each in found)):
        yield from _composed(each)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code:
        return chr(min(int(code, 16), _HIGHEST))
    return _ESCAPED.get(match[4], match[4])


def _joined(text: str) -> str:
    """Return a text whose pairs of surrogates are one character, as JSON means them."""
    if text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# Names for an agent whose own name goes; the first that does not hold the text itself.
_AGENTS: Final = ("redacted", "somebody", "agent-x", "n-n")
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_.-]")
_LONGEST_NAME: Final = 64
_LONGEST_KEY: Final = 128
_OF_EVERY_MEMORY: Final = (CONTESTED, COMMENTS, "tags", "links", "agent")


def holds(wanted: Wanted, data: bytes, path: str) -> bool:
    """Whether a version of a memory's file holds a text that can be taken out of it.

    An id and the words of the format stay, whatever is looked for.
    """
    try:
        memory = document.decode(data, path)
    except InvalidFileError:
        return wanted.is_in(data)
    return in_values(wanted, memory) or in_comments(wanted, data, memory)


def in_values(wanted: Wanted, memory: Memory) -> bool:
    """Whether what a memory says holds the text."""
    said = [memory.content, memory.agent, *memory.tags, *(" ".join(link) for link in memory.links)]
    own = _own(memory)
    return any(map(wanted.fits, said)) or any(
        _is_lost_text(wanted, value, own)
        if name == CONTESTED
        else wanted.holds(value) or (name not in own and wanted.fits(name))
        for name, value in memory.fields.items()
    )


def in_comments(wanted: Wanted, data: bytes, memory: Memory) -> bool:
    """Whether a file holds the text more often than what it says does."""
    return wanted.is_in(data) and wanted.count(data) > wanted.count(document.encode(memory))


def cleared(wanted: Wanted, memory: Memory, replacement: str) -> Memory:
    """Return a memory without the text; raise InvalidError if nothing would be left of it."""
    place = parse_id(memory.id)
    refuse_key(wanted, memory)
    names = _renamed(wanted, memory, replacement)
    fields: dict[str, Value] = {}
    for name, value in memory.fields.items():
        if name == CONTESTED:
            fields[name] = _lost(
                wanted, value, {each: each for each in _own(memory)} | names, replacement
            )
        else:
            fields[names[name]] = _value(wanted, value, replacement)
    content = document.check_content(place.kind, wanted.replace(memory.content, replacement))
    return replace(
        remade(memory, content, fields),
        agent=agent_without(wanted, memory.agent),
        tags=tuple(tag for tag in memory.tags if not wanted.fits(tag)),
        links=tuple(link for link in memory.links if not wanted.fits(" ".join(link))),
    )


def refuse_key(wanted: Wanted, memory: Memory) -> None:
    """Raise RefusedError if the key of a value holds the text: its id is made of it."""
    if memory.kind == VALUE and wanted.holds(memory.fields["key"]):
        raise RefusedError(
            f"the key of {memory.id} holds the text, and a key stays as it is",
            hint=f"smp delete {memory.id} --purge takes the value out; then redact once more",
        )


def agent_without(wanted: Wanted, agent: str) -> str:
    """Return an agent's name, another one if it holds the text."""
    if not wanted.fits(agent):
        return agent_name(agent)
    return next((name for name in _AGENTS if not wanted.fits(name)), _AGENTS[-1])


def file_of(wanted: Wanted, data: bytes, old: Memory, new: Memory) -> bytes:
    """Return the file of `new` as a person wrote that of `old`, without comments that hold the text."""
    kept = document.edited(data, old, new)
    has_comment = in_comments(wanted, kept, document.decode(kept, new.path))
    return document.encode(new) if has_comment else kept


def _own(memory: Memory) -> frozenset[str]:
    """Return the names of fields that the format gives, which are nobody's text."""
    kind = parse_id(memory.id).kind
    return frozenset((*kind.fields, *COMMON_FIELDS, *_OF_EVERY_MEMORY, kind.main))


def _renamed(wanted: Wanted, memory: Memory, replacement: str) -> dict[str, str]:
    """Return the new name of each field; no two become one."""
    own, names = _own(memory), dict[str, str]()
    for name in memory.fields:
        if name in own or not wanted.fits(name):
            names[name] = name
    for name in memory.fields:
        if name not in names:
            plain = _NO_NAME.sub("_", f"x{wanted.replace(name, replacement)}")[:_LONGEST_NAME]
            names[name] = _free(plain, {*names.values(), *memory.fields}, _LONGEST_NAME)
            if wanted.fits(names[name]):
                raise InvalidError(
                    "the replacement contains the text to be removed, as the name of a field",
                    hint="choose another replacement",
                )
    return names


def _free(name: str, taken: Container[str], longest: int) -> str:
    """Return a name that nothing has yet: itself, or with a number."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name[: longest - len(str(number)) - 1]}_{number}"
    return found


def _value(wanted: Wanted, value: Value, replacement: str) -> Value:
    if isinstance(value, str):
        return wanted.replace(value, replacement)
    if isinstance(value, dict):
        return _mapping(wanted, value, replacement)
    if isinstance(value, list):
        return [_value(wanted, item, replacement) for item in value]
    return replacement if wanted.holds(value) else value


def _mapping(wanted: Wanted, value: Mapping[str, Value], replacement: str) -> dict[str, Value]:
    """Return a mapping without the text; no two keys become one."""
    found: dict[str, Value] = {}
    for key, item in value.items():
        name = wanted.replace(key, replacement)[:_LONGEST_KEY] if wanted.fits(key) else key
        if name != key:
            name = _free(name or "_", {*found, *value}, _LONGEST_KEY)
        found[name] = _value(wanted, item, replacement)
    return found


def _is_lost_text(wanted: Wanted, value: Value, own: Container[str]) -> bool:
    """Whether a value that lost in a merge, or the field that it is of, holds the text."""
    items = value if isinstance(value, list) else []
    return any(
        wanted.holds(item.get("value"))
        or (item.get("field") not in own and wanted.fits(str(item.get("field"))))
        for item in items
        if isinstance(item, dict)
    )


def _lost(wanted: Wanted, value: Value, names: Mapping[str, str], replacement: str) -> Value:
    """Return the values that lost in a merge without the text, under the new names of fields."""
    items = value if isinstance(value, list) else []
    found: list[Value] = []
    for item in items:
        if isinstance(item, dict):
            field = str(item.get("field"))
            kept = {**item, "field": names.get(field, wanted.replace(field, replacement))}
            if "value" in item:
                kept["value"] = _value(wanted, item["value"], replacement)
            found.append(kept)
    return found
