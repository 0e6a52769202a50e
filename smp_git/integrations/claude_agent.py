"""Transcripts of the Claude Agent SDK: kept in a session, and resumed from it alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, cast

from anyio import to_thread
from claude_agent_sdk import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
    fold_session_summary,
)

from smp_git.integrations.claude_code import transcript
from smp_git.read.values import Key, SeenValues
from smp_git.session import Session
from smp_git.write.values import PreparedValue, Secrets, Writing

_ROOT: Final = "claude-code"
_ENTRIES: Final = "entries"
_SUMMARY: Final = "summary"
# Entries go together up to this size; a larger one is cut.
_TOGETHER: Final = 500_000
_LARGEST: Final = 4_000_000
# What is made by chance, and must come back as it was: no text that somebody wrote.
_OPAQUE: Final = frozenset(
    ("uuid", "parentUuid", "logicalParentUuid", "leafUuid", "sessionId", "requestId", "promptId",
     "messageId", "agentId", "sourceToolAssistantUUID", "id", "tool_use_id", "toolUseID",
     "parentToolUseID", "signature", "data", "encrypted_content", "file_id", "timestamp"),
)  # fmt: skip


class _Known(NamedTuple):
    """What was read of a transcript so far: its parts, and the ids of their entries."""

    parts: frozenset[Key] = frozenset()
    uuids: frozenset[str] = frozenset()


class SmpSessionStore(SessionStore):
    """A session store of the Claude Agent SDK in a session of smp-git.

    A batch of entries is one commit. What the user and the model said is recorded as turns
    too, under the ids of the transcript, so that the hooks of Claude Code and an import of
    the conversation add nothing; `turns=False` leaves them out. A secret in a text is
    replaced by a placeholder, unless `secrets` says otherwise; a block of thinking that
    holds one is left out, because it is signed.

    What the SDK deletes stays in the history until maintenance erases it, or is erased at
    once with `erase`, turns included. The program's own transcripts, in
    `~/.claude/projects`, are its own.
    """

    def __init__(
        self,
        session: Session,
        *,
        agent: str = "claude",
        secrets: Secrets = "redact",
        erase: bool = False,
        turns: bool = True,
    ) -> None:
        self._session = session
        self._values = session.values(agent, secrets=secrets, opaque=_OPAQUE)
        self._agent = session.agent(agent) if turns else None
        self._erase = erase
        self._known: dict[Key, _Known] = {}

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Add entries behind those that are there, but for those that are there already."""
        if entries:
            await to_thread.run_sync(self._append, key, entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return the entries of a transcript, None if there is none."""
        return await to_thread.run_sync(
            self._values.read, lambda seen: list(_entries(seen, _prefix(key))) or None
        )

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the conversations of a project."""
        found = await to_thread.run_sync(self._values.list, (_ROOT, project_key))
        times: dict[str, int] = {}
        for each in found:
            if each.key[3:5] == (_ENTRIES, ""):
                name = each.key[2]
                times[name] = max(times.get(name, 0), _milliseconds(each.updated_at))
        return [SessionStoreListEntry(session_id=name, mtime=at) for name, at in times.items()]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """Return the summaries of a project's conversations."""
        found = await to_thread.run_sync(self._values.items, (_ROOT, project_key))
        return [
            SessionSummaryEntry(
                session_id=each.key[2],
                mtime=_milliseconds(each.updated_at),
                data=cast("dict[str, Any]", each.value),
            )
            for each in found
            if each.key[3:] == (_SUMMARY,)
        ]

    async def delete(self, key: SessionKey) -> None:
        """Delete a transcript; a conversation goes with the transcripts of its subagents."""
        await to_thread.run_sync(self._delete, key)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the subpaths of a conversation's other transcripts."""
        prefix = (*_conversation(key), _ENTRIES)
        found = await to_thread.run_sync(self._values.list, prefix)
        return [name for name in dict.fromkeys(each.key[4] for each in found) if name]

    # Writes

    def _append(self, key: SessionKey, entries: Sequence[SessionStoreEntry]) -> None:
        ready = [self._values.prepared(self._unmarked(each)) for each in entries]
        prefix, is_main = _prefix(key), not key.get("subpath")

        def work(now: Writing) -> None:
            fresh = list(self._fresh(now, prefix, ready))
            for part in _parts(fresh):
                now.append(prefix, part)
            if fresh and is_main:
                _fold(now, key, fresh)

        # Before the entries: who erases the transcript meanwhile takes the turns, or leaves both.
        if self._agent is not None and is_main:
            name = key["session_id"]
            said = (transcript.turns_in(cast("dict[str, Any]", each.value), name) for each in ready)
            self._agent.record_turns([turn for turns in said for turn in turns])
        self._values.write(work)

    def _unmarked(self, entry: SessionStoreEntry) -> dict[str, Any]:
        """Return an entry without thinking that holds a secret: changed, its signature is wrong."""
        message = entry.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(content, list):
            return dict(entry)
        kept = [each for each in content if not self._is_marked(each)]
        return {**entry, "message": {**cast("dict[str, Any]", message), "content": kept}}

    def _is_marked(self, block: object) -> bool:
        thinking = block.get("thinking") if isinstance(block, dict) else None
        return isinstance(thinking, str) and bool(self._values.prepared(thinking).redacted)

    def _fresh(
        self, now: Writing, prefix: Key, entries: Iterable[PreparedValue]
    ) -> Iterator[PreparedValue]:
        """Yield the entries that are not there; one without an id always is new."""
        seen = set(self._follow(now, prefix).uuids)
        for each in entries:
            name = _uuid(each.value)
            if name is None or name not in seen:
                seen.update([name] if name is not None else ())
                yield each

    def _follow(self, now: Writing, prefix: Key) -> _Known:
        """Read what was added to a transcript since the last time."""
        known, parts = self._known.get(prefix, _Known()), frozenset(now.keys(prefix))
        if not known.parts <= parts:
            known = _Known()
        new = (now.get(key) for key in sorted(parts - known.parts))
        read = _joined(each.value for each in new if each is not None)
        uuids = known.uuids.union(name for each in read if (name := _uuid(each)) is not None)
        found = self._known[prefix] = _Known(parts, uuids)
        return found

    def _delete(self, key: SessionKey) -> None:
        prefix = _prefix(key) if key.get("subpath") else _conversation(key)
        if not self._erase:
            self._values.write(lambda now: sum(map(now.remove, now.keys(prefix))))
            return

        def turns() -> list[str]:
            return [] if key.get("subpath") else self._turns(key["session_id"])

        self._values.erase_found(
            lambda seen: seen.keys(prefix), reason="deleted by the program", beside=turns
        )

    def _turns(self, conversation: str) -> list[str]:
        asked = [("conversation_id", "equals", conversation)]
        return [hit.id for hit in self._session.query(kinds=["turn"], where=asked, limit=None).hits]


def _conversation(key: SessionKey | SessionListSubkeysKey) -> Key:
    return (_ROOT, key["project_key"], key["session_id"])


def _prefix(key: SessionKey) -> Key:
    """Return where the entries of a transcript are."""
    return (*_conversation(key), _ENTRIES, key.get("subpath") or "")


def _entries(seen: SeenValues, prefix: Key) -> Iterator[SessionStoreEntry]:
    return _joined(each.value for each in seen.items(prefix))


def _joined(values: Iterable[Any]) -> Iterator[SessionStoreEntry]:
    """Yield the entries of values: several together, or one that was cut."""
    cut: list[str] = []
    for value in values:
        if isinstance(value, list):
            yield from value
            continue
        cut.append(value["text"])
        if len(cut) == value["of"]:
            yield json.loads("".join(cut))
            cut.clear()


def _parts(entries: Iterable[PreparedValue]) -> Iterator[PreparedValue]:
    """Yield entries in values of a fit size; one that is too large for a value is cut."""
    waiting: list[PreparedValue] = []
    size = 0
    for each in entries:
        text = json.dumps(each.value)
        if waiting and size + len(text) > _TOGETHER:
            yield PreparedValue.together(waiting)
            waiting, size = [], 0
        if len(text) > _LARGEST:
            yield from _cut(text)
        else:
            waiting.append(each)
            size += len(text)
    if waiting:
        yield PreparedValue.together(waiting)


def _cut(text: str) -> Iterator[PreparedValue]:
    pieces = range(0, len(text), _LARGEST)
    for start in pieces:
        piece = text[start : start + _LARGEST]
        yield PreparedValue("", {"value": {"of": len(pieces), "text": piece}})


def _fold(now: Writing, key: SessionKey, fresh: Sequence[PreparedValue]) -> None:
    """Bring the summary of a conversation up to date, as the SDK does it."""
    place = (*_conversation(key), _SUMMARY)
    before = now.get(place)
    told = SessionSummaryEntry(session_id=key["session_id"], mtime=0, data={})
    if before is not None:
        told["data"] = cast("dict[str, Any]", before.value)
    entries = [cast("SessionStoreEntry", each.value) for each in fresh]
    after = fold_session_summary(told if before is not None else None, key, entries)
    # Written also if it says the same: its time is that of the latest entry.
    now.put(place, after["data"], beside={"entries": len(now.keys(_prefix(key)))})


def _uuid(entry: object) -> str | None:
    found = entry.get("uuid") if isinstance(entry, dict) else None
    return found if isinstance(found, str) else None


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)
