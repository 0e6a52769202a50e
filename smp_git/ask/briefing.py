"""What a context is made of: an agent's state, preferences, findings, decisions, turns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, Unpack

from smp_git.ask.answer import Answer, Hit
from smp_git.ask.context import Context, LeftOut, Material, compose
from smp_git.ask.desk import Desk
from smp_git.ask.request import QueryParts
from smp_git.model.errors import InvalidError, MemoryNotFoundError
from smp_git.model.memory import Memory
from smp_git.read.snapshot import Reader, Snapshot

_DECISIONS: Final = 20
_FINDINGS: Final = 50
# So many are named in a receipt; how many more there are is only counted.
_CONSIDERED: Final = 200


def brief(desk: Desk, snapshot: Snapshot, *, agent: str | None, topic: str | None, turns: int, budget_tokens: int, now: datetime, project: str, shared: Path | None) -> Context:  # fmt: skip
    """Return the context of an agent; `shared` is the session of what holds across sessions."""
    asking = _Asking(desk, snapshot, now)
    preferences = [*asking.memories(kinds=["preference"], include_superseded=False, limit=None)]
    known = {_key(memory) for memory in preferences if memory.fields.get("key")}
    apart = [memory for memory in _shared(shared) if _key(memory) not in known]
    findings = asking.found(kinds=["finding"], where=[("status", "equals", "open")], sort=["-severity", "-priority"], limit=_CONSIDERED)  # fmt: skip
    decisions = asking.found(topic, kinds=["decision"], limit=_CONSIDERED)
    if topic and not decisions:
        decisions = asking.found(kinds=["decision"], limit=_CONSIDERED)
    spoken = asking.memories(kinds=["turn"], sort=["-created_at", "-id"], limit=turns)
    material = Material(
        state=_state(snapshot, agent),
        pinned=asking.memories(where=[("pinned", "equals", True)], limit=None),
        preferences=[m for m in preferences if _applies(m, _folded(project), topic)],
        shared=[m for m in apart if _applies(m, _folded(project), topic)],
        findings=[hit.memory for hit in findings[:_FINDINGS]],
        decisions=[hit.memory for hit in decisions[:_DECISIONS]],
        turns=spoken,
        referenced=_referenced(snapshot, spoken),
        beyond=[
            *_beyond(findings, "findings", _FINDINGS),
            *_beyond(decisions, "decisions", _DECISIONS),
        ],
        superseded_by={hit.id: by for hit in decisions if (by := _replacement(hit))},
    )
    return compose(material, agent=agent, topic=topic, budget_tokens=budget_tokens)


class _Asking:
    """Asks one snapshot at one time."""

    def __init__(self, desk: Desk, snapshot: Snapshot, now: datetime) -> None:
        self._desk = desk
        self._snapshot = snapshot
        self._now = now

    def found(self, text: str | None = None, **parts: Unpack[QueryParts]) -> Answer:
        """Return what answers."""
        asked = self._desk.asked(text, None, parts, self._now)
        return self._desk.answer(self._snapshot, asked, self._now)

    def memories(self, **parts: Unpack[QueryParts]) -> list[Memory]:
        """Return the memories that answer."""
        return [hit.memory for hit in self.found(**parts)]


def _beyond(found: Answer, section: str, most: int) -> list[LeftOut]:
    """Return what is not even considered, by id, and as a number from some length on."""
    out = [LeftOut(hit.id, section, "others of its kind matter more") for hit in found[most:]]
    more = found.total - len(found)
    return [*out, LeftOut("", section, f"{more:,} more of its kind")] if more > 0 else out


def _state(snapshot: Snapshot, agent: str | None) -> Memory | None:
    try:
        return snapshot.get(f"state-{agent}") if agent else None
    except MemoryNotFoundError:
        return None


def _key(memory: Memory) -> tuple[object, object]:
    return memory.fields.get("category"), memory.fields.get("key")


def _shared(place: Path | None) -> list[Memory]:
    """Return the preferences that hold across sessions."""
    if place is None or not (place / ".git").is_dir():
        return []
    reader = Reader(place)
    try:
        found = reader.snapshot().memories("preference")
        return [memory for memory in found if memory.status != "superseded"]
    finally:
        reader.close()


def _replacement(hit: Hit) -> str:
    return next((line.removeprefix("superseded by ") for line in hit.why if line.startswith("superseded by ")), "")  # fmt: skip


def _referenced(snapshot: Snapshot, turns: Sequence[Memory]) -> list[Memory]:
    """Return the memories that turns refer to, each once, in the order of the turns."""
    names: dict[str, None] = {}
    for turn in turns:
        refs = turn.fields.get("memory_refs")
        listed = refs if isinstance(refs, list) else []
        names.update((ref, None) for ref in listed if isinstance(ref, str))
        names.update((link.target, None) for link in turn.links)
    out = []
    for name in names:
        try:
            out.append(snapshot.get(snapshot.find(name)))
        except (InvalidError, MemoryNotFoundError):
            continue
    return out


def _applies(preference: Memory, project: str, topic: str | None) -> bool:
    """Whether a preference is meant for this project and this topic."""
    scope = preference.fields.get("applies_to")
    if not isinstance(scope, Mapping):
        return True
    projects, domains = scope.get("projects"), scope.get("domains")
    if isinstance(projects, list) and projects and "*" not in projects:
        named = [_folded(str(name)) for name in projects]
        if project not in named:
            return False
    if topic and isinstance(domains, list) and domains and "*" not in domains:
        words = set(_folded(topic).split("-"))
        return any(words & set(_folded(str(domain)).split("-")) for domain in domains)
    return True


def _folded(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
