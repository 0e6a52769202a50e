"""pydantic-ai's conversations in a session: each save one commit, checked against what was loaded."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from anyio import to_thread
from pydantic import TypeAdapter
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)

from smp_git.read.values import Key, SeenValues
from smp_git.session import Session
from smp_git.write.values import Secrets, Writing

_RECORDS: Final = ("pydantic-ai", "records")
_ENTRIES: Final = ("pydantic-ai", "entries")
# What is made by chance, and must come back as it was: no text that somebody wrote.
_OPAQUE: Final = frozenset(
    ("id", "parent_id", "head_id", "revision", "tool_call_id", "signature", "provider_response_id",
     "run_id", "conversation_id", "forked_at", "data", "encrypted_content"),
)  # fmt: skip
_record = TypeAdapter(ConversationRecord)
_entry = TypeAdapter(ConversationEntry)


class SmpConversationStore(ConversationStore):
    """A conversation store of pydantic-ai in a session.

    A save is one commit. Deleting a conversation takes the entries with it that no other
    one uses; they stay in the history until maintenance erases them, or are erased at once
    with `erase`. The framework compares messages with what is stored, so one that holds a
    secret is refused, unless `secrets` says otherwise.
    """

    def __init__(
        self,
        session: Session,
        *,
        agent: str = "pydantic-ai",
        secrets: Secrets = "refuse",
        erase: bool = False,
    ) -> None:
        self._values = session.values(agent, secrets=secrets, opaque=_OPAQUE)
        self._erase = erase

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Return the record of a conversation, None if there is none."""
        found = await to_thread.run_sync(self._values.get, (*_RECORDS, conversation_id))
        return _record.validate_python(found.value) if found is not None else None

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """Return the records, or those of a scope, the newest first."""
        stored = await to_thread.run_sync(self._values.items, _RECORDS)
        found = (_record.validate_python(each.value) for each in stored)
        wanted = [each for each in found if scope is None or each.scope == scope]
        return sorted(wanted, key=lambda each: each.updated_at, reverse=True)[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Write a record and its new entries, or nothing."""
        await to_thread.run_sync(self._write, record, tuple(new_entries), expected_revision)

    def _write(
        self,
        record: ConversationRecord,
        new_entries: Sequence[ConversationEntry],
        expected: str | None,
    ) -> None:
        name = record.conversation_id
        entries = {
            (*_ENTRIES, each.id): self._values.prepared(_entry.dump_python(each, mode="json"))
            for each in new_entries
        }
        ready = self._values.prepared(_record.dump_python(record, mode="json"))

        def work(now: Writing) -> None:
            _check(now, name, expected)
            head = (*_ENTRIES, record.head_id or "")
            if record.head_id is not None and head not in entries and now.get(head) is None:
                raise ConversationConflict(name)
            for key, value in entries.items():
                now.put(key, value)
            now.put((*_RECORDS, name), ready)

        self._values.write(work)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Remove a record, and the entries that no other one's history reaches."""

        def gone(seen: SeenValues | Writing) -> list[Key]:
            _check(seen, conversation_id, expected_revision)
            return [(*_RECORDS, conversation_id), *_released(seen, conversation_id)]

        def delete() -> None:
            if self._erase:
                self._values.erase_found(gone, reason="deleted by the program")
            else:
                self._values.write(lambda now: [now.remove(key) for key in gone(now)])

        await to_thread.run_sync(delete)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return an entry; raise LookupError if it is not there."""
        found = await to_thread.run_sync(self._values.get, (*_ENTRIES, entry_id))
        if found is None:
            raise LookupError(entry_id)
        return _entry.validate_python(found.value)

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        """Return the entries up to one, in order, all of one commit."""
        return await to_thread.run_sync(
            lambda: self._values.read(lambda seen: _history(seen, head_id, limit))
        )


def _history(seen: SeenValues, head_id: str | None, limit: int | None) -> list[ConversationEntry]:
    found: list[ConversationEntry] = []
    name = head_id
    while name is not None and (limit is None or len(found) < limit):
        stored = seen.get((*_ENTRIES, name))
        if stored is None:
            raise LookupError(name)
        found.append(_entry.validate_python(stored.value))
        name = found[-1].parent_id
    return found[::-1]


def _check(now: SeenValues | Writing, name: str, expected: str | None) -> None:
    """Raise ConversationConflict unless a conversation has the revision that is expected."""
    stored = now.get((*_RECORDS, name))
    record = _record.validate_python(stored.value) if stored is not None else None
    if (record.revision if record is not None else None) != expected:
        raise ConversationConflict(name)


def _released(now: SeenValues | Writing, conversation_id: str) -> list[Key]:
    """Return the entries that only one conversation's histories reach."""
    records = [
        _record.validate_python(stored.value)
        for key in now.keys(_RECORDS)
        if (stored := now.get(key)) is not None
    ]
    mine = [each for each in records if each.conversation_id == conversation_id]
    others = [each for each in records if each.conversation_id != conversation_id]
    kept: set[str] = set()
    # Only a fork shares what it began with.
    if any(each.forked_from is not None for each in records):
        kept.update(name for each in others for name in _reached(now, each, kept))
    return [(*_ENTRIES, name) for each in mine for name in _reached(now, each, kept)]


def _reached(
    now: SeenValues | Writing, record: ConversationRecord, known: Collection[str]
) -> Iterator[str]:
    """Yield the entries of a conversation's history and of the branches that it left, each once."""
    seen = set(known)
    for tip in (record.head_id, *record.branches):
        name = tip
        while name is not None and name not in seen:
            seen.add(name)
            yield name
            stored = now.get((*_ENTRIES, name))
            name = _entry.validate_python(stored.value).parent_id if stored is not None else None
