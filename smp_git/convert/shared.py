"""What all exports for other programs share: ids and fields under the names that a source gave them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from smp_git.convert.entries import REFERENCES
from smp_git.format.imports import GIVEN, source_of
from smp_git.model.memory import Memory, Value
from smp_git.model.times import format_time

# The files of a folder by their paths in it.
Files: TypeAlias = "Mapping[str, str]"
Made: TypeAlias = "dict[str, Any]"

_KEEP: Final = frozenset(("source", f"source{GIVEN}", "title"))


class Worth(NamedTuple):
    """What the priority of a memory starts from, and what it is now."""

    base: float
    now: float


class Exported(NamedTuple):
    """What is exported: what the session says of itself, its memories in order, their priorities."""

    session: Mapping[str, Value]
    memories: Sequence[Memory]
    worth: Mapping[str, Worth] = {}


class ForeignNames:
    """What memories are called in a format: as in the source they came from, else as here."""

    def __init__(self, name: str, memories: Sequence[Memory]) -> None:
        self._format = name
        self._ids: dict[str, str] = {}
        for memory in memories:
            source = source_of(memory) or ""
            own = source.partition("/")[2] if source.startswith(f"{name}:") else ""
            self._ids[memory.id] = own or memory.id

    def by_number(self, memories: Sequence[Memory]) -> ForeignNames:
        """Call turns by their numbers: those of the source, or else in their order."""
        turns = [memory for memory in memories if memory.kind == "turn"]
        known = {self._ids[memory.id] for memory in turns}
        plain = all(re.fullmatch(r"turn-[1-9]\d*", name) for name in known)
        if not plain or len(known) < len(turns):
            self._ids |= {memory.id: f"turn-{n + 1}" for n, memory in enumerate(turns)}
        return self

    def of(self, text: str) -> str:
        """Return what an id is called."""
        return self._ids.get(text, text)

    def number(self, memory_id: str) -> int:
        """Return the number of a turn, 0 if it has none."""
        number = self.of(memory_id).removeprefix("turn-")
        return int(number) if number.isdigit() else 0

    def in_value(self, value: Value) -> Value:
        """Return a value with every id in it as it is called."""
        if isinstance(value, str):
            return self.of(value)
        if isinstance(value, list):
            return [self.in_value(each) for each in value]
        if isinstance(value, dict):
            return {name: self.in_value(each) for name, each in value.items()}
        return value


def fields_of(memory: Memory, names: ForeignNames, renamed: Mapping[str, str]) -> Made:
    """Return the fields as a source would have them: its names, and its own values where kept."""
    out: Made = {}
    fields = memory.fields
    for name, value in fields.items():
        if name in _KEEP:
            continue
        given = name.endswith(GIVEN)
        plain = name.removesuffix(GIVEN)
        if not given and plain + GIVEN in fields:
            continue
        kept = names.in_value(value) if plain in REFERENCES else value
        out[renamed.get(plain, plain)] = kept
    own = fields.get("source")
    if isinstance(own, str) and source_of(memory) != own:
        out["source"] = own
    return out


def tags_of(memory: Memory) -> list[Value]:
    """Return the tags as the source gave them."""
    given = memory.fields.get(f"tags{GIVEN}")
    return list(given) if isinstance(given, list) else list(memory.tags)


def is_key_and_value(memory: Memory) -> bool:
    """Whether a preference says in its text only what its key and value say."""
    key, value = memory.fields.get("key"), memory.fields.get("value")
    return memory.kind == "preference" and memory.content == f"{key}: {value}"


def targets_of(memory: Memory, names: ForeignNames) -> list[str]:
    """Return what a memory is linked to, what was never taken in too."""
    lost = memory.fields.get(f"links{GIVEN}")
    others = lost if isinstance(lost, list) else []
    return [names.of(link.target) for link in memory.links] + [
        each.partition(":")[2] for each in others if isinstance(each, str)
    ]


def as_mapping(value: Value) -> Mapping[str, Value]:
    """Return a mapping, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_texts(value: Value) -> list[str]:
    """Return the texts of a list, none for anything else."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def latest(memories: Sequence[Memory]) -> str | None:
    """Return when one of some memories was written last."""
    times = [memory.updated_at or memory.created_at for memory in memories]
    return format_time(max(times)) if times else None


def last_read(memories: Sequence[Memory]) -> str | None:
    """Return when one of some memories was read last."""
    times = [memory.last_accessed for memory in memories if memory.last_accessed]
    return format_time(max(times)) if times else None


def as_json(value: object) -> str:
    """Return a JSON file."""
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def as_lines(rows: Sequence[Made]) -> str:
    """Return a file of JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
