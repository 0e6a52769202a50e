"""Search for the texts of the deleted: which are telling, and where they are.

A word is a run of letters and digits, whatever its case. A line that is too short to be
told from chance is looked for together with those below it, or by itself if it has digits
enough, as an address or a code has.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import compress, groupby
from typing import Final, NamedTuple

from smp_git.format import document
from smp_git.format.dialect import escape
from smp_git.format.records import Tombstones
from smp_git.git.objects import BLOB, object_id
from smp_git.git.storage import common, common_end
from smp_git.model.errors import InvalidFileError
from smp_git.model.ids import parse_id
from smp_git.model.memory import MemoryId

Phrase = tuple[bytes, ...]

# A row of words of so many bytes is no chance; of fewer, digits count three times.
_LONG: Final = 24
_TELLING: Final = 16
_LEAST: Final = 6
_DIGIT: Final = 2
# A longer line is looked for in parts, so that a part of it is found too.
_MOST_WORDS: Final = 32
_LONGEST_WORD: Final = 512
# No phrase is longer, whatever is between its words.
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
    """Phrases of a text to search for, and rows of words that are too short."""

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
    """Return what to look for of lines that follow each other."""
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


# Shorter texts are in anything; longer ones say where they came from.
SHORTEST: Final = 24
_MOST_COMPARED: Final = 1_000
# Values that every memory has of its own kind say nothing of one.
_STRUCTURAL = re.compile(
    rb"\s*(?:- )?[\"']?(?:id|kind|life|generation|created_at|updated_at|agent|turn_ref|confidence|"
    rb"importance|pinned|status|severity|resolved_at|resolved_by|conversation_id|speaker|role)[\"']?:"
)
_KEYED = re.compile(rb"\s*(?:- )?[\"']?[A-Za-z0-9_.-]{1,64}[\"']?:\s+(.*)", re.DOTALL)
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ][0-9:.]+(?:Z|[+-]\d\d:?\d\d)?)?")
# With its key it is long enough to search for: the time of a contested value is one.
_BARE_TIME: Final = re.compile(rb"[\"']?%s[\"']?\s*" % _TIME.pattern.encode())
_ID = re.compile(r"[A-Za-z]{1,16}-(?:\d{4,18}(?:-[a-z][a-z0-9]{3})?|[a-z0-9-]{1,64})")
_SKIPPED: Final = frozenset(
    ("id", "kind", "life", "created_at", "updated_at", "agent", "turn_ref", "status", "severity")
)
# Many memories have these in common, so that only long ones say anything.
_SHARED: Final = frozenset(
    (
        "tags",
        "links",
        "speaker",
        "role",
        "confidence",
        "importance",
        "pinned",
        "resolved_at",
        "resolved_by",
        "conversation_id",
    )
)


class DeadVersion(NamedTuple):
    """One version of a deleted memory's file; in a copy `current` is what was at the session's head.

    `commit` is empty for an edit that was never committed.
    """

    id: MemoryId
    life: str | None
    at: datetime
    agent: str
    commit: str
    data: bytes
    current: bool = False

    @property
    def path(self) -> str:
        """The path of the file."""
        return parse_id(self.id).path


class Needles(NamedTuple):
    """Everything that a scan looks for; `short` counts the texts that it cannot look for."""

    known: Tombstones
    blobs: frozenset[bytes]
    texts: tuple[bytes, ...]
    phrases: frozenset[Phrase]
    short: int


def needles(known: Tombstones, versions: Iterable[DeadVersion] = ()) -> Needles:
    """Return what to look for: every id of the tombstones, the text of the versions."""
    kept = list(versions)
    texts = {text for each in kept for text in _texts(each)}
    phrases: set[Phrase] = set()
    short: set[Phrase] = set()
    for each in kept:
        for lines in _passages(each):
            found = phrases_of(lines)
            phrases |= found.phrases
            short |= found.short
    return Needles(
        known=known,
        blobs=frozenset(object_id(BLOB, each.data).encode() for each in kept),
        texts=tuple(sorted(_least(texts))),
        phrases=frozenset(phrases),
        short=len(short - phrases),
    )


def vocabulary(versions: Iterable[DeadVersion]) -> frozenset[bytes]:
    """Return every word of the versions' texts, so that nothing need repeat one."""
    lines = (
        line for each in versions for line in each.data.split(b"\n") if not _STRUCTURAL.match(line)
    )
    return frozenset(word for line in lines for word in words(line))


