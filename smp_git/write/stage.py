"""The stage: changes on top of a snapshot, before anything is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import chain, islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from smp_git.format import document, metadata
from smp_git.format.lines import Entry
from smp_git.format.messages import Touch
from smp_git.format.records import WITH_VALUES
from smp_git.git.objects import BLOB, ObjectId, object_id
from smp_git.model.errors import (
    ConflictError,
    InvalidError,
    MemoryNotFoundError,
    RefusedError,
    shown,
)
from smp_git.model.ids import Id, is_elsewhere, parse_id, parse_path, short_id
from smp_git.model.memory import (
    CONTESTED,
    KINDS,
    VALUE,
    Kind,
    Link,
    Memory,
    MemoryId,
    Value,
    agent_name,
    check_fields,
    check_given,
    check_tags,
    kind_named,
    says_same,
    title_of,
)
from smp_git.read.snapshot import Snapshot, Subject

if TYPE_CHECKING:
    from smp_git.model.secrets.rules import Report

# An addition is compared with this many latest memories of its kind.
_WINDOW: Final = 50
# Share of words that two titles have in common to count as the same.
_ALIKE: Final = 0.9
_TICK: Final = timedelta(microseconds=1)
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A memory that has no id yet; checked when made."""

    kind: Kind
    content: str
    agent: str
    tags: tuple[str, ...]
    links: tuple[Link, ...]
    fields: Mapping[str, Value]
    created_at: datetime | None
    redacted: Report = ()

    def named(self, place: Id, now: datetime) -> Memory:
        """Return the memory under its id, created `now` unless the draft says when."""
        return Memory(
            id=place.text,
            kind=self.kind.name,
            created_at=self.created_at or now,
            agent=self.agent,
            content=self.content,
            title=document.title(place, self.content, self.fields),
            tags=self.tags,
            links=self.links,
            fields=self.fields,
            path=place.path,
            redacted=self.redacted,
        )


def draft(
    kind: str,
    text: str,
    *,
    agent: str,
    at: datetime | None = None,
    tags: Iterable[str] = (),
    links: Iterable[object] = (),
    fields: Mapping[str, object] = MappingProxyType({}),
) -> Draft:
    """Return a checked draft; raise InvalidError naming what is wrong."""
    known = kind_named(kind)
    if known.name == "state":
        raise InvalidError("a state is not added", hint="use set_state, or smp state AGENT")
    if known.name == VALUE:
        raise InvalidError("a value is put under a key, not added", hint="use session.values()")
    return Draft(
        kind=known,
        content=document.check_content(known, text),
        agent=agent_name(agent),
        tags=check_tags(tags),
        links=document.check_links(links),
        fields=MappingProxyType(check_given(known, fields)),
        created_at=at,
    )


def full_links(links: object, full: Callable[[str], MemoryId]) -> tuple[Link, ...]:
    """Return links as callers give them with the full ids of what they lead to.

    A link is a pair, a mapping of one word to an id, one with `relation` and `target`, or
    a text `word:id`; an id may be short.
    """
    if isinstance(links, (str, Mapping)) or not isinstance(links, Iterable):
        raise InvalidError(f"links must be a list of (relation, id), not {shown(links)}")
    found = map(_pair, links)
    return document.check_links(
        [(word, full(target) if isinstance(target, str) else target) for word, target in found]
    )


def _pair(link: object) -> tuple[object, object]:
    if isinstance(link, Mapping) and {"relation", "target"} <= link.keys():
        return link["relation"], link["target"]
    if isinstance(link, Mapping) and len(link) == 1:
        link = next(iter(link.items()))
    if isinstance(link, str) and ":" in link:
        relation, _, target = link.partition(":")
        return relation, target
    if isinstance(link, (list, tuple)) and len(link) == 2:  # noqa: PLR2004 - a pair
        return link[0], link[1]
    raise InvalidError(
        f"{shown(link)} is not a link",
        hint='a link is ("resolves", "FIND-0001") or "resolves:FIND-0001"',
    )


def _later(now: datetime, old: Memory) -> datetime:
    """Return when a new version is from: after the one that it replaces, whatever the clock says."""
    before = old.updated_at or old.created_at
    return now if now > before else before + _TICK


