"""The engine: which memories answer a query, in which order, and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import heappush, heappushpop
from itertools import islice
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeVar

from smp_git.ask.answer import Allowed, Answer, Explain, Find, Findings, Found, Hit
from smp_git.ask.catalogue import INDEXED, Catalogue, Row, bits_of, place_of, slots_of
from smp_git.ask.conditions import Condition
from smp_git.ask.fields import MERGED, Fields, in_order
from smp_git.ask.links import Links
from smp_git.ask.ranking import Ranking, Scale, membership
from smp_git.ask.request import Order, Query
from smp_git.ask.text.questions import STEERED_AWAY, Steer, Steering, steering
from smp_git.ask.text.ranking import Reason
from smp_git.ask.text.snippets import snippet
from smp_git.ask.text.words import stem, words
from smp_git.format.lines import Entry
from smp_git.model.decay import Decayed, importance
from smp_git.model.ids import is_elsewhere, parse_id
from smp_git.model.memory import RECALL, SEARCHED, MemoryId
from smp_git.read.counts import with_access
from smp_git.read.snapshot import Snapshot

# Words longer than this are in the memory's file only, not in the index.
_INDEXED_LENGTH: Final = 64
# How many of the best by text are ranked by relevance.
_RANKED: Final = 200
_RANKED_WHOLLY: Final = 1_000
_RELATED: Final = 5
# What replaced a memory is worth so much of what that is worth.
_INHERITED: Final = 0.9

_BEST_FIRST: Final = (Order("relevance", descending=True),)
_BY_PRIORITY: Final = ((), _BEST_FIRST, (Order("priority", descending=True),))


def most_by_text(query: Query) -> int:
    """Return how many of the best by text are looked at."""
    wholly = bool(query.sort or query.aggregations or query.limit is None)
    return max(_RANKED_WHOLLY if wholly else _RANKED, end_of(query) or 0)


_T = TypeVar("_T")
_NO_SCORES: Final[Mapping[int, float]] = {}


class Ranked(NamedTuple):
    """A memory, how well it answers, and why."""

    row: Row
    decayed: Decayed
    score: float
    why: tuple[str, ...]


class Engine:
    """Answers queries on one snapshot of a session."""

    def __init__(self, catalogue: Catalogue, snapshot: Snapshot, scale: Scale, find: Find) -> None:
        self._catalogue = catalogue
        self._snapshot = snapshot
        self._scale = scale
        self._ranking = Ranking(catalogue, scale)
        self._find = find
        self._fields = Fields(catalogue, snapshot, self._ranking)

    def answer(self, query: Query, only: Iterable[MemoryId] | None = None) -> Answer:
        """Return the answer to a checked query, among all memories or `only` some."""
        members, is_least = self.members(query, only), False
        explain: Explain | None = None
        if query.text is not None:
            findings = self._findings(query, members)
            is_least = len(findings.found[0]) >= most_by_text(query)
            answers = self.answers(query, members, findings.found[0])
            explain = partial(findings.reason, 0)
            total = len(answers)
            page = self._best(query, answers)
            members = bits_of(row.slot for row, _ in answers)
        else:
            total = members.bit_count()
            page = list(islice(self.listed(query, members), query.offset, end_of(query)))
        hits = [self.hit(item, query, explain) for item in page]
        if query.include_related:
            hits += self.related(hits, query)
        return Answer(
            hits=tuple(hits),
            total=total,
            aggregations=self.counted(query, members),
            is_least=is_least,
        )

    def _findings(self, query: Query, members: int) -> Findings:
        return self._find(query, self.allowed(query, members), self.steering(query).words)

    def by_words(self, query: Query) -> list[tuple[Row, Hit]]:
        """Return what answers the text of a query best, whatever else it is worth; replaced last."""
        members = self.members(query)
        answers = self.answers(query, members, self._findings(query, members).found[0])
        answers.sort(key=lambda each: (self.is_behind(each[0]), -each[1].score, place_of(each[0])))
        return [
            (row, self.hit(self.scored(row, found, query), query))
            for row, found in answers[: query.limit]
        ]

    def counted(self, query: Query, members: int) -> dict[str, object]:
        """Return what is counted of some members."""
        rows = self._catalogue.rows_of(slots_of(members)) if query.aggregations else []
        return {item.name: self._fields.measured(item, rows) for item in query.aggregations}

    def values(self, name: str, members: int) -> list[Any]:
        """Return the values of a field that some members have."""
        return self._fields.values(name, self._catalogue.rows_of(slots_of(members)))

    # Which

    def members(self, query: Query, only: Iterable[MemoryId] | None = None) -> int:
        """Return the set of those that pass every filter."""
        kinds = query.kinds or frozenset(SEARCHED)
        self._catalogue.follow(self._snapshot, kinds)
        sets = self._catalogue.sets
        members = _union(sets.get(("kind", kind)) for kind in kinds)
        if query.text is not None:
            # A question would answer itself.
            members &= ~sets.get(("type", RECALL))
        if only is not None:
            members &= self._catalogue.slots(only)
        if query.references:
            members &= self._referring(query)
        members = self._labelled(query, members)
        if query.since or query.until:
            members &= _union(
                self._catalogue.within(kind, query.since, query.until) for kind in kinds
            )
        for condition in query.where:
            members = self._where(condition, members)
        return self._weighty(query, members)

    def unknown(self, query: Query) -> dict[str, str]:
        """Return the fields of a query that no memory of the session can have, with hints."""
        return self._fields.unknown(query)

    def _referring(self, query: Query) -> int:
        """Return the set of what links lead to from the memories that are named."""
        links = Links.of(self._catalogue, self._snapshot)
        return self._catalogue.slots(
            each.id
            for name in query.references
            for each in links.related(self._snapshot.find(name), query.max_depth)
        )

    def _labelled(self, query: Query, members: int) -> int:
        """Return the members with the tags and of the agents that are asked for."""
        sets = self._catalogue.sets
        for tag in query.tags:
            members &= sets.get(("tag", tag))
        if query.any_tags:
            members &= _union(sets.get(("tag", tag)) for tag in query.any_tags)
        members &= ~_union(sets.get(("tag", tag)) for tag in query.not_tags)
        if query.agents:
            members &= _union(sets.get(("agent", name)) for name in query.agents)
        return members

    def _weighty(self, query: Query, members: int) -> int:
        """Return the members that count enough."""
        if not query.include_superseded:
            members = self._kept(members, lambda row: not self._catalogue.is_superseded(row))
        if query.min_importance is not None:
            least = query.min_importance
            members = self._kept(members, lambda row: importance(self._ranking.facts(row)) >= least)
        if query.min_priority is not None:
            members = self._ranking.at_least(members, query.min_priority)
        return members

    def _where(self, condition: Condition, members: int) -> int:
        name, wanted = condition.field, condition.value
        values = (
            [wanted]
            if condition.operator == "equals"
            else wanted
            if condition.operator == "in"
            else None
        )
        if (
            values is not None
            and (name in INDEXED or name == "kind")
            and all(isinstance(v, str) and len(v) <= _INDEXED_LENGTH for v in values)
        ):
            members &= _union(self._catalogue.sets.get((name, value)) for value in values)
            if name not in MERGED:
                return members
        if name == "pinned" and condition.operator == "equals" and wanted is True:
            return members & self._catalogue.pinned()
        test = condition.test()
        return self._kept(members, lambda row: test(self._fields.value(row, name)))

    def _kept(self, members: int, test: Callable[[Row], bool]) -> int:
        rows = (self._catalogue.row(slot) for slot in slots_of(members))
        return bits_of(row.slot for row in rows if test(row))

    # In which order

    def listed(self, query: Query, members: int) -> Iterator[Ranked]:
        """Yield the members as a query without a text wants them."""
        if query.sort in _BY_PRIORITY:
            for row, decayed in self._ranking.by_priority(members):
                yield self._ranked(row, decayed, query)
            return
        rows = [self._catalogue.row(slot) for slot in slots_of(members)]
        for row in self._sorted(rows, query.sort):
            yield self.unscored(row, query)

    def unscored(self, row: Row, query: Query) -> Ranked:
        """Return a memory that no text was asked of."""
        return self._ranked(row, self._ranking.decayed(row), query)

    def _ranked(self, row: Row, decayed: Decayed, query: Query) -> Ranked:
        return Ranked(row, decayed, decayed.value, self._why(row, decayed, (), query))

    def _sorted(
        self, rows: list[Row], orders: Sequence[Order], scores: Mapping[int, float] = _NO_SCORES
    ) -> list[Row]:
        rows.sort(key=place_of)
        return ordered(rows, orders, lambda row, name: self.sort_value(row, name, scores))

    def sort_value(self, row: Row, name: str, scores: Mapping[int, float] = _NO_SCORES) -> Any:  # noqa: ANN401 - whatever the field holds
        """Return what a field sorts a memory by; None if it has none."""
        if name == "id":
            return parse_id(row.entry.id).sort_key
        if name == "relevance" and scores:
            return scores[row.slot]
        value = self._fields.value(row, "priority" if name == "relevance" else name)
        if name == "severity" and value is not None:
            return value.rank, str(value)
        return None if value is None else in_order(value)

    def allowed(self, query: Query, members: int) -> Allowed | None:
        """Return who is looked for by text, or None if everybody is.

        Those are the members, and what they replaced: it leads to them.
        """
        catalogue = self._catalogue
        wanted = members | self._replaced_by(members)
        if not query.kinds and wanted.bit_count() == len(catalogue.by_id):
            return None
        return Allowed((catalogue.version, wanted), lambda: catalogue.ids(wanted))

    def _replaced_by(self, members: int) -> int:
        rows = self._catalogue.rows_of(self._catalogue.replaced_slots())
        return bits_of(
            row.slot for row in rows if any(members >> newer & 1 for newer in self._newer(row))
        )

    def answers(
        self, query: Query, members: int, found: Iterable[Found]
    ) -> list[tuple[Row, Found]]:
        """Return the members that were found by text, unsorted.

        Memories that lack a field value which the question names, e.g. "critical", are
        scored down. If it has no other words, all that have the value answer.
        """
        steering = self.steering(query)
        by_id = self._catalogue.by_id
        said = {slot: each for each in found if (slot := by_id.get(MemoryId(each.id))) is not None}
        inside = membership(members)
        known = {slot: each for slot, each in said.items() if inside(slot)}
        if steering.is_alone:
            meant = members
            for steer in steering.steers:
                meant &= self._having(steer)
            for row, _ in islice(self._ranking.by_priority(meant), most_by_text(query)):
                known[row.slot] = Found(row.entry.id, 1.0)
        known |= self._replacing({**said, **known}, members)
        for steer in steering.steers:
            meant = self._having(steer)
            for slot, each in known.items():
                if not meant >> slot & 1:
                    known[slot] = each._replace(score=each.score * STEERED_AWAY)
        answers = list(zip(self._catalogue.rows_of(known), known.values(), strict=True))
        if query.min_relevance is not None:
            least = query.min_relevance
            answers = [
                (row, found)
                for row, found in answers
                if self.scored(row, found, query).score >= least
            ]
        return answers

    def _replacing(self, known: Mapping[int, Found], members: int) -> dict[int, Found]:
        """Return what replaced memories that were found: it answers too, whatever its words."""
        out: dict[int, Found] = {}
        # All rows at once: 200 that are read one by one take 5 ms more.
        for row, found in zip(self._catalogue.rows_of(known), known.values(), strict=True):
            for newer in self._newer(row):
                if not members >> newer & 1:
                    continue
                name = self._catalogue.row(newer).entry.id
                before = out.get(newer) or known.get(newer) or Found(name, 0.0)
                if before.score < found.score * _INHERITED:
                    out[newer] = Found(name, found.score * _INHERITED)
        return out

    def _newer(self, row: Row) -> list[int]:
        """Return what replaced a memory, of its own kind: other kinds may be loaded or not."""
        slots = (self._catalogue.by_id.get(name) for name in self._replacements(row))
        return [
            slot
            for slot in slots
            if slot is not None and self._catalogue.row(slot).kind == row.kind
        ]

    def _replacements(self, row: Row) -> list[MemoryId]:
        incoming = self._catalogue.incoming.get(row.entry.id, ())
        return sorted(source for source, relation in incoming if relation == "supersedes")

    def steering(self, query: Query) -> Steering:
        """Return what the words of a query's text say of fields that no filter names."""
        if query.text is None:
            return Steering()
        fixed = [condition.field for condition in query.where]
        fixed += ["kind"] if query.kinds else []
        # Other kinds may be loaded or not, and must make no difference.
        sets = self._catalogue.sets
        present = _union(sets.get(("kind", kind)) for kind in query.kinds or SEARCHED)
        return steering(
            query.text,
            lambda name, value: self._having(Steer(name, value, "")) & present,
            fixed,
        )

    def _having(self, steer: Steer) -> int:
        """Return the set of those whose field has a value."""
        if steer.field == "pinned":
            return self._catalogue.pinned()
        return self._catalogue.sets.get((steer.field, steer.value))

    def is_behind(self, row: Row) -> bool:
        """Whether a memory was replaced."""
        return self._catalogue.is_superseded(row)

    def most(self, row: Row, found: Found) -> float:
        """Return a score that a found memory does not exceed, at a small part of its cost."""
        return self._ranking.most(row, found.score)

    def _best(self, query: Query, answers: list[tuple[Row, Found]]) -> list[Ranked]:
        """Return the page that is asked for."""
        end = end_of(query)
        if query.sort in ((), _BEST_FIRST):
            found = best_found([Candidate(self, 1.0, 0, *answer) for answer in answers], query, end)
            return [item for _, item in found][query.offset : end]
        ranked = [self.scored(row, found, query) for row, found in answers]
        scores = {item.row.slot: item.score for item in ranked}
        place = {
            row.slot: n
            for n, row in enumerate(self._sorted([item.row for item in ranked], query.sort, scores))
        }
        ranked.sort(key=lambda item: place[item.row.slot])
        return ranked[query.offset : end]

    def scored(self, row: Row, found: Found, query: Query) -> Ranked:
        """Return how well a memory answers, given how well its words do."""
        decayed = self._ranking.decayed(row)
        scored = self._ranking.scored(row, decayed, found.score)
        parts = [f"{part.name} {part.score:.3f} x {part.weight:.2f}" for part in scored.parts]
        why = self._why(row, decayed, parts, query)
        return Ranked(row, decayed, min(scored.value, self._bound(found)), why)

    def _bound(self, found: Found) -> float:
        """Return what no score exceeds that is owed to a neighbour's words: the neighbour's."""
        slot = self._catalogue.by_id.get(MemoryId(found.source))
        if slot is None:
            return math.inf
        row = self._catalogue.row(slot)
        return self._ranking.scored(row, self._ranking.decayed(row), found.score).value

    # Why

    def _why(
        self, row: Row, decayed: Decayed, parts: Iterable[str], query: Query
    ) -> tuple[str, ...]:
        out = [*parts]
        if self._catalogue.is_superseded(row):
            by = self._replacements(row)
            out.append(f"superseded by {', '.join(by)}" if by else "superseded")
        if query.explain:
            out += [f"priority.{step.name} {step.value:.4f}: {step.note}" for step in decayed.steps]
        return tuple(out)

    def hit(self, item: Ranked, query: Query, explain: Explain | None = None) -> Hit:
        """Return what a caller sees of a ranked memory; `explain` says why its text answers."""
        entry, snapshot, access = item.row.entry, self._snapshot, self._ranking.access(item.row)
        why = item.why
        if explain is not None:
            reason = explain(entry.id)
            parts = [f"text.{name} {value:.3f}" for name, value in reason.parts.items()]
            said = [*_reasons(reason, entry), *self._steered(item.row, query)]
            why = (*(said or self._inherited(item.row)), *(parts if query.explain else ()), *why)
        return Hit(
            id=entry.id,
            kind=item.row.kind,
            title=entry.title,
            score=item.score,
            priority=item.decayed.value,
            why=why,
            _load=lambda: with_access(snapshot.shown(entry), access),
            _cut=lambda memory, marks: (
                snippet(memory.content or memory.title, query.text, marks=marks)
                if query.text
                else memory.title
            ),
        )

    def _inherited(self, row: Row) -> list[str]:
        """Say whose place a memory takes that says nothing of the question itself."""
        old = [target for relation, target in row.entry.links if relation == "supersedes"]
        return [f"replaces {', '.join(old)}"] if old else []

    def _steered(self, row: Row, query: Query) -> Iterator[str]:
        """Say which fields the question asks for, and what it costs where one is different."""
        for steer in self.steering(query).steers:
            if self._having(steer) >> row.slot & 1:
                yield f"{steer.field} {steer.value}"
            elif query.explain:
                yield f"not {steer.field} {steer.value} ({steer.word}): text x {STEERED_AWAY:.2f}"

    def related(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        """Return the memories that the hits link to, or that link to them, a few each."""
        links = Links.of(self._catalogue, self._snapshot)
        known = {hit.id for hit in hits}
        out: list[Hit] = []
        for hit in hits:
            fresh: dict[MemoryId, list[str]] = {}
            for each in links.edges(hit.id):
                if each.other not in known and not is_elsewhere(each.other):
                    fresh.setdefault(each.other, []).append(each.told(hit.id))
            for name, why in islice(fresh.items(), _RELATED):
                known.add(name)
                other = self._catalogue.row(self._catalogue.by_id[name])
                decayed = self._ranking.decayed(other)
                out.append(self.hit(Ranked(other, decayed, decayed.value, tuple(why)), query))
        return out


def _reasons(reason: Reason, entry: Entry) -> list[str]:
    """Say by which words, tag, speaker, day or meaning a memory was found, or next to which."""
    asked = {stem(word) for word in reason.words}
    tags = [tag for tag in entry.tags if not asked.isdisjoint(map(stem, words(tag)))]
    said = [f"matches {', '.join(reason.words)}"] if reason.words else []
    said += [f"tag {tag}" for tag in tags]
    said += [f"next to {reason.near}"] if reason.near else []
    said += [f"by {entry.speaker or entry.agent}"] if "speaker" in reason.parts else []
    said += [f"of {entry.at[:10]}"] if "dates" in reason.parts else []
    return said or (["like it in meaning"] if "meaning" in reason.parts else [])


class Candidate(NamedTuple):
    """A memory found by text in a session: how much that counts, and the session's number."""

    engine: Engine
    factor: float
    session: int
    row: Row
    found: Found


def best_found(
    candidates: Iterable[Candidate], query: Query, count: int | None
) -> list[tuple[Candidate, Ranked]]:
    """Return the best `count` by relevance, or all; who cannot come that far is not scored.

    What was replaced comes last. Equal ones stand in the order of sessions, the newest first.
    """
    present: list[Candidate] = []
    replaced: list[Candidate] = []
    for each in candidates:
        (replaced if each.engine.is_behind(each.row) else present).append(each)
    out = _best_alike(present, query, count)
    return out + _best_alike(replaced, query, None if count is None else count - len(out))


def _best_alike(
    candidates: list[Candidate], query: Query, count: int | None
) -> list[tuple[Candidate, Ranked]]:
    wanted = len(candidates) if count is None else max(0, count)
    hopeful = sorted(
        (
            (each.factor * each.engine.most(each.row, each.found), n)
            for n, each in enumerate(candidates)
        ),
        reverse=True,
    )
    ranked: list[tuple[Candidate, Ranked]] = []
    scores: list[float] = []
    for most, number in hopeful:
        if wanted < 1 or (len(scores) == wanted and scores[0] > most):
            break
        each = candidates[number]
        item = each.engine.scored(each.row, each.found, query)
        ranked.append((each, item))
        (heappush if len(scores) < wanted else heappushpop)(scores, item.score * each.factor)
    ranked.sort(
        key=lambda pair: (-pair[1].score * pair[0].factor, pair[0].session, place_of(pair[0].row))
    )
    return ranked[:wanted]


def ordered(
    items: list[_T], orders: Sequence[Order], value_of: Callable[[_T, str], Any]
) -> list[_T]:
    """Return items in the order of some keys, those without a value last; ties stay as they are."""
    for order in reversed(orders):
        known = [(value_of(item, order.field), item) for item in items]
        present = [pair for pair in known if pair[0] is not None]
        present.sort(key=itemgetter(0), reverse=order.descending)
        items = [item for _, item in present] + [item for value, item in known if value is None]
    return items


def _union(sets: Iterable[int]) -> int:
    out = 0
    for each in sets:
        out |= each
    return out


def end_of(query: Query) -> int | None:
    """Return the place behind the last hit that is asked for, None if there is none."""
    return None if query.limit is None else query.offset + query.limit
