"""Hooks of Claude Code: context for a prompt, turns recorded; nothing that can stop a prompt."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from smp_git.agents.agent import Agent
from smp_git.agents.fence import Quote, fenced, harmless
from smp_git.ask.context import tokens
from smp_git.integrations.claude_code.calls import HookCall, place_of
from smp_git.integrations.claude_code.conversation import FOLDER, Conversation
from smp_git.model.errors import NotStoreError, SessionNotFoundError, SmpError
from smp_git.session import Session
from smp_git.store import Store

AGENT: Final = "claude"
_NAMES: Final = {"session-start": "SessionStart", "prompt": "UserPromptSubmit"}
# Tokens that a hook may add.
_AT_START: Final = 1500
_AT_PROMPT: Final = 800
# What is asked for beyond that, since a part of it is known to the conversation.
_SPARE: Final = 3
_PATIENCE_SECONDS: Final = 1.5
_LONGEST_LOG: Final = 262_144


class Workplace(NamedTuple):
    """Where a hook works: the store, the session as the agent, and the conversation."""

    store: Store
    session: Session
    agent: Agent
    conversation: Conversation
    name: str


def answer(call: HookCall, environment: Mapping[str, str]) -> str:
    """Return what a hook prints; whatever fails is a line in the log, and the prompt goes on."""
    store: Store | None = None
    try:
        store = Store(place_of(call, environment))
        return _answered(call, store, environment)
    except Exception as error:  # noqa: BLE001 - a hook that fails would stop the user
        _log(store, call.event, error)
        return _output("session-start", _notice(error)) if call.event == "session-start" else ""


def _answered(call: HookCall, store: Store, environment: Mapping[str, str]) -> str:
    name = str(call.said.get("session_id") or "unnamed")
    with _session(call, store, environment) as session:
        place = Workplace(
            store=store,
            session=session,
            agent=session.agent(AGENT),
            conversation=Conversation(store.path, name),
            name=name,
        )
        text = _WORK[call.event](place, call.said)
    return _output(call.event, text)


def _output(event: str, text: str) -> str:
    """Return the only form in which the model reads what a hook says."""
    if not text:
        return ""
    output = {"hookEventName": _NAMES[event], "additionalContext": text}
    return json.dumps({"hookSpecificOutput": output}, ensure_ascii=False)


def _notice(error: Exception) -> str:
    """Return what a conversation is told of a memory that is there and cannot be used."""
    if not isinstance(error, SmpError) or isinstance(error, (NotStoreError, SessionNotFoundError)):
        return ""
    hint = f" ({error.hint})" if error.hint else ""
    return harmless(f"The memory of this project, smp, cannot be used: {error.message}{hint}.")


def _session(call: HookCall, store: Store, environment: Mapping[str, str]) -> Session:
    """Open the session that is named, or the only one; nobody waits for its lock for long."""
    name = call.session or environment.get("SMP_SESSION")
    known = store.sessions()
    if name is None and len(known) != 1:
        raise SessionNotFoundError(f"{len(known)} sessions, and none is named for Claude Code")
    return store.session(name or known[0], patience_seconds=_PATIENCE_SECONDS)


# What each event does


def _start(place: Workplace, said: Mapping[str, Any]) -> str:
    """Return what is worth knowing; after a compaction also the turns that are gone from sight."""
    how = said.get("source")
    is_compacted = how == "compact"
    if how in ("compact", "clear"):
        place.conversation.forget()
    elif how == "resume" and place.conversation.is_new:
        _note_told(place, said)
    elif how == "fork":
        # What the other conversation was told is in sight; its transcript is copied later.
        place.conversation.is_forked = True
        return ""
    context = place.agent.context(turns=12 if is_compacted else 6, budget=_AT_START * _SPARE)
    quotes = place.agent.quote(context)
    if not is_compacted:
        quotes = _of_others(quotes, place.name)
    return _told(place, quotes, _AT_START)


def _prompt(place: Workplace, said: Mapping[str, Any]) -> str:
    """Return what answers a prompt and is new to the conversation; all of it if it knows nothing."""
    if place.conversation.is_forked:
        # The answer before is recorded by a process that may not have begun.
        _note_told(place, said)
    budget = _AT_PROMPT * _SPARE
    if place.conversation.is_new:
        context = place.agent.context(said["prompt"], turns=6, budget=budget)
    else:
        context = place.agent.answers(said["prompt"], budget=budget)
    return _told(place, _of_others(place.agent.quote(context), place.name), _AT_PROMPT)


def _record(place: Workplace, said: Mapping[str, Any]) -> str:
    """Record what was said since the last time that it was recorded.

    What is before that is not looked at again: what of it is not there was deleted or
    compacted since.
    """
    from smp_git.integrations.claude_code import transcript  # noqa: PLC0415 - a prompt records nothing

    path = _transcript(said)
    if path is not None:
        part = transcript.read(path, place.name, place.conversation.read_to)
        place.agent.record_turns(part.said)
        if place.conversation.is_forked:
            _note_told(place, said)
            place.conversation.is_forked = False
        place.conversation.read_to = part.end
    return ""


def _end(place: Workplace, said: Mapping[str, Any]) -> str:
    _record(place, said)
    place.conversation.prune()
    return ""


_WORK: Final[Mapping[str, Callable[[Workplace, Mapping[str, Any]], str]]] = {
    "session-start": _start,
    "prompt": _prompt,
    "stop": _record,
    "pre-compact": _record,
    "session-end": _end,
}


def _of_others(quotes: Sequence[Quote], conversation: str) -> list[Quote]:
    """Return quotations without the turns of the conversation itself, which the model sees."""
    return [each for each in quotes if each.conversation != conversation]


def _told(place: Workplace, quotes: Sequence[Quote], budget: int) -> str:
    """Return as much as fits of what the conversation was not told, and note that it was."""
    new: list[Quote] = []
    for each in quotes:
        if tokens(fenced([*new, each], place.session.id)) > budget:
            continue
        if place.conversation.claims(each.mark):
            new.append(each)
    return fenced(new, place.session.id)


def _note_told(place: Workplace, said: Mapping[str, Any]) -> None:
    """Note as told what the transcript says that the model has in sight: quotations, and turns."""
    from smp_git.integrations.claude_code import transcript  # noqa: PLC0415 - as above

    path = _transcript(said)
    if path is not None:
        seen = transcript.in_sight(path, place.name)
        for mark in (*seen.told, *place.agent.marks_of(seen.said)):
            place.conversation.claims(mark)


def _transcript(said: Mapping[str, Any]) -> Path | None:
    path = said.get("transcript_path")
    return Path(path) if isinstance(path, str) and Path(path).is_file() else None


def _log(store: Store | None, event: str, error: Exception) -> None:
    """Write a line of what went wrong; without a store there is nobody to tell."""
    if store is None:
        return
    with suppress(OSError):
        folder = store.path / FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / "log"
        if path.exists() and path.stat().st_size > _LONGEST_LOG:
            path.unlink()
        line = {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),  # noqa: TID251 - a log has no clock but this
            "event": event,
            "error": type(error).__name__,
            "message": str(error)[:300],
        }
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
