"""Questions to many sessions, answered as if one held it all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import datetime
from functools import partial
from heapq import merge
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any, Final, NamedTuple

from smp_git.ask.answer import Answer, Found, Hit
from smp_git.ask.archives import search
from smp_git.ask.catalogue import Row, bits_of, place_of, slots_of
from smp_git.ask.desk import Desk, Side
from smp_git.ask.engine import Candidate, Ranked, best_found, end_of, most_by_text, ordered
from smp_git.ask.fields import measure
from smp_git.ask.finder import Finder, Sought
from smp_git.ask.request import Order, Query, QueryParts, from_specification, named_parts
from smp_git.ask.text.ranking import Reason
from smp_git.ask.unknown import refuse_unknown_fields, tag_notes
from smp_git.model.errors import (
    DamagedError,
    FormatError,
    MemoryNotFoundError,
    SessionNotFoundError,
)
from smp_git.model.lifecycle import State
from smp_git.read.compactions import archived
from smp_git.read.snapshot import Snapshot

_UNREADABLE: Final = (DamagedError, FormatError, SessionNotFoundError)
_BEST_FIRST: Final = (Order("relevance", descending=True),)


def across(
    desks: Iterable[Desk],
    text: str | None,
    now: datetime,
    spec: Mapping[str, object] | None,
    parts: QueryParts,
    *,
    store: Path,
    left: Sequence[str] = (),
) -> Answer:
    """Return what all sessions answer, the best first unless a sort says otherwise.

    Ties stand in the order of the sessions. Of the sessions archived in the store the
    summaries are searched. What is `left` is named; so is a session that cannot be read.
    """
    given = {**named_parts(spec or {}), **named_parts(parts)}
    query = from_specification(given if text is None else {**given, "text": text}, now)
    listed, said = list(desks), list(left)
    try:
        answer = _answer(_present(listed), query, now)
    except _UNREADABLE:
        # A rewrite came between, or a session is damaged.
        listed = [desk for desk in listed if _answers(desk, query, now, said)]
        answer = _answer(_present(listed), query, now)
    found, problems = search(store, query)
    return replace(answer, archived=found, problems=(*said, *answer.problems, *problems))


def with_archived(desk: Desk, snapshot: Snapshot, query: Query, now: datetime) -> Answer:
    """Return what a session answers together with what compactions archived of it."""
    found = _answer([(desk, snapshot)], query, now)
    prefix = f"{desk.handle.name}: "
    return replace(
        found,
        hits=tuple(replace(hit, session="") for hit in found.hits),
        problems=tuple(each.removeprefix(prefix) for each in found.problems),
    )


def _present(desks: Iterable[Desk]) -> list[tuple[Desk, Snapshot]]:
    return [(desk, desk.handle.reader.snapshot()) for desk in desks]


def _answers(desk: Desk, query: Query, now: datetime, left: list[str]) -> bool:
    """Whether a session can be asked, having been opened anew; if not, name it."""
    try:
        desk.handle.reader.reopen()
        with desk.asking(desk.handle.reader.snapshot(), now) as side:
            side.engine.answer(replace(query, references=(), limit=0))
    except _UNREADABLE as error:
        hint = f"; {error.hint}" if error.hint else ""
        left.append(f"{desk.handle.name}: {error.message}{hint}")
        return False
    return True


class _Voice(NamedTuple):
    """A session that answers: who in it may, and how much it counts."""

    session: str
    side: Side
    members: int
    factor: float


def _sides(
    stack: ExitStack, asked: Iterable[tuple[Desk, Snapshot]], query: Query, now: datetime
) -> Iterator[Side]:
    """Yield who answers: each session, and beside it what was archived of it if that is asked for."""
    for desk, snapshot in asked:
        yield stack.enter_context(desk.asking(snapshot, now))
        beside = archived(desk.handle.reader, snapshot) if query.include_archived else None
        if beside is not None:
            apart = stack.enter_context(closing(Desk(desk.handle, is_kept=False)))
            yield stack.enter_context(apart.asking(beside, now))


def _answer(asked: Sequence[tuple[Desk, Snapshot]], query: Query, now: datetime) -> Answer:
    with ExitStack() as stack:
        sides = list(_sides(stack, asked, query, now))
        refuse_unknown_fields(sides, query)
        voices = [_voice(side, query, now) for side in sides]
        reason: Callable[[int, str], Reason] | None = None
        if query.text is None:
            members = [voice.members for voice in voices]
            page = _listed(voices, query) if _is_best_first(query) else _sorted(voices, query)
        else:
            answers, reason = _by_text(voices, query, now)
            members = [bits_of(row.slot for row, _ in rows) for rows in answers]
            is_best = _is_best_first(query)
            page = (
                _best(voices, answers, query)
                if is_best
                else _sorted_by_text(voices, answers, query)
            )
        numbers = {id(voice): number for number, voice in enumerate(voices)}
        found = [
            (
                voice,
                voice.side.engine.hit(item, query, reason and partial(reason, numbers[id(voice)])),
            )
            for voice, item in page
        ]
        if query.include_related:
            found += _related(voices, found, query)
        return Answer(
            hits=tuple(_of(hit, voice) for voice, hit in found),
            total=sum(map(int.bit_count, members)),
            aggregations=_counted(voices, members, query),
            is_least=query.text is not None
            and sum(map(int.bit_count, members)) >= most_by_text(query),
            problems=(
                *(
                    f"{voice.session}: {problem}"
                    for voice in voices
                    for problem in voice.side.problems(query)
                ),
                *tag_notes(sides, query),
            ),
        )


def _listed(voices: Iterable[_Voice], query: Query) -> list[tuple[_Voice, Ranked]]:
    """Return the page of a query without a text; no more is ranked than is listed."""
    streams = [
        zip(repeat(voice), voice.side.engine.listed(query, voice.members)) for voice in voices
    ]
    return list(islice(merge(*streams, key=_place), query.offset, end_of(query)))


def _place(ranked: tuple[_Voice, Ranked]) -> tuple[bool, float]:
    voice, item = ranked
    return voice.side.engine.is_behind(item.row), -item.score * voice.factor


def _best(
    voices: Sequence[_Voice], answers: Sequence[list[tuple[Row, Found]]], query: Query
) -> list[tuple[_Voice, Ranked]]:
    """Return the page of a query by text."""
    candidates = [
        Candidate(voice.side.engine, voice.factor, number, row, found)
        for number, (voice, rows) in enumerate(zip(voices, answers, strict=True))
        for row, found in rows
    ]
    end = end_of(query)
    ranked = best_found(candidates, query, end)[query.offset : end]
    return [(voices[each.session], item) for each, item in ranked]


def _is_best_first(query: Query) -> bool:
    return query.sort in ((), _BEST_FIRST)


def _sorted(voices: Sequence[_Voice], query: Query) -> list[tuple[_Voice, Ranked]]:
    """Return the page of a query without a text that is sorted by fields."""
    rows = [
        (voice, row)
        for voice in voices
        for row in voice.side.catalogue.rows_of(slots_of(voice.members))
    ]
    rows.sort(key=lambda pair: place_of(pair[1])[:2])

    def value(pair: tuple[_Voice, Row], name: str) -> Any:  # noqa: ANN401 - whatever the field holds
        voice, row = pair
        found = voice.side.engine.sort_value(row, name)
        return _weighed(found, voice.factor) if name == "relevance" else found

    page = ordered(rows, query.sort, value)[query.offset : end_of(query)]
    return [(voice, voice.side.engine.unscored(row, query)) for voice, row in page]


def _weighed(value: tuple[str, float], factor: float) -> tuple[str, float]:
    kind, number = value
    return kind, number * factor


def _sorted_by_text(
    voices: Sequence[_Voice], answers: Sequence[list[tuple[Row, Found]]], query: Query
) -> list[tuple[_Voice, Ranked]]:
    """Return the page of a query by text that is sorted by fields."""
    ranked = [
        (voice, voice.side.engine.scored(row, found, query))
        for voice, rows in zip(voices, answers, strict=True)
        for row, found in rows
    ]
    ranked.sort(key=lambda pair: place_of(pair[1].row)[:2])

    def value(pair: tuple[_Voice, Ranked], name: str) -> Any:  # noqa: ANN401 - whatever the field holds
        voice, item = pair
        if name == "relevance":
            return item.score * voice.factor
        return voice.side.engine.sort_value(item.row, name)

    return ordered(ranked, query.sort, value)[query.offset : end_of(query)]


def _voice(side: Side, query: Query, now: datetime) -> _Voice:
    state = side.desk.handle.state(now)
    factor = side.desk.inactive_factor if state is State.DECAYING else 1.0
    return _Voice(side.desk.handle.name, side, _members(side, query), factor)


def _members(side: Side, query: Query) -> int:
    try:
        return side.engine.members(query)
    except MemoryNotFoundError:
        # What the query refers to is in another session.
        return 0


def _by_text(
    voices: Sequence[_Voice], query: Query, now: datetime
) -> tuple[list[list[tuple[Row, Found]]], Callable[[int, str], Reason]]:
    """Return what is found in each session, and why; a score is relative to the best of all."""
    wanted = [
        Sought(
            voice.side.desk.finder,
            voice.side.snapshot,
            voice.side.engine.allowed(query, voice.members),
        )
        for voice in voices
    ]
    weak = frozenset().union(*(voice.side.engine.steering(query).words for voice in voices))
    findings = Finder.find(wanted, query.text or "", most_by_text(query), now, weak)
    answers = [
        voice.side.engine.answers(query, voice.members, each)
        for voice, each in zip(voices, findings.found, strict=True)
    ]
    return answers, findings.reason


def _related(
    voices: Iterable[_Voice], found: Sequence[tuple[_Voice, Hit]], query: Query
) -> list[tuple[_Voice, Hit]]:
    """Return what the hits of each session are linked with there."""
    out: list[tuple[_Voice, Hit]] = []
    for voice in voices:
        own = [hit for each, hit in found if each is voice]
        out += [(voice, hit) for hit in voice.side.engine.related(own, query) if own]
    return out


def _of(found: Hit, voice: _Voice) -> Hit:
    hit = found
    if not voice.side.desk.is_kept:
        hit = replace(hit, is_archived=True, why=(*hit.why, f"archived: smp bring-back {hit.id}"))
    if voice.factor == 1:
        return replace(hit, session=voice.session)
    why = (*hit.why, f"decaying session x {voice.factor:g}")
    return replace(hit, session=voice.session, score=hit.score * voice.factor, why=why)


def _counted(voices: Sequence[_Voice], members: Sequence[int], query: Query) -> dict[str, object]:
    """Return what is counted and measured of what matches in all sessions together."""
    out: dict[str, object] = {}
    for item in query.aggregations:
        each = zip(voices, members, strict=True)
        if item.measure == "count":
            alone = replace(query, aggregations=(item,))
            counts = [voice.side.engine.counted(alone, some)[item.name] for voice, some in each]
            out[item.name] = _added(counts)
        else:
            values = [voice.side.engine.values(item.field, some) for voice, some in each]
            out[item.name] = measure(item.measure, list(chain.from_iterable(values)))
    return out


def _added(counts: Iterable[object]) -> dict[str, int]:
    added = Counter[str]()
    for each in counts:
        if isinstance(each, Mapping):
            added.update(each)
    return dict(sorted(added.items(), key=lambda pair: (-pair[1], pair[0])))
