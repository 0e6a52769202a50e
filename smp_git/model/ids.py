"""Ids, paths and lives of memories: which memory is meant, and which of its lives are dead.

Pure: what is known of one memory's lives only grows and is united. A life that has no
name is the first. Rules and reasons: docs/design/0015-lives.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import string
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from smp_git.model.errors import InvalidError, shown
from smp_git.model.memory import KIND_ORDER, KINDS, VALUE, Kind, MemoryId, Value

PAGE_SIZE: Final = 100
INDEX: Final = "index.yaml"

_BY_PREFIX: Final = {kind.prefix: kind for kind in KINDS.values()}
_BY_FOLDER: Final = {kind.folder: kind for kind in KINDS.values()}
_NUMBERED = re.compile(r"(turn|DEC|FIND|PREF|LEARN|ART)-([0-9]{4,18})(?:-([a-z][a-z0-9]{3}))?")
_STATE = re.compile(r"state-([a-z0-9][a-z0-9_-]{0,56})")
_DIGEST: Final = 32
_VALUE = re.compile(rf"VAL-([0-9a-f]{{{_DIGEST}}})")
_SHORT_VALUE = re.compile(rf"(?i:VAL)-([0-9a-fA-F]{{4,{_DIGEST}}})")
_SHORT = re.compile(r"([A-Za-z]+)-?0*([1-9][0-9]{0,17})(?:-([a-z][a-z0-9]{3}))?")
SESSION_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class Id(NamedTuple):
    """An id taken apart.

    A state has the agent as its name, a value a digest of its key, and neither has a number
    of its own: that of a value only says its page.
    """

    kind: Kind
    number: int
    tag: str
    name: str = ""

    @property
    def text(self) -> MemoryId:
        """The id as it is written."""
        if self.name:
            return MemoryId(f"{self.kind.prefix}-{self.name}")
        suffix = f"-{self.tag}" if self.tag else ""
        return MemoryId(f"{self.kind.prefix}-{self.number:04d}{suffix}")

    @property
    def page(self) -> str:
        """The folder the memory is in."""
        if self.kind.name == "state":
            return self.kind.folder
        return f"{self.kind.folder}/{self.number // PAGE_SIZE:03d}"

    @property
    def file(self) -> str:
        """The name of the memory's file in its page."""
        stem = self.name if self.kind.name == "state" else self.text
        return f"{stem}.{self.kind.suffix}"

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
    elif match := _VALUE.fullmatch(text):
        return _value(match[1])
    if short := short_id(text):
        if short.text.lower() == text.lower():
            raise InvalidError(
                f"{shown(text)} is not written as ids are, and this takes them exactly as they are",
                hint=f"it is {short.text}",
            )
        raise InvalidError(
            f"{shown(text)} is a short id, and this takes full ones",
            hint=f"in full it is {short.text}"
            + ("" if short.tag else f", or {short.text}-TAG if another replica wrote it"),
        )
    raise InvalidError(
        f"{shown(text)} is not a valid id",
        hint="ids look like DEC-0042, turn-0001 or DEC-0042-k3fq",
    )


def _value(digest: str) -> Id:
    return Id(KINDS[VALUE], int(digest[:2], 16) * PAGE_SIZE, "", digest)


@lru_cache(maxsize=65536)
def value_id(key: tuple[str, ...], again: int = 0) -> Id:
    """Return the id of the value under a key, which was deleted for good so often before."""
    text = json.dumps([*key, again], ensure_ascii=True, separators=(",", ":"))
    return _value(hashlib.sha256(text.encode()).hexdigest()[:_DIGEST])


def id_of_value(fields: Mapping[str, Value]) -> Id | None:
    """Return the id of the value that has these fields, None if they say no key."""
    key, again = fields.get("key"), fields.get("again", 0)
    if not isinstance(key, list) or not isinstance(again, int):
        return None
    return value_id(tuple(map(str, key)), again)


def is_id(text: str) -> bool:
    """Whether a text is a full id."""
    try:
        return _parsed(text).text == text
    except InvalidError:
        return False


def parse_target(text: object) -> MemoryId:
    """Return what a link leads to: a full id, or `SESSION:ID` for a memory of another session."""
    session, colon, name = str(text).rpartition(":")
    if not colon:
        return parse_id(text).text
    if SESSION_ID.fullmatch(session) is None:
        raise InvalidError(
            f"{shown(session)} is not a valid session id",
            hint="a link to another session is SESSION:ID, e.g. global:PREF-0001",
        )
    return MemoryId(f"{session}:{(short_id(name) or parse_id(name)).text}")


def is_elsewhere(target: object) -> bool:
    """Whether a link leads to a memory of another session."""
    return isinstance(target, str) and ":" in target


def values_like(text: object) -> tuple[str, str] | None:
    """Return the page of the value that the beginning of an id names, and how its id begins."""
    match = _SHORT_VALUE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    start = match[1].lower()
    return _value(start.ljust(_DIGEST, "0")).page, f"{KINDS[VALUE].prefix}-{start}"


