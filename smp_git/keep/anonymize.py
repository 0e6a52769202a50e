"""A session without the names in it: users, projects and paths become stable placeholders."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from smp_git.format import document
from smp_git.format.metadata import Metadata
from smp_git.git import disk
from smp_git.git.references import is_ancestor
from smp_git.git.repository import MAIN, Repository
from smp_git.keep import archive, every, stores
from smp_git.keep.mask import Mask, Switches
from smp_git.keep.stores import create_session
from smp_git.model.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidError,
    InvalidFileError,
    RefusedError,
    SmpError,
)
from smp_git.model.ids import id_of_value, parse_id
from smp_git.model.memory import VALUE, CommitId, Link, Memory, MemoryId, Value, check_fields
from smp_git.model.results import Result
from smp_git.read import archives
from smp_git.read.counts import Access
from smp_git.read.snapshot import Snapshot
from smp_git.remove import audit, redact, sessions
from smp_git.remove.history.journal import Receipt
from smp_git.remove.rewording import NewWords
from smp_git.remove.sessions import SessionReceipt
from smp_git.write import branches, hand_edits
from smp_git.write.handle import GLOBAL, Handle, Home
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
_LONGEST_KEY: Final = 60
_POINTERS: Final = ("turn_ref", "memory_refs", "parent", "supersedes", "learned_from")


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

    A name has the same placeholder in all of them, and links between them stay. In place,
    the old sessions are deleted, and what the new ones would be without is refused; with
    `copy` the new ones are made in the store at that folder, and nothing else changes.
    """
    target = home if copy is None else _store_at(copy, home)
    switches, told = given or Switches(), _told(home, ids, is_in_place=copy is None)
    mask = mask_of(
        [(each.origin, each.memories) for each in told.values()], switches, _renamed(ids)
    )
    made = []
    for name, each in told.items():
        fresh = _made(target, mask.session(name), each, mask, switches)
        receipt = _replaced(home, name, each, fresh, by) if copy is None else None
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

    Archived ones are restored for it; what takes their place is archived again, and says
    when it was, but not in whose words.
    """
    kept = {name: archive.kept_of(home.path, name) for name in archives.names(home.path)}
    active, target = every.names(home), home
    try:
        for name in kept:
            archive.restore(home, name, by=by)
        made = anonymize(home, (*active, *kept), given, copy=copy, by=by)
    finally:
        for name in {*kept} & {*stores.session_ids(home.path)}:
            archive.archive_again(home, name, kept[name])
    if copy is not None:
        target = stores.home_at(stores.absolute(copy), home.clock, home.environment)
    for name, each in zip(kept, made[len(active) :], strict=True):
        archive.archive_again(target, each.session, {"archived_at": kept[name]["archived_at"]})
    return made


def _renamed(ids: Sequence[str]) -> dict[str, str]:
    """Return the ids that sessions get."""
    return {name: f"anonymous-{secrets.token_hex(4)}" for name in ids}


class _Told(NamedTuple):
    """What a session says at a commit: of itself, in its memories, and of how often they were read."""

    head: CommitId
    origin: SessionOrigin
    memories: Sequence[Memory]
    reads: Mapping[str, Access]


def _told(home: Home, ids: Sequence[str], *, is_in_place: bool) -> dict[str, _Told]:
    found = {}
    for name in ids:
        with every.opened(home, name) as handle:
            snapshot = handle.reader.snapshot()
            memories = snapshot.memories()
            if is_in_place:
                _refuse_loss(handle, snapshot, memories)
            origin, reads = origin_of(snapshot.metadata), handle.accesses.totals()
            found[name] = _Told(snapshot.id, origin, memories, reads)
    return found


def _refuse_loss(handle: Handle, snapshot: Snapshot, memories: Iterable[Memory]) -> None:
    """Raise RefusedError for what a session has and a copy of main would be without."""
    repository = handle.reader.repository
    for branch in branches.listed(handle):
        if not is_ancestor(repository, branch.commit, snapshot.id):
            raise RefusedError(
                f"branch {branch.name} of session {handle.name} has writes that main has not, and the copy would be without them",
                hint=f"smp merge {branch.name}, or smp branch {branch.name} --drop, or make a copy with --copy",
            )
    for memory in memories:
        if memory.problem:
            raise RefusedError(
                f"{memory.id} of session {handle.name} cannot be read: {memory.problem}",
                hint="smp repair, or make a copy with --copy",
            )
    if edited := hand_edits.listed(handle):
        raise RefusedError(
            f"{edited[0].path} of session {handle.name} was edited by hand and is in no commit",
            hint="smp commit, or git checkout puts it back",
        )


def _store_at(path: str | PathLike[str], home: Home) -> Home:
    place = stores.absolute(path)
    stores.init(place)
    return stores.home_at(place, home.clock, home.environment)


def _made(home: Home, name: str, told: _Told, mask: Mask, switches: Switches) -> Anonymized:
    new = nameless(told.origin, told.memories, mask, switches)
    origin = new.origin
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
    pairs = zip(told.memories, new.memories, strict=True)
    reads = {now.id: told.reads[old.id] for old, now in pairs if old.id in told.reads}
    with every.opened(home, name) as handle:
        take_over(handle.writer, new.memories)
        handle.accesses.take({name: (each.times, each.last_at) for name, each in reads.items()})
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


def _replaced(
    home: Home, name: str, told: _Told, fresh: Anonymized, by: str | None
) -> SessionReceipt:
    """Delete the old session, unless somebody wrote to it since: then the new one goes."""

    def check(place: Path) -> None:
        with closing(Repository(place)) as repository:
            if repository.head(MAIN) != told.head:
                raise ConflictError(
                    f"session {name} was written to while it was anonymized; it stays as it is",
                    hint="try again",
                )

    why = "replaced by an anonymized copy"
    try:
        receipt = sessions.delete(home, name, why, by or told.origin.user, check=check)
    except SmpError:
        disk.remove_folder(Path(fresh.path))
        raise
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
    """The anonymized session; `receipt` is that of the old one's deletion, in place.

    >>> copy = session.anonymize()
    >>> (copy.memories, copy.receipt.reason)
    (3, 'replaced by an anonymized copy')
    """

    session: str
    path: str
    memories: int
    placeholders: int
    receipt: SessionReceipt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnonymizedMemories(Result):
    """The memories that were anonymized, or would be; `receipt` is None for a dry run.

    `also_in` are other memories that hold one of the names.

    >>> session.anonymize_memories("DEC-0001", dry_run=True).ids
    ('DEC-0001',)
    """

    ids: tuple[MemoryId, ...]
    placeholders: int
    also_in: tuple[MemoryId, ...] = ()
    receipt: Receipt | None = None


def anonymize_memories(
    handle: Handle,
    ids: Iterable[str],
    given: Switches | None,
    *,
    reason: str | None = None,
    by: str | None = None,
    dry_run: bool = False,
) -> AnonymizedMemories:
    """Put placeholders in the place of the names in some memories, in every version of them.

    The names are all those that the session tells. As after a redaction, the earlier
    history of these memories goes, nothing of it can be restored, and no replica brings a
    name back. A memory without names stays as it is.
    """
    switches, snapshot = given or Switches(), handle.reader.snapshot()
    memories = snapshot.memories()
    names = tuple(dict.fromkeys(snapshot.find(each) for each in ids))
    if not names:
        raise InvalidError("no memory was named", hint="name ids, or anonymize the session")
    mask = mask_of([(origin_of(handle.metadata), memories)], switches)
    for name in names:
        if _memory(snapshot.get(name), mask, switches).id != name:
            raise RefusedError(
                f"{name} has a name in its id, which stays",
                hint="anonymize the session, or delete it",
            )
    words = NewWords(
        lambda memory: replace(_memory(memory, mask, switches), life=memory.life),
        lambda data, old, new: _file(data, old, new, mask),
        mask.slug,
    )
    hits = redact.reworded_by(handle, names, words)
    receipt = None
    if hits and not dry_run:
        receipt = redact.reword(handle, hits, words, action="anonymize", reason=reason, by=by)
    others = (memory for memory in memories if memory.id not in names)
    also = tuple(memory.id for memory in others if words.memory(memory) != memory)
    return AnonymizedMemories(ids=hits, placeholders=mask.count, also_in=also, receipt=receipt)


def _file(data: bytes, old: Memory, new: Memory, mask: Mask) -> bytes:
    """Return a memory's file as a person wrote it, without names in comments either."""
    kept = document.edited(data, old, new)
    clean = mask.text(kept.decode("utf-8", "replace")).encode()
    try:
        same = document.decode(clean, new.path) == document.decode(kept, new.path)
    except InvalidFileError:
        same = False
    return clean if same else document.encode(new)


