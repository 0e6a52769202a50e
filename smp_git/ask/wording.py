"""Memories in words, as a prompt shows them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from smp_git.model.memory import CONTESTED, Memory, Value

# What a reader needs beside the text of a memory, in this order.
_DETAILS: Final = (
    "severity", "status", "value", "context", "rationale", "alternatives", "location", "impact",
    "root_cause", "recommendation", "resolution", "applies_to", "confidence",
)  # fmt: skip
# Where a memory belongs and whose it is, which its text does not need.
_BOOKKEEPING: Final = frozenset(
    ("title", "turn_ref", "memory_refs", "conversation_id", "parent", "topic", "tokens", "pinned",
     "processing_time_ms", "importance", "source", "supersedes", "category", "key", "made_by",
     "agreed_by", "approved_by", "agents_involved", "discovered_by", "learned_from", "speaker",
     "role", "type", "name", "media_type", "reversible", CONTESTED)
)  # fmt: skip
# What goes without saying.
_USUAL: Final = {
    "decision": ("active",),
    "finding": ("open",),
    "preference": ("active", "explicit"),
    "learning": ("active",),
}


def as_words(value: Value) -> str:
    """Return a value in words: keys without underscores, nested ones in parentheses."""
    if isinstance(value, Mapping):
        parts = [
            f"{name_as_words(key)} {_nested(item)}" for key, item in value.items() if _is_told(item)
        ]
        return ", ".join(parts)
    if isinstance(value, list):
        joint = "; " if any(isinstance(item, (dict, list)) for item in value) else ", "
        return joint.join(as_words(item) for item in value if _is_told(item))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else " ".join(str(value).split())


def _nested(value: Value) -> str:
    text = as_words(value)
    return f"({text})" if isinstance(value, Mapping) else text


def _is_told(value: Value) -> bool:
    return value is not None and value not in ("", [], {})


def name_as_words(name: str) -> str:
    """Return a field's name as it is spoken."""
    return " ".join(re.split(r"[_\s-]+", name)).strip() or name


def in_full(
    memory: Memory, *, mark: str = "", notes: Iterable[str] = (), wholly: bool = False
) -> str:
    """Return a memory with what belongs to it, as Markdown; `wholly` with every field."""
    if memory.kind == "turn":
        speaker = memory.fields.get("speaker") or memory.agent
        return f"**{speaker}** ({memory.id}{mark}): {memory.content.strip()}"
    if memory.kind == "state":
        return "\n".join([f"- **{memory.id}**{mark}", *_branches(memory.fields, "  ")])
    details = [
        f"{name_as_words(name)}: {text}"
        for name in _told_fields(memory, wholly=wholly)
        if (text := as_words(memory.fields[name]))
    ]
    details += [f"{link.relation} {link.target}" for link in memory.links]
    lines = [f"- **{memory.id}**{mark} {_indented(memory.content.strip() or memory.title)}"]
    return "\n".join([*lines, *(f"  - {_indented(line)}" for line in (*details, *notes))])


def _told_fields(memory: Memory, *, wholly: bool) -> list[str]:
    fields = memory.fields
    names = [name for name in _DETAILS if name in fields]
    if wholly:
        names += [name for name in fields if name not in _DETAILS and name not in _BOOKKEEPING]
    usual = _USUAL.get(memory.kind, ())
    return [name for name in names if not _goes_without(name, fields, usual)]


def _goes_without(name: str, fields: Mapping[str, Value], usual: tuple[str, ...]) -> bool:
    if name == "status":
        return fields[name] in usual or "resolution" in fields
    return name == "confidence" and fields[name] in usual


def in_short(memory_id: str, title: str, *, mark: str = "", excerpt: str = "") -> str:
    """Return a memory as one line: its id, its title, and a part of its text."""
    more = f": {excerpt}" if excerpt and not title.startswith(excerpt.rstrip("…")) else ""
    return f"- **{memory_id}**{mark} {title.lstrip('# ')}{more}"


def _branches(fields: Mapping[str, Value], indent: str) -> list[str]:
    """Return nested values as a list of lists, for what is too long for a line."""
    out: list[str] = []
    for name, value in fields.items():
        if name in ("memory_refs", CONTESTED) or not _is_told(value):
            continue
        if isinstance(value, Mapping):
            out += [f"{indent}- {name_as_words(name)}:", *_branches(value, f"{indent}  ")]
        elif isinstance(value, list):
            items = [f"{indent}  - {as_words(item)}" for item in value if _is_told(item)]
            out += [f"{indent}- {name_as_words(name)}:", *items]
        else:
            out.append(f"{indent}- {name_as_words(name)}: {as_words(value)}")
    return out


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")
