"""Joint work of several agents: decisions with each one's input, findings said twice."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from typing import Any, Final, NamedTuple

from smp_git.agents.sight import Sight, open_only
from smp_git.agents.transaction import AgentTransaction
from smp_git.agents.writing import readable
from smp_git.ask import questions
from smp_git.model.errors import InvalidError, RefusedError
from smp_git.model.given import Severity
from smp_git.model.memory import SEVERITIES, Memory, MemoryId, Value
from smp_git.model.times import format_time

_POSITIONS: Final = ("agree", "disagree", "abstain")
_WORDS = re.compile(r"\w{3,}")
# More findings than this are not compared each with each.
_COMPARED: Final = 300


class Likeness(NamedTuple):
    """Two findings that may say the same, and the share of words that they have in common.

    >>> again = session.add("finding", "No second factor, again")
    >>> [pair.one for pair in session.agent("ada").similar_findings()]
    ['FIND-0001']
    """

    one: MemoryId
    other: MemoryId
    score: float


def join(sight: Sight, memory_id: str, position: str, reason: str | None) -> Memory:
    """Add an agent's input to a decision; an earlier one of its own is replaced."""
    if position not in _POSITIONS:
        raise InvalidError(f"no position {position!r}", hint=f"one of {', '.join(_POSITIONS)}")
    name, agent = readable(sight, memory_id), sight.access.agent
    with AgentTransaction(sight, None) as tx:
        old = tx.get(name)
        if old.kind != "decision":
            raise RefusedError(f"{old.id} is a {old.kind}, which is not decided together")
        given: dict[str, Value] = {"agent": agent, "position": position}
        given |= {"reason": reason} if reason else {}
        given["at"] = format_time(sight.handle.clock())
        inputs = [*_others(old.fields.get("inputs"), agent), given]
        agreed = [str(name) for name in _list(old.fields.get("agreed_by")) if name != agent]
        involved = dict.fromkeys([*map(str, _list(old.fields.get("agents_involved"))), agent])
        return tx.edit(
            name,
            **dict[str, Any](inputs=inputs),
            agents_involved=list(involved),
            agreed_by=[*agreed, agent] if position == "agree" else agreed or None,
        )


def _others(inputs: Value, agent: str) -> list[Value]:
    return [
        each
        for each in _list(inputs)
        if not (isinstance(each, dict) and each.get("agent") == agent)
    ]


def _list(value: Value) -> list[Value]:
    return value if isinstance(value, list) else []


def similar_findings(sight: Sight, least: float) -> tuple[Likeness, ...]:
    """Return pairs of open findings by the share of words that they have in common."""
    if not 0 < least <= 1:
        raise InvalidError(f"least must be a share from 0 to 1, not {least!r}")
    found = questions.query(
        sight.desk,
        None,
        None,
        None,
        {"where": open_only("finding"), "include_superseded": False},
        {"kinds": ["finding"], "sort": ["created_at_desc"], "limit": _COMPARED},
    )
    words = {hit.id: frozenset(_WORDS.findall(hit.memory.content.casefold())) for hit in found}
    pairs = (
        Likeness(min(one, other), max(one, other), _shared(words[one], words[other]))
        for one, other in combinations(words, 2)
    )
    likely = [pair for pair in pairs if pair.score >= least]
    return tuple(sorted(likely, key=lambda pair: (-pair.score, pair.one, pair.other)))


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    return round(len(one & other) / len(one | other), 4) if one | other else 0.0


def merge_findings(
    sight: Sight, ids: Sequence[str], finding: str, severity: Severity | None
) -> Memory:
    """Record one finding in place of several: they stay, superseded, and it names them."""
    names = list(dict.fromkeys(readable(sight, name) for name in ids))
    if len(names) < 2:  # noqa: PLR2004 - one is not merged
        raise InvalidError("findings are merged of two or more", hint="name their ids")
    with AgentTransaction(sight, f"merge of {', '.join(names)}") as tx:
        olds = [tx.get(name) for name in names]
        for old in olds:
            if old.kind != "finding":
                raise RefusedError(f"{old.id} is a {old.kind}, not a finding")
        return tx.add(
            "finding",
            finding,
            tags=list(dict.fromkeys(tag for old in olds for tag in old.tags)),
            links=[
                link for name in names for link in (("supersedes", name), ("derived_from", name))
            ],
            severity=severity or _gravest(olds),
            discovered_by=", ".join(dict.fromkeys(_finder(old) for old in olds)),
            **dict[str, Any](derived_from=list(names)),
        )


def _gravest(olds: Sequence[Memory]) -> Severity | None:
    known = {str(old.fields.get("severity")) for old in olds}
    return next((word for word in SEVERITIES if word in known), None)


def _finder(old: Memory) -> str:
    return str(old.fields.get("discovered_by") or old.agent)
