"""Memories in the formats of other programs: the log (000), and the folders 001, 003 and 004."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from smp_git.convert import overrides
from smp_git.convert.entries import REFERENCES
from smp_git.convert.files import whole
from smp_git.format import yamlfile
from smp_git.format.imports import GIVEN, source_of
from smp_git.format.metadata import PATH as METADATA
from smp_git.model.memory import Memory, Value
from smp_git.model.times import format_time

# The files of a folder by their paths in it.
Files: TypeAlias = "Mapping[str, str]"
Made: TypeAlias = "dict[str, Any]"

_NAMES: Final = {"turn": "conversation"}
_KEEP: Final = frozenset(("source", f"source{GIVEN}", "title"))


def in_words(value: Value) -> str:
    """Return a value as a person reads it."""
    if isinstance(value, list):
        return ", ".join(in_words(each) for each in value)
    if isinstance(value, dict):
        return "; ".join(f"{name}: {in_words(each)}" for name, each in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


class _Names:
    """What memories are called in a format: as in the source they came from, else as here."""

    def __init__(self, name: str, memories: Sequence[Memory]) -> None:
        self._format = name
        self._ids: dict[str, str] = {}
        for memory in memories:
            source = source_of(memory) or ""
            own = source.partition("/")[2] if source.startswith(f"{name}:") else ""
            self._ids[memory.id] = own or memory.id

    def by_number(self, memories: Sequence[Memory]) -> _Names:
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


def _fields(memory: Memory, names: _Names, renamed: Mapping[str, str]) -> Made:
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


def _tags(memory: Memory) -> list[Value]:
    given = memory.fields.get(f"tags{GIVEN}")
    return list(given) if isinstance(given, list) else list(memory.tags)


def _without(made: Made, *names: str) -> Made:
    return {name: value for name, value in made.items() if name not in names}


# 000


def as_000(memories: Sequence[Memory]) -> Iterator[Made]:
    """Yield the lines of the log; states and artifacts have no place in it."""
    names = _Names("000", memories)
    for memory in memories:
        text = _TEXT_000.get(memory.kind)
        if text is None:
            continue
        data = _fields(memory, names, {"made_by": "by"})
        priority = data.pop("importance", 1.0)
        data = _without(data, "tags", "links")
        if not _is_key_and_value(memory):
            data = {text: memory.content, **data}
        yield {
            "id": names.of(memory.id),
            "type": _NAMES.get(memory.kind, memory.kind),
            "ts": format_time(memory.created_at),
            "data": data,
            "priority": priority,
            "access": memory.access_count or 0,
        }


_TEXT_000: Final = {
    "turn": "content", "decision": "decision", "finding": "issue", "preference": "preference",
    "learning": "learning",
}  # fmt: skip


def _is_key_and_value(memory: Memory) -> bool:
    """Whether a preference says in its text only what its key and value say."""
    key, value = memory.fields.get("key"), memory.fields.get("value")
    return memory.kind == "preference" and memory.content == f"{key}: {value}"


# 001

_FILES_001: Final = {
    "turn": "conversation.jsonl",
    "decision": "decisions.jsonl",
    "finding": "findings.jsonl",
    "preference": "preferences.jsonl",
}
_RENAMED_001: Final = {
    "parent": "parent_message_id",
    "alternatives": "alternatives_considered",
    "memory_refs": "references",
}
_OF_CONTEXT: Final = ("conversation_id", "parent_message_id", "topic")
_OF_METADATA: Final = ("tokens", "processing_time_ms", "references")


def as_001(session: Mapping[str, Value], memories: Sequence[Memory]) -> Files:
    """Return the folder of a session with its manifest and index."""
    names = _Names("001", memories)
    rows: dict[str, list[Made]] = defaultdict(list)
    for memory in memories:
        if file := _FILES_001.get(memory.kind):
            rows[file].append(_row_001(memory, names))
    context = dict(_mapping(session.get("context")))
    told = {k: v for k, v in context.items() if k != "source"}
    lines = {file: _jsonl(rows.get(file, [])) for file in _FILES_001.values()}
    counts = Counter(memory.kind for memory in memories)
    manifest = {
        "session_id": session["id"],
        "created_at": session["created_at"],
        "updated_at": _latest(memories) or session["created_at"],
        "user_id": session.get("user"),
        "agent_ids": session.get("agents", []),
        "metadata": {**told, "tags": session.get("tags", [])},
        "statistics": {
            "total_messages": counts["turn"],
            "total_decisions": counts["decision"],
            "total_findings": counts["finding"],
            "size_bytes": sum(len(text.encode()) for text in lines.values()),
            "last_accessed": _last_read(memories) or session["created_at"],
        },
        "version": "1.0",
    }
    return {
        **lines,
        "manifest.json": _json(manifest),
        "index.json": _json(_index_001(session, memories, names)),
    }


def _row_001(memory: Memory, names: _Names) -> Made:
    fields = _fields(memory, names, _RENAMED_001)
    row: Made = {"id": names.of(memory.id), "timestamp": format_time(memory.created_at)}
    references = fields.pop("references", None)
    if memory.kind == "turn":
        row |= {"agent_id": memory.agent, "role": fields.pop("role", "assistant")}
        row["content"] = memory.content
        row["context"] = {n: fields.pop(n) for n in _OF_CONTEXT if n in fields}
        about = {n: fields.pop(n) for n in _OF_METADATA if n in fields}
        row["metadata"] = about | ({"references": references} if references else {})
    elif memory.kind == "finding":
        row["description"] = memory.content
    elif not _is_key_and_value(memory):
        row[memory.kind] = memory.content
    fields.pop("links", None)
    targets = _targets(memory, names)
    if targets:
        row["references"] = _by_kind(targets)
    return {**row, **fields, "tags": _tags(memory), "decay_factor": 1.0}


def _targets(memory: Memory, names: _Names) -> list[str]:
    """Return what a memory is linked to, what was never taken in too."""
    lost = memory.fields.get(f"links{GIVEN}")
    others = lost if isinstance(lost, list) else []
    return [names.of(link.target) for link in memory.links] + [
        each.partition(":")[2] for each in others if isinstance(each, str)
    ]


_WORDS_001: Final = {
    "msg": "conversations", "turn": "conversations", "dec": "decisions", "find": "findings",
    "finding": "findings", "pref": "preferences",
}  # fmt: skip


def _by_kind(targets: Sequence[str]) -> Made:
    """Return the targets of links under the names that the format has for their kinds."""
    out: Made = defaultdict(list)
    for target in targets:
        out[_WORDS_001.get(target.partition("-")[0].lower(), "others")].append(target)
    return dict(out)


def _index_001(session: Mapping[str, Value], memories: Sequence[Memory], names: _Names) -> Made:
    words: dict[str, list[str]] = defaultdict(list)
    topics: dict[str, list[str]] = defaultdict(list)
    hours: dict[str, list[str]] = defaultdict(list)
    for memory in memories:
        if memory.kind not in _FILES_001:
            continue
        name = names.of(memory.id)
        for word in dict.fromkeys(re.findall(r"\w{3,}", memory.content.lower())):
            words[word].append(name)
        if isinstance(topic := memory.fields.get("topic"), str):
            topics[topic].append(name)
        hours[memory.created_at.strftime("%Y-%m-%dT%H")].append(name)
    return {
        "session_id": session["id"],
        "created_at": session["created_at"],
        "inverted_index": words,
        "topic_index": topics,
        "temporal_index": hours,
        "version": 1,
    }


# 003

_LISTS_003: Final = {
    "decision": "decisions",
    "finding": "findings",
    "preference": "preferences",
    "learning": "learnings",
}
_RENAMED_003: Final = {"alternatives": "alternatives_considered"}
_RENAMED_DECISION_003: Final = {**_RENAMED_003, "impact": "implementation_impact"}


def as_003(session: Mapping[str, Value], memories: Sequence[Memory]) -> Files:
    """Return the folder of a session in YAML and Markdown, with its indexes."""
    names = _Names("003", memories).by_number(memories)
    files: dict[str, str] = {METADATA: _yaml(_metadata_003(session, memories))}
    files["conversation.md"] = "".join(_conversation(session, memories, names))
    for kind, key in _LISTS_003.items():
        found: list[Value] = [_item_003(each, names) for each in memories if each.kind == kind]
        if found or kind != "learning":
            files[f"{key}.yaml"] = _yaml({key: found})
    for memory in memories:
        if memory.kind == "state":
            said = _state_003(session, memory, names)
            files[f"agent-states/{memory.agent}.yaml"] = _yaml({"agent_state": said})
        elif memory.kind == "artifact":
            files[f"artifacts/{_file_name(memory, names)}"] = memory.content
    return {**files, **_indexes_003(memories, names)}


def _metadata_003(session: Mapping[str, Value], memories: Sequence[Memory]) -> dict[str, Value]:
    size = sum(memory.size_bytes for memory in memories)
    context = {k: v for k, v in _mapping(session.get("context")).items() if k != "source"}
    spoke = Counter(memory.agent for memory in memories if memory.kind == "turn")
    last = {memory.agent: format_time(memory.created_at) for memory in memories}
    names = dict.fromkeys([*_texts(session.get("agents")), *spoke])
    agents: list[Value] = [
        {"agent_id": name, "message_count": spoke[name], "last_active": last.get(name)}
        for name in names
    ]
    return {
        "session": {
            "id": session["id"],
            "created_at": session["created_at"],
            "last_accessed": _last_read(memories) or session["created_at"],
            "status": "active",
            "storage": {
                "total_bytes": size,
                "quota_bytes": 10_485_760,
                "utilization_pct": round(100 * size / 10_485_760, 1),
            },
            "participants": {"user_id": session.get("user"), "agents": agents},
            "context": {**context, "tags": session.get("tags", [])},
        }
    }


def _conversation(
    session: Mapping[str, Value], memories: Sequence[Memory], names: _Names
) -> Iterator[str]:
    people = dict.fromkeys([*_texts([session.get("user")]), *_texts(session.get("agents"))])
    yield "# Conversation History\n"
    yield f"**Session:** {session['id']}\n**Started:** {session['created_at']}\n"
    yield f"**Participants:** {', '.join(people)}\n\n---\n"
    for memory in memories:
        if memory.kind == "turn":
            yield from _turn_003(memory, names)


def _turn_003(memory: Memory, names: _Names) -> Iterator[str]:
    fields = memory.fields
    yield f"\n## Turn {names.number(memory.id)} - {format_time(memory.created_at)}\n"
    yield f"**Speaker:** {fields.get('speaker') or memory.agent}\n"
    yield f"**Type:** {fields.get('type', 'message')}\n"
    refs = names.in_value(fields.get("memory_refs"))
    if isinstance(refs, list) and refs:
        yield f"**Memory-Refs:** [{', '.join(map(str, refs))}]\n"
    for name, value in fields.items():
        if name not in ("speaker", "type", "memory_refs", *_KEEP) and isinstance(value, (str, int)):
            yield f"**{name.replace('_', '-').capitalize()}:** {names.in_value(value)}\n"
    yield f"\n{memory.content.strip(chr(10))}\n\n---\n"


def _item_003(memory: Memory, names: _Names) -> dict[str, Value]:
    decision = memory.kind == "decision"
    fields = _fields(memory, names, _RENAMED_DECISION_003 if decision else _RENAMED_003)
    base = fields.pop("importance", None)
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
    made |= {**fields, "tags": _tags(memory)}
    if links:
        made["relationships"] = links
    return {**made, "decay": _decay(memory, base)}


def _decay(memory: Memory, base: Value) -> dict[str, Value]:
    last = memory.last_accessed or memory.created_at
    said: dict[str, Value] = {"last_accessed": format_time(last)}
    said["access_count"] = memory.access_count or 0
    return said | ({"base_priority": base} if base is not None else {})


def _state_003(session: Mapping[str, Value], memory: Memory, names: _Names) -> dict[str, Value]:
    fields = _fields(memory, names, {})
    at = fields.pop("last_updated", None) or format_time(memory.updated_at or memory.created_at)
    return {"agent_id": memory.agent, "session_id": session["id"], "last_updated": at, **fields}


def _file_name(memory: Memory, names: _Names) -> str:
    name = memory.fields.get("name")
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", str(name or names.of(memory.id))).strip("-.")
    return plain if plain.endswith(".md") else f"{plain or memory.id}.md"


def _indexes_003(memories: Sequence[Memory], names: _Names) -> Files:
    topics: dict[str, list[Memory]] = defaultdict(list)
    agents: dict[str, list[str]] = defaultdict(list)
    events: list[Value] = []
    for memory in memories:
        for tag in memory.tags:
            topics[tag].append(memory)
        agents[memory.agent].append(names.of(memory.id))
        kind = "conversation_turn" if memory.kind == "turn" else memory.kind
        events.append(
            {"timestamp": format_time(memory.created_at), "type": kind, "ref": names.of(memory.id),
             "participants": [memory.agent], "topics": list(memory.tags)}
        )  # fmt: skip
    told: dict[str, Value] = {tag: _topic(found, names) for tag, found in sorted(topics.items())}
    listed: dict[str, Value] = {name: list(found) for name, found in sorted(agents.items())}
    return {
        "indexes/topics.yaml": _yaml({"topic_index": {"version": 1, "topics": told}}),
        "indexes/timeline.yaml": _yaml({"timeline_index": {"version": 1, "events": events}}),
        "indexes/agents.yaml": _yaml({"agent_index": {"version": 1, "agents": listed}}),
    }


def _topic(found: Sequence[Memory], names: _Names) -> dict[str, Value]:
    kinds: dict[str, list[Value]] = defaultdict(list)
    for memory in found:
        turn = memory.kind == "turn"
        kinds[f"{memory.kind}s"].append(names.number(memory.id) if turn else names.of(memory.id))
    times = sorted(memory.created_at for memory in found)
    return {
        "mentions": len(found),
        "first_mentioned": format_time(times[0]),
        "last_mentioned": format_time(times[-1]),
        "related_memories": dict(kinds),
    }


# 004


def as_004(session: Mapping[str, Value], memories: Sequence[Memory]) -> Files:
    """Return the folder of a session with one line a memory, each with its checksum."""
    names = _Names("004", memories)
    rows = [_row_004(session, memory, names) for memory in memories if memory.kind in _TEXT_000]
    text, counts = _jsonl(rows), Counter(memory.kind for memory in memories)
    metadata = {
        "session_id": session["id"],
        "user_id": session.get("user"),
        "created_at": session["created_at"],
        "last_accessed": _last_read(memories) or session["created_at"],
        "total_entries": len(rows),
        "total_size_bytes": len(text.encode()),
        **overrides.to_004(_mapping(session.get("overrides"))),
        "statistics": {f"{_NAMES.get(kind, kind)}s": counts[kind] for kind in _FILES_001},
    }
    return {
        "memory.jsonl": text,
        "tombstones.jsonl": "",
        "metadata.json": _json(metadata),
        "index.json": _json(_index_004(rows, text)),
    }


def _row_004(session: Mapping[str, Value], memory: Memory, names: _Names) -> Made:
    fields = _fields(memory, names, {})
    importance = fields.pop("importance", 0.5)
    content = _without(fields, "tags", "links")
    if not _is_key_and_value(memory):
        content = {"message" if memory.kind == "turn" else memory.kind: memory.content, **content}
    row = {
        "id": names.of(memory.id),
        "session_id": session["id"],
        "timestamp": format_time(memory.created_at),
        "type": _NAMES.get(memory.kind, memory.kind),
        "content": content,
        "importance": importance,
        "decay_factor": 1.0,
        "tags": _tags(memory),
        "references": _targets(memory, names),
    }
    whole = json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return {**row, "checksum": f"sha256:{hashlib.sha256(whole.encode()).hexdigest()}"}


def _index_004(rows: Sequence[Made], text: str) -> Made:
    entries, offset = {}, 0
    tags: dict[str, list[str]] = defaultdict(list)
    types: dict[str, list[str]] = defaultdict(list)
    for number, (row, line) in enumerate(zip(rows, text.splitlines(keepends=True), strict=True)):
        entries[row["id"]] = {
            "line_number": number + 1,
            "byte_offset": offset,
            **{name: row[name] for name in ("type", "timestamp", "tags", "importance")},
        }
        offset += len(line.encode())
        types[row["type"]].append(row["id"])
        for tag in row["tags"]:
            tags[tag].append(row["id"])
    return {"version": 1, "entries": entries, "tags": tags, "types": types}


# What they share


def _mapping(value: Value) -> Mapping[str, Value]:
    return value if isinstance(value, dict) else {}


def _texts(value: Value) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _latest(memories: Sequence[Memory]) -> str | None:
    times = [memory.updated_at or memory.created_at for memory in memories]
    return format_time(max(times)) if times else None


def _last_read(memories: Sequence[Memory]) -> str | None:
    times = [memory.last_accessed for memory in memories if memory.last_accessed]
    return format_time(max(times)) if times else None


def _yaml(value: Mapping[str, Value]) -> str:
    return yamlfile.written(value) + "\n"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _jsonl(rows: Sequence[Made]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


FOLDERS: Final[Mapping[str, Callable[[Mapping[str, Value], Sequence[Memory]], Files]]] = {
    "001": as_001,
    "003": as_003,
    "004": as_004,
}


def write_folder(files: Files, place: Path) -> None:
    """Write a folder whole or not at all."""
    with whole(place) as scratch:
        scratch.mkdir(mode=0o700, parents=True)
        for name, text in files.items():
            target = scratch / name
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            target.write_text(text, "utf-8", newline="\n")
            target.chmod(0o600)
