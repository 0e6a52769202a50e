"""Two lives of one memory that meet: what is carried over, what is joined, what is masked.

A function of both histories: the same comes out on every replica, whichever side is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, NamedTuple

from smp_git.format import document
from smp_git.model import ids
from smp_git.model.ids import DELETED, PURGED, REDACTED, Edge, Lives, joined_life, parse_id
from smp_git.model.memory import (
    CONTESTED,
    VALUE,
    Link,
    Memory,
    Value,
    contested_in,
    is_same,
    says_same,
)
from smp_git.read.history import stamp
from smp_git.write.merge import memories
from smp_git.write.merge.masking import MASK, Hidden, Words, remade
from smp_git.write.merge.memories import FileVersion, Stamp
from smp_git.write.merge.versions import Said, bound, fields, written

_SETS: Final = ("tags", "links")
_TICK: Final = timedelta(microseconds=1)
_TEXTLESS: Final = ("state", "artifact", VALUE)


class Met(NamedTuple):
    """The result of two lives that meet: the file, its life, what is known of the lives then.

    `masked` are the fields of which words were taken out.
    """

    file: bytes
    life: str
    lives: Lives
    masked: tuple[str, ...] = ()


def is_ended(known: Lives, life: str) -> bool:
    """Whether a life was deleted or purged, rather than overtaken by a redaction."""
    return bool({DELETED, PURGED} & known.ended_by(life))


def met(known: Lives, left: FileVersion, right: FileVersion, said: Said) -> Met | None:
    """Return what two versions of different lives come to, None if the rewrite settles it.

    That is so where one of them is kept as it is, or none does.
    """
    ended = [is_ended(known, side.memory.life) for side in (left, right)]
    if all(ended):
        return None
    for old, new in ((left, right), (right, left)):
        if old.memory.life in known.past(new.memory.life):
            return _in_a_row(known, old, new, said)
    mine, others = left.memory.life, right.memory.life
    if known.missing(mine, others) or known.missing(others, mine):
        return joined(known, left.memory, right.memory, said)
    return _beside(known, left, right, said)


def _in_a_row(known: Lives, old: FileVersion, new: FileVersion, said: Said) -> Met | None:
    """Return what a life and one that came from it come to."""
    if known.missing(old.memory.life, new.memory.life):
        return None if known.is_dead(new.memory.life) else carried(known, old.memory, new, said)
    if known.is_dead(old.memory.life) or known.is_dead(new.memory.life):
        return None
    return _by_field(new.memory.life, old, new, said, known)


def _beside(known: Lives, left: FileVersion, right: FileVersion, said: Said) -> Met:
    """Return two lives joined of which none was redacted: field by field, nothing masked."""
    name, after = _joined_lives(known, left.memory, right.memory)
    return _by_field(name, left, right, said, after)


def _joined_lives(known: Lives, left: Memory, right: Memory) -> tuple[str, Lives]:
    newest = known.newest((left.life, right.life))
    if len(newest) == 1:
        return newest[0], known
    name = joined_life(left.id, newest)
    return name, known.begun(name, Edge(ids.JOIN, newest))


def _by_field(life: str, left: FileVersion, right: FileVersion, said: Said, known: Lives) -> Met:
    def stamps(name: str) -> tuple[Stamp, Stamp]:
        return _stamp(name, left.memory, said, known), _stamp(name, right.memory, said, known)

    made = memories.joined(None, _of_life(left, life), _of_life(right, life), stamps)
    return Met(made.file, life, known)


def _of_life(side: FileVersion, life: str) -> FileVersion:
    memory = replace(side.memory, life=life)
    return side._replace(file=document.edited(side.file, side.memory, memory), memory=memory)


def _stamp(name: str, memory: Memory, said: Said, known: Lives) -> Stamp:
    text = said.since(memory.life, name, fields(memory).get(name), known)
    at, _, replica = text.partition("/")
    return Stamp(datetime.fromisoformat(at) if at else stamp(memory), replica)


# A redaction of a life with which the other side went on


def carried(known: Lives, old: Memory, new: FileVersion, said: Said) -> Met:
    """Return `new` with what `old` said that the redaction between them did not know, masked."""
    after = new.memory
    redactions = known.missing(old.life, after.life)
    horizons = [known.edges[each].horizon for each in redactions]
    past = known.past(old.life)
    heard = said.known_to(horizons, past) | said.inherited(old.life)
    hidden = Hidden(heard, _shown(redactions, after, said))
    side = _Older(known, said, horizons, old)
    out, masked, lost = fields(after), list[str](), list[dict[str, Value]]()
    for name in side.unknown_fields(out):
        value = hidden.value(side.values.get(name))
        masked += [name] if not is_same(value, side.values.get(name)) else []
        present = out.get(name)
        at, newer = side.since(name), said.since(after.life, name, present, known)
        if at <= newer:
            lost.append(_entry(name, value, at))
            continue
        out[name] = value
        found = said.saying((after.life,), name, present)
        if found is not None and found.typed:
            lost.append(_entry(name, present, newer))
    memory = _rebuilt(after, out, max(stamp(old), stamp(after)) + _TICK)
    memory = replace(memory, tags=side.tags(after, hidden), links=side.links(after))
    memory = memories.with_contested(
        memory, [*contested_in(memory), *contested_in(hidden.memory(old)), *lost]
    )
    if says_same(replace(memory, updated_at=after.updated_at), after):
        return Met(new.file, after.life, known)
    return _written(new, memory, known, masked)


def _shown(redactions: Iterable[str], new: Memory, said: Said) -> Words:
    """Return the words that may be shown: those that all first versions of what is kept show."""
    found = [said.shown(each) for each in (*redactions, new.life)]
    shown = [each for each in found if each is not None]
    out = shown[0] if shown else Words()
    for each in shown[1:]:
        out &= each
    return out


class _Older:
    """The older side, seen from redactions that it lacks."""

    def __init__(
        self, known: Lives, said: Said, horizons: list[Mapping[str, str]], memory: Memory
    ) -> None:
        self._known = known
        self._said = said
        self._past = known.past(memory.life)
        self._horizons = horizons
        self._memory = memory
        self.values = fields(memory)

    def since(self, name: str) -> str:
        """Return the stamp of the present value of a field."""
        found = self._said.saying(self._past, name, self.values.get(name))
        return written(found, self._known) if found is not None else ""

    def is_known(self, name: str) -> bool:
        """Whether a redaction may have known the present value of a field."""
        at = self.since(name)
        return any(not each or at <= bound(each, name) for each in self._horizons)

    def unknown_fields(self, others: Mapping[str, Value]) -> list[str]:
        """Return the fields that differ, and that no redaction knew as they are."""
        return [
            name
            for name in sorted({*self.values, *others} - set(_SETS))
            if not is_same(self.values.get(name), others.get(name)) and not self.is_known(name)
        ]

    def tags(self, after: Memory, hidden: Hidden) -> tuple[str, ...]:
        """Return tags with those that were added since, as far as they may be shown."""
        if self.is_known("tags"):
            return after.tags
        return tuple(dict.fromkeys((*after.tags, *hidden.tags(self._memory.tags))))

    def links(self, after: Memory) -> tuple[Link, ...]:
        """Return links with those that were added since."""
        if self.is_known("links"):
            return after.links
        return tuple(dict.fromkeys((*after.links, *self._memory.links)))


def _entry(name: str, value: Value, at: str) -> dict[str, Value]:
    when, _, replica = at.partition("/")
    return {"field": name, "value": value, "at": when.replace(".000000Z", "Z"), "replica": replica}


def _rebuilt(memory: Memory, said: Mapping[str, Value], updated: datetime) -> Memory:
    kind = parse_id(memory.id).kind
    kept: dict[str, Value] = {}
    kept.update((n, v) for n, v in said.items() if v is not None and n not in _SETS)
    content = str(kept.pop(kind.main, ""))
    agent = str(kept.pop("agent", memory.agent))
    if not content.strip() and kind.name not in _TEXTLESS:
        content = MASK
    if CONTESTED in memory.fields:
        kept[CONTESTED] = memory.fields[CONTESTED]
    is_later = updated > memory.created_at
    base = replace(memory, agent=agent, updated_at=updated if is_later else memory.updated_at)
    return remade(base, content, kept)


def _written(side: FileVersion, memory: Memory, known: Lives, masked: Iterable[str]) -> Met:
    """Return the file of a memory, with what lost if it keeps within the limits."""
    file = document.edited(side.file, side.memory, memory)
    if len(file) > document.largest(parse_id(memory.id)):
        file = document.edited(side.file, side.memory, memories.with_contested(memory, []))
    return Met(file, memory.life, known, tuple(sorted(masked)))


# Redactions on either side that the other lacks


def joined(known: Lives, left: Memory, right: Memory, said: Said) -> Met:
    """Return two lives joined of which one was redacted: each masked by what the other shows."""
    name, after = _joined_lives(known, left, right)
    made = [_masked(known, mine, other, said) for mine, other in ((left, right), (right, left))]
    values = [fields(each) for each in made]
    out: dict[str, Value] = {}
    for field in {**values[0], **values[1]}.keys() - set(_SETS):
        rows = [
            (
                said.since(mine.life, field, fields(mine).get(field), known),
                _rank(each.get(field)),
                each.get(field),
            )
            for mine, each in zip((left, right), values, strict=True)
        ]
        out[field] = max(rows, key=lambda row: row[:2])[2]
    base = replace(
        left,
        life=name,
        created_at=min(left.created_at, right.created_at),
        fields=MappingProxyType({}),
        tags=tuple(sorted({*made[0].tags, *made[1].tags})),
        links=tuple(sorted({*left.links, *right.links})),
    )
    memory = _rebuilt(base, dict(sorted(out.items())), max(stamp(left), stamp(right)))
    older = (known.past(left.life) | known.past(right.life)) - {name}
    after |= Lives(dict.fromkeys(older, (REDACTED,)))
    masked = {
        field
        for each, one in zip((left, right), made, strict=True)
        for field in _changed(each, one)
    }
    masked.update(_changed(left, right))
    return Met(document.encode(memory), name, after, tuple(sorted(masked)))


def _rank(value: Value) -> tuple[int, str]:
    """Return what decides between two values of one age: the one with more marks is kept."""
    return repr(value).count(MASK), repr(value)


def _masked(known: Lives, mine: Memory, other: Memory, said: Said) -> Memory:
    """Return a side without the words that the other side's redactions no longer show."""
    if not known.missing(mine.life, other.life):
        return mine
    shown = said.shown(other.life)
    return Hidden(said.inherited(mine.life), shown if shown is not None else Words()).memory(mine)


def _changed(before: Memory, after: Memory) -> list[str]:
    then, now = fields(before), fields(after)
    return [name for name in then if not is_same(then[name], now.get(name))]
