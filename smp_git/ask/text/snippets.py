"""The part of a text that answers a question, with the answering words marked."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from smp_git.ask.text.questions import Question, parse
from smp_git.ask.text.words import Token, spaced, stem, tokens

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
    out, at = _CUT * (start > 0), start
    for token in matches:
        if start <= token.start and token.end <= end:
            # Between characters of a script without spaces there is nothing: one mark for all.
            if token.start == at > start:
                out = out.removesuffix(marks[1])
            else:
                out += line[at : token.start] + marks[0]
            out, at = out + line[token.start : token.end] + marks[1], token.end
    return out + line[at:end] + _CUT * (end < len(line))


def _matches(found: Sequence[Token], asked: Question) -> list[Token]:
    terms = {stem(word) for word in asked.words}
    places = {place for place, token in enumerate(found) if stem(token.word) in terms}
    text = spaced(token.word for token in found)
    for pattern in asked.patterns:
        start, at = -1, 0
        for match in pattern.finder.finditer(text):
            start, at = start + text.count(" ", at, match.end()), match.end()
            places.update(range(start, start + len(pattern.words)))
    return [found[place] for place in sorted(places)]


def _window(
    found: Sequence[Token], matches: Sequence[Token], length: int, width: int
) -> tuple[int, int]:
    """Return where to cut: whole words, as early as most different matches allow."""
    if length <= width:
        return 0, length
    # Some text before the first match tells what it is about.
    lead = width // 4

    def richness(place: int) -> int:
        first = matches[place].start
        end = bisect_left(matches, first + width - lead, key=lambda token: token.start)
        return len({stem(token.word) for token in matches[place:end]})

    best = max(range(len(matches)), key=richness, default=None)
    start = 0 if best is None else max(0, min(matches[best].start - lead, length - width))
    inside = [t for t in found if start <= t.start and t.end <= start + width]
    if not inside:
        return start, start + width
    first = 0 if start == 0 else inside[0].start
    return first, length if start + width >= length else inside[-1].end
