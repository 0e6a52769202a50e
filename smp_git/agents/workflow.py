"""Preparation of a workflow's phase: its hints and uses of memory answered as queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

from smp_git.agents.fence import Quote, fenced, quote
from smp_git.agents.requirements import Usage
from smp_git.agents.sight import Sight
from smp_git.ask import questions
from smp_git.ask.answer import Answer
from smp_git.ask.context import tokens
from smp_git.ask.request import QueryParts
from smp_git.ask.sources import question_of
from smp_git.model.errors import InvalidQueryError, SmpError

_EACH = 5
_LEAST_BUDGET = 50


class Prepared(NamedTuple):
    """What a workflow asked of memory and what was found, in the order of the workflow.

    >>> session.agent("ada").prepare().answers
    ()
    """

    phase: str | None
    answers: tuple[Prepares, ...]
    text: str

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "phase": self.phase,
            "answers": [each.as_json() for each in self.answers],
            "text": self.text,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepares:
    """One hint or use of memory: the query that it became, and its answer.

    `source` is `hint` or the name of the phase; `problem` says why there is no answer.
    """

    source: str
    asked: Usage
    query: str
    answer: Answer
    problem: str = ""

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "source": self.source,
            "asked": self.asked.query,
            "purpose": self.asked.purpose,
            "query": self.query,
            "memories": [
                {"id": hit.id, "title": hit.title, "why": list(hit.why)} for hit in self.answer
            ],
            "problem": self.problem,
        }


def prepare(sight: Sight, phase: str | None, budget: int, *, explain: bool) -> Prepared:
    """Return what the hints find, and what a phase wants to read, within a budget of tokens."""
    if budget < _LEAST_BUDGET:
        raise InvalidQueryError(
            f"budget must be a whole number of tokens from {_LEAST_BUDGET}, not {budget!r}"
        )
    required = sight.access.required
    chosen = required.phase(phase) if phase is not None else None
    asked = [("hint", usage) for usage in required.hints]
    asked += [(chosen.name, usage) for usage in chosen.usage] if chosen else []
    answers = tuple(
        _answered(sight, source, usage, explain=explain)
        for source, usage in asked
        if usage.type == "read"
    )
    return Prepared(chosen.name if chosen else None, answers, _text(sight, answers, budget))


def _answered(sight: Sight, source: str, usage: Usage, *, explain: bool) -> Prepares:
    """Return the answer to one use of memory: prose is searched for as text."""
    prose = question_of(usage.query) if isinstance(usage.query, str) else None
    spec = usage.query if isinstance(usage.query, Mapping) else None
    parts = cast("QueryParts", {"explain": explain, **({} if spec else {"limit": _EACH})})
    shown = prose if prose is not None else str(dict(spec or {}))
    try:
        found = questions.query(sight.desk, prose, None, None, spec, parts)
    except SmpError as error:
        return Prepares(
            source=source,
            asked=usage,
            query=shown,
            answer=Answer(hits=(), total=0),
            problem=error.message,
        )
    return Prepares(source=source, asked=usage, query=shown, answer=found)


def _text(sight: Sight, answers: tuple[Prepares, ...], budget: int) -> str:
    """Return what was found, fenced, each memory once, as much as fits."""
    session = sight.handle.name
    quotes = list(_quotes(answers))
    while quotes and tokens(fenced(quotes, session)) > budget:
        quotes.pop()
    return fenced(quotes, session)


def _quotes(answers: tuple[Prepares, ...]) -> Iterator[Quote]:
    seen: set[str] = set()
    for each in answers:
        asked = each.asked.purpose or each.query
        for hit in each.answer:
            if hit.id not in seen:
                seen.add(hit.id)
                yield quote(hit.memory)._replace(section=asked)