def _texts(version: DeadVersion) -> Iterator[bytes]:
    for line in version.data.split(b"\n"):
        match = _KEYED.fullmatch(line)
        if _STRUCTURAL.match(line) or (match and _BARE_TIME.fullmatch(match[1])):
            continue
        yield from _long(line)
        if match:
            yield from _long(match[1])
    try:
        memory = document.decode(version.data, version.path)
    except InvalidFileError:
        return
    for text in _values(
        [
            memory.content,
            memory.title.removesuffix("…"),
            *(v for k, v in memory.fields.items() if k not in _SKIPPED),
        ]
    ):
        for row in text.splitlines():
            yield from _long(row.encode("utf-8", "surrogatepass"))
            quoted = json.dumps(row, ensure_ascii=False)[1:-1]
            yield from _long(quoted.encode("utf-8", "surrogatepass"))
            yield from _long(escape(quoted).encode("utf-8", "surrogatepass"))


def _long(text: bytes) -> Iterator[bytes]:
    text = text.strip()
    if len(text) >= SHORTEST:
        yield text


def _passages(version: DeadVersion) -> Iterator[list[bytes]]:
    """Yield the lines of each text of a version that follow each other."""
    try:
        memory = document.decode(version.data, version.path)
    except InvalidFileError:
        yield [line for line in version.data.split(b"\n") if not _STRUCTURAL.match(line)]
        return
    fields = [v for k, v in memory.fields.items() if k not in _SKIPPED and k not in _SHARED]
    for text in [
        memory.content,
        memory.title,
        *(each for value in fields for each in _joined(value)),
    ]:
        if text.endswith("…"):
            # Cut in the middle of a word.
            text = text.removesuffix("…").rpartition(" ")[0]
        # A time or an id is in other files as well.
        rows = [(line, line.strip()) for line in text.splitlines()]
        lines = [line for line, row in rows if not (_TIME.fullmatch(row) or _ID.fullmatch(row))]
        yield [line.encode("utf-8", "surrogatepass") for line in lines]
        if not text.isascii():
            yield [
                escape(json.dumps(line, ensure_ascii=False)[1:-1]).encode("utf-8", "surrogatepass")
                for line in lines
            ]
            yield [json.dumps(line)[1:-1].encode() for line in lines]


