"""A memory without a text: its content, fields, tags, links, agent, and what lost in a merge."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import replace
from typing import Final

from smp_git.format import document
from smp_git.model.errors import InvalidError, InvalidFileError
from smp_git.model.ids import parse_id
from smp_git.model.memory import COMMENTS, COMMON_FIELDS, CONTESTED, Memory, Value, agent_name
from smp_git.remove.wanted import Wanted
from smp_git.write.merge.masking import remade

# Names for an agent whose own name goes; the first that does not hold the text itself.
_AGENTS: Final = ("redacted", "somebody", "agent-x", "n-n")
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_.-]")
_LONGEST_NAME: Final = 64
_LONGEST_KEY: Final = 128
_OF_EVERY_MEMORY: Final = (CONTESTED, COMMENTS, "tags", "links", "agent")


def holds(wanted: Wanted, data: bytes, path: str) -> bool:
    """Whether a version of a memory's file holds a text that can be taken out of it.

    An id and the words of the format stay, whatever is looked for.
    """
    try:
        memory = document.decode(data, path)
    except InvalidFileError:
        return wanted.is_in(data)
    return in_values(wanted, memory) or in_comments(wanted, data, memory)


def in_values(wanted: Wanted, memory: Memory) -> bool:
    """Whether what a memory says holds the text."""
    said = [memory.content, memory.agent, *memory.tags, *(" ".join(link) for link in memory.links)]
    own = _own(memory)
    return any(map(wanted.fits, said)) or any(
        _is_lost_text(wanted, value, own) if name == CONTESTED else wanted.holds(value) or (name not in own and wanted.fits(name))
        for name, value in memory.fields.items()
    )  # fmt: skip


def in_comments(wanted: Wanted, data: bytes, memory: Memory) -> bool:
    """Whether a file holds the text more often than what it says does."""
    return wanted.is_in(data) and wanted.count(data) > wanted.count(document.encode(memory))


def cleared(wanted: Wanted, memory: Memory, replacement: str) -> Memory:
    """Return a memory without the text; raise InvalidError if nothing would be left of it."""
    place = parse_id(memory.id)
    names = _renamed(wanted, memory, replacement)
    fields: dict[str, Value] = {}
    for name, value in memory.fields.items():
        if name == CONTESTED:
            fields[name] = _lost(wanted, value, {each: each for each in _own(memory)} | names, replacement)  # fmt: skip
        else:
            fields[names[name]] = _value(wanted, value, replacement)
    content = document.check_content(place.kind, wanted.replace(memory.content, replacement))
    return replace(
        remade(memory, content, fields),
        agent=agent_without(wanted, memory.agent),
        tags=tuple(tag for tag in memory.tags if not wanted.fits(tag)),
        links=tuple(link for link in memory.links if not wanted.fits(" ".join(link))),
    )


def agent_without(wanted: Wanted, agent: str) -> str:
    """Return an agent's name, another one if it holds the text."""
    if not wanted.fits(agent):
        return agent_name(agent)
    return next((name for name in _AGENTS if not wanted.fits(name)), _AGENTS[-1])


def file_of(wanted: Wanted, data: bytes, old: Memory, new: Memory) -> bytes:
    """Return the file of `new` as a person wrote that of `old`, without comments that hold the text."""
    kept = document.edited(data, old, new)
    has_comment = in_comments(wanted, kept, document.decode(kept, new.path))
    return document.encode(new) if has_comment else kept


def _own(memory: Memory) -> frozenset[str]:
    """Return the names of fields that the format gives, which are nobody's text."""
    kind = parse_id(memory.id).kind
    return frozenset((*kind.fields, *COMMON_FIELDS, *_OF_EVERY_MEMORY, kind.main))


def _renamed(wanted: Wanted, memory: Memory, replacement: str) -> dict[str, str]:
    """Return the new name of each field; no two become one."""
    own, names = _own(memory), dict[str, str]()
    for name in memory.fields:
        if name in own or not wanted.fits(name):
            names[name] = name
    for name in memory.fields:
        if name not in names:
            plain = _NO_NAME.sub("_", f"x{wanted.replace(name, replacement)}")[:_LONGEST_NAME]
            names[name] = _free(plain, {*names.values(), *memory.fields}, _LONGEST_NAME)
            if wanted.fits(names[name]):
                raise InvalidError(
                    "the replacement gives back what is to be taken out, as the name of a field",
                    hint="choose another replacement",
                )
    return names


def _free(name: str, taken: Container[str], longest: int) -> str:
    """Return a name that nothing has yet: itself, or with a number."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name[: longest - len(str(number)) - 1]}_{number}"
    return found


def _value(wanted: Wanted, value: Value, replacement: str) -> Value:
    if isinstance(value, str):
        return wanted.replace(value, replacement)
    if isinstance(value, dict):
        return _mapping(wanted, value, replacement)
    if isinstance(value, list):
        return [_value(wanted, item, replacement) for item in value]
    return replacement if wanted.holds(value) else value


def _mapping(wanted: Wanted, value: Mapping[str, Value], replacement: str) -> dict[str, Value]:
    """Return a mapping without the text; no two keys become one."""
    found: dict[str, Value] = {}
    for key, item in value.items():
        name = wanted.replace(key, replacement)[:_LONGEST_KEY] if wanted.fits(key) else key
        if name != key:
            name = _free(name or "_", {*found, *value}, _LONGEST_KEY)
        found[name] = _value(wanted, item, replacement)
    return found


def _is_lost_text(wanted: Wanted, value: Value, own: Container[str]) -> bool:
    """Whether a value that lost in a merge, or the field that it is of, holds the text."""
    items = value if isinstance(value, list) else []
    return any(
        wanted.holds(item.get("value"))
        or (item.get("field") not in own and wanted.fits(str(item.get("field"))))
        for item in items
        if isinstance(item, dict)
    )


def _lost(wanted: Wanted, value: Value, names: Mapping[str, str], replacement: str) -> Value:
    """Return the values that lost in a merge without the text, under the new names of fields."""
    items = value if isinstance(value, list) else []
    found: list[Value] = []
    for item in items:
        if isinstance(item, dict):
            field = str(item.get("field"))
            kept = {**item, "field": names.get(field, wanted.replace(field, replacement))}
            if "value" in item:
                kept["value"] = _value(wanted, item["value"], replacement)
            found.append(kept)
    return found
