"""One question to many sessions, their answers merged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from smp_git.errors import InvalidQueryError
from smp_git.query.answer import Answer, Hit
from smp_git.query.request import QueryParts
from smp_git.session import Session

# A session without a write for so long is decaying, and what it says counts for less.
_RESTING: Final = timedelta(days=7)
_RESTING_FACTOR: Final = 0.8
_DEFAULT_LIMIT: Final = 20


def across(sessions: Iterable[Session], text: str | None, now: datetime, spec: Mapping[str, object] | None, parts: QueryParts) -> Answer:  # fmt: skip
    """Return what all sessions answer, the best first; ties in the order of the sessions."""
    wanted: dict[str, object] = {**(spec or {}), **parts}
    if wanted.get("sort"):
        raise InvalidQueryError("a query over all sessions is sorted by relevance", hint="leave sort out, or ask one session")  # fmt: skip
    limit, offset = wanted.pop("limit", _DEFAULT_LIMIT), wanted.pop("offset", 0)
    wanted |= {"limit": None if limit is None else _sum(offset, limit), "offset": 0}
    hits: list[Hit] = []
    problems: list[str] = []
    counts: dict[str, object] = {}
    total = 0
    for session in sessions:
        answer = session.query(text, now=now, spec=wanted)
        resting = now - session.written_at > _RESTING
        hits += [_of(hit, session.id, resting=resting) for hit in answer]
        problems += [f"{session.id}: {problem}" for problem in answer.problems]
        total += answer.total
        for name, value in answer.aggregations.items():
            counts[name] = _added(name, counts.get(name), value)
    hits.sort(key=lambda hit: (_is_behind(hit), -hit.score))
    end = None if limit is None else _sum(offset, limit)
    return Answer(hits=tuple(hits[_sum(offset, 0) : end]), total=total, aggregations=counts, problems=tuple(problems))  # fmt: skip


def _sum(left: object, right: object) -> int:
    if isinstance(left, int) and isinstance(right, int) and min(left, right) >= 0:
        return left + right
    raise InvalidQueryError("limit and offset are whole numbers from 0")


def _of(hit: Hit, session: str, *, resting: bool) -> Hit:
    if not resting:
        return replace(hit, session=session)
    why = (*hit.why, f"session rests x {_RESTING_FACTOR}")
    return replace(hit, session=session, score=hit.score * _RESTING_FACTOR, why=why)


def _is_behind(hit: Hit) -> bool:
    return any(line.startswith("superseded") for line in hit.why)


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
            "an average is of one session", hint="ask for the sum and the count"
        )
    present = [item for item in (known, value) if isinstance(item, (int, float, str))]
    if not present:
        return None
    if measure == "sum":
        return sum(item for item in present if not isinstance(item, str))
    return (min if measure == "min" else max)(present)
