"""Context for an agent: what it is told before it goes on, within a budget of tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple, Unpack

from smp_git.ask.answer import Answer, Hit
from smp_git.ask.desk import Desk
from smp_git.ask.request import QueryParts
from smp_git.format import dialect
from smp_git.model.errors import InvalidError, MemoryNotFoundError
from smp_git.model.memory import SEVERITIES, Memory, Value
from smp_git.read.snapshot import Reader, Snapshot

# Four characters to a token is what common tokenizers come to on English text.
_CHARACTERS_PER_TOKEN: Final = 4
_NEWEST: Final = 3
# Where memories come from that hold across sessions.
_SHARED: Final = "global"
_SECTIONS: Final = (
    "state",
    "pinned",
    "preferences",
    "findings",
    "decisions",
    "conversation",
    "referenced",
)
_TITLES: Final = {
    "state": "Own state",
    "pinned": "Pinned",
    "preferences": "Preferences",
    "findings": "Open findings",
    "decisions": "Decisions",
    "conversation": "Conversation",
    "referenced": "Referenced",
}
_ORDER: Final = {word: place for place, word in enumerate(SEVERITIES)}


class LeftOut(NamedTuple):
    """A memory that found no room, or stands only by its title, and why.

    Without an id it stands for many; `session` is empty for those of the session asked.
    """

    id: str
    section: str
    reason: str
    session: str = ""


class Piece(NamedTuple):
    """One memory of a context: its section, its text, and how it stands there."""

    id: str
    section: str
    text: str
    shortened: bool
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A context and its receipt: what it holds, what it left out, and why."""

    agent: str | None
    topic: str | None
    budget_tokens: int
    used_tokens: int
    pieces: tuple[Piece, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def text(self) -> str:
        """The context as Markdown, for a prompt."""
        return _markdown(self.pieces)

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "agent": self.agent,
            "topic": self.topic,
            "budget_tokens": self.budget_tokens,
            "used_tokens": self.used_tokens,
            "memories": [piece._asdict() for piece in self.pieces],
            "left_out": [item._asdict() for item in self.left_out],
            "text": self.text,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What a context may be made of, each list with the most important first."""

    state: Memory | None
    pinned: Sequence[Memory]
    preferences: Sequence[Memory]
    findings: Sequence[Memory]
    decisions: Sequence[Memory]
    turns: Sequence[Memory]
    referenced: Sequence[Memory]
    superseded_by: Mapping[str, str]
    beyond: Sequence[LeftOut]
    shared: Sequence[Memory] = ()


class _Candidate(NamedTuple):
    memory: Memory
    section: str
    full: str
    short: str
    session: str = ""
    protected: bool = False


def compose(
    material: Material,
    *,
    agent: str | None,
    topic: str | None,
    budget_tokens: int,
    count: Callable[[str], int] | None = None,
) -> Context:
    """Return the context that fits the budget; the same material gives the same context.

    Room is given in order of importance: what is pinned and the newest turns first, so
    that these are the last to go. What does not fit whole stands by its title, if that
    fits; the receipt names it either way.
    """
    measure = count or tokens
    room = _Room(budget_tokens, measure)
    pieces: list[Piece] = []
    left: list[LeftOut] = []
    for candidate in _by_importance(material):
        name, section, session = candidate.memory.id, candidate.section, candidate.session
        size = measure(candidate.full)
        if room.takes(candidate.full, section):
            pieces.append(Piece(name, section, candidate.full, shortened=False, session=session))
        elif room.takes(candidate.short, section):
            pieces.append(Piece(name, section, candidate.short, shortened=True, session=session))
            left.append(
                LeftOut(name, section, f"only its title: {size} tokens do not fit", session)
            )
        else:
            left.append(
                LeftOut(name, section, f"no room: {size} tokens, {room.rest} left", session)
            )
            if candidate.protected:
                room.close()
    left += material.beyond
    shown = tuple(sorted(pieces, key=lambda piece: _SECTIONS.index(piece.section)))
    ordered = _in_reading_order(shown, material)
    return Context(
        agent=agent,
        topic=topic,
        budget_tokens=budget_tokens,
        used_tokens=measure(_markdown(ordered)),
        pieces=ordered,
        left_out=tuple(left),
    )


def tokens(text: str) -> int:
    """Return about how many tokens a text is."""
    return -(-len(text) // _CHARACTERS_PER_TOKEN)


class _Room:
    """What is left of a budget, headings of sections included."""

    def __init__(self, budget: int, measure: Callable[[str], int]) -> None:
        self.rest = budget
        self._measure = measure
        self._opened: set[str] = set()

    def close(self) -> None:
        """Take nothing more in: what matters more found no room."""
        self.rest = 0

    def takes(self, text: str, section: str) -> bool:
        """Take a text in, if it fits."""
        heading = "" if section in self._opened else f"## {_TITLES[section]}\n\n"
        needed = self._measure(f"{heading}{text}\n\n")
        if needed > self.rest:
            return False
        self.rest -= needed
        self._opened.add(section)
        return True


def _by_importance(material: Material) -> list[_Candidate]:
    turns = list(material.turns)
    out = [_candidate(memory, "pinned", material, protected=True) for memory in material.pinned]
    out += [
        _candidate(memory, "conversation", material, protected=True) for memory in turns[:_NEWEST]
    ]
    if material.state is not None:
        out.append(_candidate(material.state, "state", material))
    out += [_candidate(memory, "preferences", material) for memory in material.preferences]
    out += [
        _candidate(memory, "preferences", material, session=_SHARED) for memory in material.shared
    ]
    findings = sorted(
        material.findings,
        key=lambda memory: _ORDER.get(str(memory.fields.get("severity")), len(_ORDER)),
    )
    out += [_candidate(memory, "findings", material) for memory in findings]
    out += [_candidate(memory, "decisions", material) for memory in material.decisions]
    out += [_candidate(memory, "conversation", material) for memory in turns[_NEWEST:]]
    out += [_candidate(memory, "referenced", material) for memory in material.referenced]
    once = {(item.session, item.memory.id): item for item in reversed(out)}
    return [item for item in out if once[item.session, item.memory.id] is item]


def _candidate(
    memory: Memory, section: str, material: Material, *, session: str = "", protected: bool = False
) -> _Candidate:
    mark = f" ({session})" if session else ""
    full, short = _full(memory, material, mark), f"- **{memory.id}**{mark} {memory.title}"
    return _Candidate(memory, section, full, short, session, protected)


def _full(memory: Memory, material: Material, mark: str) -> str:
    if memory.kind == "turn":
        return f"**{memory.fields.get('speaker') or memory.agent}** ({memory.id}): {memory.content.strip()}"
    if memory.kind == "state":
        return dialect.write(dict(memory.fields)).rstrip()
    lines = [f"- **{memory.id}**{mark} {_indented(memory.content.strip() or memory.title)}"]
    details = [
        f"{name}: {value}"
        for name in (
            "severity",
            "rationale",
            "impact",
            "recommendation",
            "applies_to",
            "confidence",
        )
        if (value := _plain(memory.fields.get(name)))
    ]
    details += [f"{link.relation} {link.target}" for link in memory.links]
    if memory.id in material.superseded_by:
        details.append(f"superseded by {material.superseded_by[memory.id]}")
    return "\n".join([*lines, *(f"  - {_indented(detail)}" for detail in details)])


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def _plain(value: Value) -> str:
    if isinstance(value, (dict, list)):
        return re.sub(r"\s+", " ", dialect.write({"_": value}).removeprefix("_:")).strip()
    return "" if value is None else str(value)


def _in_reading_order(pieces: Iterable[Piece], material: Material) -> tuple[Piece, ...]:
    """Return the pieces section by section, the conversation from old to new."""
    age: dict[str, int] = {memory.id: place for place, memory in enumerate(material.turns)}
    return tuple(
        sorted(
            pieces,
            key=lambda piece: (
                _SECTIONS.index(piece.section),
                -age.get(piece.id, 0) if piece.section == "conversation" else 0,
            ),
        )
    )


def _markdown(pieces: Sequence[Piece]) -> str:
    out: list[str] = []
    section = None
    for piece in pieces:
        if piece.section != section:
            section = piece.section
            out.append(f"## {_TITLES[section]}")
        out.append(piece.text)
    return "\n\n".join(out)


_DECISIONS: Final = 20
_FINDINGS: Final = 50
# So many are named in a receipt; how many more there are is only counted.
_CONSIDERED: Final = 200


def brief(
    desk: Desk,
    snapshot: Snapshot,
    *,
    agent: str | None,
    topic: str | None,
    turns: int,
    budget_tokens: int,
    now: datetime,
    project: str,
    shared: Path | None,
) -> Context:
    """Return the context of an agent; `shared` is the session of what holds across sessions."""
    asking = _Asking(desk, snapshot, now)
    preferences = [*asking.memories(kinds=["preference"], include_superseded=False, limit=None)]
    known = {_key(memory) for memory in preferences if memory.fields.get("key")}
    apart = [memory for memory in _shared(shared) if _key(memory) not in known]
    findings = asking.found(
        kinds=["finding"],
        where=[("status", "equals", "open")],
        sort=["-severity", "-priority"],
        limit=_CONSIDERED,
    )
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
    return next(
        (
            line.removeprefix("superseded by ")
            for line in hit.why
            if line.startswith("superseded by ")
        ),
        "",
    )


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
