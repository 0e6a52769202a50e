"""Writes of one agent: recorded in its name, refused where it may not write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from smp_git.agents.fence import mark_of
from smp_git.agents.sight import Sight
from smp_git.format import imports
from smp_git.format.lines import Entry
from smp_git.keep import quota
from smp_git.model.ids import parse_id
from smp_git.model.memory import Memory, MemoryId
from smp_git.model.times import format_time
from smp_git.read import imported
from smp_git.read.snapshot import Snapshot
from smp_git.write import edits
from smp_git.write.handle import Handle
from smp_git.write.stage import Labels, Stage

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
    found = quota.with_room(
        sight.whole, lambda: edits.add(handle, made, skip_duplicates=skip_duplicates)
    )
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
    drafts = {
        each: edits.new(handle, "turn", each.text, agent, at=each.at, fields=_fields(each))
        for each in _unknown(handle, handle.writer.reader.snapshot(), turns)
    }

    def work(stage: Stage) -> tuple[Memory, ...]:
        return tuple(stage.add(drafts[each]) for each in _unknown(handle, stage.base, drafts))

    if not drafts:
        return ()
    made, _ = quota.with_room(sight.whole, lambda: handle.writer.run(agent, handle.guarded(work)))
    return made


def _unknown(handle: Handle, snapshot: Snapshot, turns: Iterable[ClientTurn]) -> list[ClientTurn]:
    """Return those of some turns that are not there and were not deleted, each once."""
    named = {imports.own_name(each.key): each for each in turns}
    known = known_turns(handle, snapshot, turns)
    gone, uid = imported.digests(snapshot), snapshot.metadata.uid
    return [
        each
        for name, each in named.items()
        if name not in known and not imported.is_among(gone, uid, each.key)
    ]


def marks_of(sight: Sight, turns: Sequence[ClientTurn]) -> tuple[str, ...]:
    """Return by which marks those of some turns are told that are recorded already."""
    handle = sight.handle
    known = known_turns(handle, handle.writer.reader.snapshot(), turns)
    return tuple(mark_of(entry) for entry in known.values())


def _fields(each: ClientTurn) -> dict[str, object]:
    fields: dict[str, object] = {"role": each.role, "conversation_id": each.conversation}
    if each.role == "user":
        fields["speaker"] = "user"
    return {**fields, "source": each.key}


def known_turns(
    handle: Handle, snapshot: Snapshot, turns: Iterable[ClientTurn]
) -> dict[str, Entry]:
    """Return those of some turns that are there, in whatever conversation, by their names."""
    times = {format_time(handle.moment(each.at)) for each in turns if each.at}
    conversations = {each.conversation for each in turns if not each.at}
    entries = (
        entry
        for page in snapshot.newest_pages("turn")
        for entry in page.entries.values()
        if entry.at in times or entry.conversation in conversations
    )
    found = ((snapshot.readable(entry.id), entry) for entry in entries)
    return {
        imports.own_name(source): entry
        for memory, entry in found
        if memory is not None and (source := imports.source_of(memory))
    }


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
    handle, name, who = sight.handle, readable(sight, memory_id), sight.access.agent
    return quota.with_room(
        sight.whole, lambda: edits.edit(handle, name, who, text, Labels(tags, links), fields)
    )


def resolve(sight: Sight, memory_id: str, action: str | None) -> Memory:
    """Mark a finding or a decision as resolved."""
    how = edits.Resolution(action)
    return edits.resolve(sight.handle, readable(sight, memory_id), sight.access.agent, how)


def supersede(
    sight: Sight,
    memory_id: str,
    text: str,
    tags: Iterable[str],
    links: Iterable[object],
    fields: Mapping[str, object],
) -> Memory:
    """Record a memory that replaces another."""
    handle, name, who = sight.handle, readable(sight, memory_id), sight.access.agent
    return quota.with_room(
        sight.whole, lambda: edits.supersede(handle, name, text, who, tags, links, fields)
    )


def update_state(sight: Sight, changes: Mapping[str, object]) -> Memory:
    """Merge changes into the agent's state."""
    handle, who = sight.handle, sight.access.agent
    made = quota.with_room(sight.whole, lambda: edits.update_state(handle, who, changes))
    return _of_state(sight, made, changes)


def replace_state(sight: Sight, state: Mapping[str, object]) -> Memory:
    """Replace the agent's state."""
    handle, who = sight.handle, sight.access.agent
    return quota.with_room(sight.whole, lambda: edits.set_state(handle, who, state))


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
