"""A session without the names in it: users, projects and paths become stable placeholders."""

from __future__ import annotations

import re
import secrets
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from os import PathLike
from pathlib import Path
from string import ascii_uppercase
from types import MappingProxyType
from typing import Final

from smp_git.format import document
from smp_git.format.metadata import Metadata
from smp_git.keep import archive, opening, stores
from smp_git.keep.stores import create_session, open_by_id
from smp_git.model.errors import AlreadyExistsError
from smp_git.model.ids import id_of_value, parse_id
from smp_git.model.memory import VALUE, Link, Memory, Value, agent_name, check_fields
from smp_git.model.results import Result
from smp_git.model.secrets.redaction import redact
from smp_git.read import archives
from smp_git.remove import audit, sessions
from smp_git.remove.sessions import SessionReceipt
from smp_git.write.handle import GLOBAL, Home
from smp_git.write.stage import Stage
from smp_git.write.writer import Writer


def take_over(writer: Writer, memories: Sequence[Memory]) -> int:
    """Add memories, each run of one agent's as one commit; raise AlreadyExistsError if one is there."""
    head = writer.reader.snapshot()
    taken = [memory.id for memory in memories if head.blob(memory.id) is not None]
    if taken:
        raise AlreadyExistsError(f"{taken[0]} exists", hint="take over into a new session")
    for agent, run in groupby(memories, key=lambda memory: memory.agent):
        writer.run(agent, _staging(list(run)))
    return len(memories)


def _staging(memories: Sequence[Memory]) -> Callable[[Stage], None]:
    def work(stage: Stage) -> None:
        for memory in memories:
            path = parse_id(memory.id).path
            stage.put_file(path, document.encode(replace(memory, path=path)), "")

    return work


