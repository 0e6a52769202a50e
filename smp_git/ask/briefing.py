"""Candidates for a context: the memories that matter to an agent, the most important first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import chain, islice
from typing import Final, NamedTuple

from smp_git.ask.answer import Hit
from smp_git.ask.catalogue import Row
from smp_git.ask.context import Context, Entrant, LeftOut, compose
from smp_git.ask.desk import Desk
from smp_git.ask.sources import Source, named_ids, question_of
from smp_git.model.errors import AccessError, InvalidError, MemoryNotFoundError, SmpError
from smp_git.model.memory import Memory, MemoryId
from smp_git.read.snapshot import Snapshot

# The session whose memories hold in every other one.
_SHARED: Final = "global"
_NEWEST: Final = 3
_ANSWERS: Final = 20
_SHARED_ANSWERS: Final = 5
# How many of a section may find room; more are named in the receipt, the rest is counted.
_MOST: Final = {
    "findings": 50, "decisions": 20, "preferences": 50, "profile": 20, "learnings": 20,
}  # fmt: skip
_CONSIDERED: Final = 200
# A preference without a domain holds whatever the topic is.
_ON_ANY_TOPIC: Final = ("preferences", "profile")
_PROFILE: Final = ("profile", "user_profile", "user-profile")

# Says why a memory is not for this context; nothing if it is.
Unfit = Callable[[Row], str]
# Opens the session of what holds across sessions, if there is one.
Shared = Callable[[], Desk | None]


class Wish(NamedTuple):
    """The arguments of a context."""

    agent: str | None
    prompt: str | None
    topic: str | None
    turns: int
    budget_tokens: int
    # Nothing but what answers the prompt.
    is_brief: bool = False


def brief(desk: Desk, shared: Shared, snapshot: Snapshot, wish: Wish, now: datetime) -> Context:
    """Return the context of an agent; `shared` is the session of what holds across sessions.

    A topic that is asked for leaves out what is not about it, unless nothing is. Without a
    topic and a prompt, what is about the primary topic of the session goes before the rest.
    """
    primary = snapshot.metadata.context.get("primary_topic")
    default = primary if isinstance(primary, str) and primary.strip() else None
    topic = wish.topic or (None if wish.prompt else default)
    out = _Gathered()
    with desk.asking(snapshot, now) as side:
        own = Source(side, now, topic, is_strict=bool(wish.topic))
        _gather_own(out, own, wish)
        _gather_shared(out, shared, own, wish)
        candidates = out.ordered()
        return compose(
            candidates,
            out.receipt(candidates),
            agent=wish.agent,
            topic=topic,
            budget_tokens=wish.budget_tokens,
        )


@dataclass
class _Gathered:
    """Candidates by their place in the order of importance, and what is not one and why."""

    answers: list[Entrant] = field(default_factory=list)
    protected: list[Entrant] = field(default_factory=list)
    sections: dict[str, list[Entrant]] = field(default_factory=lambda: {name: [] for name in _MOST})
    last: list[Entrant] = field(default_factory=list)
    done: list[Entrant] = field(default_factory=list)
    left: list[LeftOut] = field(default_factory=list)

    def ordered(self) -> list[Entrant]:
        """Return the candidates, the most important first, each once."""
        sections = chain.from_iterable(self.sections.values())
        every = [*self.answers, *self.protected, *sections, *self.last, *self.done]
        once: dict[tuple[str, str], Entrant] = {}
        for each in every:
            known = once.setdefault((each.session, each.id), each)
            if each.protected and not known.protected:
                once[each.session, each.id] = replace(known, protected=True)
        return list(once.values())

    def receipt(self, candidates: Iterable[Entrant]) -> list[LeftOut]:
        """Return what is no candidate, each once, and why."""
        seen = {(each.session, each.id) for each in candidates}
        out: list[LeftOut] = []
        for item in self.left:
            key = item.session, item.id
            if not item.id or key not in seen:
                seen.add(key)
                out.append(item)
        return out


def _gather_own(out: _Gathered, own: Source, wish: Wish) -> None:
    """Gather what the session itself has to say."""
    if wish.prompt:
        _add_answers(out, own, wish.prompt, _ANSWERS, own.is_excluded)
    if wish.is_brief:
        return
    pinned = own.catalogue.pinned()
    out.protected = [
        own.candidate(row, "pinned", protected=True) for row in own.by_priority(pinned)
    ]
    turns = own.newest_turns(wish.turns)
    out.protected += [own.candidate(row, "conversation", protected=True) for row in turns[:_NEWEST]]
    findings, decisions = own.open("finding"), own.open("decision")
    _add_section(out, own, "findings", findings & ~pinned, own.by_severity)
    _add_section(out, own, "decisions", decisions & ~pinned, own.by_topic)
    _add_replaced_decisions(out, own)
    _add_scoped(out, own, pinned, own.is_excluded)
    state = own.catalogue.by_id.get(MemoryId(f"state-{wish.agent}"))
    if state is not None:
        out.last.append(own.candidate(own.catalogue.row(state), "state"))
    _add_turns(out, own, turns[_NEWEST:])
    out.last += [own.candidate(row, "referenced") for row in _referenced(own, turns)]


def _gather_shared(out: _Gathered, shared: Shared, own: Source, wish: Wish) -> None:
    """Gather what holds across sessions; if that cannot be read, the receipt says so."""
    try:
        desk = shared()
        if desk is None:
            return
        # Asked once more, from the start, if a rewrite came between.
        found = desk.handle.read(None, lambda snapshot: _of_shared(desk, snapshot, own, wish))
    except SmpError as error:
        out.left.append(LeftOut("", "preferences", f"cannot be read: {error.message}", _SHARED))
        return
    out.answers += found.answers
    out.done += found.done
    out.left += found.left
    for section, entrants in found.sections.items():
        out.sections[section] += entrants


def _of_shared(desk: Desk, snapshot: Snapshot, own: Source, wish: Wish) -> _Gathered:
    out = _Gathered()
    with desk.asking(snapshot, own.now) as side:
        every = own.beside(side, _SHARED)

        def unfit(row: Row) -> str:
            by = _contradiction(own, row)
            return f"{by} of this session says otherwise" if by else every.is_excluded(row)

        if wish.prompt:
            _add_answers(out, every, wish.prompt, _SHARED_ANSWERS, unfit)
        if wish.is_brief:
            return out
        _add_scoped(out, every, 0, unfit)
    return out


def _contradiction(own: Source, shared: Row) -> MemoryId | None:
    """Return the preference of the session that is about the same as a shared one, if it applies."""
    category, key = shared.entry.category, shared.entry.key
    if shared.kind != "preference" or not key:
        return None
    alike = own.each(own.open("preference") & own.catalogue.sets.get(("key", key)))
    found = (row for row in alike if row.entry.category == category and not own.is_excluded(row))
    return next((row.entry.id for row in found), None)


# What answers


def _add_answers(out: _Gathered, source: Source, prompt: str, most: int, unfit: Unfit) -> None:
    """Add what answers a prompt: what it names, then what shares its words; what is over last."""
    asked = question_of(prompt)
    named = [] if source.session else [(row, None) for row in _named(source, named_ids(prompt))]
    found = [*named, *(source.found(asked, most) if asked else ())]
    off_topic = source.off_topic(row for row, _ in found)
    for row, hit in found:
        if reason := _off(source, row, off_topic) or unfit(row):
            out.left.append(LeftOut(row.entry.id, "answers", reason, source.session))
        elif hit is None or not _repeats(hit.memory, prompt):
            excerpt = partial(_excerpt, hit) if hit else str
            if source.is_done(row) and not source.catalogue.is_superseded(row):
                out.done.append(source.candidate(row, "answers", excerpt=excerpt))
            else:
                out.answers += source.with_replacement(row, "answers", excerpt=excerpt)


def _repeats(memory: Memory, prompt: str) -> bool:
    """Whether a turn is the prompt itself, which answers nothing."""
    return memory.kind == "turn" and memory.content.strip() == prompt.strip()


def _excerpt(hit: Hit) -> str:
    return " ".join(hit.snippet.replace("**", "").split())


def _named(source: Source, names: Iterable[str]) -> Iterator[Row]:
    """Yield the memories that some texts name, as far as they are there."""
    for name in names:
        try:
            slot = source.catalogue.by_id.get(source.snapshot.find(name))
        except (AccessError, InvalidError, MemoryNotFoundError):
            continue
        if slot is not None:
            yield source.catalogue.row(slot)


# What is worth knowing


def _add_section(
    out: _Gathered,
    source: Source,
    section: str,
    members: int,
    order: Callable[[int], Iterator[Row]],
    unfit: Unfit = lambda _: "",
) -> None:
    """Add the most important of some memories, those about the topic first."""
    is_strict = source.is_strict and section not in _ON_ANY_TOPIC
    off_topic = members & ~source.about if is_strict else 0
    rows = order(members & ~off_topic)
    kept, looked = 0, 0
    for row in rows:
        if kept == _MOST[section]:
            break
        looked |= 1 << row.slot
        if reason := unfit(row):
            out.left.append(LeftOut(row.entry.id, section, reason, source.session))
        else:
            kept += 1
            out.sections[section].append(source.candidate(row, section))
    beyond = chain(source.each(members & ~off_topic & ~looked), source.each(off_topic))
    named = list(islice(beyond, max(0, _CONSIDERED - looked.bit_count())))
    for row in named:
        reason = _off(source, row, off_topic) or "others of its kind matter more"
        out.left.append(LeftOut(row.entry.id, section, reason, source.session))
    if more := members.bit_count() - looked.bit_count() - len(named):
        out.left.append(LeftOut("", section, f"{more:,} more of its kind", source.session))


def _off(source: Source, row: Row, off_topic: int) -> str:
    return f"not about {source.topic}" if off_topic >> row.slot & 1 else ""


def _add_scoped(out: _Gathered, source: Source, apart: int, unfit: Unfit) -> None:
    """Add preferences, the user's profile and learnings, as far as they apply here."""
    preferences, learnings = source.open("preference"), source.open("learning")
    profile = source.of_category(_PROFILE) & (preferences | learnings) & ~apart
    parts = {
        "preferences": preferences & ~apart & ~profile,
        "profile": profile,
        "learnings": learnings & ~apart & ~profile,
    }
    for section, members in parts.items():
        _add_section(out, source, section, members, source.by_topic, unfit)


def _add_replaced_decisions(out: _Gathered, own: Source) -> None:
    """Add the replaced decisions about a topic that was asked for, behind what replaced them."""
    if own.is_strict:
        members = own.kind("decision") & own.about
        for row in own.each(members):
            if own.catalogue.is_superseded(row):
                out.sections["decisions"] += own.with_replacement(row, "decisions")


def _add_turns(out: _Gathered, own: Source, turns: Sequence[Row]) -> None:
    off_topic = own.off_topic(turns)
    for row in turns:
        if reason := _off(own, row, off_topic):
            out.left.append(LeftOut(row.entry.id, "conversation", reason))
        else:
            out.last.append(own.candidate(row, "conversation"))


def _referenced(own: Source, turns: Iterable[Row]) -> list[Row]:
    """Return the memories that turns refer to, each once, in the order of the turns."""
    names: dict[str, None] = {}
    for turn in turns:
        names.update(dict.fromkeys(own.refs(turn)))
        names.update((target, None) for _, target in turn.entry.links)
    return list(_named(own, names))