def short_id(text: object) -> Id | None:
    """Return what an abbreviated id (`DEC-42`, `dec42`) names, or None; the tag may be missing."""
    match = _SHORT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    prefixes = {prefix.lower(): kind for prefix, kind in _BY_PREFIX.items()}
    kind = prefixes.get(match[1].lower()) or KINDS.get(match[1].lower())
    if kind is None or kind.name in ("state", VALUE):
        return None
    return Id(kind, int(match[2]), match[3] or "")


@lru_cache(maxsize=65536)
def parse_path(path: str) -> Id | None:
    """Return the id whose file is at `path`, or None if no memory belongs there."""
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


FIRST: Final = ""

DELETED: Final = "deleted"
PURGED: Final = "purged"
REDACTED: Final = "redacted"
FLAGS: Final = (DELETED, PURGED, REDACTED)

RESTORE: Final = "restore"
REDACT: Final = "redact"
JOIN: Final = "join"
# A generation above 1 of format 1: nobody knows whether it was restored or redacted.
GENERATION: Final = "generation"
CAUSES: Final = (RESTORE, REDACT, JOIN, GENERATION)
# What may have taken a text out: a life without one of these in its past may still hold it.
_REDACTING: Final = (REDACT, GENERATION)

_NAME: Final = re.compile(r"[a-z]{8}|j[0-9a-f]{12}|g[1-9][0-9]{0,6}(?:-[0-9a-f]{8})?")
_NUMBER: Final = re.compile(r"g([1-9][0-9]{0,6})(?:-[0-9a-f]{8})?")

# The youngest stamp of each field that a redaction knew: (time, replica tag) as one text.
Horizon = Mapping[str, str]


def is_life(name: object) -> bool:
    """Whether `name` can be the name of a life; the first one has none."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def new_life() -> str:
    """Return the name of a life that begins now: eight random letters."""
    return random_name(string.ascii_lowercase, 8)


def random_name(letters: str, length: int) -> str:
    """Return a name of random letters, each as likely as any other."""
    usable = 256 - 256 % len(letters)
    found: list[str] = []
    while len(found) < length:
        found += [letters[byte % len(letters)] for byte in os.urandom(length) if byte < usable]
    return "".join(found[:length])


def joined_life(memory_id: str, parents: Iterable[str]) -> str:
    """Return the name of the life in which others are joined: a digest of their set."""
    text = "+".join((memory_id, *sorted(parents))).encode()
    return "j" + hashlib.sha256(text).hexdigest()[:12]


def of_generation(number: int, first_version: bytes | None = None) -> str:
    """Return the life that format 1 called generation `number`."""
    if number <= 1:
        return FIRST
    if first_version is None:
        return f"g{number}"
    return f"g{number}-{hashlib.sha256(first_version).hexdigest()[:8]}"


def generation(life: str) -> int:
    """Return the number that format 1 gave a life; 0 if it is a life of format 2."""
    if life == FIRST:
        return 1
    match = _NUMBER.fullmatch(life)
    return int(match[1]) if match else 0


class Edge:
    """The origin of a life, and the lives before it; `horizon` is a redaction's."""

    __slots__ = ("_key", "cause", "horizon", "parents")

    def __init__(self, cause: str, parents: Iterable[str], horizon: Horizon | None = None) -> None:
        self.cause = cause
        self.parents = tuple(sorted(set(parents)))
        self.horizon: Horizon = dict(sorted((horizon or {}).items()))
        self._key = cause, self.parents, tuple(self.horizon.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Edge) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def united(self, other: Edge) -> Edge:
        """Return what two records say of one life: a redaction over a restoration over a join."""
        if self == other:
            return self
        order = (REDACT, GENERATION, RESTORE, JOIN)
        horizon = {
            name: max(self.horizon.get(name, ""), other.horizon.get(name, ""))
            for name in (*self.horizon, *other.horizon)
        }
        cause = min(self.cause, other.cause, key=order.index)
        return Edge(cause, (*self.parents, *other.parents), horizon)


