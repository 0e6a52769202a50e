"""Memories written as the log (000), and as the folders of JSON lines (001 and 004)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from smp_git.convert import overrides
from smp_git.convert.checksums import checksum
from smp_git.convert.shared import (
    Exported,
    Files,
    ForeignNames,
    Made,
    as_json,
    as_lines,
    as_mapping,
    fields_of,
    is_key_and_value,
    last_read,
    latest,
    tags_of,
    targets_of,
)
from smp_git.model.memory import Memory, Value
from smp_git.model.times import format_time

_NAMES: Final = {"turn": "conversation"}


# 000


def as_000(what: Exported) -> Iterator[Made]:
    """Yield the lines of the log; states and artifacts have no place in it."""
    names = ForeignNames("000", what.memories)
    for memory in what.memories:
        text = _TEXT_000.get(memory.kind)
        if text is None:
            continue
        data = fields_of(memory, names, {"made_by": "by"})
        priority = data.pop("importance", what.worth[memory.id].base)
        data = {name: value for name, value in data.items() if name not in ("tags", "links")}
        if not is_key_and_value(memory):
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


def as_001(what: Exported) -> Files:
    """Return the folder of a session with its manifest and index."""
    session, memories = what.session, what.memories
    names = ForeignNames("001", memories)
    rows: dict[str, list[Made]] = defaultdict(list)
    for memory in memories:
        if file := _FILES_001.get(memory.kind):
            rows[file].append(_row_001(memory, names))
    context = dict(as_mapping(session.get("context")))
    told = {k: v for k, v in context.items() if k != "source"}
    lines = {file: as_lines(rows.get(file, [])) for file in _FILES_001.values()}
    counts = Counter(memory.kind for memory in memories)
    manifest = {
        "session_id": session["id"],
        "created_at": session["created_at"],
        "updated_at": latest(memories) or session["created_at"],
        "user_id": session.get("user"),
        "agent_ids": session.get("agents", []),
        "metadata": {**told, "tags": session.get("tags", [])},
        "statistics": {
            "total_messages": counts["turn"],
            "total_decisions": counts["decision"],
            "total_findings": counts["finding"],
            "size_bytes": sum(len(text.encode()) for text in lines.values()),
            "last_accessed": last_read(memories) or session["created_at"],
        },
        "version": "1.0",
    }
    return {
        **lines,
        "manifest.json": as_json(manifest),
        "index.json": as_json(_index_001(session, memories, names)),
    }


def _row_001(memory: Memory, names: ForeignNames) -> Made:
    fields = fields_of(memory, names, _RENAMED_001)
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
    elif not is_key_and_value(memory):
        row[memory.kind] = memory.content
    fields.pop("links", None)
    targets = targets_of(memory, names)
    if targets:
        row["references"] = _by_kind(targets)
    if memory.access_count and memory.last_accessed:
        row["access_count"] = memory.access_count
        row["last_accessed"] = format_time(memory.last_accessed)
    return {**row, **fields, "tags": tags_of(memory), "decay_factor": 1.0}


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


def _index_001(
    session: Mapping[str, Value], memories: Sequence[Memory], names: ForeignNames
) -> Made:
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


# 004


def as_004(what: Exported) -> Files:
    """Return the folder of a session with one line a memory, each with its checksum."""
    session, memories = what.session, what.memories
    names = ForeignNames("004", memories)
    rows = [_row_004(what, memory, names) for memory in memories if memory.kind in _TEXT_000]
    text, counts = as_lines(rows), Counter(memory.kind for memory in memories)
    metadata = {
        "session_id": session["id"],
        "user_id": session.get("user"),
        "created_at": session["created_at"],
        "last_accessed": last_read(memories) or session["created_at"],
        "total_entries": len(rows),
        "total_size_bytes": len(text.encode()),
        **overrides.to_004(as_mapping(session.get("overrides"))),
        "statistics": {f"{_NAMES.get(kind, kind)}s": counts[kind] for kind in _FILES_001},
    }
    return {
        "memory.jsonl": text,
        "tombstones.jsonl": "",
        "metadata.json": as_json(metadata),
        "index.json": as_json(_index_004(rows, last_read(memories) or session["created_at"])),
    }


def _row_004(what: Exported, memory: Memory, names: ForeignNames) -> Made:
    fields = fields_of(memory, names, {})
    importance = fields.pop("importance", what.worth[memory.id].base)
    content = {name: value for name, value in fields.items() if name not in ("tags", "links")}
    if not is_key_and_value(memory):
        content = {"message" if memory.kind == "turn" else memory.kind: memory.content, **content}
    row = {
        "id": names.of(memory.id),
        "session_id": what.session["id"],
        "timestamp": format_time(memory.created_at),
        "type": _NAMES.get(memory.kind, memory.kind),
        "content": content,
        "importance": importance,
        "decay_factor": 1.0,
        "tags": tags_of(memory),
        "references": targets_of(memory, names),
    }
    return {**row, "checksum": checksum(row)}


def _index_004(rows: Sequence[Made], at: Value) -> Made:
    entries, offset = {}, 0
    tags: dict[str, list[str]] = defaultdict(list)
    types: dict[str, list[str]] = defaultdict(list)
    for number, row in enumerate(rows):
        entries[row["id"]] = {
            "line_number": number + 1,
            "byte_offset": offset,
            **{name: row[name] for name in ("type", "timestamp", "tags", "importance")},
            "current_relevance": row["importance"],
        }
        offset += len(as_lines([row]).encode())
        types[row["type"]].append(row["id"])
        for tag in row["tags"]:
            tags[tag].append(row["id"])
    return {"version": 1, "last_updated": at, "entries": entries, "tags": tags, "types": types}