def _joined(value: object) -> Iterator[str]:
    """Yield the texts of a field's value; the items of a list are lines of one."""
    if isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value):
        yield "\n".join(value)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _joined(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _joined(each)
    elif isinstance(value, str):
        yield value


def _values(value: object) -> Iterator[str]:
    if isinstance(value, str):
        if not _TIME.fullmatch(value):
            yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _values(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _values(each)


def _least(texts: set[bytes]) -> set[bytes]:
    """Return the texts without those that hold a shorter one: where they are, it is too."""
    if len(texts) > _MOST_COMPARED:
        return texts
    kept: list[bytes] = []
    for text in sorted(texts, key=len):
        if not any(shorter in text for shorter in kept):
            kept.append(text)
    return set(kept)


# Versions of one thing begin alike; of so many bytes of them the last one is kept.
_KEY: Final = 24
_MOST_KEPT: Final = 1 << 24
# Versions differ most often near their end; a short stretch is not worth telling exactly.
_NEAR: Final = 256
_SHORT: Final = 1_024


class Fresh:
    """Tells what of a text was not in one that was looked at before it."""

    def __init__(self) -> None:
        self._last: dict[bytes, bytes] = {}
        self._size = 0

    def stretch(self, data: bytes) -> tuple[int, int] | None:
        """Return where begins and ends what is new in `data`, None if nothing is.

        Of no length, it is where two stretches now meet that did not before.
        """
        key = data[:_KEY]
        old = self._last.get(key, b"")
        if old.startswith(data):
            return None
        self._size += len(data) - len(old)
        if self._size > _MOST_KEPT:
            self._last.clear()
            self._size = len(data)
        self._last[key] = data
        most = min(len(old), len(data))
        near = max(0, most - _NEAR)
        if old[:near] == data[:near] and len(data) - near < _SHORT:
            return near, len(data)
        start = common(old, data)
        return start, len(data) - common_end(old, data, most - start)


# Fewer texts are searched faster one by one.
_FEW: Final = 24
# A text of so many bytes holds, wherever it is, eight that begin at a multiple of eight.
LEAST_BYTES: Final = 15
_WIDTH: Final = 8
# So much of a text is taken apart into words at a time.
_PART: Final = 1 << 20

# Eight bytes as a number, with each text that has them and their place in it.
_Anchors = dict[int, list[tuple[int, bytes]]]


class TextFinder:
    """Looks for texts of at least `SHORTEST` bytes."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        self._texts = tuple(texts)
        self._anchors = _anchors(self._texts) if len(self._texts) > _FEW else None

    def __bool__(self) -> bool:
        return bool(self._texts)

    def found(self, data: bytes) -> set[bytes]:
        """Return the texts that are in `data`."""
        if self._anchors is None:
            return {text for text in self._texts if text in data}
        return set(_at_anchors(data, self._anchors))

    def is_in(self, data: bytes) -> bool:
        """Whether any of the texts is in `data`."""
        if self._anchors is None:
            return any(text in data for text in self._texts)
        return next(_at_anchors(data, self._anchors), None) is not None


def _at_anchors(data: bytes, anchors: _Anchors) -> Iterator[bytes]:
    """Yield the texts around a place where eight bytes of theirs do."""
    numbers = _numbers(data, 0)
    for place in compress(range(len(numbers)), map(anchors.__contains__, numbers)):
        for offset, text in anchors[numbers[place]]:
            at = place * _WIDTH - offset
            if at >= 0 and data.startswith(text, at):
                yield text


def _anchors(texts: tuple[bytes, ...]) -> _Anchors:
    """Return for each text, and each way it can lie, eight bytes that few others have."""
    shared = Counter(n for text in texts for shift in range(_WIDTH) for n in _numbers(text, shift))
    found: _Anchors = {}
    for text in texts:
        for shift in range(_WIDTH):
            numbers = _numbers(text, shift)
            rarest = min(range(len(numbers)), key=lambda place: shared[numbers[place]])
            found.setdefault(numbers[rarest], []).append((shift + rarest * _WIDTH, text))
    return found


def _numbers(text: bytes, shift: int) -> memoryview:
    """Return eight bytes and eight bytes of a text as numbers, from `shift` on."""
    stop = shift + (len(text) - shift) // _WIDTH * _WIDTH
    return memoryview(text)[shift:stop].cast("Q")


class PhraseFinder:
    """Looks for phrases: long ones as texts of words with one space between, short ones by a word."""

    def __init__(self, phrases: Iterable[Phrase]) -> None:
        wanted = set(phrases)
        self._long = {_set(each): each for each in wanted if size_of(each) + 2 >= LEAST_BYTES}
        self._texts = TextFinder(self._long)
        self._anchors: dict[bytes, list[Phrase]] = {}
        for each in wanted.difference(self._long.values()):
            self._anchors.setdefault(max(each, key=_rarity), []).append(each)
        # Where none of these is, none of few phrases is, and nothing need be taken apart.
        self._marks = {max(each, key=_rarity) for each in wanted} if len(wanted) <= _FEW else set()
        longest = max(map(size_of, wanted), default=0)
        # Around what is new so much is looked at besides: what is between words counts too.
        self.reach = min(2 * longest + 64, LONGEST) if wanted else 0

    def __bool__(self) -> bool:
        return bool(self.reach)

    def found(self, data: bytes) -> set[Phrase]:
        """Return the phrases that are in `data`."""
        return set(self._each(data))

    def is_in(self, data: bytes) -> bool:
        """Whether any of the phrases is in `data`."""
        return next(self._each(data), None) is not None

    def _each(self, data: bytes) -> Iterator[Phrase]:
        low = data.lower() if self._marks else b""
        if not self or (self._marks and not any(mark in low for mark in self._marks)):
            return
        for at in range(0, max(len(data), 1), _PART):
            row = words(data[max(0, at - LONGEST) : at + _PART])
            text = _set(row)
            yield from (self._long[each] for each in self._texts.found(text))
            for word in self._anchors.keys() & set(row) if self._anchors else ():
                yield from (each for each in self._anchors[word] if _set(each) in text)


def _set(row: Iterable[bytes]) -> bytes:
    """Return words with one space around each."""
    return b" %s " % b" ".join(row)


def _rarity(word: bytes) -> tuple[bool, int]:
    """Return how seldom a word may be: with a digit before without, long before short."""
    return any(48 <= byte <= 57 for byte in word), len(word)  # noqa: PLR2004 - 0 to 9


class Search:
    """Looks for texts byte for byte, and for phrases word for word."""

    def __init__(self, texts: Iterable[bytes], phrases: Iterable[Phrase]) -> None:
        self._texts = TextFinder(texts)
        self._phrases = PhraseFinder(phrases)
        self.reach = self._phrases.reach

    def __bool__(self) -> bool:
        return bool(self._texts) or bool(self._phrases)

    def found(self, data: bytes) -> tuple[set[bytes], set[Phrase]]:
        """Return the texts and the phrases that are in `data`."""
        return self._texts.found(data), self._phrases.found(data)

    def is_in(self, data: bytes) -> bool:
        """Whether any of them is in `data`."""
        return self._texts.is_in(data) or self._phrases.is_in(data)

    def is_in_words(self, data: bytes) -> bool:
        """Whether any of the phrases is in `data`, e.g. the name of a file."""
        return self._phrases.is_in(data)
