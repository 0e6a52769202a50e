"""Lines of Claude Code's transcripts: what was said in one, for hooks and imports alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

FORMAT: Final = "claude-code"
# Marks what was quoted to a model from memory.
FENCE: Final = "smp-memory"
_FENCED = re.compile(
    rf"[ \t]*<{FENCE}\b[^>\n]*>\n.*?^</{FENCE}>[ \t]*\n?", re.DOTALL | re.MULTILINE
)
# What the program writes in the name of the user.
_MADE: Final = (
    "<command-",
    "<local-command",
    "<bash-",
    "<system-reminder",
    "<user-memory",
    "<task-notification",
    "Caveat: The messages below",
    "[Request interrupted",
)
_ASIDE: Final = {
    "isSidechain": "lines of subagents",
    "isMeta": "lines of the program itself",
    "isCompactSummary": "lines of the program itself",
    "isApiErrorMessage": "lines of the program itself",
}


class SpokenLine(NamedTuple):
    """What the user or the model said, and the tools that it called with it."""

    role: str
    text: str
    tools: tuple[str, ...]


def said(line: Mapping[str, object]) -> SpokenLine | str:
    """Return what was said in a line, or in words what the line is instead."""
    role, message = line.get("type"), line.get("message")
    if role not in ("user", "assistant") or not isinstance(message, dict):
        return f"lines of type {str(role)[:40] or 'none'}"
    for name, what in _ASIDE.items():
        if line.get(name):
            return what
    if not isinstance(line.get("uuid"), str):
        return "lines without an id"
    texts, tools = parts(message.get("content"))
    spoken = [text for text in texts if not text.lstrip().startswith(_MADE)]
    text = unfenced("\n\n".join(spoken)).strip()
    if not text:
        return "commands and their output" if texts and not spoken else "lines of tools alone"
    return SpokenLine(str(role), text, tools)


def parts(content: object) -> tuple[list[str], tuple[str, ...]]:
    """Return the texts of a message, and the names of the tools that it calls."""
    if isinstance(content, str):
        return [content], ()
    blocks = (
        [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    )
    texts = [str(each.get("text")) for each in blocks if each.get("type") == "text"]
    tools = [str(each.get("name")) for each in blocks if each.get("type") == "tool_use"]
    return [text for text in texts if text.strip()], tuple(dict.fromkeys(tools))


def source(conversation: str, uuid: str) -> str:
    """Return what a turn is called in its source, whoever takes it in."""
    return f"{FORMAT}:{conversation}/{uuid}"


def unfenced(text: str) -> str:
    """Return a text without what was quoted into it, so that it is not recorded again."""
    return _FENCED.sub("", text)
