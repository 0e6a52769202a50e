"""Calls of hooks: what Claude Code says, and whether it concerns memory at all; loads nothing heavy."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

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
