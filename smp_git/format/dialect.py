"""The YAML that this program writes, and a fast reader for exactly that."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from smp_git.model.memory import MAX_DEPTH, Value

LINE_WIDTH: Final = 80

_PLAIN = re.compile(r"[A-Za-z](?:[A-Za-z0-9 _./@+()'-]*[A-Za-z0-9_./@+()'-])?")
# Words that YAML 1.1 or 1.2 readers resolve to something other than text.
_RESOLVED: Final = frozenset(
    ("y", "yes", "n", "no", "on", "off", "true", "false", "null", "nan", "inf")
)
# Not printable in YAML, or taken for a line break by some reader, or lost by one.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_UNFIT_FOR_BLOCK = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_FRACTION = re.compile(r"-?[0-9]+\.[0-9]+(?:e[-+][0-9]+)?")
_CONSTANTS: Final[Mapping[str, Value]] = {
    "true": True,
    "false": False,
    "null": None,
    "{}": {},
    "[]": [],
}


class NotDialectError(ValueError):
    """The text is not in the dialect; a general YAML reader must decide."""


def quote(text: str) -> str:
    """Return `text` as a JSON string that every YAML reader reads alike."""
    return escape(json.dumps(text, ensure_ascii=False))


def escape(json_text: str) -> str:
    """Return JSON with the characters escaped that some YAML reader would not keep."""
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", json_text)


def write(value: Mapping[str, Value]) -> str:
    """Return the mapping in the dialect; the same value gives the same text."""
    return "".join(_mapping(value, 0)) if value else "{}\n"


def _mapping(value: Mapping[str, Value], depth: int) -> Iterator[str]:
    pad = "  " * depth
    for key, item in value.items():
        yield f"{pad}{_key(key)}:"
        yield from _item(item, depth)


def _item(item: Value, depth: int) -> Iterator[str]:
    if isinstance(item, dict) and item:
        yield "\n"
        yield from _mapping(item, depth + 1)
    elif isinstance(item, list) and item:
        yield "\n"
        yield from _sequence(item, depth)
    elif isinstance(item, str) and _fits_block(item):
        yield _block(item, depth + 1)
    else:
        yield f" {_scalar(item)}\n"


def _sequence(value: list[Value], depth: int) -> Iterator[str]:
    pad = "  " * depth
    for item in value:
        if isinstance(item, dict) and item:
            yield f"{pad}- " + "".join(_mapping(item, depth + 1))[len(pad) + 2 :]
        elif isinstance(item, list) and item:
            yield f"{pad}- " + "".join(_sequence(item, depth + 1))[len(pad) + 2 :]
        elif isinstance(item, str) and _fits_block(item):
            yield f"{pad}-{_block(item, depth + 1)}"
        else:
            yield f"{pad}- {_scalar(item)}\n"


@lru_cache(maxsize=1024)
def _key(key: str) -> str:
    return key if _is_plain(key) else quote(key)


def _is_plain(text: str) -> bool:
    return (
        len(text) <= LINE_WIDTH
        and _PLAIN.fullmatch(text) is not None
        and text.lower() not in _RESOLVED
    )


# A session's files share their keys.
_is_plain_key = lru_cache(maxsize=4096)(_is_plain)


def _fits_block(text: str) -> bool:
    if "\n" not in text and len(text) <= LINE_WIDTH:
        return False
    if text[0] in " \t\n" or text.endswith("\n\n") or _UNFIT_FOR_BLOCK.search(text):
        return False
    # A last line of blanks would be taken for the end of the block.
    return bool(text.rstrip("\n").rpartition("\n")[2].strip())


def _block(text: str, depth: int) -> str:
    pad = "  " * depth
    mark = "|" if text.endswith("\n") else "|-"
    body = "".join(
        f"{pad}{line}\n" if line else "\n" for line in text.removesuffix("\n").split("\n")
    )
    return f" {mark}\n{body}"


def _scalar(value: Value) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _fraction(value)
        case str():
            return value if _is_plain(value) else quote(value)
        case _:
            return "{}" if isinstance(value, dict) else "[]"


def _fraction(value: float) -> str:
    mantissa, exponent, power = repr(value).partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    sign = "" if power[:1] in ("", "-", "+") else "+"
    return f"{mantissa}{exponent}{sign}{power}"


def read(text: str) -> dict[str, Value]:
    """Return the mapping that `write` made `text` from; raise NotDialectError for any other."""
    if text == "{}\n":
        return {}
    if not text.endswith("\n") or _ESCAPED.search(text):
        raise NotDialectError
    reader = _Reader(text[:-1].split("\n"))
    value = reader.mapping(0)
    if reader.at != len(reader.lines):
        raise NotDialectError
    return value


_ENTRY = re.compile(r'("(?:[^"\\]|\\.)*"|[A-Za-z][A-Za-z0-9 _./@+()\'-]*):(?: (.+))?')


class _Reader:
    """Walks the lines of a text in the dialect."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0

    def mapping(self, depth: int) -> dict[str, Value]:
        """Read the entries at `depth`."""
        if depth > MAX_DEPTH:
            raise NotDialectError
        out: dict[str, Value] = {}
        pad = "  " * depth
        lines, indent = self.lines, len(pad)
        while self.at < len(lines):
            line = lines[self.at]
            if not line.startswith(pad):
                break
            rest = line[indent:]
            if rest[:1] in ("", " ", "-"):
                break
            key, item = self.entry(rest)
            if key in out:
                raise NotDialectError
            self.at += 1
            out[key] = self.value(item, depth)
        if not out:
            raise NotDialectError
        return out

    def entry(self, rest: str) -> tuple[str, str]:
        """Split `key: value`."""
        key, colon, item = rest.partition(":")
        if colon and _is_plain_key(key) and (not item or (item[0] == " " and len(item) > 1)):
            return key, item[1:]
        match = _ENTRY.fullmatch(rest)
        if match is None:
            raise NotDialectError
        return _key_of(match[1]), match[2] or ""

    def value(self, text: str, depth: int) -> Value:
        """Read what follows a key: a scalar, a block, or what is nested below."""
        if text in ("|", "|-"):
            return self.block(depth + 1, keep=text == "|")
        if text:
            return _scalar_of(text)
        if self.at == len(self.lines):
            raise NotDialectError
        pad = "  " * depth
        if self.lines[self.at].startswith(pad + "- "):
            return self.sequence(depth)
        return self.mapping(depth + 1)

    def sequence(self, depth: int) -> list[Value]:
        """Read the items at `depth`."""
        if depth > MAX_DEPTH:
            raise NotDialectError
        out: list[Value] = []
        mark = "  " * depth + "- "
        while self.at < len(self.lines) and self.lines[self.at].startswith(mark):
            out.append(self.item(self.lines[self.at][len(mark) :], depth))
        return out

    def item(self, rest: str, depth: int) -> Value:
        """Read one item of a sequence."""
        if rest in ("|", "|-"):
            self.at += 1
            return self.block(depth + 1, keep=rest == "|")
        if rest.startswith("- ") or _ENTRY.fullmatch(rest):
            self.lines[self.at] = "  " * (depth + 1) + rest
            return self.sequence(depth + 1) if rest.startswith("- ") else self.mapping(depth + 1)
        self.at += 1
        return _scalar_of(rest)

    def block(self, depth: int, *, keep: bool) -> str:
        """Read a literal block."""
        pad = "  " * depth
        start = self.at
        while self.at < len(self.lines) and (
            not self.lines[self.at] or self.lines[self.at].startswith(pad)
        ):
            self.at += 1
        lines = [line[len(pad) :] for line in self.lines[start : self.at]]
        text = "\n".join(lines) + ("\n" if keep else "")
        if not lines or not _fits_block(text) or text.endswith("\n") != keep:
            raise NotDialectError
        return text


@lru_cache(maxsize=1024)
def _key_of(text: str) -> str:
    return _text_of(text)


def _text_of(text: str) -> str:
    if text[:1] == '"':
        if "\\" not in text and text.isprintable() and text.find('"', 1) == len(text) - 1:
            return text[1:-1]
        try:
            found = str(json.loads(text))
        except ValueError:
            raise NotDialectError from None
        # Halves of a character escaped one by one are JSON, but not YAML.
        if "\\ud" in text.lower() and quote(found) != text:
            raise NotDialectError
        return found
    if _is_plain(text):
        return text
    raise NotDialectError


def _scalar_of(text: str) -> Value:
    if text in _CONSTANTS:
        constant = _CONSTANTS[text]
        return constant if not isinstance(constant, (dict, list)) else type(constant)()
    if text[:1] == '"' or text[:1].isalpha():
        return _text_of(text)
    if _INTEGER.fullmatch(text) and len(text) <= 20:  # noqa: PLR2004 - 64 bits and a sign
        return int(text)
    if _FRACTION.fullmatch(text):
        return float(text)
    return _text_of(text)
