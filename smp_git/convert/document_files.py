"""Memories written as a folder of YAML and Markdown (003), with its indexes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from smp_git.convert.shared import (
    Exported,
    Files,
    ForeignNames,
    Made,
    as_mapping,
    as_texts,
    fields_of,
    last_read,
    latest,
    tags_of,
)
from smp_git.format import yamlfile
from smp_git.format.metadata import PATH as METADATA
from smp_git.model.memory import Memory, Value
from smp_git.model.times import format_time

_QUOTA: Final = 10_485_760
# What the format's description says of a session that has no rate of its own.
_RATE: Final = 0.05
_ONE_LINE: Final = re.compile(r"[^\r\n]+")
_PLAIN_NAME: Final = re.compile(r"[a-z]+(?:_[a-z]+)*")
_HEAD: Final = re.compile(r"^(\\*## Turn \d+ - )", re.MULTILINE)


_LISTS: Final = {
    "decision": "decisions",
    "finding": "findings",
    "preference": "preferences",
    "learning": "learnings",
}
_RENAMED: Final = {"alternatives": "alternatives_considered"}
_RENAMED_DECISION: Final = {**_RENAMED, "impact": "implementation_impact"}


def as_003(what: Exported) -> Files:
    """Return the folder of a session in YAML and Markdown, with its indexes."""
    memories = what.memories
    names = ForeignNames("003", memories).by_number(memories)
    files: dict[str, str] = {METADATA: _yaml(_metadata(what))}
    files["conversation.md"] = "".join(_conversation(what, names))
    for kind, key in _LISTS.items():
        found: list[Value] = [_item(what, each, names) for each in memories if each.kind == kind]
        if found or kind != "learning":
            files[f"{key}.yaml"] = _yaml({key: found})
    for memory in memories:
        if memory.kind == "state":
            said = _state(what, memory, names)
            files[f"agent-states/{memory.agent}.yaml"] = _yaml({"agent_state": said})
        elif memory.kind == "artifact":
            files[_free(f"artifacts/{_file_name(memory, names)}", files)] = memory.content
    return {**files, **_indexes(what, names)}


def _free(path: str, files: Files) -> str:
    """Return a path that no file has yet, without regard to case."""
    taken, found, number = {each.lower() for each in files}, path, 1
    while found.lower() in taken:
        number += 1
        found = f"{path.removesuffix('.md')}-{number}.md"
    return found


def _metadata(what: Exported) -> dict[str, Value]:
    session, memories = what.session, what.memories
    size = sum(memory.size_bytes for memory in memories)
    context = {k: v for k, v in as_mapping(session.get("context")).items() if k != "source"}
    spoke = Counter(memory.agent for memory in memories if memory.kind == "turn")
    last = {memory.agent: format_time(memory.created_at) for memory in memories}
    names = dict.fromkeys([*as_texts(session.get("agents")), *spoke])
    agents: list[Value] = [
        {"agent_id": name, "message_count": spoke[name], "last_active": last.get(name)}
        for name in names
    ]
    return {
        "session": {
            "id": session["id"],
            "created_at": session["created_at"],
            "last_accessed": last_read(memories) or session["created_at"],
            "status": "active",
            "storage": {
                "total_bytes": size,
                "quota_bytes": _QUOTA,
                "utilization_pct": round(100 * size / _QUOTA, 1),
            },
            "decay": {
                "base_priority": 1.0,
                "current_priority": max((each.now for each in what.worth.values()), default=1.0),
                "decay_rate": _RATE,
                "last_decay_update": latest(memories) or session["created_at"],
            },
            "participants": {"user_id": session.get("user"), "agents": agents},
            "context": {**context, "tags": session.get("tags", [])},
        }
    }


def _conversation(what: Exported, names: ForeignNames) -> Iterator[str]:
    session = what.session
    people = dict.fromkeys([*as_texts([session.get("user")]), *as_texts(session.get("agents"))])
    yield "# Conversation History\n"
    yield f"**Session:** {session['id']}\n**Started:** {session['created_at']}\n"
    yield f"**Participants:** {', '.join(people)}\n\n---\n"
    for memory in what.memories:
        if memory.kind == "turn":
            yield from _turn(memory, names)


def _turn(memory: Memory, names: ForeignNames) -> Iterator[str]:
    fields = memory.fields
    yield f"\n## Turn {names.number(memory.id)} - {format_time(memory.created_at)}\n"
    yield f"**Speaker:** {fields.get('speaker') or memory.agent}\n"
    yield f"**Type:** {fields.get('type', 'message')}\n"
    refs = names.in_value(fields.get("memory_refs"))
    if isinstance(refs, list) and refs:
        yield f"**Memory-Refs:** [{', '.join(map(str, refs))}]\n"
    if memory.tags:
        yield f"**Tags:** [{', '.join(memory.tags)}]\n"
    for name, value in fields_of(memory, names, {}).items():
        if _fits_a_line(name, value):
            yield f"**{name.replace('_', '-').capitalize()}:** {value}\n"
    # What would begin another turn is kept from it, as Markdown does.
    text = _HEAD.sub(r"\\\1", memory.content.strip(chr(10)))
    yield f"\n{text}\n\n---\n"


def _fits_a_line(name: str, value: object) -> bool:
    """Whether a field of a turn can stand under its heading, and is read there as it was."""
    if name in ("speaker", "type", "memory_refs", "tags") or not _PLAIN_NAME.fullmatch(name):
        return False
    if isinstance(value, str):
        return _ONE_LINE.fullmatch(value) is not None and value == value.strip()
    return isinstance(value, int) and not isinstance(value, bool)


def _item(what: Exported, memory: Memory, names: ForeignNames) -> dict[str, Value]:
    decision = memory.kind == "decision"
    fields = fields_of(memory, names, _RENAMED_DECISION if decision else _RENAMED)
    fields.pop("importance", None)
    turn = fields.pop("turn_ref", None)
    lost = fields.pop("links", [])
    links: list[Value] = [
        {"relationship": link.relation, "target": names.of(link.target)} for link in memory.links
    ]
    for each in lost if isinstance(lost, list) else ():
        word, _, target = str(each).partition(":")
        links.append({"relationship": word, "target": target})
    made: Made = {"id": names.of(memory.id), "timestamp": format_time(memory.created_at)}
    if isinstance(turn, str):
        made["turn_ref"] = names.number(turn) or turn
    people = {"decision": "made_by", "finding": "discovered_by"}.get(memory.kind, "created_by")
    made |= {people: fields.pop(people, memory.agent), memory.kind: memory.content}
    made |= {**fields, "tags": tags_of(memory)}
    if links:
        made["relationships"] = links
    last = memory.last_accessed or memory.created_at
    decay: dict[str, Value] = {
        "priority": round(what.worth[memory.id].now, 4),
        "base_priority": what.worth[memory.id].base,
        "last_accessed": format_time(last),
        "access_count": memory.access_count or 0,
    }
    return {**made, "decay": decay}


def _state(what: Exported, memory: Memory, names: ForeignNames) -> dict[str, Value]:
    fields = fields_of(memory, names, {})
    at = fields.pop("last_updated", None) or format_time(memory.updated_at or memory.created_at)
    fields.pop("importance", None)
    return {
        "agent_id": memory.agent,
        "session_id": what.session["id"],
        "last_updated": at,
        **fields,
        "decay": {
            "priority": round(what.worth[memory.id].now, 4),
            "last_accessed": format_time(memory.last_accessed or memory.created_at),
        },
    }


def _file_name(memory: Memory, names: ForeignNames) -> str:
    name = memory.fields.get("name")
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", str(name or names.of(memory.id))).strip("-.")
    return plain if plain.endswith(".md") else f"{plain or memory.id}.md"


def _indexes(what: Exported, names: ForeignNames) -> Files:
    topics: dict[str, list[Memory]] = defaultdict(list)
    agents: dict[str, list[str]] = defaultdict(list)
    hours: dict[str, list[str]] = defaultdict(list)
    for memory in what.memories:
        for tag in memory.tags:
            topics[tag].append(memory)
        agents[memory.agent].append(names.of(memory.id))
        hours[memory.created_at.strftime("%Y-%m-%dT%H:00")].append(names.of(memory.id))
    at = latest(what.memories) or str(what.session["created_at"])
    most = max(map(len, topics.values()), default=1)
    told: dict[str, Value] = {tag: _topic(tag, topics, most, names) for tag in sorted(topics)}
    events: list[Value] = [_event(memory, names) for memory in what.memories]
    buckets: dict[str, Value] = {
        hour: {"event_count": len(refs), "event_refs": list(refs)}
        for hour, refs in sorted(hours.items())
    }
    listed: dict[str, Value] = {name: list(found) for name, found in sorted(agents.items())}
    return {
        "indexes/topics.yaml": _index("topic_index", at, {"topics": told}),
        "indexes/timeline.yaml": _index(
            "timeline_index", at, {"events": events, "buckets": buckets}
        ),
        "indexes/agents.yaml": _index("agent_index", at, {"agents": listed}),
    }


def _index(name: str, at: str, said: Made) -> str:
    return _yaml({name: {"version": 1, "last_updated": at, **said}})


def _event(memory: Memory, names: ForeignNames) -> dict[str, Value]:
    fields = memory.fields
    said: dict[str, Value] = {
        "timestamp": format_time(memory.created_at),
        "type": "conversation_turn" if memory.kind == "turn" else memory.kind,
        "ref": names.of(memory.id),
    }
    who = {"decision": "made_by", "finding": "discovered_by"}.get(memory.kind)
    said |= {who: fields.get(who, memory.agent)} if who else {"participants": [memory.agent]}
    if "severity" in fields:
        said["severity"] = fields["severity"]
    return {**said, "topics": list(memory.tags)}


def _topic(
    tag: str, topics: dict[str, list[Memory]], most: int, names: ForeignNames
) -> dict[str, Value]:
    found = topics[tag]
    kinds: dict[str, list[Value]] = defaultdict(list)
    for memory in found:
        turn = memory.kind == "turn"
        kinds[f"{memory.kind}s"].append(names.number(memory.id) if turn else names.of(memory.id))
    times = sorted(memory.created_at for memory in found)
    return {
        "weight": round(len(found) / most, 2),
        "mentions": len(found),
        "first_mentioned": format_time(times[0]),
        "last_mentioned": format_time(times[-1]),
        "related_memories": dict(kinds),
        "subtopics": [each for each in sorted(topics) if each.startswith(f"{tag}.")],
    }


def _yaml(value: Made) -> str:
    return yamlfile.written(value) + "\n"
