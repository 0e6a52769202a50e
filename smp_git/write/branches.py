"""Branches, tags, and the values that contest each other after a merge."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast

from smp_git.format import document
from smp_git.git import references
from smp_git.git.references import HEADS, TAGS, collisions
from smp_git.git.repository import MovedError
from smp_git.model.errors import (
    AlreadyExistsError,
    InvalidError,
    NotFoundError,
    RefusedError,
    shown,
)
from smp_git.model.memory import CommitId, Memory, MemoryId, Value, check_value, contested_in
from smp_git.model.results import Result
from smp_git.model.times import When, format_time
from smp_git.read.snapshot import Snapshot
from smp_git.write.handle import Handle
from smp_git.write.stage import Stage

_LONGEST: Final = 100
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*(?:/[a-z0-9][a-z0-9._-]*)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A branch of a session; `is_current` if this handle works on it.

    >>> idea = session.branch("idea")
    >>> [each.name for each in session.branches()]
    ['main', 'idea']
    """

    name: str
    commit: CommitId
    written_at: datetime
    is_current: bool

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "name": self.name,
            "commit": self.commit,
            "written_at": format_time(self.written_at),
            "current": self.is_current,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag(Result):
    """A name for one commit.

    >>> session.tag("v1").name
    'v1'
    """

    name: str
    commit: CommitId


@dataclass(frozen=True, slots=True, kw_only=True)
class Contested(Result):
    """A value that lost in a merge, and the one that was kept; None is an absent field.

    `replica` and `at` say who gave the value and when; `in_history` that it was too
    large to be kept in the memory.

    >>> session.branch("idea").edit("DEC-0001", rationale="Known").id
    'DEC-0001'
    >>> edited = session.edit("DEC-0001", rationale="Proved")
    >>> merged = session.merge("idea")
    >>> [(each.kept, each.value) for each in session.conflicts()]
    [('Proved', 'Known')]
    """

    id: MemoryId
    title: str
    field: str
    kept: Value
    value: Value
    at: str
    replica: str
    in_history: bool


def create(handle: Handle, name: str) -> None:
    """Make a branch at the newest commit of a handle."""
    ref = HEADS + checked_name(handle.rules.name(name, "the name of a branch"), "branch")
    handle.writer.ready()
    with handle.writer.holding(f"making branch {name}") as now:
        _point(handle, ref, now.id)


def switch(handle: Handle, name: str) -> None:
    """Let a handle work on another branch; the folder goes on showing main."""
    ref = find(handle, name)
    handle.keeper.flush()
    handle.reader.bind(ref)


def listed(handle: Handle) -> tuple[Branch, ...]:
    """Return the branches, main first, then by name."""
    handle.reader.main()
    repository = handle.reader.repository
    found = [
        Branch(
            name=ref.removeprefix(HEADS),
            commit=tip,
            written_at=repository.commit(tip).time,
            is_current=ref == handle.reader.ref,
        )
        for ref, tip in repository.references().items()
        if ref.startswith(HEADS)
    ]
    return tuple(sorted(found, key=lambda branch: (branch.name != "main", branch.name)))


def find(handle: Handle, name: str) -> str:
    """Return the reference of a branch; raise NotFoundError."""
    handle.reader.main()
    if f"{HEADS}{name}" not in handle.reader.repository.references():
        raise NotFoundError(f"no branch {shown(name)}", hint="smp branch lists them")
    return f"{HEADS}{name}"


def tag(handle: Handle, name: str, revision: When, *, move: bool = False) -> Tag:
    """Name a commit; with `move`, what is named so already."""
    ref = TAGS + checked_name(handle.rules.name(name, "the name of a tag"), "tag")
    handle.writer.ready()
    with handle.writer.holding(f"making tag {name}"):
        # Not before: a deletion meanwhile gives every commit another name.
        commit = handle.at(revision).id
        if move:
            handle.reader.repository.point({_found_tag(handle, name): commit})
        else:
            _point(handle, ref, commit)
    return Tag(name=name, commit=commit)


def remove_tag(handle: Handle, name: str) -> Tag:
    """Remove a tag; the commit that it names stays."""
    handle.writer.ready()
    with handle.writer.holding(f"removing tag {name}"):
        ref = _found_tag(handle, name)
        commit = handle.reader.repository.resolve(ref)
        references.drop(handle.reader.repository.git, ref)
    return Tag(name=name, commit=commit)


def _found_tag(handle: Handle, name: str) -> str:
    """Return the reference of a tag; raise NotFoundError."""
    handle.reader.main()
    ref = f"{TAGS}{name}"
    if ref not in handle.reader.repository.references():
        raise NotFoundError(f"no tag {shown(name)}", hint="smp tag lists them")
    return ref


def tags(handle: Handle) -> tuple[Tag, ...]:
    """Return the tags, by name."""
    handle.reader.main()
    repository = handle.reader.repository
    names = sorted(ref for ref in repository.references() if ref.startswith(TAGS))
    return tuple(Tag(name=ref.removeprefix(TAGS), commit=repository.resolve(ref)) for ref in names)


