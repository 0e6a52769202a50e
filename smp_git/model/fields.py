"""Fields of memories: what each is for, as help and the reference tell it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from smp_git.model.memory import COMMON_FIELDS, KINDS, field_type

# Of memories of any kind.
_COMMON: Final[Mapping[str, str]] = {
    "turn_ref": "the turn that the memory comes from",
    "title": "shown in lists and commit messages; defaults to the first line of the main text",
    "confidence": "how certain the memory is",
    "importance": "base priority",
    "pinned": "exempt from decay and compaction; absent means false",
    "source": "where the memory comes from",
}
_OWN: Final[Mapping[str, Mapping[str, str]]] = {
    "turn": {
        "speaker": "who said it, if not the agent",
        "role": "e.g. `user`, `assistant`, `tool`",
        "type": "e.g. `message`, `question`, `context_switch`",
        "memory_refs": "ids of memories it refers to",
        "conversation_id": "the conversation it belongs to",
        "parent": "the turn it answers",
        "topic": "what it is about",
        "tokens": "its length in tokens",
        "processing_time_ms": "how long it took to produce",
    },
    "decision": {
        "rationale": "why",
        "made_by": "who decided",
        "agreed_by": "who agreed",
        "approved_by": "who approved",
        "agents_involved": "who took part",
        "alternatives": "what else was considered",
        "reversible": "whether it can be reversed",
        "impact": "how much depends on it, e.g. `high`",
        "status": "`active` if absent; `resolved` and `superseded` are set by the commands",
        "supersedes": "what it replaces, in the writer's words; `smp supersede` makes a link",
        "resolution": "how it was resolved, as of a finding, without a `status`: that is the decision's own",
    },
    "finding": {
        "severity": "how bad it is",
        "category": "its category",
        "discovered_by": "who found it",
        "location": "where it is",
        "evidence": "evidence for it",
        "impact": "how much depends on it, e.g. `high`",
        "root_cause": "what causes it",
        "recommendation": "what to do about it",
        "status": "`open` if absent; the status of a `resolution` takes precedence",
        "resolution": "how it was resolved: `status`, and the fields that `smp resolve` sets: `resolved_at`, `resolved_by`, `action_taken`, `verification`, `next_steps`",
    },
    "preference": {
        "category": "its category",
        "key": "what it is about; a new preference with the same category and key supersedes the previous one",
        "topic": "used if `key` is absent",
        "value": "what is preferred, as data",
        "context": "when it applies",
        "status": "`active` if absent",
        "applies_to": "what it applies to",
        "learned_from": "ids of the memories it was learned from",
    },
    "learning": {
        "category": "its category",
        "topic": "what it is about",
        "evidence": "evidence for it",
        "status": "`active` if absent",
        "learned_from": "ids of the memories it was learned from",
        "applies_to": "what it applies to",
    },
    "state": {
        "current_context": "what the agent is working on",
        "working_memory": "what it keeps in mind",
        "session_learnings": "what it learned in this session",
        "memory_refs": "ids of memories it refers to",
    },
    "value": {
        "key": "the parts of its key",
        "again": "how often the key was deleted before; absent if never",
        "redacted": "how many secrets of which kind were taken out",
        "value": "what is kept; if it is a text, that is the main text",
    },
    "artifact": {
        "type": "e.g. `report`, `analysis`, `code`",
        "name": "its file name",
        "media_type": "e.g. `text/markdown`",
        "topic": "what it is about",
        "status": "no default",
    },
}


def fields_of(kind: str) -> dict[str, tuple[str, str]]:
    """Return the type and the meaning of each field that a kind knows, its own first."""
    own = {name: (field_type(kind, name), _OWN[kind][name]) for name in KINDS[kind].fields}
    return own | {name: (field_type(kind, name), _COMMON[name]) for name in COMMON_FIELDS}
