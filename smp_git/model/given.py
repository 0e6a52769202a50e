"""Arguments of callers as a type checker knows them: kinds, and the fields that memories take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, cast

# What can be added; the others are set, or put under keys.
NewKind: TypeAlias = Literal["turn", "decision", "finding", "preference", "learning", "artifact"]
Kind: TypeAlias = Literal[NewKind, "state", "value"]
Severity: TypeAlias = Literal["critical", "high", "important", "medium", "minor", "low", "info"]
Confidence: TypeAlias = (
    Literal["certain", "explicit", "high", "medium", "inferred", "low", "uncertain"] | float
)
Role: TypeAlias = Literal["user", "assistant", "system", "tool"]
_Texts: TypeAlias = str | Sequence[str]
_Refs: TypeAlias = _Texts | Mapping[str, _Texts]


def as_kinds(words: Iterable[str]) -> list[Kind]:
    """Return words as kinds, for those who take them from people; what reads them checks them."""
    return cast("list[Kind]", list(words))


class GivenFields(TypedDict, total=False):
    """Fields of memories. Those of your own are taken too: `**{"ticket": 17}`, of type Any.

    >>> session.add("finding", "Too slow", severity="high", category="search").fields["category"]
    'search'
    """

    # Of all kinds.
    title: str | None
    confidence: Confidence | None
    importance: float | None
    pinned: bool | None
    source: str | None
    turn_ref: str | int | None
    # Of some; their values mean what their kind says.
    agents_involved: _Texts | None
    agreed_by: _Texts | None
    alternatives: Any
    applies_to: Any
    approved_by: _Texts | None
    category: str | None
    context: Any
    conversation_id: str | None
    discovered_by: str | None
    evidence: Any
    impact: str | None
    key: str | None
    learned_from: _Texts | None
    location: Any
    made_by: str | None
    media_type: str | None
    memory_refs: _Refs | None
    name: str | None
    parent: str | None
    processing_time_ms: Any
    rationale: str | None
    recommendation: str | None
    resolution: Mapping[str, Any] | None
    reversible: bool | None
    role: str | None
    root_cause: str | None
    severity: Severity | None
    speaker: str | None
    status: str | None
    supersedes: Any
    tokens: int | None
    topic: str | None
    type: str | None
    value: Any
