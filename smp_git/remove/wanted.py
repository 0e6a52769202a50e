"""What a redaction looks for: a text or a pattern, in every form in which a file may have it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, TypeVar

from smp_git.model.errors import InvalidError
from smp_git.model.memory import Value
from smp_git.model.regexes import Bounded

# All searches of one redaction together; a pattern that backtracks is stopped.
_SECONDS: Final = 5.0
_PER_MILLION: Final = 2.0
# A replacement beside what stays may give the text again, as "ab" taken out of "aabb" does.
_MOST_ROUNDS: Final = 64
_BREAK: Final = re.compile(r"\r\n|\r|\n")
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)  # fmt: skip
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
        # For what stands in a file, where the lines of a text may be set in.
        self._loose = _loose(pattern) or self._bounded
        plain = self._plain or ""
        # Only where nothing in the text is ever written in another way.
        self._is_simple = bool(plain) and plain.isascii() and plain.isprintable() and not set(plain) & set("\"'\\")  # fmt: skip
        if self._plain == "" or self.fits(""):
            raise InvalidError("what is to be redacted is empty, or fits an empty text")

    def fits(self, text: str) -> bool:
        """Whether it stands in a text, composed or decomposed."""
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
            "the replacement gives back what is to be taken out", hint="choose another replacement"
        )

    def holds(self, value: Value) -> bool:
        """Whether it stands in a value, its keys, or a number as it is written."""
        if isinstance(value, dict):
            return any(self.fits(key) or self.holds(item) for key, item in value.items())
        if isinstance(value, list):
            return any(map(self.holds, value))
        return value is not None and not isinstance(value, bool) and self.fits(str(value))

    def is_in(self, data: bytes) -> bool:
        """Whether it stands in the bytes of a file, quoted, escaped or set in."""
        if self._is_simple:
            assert self._plain is not None  # noqa: S101 - only a plain text is simple
            return self._plain.encode() in data or (data[:2] in _WIDE and self.fits(_decoded(data)))
        return _timed(lambda: any(map(self._is_in_form, _forms(_decoded(data)))))

    def count(self, data: bytes) -> int:
        """Return how often it stands in the bytes of a file."""
        return _timed(lambda: max(map(self._count_in_form, _forms(_decoded(data)))))

    def _is_in_form(self, text: str) -> bool:
        return any(each.search(text) for each in {self._bounded, self._loose})

    def _count_in_form(self, text: str) -> int:
        return max(each.count(text) for each in {self._bounded, self._loose})

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
        return Bounded(r"\r?\n".join(map(re.escape, lines)), _SECONDS, 0, _PER_MILLION)
    if not isinstance(pattern.pattern, str):
        raise InvalidError("a pattern is of text, not of bytes")
    try:
        return Bounded(pattern.pattern, _SECONDS, pattern.flags, _PER_MILLION)
    except ValueError as error:
        raise InvalidError(f"no regular expression: {error}") from None


def _decoded(data: bytes) -> str:
    return data.decode(_WIDE.get(data[:2], "utf-8"), "replace")


def _composed(text: str) -> Iterator[str]:
    """Yield a text as it is, and composed and decomposed where that is something else."""
    yield text
    if not text.isascii():
        yield from {unicodedata.normalize(form, text) for form in ("NFC", "NFD")} - {text}


def _forms(text: str) -> Iterator[str]:
    """Yield what a file says: as it stands, with its lines not set in, with its escapes undone."""
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