def _merged(old: Mapping[str, object], changes: Mapping[str, object]) -> dict[str, object]:
    """Return a mapping with changes: mappings are merged, other values replaced, None removed."""
    out = {name: value for name, value in old.items() if name != CONTESTED}
    for name, value in changes.items():
        if value is None:
            out.pop(name, None)
        elif isinstance(value, Mapping):
            before = out.get(name)
            out[name] = _merged(before if isinstance(before, Mapping) else {}, value)
        else:
            out[name] = value
    return out


class Labels(NamedTuple):
    """New tags and links of a memory: in place of those that it has, or beside them."""

    tags: Iterable[str] | None = None
    links: Iterable[object] | None = None
    add_tags: Sequence[str] = ()
    remove_tags: Sequence[str] = ()
    add_links: Sequence[object] = ()

    def tags_of(self, old: Memory) -> tuple[str, ...]:
        """Return the tags that a memory gets; raise InvalidError for one to remove that it lacks."""
        tags = old.tags if self.tags is None else check_tags(self.tags)
        gone = check_tags(self.remove_tags)
        for tag in gone:
            if tag not in tags:
                raise InvalidError(
                    f"{old.id} has no tag {tag}", hint=f"its tags: {', '.join(tags) or 'none'}"
                )
        return check_tags([*(tag for tag in tags if tag not in gone), *check_tags(self.add_tags)])

    def links_of(self, old: Memory, full: Callable[[str], MemoryId]) -> tuple[Link, ...]:
        """Return the links that a memory gets."""
        links = old.links if self.links is None else full_links(self.links, full)
        added = full_links(self.add_links, full)
        return tuple(dict.fromkeys((*links, *added)))


_AS_IT_IS: Final = Labels()


def _is_named(memory_id: MemoryId, short: Id) -> bool:
    """Whether an abbreviated id names a memory."""
    place = parse_id(memory_id)
    return (place.kind, place.number) == (short.kind, short.number) and short.tag in ("", place.tag)


