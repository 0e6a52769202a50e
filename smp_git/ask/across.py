"""Questions to many sessions, answered as if one held it all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from heapq import merge
from itertools import islice, repeat
from typing import Final, NamedTuple

from smp_git.ask.answer import Answer, Found, Hit
from smp_git.ask.catalogue import Row
from smp_git.ask.desk import Desk, Side
from smp_git.ask.engine import Candidate, Ranked, best_found, end_of, most_by_text
from smp_git.ask.finder import Finder, Sought
from smp_git.ask.request import Query, QueryParts, from_specification, named_parts
from smp_git.ask.sets import bits_of
from smp_git.ask.text import Reason
from smp_git.model.errors import DamagedError, InvalidQueryError

# A session without a write for so long is decaying, and what it says counts for less.
_RESTING: Final = timedelta(days=7)
_RESTING_FACTOR: Final = 0.8


def across(
    desks: Iterable[Desk],
    text: str | None,
    now: datetime,
    spec: Mapping[str, object] | None,
    parts: QueryParts,
) -> Answer:
    """Return what all sessions answer, the best first; ties in the order of the sessions."""
    given = {**named_parts(spec or {}), **named_parts(parts)}
    query = from_specification(given if text is None else {**given, "text": text}, now)
    if query.sort:
        raise InvalidQueryError(
            "a query over all sessions is sorted by relevance",
            hint="leave sort out, or ask one session",
        )
    listed = list(desks)
    try:
        return _answer(listed, query, now)
    except DamagedError:
        # A rewrite came between.
        for desk in listed:
            desk.handle.reader.reopen()
        return _answer(listed, query, now)


class _Voice(NamedTuple):
    """A session that answers: who in it may, and how much it counts."""

    session: str
    side: Side
    members: int
    factor: float


def _answer(desks: Sequence[Desk], query: Query, now: datetime) -> Answer:
    with ExitStack() as stack:
        voices = [_voice(stack, desk, query, now) for desk in desks]
        reason: Callable[[int, str], Reason] | None = None
        if query.text is None:
            members = [voice.members for voice in voices]
            page = _listed(voices, query)
        else:
            answers, reason = _by_text(voices, query, now)
            members = [bits_of(row.slot for row, _ in rows) for rows in answers]
            page = _best(voices, answers, query)
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
            problems=tuple(
                f"{voice.session}: {problem}"
                for voice in voices
                for problem in voice.side.problems(query)
            ),
        )


def _listed(voices: Iterable[_Voice], query: Query) -> list[tuple[_Voice, Ranked]]:
    """Return the page of a query without a text; no more is ranked than is listed."""
    streams = [
        zip(repeat(voice), voice.side.engine.listed(query, voice.members)) for voice in voices
    ]
    return list(islice(merge(*streams, key=_place), query.offset, end_of(query)))


def _place(standing: tuple[_Voice, Ranked]) -> tuple[bool, float]:
    voice, item = standing
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


def _voice(stack: ExitStack, desk: Desk, query: Query, now: datetime) -> _Voice:
    snapshot = desk.handle.reader.snapshot()
    side = stack.enter_context(desk.asking(snapshot, now))
    resting = now - snapshot.commit.time > _RESTING
    members = side.engine.members(query)
    return _Voice(desk.handle.name, side, members, _RESTING_FACTOR if resting else 1.0)


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


def _of(hit: Hit, voice: _Voice) -> Hit:
    if voice.factor == 1:
        return replace(hit, session=voice.session)
    why = (*hit.why, f"session rests x {voice.factor}")
    return replace(hit, session=voice.session, score=hit.score * voice.factor, why=why)


def _counted(voices: Iterable[_Voice], members: Iterable[int], query: Query) -> dict[str, object]:
    counts: dict[str, object] = {}
    for voice, counted in zip(voices, members, strict=True):
        for name, value in voice.side.engine.counted(query, counted).items():
            counts[name] = _added(name, counts.get(name), value)
    return counts


def _added(name: str, known: object, value: object) -> object:
    """Return a count over two sessions; only counts and sums can be joined."""
    if isinstance(value, Mapping):
        before = known if isinstance(known, Mapping) else {}
        names = {*before, *value}
        summed = {key: before.get(key, 0) + value.get(key, 0) for key in names}
        return dict(sorted(summed.items(), key=lambda pair: (-pair[1], pair[0])))
    measure = name.partition(":")[0]
    if measure == "avg":
        raise InvalidQueryError(
            "an average works on one session only", hint="ask for the sum and the count"
        )
    present = [item for item in (known, value) if isinstance(item, (int, float, str))]
    if not present:
        return None
    if measure == "sum":
        return sum(item for item in present if not isinstance(item, str))
    return (min if measure == "min" else max)(present)
