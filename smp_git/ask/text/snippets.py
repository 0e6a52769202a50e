"""The part of a text that answers a question, with the answering words marked."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from smp_git.ask.text.questions import Pattern, Question, parse
from smp_git.ask.text.words import Token, stem, tokens

_WIDTH: Final = 160
_CUT: Final = "…"
# A snippet is for reading; further down in a long text nothing is looked for.
_LONGEST_CHARACTERS: Final = 100_000


def snippet(
    text: str, question: str, *, width: int = _WIDTH, marks: tuple[str, str] = ("**", "**")
) -> str:
    """Return about `width` characters of `text` where most of `question` is found.

    Matching words, inflected or not, stand between the marks; `…` stands where text is left
    out; line breaks become spaces.
    """
    line = " ".join(text[:_LONGEST_CHARACTERS].split())
    found = tokens(line)
    matches = _matches(found, parse(question))
    start, end = _window(found, matches, len(line), width)
    shown = [token for token in matches if start <= token.start and token.end <= end]
    return _CUT * (start > 0) + _marked(line, shown, start, end, marks) + _CUT * (end < len(line))


def _matches(found: Sequence[Token], asked: Question) -> list[Token]:
    terms = {stem(word) for word in asked.words}
    places = {place for place, token in enumerate(found) if stem(token.word) in terms}
    for pattern in asked.patterns:
        places |= _pattern_places(found, pattern)
    return [found[place] for place in sorted(places)]


def _pattern_places(found: Sequence[Token], pattern: Pattern) -> set[int]:
    size = len(pattern.words)
    return {
        place
        for start in range(len(found) - size + 1)
        if pattern.matches([token.word for token in found[start : start + size]])
        for place in range(start, start + size)
    }


def _window(
    found: Sequence[Token], matches: Sequence[Token], length: int, width: int
) -> tuple[int, int]:
    """Return where to cut: whole words, as early as most different matches allow."""
    if length <= width:
        return 0, length
    # Some text before the first match tells what it is about.
    lead = width // 4
    best = _richest(matches, width - lead)
    start = max(0, min((best.start if best else 0) - lead, length - width))
    inside = [t for t in found if start <= t.start and t.end <= start + width]
    if not inside:
        return start, start + width
    first = 0 if start == 0 else inside[0].start
    last = length if start + width >= length else inside[-1].end
    return first, last


def _richest(matches: Sequence[Token], width: int) -> Token | None:
    """Return the match that begins the stretch of `width` with most different words."""
    best, most = None, 0
    for place, first in enumerate(matches):
        stretch = matches[
            place : bisect_left(matches, first.start + width, key=lambda token: token.start)
        ]
        different = len({stem(token.word) for token in stretch})
        if different > most:
            best, most = first, different
    return best


def _marked(
    line: str, matches: Sequence[Token], start: int, end: int, marks: tuple[str, str]
) -> str:
    pieces = []
    for first, last in _runs(matches):
        pieces += [line[start:first], marks[0], line[first:last], marks[1]]
        start = last
    return "".join((*pieces, line[start:end]))


def _runs(matches: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield where matches begin and end, joined where nothing is between them.

    So a run of characters of a script without spaces has one mark.
    """
    first, last = 0, 0
    for token in matches:
        if token.start != last:
            if last:
                yield first, last
            first = token.start
        last = token.end
    if last:
        yield first, last
