"""Questions to one session: queries, similarity, overviews, context, bisection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from smp_git.ask.answer import Answer, Hit
from smp_git.ask.desk import Desk, Side
from smp_git.ask.links import Related
from smp_git.ask.request import Filters, Query, QueryParts, named_parts
from smp_git.ask.unknown import refuse_unknown_fields, tag_notes
from smp_git.model.errors import InvalidError, InvalidQueryError, shown
from smp_git.model.memory import KINDS, MemoryId, agent_name
from smp_git.model.times import When
from smp_git.read.snapshot import Snapshot

if TYPE_CHECKING:
    from smp_git.ask import overviews
    from smp_git.ask.bisect import Condition, Culprit
    from smp_git.ask.briefing import Wish
    from smp_git.ask.context import Context


_MOST = 10_000
_LEAST_BUDGET = 50


def query(
    desk: Desk,
    text: str | None,
    at: When | None,
    now: datetime | None,
    spec: Mapping[str, object] | None,
    parts: QueryParts,
) -> Answer:
    """Return the memories that answer, the best first, with why."""
    moment = now or desk.handle.clock()
    asked = desk.asked(text, spec, parts, moment)

    def answer(snapshot: Snapshot) -> Answer:
        if asked.include_archived:
            from smp_git.ask.across import with_archived  # noqa: PLC0415 - few ask for that

            return with_archived(desk, snapshot, asked, moment)
        with desk.asking(snapshot, moment) as side:
            refuse_unknown_fields([side], asked)
            found = desk.answer(snapshot, asked, moment)
            return replace(found, problems=(*found.problems, *tag_notes([side], asked)))

    return desk.handle.read(at, answer)


def similar(
    desk: Desk, text_or_id: str, limit: int, at: When | None, now: datetime | None, filters: Filters
) -> Answer:
    """Return the memories most like a memory, or like a text, among those that match."""
    if not text_or_id.strip():
        raise InvalidQueryError("similar needs a text or an id")
    if not 1 <= limit <= _MOST:
        raise InvalidQueryError(f"limit must be a whole number from 1 to {_MOST}, not {limit!r}")
    moment = now or desk.handle.clock()
    asked = _filters(desk, "similar", filters, moment)

    def answer(snapshot: Snapshot) -> Answer:
        name = _named(snapshot, text_or_id)
        text = desk.text_of(snapshot, name) if name else text_or_id
        with desk.asking(snapshot, moment) as side:
            among = _among(side, asked)
            most = limit if among is None else len(side.catalogue.by_id)
            found = desk.similar(snapshot, text, name, max(1, most), moment)
            hits = [hit for hit in found if among is None or hit.id in among][:limit]
            notes = tag_notes([side], asked)
        problems = (*snapshot.damage(), *notes)
        return replace(found, hits=tuple(hits), total=len(hits), problems=problems)

    return desk.handle.read(at, answer)


def _filters(desk: Desk, what: str, filters: Filters, now: datetime) -> Query:
    """Return the filters of a question that has an order of its own."""
    given = named_parts(filters)
    for name in given.keys() - Filters.__annotations__.keys():
        raise InvalidQueryError(
            f"{what} takes no {name}",
            hint=f"filters are {', '.join(sorted(Filters.__annotations__))}",
        )
    return desk.asked(None, filters, {}, now)


def _among(side: Side, asked: Query) -> set[MemoryId] | None:
    """Return the memories that pass the filters, or None if there are none."""
    side.catalogue.follow(side.snapshot, KINDS)
    refuse_unknown_fields([side], asked)
    members = side.engine.members(asked)
    if members.bit_count() == len(side.catalogue.by_id):
        return None
    return {MemoryId(name) for name in side.catalogue.ids(members)}


def _named(snapshot: Snapshot, text: str) -> MemoryId | None:
    """Return the id that a text is, or None if it is not one."""
    try:
        return snapshot.find(text)
    except InvalidError:
        return None


def related(
    desk: Desk, memory_id: str, depth: int, at: When | None, now: datetime | None, filters: Filters
) -> tuple[Related, ...]:
    """Return the memories that links lead to from one, nearest first, as far as they match.

    Links lead on through memories that do not match.
    """
    moment = now or desk.handle.clock()
    asked = _filters(desk, "related", filters, moment)

    def answer(snapshot: Snapshot) -> tuple[Related, ...]:
        found = desk.related(snapshot, snapshot.find(memory_id), depth)
        with desk.asking(snapshot, moment) as side:
            among = _among(side, asked)
        return tuple(each for each in found if among is None or each.id in among)

    return desk.handle.read(at, answer)


def topics(desk: Desk, limit: int | None, at: When | None) -> tuple[overviews.Topic, ...]:
    """Return the tags of the session with their subtrees, the weightiest first."""
    return desk.handle.read(at, lambda now: desk.topics(now, limit))


def timeline(desk: Desk, by: str, at: When | None) -> tuple[overviews.Bucket, ...]:
    """Return what came about, by hour, day or month, oldest first."""
    return desk.handle.read(at, lambda now: desk.timeline(now, by))


def events(
    desk: Desk, limit: int | None, at: When | None, now: datetime | None, filters: Filters
) -> tuple[overviews.Event, ...]:
    """Return the memories that match as events, oldest first; of many, the newest."""
    from smp_git.ask import overviews  # noqa: PLC0415 - few ask for one

    if limit is not None and limit < 1:
        raise InvalidQueryError(f"limit must be a whole number from 1, not {limit!r}")
    moment = now or desk.handle.clock()
    asked = _filters(desk, "events", filters, moment)

    def answer(snapshot: Snapshot) -> tuple[overviews.Event, ...]:
        with desk.asking(snapshot, moment) as side:
            among = _among(side, asked)
            rows = [row for row in side.catalogue.rows if among is None or row.entry.id in among]
            rows.sort(key=lambda row: row.at)
            return overviews.events(rows[-limit:] if limit else rows, snapshot)

    return desk.handle.read(at, answer)


def agents(desk: Desk, at: When | None) -> tuple[overviews.AgentActivity, ...]:
    """Return the agents that wrote, the busiest first."""
    return desk.handle.read(at, desk.agents)


def summary(desk: Desk, at: When | None, now: datetime | None) -> overviews.Summary:
    """Return the session in a few lines of its own words."""
    moment = now or desk.handle.clock()
    return desk.handle.read(at, lambda then: desk.summary(then, moment))


def explain(desk: Desk, memory_id: str, now: datetime | None) -> tuple[float, tuple[str, ...]]:
    """Return a memory's priority and, line by line, its arithmetic."""
    moment = now or desk.handle.clock()
    return desk.handle.read(None, lambda then: desk.explained(then, then.find(memory_id), moment))