def _point(handle: Handle, ref: str, commit: CommitId) -> None:
    """Make a reference; the caller holds the lock."""
    repository = handle.reader.repository
    name = ref.split("/", 2)[2]
    known = repository.references()
    if ref in known:
        raise AlreadyExistsError(f"{name} exists", hint="choose another name")
    for _, other in collisions([ref], known):
        raise InvalidError(
            f"{name} cannot exist beside {other.split('/', 2)[2]}", hint="choose another name"
        )
    try:
        with repository.store([]) as written:
            repository.publish(ref, None, commit, written)
    except MovedError:
        raise AlreadyExistsError(f"{name} exists", hint="choose another name") from None


def conflicts(handle: Handle) -> tuple[Contested, ...]:
    """Return the values that lost in merges and are not settled yet, sorted like ids."""
    return handle.read(None, _contested)


def settle(
    handle: Handle,
    memory_id: str,
    field: str | None,
    take: str | None,
    value: object,
    agent: str | None,
) -> Memory:
    """Settle what is contested in a memory, or in one field of it, and return the memory."""
    work = settling(handle, memory_id, field, take, value)
    memory, _ = handle.writer.run(handle.actor(agent), work)
    return memory


def settling(
    handle: Handle, memory_id: str, field: str | None, take: str | None, value: object
) -> Callable[[Stage], Memory]:
    """Return what stages the settlement of a memory, or of one field of it."""
    if take is not None and value is not None:
        raise InvalidError("both a replica and a value are given", hint="leave one out")
    name = field or "value"
    cleaned = handle.rules.cleaned(None, {name: check_value(value, "the value")})
    given = cast("Value", cleaned.fields[name])

    def work(stage: Stage) -> Memory:
        old = stage.get(memory_id)
        names, said = _settled(old, field, take, given)
        left: list[Value] = [item for item in contested_in(old) if item["field"] not in names]
        return stage.settle(old.id, said, left)

    return work


def checked_name(name: object, what: str) -> str:
    """Return a name for a branch or tag that Git takes everywhere; raise InvalidError."""
    fits = isinstance(name, str) and _NAME.fullmatch(name) and len(name) <= _LONGEST
    parts = name.split("/") if isinstance(name, str) and fits else []
    if not parts or any(".." in part or part.endswith((".", ".lock")) for part in parts):
        raise InvalidError(
            f"{shown(name)} is not a valid name for a {what}",
            hint="up to 100 of a-z, 0-9, '-', '_', '/' and '.', each part beginning with a letter or digit",
        )
    return str(name)


def _contested(snapshot: Snapshot) -> tuple[Contested, ...]:
    """Return what is contested; only files that speak of it are taken apart."""
    found = []
    for entry in snapshot.entries():
        if b"contested" not in (snapshot.readable_file(entry.id) or b""):
            continue
        memory = snapshot.get(entry.id)
        present = document.fields_of(memory)
        found += [
            Contested(
                id=memory.id,
                title=memory.title,
                field=str(item["field"]),
                kept=present.get(str(item["field"])),
                value=item.get("value"),
                at=str(item["at"]),
                replica=str(item["replica"]),
                in_history="value" not in item,
            )
            for item in contested_in(memory)
        ]
    return tuple(found)


def _settled(
    memory: Memory, field: str | None, take: str | None, value: Value
) -> tuple[list[str], dict[str, Value]]:
    """Return the fields that are settled, and those of them that get another value."""
    items = [item for item in contested_in(memory) if field in (None, item["field"])]
    names = list(dict.fromkeys(str(item["field"]) for item in items))
    if not names:
        what = f"{field} of {memory.id}" if field else memory.id
        raise NotFoundError(f"nothing is contested in {what}", hint="smp conflicts lists what is")
    if take is not None:
        said = _of_replica(memory, items, take)
        return list(said), said
    if value is not None and len(names) > 1:
        raise InvalidError(
            f"{', '.join(names)} of {memory.id} are contested", hint="name one with --field"
        )
    return names, {names[0]: value} if value is not None else {}


def _of_replica(memory: Memory, items: list[dict[str, Value]], replica: str) -> dict[str, Value]:
    """Return the values that a replica gave to contested fields."""
    mine = [item for item in items if item["replica"] == replica]
    if not mine:
        known = ", ".join(sorted({str(item["replica"]) or "''" for item in items}))
        raise NotFoundError(
            f"replica {shown(replica)} has no value in {memory.id}", hint=f"these have: {known}"
        )
    lost = [str(item["field"]) for item in mine if "value" not in item]
    if lost:
        raise RefusedError(
            f"the value of {lost[0]} was too large to be kept in {memory.id}",
            hint="smp log shows the commit that gave it",
        )
    return {str(item["field"]): item["value"] for item in mine}
