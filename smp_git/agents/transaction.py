"""A transaction of one agent: many edits in its name, one commit, checked as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, Unpack

from smp_git.agents.sight import Sight
from smp_git.keep import quota
from smp_git.model.errors import MemoryNotFoundError
from smp_git.model.given import GivenFields, NewKind
from smp_git.model.memory import Memory, MemoryId
from smp_git.model.times import When
from smp_git.write.transaction import Transaction
from smp_git.write.writer import Change


def _free(fields: Mapping[str, object]) -> dict[str, Any]:
    """Return fields as keywords, whatever they are called."""
    return dict(fields)


class AgentTransaction:
    """Edits are staged; on leaving the `with` block they become one commit, or none.

    What the agent may not write is refused when the block ends, and nothing is written.

    >>> with session.agent("veritas").transaction() as tx:
    ...     made = tx.add("finding", "Backups are missing")
    >>> session.get(made.id).agent
    'veritas'
    """

    def __init__(self, sight: Sight, reason: str | None) -> None:
        self._sight = sight
        self._agent = sight.access.agent
        quota.make_room(sight.whole)
        self._inner = Transaction(sight.handle, self._agent, reason)
        self._made: set[MemoryId] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._inner.__exit__(kind, error, trace)

    @property
    def change(self) -> Change | None:
        """What was committed, once it is."""
        return self._inner.change

    def get(self, memory_id: str) -> Memory:
        """Return a memory as this transaction would leave it."""
        return self._inner.get(self._seen(memory_id))

    def add(
        self,
        kind: NewKind,
        text: str,
        *,
        tags: Iterable[str] = (),
        links: Iterable[object] = (),
        at: When | None = None,
        **fields: Unpack[GivenFields],
    ) -> Memory:
        """Stage a new memory and return it; its id is final."""
        made = self._inner.add(
            kind,
            text,
            agent=self._agent,
            tags=tags,
            links=links,
            at=at,
            skip_duplicates=False,
            **fields,
        )
        self._made.add(made.id)
        return made

    def edit(
        self,
        memory_id: str,
        *,
        text: str | None = None,
        tags: Iterable[str] | None = None,
        links: Iterable[object] | None = None,
        **fields: Unpack[GivenFields],
    ) -> Memory:
        """Stage a change of a memory."""
        name = self._seen(memory_id)
        return self._inner.edit(name, text=text, tags=tags, links=links, **_free(fields))

    def resolve(self, memory_id: str, *, action: str | None = None) -> Memory:
        """Stage the resolution of a finding or decision."""
        return self._inner.resolve(self._seen(memory_id), action=action)

    def supersede(
        self,
        memory_id: str,
        text: str,
        *,
        tags: Iterable[str] = (),
        links: Iterable[object] = (),
        **fields: Unpack[GivenFields],
    ) -> Memory:
        """Stage a memory that replaces another."""
        name = self._seen(memory_id)
        made = self._inner.supersede(name, text, tags=tags, links=links, **fields)
        self._made.add(made.id)
        return made

    def link(self, memory_id: str, relation: str, target: str) -> Memory:
        """Stage a link."""
        return self._inner.link(self._seen(memory_id), relation, target)

    def update_agent_state(self, changes: Mapping[str, object]) -> None:
        """Stage changes of the agent's state, merged into it."""
        self._inner.update_state(self._agent, changes)

    def replace_agent_state(self, state: Mapping[str, object]) -> None:
        """Stage the agent's state."""
        self._inner.set_state(self._agent, state)

    def commit(self) -> Change:
        """Write what is staged; raise AccessError if it may not be, ConflictError if it moved on."""
        return self._inner.commit()

    def rollback(self) -> None:
        """Forget what is staged."""
        self._inner.rollback()

    def _seen(self, memory_id: str) -> MemoryId:
        """Return the full id of a memory that was made here, or that the agent may read."""
        if memory_id in self._made:
            return MemoryId(memory_id)
        with suppress(MemoryNotFoundError):
            return self._sight.handle.reader.snapshot().find(memory_id)
        return self._inner.get(memory_id).id
