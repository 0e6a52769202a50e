"""One memory: its fields and who wrote them, its history, its links, what time does to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from smp_git.ask.links import Related
from smp_git.format import document
from smp_git.keep.forecast import Forecast
from smp_git.model.errors import DamagedError, SmpError
from smp_git.model.memory import CONTESTED, KINDS, Memory, Value
from smp_git.model.wording import Span, word_diff
from smp_git.read.changes import VersionChange
from smp_git.read.history import BlamedField, FieldChange, MemoryDiff, Version
from smp_git.web.charts import Curve, Graph, curve, graph
from smp_git.web.look import Look
from smp_git.web.wording import as_text, named
from smp_git.write.branches import Contested

# What every change changes, or what stands elsewhere on the page.
_NOT_SHOWN: Final = frozenset(("updated_at", "life", "generation", "created_at", "agent"))
_ELSEWHERE: Final = frozenset(("tags", "links", "pinned", CONTESTED))


class FieldRow(NamedTuple):
    """A field, its value in words, and who gave it that value, if that is known."""

    name: str
    text: str
    blame: BlamedField | None


class FieldDelta(NamedTuple):
    """How a field changed, run by run."""

    name: str
    spans: tuple[Span, ...]


class MemoryStep(NamedTuple):
    """One version of a memory: its commit, and what changed."""

    version: Version
    change: str
    deltas: tuple[FieldDelta, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryView:
    """Everything that a page shows of a memory."""

    memory: Memory
    content: BlamedField | None
    rows: tuple[FieldRow, ...]
    steps: tuple[MemoryStep, ...]
    forecast: Forecast | None
    curve: Curve | None
    related: tuple[Related, ...]
    graph: Graph | None
    contested: tuple[Contested, ...]
    problems: tuple[str, ...]

    @property
    def can_be_resolved(self) -> bool:
        """Whether it is a finding or a decision that is not resolved."""
        known = ("finding", "decision")
        return self.memory.kind in known and self.memory.status not in ("resolved", "superseded")

    @property
    def can_be_edited(self) -> bool:
        """Whether its text can be changed: a turn is what was said."""
        return self.memory.kind != "turn" and not self.memory.problem


def memory(look: Look, name: str) -> MemoryView:
    """Return one memory with all that is known of it."""
    session, problems = look.session, list[str]()
    found = readable(look, name)
    steps: tuple[MemoryStep, ...] = ()
    try:
        steps = tuple(step(each) for each in session.changes(found.id, at=look.at))
    except SmpError as error:
        problems.append(error.message)
    blamed = blamed_in(found, steps)
    forecast = None if look.is_past else session.forecast(found.id, now=look.now)
    related = session.related(found.id, depth=2, at=look.at, now=look.now)
    return MemoryView(
        memory=found,
        content=blamed.get(KINDS[found.kind].main),
        rows=tuple(rows(found, blamed)),
        steps=steps,
        forecast=forecast,
        curve=curve(forecast) if forecast else None,
        related=related,
        graph=graph(found.id, found.kind, found.title, related),
        contested=() if look.is_past else contested_of(look, found),
        problems=tuple(problems),
    )


def readable(look: Look, name: str) -> Memory:
    """Return a memory; one whose file cannot be read as its index line has it."""
    try:
        return look.session.get(name, at=look.at)
    except (DamagedError, SmpError) as error:
        found = [each for each in look.session.memories(at=look.at) if each.id == name]
        if found and found[0].problem:
            return found[0]
        raise error from None


def contested_of(look: Look, memory: Memory) -> tuple[Contested, ...]:
    """Return the values that lost in merges of one memory."""
    if CONTESTED not in memory.fields:
        return ()
    return tuple(each for each in look.session.conflicts() if each.id == memory.id)


def rows(memory: Memory, blamed: Mapping[str, BlamedField]) -> Iterator[FieldRow]:
    """Yield the fields of a memory in words, but for those that stand elsewhere."""
    for name, value in memory.fields.items():
        if name not in _ELSEWHERE:
            yield FieldRow(name, as_text(value), blamed.get(name))


def fields_of(memory: Memory) -> Mapping[str, Value]:
    """Return the fields of a memory as its file has them."""
    return document.fields_of(memory)


def blamed_in(memory: Memory, steps: Sequence[MemoryStep]) -> Mapping[str, BlamedField]:
    """Return which commit gave each field its value: the latest that changed it."""
    found: dict[str, BlamedField] = {}
    now = fields_of(memory)
    for each in steps:
        names = now if each.change == "added" else [delta.name for delta in each.deltas]
        for name in names:
            if name in now and name not in found:
                version = each.version
                found[name] = BlamedField(
                    name, now[name], version.commit, version.at, version.agent
                )
    return found


def step(change: VersionChange) -> MemoryStep:
    """Return a version of a memory as a page shows it."""
    return MemoryStep(change.version, change.diff.change, tuple(deltas(change.diff)))


def deltas(diff: MemoryDiff) -> Iterator[FieldDelta]:
    """Yield how the fields of a memory changed, the main text first."""
    main = KINDS[diff.kind].main
    ordered = sorted(diff.fields, key=lambda each: each.field != main)
    for change in shown(ordered):
        say = _losses if change.field == CONTESTED else as_text
        yield FieldDelta(change.field, word_diff(say(change.before), say(change.after)))


def _losses(value: Value) -> str:
    """Return what lost in merges, one line each."""
    items = value if isinstance(value, list) else []
    return "\n".join(
        f"{named(str(each.get('field')))}: {as_text(each.get('value'))} (replica {each.get('replica')})"
        for each in items
        if isinstance(each, dict)
    )


def shown(changes: Iterable[FieldChange]) -> Iterator[FieldChange]:
    """Yield the changes of fields that tell a person something."""
    return (each for each in changes if each.field not in _NOT_SHOWN)


def shown_fields(memory: Memory) -> dict[str, Value]:
    """Return the fields of a memory that tell a person something."""
    return {name: value for name, value in fields_of(memory).items() if name not in _NOT_SHOWN}
