"""Differences of two texts, word by word."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, Literal, NamedTuple

SpanKind = Literal["same", "gone", "new", "skipped"]

# Pairs of equal words, or lines, that are looked at: some tenths of a second.
_MOST_PAIRS: Final = 100_000
# Unchanged text beyond this is left out, but for its ends.
_CONTEXT: Final = 120

_WORDS: Final = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")


class Span(NamedTuple):
    """A run of text that is in both texts, in the old one or in the new one alone.

    One that is `skipped` is in both; its text is how many characters it has.
    """

    kind: SpanKind
    text: str


def word_diff(old: str, new: str) -> tuple[Span, ...]:
    """Return the runs of two texts in order; long runs that are in both are cut in the middle.

    Very different long texts are told as one replaced by the other.
    """
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    middle = _compared(old[start : len(old) - end], new[start : len(new) - end])
    spans = [Span("same", old[:start]), *middle, Span("same", old[len(old) - end :])]
    told = [each for each in spans if each.text]
    shown = (
        cut
        for place, each in enumerate(told)
        for cut in _cut(each, is_first=place == 0, is_last=place == len(told) - 1)
    )
    return tuple(each for each in shown if each.text)


def _common(old: str, new: str) -> int:
    """Return how many characters two texts begin with alike, up to the end of a word."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if old[:middle] == new[:middle] else (low, middle - 1)
    if low == len(old) == len(new):
        return low
    while low and (old[low - 1].isalnum() or new[low - 1].isalnum()):
        low -= 1
    return low


def _compared(old: str, new: str) -> list[Span]:
    words = _WORDS.findall(old), _WORDS.findall(new)
    if _is_short(*words):
        return list(_joined(_runs(*words)))
    lines = old.splitlines(keepends=True), new.splitlines(keepends=True)
    if not _is_short(*lines):
        return [Span("gone", old), Span("new", new)]
    out: list[Span] = []
    for tag, a, b, c, d in _opcodes(*lines):
        before, after = "".join(lines[0][a:b]), "".join(lines[1][c:d])
        inner = _WORDS.findall(before), _WORDS.findall(after)
        if tag == "equal":
            out.append(Span("same", before))
        elif tag == "replace" and _is_short(*inner):
            out += _joined(_runs(*inner))
        else:
            out += [Span("gone", before), Span("new", after)]
    return out


def _is_short(old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether comparing two sequences takes no time that anybody feels."""
    counts = Counter(old)
    return sum(counts[each] for each in new) <= _MOST_PAIRS


def _runs(old: Sequence[str], new: Sequence[str]) -> Iterator[Span]:
    for tag, a, b, c, d in _opcodes(old, new):
        if tag == "equal":
            yield Span("same", "".join(old[a:b]))
        else:
            yield from (Span("gone", "".join(old[a:b])), Span("new", "".join(new[c:d])))


def _opcodes(
    old: Sequence[str], new: Sequence[str]
) -> list[tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]]:
    return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


def _joined(spans: Iterator[Span]) -> Iterator[Span]:
    """Yield the runs with what is no word made part of the changes around it."""
    gone = came = ""
    for kind, text in spans:
        if kind == "gone":
            gone += text
        elif kind == "new":
            came += text
        elif (gone or came) and not any(map(str.isalnum, text)) and "\n" not in text:
            gone, came = gone + text, came + text
        else:
            yield from (Span("gone", gone), Span("new", came), Span(kind, text))
            gone = came = ""
    yield from (Span("gone", gone), Span("new", came))


def _cut(span: Span, *, is_first: bool, is_last: bool) -> Iterator[Span]:
    """Yield a run, without what is far from any change if it is in both texts."""
    text, head, tail = span.text, 0 if is_first else _CONTEXT, 0 if is_last else _CONTEXT
    if span.kind != "same" or len(text) <= head + tail + _CONTEXT:
        yield span
        return
    yield Span("same", text[:head])
    yield Span("skipped", str(len(text) - head - tail))
    yield Span("same", text[len(text) - tail :])