def watch(
    desk: Desk, text: str | None, after: str | None, stop: Callable[[], bool], parts: QueryParts
) -> Iterator[Hit]:
    """Yield memories that match, as they are written by anybody; `stop` ends it."""
    handle = desk.handle
    asked = desk.asked(text, None, {"limit": None, **parts}, handle.clock())
    start = handle.at(after).id if after else handle.reader.snapshot().id
    return desk.watch(asked, after=start, stop=stop)


def context(
    desk: Desk,
    shared: Callable[[], Desk | None],
    wanted: Wish,
    at: When | None,
    now: datetime | None,
) -> Context:
    """Return what an agent is told before it goes on, within a budget of tokens."""
    budget, turns = wanted.budget_tokens, wanted.turns
    if budget < _LEAST_BUDGET:
        raise InvalidQueryError(
            f"budget must be a whole number of tokens from {_LEAST_BUDGET}, not {budget!r}"
        )
    if not 0 <= turns <= _MOST:
        raise InvalidQueryError(f"turns must be a whole number from 0 to {_MOST}, not {turns!r}")
    for what, text in (("a prompt", wanted.prompt), ("a topic", wanted.topic)):
        if text is not None and not isinstance(text, str):
            raise InvalidQueryError(f"{what} must be text, not {shown(text)}")
    from smp_git.ask.briefing import brief  # noqa: PLC0415 - most commands ask for no context

    handle, moment = desk.handle, now or desk.handle.clock()
    name = agent_name(wanted.agent) if wanted.agent else None
    asked = wanted._replace(agent=name)
    made = handle.read(at, lambda snapshot: brief(desk, shared, snapshot, asked, moment))
    if at is None:
        _note_uses(desk, shared, made, moment)
    return made


def _note_uses(desk: Desk, shared: Callable[[], Desk | None], made: Context, at: datetime) -> None:
    """Count what a context holds as read; one of the past is only looked at."""
    desk.handle.accesses.note([piece.id for piece in made.pieces if not piece.session], at)
    used = [piece.id for piece in made.pieces if piece.session]
    if used and (beside := shared()) is not None:
        beside.handle.accesses.note(used, at)


def bisect(desk: Desk, condition: Condition, good: When | None, bad: When) -> Culprit:
    """Return the first write after which `condition`, true before, is no longer true."""
    from smp_git.ask.bisect import View, culprit  # noqa: PLC0415 - few programs search the past

    handle = desk.handle
    moment = handle.clock()

    def answer(_: Snapshot) -> Culprit:
        start = handle.at(good) if good is not None else None
        return culprit(
            start,
            handle.at(bad),
            lambda name: View(handle.reader.at(name), desk, moment),
            condition,
        )

    return handle.read(None, answer)
