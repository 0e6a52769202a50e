"""A transaction: many edits, one commit, all or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Self, Unpack

from smp_git.format.messages import Touch
from smp_git.model.errors import RefusedError, SmpError
from smp_git.model.given import GivenFields, NewKind
from smp_git.model.ids import Id
from smp_git.model.memory import Kind, Memory, MemoryId, agent_name, check_text, kind_named
from smp_git.model.secrets.rules import Cleaned, Report, merged
from smp_git.model.times import When
from smp_git.write import branches, edits
from smp_git.write.handle import Handle
from smp_git.write.stage import Draft, Labels, Stage
from smp_git.write.values import Policy, Secrets, Writing
from smp_git.write.writer import Change


class Transaction:
    """Edits are staged without the lock; on leaving the `with` block they are committed.

    An exception inside it leaves everything as it was. If somebody else changed one of
    the memories meanwhile, ConflictError is raised and nothing is written.

    >>> with session.transaction("ada", reason="review") as tx:
    ...     found = tx.add("finding", "Backups are missing", severity="high")
    ...     linked = tx.link("DEC-0001", "references", found.id)
    >>> session.log(limit=1)[0].agent
    'ada'
    """

    def __init__(self, handle: Handle, agent: str | None, reason: str | None) -> None:
        if reason is not None:
            reason, _ = handle.rules.text(check_text(reason, "reason"))
        self._handle = handle
        self._writer = handle.writer
        self._reason = reason
        self._redacted: list[Report] = []
        # What is reserved and not given, by prefix.
        self._numbers: dict[str, range] = {}
        self._batch = 1
        self._ref = handle.reader.ref
        # What a lens hides from who asks is there all the same for what is written.
        base = handle.writer.reader.snapshot()
        self._stage = Stage(base, agent_name(handle.actor(agent)), handle.clock(), self._number)
        self._open = True
        self.change: Change | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and self._open:
            self.commit()
        self.rollback()

    @property
    def is_active(self) -> bool:
        """Whether edits can still be staged."""
        return self._open

    @property
    def modifications(self) -> tuple[Touch, ...]:
        """Staged changes, in order."""
        return tuple(self._stage.touches.values())

    @property
    def agent(self) -> str:
        """The agent of the commit."""
        return self._stage.agent

    def full_id(self, text: str) -> MemoryId:
        """Return the full id that a text names, as this transaction would leave it."""
        return self._staged().full(text)

    def get(self, memory_id: str) -> Memory:
        """Return a memory as this transaction would leave it."""
        return self._staged().get(memory_id)

    def add(
        self,
        kind: NewKind,
        text: str,
        *,
        agent: str | None = None,
        tags: Iterable[str] = (),
        links: Iterable[object] = (),
        at: When | None = None,
        skip_duplicates: bool = False,
        **fields: Unpack[GivenFields],
    ) -> Memory:
        """Stage a new memory and return it; its id is final."""
        full = self._staged().full
        made = edits.new(
            self._handle, kind, text, agent or self.agent, tags, links, at, fields, full
        )
        return self.put(made, skip_duplicates=skip_duplicates)

    def put(self, made: Draft, *, skip_duplicates: bool = False) -> Memory:
        """Stage a memory that was checked before."""
        self._redacted.append(made.redacted)
        return self._staged().add(made, skip_duplicates=skip_duplicates)

    def reserve(self, counts: Mapping[str, int]) -> Mapping[str, Iterator[MemoryId]]:
        """Return the ids that the next additions of each kind get, in their order."""
        out: dict[str, Iterator[MemoryId]] = {}
        for name, count in counts.items():
            kind, suffix = kind_named(name), self._writer.identity().suffix
            numbers = self._writer.reserve(kind, count)
            self._numbers[kind.prefix] = numbers
            out[name] = iter([Id(kind, number, suffix).text for number in numbers])
        return out

    def edit(
        self,
        memory_id: str,
        *,
        text: str | None = None,
        tags: Iterable[str] | None = None,
        links: Iterable[object] | None = None,
        add_tags: Iterable[str] = (),
        remove_tags: Iterable[str] = (),
        add_links: Iterable[object] = (),
        **fields: Unpack[GivenFields],
    ) -> Memory:
        """Stage a change of a memory, as `Session.edit` makes it."""
        said = self._cleaned(text, fields)
        change = Labels(tags, links, tuple(add_tags), tuple(remove_tags), tuple(add_links))
        done = self._staged().edit(
            memory_id,
            text=said.text,
            labels=edits.cleaned_labels(self._handle.rules, change),
            fields=said.fields,
        )
        return replace(done, redacted=said.redacted)

    def resolve(
        self,
        memory_id: str,
        *,
        action: str | None = None,
        by: str | None = None,
        verification: str | None = None,
        next_steps: str | None = None,
    ) -> Memory:
        """Stage the resolution of a finding or decision."""
        how = edits.Resolution(action, by, verification, next_steps)
        said = self._cleaned(None, how.said)
        return replace(self._staged().resolve(memory_id, said.fields), redacted=said.redacted)

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
        kind = self.get(memory_id).kind
        full = self._staged().full
        made = edits.new(self._handle, kind, text, self.agent, tags, links, None, fields, full)
        self._redacted.append(made.redacted)
        return self._staged().supersede(memory_id, made)

    def pin(self, memory_id: str) -> Memory:
        """Stage that a memory is kept from decay."""
        return self._staged().pin(memory_id, pinned=True)

    def unpin(self, memory_id: str) -> Memory:
        """Stage that a memory may decay again."""
        return self._staged().pin(memory_id, pinned=False)

    def resolve_conflict(
        self,
        memory_id: str,
        field: str | None = None,
        *,
        take: str | None = None,
        value: object = None,
    ) -> Memory:
        """Stage the resolution of what is contested in a memory, or in one field of it."""
        return branches.settling(self._handle, memory_id, field, take, value)(self._staged())

    def link(self, memory_id: str, relation: object, target: str | None = None) -> Memory:
        """Stage a link: by a word and an id, a pair of them, or `"word:id"`."""
        link = edits.one_link(relation, target)
        edits.names(self._handle.rules, None, [link])
        return self._staged().link(memory_id, link)

    def unlink(self, memory_id: str, relation: object, target: str | None = None) -> Memory:
        """Stage that a link goes."""
        return self._staged().unlink(memory_id, edits.one_link(relation, target))

    def set_state(self, agent: str, fields: Mapping[str, object]) -> Memory:
        """Stage the state of an agent."""
        said, name = self._cleaned(None, fields), self._handle.actor(agent)
        return replace(self._staged().set_state(name, said.fields), redacted=said.redacted)

    def update_state(self, agent: str, changes: Mapping[str, object]) -> Memory:
        """Stage the state of an agent with changes merged into it; None removes a key."""
        said, name = self._cleaned(None, changes), self._handle.actor(agent)
        return replace(self._staged().update_state(name, said.fields), redacted=said.redacted)

    def values(self, secrets: Secrets = "refuse") -> Writing:
        """Return what stages values of programs under their keys."""
        replica = self._writer.identity().tag
        return Writing(self._staged(), self._handle.rules, Policy(secrets), lambda: replica)

    def commit(self) -> Change:
        """Write what is staged; raise ConflictError if it was changed meanwhile."""
        stage = self._staged()
        self._open = False
        if self._handle.reader.ref != self._ref:
            raise RefusedError("this transaction began on another branch", hint="begin another one")

        def adopt(fresh: Stage) -> None:
            self._writer.give_back(self._numbers)
            fresh.adopt(stage)

        _, change = self._writer.run(stage.agent, self._handle.guarded(adopt), reason=self._reason)
        self.change = replace(change, redacted=merged(self._redacted))
        return self.change

    def rollback(self) -> None:
        """Forget what is staged."""
        if not self._open:
            return
        self._open = False
        # Nobody waits for that: otherwise they are gaps.
        with suppress(SmpError):
            if any(self._numbers.values()):
                with self._writer.holding("giving ids back", patience_seconds=0):
                    self._writer.give_back(self._numbers)

    def _staged(self) -> Stage:
        if not self._open:
            raise RefusedError("this transaction has ended", hint="begin another one")
        return self._stage

    def _cleaned(self, text: str | None, fields: Mapping[str, object]) -> Cleaned:
        said = self._handle.rules.cleaned(text, fields)
        self._redacted.append(said.redacted)
        return said

    def _number(self, kind: Kind) -> Id:
        numbers = self._numbers.get(kind.prefix)
        if not numbers:
            # Each further block is larger, so that a long batch takes the lock seldom.
            numbers = self._writer.reserve(kind, self._batch)
            self._batch = min(self._batch * 4, 1024)
        self._numbers[kind.prefix] = numbers[1:]
        return Id(kind, numbers[0], self._writer.identity().suffix)
