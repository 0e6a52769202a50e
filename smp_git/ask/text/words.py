"""The words of a text: Unicode, without case, accents and possessives."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from typing import Final, NamedTuple

# A longer run of letters is no word (base64, a hash); its beginning stands for it.
_LONGEST: Final = 64
# Scripts written without spaces: every character is a word.
_UNSPACED: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"

_ASCII_WORD: Final = re.compile(
    r"(?<![a-z0-9]')[a-z0-9]+(?:'(?!s(?![a-z0-9]))[a-z0-9]+)*", re.IGNORECASE
)
# What is not inside a word: a possessive ending, a quotation mark.
_OUTER_APOSTROPHE: Final = re.compile(
    r"'(?:(?<=[a-z0-9]')s(?![a-z0-9])|(?![a-z0-9])|(?<![a-z0-9]'))"
)
_SEPARATORS: Final = {
    code: " " for code in range(128) if not chr(code).isalnum() and chr(code) != "'"
}

_STOP_WORDS: Final = """
a about after all also am an and any are aren't as at be because been before being
both but by can can't cannot could couldn't did didn't do does doesn't doing don't
during each else ever few for from further had hadn't happen happened happening has
hasn't have haven't having he her here hers herself him himself his how i i'd i'll i'm i've if in into is isn't
it its itself just let me more most much my myself no nor not now of off on once only or
other our ours ourselves out over own please same shall she should so some such than
that the their theirs them themselves then there these they this those through to
too under until up upon us very was wasn't we were weren't what when where which
while who whom whose why will with won't would wouldn't yet you your yours yourself
yourselves
"""
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())


class Token(NamedTuple):
    """A word and where in its text it stands."""

    word: str
    start: int
    end: int


def words(text: str) -> list[str]:
    """Return the words of `text` in order, folded."""
    if not text.isascii():
        return [fold(word) for word in _word().findall(text)]
    lowered = text.lower()
    if "'" in lowered:
        lowered = _OUTER_APOSTROPHE.sub(" ", lowered)
    # Three times as fast as finding each word with the pattern.
    found = lowered.translate(_SEPARATORS).split()
    if max(map(len, found), default=0) > _LONGEST:
        return [word[:_LONGEST] for word in found]
    return found


def tokens(text: str) -> list[Token]:
    """Return the words of `text` with their places in it."""
    pattern = _ASCII_WORD if text.isascii() else _word()
    return [Token(fold(m[0]), m.start(), m.end()) for m in pattern.finditer(text)]


@lru_cache(maxsize=65_536)
def fold(word: str) -> str:
    """Return `word` without case and accents."""
    if not word.isascii():
        letters = unicodedata.normalize("NFKD", word)
        word = "".join(x for x in letters if not unicodedata.combining(x))
        word = word.replace("\u2019", "'").replace("\u02bc", "'")
    return word.casefold()[:_LONGEST]


@cache
def _word() -> re.Pattern[str]:
    r"""Return the pattern of a word in any script.

    Marks belong to their letter (Devanagari vowels, decomposed accents), but `\w` leaves
    them out, and finding them all takes a while: so only a text with such letters pays.
    """
    marks = "".join(
        letter
        for letter in map(chr, range(0x300, 0x1E00))
        if unicodedata.category(letter).startswith("M")
    )
    letter = rf"[^\W_{_UNSPACED}]"
    run = rf"{letter}(?:{letter}|[{marks}])*"
    inner = "['\u2019\u02bc]"
    return re.compile(
        rf"[{_UNSPACED}]|(?<!\w{inner}){run}(?:{inner}(?!s(?!\w)){run})*", re.IGNORECASE
    )
