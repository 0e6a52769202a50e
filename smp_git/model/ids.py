"""Ids and paths, each a pure function of the other."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from smp_git.model.errors import InvalidError, shown
from smp_git.model.memory import KIND_ORDER, KINDS, Kind, MemoryId

PAGE_SIZE: Final = 100
INDEX: Final = "index.yaml"

_BY_PREFIX: Final = {kind.prefix: kind for kind in KINDS.values()}
_BY_FOLDER: Final = {kind.folder: kind for kind in KINDS.values()}
_NUMBERED = re.compile(r"(turn|DEC|FIND|PREF|LEARN|ART)-([0-9]{4,18})(?:-([a-z][a-z0-9]{3}))?")
_STATE = re.compile(r"state-([a-z0-9][a-z0-9_-]{0,56})")
_SHORT = re.compile(r"([A-Za-z]+)-?0*([1-9][0-9]{0,17})(?:-([a-z][a-z0-9]{3}))?")


class Id(NamedTuple):
    """An id taken apart; `number` is 0 and `name` the agent for a state."""

    kind: Kind
    number: int
    tag: str
    name: str = ""

    @property
    def text(self) -> MemoryId:
        """The id as it is written."""
        if self.name:
            return MemoryId(f"state-{self.name}")
        suffix = f"-{self.tag}" if self.tag else ""
        return MemoryId(f"{self.kind.prefix}-{self.number:04d}{suffix}")

    @property
    def page(self) -> str:
        """The folder the memory stands in."""
        if self.name:
            return self.kind.folder
        return f"{self.kind.folder}/{self.number // PAGE_SIZE:03d}"

    @property
    def file(self) -> str:
        """The name of the memory's file in its page."""
        return f"{self.name or self.text}.{self.kind.suffix}"

    @property
    def path(self) -> str:
        """The memory's place in the tree of the session."""
        return f"{self.page}/{self.file}"

    @property
    def sort_key(self) -> tuple[int, int, str]:
        """The place of the id in every list: kind, number, tag."""
        return KIND_ORDER[self.kind.name], self.number, self.tag or self.name


def parse_id(text: object) -> Id:
    """Return the parts of a full id; raise InvalidError."""
    if not isinstance(text, str):
        raise InvalidError(f"an id must be text, not {shown(text)}")
    return _parsed(text)


@lru_cache(maxsize=65536)
def _parsed(text: str) -> Id:
    if match := _NUMBERED.fullmatch(text):
        prefix, digits, tag = match.groups()
        parsed = Id(_BY_PREFIX[prefix], int(digits), tag or "")
        if parsed.text == text and parsed.number:
            return parsed
    elif match := _STATE.fullmatch(text):
        return Id(KINDS["state"], 0, "", match[1])
    raise InvalidError(
        f"{shown(text)} is not a valid id",
        hint="ids look like DEC-0042, turn-0001 or DEC-0042-k3fq",
    )


def short_id(text: object) -> Id | None:
    """Return what an abbreviated id (`DEC-42`, `dec42`) names, or None; the tag may be missing."""
    match = _SHORT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    prefixes = {prefix.lower(): kind for prefix, kind in _BY_PREFIX.items()}
    kind = prefixes.get(match[1].lower()) or KINDS.get(match[1].lower())
    if kind is None or kind.name == "state":
        return None
    return Id(kind, int(match[2]), match[3] or "")


@lru_cache(maxsize=65536)
def parse_path(path: str) -> Id | None:
    """Return the id whose file stands at `path`, or None if no memory belongs there."""
    page, _, file = path.rpartition("/")
    stem, _, _suffix = file.rpartition(".")
    kind = _BY_FOLDER.get(page.partition("/")[0])
    if kind is None or file == INDEX:
        return None
    try:
        parsed = parse_id(f"state-{stem}" if kind.name == "state" else stem)
    except InvalidError:
        return None
    return parsed if parsed.path == path else None


@lru_cache(maxsize=65536)
def is_page(folder: str) -> bool:
    """Whether a folder below a kind's own is named as a page is."""
    return folder.isdecimal() and folder.isascii() and f"{int(folder):03d}" == folder


def kind_of_folder(folder: str) -> Kind | None:
    """Return the kind that lives in a top-level folder, or None."""
    return _BY_FOLDER.get(folder)


def is_index(path: str) -> bool:
    """Whether `path` is the index of a page."""
    page, _, file = path.rpartition("/")
    return file == INDEX and page.partition("/")[0] in _BY_FOLDER


@lru_cache(maxsize=65536)
def sort_key(memory_id: str) -> tuple[int, int, str]:
    """Return the place of an id in every list."""
    return parse_id(memory_id).sort_key
