"""The index line of a memory's file, seen without making the memory.

Only what the program itself writes is looked at. Anything else is for `document` to
judge, which gives the same line wherever both give one.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache, lru_cache
from itertools import chain
from types import MappingProxyType
from typing import Final, NamedTuple

from smp_git.format import dialect, document, lines
from smp_git.model.errors import SmpError
from smp_git.model.ids import Id
from smp_git.model.memory import (
    KINDS,
    MAX_CONTENT_BYTES,
    Kind,
    Memory,
    MemoryId,
    Value,
    agent_name,
    check_fields,
    check_tags,
    title_of,
)

# A key at the start of a line; what follows on it, and on the lines that belong to it.
_ENTRY: Final = re.compile(
    r"([A-Za-z][A-Za-z0-9_.-]*):( \|-?(?:\n(?:  .*)?)+| .+|(?:\n(?:- |  ).*)+)\n"
)
_TIME: Final = re.compile(
    r' "([0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}'
    r'(?:\.(?!000000)[0-9]{6})?Z)"'
)
# Sessions say the same of many memories; a longer text is hardly said twice.
_REPEATED: Final = 64
# A colon and a line end.
_AROUND: Final = 2
_FIRST_OF_FIELDS: Final = lines.KEYS.index("links") + 1
_SOME_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)


class _UnusualError(Exception):
    """The file is not as the program writes it, or wrong."""


class _Piece(NamedTuple):
    """One pair of key and value of a line, and its place among them."""

    place: int
    text: str


def line(file: bytes, place: Id, blob: str) -> str | None:
    """Return the index line of a memory's file, or None if that takes a closer look."""
    try:
        return _line(file, place, blob)
    except (_UnusualError, SmpError, ValueError):
        return None


def _line(file: bytes, place: Id, blob: str) -> str:
    if len(file) > MAX_CONTENT_BYTES or b"\0" in file:
        raise _UnusualError
    kind = place.kind
    front, body = file.decode(), None
    if kind.suffix == "md":
        front, body = document.split(front, place.path)
    said = _entries(front)
    take = said.pop
    if take("id", "") != f" {place.text}" or take("kind", "") != f" {kind.name}":
        raise _UnusualError
    at = _time(take("created_at", ""))
    updated = f',"updated":"{_time(take("updated_at"))}"' if "updated_at" in said else ""
    agent = _agent(take("agent", " user"))
    tags = _tags(take("tags")) if "tags" in said else ""
    links = _links(take("links")) if "links" in said else ""
    given = take("title", None)
    first = _first_line(kind, body if body is not None else take(kind.main, None))
    title = title_of(_text(given) if given is not None else first, {})
    if not title:
        raise _UnusualError
    shown = lines.shown_value(title)
    fields = _fields(kind, said)
    return f'- {{"id":"{place.text}","blob":"{blob}","at":"{at}"{updated},{agent}{tags},"title":{shown},"size":{len(file)}{links}{fields}}}\n'


def _entries(front: str) -> dict[str, str]:
    """Return what stands behind each key, the lines below it included."""
    if dialect.has_unfit(front):
        raise _UnusualError
    found = _ENTRY.findall(front)
    said = dict(found)
    whole = sum(map(len, chain.from_iterable(found))) + _AROUND * len(found)
    if whole != len(front) or len(said) != len(found):
        raise _UnusualError
    return said


def _time(said: str) -> str:
    match = _TIME.fullmatch(said)
    if match is None:
        raise _UnusualError
    datetime.fromisoformat(match[1])
    return match[1]


def _text(said: str) -> str:
    """Return a text that stands on one line."""
    value = dialect.scalar(said[1:]) if said[0] == " " and "\n" not in said else None
    if not isinstance(value, str):
        raise _UnusualError
    return value


def _first_line(kind: Kind, main: str | None) -> str:
    """Return the first line of the main text, which is checked as a whole."""
    if kind.suffix == "md":
        return document.check_content(kind, main or "")
    if main is None or "\n" not in main:
        return document.check_content(kind, _text(main) if main is not None else "")
    mark, _, block = main.partition("\n")
    first, *_ = block.split("\n", 1)
    last = block[block.rfind("\n") + 1 :]
    starts = mark in (" |", " |-") and first[:2] == "  " and first[2:3] not in ("", " ", "\t")
    if not starts or not last.strip():
        raise _UnusualError
    if mark == " |-" and "\n" not in block and len(block) - 2 <= dialect.LINE_WIDTH:
        raise _UnusualError
    return first[2:]


@lru_cache(maxsize=1024)
def _agent(said: str) -> str:
    return f'"agent":{lines.shown_value(agent_name(_value("agent", said)))}'


@lru_cache(maxsize=4096)
def _tags(said: str) -> str:
    tags = list(check_tags(_value("tags", said)))
    return f',"tags":{lines.shown_value(tags)}' if tags else ""


@lru_cache(maxsize=4096)
def _links(said: str) -> str:
    links = document.check_links(_value("links", said))
    return f',"links":{lines.shown_value([list(link) for link in links])}' if links else ""


def _value(key: str, said: str) -> Value:
    return dialect.read(f"{key}:{said}\n")[key]


# Fields


def _fields(kind: Kind, said: dict[str, str]) -> str:
    """Return what a line says of the fields of a memory."""
    if not said:
        return _default(kind.name)
    pieces = [piece for key, value in said.items() for piece in _pieces(kind.name, key, value)]
    if not pieces:
        return _default(kind.name)
    places = {piece.place for piece in pieces}
    if len(places) != len(pieces):
        # One field has a say in what becomes of another.
        raise _UnusualError
    pieces += [piece for piece in _of(kind.name, None) if piece.place not in places]
    return "".join(piece.text for piece in sorted(pieces))


@cache
def _default(kind: str) -> str:
    return "".join(piece.text for piece in _of(kind, None))


def _pieces(kind: str, key: str, said: str) -> tuple[_Piece, ...]:
    if len(said) > _REPEATED:
        return _pieces_of(kind, key, said)
    return _repeated_pieces(kind, key, said)


def _pieces_of(kind: str, key: str, said: str) -> tuple[_Piece, ...]:
    """Return what one field adds to the line of a memory, or changes there."""
    fields = check_fields(KINDS[kind], {key: _value(key, said)})
    if key not in lines.FIELDS or not fields:
        return ()
    without = _of(kind, None)
    return tuple(piece for piece in _of(kind, fields) if piece not in without)


_repeated_pieces = lru_cache(maxsize=8192)(_pieces_of)
_NO_FIELDS: Final[dict[str, Value]] = {}


def _of(kind: str, fields: dict[str, Value] | None) -> tuple[_Piece, ...]:
    """Return the pieces of a line that come from the fields of a memory."""
    memory = Memory(
        id=MemoryId(""),
        kind=kind,
        created_at=_SOME_TIME,
        agent="",
        fields=MappingProxyType(fields or _NO_FIELDS),
    )
    entry = lines.entry_of(memory, "", 0)
    return tuple(
        _Piece(place, f',"{lines.KEYS[place]}":{lines.shown_value(value)}')
        for place, value in enumerate(entry)
        if place >= _FIRST_OF_FIELDS and value is not None
    )