class Stage:
    """Memories and files as they shall be; the snapshot below stays as it is.

    Remembers which version of each memory it started from, so that a later commit can
    tell whether somebody else changed it meanwhile.
    """

    def __init__(
        self, base: Snapshot, agent: str, now: datetime, number: Callable[[Kind], Id]
    ) -> None:
        self.base = base
        self.agent = agent
        self.now = now
        self._number = number
        self.memories: dict[MemoryId, Memory] = {}
        self.files: dict[str, bytes | None] = {}
        # The memories whose files are as the program writes them, by path.
        self.written: dict[str, Memory] = {}
        self.taken: dict[str, ObjectId] = {}
        self.touches: dict[MemoryId, Touch] = {}
        self.started_from: dict[MemoryId, ObjectId | None] = {}
        self._latest: dict[str, list[Entry]] = {}
        self._preferences: dict[Subject, dict[MemoryId, None]] = {}

    def get(self, memory_id: str) -> Memory:
        """Return a memory as staged, else as in the snapshot."""
        name = self.find(memory_id)
        return self.memories.get(name) or self.base.get(name)

    def find(self, text: str) -> MemoryId:
        """Return the id that `text` names."""
        name = MemoryId(str(text))
        return name if name in self.memories else self.base.find(text)

    def full(self, text: str) -> MemoryId:
        """Return the full id that a text names, staged or in the snapshot, or though it is gone."""
        if text in self.memories:
            return MemoryId(text)
        short = short_id(text)
        staged = [name for name in self.memories if short and _is_named(name, short)]
        return staged[0] if len(staged) == 1 else self.base.full(text)

    def add(self, new: Draft, *, skip_duplicates: bool = False) -> Memory:
        """Stage a new memory; return it, or the one it repeats if that is to be skipped."""
        twin = self._twin(new)
        if twin is not None and skip_duplicates:
            return replace(self.base.get(twin), duplicate_of=twin)
        memory = new.named(self._number(new.kind), self.now)
        _refuse_own_link(memory)
        memory = self._superseding(memory)
        memory = self._put(memory, "", None)
        for link in memory.links:
            if link.relation == "supersedes":
                self._mark_superseded(link.target)
        return replace(memory, duplicate_of=twin) if twin else memory

    def edit(
        self,
        memory_id: str,
        *,
        text: str | None = None,
        labels: Labels = _AS_IT_IS,
        fields: Mapping[str, object] = MappingProxyType({}),
        verb: str = "edit",
    ) -> Memory:
        """Stage a change of a memory; a field set to None is removed."""
        old = self.get(memory_id)
        if old.kind == "turn":
            raise RefusedError(
                f"{old.id} is a turn, and a turn is not edited", hint="redact or delete it"
            )
        if old.kind == VALUE and (text is not None or not fields.keys() <= {"pinned"}):
            raise RefusedError(
                f"{old.id} is a value, which the program that keeps it changes",
                hint="session.values().put, or edit its file and run smp commit",
            )
        kind = KINDS[old.kind]
        merged = {
            name: value
            for name, value in {**old.fields, **check_given(kind, fields)}.items()
            if name not in fields or fields[name] is not None
        }
        content = old.content if text is None else document.check_content(kind, text)
        place = parse_id(old.id)
        new = replace(
            old,
            content=content,
            title=document.title(place, content, merged),
            tags=labels.tags_of(old),
            links=labels.links_of(old, self.full),
            fields=MappingProxyType(merged),
        )
        if new.links != old.links:
            _refuse_own_link(new)
        if says_same(new, old):
            return old
        new = replace(new, updated_at=_later(self.now, old))
        return self._put(new, verb, old)

    def resolve(self, memory_id: str, said: Mapping[str, object]) -> Memory:
        """Stage the resolution of a finding or decision, with what is said of it."""
        old = self.get(memory_id)
        if old.kind not in ("finding", "decision"):
            raise RefusedError(f"{old.id} is a {old.kind}, which is not resolved")
        before = old.fields.get("resolution")
        resolution: dict[str, object] = dict(before) if isinstance(before, dict) else {}
        resolution |= {"status": "resolved", "resolved_at": self.now, "resolved_by": self.agent}
        resolution |= said
        changes: dict[str, object] = {"resolution": resolution, "status": None}
        if old.kind == "decision":
            # A decision may be taken up again: its status is its own.
            changes["status"] = resolution.pop("status")
        return self.edit(old.id, fields=changes, verb="resolve")

    def supersede(self, memory_id: str, new: Draft) -> Memory:
        """Stage a memory that replaces another of its kind."""
        old = self.get(memory_id)
        if old.kind != new.kind.name:
            raise InvalidError(f"a {new.kind.name} cannot replace {old.id}, which is a {old.kind}")
        return self.add(replace(new, links=(*new.links, Link("supersedes", old.id))))

    def pin(self, memory_id: str, *, pinned: bool) -> Memory:
        """Stage that decay and compaction leave a memory alone, or no longer do."""
        verb = "pin" if pinned else "unpin"
        return self.edit(memory_id, fields={"pinned": True if pinned else None}, verb=verb)

    def link(self, memory_id: str, link: object) -> Memory:
        """Stage a link from one memory to another."""
        old = self.get(memory_id)
        (new,) = full_links([link], self.full)
        linked = self.edit(old.id, labels=Labels(add_links=(new,)), verb="link")
        if new.relation == "supersedes":
            self._mark_superseded(new.target)
        return linked

    def unlink(self, memory_id: str, link: object) -> Memory:
        """Stage that a link goes."""
        old = self.get(memory_id)
        (gone,) = full_links([link], self.full)
        kept = [each for each in old.links if each != gone]
        if len(kept) == len(old.links):
            there = ", ".join(":".join(each) for each in old.links) or "none"
            raise MemoryNotFoundError(
                f"{old.id} has no link {gone.relation}:{gone.target}", hint=f"its links: {there}"
            )
        return self.edit(old.id, labels=Labels(links=kept), verb="unlink")

    def settle(self, memory_id: str, said: Mapping[str, Value], contested: list[Value]) -> Memory:
        """Stage what is left after a merge: fields set (None: removed), and what is left to settle."""
        old = self.get(memory_id)
        kind, place = KINDS[old.kind], parse_id(old.id)
        rest = dict(said)
        content = rest.pop(kind.main, old.content) or ""
        agent = rest.pop("agent", old.agent)
        fields = {**old.fields, **rest, CONTESTED: contested or None}
        checked = check_fields(kind, fields)
        new = replace(
            old,
            agent=agent_name(agent),
            content=document.check_content(kind, content),
            title=document.title(place, str(content), checked),
            fields=MappingProxyType(checked),
            updated_at=_later(self.now, old),
        )
        return self._put(new, "resolve", old)

    def set_state(self, agent: str, fields: Mapping[str, object]) -> Memory:
        """Stage the state of an agent; it replaces the one before."""
        name = agent_name(agent)
        return self._replace(Id(KINDS["state"], 0, "", name), name, "", fields)

    def set_value(self, place: Id, text: str, fields: Mapping[str, object]) -> Memory:
        """Stage the value of a key in place of the one before; what others put beside it stays."""
        old = self._known(place.text)
        own = {*place.kind.fields, CONTESTED}
        beside = {
            name: each for name, each in (old.fields if old else {}).items() if name not in own
        }
        content = document.check_content(place.kind, text)
        return self._replace(place, self.agent, content, {**beside, **fields})

    def _replace(self, place: Id, agent: str, content: str, fields: Mapping[str, object]) -> Memory:
        old = self._known(place.text)
        checked = MappingProxyType(check_given(place.kind, fields))
        new = Memory(
            id=place.text,
            kind=place.kind.name,
            created_at=old.created_at if old else self.now,
            updated_at=_later(self.now, old) if old else None,
            agent=agent,
            content=content,
            title=document.title(place, content, checked),
            tags=old.tags if old else (),
            links=old.links if old else (),
            fields=checked,
            life=old.life if old else "",
            path=place.path,
        )
        is_there = self.files.get(place.path, b"") is not None
        if old and is_there and says_same(replace(new, updated_at=old.updated_at), old):
            return old
        return self._put(new, "edit" if old else "", old)

    def update_state(self, agent: str, changes: Mapping[str, object]) -> Memory:
        """Stage the state of an agent with changes merged into it, as RFC 7396 merges JSON."""
        old = self._known(MemoryId(f"state-{agent_name(agent)}"))
        return self.set_state(agent, _merged(old.fields if old else {}, changes))

    def remove(self, memory_id: MemoryId) -> None:
        """Stage that a memory goes; its versions stay in the history."""
        place = parse_id(memory_id)
        self.memories.pop(place.text, None)
        if self.base.blob(place.text) is None:
            self.files.pop(place.path, None)
            self.touches.pop(place.text, None)
        else:
            self.put_file(place.path, None, "remove")

    def _known(self, memory_id: MemoryId) -> Memory | None:
        try:
            return self.get(memory_id)
        except MemoryNotFoundError:
            return None

    def put_file(
        self, path: str, data: bytes | None, verb: str, taken: bytes | None = None
    ) -> None:
        """Stage the bytes of a memory's file as they are (None: removed).

        `taken` is a checked-out version that they contain, which may be replaced.
        """
        if taken is not None and taken != data:
            self.taken[path] = object_id(BLOB, taken)
        place = parse_path(path)
        if place is None:
            self.files[path] = data
            return
        if place.kind.name == VALUE and data is not None:
            self._raise_format()
        self.started_from.setdefault(place.text, self.base.blob(place.text))
        memory = document.decode(data, path) if data is not None else None
        self.files[path] = data
        self.written.pop(path, None)
        self.touches[place.text] = Touch(
            verb, place.kind.name, place.text, memory.title if memory else ""
        )

    def adopt(self, other: Stage) -> None:
        """Take over what was staged on an older snapshot; raise ConflictError if it moved on."""
        changed = [
            name for name, blob in other.started_from.items() if self.base.blob(name) != blob
        ]
        if changed:
            raise ConflictError(
                f"{', '.join(sorted(changed))} changed meanwhile; nothing was written",
                hint="read the new version and try again",
            )
        self.memories.update(other.memories)
        self.files.update(other.files)
        if self.files.pop(metadata.PATH, None) is not None:
            # It may say something else by now.
            self._raise_format()
        self.written.update(other.written)
        self.touches.update(other.touches)
        self.taken.update(other.taken)
        self.started_from.update(other.started_from)

    def _raise_format(self) -> None:
        """Stage the format that values need, from the first one on."""
        said = self.base.repository.find(self.base.tree, metadata.PATH)
        if said is not None and self.base.metadata.format < WITH_VALUES:
            self.files[metadata.PATH] = metadata.with_values(self.base.repository.blob(said))

    def turn(self) -> str | None:
        """Return the turn that the staged memories came from, if they name one."""
        refs = [memory.fields.get("turn_ref") for memory in self.memories.values()]
        return next((ref for ref in refs if isinstance(ref, str)), None)

    def _put(self, memory: Memory, verb: str, old: Memory | None) -> Memory:
        if memory.kind == VALUE:
            self._raise_format()
        # What is new is not looked for: a deletion by others may have taken its folder.
        self.started_from.setdefault(memory.id, self.base.blob(memory.id) if old else None)
        before = self.files.get(memory.path) or (self.base.file(memory.id) if old else None)
        data = document.edited(before, old, memory) if before and old else document.encode(memory)
        self.files[memory.path] = document.fitting(data, memory.id)
        stored = self.memories[memory.id] = replace(memory, size_bytes=len(data))
        if before and old:
            self.written.pop(memory.path, None)
        else:
            self.written[memory.path] = stored
        subject = _subject(memory)
        if subject is not None:
            self._preferences.setdefault(subject, {})[memory.id] = None
        # An addition that is edited in the same commit remains an addition.
        first = self.touches.get(memory.id)
        told = first.verb if first is not None and first.verb != "remove" else verb
        self.touches[memory.id] = Touch(told, memory.kind, memory.id, memory.title)
        return stored

    def _mark_superseded(self, target: MemoryId) -> None:
        if is_elsewhere(target):
            return
        old = self._known(target)
        if old is not None and old.kind not in ("turn", "state") and old.status != "superseded":
            self.edit(old.id, fields={"status": "superseded"}, verb="supersede")

    def _superseding(self, memory: Memory) -> Memory:
        """Link a preference to the one of the same category and key that it replaces."""
        subject = _subject(memory)
        if subject is None:
            return memory
        same = [Link("supersedes", name) for name in self._about(subject)]
        return replace(memory, links=tuple(dict.fromkeys((*memory.links, *same))))

    def _about(self, subject: Subject) -> Iterator[MemoryId]:
        """Yield the preferences about a subject that hold, as staged."""
        for name in self.base.preferences(subject):
            if name not in self.memories:
                yield name
        for name in self._preferences.get(subject, ()):
            staged = self.memories[name]
            if _subject(staged) == subject and staged.status != "superseded":
                yield name

    def _twin(self, new: Draft) -> MemoryId | None:
        """Return the latest recent memory that says the same, or None."""
        title = title_of(new.content, new.fields)
        words = _words(title)
        for entry in self._recent(new.kind.name):
            if entry.status == "superseded":
                continue
            if entry.title == title and self.base.get(entry.id).content == new.content:
                return entry.id
            if new.kind.suffix != "md" and _alike(words, _words(entry.title)):
                return entry.id
        return None

    def _recent(self, kind: str) -> list[Entry]:
        known = self._latest.get(kind)
        if known is None:
            newest = (
                reversed(list(page.entries.values())) for page in self.base.newest_pages(kind)
            )
            known = self._latest[kind] = list(islice(chain.from_iterable(newest), _WINDOW))
        return known


def _refuse_own_link(memory: Memory) -> None:
    if any(link.target == memory.id for link in memory.links):
        raise InvalidError(f"{memory.id} cannot be linked to itself", hint="name another memory")


def _subject(memory: Memory) -> Subject | None:
    """Return what a preference is about, or None for any other memory."""
    key = memory.fields.get("key") or memory.fields.get("topic")
    if memory.kind != "preference" or not key:
        return None
    return Subject(memory.fields.get("category"), key)


@lru_cache(maxsize=4096)
def _words(title: str) -> frozenset[str]:
    return frozenset(_WORDS.findall(title.casefold()))


def _alike(left: frozenset[str], right: frozenset[str]) -> bool:
    first, second = len(left), len(right)
    # Fewer words than that cannot be enough in common.
    if first < _ALIKE * second or second < _ALIKE * first:
        return False
    both = len(left & right)
    return both >= 3 and both >= _ALIKE * (first + second - both)  # noqa: PLR2004 - fewer words say too little