REMOVED: Final = "[REMOVED]"
# Fields that say who somebody is, and those that only point to other memories.
_PEOPLE: Final = (
    "speaker",
    "made_by",
    "agreed_by",
    "approved_by",
    "discovered_by",
    "agents_involved",
    "created_by",
    "resolved_by",
)
_POINTERS: Final = ("turn_ref", "memory_refs", "parent", "supersedes", "learned_from")
# A path of two parts or more, not part of an address or a word.
_PATH = re.compile(
    r"(?<![\w:/.~\\])(?:~?(?:/[\w.@+-]+){2,}/?|[A-Za-z]:(?:\\[\w.@+ -]+)*\\[\w.@+-]+)"
)
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,8}$")
_SHORTEST_NAME: Final = 2
# A word of a person's name that stands alone is a name from this length on.
_SHORTEST_WORD: Final = 3
# Who speaks, where nobody in particular does.
_SPEAKERS: Final = frozenset({"user", "assistant", "system"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """The choices of an anonymization: names to remove, and what to keep.

    `users` and `projects` are further names, besides those that the session itself tells.
    """

    user_names: bool = True
    project_names: bool = True
    file_paths: bool = True
    placeholders: bool = True
    structure: bool = True
    users: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOrigin:
    """A session's metadata, as far as it names anybody."""

    user: str | None
    agents: tuple[str, ...]
    context: Mapping[str, Value]
    tags: tuple[str, ...]
    overrides: Mapping[str, Value] = field(default_factory=dict)


def anonymize(
    home: Home,
    ids: Sequence[str],
    given: Switches | None,
    *,
    copy: str | PathLike[str] | None = None,
    by: str | None = None,
) -> tuple[Anonymized, ...]:
    """Make copies of sessions without names, with new identities and without their history.

    A name has the same placeholder in all of them. In place, the old sessions are deleted;
    with `copy` the new ones are made in the store at that folder, and nothing else changes.
    """
    target = home if copy is None else _store_at(copy, home)
    switches, told = given or Switches(), {}
    for name in ids:
        handle = open_by_id(home, name)
        try:
            told[name] = handle.metadata, handle.reader.snapshot().memories()
        finally:
            opening.close(handle)
    mask = mask_of([(origin_of(each), memories) for each, memories in told.values()], switches)
    made = []
    for name, (metadata, memories) in told.items():
        fresh = _made(target, nameless(origin_of(metadata), memories, mask, switches))
        who = by or metadata.user
        receipt = _replaced(home, name, who) if copy is None else None
        if name == GLOBAL:
            fresh = _as_global(target, fresh)
        made.append(replace(fresh, receipt=receipt))
    return tuple(made)


def anonymize_all(
    home: Home,
    given: Switches | None,
    *,
    copy: str | PathLike[str] | None = None,
    by: str | None = None,
) -> tuple[Anonymized, ...]:
    """Anonymize every session of a store: active, archived, and the global one.

    Archived ones are restored for it; what takes their place is archived again.
    """
    shared = (GLOBAL,) if (home.path / GLOBAL).is_dir() else ()
    kept = {name: archive.kept_of(home.path, name) for name in archives.names(home.path)}
    names = (*stores.session_ids(home.path), *shared, *kept)
    for name in kept:
        archive.restore(home, name, by=by)
    made = anonymize(home, names, given, copy=copy, by=by)
    for name, each in zip(names, made, strict=True):
        if name in kept:
            archive.archive_again(home, each.session if copy is None else name, kept[name])
    return made


def _store_at(path: str | PathLike[str], home: Home) -> Home:
    place = stores.absolute(path)
    stores.init(place)
    return stores.home_at(place, home.clock, home.surroundings)


def _made(home: Home, new: Nameless) -> Anonymized:
    origin, name = new.origin, f"anonymous-{secrets.token_hex(4)}"
    place = create_session(
        home,
        name,
        home.clock(),
        user=origin.user,
        agents=origin.agents,
        context=origin.context,
        tags=origin.tags,
        overrides=origin.overrides,
    )
    handle = open_by_id(home, name)
    try:
        take_over(handle.writer, new.memories)
    finally:
        opening.close(handle)
    return Anonymized(
        session=name,
        path=str(place),
        memories=len(new.memories),
        placeholders=new.placeholders,
    )


def _as_global(home: Home, made: Anonymized) -> Anonymized:
    """Let a session be the one for what applies to all, where there is none."""
    place = home.path / GLOBAL
    if place.exists():
        return made
    Path(made.path).rename(place)
    return replace(made, session=GLOBAL, path=str(place))


def _replaced(home: Home, name: str, by: str | None) -> SessionReceipt:
    receipt = sessions.delete(home, name, "replaced by an anonymized copy", by)
    audit.note(home.path, "anonymize", name, at=home.clock(), by=receipt.by)
    return receipt


def origin_of(told: Metadata) -> SessionOrigin:
    """Return what the metadata of a session tells."""
    return SessionOrigin(
        user=told.user,
        agents=told.agents,
        context=told.context,
        tags=told.tags,
        overrides=told.settings,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Nameless:
    """A session without names: what it says of itself, and its memories."""

    origin: SessionOrigin
    memories: tuple[Memory, ...]
    placeholders: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Anonymized(Result):
    """The anonymized session; `receipt` is that of the old one's deletion, in place."""

    session: str
    path: str
    memories: int
    placeholders: int
    receipt: SessionReceipt | None = None


def mask_of(sessions: Iterable[tuple[SessionOrigin, Sequence[Memory]]], switches: Switches) -> Mask:
    """Return the placeholders of every name that some sessions tell."""
    told = list(sessions)
    users = [name for origin, memories in told for name in _users(origin, memories)]
    projects = [name for origin, memories in told for name in _projects(origin, memories)]
    return Mask(
        _names((*users, *switches.users), keep=_SPEAKERS) if switches.user_names else [],
        _names((*projects, *switches.projects), keep={"*"}) if switches.project_names else [],
        switches,
    )


def nameless(
    origin: SessionOrigin, memories: Sequence[Memory], mask: Mask, switches: Switches
) -> Nameless:
    """Return the session without names; the same name has the same placeholder everywhere."""
    clean = [_memory(memory, mask, switches) for memory in memories]
    return Nameless(
        origin=SessionOrigin(
            user=mask.text(origin.user) if origin.user else None,
            agents=tuple(dict.fromkeys(mask.slug(agent) for agent in origin.agents)),
            context=_mapping(dict(origin.context), mask),
            tags=tuple(dict.fromkeys(map(mask.tag, origin.tags))),
            overrides=_mapping(dict(origin.overrides), mask),
        ),
        memories=tuple(clean),
        placeholders=mask.count,
    )


class Mask:
    """Names and paths, each with its placeholder; numbers are given in the order of the names."""

    def __init__(self, users: Sequence[str], projects: Sequence[str], switches: Switches) -> None:
        self._shown = switches.placeholders
        self._paths: dict[str, str] | None = {} if switches.file_paths else None
        self._placeholders = {name: f"User-{n}" for n, name in enumerate(users, 1)}
        self._placeholders |= {name: f"Project-{_letters(n)}" for n, name in enumerate(projects)}
        forms = {form: shown for name, shown in self._placeholders.items() for form in _forms(name)}
        self._variants = {_folded(form): shown for form, shown in forms.items()}
        people = {
            word: self._placeholders[name] for name in reversed(users) for word in _words_of(name)
        }
        self._people = {
            word: shown for word, shown in people.items() if _folded(word) not in self._variants
        }
        whole = sorted({each for form in forms for each in _spellings(form)}, key=len, reverse=True)
        alone = sorted(
            {each for word in self._people for each in _spellings(word)}, key=len, reverse=True
        )
        self._regex = re.compile(_pattern(whole, alone)) if whole else None

    @property
    def count(self) -> int:
        """The number of names and paths that have a placeholder."""
        return len(self._placeholders) + len(self._paths or ())

    def text(self, text: str) -> str:
        """Return a text without names, paths, and addresses of mail."""
        if self._paths is not None:
            text = _PATH.sub(self._path, text)
        if self._regex is not None:
            text = self._regex.sub(self._name, text)
        return redact(text).text

    def slug(self, word: str) -> str:
        """Return an agent's name without names of users and projects."""
        return agent_name(self._lower(word))

    def session(self, name: str) -> str:
        """Return a session's id without names of users and projects."""
        return self._lower(name)

    def tag(self, tag: str) -> str:
        """Return a tag without names, part by part."""
        return ".".join(self._lower(part) for part in tag.split("."))

    def _lower(self, word: str) -> str:
        if self._regex is None:
            return word
        return self._regex.sub(lambda match: self._of(match[0]).lower(), word)

    def _name(self, match: re.Match[str]) -> str:
        return self._of(match[0]) if self._shown else REMOVED

    def _of(self, found: str) -> str:
        known = self._variants.get(_folded(found))
        if known is not None:
            return known
        folded = _folded(found)
        return next(shown for word, shown in self._people.items() if _folded(word) == folded)

    def _path(self, match: re.Match[str]) -> str:
        if not self._shown or self._paths is None:
            return REMOVED
        suffix = _SUFFIX.search(match[0])
        return self._paths.setdefault(
            match[0], f"/path/{len(self._paths) + 1}{suffix[0] if suffix else ''}"
        )


def _letters(number: int) -> str:
    letters = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, len(ascii_uppercase))
        letters = ascii_uppercase[rest] + letters
    return letters


def _folded(text: str) -> str:
    """Return a text without case, accents and forms of characters; a dotless i is an i."""
    plain = unicodedata.normalize("NFKD", text.replace("ı", "i")).casefold()
    return "".join(
        char for char in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(char)
    )


def _spellings(form: str) -> set[str]:
    """Return how a text may be written by the rules of some language or program."""
    plain = unicodedata.normalize("NFC", form)
    cases = {plain, plain.upper(), plain.casefold(), plain.lower(), plain.title()}
    cases |= {each.replace("i", "ı") for each in (plain, plain.lower())}
    cases |= {each.replace("I", "İ").replace("i", "İ") for each in (plain, plain.upper())}
    return {unicodedata.normalize(how, each) for each in cases for how in ("NFC", "NFD", "NFKC")}


# A name ends where a word ends, or where another one begins in the middle of it: NimbusApi.
_BEFORE: Final = r"(?:(?<![^\W_])|(?<=[a-z])(?=[A-Z]))"
_AFTER: Final = r"(?:(?![^\W_])|(?<=[a-z])(?=[A-Z]))"


def _pattern(whole: Sequence[str], alone: Sequence[str]) -> str:
    """Return what finds names without case, and words of them that are written like names."""
    parts = f"(?i:{'|'.join(map(re.escape, whole))})"
    if names := [each for each in alone if each[:1].isupper()]:
        parts += f"|(?:{'|'.join(map(re.escape, names))})"
    return f"{_BEFORE}(?:{parts}){_AFTER}"


def _words_of(name: str) -> list[str]:
    """Return the words of a person's name, if it has several and is written like one."""
    words = re.findall(r"[^\W_\d]+", name)
    if len(words) < 2 or not all(word[:1].isupper() for word in words):  # noqa: PLR2004 - first and last
        return []
    return [word for word in words if len(word) >= _SHORTEST_WORD]


def _forms(name: str) -> set[str]:
    """Return how a name may be written: as it is, with other joins, as an agent or a tag."""
    words = re.findall(r"[^\W_]+", name)
    return {name, *(join.join(words) for join in (" ", "-", "_", ""))} - {""}


def _users(origin: SessionOrigin, memories: Iterable[Memory]) -> list[str]:
    rest = {name for memory in memories for name in _people(memory)} - {*origin.agents}
    return [*([origin.user] if origin.user else []), *sorted(rest)]


def _people(memory: Memory) -> Iterator[str]:
    """Yield whom a memory names: people, not the agent that wrote it."""
    contested = memory.fields.get("contested")
    for said in (memory.fields, *(contested if isinstance(contested, list) else ())):
        for name in _named_in(said):
            if name != memory.agent:
                yield name


def _named_in(said: object) -> Iterator[str]:
    """Yield the people that fields name, those of a value that lost in a merge too."""
    if not isinstance(said, Mapping):
        return
    lost = {said["field"]: said.get("value")} if isinstance(said.get("field"), str) else {}
    resolution = said.get("resolution", lost.get("resolution"))
    inner = resolution if isinstance(resolution, Mapping) else {}
    for key in _PEOPLE:
        for value in (said.get(key), lost.get(key), inner.get(key)):
            for name in value if isinstance(value, list) else [value]:
                if isinstance(name, str):
                    yield name


def _projects(origin: SessionOrigin, memories: Iterable[Memory]) -> list[str]:
    named = [origin.context.get(key) for key in ("project_name", "project", "project_root")]
    for memory in memories:
        applies = memory.fields.get("applies_to")
        listed = applies.get("projects") if isinstance(applies, dict) else None
        named += listed if isinstance(listed, list) else []
    return [str(name) for name in named if name]


def _names(given: Iterable[str], keep: Container[str]) -> list[str]:
    names: dict[str, str] = {}
    for name in given:
        folded = " ".join(re.findall(r"[^\W_]+", _folded(name)))
        if len(folded) >= _SHORTEST_NAME and name not in keep:
            names.setdefault(folded, name)
    return list(names.values())


def _memory(memory: Memory, mask: Mask, switches: Switches) -> Memory:
    place = parse_id(memory.id)
    if place.kind.name == "state":
        place = place._replace(name=mask.slug(place.name))
    fields = dict(memory.fields)
    if not switches.structure:
        fields = {name: value for name, value in fields.items() if name not in _POINTERS}
    checked = check_fields(place.kind, _mapping(fields, mask))
    if place.kind.name == VALUE:
        # Its key may hold names; without history it was never deleted before.
        checked.pop("again", None)
        place = id_of_value(checked) or place
    content = mask.text(memory.content)
    return replace(
        memory,
        id=place.text,
        path=place.path,
        agent=mask.slug(memory.agent),
        content=content,
        title=document.title(place, content, checked),
        tags=tuple(dict.fromkeys(map(mask.tag, memory.tags))),
        links=_links(memory, mask) if switches.structure else (),
        fields=MappingProxyType(checked),
        life="",
    )


def _links(memory: Memory, mask: Mask) -> tuple[Link, ...]:
    return document.check_links(
        [(link.relation, _target(link.target, mask)) for link in memory.links]
    )


def _target(target: str, mask: Mask) -> str:
    session, colon, name = target.rpartition(":")
    agent = name.removeprefix("state-")
    clean = name if agent == name else f"state-{mask.slug(agent)}"
    return f"{mask.session(session)}{colon}{clean}"


def _mapping(fields: Mapping[str, Value], mask: Mask) -> dict[str, Value]:
    return {mask.text(name): _value(value, mask.text) for name, value in fields.items()}


def _value(value: Value, clean: Callable[[str], str]) -> Value:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_value(item, clean) for item in value]
    if isinstance(value, dict):
        return {clean(name): _value(item, clean) for name, item in value.items()}
    return value
