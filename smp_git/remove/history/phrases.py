"""Texts as words in a row, so that a copy is found however its lines are broken, set in or quoted.

A word is a run of letters and digits, whatever its case. A line that is too short to be
told from chance is looked for together with those below it, or by itself if it has digits
enough, as an address or a code has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final, NamedTuple

Phrase = tuple[bytes, ...]

# A row of words of so many bytes is no chance; of fewer, digits count three times.
_LONG: Final = 24
_TELLING: Final = 16
_LEAST: Final = 6
_DIGIT: Final = 2
# A longer line is looked for in parts, so that a part of it is found too.
_MOST_WORDS: Final = 32
_LONGEST_WORD: Final = 512
# No phrase is longer, whatever stands between its words.
LONGEST: Final = _MOST_WORDS * (_LONGEST_WORD + 64)
_WORDS: Final = bytes(
    byte if byte >= 0x80 or chr(byte).isalnum() else 32  # noqa: PLR2004 - from there on it is no ASCII
    for byte in bytes(range(256)).lower()
)
# Quotes, dashes and spaces of books and web pages, in UTF-8.
_MARKS: Final = re.compile(
    rb"\xe2[\x80\x81][\x80-\xbf]|\xc2[\x80-\xbf]|\xe3\x80[\x80-\xbf]|\xef\xbb\xbf"
)
_BROKEN: Final = re.compile(rb"\\[nrt]")


class Phrases(NamedTuple):
    """What of a text can be looked for, and what is too short."""

    phrases: set[Phrase]
    short: set[Phrase]


def words(text: bytes) -> list[bytes]:
    """Return the words of a text; breaks that are written out are none."""
    if b"\\" in text:
        text = _BROKEN.sub(b" ", text)
    if not text.isascii():
        text = _MARKS.sub(b" ", text)
    return text.translate(_WORDS).split()


def phrases_of(lines: Iterable[bytes]) -> Phrases:
    """Return what to look for of lines that stand one below the other."""
    rows = [row for line in lines if (row := tuple(words(line)))]
    phrases: set[Phrase] = set()
    short: set[Phrase] = set()
    run: list[Phrase] = []
    for row in rows:
        if size_of(row) >= _LONG:
            _end(run, phrases, short)
            phrases.update(_parts(row))
        else:
            run.append(row)
    _end(run, phrases, short)
    return Phrases(phrases, short)


def _end(run: list[Phrase], phrases: set[Phrase], short: set[Phrase]) -> None:
    """Take in a run of lines that are short by themselves, and empty it."""
    covered = 0
    for at, row in enumerate(run):
        end = _enough(run, at) or _whole(run, at)
        if end:
            phrases.add(tuple(word for each in run[at:end] for word in each))
            covered = max(covered, end)
        if is_telling(row):
            phrases.add(row)
        elif at >= covered:
            short.add(row)
    run.clear()


def _whole(run: list[Phrase], at: int) -> int:
    """Return the end of a run that is telling from its first line to its last, else 0."""
    is_all = at == 0 and len(run) > 1
    return len(run) if is_all and is_telling(tuple(word for each in run for word in each)) else 0


def _enough(run: list[Phrase], at: int) -> int | None:
    """Return up to where lines from `at` on are long enough together, None if they end before."""
    size = -1
    for end in range(at, len(run)):
        size += size_of(run[end]) + 1
        if size >= _LONG:
            return end + 1
    return None


def _parts(row: Phrase) -> Iterator[Phrase]:
    """Yield a long line in parts; a word that is too long is between two of them."""
    for is_word, group in groupby(row, lambda word: len(word) <= _LONGEST_WORD):
        stretch = tuple(group) if is_word else ()
        for at in range(0, len(stretch), _MOST_WORDS):
            part = stretch[max(0, min(at, len(stretch) - _MOST_WORDS)) : at + _MOST_WORDS]
            if size_of(part) >= _LONG:
                yield part


def is_telling(row: Phrase) -> bool:
    """Whether a short row of words is no chance: it has many letters, or digits among them."""
    size = size_of(row)
    digits = sum(48 <= byte <= 57 for word in row for byte in word)  # noqa: PLR2004 - 0 to 9
    return size >= _LEAST and size + _DIGIT * digits >= _TELLING


def size_of(row: Phrase) -> int:
    """Return how many bytes a phrase has, with one between two words."""
    return sum(map(len, row)) + len(row) - 1
