"""Messages between agents: what memory adds to one, and what is recorded of a response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypedDict

from smp_git.agents.fence import fenced_context
from smp_git.agents.sight import Sight
from smp_git.agents.transaction import AgentTransaction
from smp_git.ask import questions
from smp_git.ask.briefing import Wish
from smp_git.ask.context import Context
from smp_git.convert.transcripts import unfenced
from smp_git.model.errors import InvalidError, shown
from smp_git.model.given import NewKind
from smp_git.model.memory import KINDS, Memory

_LISTS: Final[Mapping[str, NewKind]] = {
    "decisions": "decision",
    "findings": "finding",
    "learnings": "learning",
    "preferences": "preference",
    "artifacts": "artifact",
}
_KNOWN: Final = ("text", *_LISTS, "agent_state")

# What was recorded of a response.
Recorded = Memory


class Response(TypedDict, total=False):
    """What an agent answered: its text, and what it says that it decided, found and learned.

    An item of a list is its text, or a mapping of the main text under the name of its
    kind (`{"finding": …, "severity": …}`), fields, tags and links.
    """

    text: str
    decisions: Sequence[str | Mapping[str, object]]
    findings: Sequence[str | Mapping[str, object]]
    learnings: Sequence[str | Mapping[str, object]]
    preferences: Sequence[str | Mapping[str, object]]
    artifacts: Sequence[str | Mapping[str, object]]
    agent_state: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """What to attach to a message: fenced text, the ids in it, and about how many tokens.

    >>> injected = session.agent("ada").inject("How do administrators log in?")
    >>> "DEC-0001" in injected.ids
    True
    """

    text: str
    ids: tuple[str, ...]
    tokens: int
    context: Context


def inject(sight: Sight, message: str, turns: int, budget: int) -> Injection:
    """Return the context for a message: what answers it, open findings, decisions, preferences."""
    agent = sight.access.agent

    def make(room: int) -> Context:
        wish = Wish(agent, unfenced(message), None, turns, room)
        return questions.context(sight.desk, sight.shared_desk, wish, None, None)

    made = fenced_context(make, budget, sight.desk, sight.shared_desk)
    ids = tuple(piece.id for piece in made.context.pieces) if made.text else ()
    return Injection(text=made.text, ids=ids, tokens=made.tokens, context=made.context)


def update(
    sight: Sight, response: str | Response, conversation_id: str | None
) -> tuple[Recorded, ...]:
    """Record a response in one commit, without what memory had quoted into it."""
    said: Mapping[str, Any] = {"text": response} if isinstance(response, str) else response
    if not isinstance(said, Mapping):
        raise InvalidError(f"a response is text or a mapping, not {shown(response)}")
    if unknown := sorted(map(str, said.keys() - set(_KNOWN))):
        raise InvalidError(
            f"a response has no {shown(unknown[0])}", hint=f"it has {', '.join(_KNOWN)}"
        )
    with AgentTransaction(sight, None) as tx:
        made = _staged(tx, said, conversation_id)
        if state := said.get("agent_state"):
            tx.update_agent_state(state)
    return made


def _staged(
    tx: AgentTransaction, said: Mapping[str, Any], conversation_id: str | None
) -> tuple[Memory, ...]:
    """Stage the turn, and what it holds with a reference to it."""
    made: list[Memory] = []
    turn: dict[str, object] = {}
    text = unfenced(said.get("text") or "").strip()
    if text:
        spoken = tx.add("turn", text, role="assistant", conversation_id=conversation_id)
        made.append(spoken)
        turn = {"turn_ref": spoken.id}
    for name, kind in _LISTS.items():
        made += [_add(tx, kind, item, turn) for item in said.get(name) or ()]
    return tuple(made)


def _add(tx: AgentTransaction, kind: NewKind, item: object, turn: Mapping[str, object]) -> Memory:
    main = KINDS[kind].main
    if isinstance(item, str):
        item = {main: item}
    if not isinstance(item, Mapping) or not isinstance(item.get(main), str):
        raise InvalidError(f"{shown(item)} is no {kind}", hint=f"give its text, or {main}: text")
    rest = {str(name): value for name, value in item.items() if name not in (main, "tags", "links")}
    return tx.add(
        kind, item[main], tags=item.get("tags", ()), links=item.get("links", ()), **{**turn, **rest}
    )