def mask_of(
    told: Sequence[tuple[SessionOrigin, Sequence[Memory]]],
    switches: Switches,
    sessions: Mapping[str, str] = MappingProxyType({}),
) -> Mask:
    """Return the placeholders of every name that some sessions tell, and the ids that these get."""
    users = [name for origin, memories in told for name in _users(origin, memories)]
    projects = [name for origin, memories in told for name in _projects(origin, memories)]
    texts = (
        document.encode(memory).decode("utf-8", "replace")
        for _, memories in told
        for memory in memories
    )
    return Mask(users, projects, switches, texts=texts, sessions=sessions)


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
    """Return fields without names, in what they are called too; no two become one."""
    found: dict[str, Value] = {}
    for name, value in fields.items():
        clean = mask.text(name)
        if clean != name:
            plain = re.sub(r"[^A-Za-z0-9_.-]", "_", f"x{clean}")[:_LONGEST_KEY]
            clean = _free(plain, found, fields)
        found[clean] = _value(value, mask.text)
    return found


def _value(value: Value, clean: Callable[[str], str]) -> Value:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_value(item, clean) for item in value]
    if isinstance(value, dict):
        found: dict[str, Value] = {}
        for name, item in value.items():
            key = clean(name)
            found[name if key == name else _free(key, found, value)] = _value(item, clean)
        return found
    return value


def _free(name: str, *taken: Mapping[str, Value]) -> str:
    """Return a name that nothing has yet: itself, or with a number."""
    found, number = name, 1
    while any(found in each for each in taken):
        number += 1
        found = f"{name}_{number}"
    return found