class Lives:
    """Everything that is known of the lives of one memory; equal knowledge is equal."""

    def __init__(
        self,
        flags: Mapping[str, Iterable[str]] | None = None,
        edges: Mapping[str, Edge] | None = None,
        generation: int = 0,
    ) -> None:
        self.flags: Mapping[str, frozenset[str]] = {
            life: frozenset(found) for life, found in sorted((flags or {}).items()) if found
        }
        self.edges: Mapping[str, Edge] = dict(sorted((edges or {}).items()))
        # Up to which generation of format 1 everything was deleted.
        self.generation = generation
        self._dead: dict[str | None, bool] = {}

    @cached_property
    def _key(self) -> tuple[object, ...]:
        return tuple(self.flags.items()), tuple(self.edges.items()), self.generation

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Lives) and self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    def __or__(self, other: Lives) -> Lives:
        if self == other:
            return self
        flags = {
            life: self.flags.get(life, frozenset()) | other.flags.get(life, frozenset())
            for life in (*self.flags, *other.flags)
        }
        edges = dict(self.edges)
        for life, edge in other.edges.items():
            edges[life] = edges[life].united(edge) if life in edges else edge
        return Lives(flags, edges, max(self.generation, other.generation))

    @property
    def is_plain(self) -> bool:
        """Whether only the first life is known: then neighbours may share a line."""
        return not self.edges and not set(self.flags) - {FIRST}

    # What is known

    @cached_property
    def known(self) -> frozenset[str]:
        """The lives that are known, the first one always."""
        return frozenset((FIRST, *self.flags, *self.edges))

    def explains(self, life: str) -> bool:
        """Whether it is known where a life came from."""
        return life == FIRST or life in self.edges

    def past(self, life: str) -> frozenset[str]:
        """Return a life and everything that it came from."""
        found: set[str] = set()
        waiting = [life]
        while waiting:
            each = waiting.pop()
            if each not in found:
                found.add(each)
                waiting += self._parents(each)
        return frozenset(found)

    def _parents(self, life: str) -> tuple[str, ...]:
        if life == FIRST:
            return ()
        number = generation(life)
        before = [each for each in self.known if 1 < generation(each) < number]
        edge = self.edges.get(life)
        return (*(edge.parents if edge else ()), *before, FIRST)

    def newest(self, lives: Iterable[str]) -> tuple[str, ...]:
        """Return the newest lives behind some, sorted; a join is no more than what it joins."""
        plain: set[str] = set()
        waiting = list(lives)
        while waiting:
            life = waiting.pop()
            edge = self.edges.get(life)
            if edge is not None and edge.cause == JOIN:
                waiting += edge.parents
            else:
                plain.add(life)
        above = {life for each in plain for life in self.past(each) - {each}}
        return tuple(sorted(plain - above))

    @cached_property
    def redactions(self) -> frozenset[str]:
        """The lives that a redaction began, or may have."""
        return frozenset(life for life, edge in self.edges.items() if edge.cause in _REDACTING)

    def missing(self, life: str, other: str) -> frozenset[str]:
        """Return the redactions in the past of `other` that are not in that of `life`."""
        return (self.redactions & self.past(other)) - self.past(life)

    # What is dead

    def is_dead(self, life: str | None) -> bool:
        """Whether no version of a life may be present.

        A version whose life cannot be told (None) counts as one of the first.
        """
        found = self._dead.get(life)
        if found is None:
            found = self._dead[life] = bool(self.ended_by(life or FIRST))
        return found

    def ended_by(self, life: str) -> frozenset[str]:
        """Return the flags of a life, those that it takes from its past included."""
        found = set(self._ended(life, frozenset()))
        if self.redactions - self.past(life):
            found.add(REDACTED)
        return frozenset(found)

    def _ended(self, life: str, above: frozenset[str]) -> frozenset[str]:
        found = set(self.flags.get(life, ()))
        if 0 < generation(life) <= self.generation:
            found.add(DELETED)
        if life == FIRST or life in above:
            return frozenset(found)
        edge = self.edges.get(life)
        before = [self._ended(each, above | {life}) for each in self._parents(life)]
        if any(PURGED in each for each in before):
            found.add(PURGED)
        if edge is not None and edge.cause in (REDACT, JOIN):
            origin = [self._ended(each, above | {life}) for each in edge.parents]
            # A redaction is no wish to keep; a restoration is.
            if origin and all(DELETED in each for each in origin):
                found.add(DELETED)
        return frozenset(found)

    @property
    def is_unwanted(self) -> bool:
        """Whether somebody deleted or redacted the memory; what time alone has taken, nobody did."""
        said = {flag for flags in self.flags.values() for flag in flags}
        return bool(said - {PURGED} or self.edges or self.generation)

    @property
    def is_purged(self) -> bool:
        """Whether no life may ever come back."""
        return PURGED in self.flags.get(FIRST, ())

    @cached_property
    def is_gone(self) -> bool:
        """Whether no known life may be present."""
        return all(map(self.is_dead, self.known))

    # What changes

    def flagged(self, lives: Iterable[str], *flags: str) -> Lives:
        """Return this with flags on the given lives and all that are known."""
        names = self.known | frozenset(lives)
        return self | Lives(dict.fromkeys(names, flags))

    def begun(self, life: str, edge: Edge) -> Lives:
        """Return this with a life that begins."""
        return self | Lives({}, {life: edge})


NOTHING: Final = Lives()


def deleted(lives: Iterable[str] = (), *, purged: bool = False, before: Lives = NOTHING) -> Lives:
    """Return what a deletion records: every known life ends."""
    return before.flagged(lives, DELETED, *((PURGED,) if purged else ()))


def expired(lives: Iterable[str], before: Lives = NOTHING) -> Lives:
    """Return what is recorded of a memory that time has taken: gone for good, by nobody's wish."""
    return before.flagged(lives, PURGED)
