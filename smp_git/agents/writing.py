"""Writes of one agent: recorded in its name, refused where it may not write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from smp_git.agents.sight import Sight
from smp_git.model.ids import parse_id
from smp_git.model.memory import Memory, MemoryId
from smp_git.read.snapshot import Snapshot
from smp_git.write import edits
from smp_git.write.handle import Handle
from smp_git.write.stage import Stage

if TYPE_CHECKING:
    from smp_git.remove.history.journal import Receipt
    from smp_git.remove.restore import Restored


class What(NamedTuple):
    """A memory to record."""

    kind: str
    text: str
    tags: Sequence[str] = ()
    links: Sequence[object] = ()
    fields: Mapping[str, object] = MappingProxyType({})


def add(sight: Sight, what: What, *, skip_duplicates: bool = False) -> Memory:
    """Record a memory; a twin that the agent may not see counts as none."""
    handle = sight.handle
    kind, text, tags, links, fields = what
    made = edits.new(handle, kind, text, sight.access.agent, tags, links, None, fields)
    found = edits.add(handle, made, skip_duplicates=skip_duplicates)
    if found.duplicate_of is None or not is_hidden(sight, found.duplicate_of):
        return found
    if found.duplicate_of == found.id:
        found = edits.add(handle, made)
    return replace(found, duplicate_of=None)


class ClientTurn(NamedTuple):
    """A turn of a conversation that somebody else keeps, under the key that it has there."""

    key: str
    conversation: str
    role: str
    text: str
    at: str | None = None


def add_turns(sight: Sight, turns: Sequence[ClientTurn]) -> tuple[Memory, ...]:
    """Record turns in one commit, each once: whose key is there already is left out."""
    handle, agent = sight.handle, sight.access.agent
    drafts = [
        (each, edits.new(handle, "turn", each.text, agent, at=each.at, fields=_fields(each)))
        for each in turns
    ]

    def work(stage: Stage) -> tuple[Memory, ...]:
        known = _keys(stage.base, {each.conversation for each in turns})
        fresh = {each.key: made for each, made in drafts if each.key not in known}
        return tuple(stage.add(made) for made in fresh.values())

    if not drafts or not _is_any_new(sight, turns):
        return ()
    made, _ = handle.writer.run(agent, handle.guarded(work))
    return made


def _is_any_new(sight: Sight, turns: Sequence[ClientTurn]) -> bool:
    """Whether it is worth waiting for the lock."""
    now = sight.handle.writer.reader.snapshot()
    known = _keys(now, {each.conversation for each in turns})
    return any(each.key not in known for each in turns)


def _fields(each: ClientTurn) -> dict[str, object]:
    fields: dict[str, object] = {"role": each.role, "conversation_id": each.conversation}
    if each.role == "user":
        fields["speaker"] = "user"
    return {**fields, "source": each.key}


def _keys(snapshot: Snapshot, conversations: set[str]) -> set[str]:
    """Return the keys of the turns that are there of some conversations."""
    entries = (
        entry
        for page in snapshot.newest_pages("turn")
        for entry in page.entries.values()
        if entry.conversation in conversations
    )
    return {str(snapshot.get(entry.id).fields.get("source")) for entry in entries}


def is_hidden(sight: Sight, memory_id: MemoryId) -> bool:
    """Whether the agent may not read a memory that is there."""
    return sight.handle.reader.snapshot().is_hidden(memory_id)


def readable(sight: Sight, memory_id: str) -> MemoryId:
    """Return the full id of a memory; raise AccessError if the agent may not read it."""
    return sight.handle.read(None, lambda snapshot: snapshot.find(memory_id))


def edit(
    sight: Sight,
    memory_id: str,
    text: str | None,
    tags: Iterable[str] | None,
    links: Iterable[object] | None,
    fields: Mapping[str, object],
) -> Memory:
    """Change a memory that may be read, so that its other fields may be told."""
    name = readable(sight, memory_id)
    return edits.edit(sight.handle, name, sight.access.agent, text, tags, links, fields)


def resolve(sight: Sight, memory_id: str, action: str | None) -> Memory:
    """Mark a finding or a decision as resolved."""
    return edits.resolve(sight.handle, readable(sight, memory_id), sight.access.agent, action, None)


def supersede(
    sight: Sight,
    memory_id: str,
    text: str,
    tags: Iterable[str],
    links: Iterable[object],
    fields: Mapping[str, object],
) -> Memory:
    """Record a memory that replaces another."""
    name = readable(sight, memory_id)
    return edits.supersede(sight.handle, name, text, sight.access.agent, tags, links, fields)


def update_state(sight: Sight, changes: Mapping[str, object]) -> Memory:
    """Merge changes into the agent's state."""
    return _of_state(sight, edits.update_state(sight.handle, sight.access.agent, changes), changes)


def replace_state(sight: Sight, state: Mapping[str, object]) -> Memory:
    """Replace the agent's state."""
    return edits.set_state(sight.handle, sight.access.agent, state)


def _of_state(sight: Sight, written: Memory, given: Mapping[str, object]) -> Memory:
    """Return a state as far as it may be read: who may only write gets what was given."""
    if not is_hidden(sight, written.id):
        return written
    own = {name: value for name, value in written.fields.items() if name in given}
    return replace(written, fields=MappingProxyType(own), title="", tags=(), links=())


def forget(
    whole: Handle, sight: Sight, ids: Sequence[str], *, reason: str | None, purge: bool
) -> Receipt:
    """Delete memories that the agent may read and write."""
    from smp_git.remove import delete  # noqa: PLC0415 - few agents delete

    names = [readable(sight, name) for name in ids]
    snapshot = sight.handle.reader.snapshot()
    for name in names:
        sight.access.check_write(snapshot.get(name), name)
    who = sight.access.agent
    return delete.delete(whole, names, {}, reason=reason, reasons=None, by=who, purge=purge)


def restore(whole: Handle, sight: Sight, ids: Sequence[str], *, reason: str | None) -> Restored:
    """Restore memories; what they say is not known before, so their kind must be writable."""
    from smp_git.remove import restore as removed  # noqa: PLC0415 - few agents restore

    for name in ids:
        sight.access.check_kind(parse_id(name).kind.name, name)
    return removed.restore(whole, ids, with_history=False, reason=reason, by=sight.access.agent)
