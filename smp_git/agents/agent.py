"""Agent: the door to a session for one agent, which sees and writes what it may."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Literal, Self, Unpack

from smp_git.agents import sight
from smp_git.agents.fence import Quote, quotes
from smp_git.agents.permissions import Permissions
from smp_git.agents.requirements import Given, required
from smp_git.agents.sight import Sight
from smp_git.ask import questions
from smp_git.ask.answer import Answer, Hit
from smp_git.ask.briefing import Wish
from smp_git.ask.context import Context
from smp_git.ask.request import Filters, QueryParts
from smp_git.model.errors import MemoryNotFoundError
from smp_git.model.given import Confidence, GivenFields, Kind, Role, Severity
from smp_git.model.memory import CONTESTED, Memory, Value, agent_name
from smp_git.model.times import When
from smp_git.read.counts import with_access
from smp_git.write.handle import Handle

# What writes, decides together and reads history is loaded by what does.
if TYPE_CHECKING:
    from smp_git.agents.joint import Likeness
    from smp_git.agents.messages import Injection, Recorded, Response
    from smp_git.agents.transaction import AgentTransaction
    from smp_git.agents.workflow import Prepared
    from smp_git.agents.writing import ClientTurn
    from smp_git.ask.links import Related
    from smp_git.read.history import BlamedField, MemoryDiff, Version
    from smp_git.remove.history.journal import Receipt
    from smp_git.remove.restore import Restored


class Agent:
    """A session as one agent sees it, and what it records there in its name.

    Without requirements it sees everything but the states of other agents, and what
    others tagged `private`. With them, only what `read_access` names, and it writes only
    what `write_access` names; anything else is an AccessError. Made by `Session.agent`,
    and closed with the session.

    >>> veritas = session.agent("veritas")
    >>> veritas.record_finding("Backups are missing", severity="high").agent
    'veritas'
    """

    def __init__(
        self,
        handle: Handle,
        shared: Callable[[], Handle | None],
        name: str,
        requirements: Given | None = None,
    ) -> None:
        self._name = agent_name(handle.actor(name))
        self._required = required(requirements, self._name)
        self._whole = handle
        self._sight = Sight(handle, shared, Permissions(self._name, self._required))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Agent({self._name!r}, {self._whole.name!r})"

    def close(self) -> None:
        """Let go of what was opened to answer questions; the session stays open."""
        self._sight.close()

    @property
    def name(self) -> str:
        """The name under which the agent writes."""
        return self._name

    # Reading

    def get(self, memory_id: str, *, at: When | None = None) -> Memory:
        """Return a memory by its id or a unique abbreviation (`DEC-42`)."""
        handle = self._sight.handle
        found = handle.read(at, lambda snapshot: snapshot.get(snapshot.find(memory_id)))
        found = with_access(found, handle.accesses.of(found.id))
        if at is None:
            handle.accesses.note([found.id], handle.clock())
        return found

    def memories(self, kind: Kind | None = None, *, at: When | None = None) -> tuple[Memory, ...]:
        """Return the memories of a kind, or all, sorted by kind and number."""
        return self._sight.handle.read(at, lambda snapshot: tuple(snapshot.memories(kind)))

    @property
    def state(self) -> Mapping[str, Value]:
        """The agent's own state; empty if it has none."""
        try:
            fields = self.get(f"state-{self._name}").fields
        except MemoryNotFoundError:
            return MappingProxyType({})
        return MappingProxyType({k: v for k, v in fields.items() if k != CONTESTED})

    def get_conversation_context(self, turns: int = 20) -> tuple[Memory, ...]:
        """Return the last turns of the conversation, oldest first."""
        newest = self.query(kinds=["turn"], sort=["created_at_desc"], limit=turns)
        return tuple(hit.memory for hit in reversed(newest))

    def get_relevant_decisions(
        self, topic: str | None = None, *, limit: int = 10, include_superseded: bool = False
    ) -> Answer:
        """Return decisions about a topic, or all, best first."""
        return self.query(
            topic, kinds=["decision"], limit=limit, include_superseded=include_superseded
        )

    def get_relevant_findings(
        self, topic: str | None = None, *, limit: int = 10, include_resolved: bool = False
    ) -> Answer:
        """Return findings about a topic, or all, best first; by default those not resolved."""
        where = [] if include_resolved else sight.open_only("finding")
        return self.query(topic, kinds=["finding"], limit=limit, where=where)

    def get_user_preferences(self, topic: str | None = None) -> tuple[Memory, ...]:
        """Return the preferences that hold, those of this session before those of all sessions."""
        return sight.preferences(self._sight, topic)

    def query(
        self,
        text: str | None = None,
        *,
        at: When | None = None,
        now: datetime | None = None,
        spec: Mapping[str, object] | None = None,
        **parts: Unpack[QueryParts],
    ) -> Answer:
        """Search what the agent may see, as `Session.query` does."""
        return questions.query(self._sight.desk, text, at, now, spec, parts)

    def find_similar(
        self,
        text_or_id: str,
        *,
        limit: int = 10,
        at: When | None = None,
        now: datetime | None = None,
        **filters: Unpack[Filters],
    ) -> Answer:
        """Return the memories most similar to a memory or a text."""
        return questions.similar(self._sight.desk, text_or_id, limit, at, now, filters)

    def related(
        self,
        memory_id: str,
        *,
        depth: int = 2,
        at: When | None = None,
        now: datetime | None = None,
        **filters: Unpack[Filters],
    ) -> tuple[Related, ...]:
        """Return the memories linked to this one, as far as the way leads over what it sees."""
        return questions.related(self._sight.desk, memory_id, depth, at, now, filters)

    def context(
        self,
        prompt: str | None = None,
        *,
        topic: str | None = None,
        turns: int = 20,
        budget: int = 4000,
        at: When | None = None,
        now: datetime | None = None,
    ) -> Context:
        """Return what the agent needs to know to continue, within a budget of tokens."""
        wanted = Wish(self._name, prompt, topic, turns, budget)
        return questions.context(self._sight.desk, self._sight.shared_desk, wanted, at, now)

    def answers(self, prompt: str, *, budget: int = 4000) -> Context:
        """Return what answers a prompt, within a budget of tokens, and nothing else."""
        wanted = Wish(self._name, prompt, None, 0, budget, is_brief=True)
        return questions.context(self._sight.desk, self._sight.shared_desk, wanted, None, None)

    def watch(
        self,
        text: str | None = None,
        *,
        after: str | None = None,
        stop: Callable[[], bool] = lambda: False,
        **parts: Unpack[QueryParts],
    ) -> Iterator[Hit]:
        """Yield matching memories as anybody writes them, until `stop` returns true."""
        return questions.watch(self._sight.desk, text, after, stop, parts)

    def history(self, memory_id: str) -> tuple[Version, ...]:
        """Return the commits that changed a memory, newest first."""
        return sight.versions(self._sight, memory_id)

    def diff(self, old: str = "HEAD~1", new: str = "HEAD") -> tuple[MemoryDiff, ...]:
        """Return how memories differ between two revisions, as far as it sees both."""
        return sight.differences(self._sight, old, new)

    def blame(self, memory_id: str) -> tuple[BlamedField, ...]:
        """Return, for each field of a memory, who set it and when."""
        from smp_git.read import history

        return self._sight.handle.read(None, lambda now: history.blame(now, now.find(memory_id)))

    # Recording

    def record_turn(
        self,
        content: str,
        *,
        role: Role | None = None,
        speaker: str | None = None,
        topic: str | None = None,
        conversation_id: str | None = None,
        tags: Iterable[str] = (),
        **fields: object,
    ) -> Memory:
        """Record what was said."""
        said = {
            "role": role,
            "speaker": speaker,
            "topic": topic,
            "conversation_id": conversation_id,
        }
        return self._add("turn", content, tags, (), {**said, **fields})

    def record_turns(self, turns: Sequence[ClientTurn]) -> tuple[Memory, ...]:
        """Record turns that a client keeps under keys of its own, in one commit, each once."""
        from smp_git.agents import writing

        return writing.add_turns(self._sight, turns)

    def marks_of(self, turns: Sequence[ClientTurn]) -> tuple[str, ...]:
        """Return by which marks those of some turns are told that are recorded already."""
        from smp_git.agents import writing

        return writing.marks_of(self._sight, turns)

    def record_decision(
        self,
        decision: str,
        *,
        rationale: str | None = None,
        alternatives: Sequence[object] | None = None,
        agreed_by: Sequence[str] | None = None,
        agents_involved: Sequence[str] | None = None,
        impact: str | None = None,
        confidence: Confidence | None = None,
        reversible: bool | None = None,
        status: str | None = None,
        turn_ref: str | int | None = None,
        tags: Iterable[str] = (),
        links: Iterable[object] = (),
        skip_duplicates: bool = False,
        **fields: object,
    ) -> Memory:
        """Record a decision, made by this agent."""
        said = {
            "rationale": rationale,
            "made_by": self._name,
            "alternatives": alternatives,
            "agreed_by": agreed_by,
            "agents_involved": agents_involved,
            "impact": impact,
            "confidence": confidence,
            "reversible": reversible,
            "status": status,
            "turn_ref": turn_ref,
        }
        given = {**said, **fields}
        return self._add("decision", decision, tags, links, given, skip_duplicates)

    def record_finding(
        self,
        finding: str,
        *,
        severity: Severity | None = None,
        category: str | None = None,
        location: object = None,
        evidence: object = None,
        impact: str | None = None,
        root_cause: str | None = None,
        recommendation: str | None = None,
        confidence: Confidence | None = None,
        turn_ref: str | int | None = None,
        tags: Iterable[str] = (),
        links: Iterable[object] = (),
        skip_duplicates: bool = False,
        **fields: object,
    ) -> Memory:
        """Record a finding, discovered by this agent."""
        said = {
            "severity": severity,
            "category": category,
            "discovered_by": self._name,
            "location": location,
            "evidence": evidence,
            "impact": impact,
            "root_cause": root_cause,
            "recommendation": recommendation,
            "confidence": confidence,
            "turn_ref": turn_ref,
        }
        return self._add("finding", finding, tags, links, {**said, **fields}, skip_duplicates)

    def record_preference(
        self,
        preference: str,
        *,
        category: str | None = None,
        key: str | None = None,
        value: object = None,
        context: str | None = None,
        confidence: Confidence | None = None,
        applies_to: Mapping[str, object] | None = None,
        learned_from: Sequence[str] | None = None,
        tags: Iterable[str] = (),
        links: Iterable[object] = (),
        skip_duplicates: bool = False,
        **fields: object,
    ) -> Memory:
        """Record a preference of the user; one of the same category and key is superseded."""
        said = {
            "category": category,
            "key": key,
            "value": value,
            "context": context,
            "confidence": confidence,
            "applies_to": applies_to,
            "learned_from": learned_from,
        }
        given = {**said, **fields}
        return self._add("preference", preference, tags, links, given, skip_duplicates)

    def record_learning(
        self,
        learning: str,
        *,
        category: str | None = None,
        topic: str | None = None,
        evidence: object = None,
        confidence: Confidence | None = None,
        applies_to: Mapping[str, object] | None = None,
        learned_from: Sequence[str] | None = None,
        tags: Iterable[str] = (),
        links: Iterable[object] = (),
        skip_duplicates: bool = False,
        **fields: object,
    ) -> Memory:
        """Record what was learned."""
        said = {
            "category": category,
            "topic": topic,
            "evidence": evidence,
            "confidence": confidence,
            "applies_to": applies_to,
            "learned_from": learned_from,
        }
        return self._add("learning", learning, tags, links, {**said, **fields}, skip_duplicates)

    def record_artifact(
        self,
        content: str,
        *,
        name: str | None = None,
        type: str | None = None,  # noqa: A002 - the field's name
        media_type: str | None = None,
        tags: Iterable[str] = (),
        links: Iterable[object] = (),
        **fields: object,
    ) -> Memory:
        """Record a text that was produced."""
        said = {"name": name, "type": type, "media_type": media_type}
        return self._add("artifact", content, tags, links, {**said, **fields})

    def _add(
        self,
        kind: str,
        text: str,
        tags: Iterable[str],
        links: Iterable[object],
        fields: Mapping[str, object],
        skip_duplicates: bool = False,  # noqa: FBT001, FBT002 - private
    ) -> Memory:
        from smp_git.agents import writing

        what = writing.What(kind, text, tuple(tags), tuple(links), fields)
        return writing.add(self._sight, what, skip_duplicates=skip_duplicates)

    def edit(
        self,
        memory_id: str,
        *,
        text: str | None = None,
        tags: Iterable[str] | None = None,
        links: Iterable[object] | None = None,
        **fields: Unpack[GivenFields],
    ) -> Memory:
        """Change a memory and return it; a field set to None is removed."""
        from smp_git.agents import writing

        return writing.edit(self._sight, memory_id, text, tags, links, fields)

    def resolve(self, memory_id: str, *, action: str | None = None) -> Memory:
        """Mark a finding or a decision as resolved, by this agent."""
        from smp_git.agents import writing

        return writing.resolve(self._sight, memory_id, action)

    def supersede(
        self,
        memory_id: str,
        text: str,
        *,
        tags: Iterable[str] = (),
        links: Iterable[object] = (),
        **fields: Unpack[GivenFields],
    ) -> Memory:
        """Add a memory that replaces another of the same kind."""
        from smp_git.agents import writing

        return writing.supersede(self._sight, memory_id, text, tags, links, fields)

    def update_agent_state(
        self,
        *,
        current_context: Mapping[str, object] | None = None,
        working_memory: Mapping[str, object] | None = None,
        session_learnings: Sequence[str] | None = None,
        memory_refs: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        **fields: object,
    ) -> Memory:
        """Merge into the agent's state: mappings are merged, other values replaced.

        What is not given stays; a key of a mapping that is None is removed.
        """
        from smp_git.agents import writing

        said = {
            "current_context": current_context,
            "working_memory": working_memory,
            "session_learnings": session_learnings,
            "memory_refs": memory_refs,
        }
        given = {name: value for name, value in said.items() if value is not None}
        return writing.update_state(self._sight, {**given, **fields})

    def replace_agent_state(self, state: Mapping[str, object]) -> Memory:
        """Replace the agent's state."""
        from smp_git.agents import writing

        return writing.replace_state(self._sight, state)

    def transaction(self, *, reason: str | None = None) -> AgentTransaction:
        """Return a context in which many edits become one commit, all or nothing."""
        from smp_git.agents.transaction import AgentTransaction

        return AgentTransaction(self._sight, reason)

    def forget(self, *ids: str, reason: str | None = None, purge: bool = False) -> Receipt:
        """Delete memories from the session and its history; recoverable unless purged."""
        from smp_git.agents import writing

        return writing.forget(self._whole, self._sight, ids, reason=reason, purge=purge)

    def restore(self, *ids: str, reason: str | None = None) -> Restored:
        """Restore deleted memories of kinds that the agent may write wholly."""
        from smp_git.agents import writing

        return writing.restore(self._whole, self._sight, ids, reason=reason)

    # Workflows and conversations of agents

    def prepare(
        self, phase: str | None = None, *, budget: int = 4000, explain: bool = False
    ) -> Prepared:
        """Return what the hints of the workflow, and a phase's uses of memory, find."""
        from smp_git.agents import workflow

        return workflow.prepare(self._sight, phase, budget, explain=explain)

    def inject(self, message: str, *, turns: int = 20, budget: int = 4000) -> Injection:
        """Return what to attach to a message to this agent: the context for it, fenced."""
        from smp_git.agents import messages

        return messages.inject(self._sight, message, turns, budget)

    def quote(self, context: Context) -> list[Quote]:
        """Return what a context holds as quotations with their origins, to be fenced."""
        return quotes(context, self._sight.desk, self._sight.shared_desk)

    def update(
        self, response: str | Response, *, conversation_id: str | None = None
    ) -> tuple[Recorded, ...]:
        """Record what came back, in one commit; plain text becomes a turn, nothing is guessed."""
        from smp_git.agents import messages

        return messages.update(self._sight, response, conversation_id)

    # Joint work

    def join_decision(
        self,
        memory_id: str,
        position: Literal["agree", "disagree", "abstain"],
        *,
        reason: str | None = None,
    ) -> Memory:
        """Add this agent's input to a decision; the inputs of the others are kept."""
        from smp_git.agents import joint

        return joint.join(self._sight, memory_id, position, reason)

    def similar_findings(self, *, least: float = 0.5) -> tuple[Likeness, ...]:
        """Return open findings that may say the same, most alike first; nothing is changed."""
        from smp_git.agents import joint

        return joint.similar_findings(self._sight, least)

    def merge_findings(
        self, ids: Sequence[str], finding: str, *, severity: Severity | None = None
    ) -> Memory:
        """Record one finding in place of several, which stay, superseded and linked to it."""
        from smp_git.agents import joint

        return joint.merge_findings(self._sight, ids, finding, severity)
