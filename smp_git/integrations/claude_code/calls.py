"""Calls of hooks: what Claude Code says, and whether anything is to be done; loads nothing heavy."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from smp_git.integrations.claude_code.conversation import Conversation
from smp_git.model.errors import NotStoreError
from smp_git.read.places import above, store_at

# These do nothing but record.
_RECORDING: Final = ("stop", "pre-compact")
EVENTS: Final = ("session-start", "prompt", "stop", "pre-compact", "session-end")
_LONGEST: Final = 32_000_000
# What begins so is for the client: a command of its own, or one for the shell.
_COMMANDS: Final = ("/", "!")


class HookCall(NamedTuple):
    """One call of a hook: the event, what is said of it, and the session that is named."""

    event: str
    said: Mapping[str, Any]
    session: str | None


def read_call(arguments: Sequence[str], given: str) -> HookCall | None:
    """Return the call, or None if there is nothing to do; raise ValueError for nonsense."""
    event, *rest = arguments
    said = json.loads(given) if given and len(given) <= _LONGEST else None
    if event not in EVENTS or not isinstance(said, dict):
        return None
    prompt = said.get("prompt")
    if event == "prompt" and (
        not isinstance(prompt, str) or not prompt.strip() or prompt.lstrip().startswith(_COMMANDS)
    ):
        return None
    session = rest[1] if len(rest) > 1 and rest[0] in ("-s", "--session") else None
    return HookCall(event, said, session)


def place_of(call: HookCall, environment: Mapping[str, str]) -> Path:
    """Return the store that a call is about; raise NotStoreError if there is none."""
    root = environment.get("SMP_ROOT")
    if root:
        return store_at(Path(root).absolute())
    # The model may work in another folder meanwhile, where another memory is.
    folder = environment.get("CLAUDE_PROJECT_DIR") or str(call.said.get("cwd") or ".")
    return above(Path(folder))


def is_idle(call: HookCall, environment: Mapping[str, str]) -> bool:
    """Whether nothing is to be done: there is no store, or all of the transcript is recorded."""
    try:
        place = place_of(call, environment)
    except NotStoreError:
        return True
    if call.event not in _RECORDING:
        return False
    conversation = Conversation(place, str(call.said.get("session_id") or "unnamed"))
    path = call.said.get("transcript_path")
    try:
        size = Path(path).stat().st_size if isinstance(path, str) else None
    except OSError:
        size = None
    return size is None or (size == conversation.read_to and not conversation.is_forked)
