"""A session as a source of a context: memories that are open, newest, on topic, or answer a prompt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property, partial
from itertools import islice
from typing import Final

from smp_git.ask.answer import Answer, Hit
from smp_git.ask.catalogue import Row, Scope, bits_of, slots_of
from smp_git.ask.context import Entrant
from smp_git.ask.desk import Side
from smp_git.ask.request import Query
from smp_git.model.memory import SEARCHED, SEVERITIES, MemoryId, Value, ids_in

# So many different words, from both ends: what is asked stands before or after what is pasted.
_WORDS: Final = 48
# A text of megabytes is not looked through: both its ends are.
_LONGEST: Final = 16_384
_NAMED: Final = 10
# What has a meaning in a query, and none in a sentence.
_SIGNS = re.compile(r'[\x00-\x20"“”„«»*?]+')
_ID = re.compile(r"\b(?:turn|DEC|FIND|PREF|LEARN|ART)-?[0-9]{1,18}(?:-[a-z][a-z0-9]{3})?\b", re.I)


def question_of(prompt: str) -> str:
    """Return the text that is searched for, of a bounded number of words; perhaps none."""
    readable = prompt.encode("utf-8", "replace").decode()
    words = list(dict.fromkeys(_SIGNS.sub(" ", _ends(readable)).split()))
    if len(words) > _WORDS:
        words = words[: _WORDS // 2] + words[-_WORDS // 2 :]
    return " ".join(words)


def named_ids(prompt: str) -> list[str]:
    """Return what looks like the id of a memory, each once."""
    return list(dict.fromkeys(_ID.findall(_ends(prompt))))[:_NAMED]


def _ends(text: str) -> str:
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]} {text[-half:]}"


_ORDERED: Final = frozenset(("finding", "decision", "preference", "learning"))
_ON_TOPIC: Final = 50
_TOGETHER: Final = 50
_BEST: Final = 3
# States are private to one agent each.
_ANSWERING: Final = frozenset(SEARCHED) - {"state"}
# What is over; any other word of a status may still matter.
_WITHDRAWN: Final = ("revoked", "withdrawn", "superseded", "archived", "inactive")
DONE: Final[Mapping[str, tuple[str, ...]]] = {
    "finding": (
        "resolved", "closed", "done", "fixed", "dismissed", "rejected", "duplicate", "invalid",
        "wontfix", "wont_fix", "wont-fix", "superseded", "archived",
    ),
    "decision": ("resolved", "rejected", "reverted", "cancelled", *_WITHDRAWN),
    "preference": _WITHDRAWN,
    "learning": _WITHDRAWN,
}  # fmt: skip


class Source:
    """One session, at one commit, at one time, under one topic."""

    def __init__(
        self, side: Side, now: datetime, topic: str | None, *, is_strict: bool, session: str = ""
    ) -> None:
        self._side = side
        self.now = now
        self.topic = topic
        self._question = question_of(topic or "")
        self.session = session
        self.catalogue = side.catalogue
        self.snapshot = side.snapshot
        self.project = side.snapshot.metadata.project
        self.catalogue.follow(side.snapshot, SEARCHED)
        # Those of what answers best: what shares one is about the same.
        self.tags: frozenset[str] = frozenset()
        self._asked_topic = topic if is_strict else None
        # A topic that nothing is about says nothing of what matters.
        self.is_strict = is_strict and bool(self.about)

    def beside(self, side: Side, session: str) -> Source:
        """Return another session as a source for the same project and topic."""
        # Who goes first among so few is not worth a search.
        topic = self._asked_topic
        made = Source(side, self.now, topic, is_strict=topic is not None, session=session)
        made.project, made.is_strict, made.tags = self.project, self.is_strict, self.tags
        return made

    # Sets of memories

    def kind(self, name: str) -> int:
        """Return the set of a kind's memories."""
        return self.catalogue.sets.get(("kind", name))

    def open(self, kind: str) -> int:
        """Return the set of a kind's memories that are neither over nor replaced."""
        members = self.kind(kind)
        for status in DONE[kind]:
            members &= ~self.catalogue.sets.get(("status", status))
        return members & ~bits_of(self.catalogue.replaced_slots())

    def of_category(self, names: Iterable[str]) -> int:
        """Return the set of the memories of some categories."""
        members = 0
        for name in names:
            members |= self.catalogue.sets.get(("category", name))
        return members

    @cached_property
    def about(self) -> int:
        """The set of what is most about the topic, of the kinds that a topic puts in order."""
        if not self._question:
            return 0
        # All together where it only decides who goes first: 1,000 scores take 15 ms.
        each = [frozenset((kind,)) for kind in _ORDERED] if self._asked_topic else [_ORDERED]
        members = 0
        for kinds in each:
            members |= self._slots(self._asked(self._question, kinds, _ON_TOPIC))
        return members | self._declared

    @cached_property
    def _declared(self) -> int:
        """The set of learnings that say that they apply to the topic that was asked for."""
        topic = self._asked_topic
        if topic is None:
            return 0
        rows = self.each(self.kind("learning"))
        return bits_of(row.slot for row in rows if _share_a_word(self._scope(row).domains, topic))

    def off_topic(self, rows: Iterable[Row]) -> int:
        """Return the set of those rows that the topic that was asked for leaves out."""
        found = {row.entry.id: row.slot for row in rows if row.kind != "preference"}
        if not self.is_strict or not found:
            return 0
        hits = self._asked(self._question, _ANSWERING, len(found), set(found))
        return bits_of(found.values()) & ~self._slots(hits) & ~self._declared

    def _slots(self, hits: Iterable[Hit]) -> int:
        return self.catalogue.slots(hit.id for hit in hits)

    # In which order

    def each(self, members: int) -> Iterator[Row]:
        """Yield the rows of a set, some read at a time: one by one they take three times as long."""
        slots = slots_of(members)
        while some := list(islice(slots, _TOGETHER)):
            yield from self.catalogue.rows_of(some)

    def by_priority(self, members: int) -> Iterator[Row]:
        """Yield the rows of a set, the highest priority first."""
        if members:
            for ranked in self._side.engine.listed(Query(), members):
                yield ranked.row

    def _akin(self) -> int:
        """Return the set of what shares a tag with what answers best."""
        members = 0
        for tag in self.tags:
            members |= self.catalogue.sets.get(("tag", tag))
        return members

    def by_topic(self, members: int) -> Iterator[Row]:
        """Yield the rows of a set: akin to what answers, about the topic, others; by priority."""
        for first in (self._akin(), self.about, members):
            yield from self.by_priority(members & first)
            members &= ~first

    def by_severity(self, members: int) -> Iterator[Row]:
        """Yield the rows of a set: akin to what answers, others; the most severe first, by topic."""
        for first in (self._akin(), members):
            some = members & first
            members &= ~first
            for severity in SEVERITIES:
                alike = some & self.catalogue.sets.get(("severity", severity))
                yield from self.by_topic(alike)
                some &= ~alike
            yield from self.by_topic(some)

    def newest_turns(self, count: int) -> list[Row]:
        """Return the last turns, the newest first."""
        return self.catalogue.newest("turn", count)

    def found(self, text: str, most: int) -> list[tuple[Row, Hit]]:
        """Return the memories whose words answer a text best, and remember what these are about."""
        found = self._side.engine.by_words(Query(text=text, kinds=_ANSWERING, limit=most))
        self.tags |= {tag for row, _ in found[:_BEST] for tag in row.entry.tags}
        return found

    def _asked(
        self, text: str, kinds: frozenset[str], limit: int, only: set[MemoryId] | None = None
    ) -> Answer:
        query = Query(text=text, kinds=kinds, limit=limit)
        return self._side.desk.answer(self.snapshot, query, self.now, only)

    # One memory

    def is_done(self, row: Row) -> bool:
        """Whether a memory is over, or was replaced."""
        done = row.entry.status in DONE.get(row.kind, ())
        return done or self.catalogue.is_superseded(row)

    def is_excluded(self, row: Row) -> str:
        """Return why a memory does not apply to this project and this topic, or nothing."""
        if row.kind not in ("preference", "learning"):
            return ""
        projects, domains = self._scope(row)
        if projects and _folded(self.project) not in map(_folded, projects):
            return f"applies to {', '.join(projects)}, not to {self.project or 'a session without a project'}"
        topic = self._asked_topic
        if domains and topic and not _share_a_word(domains, topic):
            return f"applies to {', '.join(domains)}, not to {topic}"
        return ""

    def _scope(self, row: Row) -> Scope:
        """Return what a memory says that it applies to."""
        known = self.catalogue.scopes.get(row.entry.blob)
        if known is None:
            known = self.catalogue.scopes[row.entry.blob] = _scope(self._field(row, "applies_to"))
        return known

    def _field(self, row: Row, name: str) -> Value:
        memory = self.snapshot.readable(row.entry.id)
        return memory.fields.get(name) if memory is not None else None

    def refs(self, turn: Row) -> list[str]:
        """Return the memories that a turn names in its field."""
        return ids_in(self._field(turn, "memory_refs"))

    def candidate(
        self,
        row: Row,
        section: str,
        *,
        protected: bool = False,
        follows: str = "",
        notes: tuple[str, ...] = (),
        excerpt: Callable[[], str] = str,
    ) -> Entrant:
        """Return a memory as a candidate for a section."""
        entry = row.entry
        return Entrant(
            id=entry.id,
            section=section,
            title=entry.title,
            size=entry.size,
            load=partial(self.snapshot.listed, entry),
            session=self.session,
            protected=protected,
            follows=follows,
            notes=notes,
            excerpt=excerpt,
        )

    def with_replacement(
        self, row: Row, section: str, *, excerpt: Callable[[], str] = str
    ) -> list[Entrant]:
        """Return a memory; one that was replaced, behind what replaced it in the end."""
        newest, seen = row, {row.entry.id}
        while (by := self._replacement(newest)) and by not in seen and by in self.catalogue.by_id:
            seen.add(by)
            newest = self.catalogue.row(self.catalogue.by_id[by])
        if newest is row:
            notes = ("superseded",) if self.catalogue.is_superseded(row) else ()
            return [self.candidate(row, section, notes=notes, excerpt=excerpt)]
        name = newest.entry.id
        notes = (f"superseded by {name}",)
        old = self.candidate(row, section, follows=name, notes=notes, excerpt=excerpt)
        return [self.candidate(newest, section), old]

    def _replacement(self, row: Row) -> MemoryId | None:
        found = self.catalogue.incoming.get(row.entry.id, ())
        return min((name for name, relation in found if relation == "supersedes"), default=None)


def _scope(said: Value) -> Scope:
    """Return the projects and domains of a field; everything if it does not say."""
    if not isinstance(said, Mapping):
        return Scope((), ())
    return Scope(_names(said.get("projects")), _names(said.get("domains")))


def _names(value: Value) -> tuple[str, ...]:
    names = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    return () if "*" in names else tuple(map(str, names))


def _share_a_word(names: Iterable[str], topic: str) -> bool:
    words = set(_folded(topic).split("-"))
    return any(words & set(_folded(name).split("-")) for name in names)


def _folded(text: str) -> str:
    """Return a name without what writers vary; words of any script remain."""
    return re.sub(r"[\W_]+", "-", text.casefold()).strip("-")
