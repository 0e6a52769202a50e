"""Entries of another program as drafts of memories: checked, without secrets, linked by ids of ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from smp_git.convert.entries import REFERENCES, ForeignMemory
from smp_git.format.imports import GIVEN
from smp_git.model.errors import InvalidError
from smp_git.model.memory import (
    CONTESTED,
    KINDS,
    MAX_CONTENT_BYTES,
    VALUE,
    Link,
    Memory,
    MemoryId,
    Value,
    agent_name,
    check_fields,
    is_same,
)
from smp_git.model.times import format_time
from smp_git.write import edits
from smp_git.write.handle import Handle
from smp_git.write.stage import Draft

# What is computed anew as time goes by, there as here, so that another value is no change.
_COMPUTED: Final = ("importance",)


def refusal(entry: ForeignMemory) -> str | None:
    """Return why an entry cannot be stored, as far as that is told by its size."""
    if entry.kind == VALUE:
        return None
    size = len(entry.text.encode("utf-8", "surrogatepass"))
    if size > MAX_CONTENT_BYTES:
        return f"content has {size:,} bytes; the limit is {MAX_CONTENT_BYTES:,}"
    if entry.kind not in ("state", "artifact") and not _text(entry).strip():
        return f"a {entry.kind} needs text"
    return None


def value_of(entry: ForeignMemory) -> Value:
    """Return what a program kept, as it was."""
    return entry.text or entry.fields.get("value")


def draft_of(handle: Handle, entry: ForeignMemory, source: str) -> Draft:
    """Return a draft without links and references; raise InvalidError for what cannot be stored."""
    fields = _own_fields(entry, source)
    contested = check_fields(KINDS[entry.kind], {CONTESTED: fields.pop(CONTESTED, None)})
    who = entry.agent or agent_name(handle.actor(None))
    try:
        made = _draft(handle, entry, who, entry.tags, fields)
    except InvalidError:
        # A secret in a name is taken out of it with the name; the text stays.
        tags = [tag for tag in entry.tags if _is_plain(handle, tag)]
        who = who if _is_plain(handle, who) else handle.actor(None)
        made = _draft(handle, entry, who, tags, fields)
    if contested:
        clean = check_fields(made.kind, handle.rules.cleaned(None, contested).fields)
        made = replace(made, fields=MappingProxyType({**made.fields, **clean}))
    return made


def _draft(
    handle: Handle,
    entry: ForeignMemory,
    who: str,
    tags: Iterable[str],
    fields: Mapping[str, object],
) -> Draft:
    return edits.new(handle, entry.kind, _text(entry), who, tags, (), entry.at, fields)


def _is_plain(handle: Handle, name: str) -> bool:
    with suppress(InvalidError):
        handle.rules.name(name, "a name")
        return True
    return False


def _own_fields(entry: ForeignMemory, source: str) -> dict[str, object]:
    key = "source" if entry.fields.get("source") is None else f"source{GIVEN}"
    own = {name: value for name, value in entry.fields.items() if name not in REFERENCES}
    return {**own, key: source}


def _text(entry: ForeignMemory) -> str:
    """Return the text of an entry; one that has only fields is told by these."""
    if entry.text.strip() or entry.kind == "artifact":
        return entry.text
    said = (f"{name}: {value}" for name, value in entry.fields.items() if isinstance(value, str))
    return "\n".join(said)


def linked(
    draft: Draft,
    entry: ForeignMemory,
    ids: Mapping[str, MemoryId],
    elsewhere: Mapping[str, str],
) -> Draft:
    """Return a draft with its links and references under the ids that they have here.

    A link may lead into another session; other references are kept beside.
    """
    links, lost = list(draft.links), list[Value]()
    for word, target in entry.links:
        here = ids.get(target) or elsewhere.get(target)
        if here is not None:
            links.append(Link(word, MemoryId(here)))
        else:
            lost.append(f"{word}:{target}")
    fields = {**draft.fields, **_references(entry, ids)}
    if lost:
        fields[f"links{GIVEN}"] = lost
    return replace(draft, links=tuple(dict.fromkeys(links)), fields=MappingProxyType(fields))


def state_fields(
    entry: ForeignMemory, source: str, ids: Mapping[str, MemoryId]
) -> dict[str, object]:
    """Return the fields of an agent's state."""
    fields = {**_own_fields(entry, source), **_references(entry, ids)}
    if entry.at is not None:
        fields["last_updated"] = format_time(entry.at)
    return fields


def _references(entry: ForeignMemory, ids: Mapping[str, MemoryId]) -> dict[str, Value]:
    """Return the fields that name memories, under their ids here; what names others is kept beside."""
    return dict(_referring(entry, ids))


def _referring(entry: ForeignMemory, ids: Mapping[str, MemoryId]) -> Iterator[tuple[str, Value]]:
    for name in REFERENCES:
        if name not in entry.fields:
            continue
        given = entry.fields[name]
        here = _mapped(given, ids)
        if here not in (None, [], {}, ""):
            try:
                yield from check_fields(KINDS[entry.kind], {name: here}).items()
            except InvalidError:
                here = None
        if _count(here) < _count(given):
            yield name + GIVEN, given


def _mapped(value: Value, ids: Mapping[str, MemoryId]) -> Value:
    """Return a value with the ids of what was taken in, and without those of anything else."""
    if isinstance(value, str):
        return ids.get(value)
    if isinstance(value, list):
        return [here for each in value if (here := _mapped(each, ids)) is not None]
    if isinstance(value, dict):
        return {name: _mapped(each, ids) for name, each in value.items()}
    return value


def _count(value: Value) -> int:
    """Return how many texts a value holds."""
    if isinstance(value, list):
        return sum(map(_count, value))
    if isinstance(value, dict):
        return sum(map(_count, value.values()))
    return int(isinstance(value, str))


def is_plainly_the_same(entry: ForeignMemory, memory: Memory) -> bool:
    """Whether an entry says nothing but what a memory says, as far as that shows at once."""
    return (
        entry.text == memory.content
        and set(entry.tags) <= set(memory.tags)
        and len(entry.links) <= len(memory.links)
        and not any(name in entry.fields for name in REFERENCES)
        and _holds(memory.fields, entry.fields)
    )


def is_the_same(draft: Draft, memory: Memory) -> bool:
    """Whether a memory says all that a draft says; what was added to it here does not matter."""
    return (
        draft.content == memory.content
        and set(draft.tags) <= set(memory.tags)
        and set(draft.links) <= set(memory.links)
        and _holds(memory.fields, draft.fields)
    )


def _holds(fields: Mapping[str, Value], said: Mapping[str, Value]) -> bool:
    return all(
        name in _COMPUTED or (name in fields and is_same(fields[name], value))
        for name, value in said.items()
    )


def changed_fields(draft: Draft, memory: Memory) -> dict[str, Value]:
    """Return the fields that an edit sets so that a memory says what a draft says."""
    changed: dict[str, Value] = {
        name: value
        for name, value in draft.fields.items()
        if name not in (*_COMPUTED, CONTESTED) and memory.fields.get(name) != value
    }
    # What could not be kept before, and can now.
    stale = (name for name in memory.fields if name.endswith(GIVEN) and name not in draft.fields)
    return {**changed, **dict.fromkeys(stale)}
