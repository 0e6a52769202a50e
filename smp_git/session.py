"""Session: the door to the memories of one repository."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from os import PathLike
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeVar, Unpack, overload

from smp_git.git.references import HEADS
from smp_git.keep import opening
from smp_git.keep.log import Log, logging
from smp_git.model.errors import InvalidError, MemoryNotFoundError, RefusedError, naming
from smp_git.model.ids import is_id, parse_id
from smp_git.model.memory import (
    CONTESTED,
    CommitId,
    Memory,
    MemoryId,
    Value,
    agent_name,
    one_or_many,
)
from smp_git.model.settings import Settings
from smp_git.model.times import When
from smp_git.read.counts import with_access
from smp_git.read.snapshot import Snapshot
from smp_git.write.handle import Handle, Home

# What a method needs is loaded by it: many programs ask one question, or write once.
if TYPE_CHECKING:
    from smp_git.agents.agent import Agent
    from smp_git.agents.requirements import Given
    from smp_git.agents.values import Values
    from smp_git.ask import overviews
    from smp_git.ask.answer import Answer, Hit
    from smp_git.ask.bisect import Condition, Culprit
    from smp_git.ask.context import Context
    from smp_git.ask.desk import Desk
    from smp_git.ask.links import Related
    from smp_git.ask.request import Filters, QueryParts
    from smp_git.ask.vectors import Indexed
    from smp_git.format.metadata import Metadata
    from smp_git.keep.anonymize import Anonymized, AnonymizedMemories
    from smp_git.keep.check import Problem
    from smp_git.keep.compact import Compaction
    from smp_git.keep.configure import Configured
    from smp_git.keep.forecast import Forecast
    from smp_git.keep.glance import Glance
    from smp_git.keep.info import SessionInfo
    from smp_git.keep.mask import Switches
    from smp_git.keep.recall import RecallResult
    from smp_git.keep.repairs import Repair
    from smp_git.keep.usage import SizeReport
    from smp_git.model.given import GivenFields, Kind, NewKind
    from smp_git.read.changes import VersionChange
    from smp_git.read.compactions import Compacted
    from smp_git.read.history import BlamedField, MemoryDiff, Version
    from smp_git.remove.audit import Audited
    from smp_git.remove.delete import Criteria, Dropped, Plan
    from smp_git.remove.history.journal import Receipt
    from smp_git.remove.history.prove import Proof
    from smp_git.remove.purge import Purged
    from smp_git.remove.redact import Redaction
    from smp_git.remove.reports import AuditParts
    from smp_git.remove.restore import Restored
    from smp_git.remove.trash import Damaged, Deleted
    from smp_git.sync.exchange import Progress
    from smp_git.sync.outbound import RemoteState
    from smp_git.sync.remotes import Remote, SyncResult
    from smp_git.write.branches import Branch, Contested, Tag
    from smp_git.write.hand_edits import HandEdit
    from smp_git.write.merge.join import MergePlan, MergeResult
    from smp_git.write.transaction import Transaction
    from smp_git.write.values import Secrets
    from smp_git.write.writer import Change

_T = TypeVar("_T")


@logging
class Session:
    """One session: add and edit memories, read them, see what happened and undo it.

    Reads take no lock and always see a consistent state. Each write is one commit; when
    a method returns, the write is published and, by default, durable. Threads can share
    a session. Close it when done, or use it as a context manager.

    >>> with store.session("shop") as session:
    ...     made = session.add("decision", "Use PostgreSQL", rationale="ACID")
    ...     session.get(made.id).content
    'Use PostgreSQL'
    """

    def __init__(
        self,
        path: Path,
        clock: Callable[[], datetime],
        settings: Settings | None = None,
        *,
        shared: Path | None = None,
        home: Home | None = None,
    ) -> None:
        with naming(path.name):
            self._opened = opening.open_session(
                path, clock, settings or Settings(), shared=shared, home=home
            )
        self._known_desk: Desk | None = None
        self._known_shared: Session | None = None
        self._agents: list[Agent] = []
        self._log = Log(home, "Session", path.name)
        self._closed = False

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
        return f"Session({self.id!r})"

    def close(self) -> None:
        """Refresh Git's index and close the repository; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self._close_desk()
            for agent in self._agents:
                agent.close()
            if self._known_shared is not None:
                self._known_shared.close()
            opening.close(self._opened)
            self._log.close()

    @property
    def _handle(self) -> Handle:
        if self._closed:
            raise RefusedError(
                f"session {self.id} is closed", hint="open it again with store.session(id)"
            )
        return self._opened

    @property
    def _desk(self) -> Desk:
        """The desk that answers questions, opened at the first one."""
        if self._known_desk is None:
            from smp_git.ask.desk import Desk

            self._known_desk = Desk(self._handle)
        return self._known_desk

    def _close_desk(self) -> None:
        if self._known_desk is not None:
            self._known_desk.close()
            self._known_desk = None

    # What it is

    @property
    def id(self) -> str:
        """The session's name, which is the name of its folder: a copy keeps the metadata."""
        return self._opened.name

    @property
    def path(self) -> Path:
        """The folder of the session, a Git repository."""
        return self._opened.reader.path

    @property
    def metadata(self) -> Metadata:
        """The content of `metadata.yaml`."""
        return self._handle.metadata

    @property
    def head(self) -> CommitId:
        """The newest commit."""
        return self._handle.reader.snapshot().id

    @property
    def written_at(self) -> datetime:
        """The time of the last write."""
        return self._handle.reader.snapshot().commit.time

    @property
    def left_alone(self) -> tuple[str, ...]:
        """The files that the last write left unchanged because a person had edited them."""
        return tuple(self._opened.writer.left)

    @property
    def longest_wait_seconds(self) -> float:
        """The longest time that a write through this handle waited for the lock."""
        return self._opened.writer.longest_wait_seconds

    @property
    def passed_over(self) -> tuple[str, ...]:
        """What could not be read so far, or had to be read from elsewhere, one sentence each."""
        return self._opened.reader.passed_over()

    def news(self) -> tuple[str, ...]:
        """Return what plain Git removed from this session, and whether it is near its quota.

        Each is reported once; `info` names a loss until it is brought back.
        """
        from smp_git.keep import quota
        from smp_git.keep.losses import news

        return (*map(str, news(self._handle.reader)), *quota.news(self._handle))

    def info(self) -> SessionInfo:
        """Return an overview of the session."""
        from smp_git.keep.info import info

        return info(self._handle)

    def glance(self) -> Glance:
        """Return what tells the session from others, without reading its memories."""
        from smp_git.keep.glance import glance

        return glance(self._handle)

    def check(self) -> tuple[Problem, ...]:
        """Return every problem in the session; empty if it is sound."""
        from smp_git.keep.check import check

        self._handle.keeper.flush()
        return check(self._handle.reader)

    # Size

    def size(self) -> SizeReport:
        """Return what the session has of its quota, and what takes it."""
        from smp_git.keep import usage

        return usage.report(self._handle)

    def compact(
        self,
        target: int | float | str | None = None,
        *,
        preset: str | None = None,
        dry_run: bool = False,
        agent: str | None = None,
    ) -> Compaction:
        """Make the session smaller by bytes, `"2MB"`, `"20%"` or a part; by default by a tenth.

        What the rules of compaction keep is kept; what is taken out stays in the history.
        """
        from smp_git.keep.compact import compact

        return compact(self._handle, target, preset=preset, dry_run=dry_run, agent=agent)

    def recall(
        self, question: str, ids: str | Iterable[str], *, first: int = 10, agent: str | None = None
    ) -> Memory:
        """Note a question that memories must be among the first to answer; compaction keeps them."""
        from smp_git.keep import recall

        return recall.ask_for(self._handle, question, ids, first, agent)

    def recall_test(self) -> tuple[RecallResult, ...]:
        """Ask every question that was noted, and return what was found."""
        from smp_git.keep import recall

        return recall.test(self._desk)

    def compacted(self) -> tuple[Compacted, ...]:
        """Return what compactions took out and is still absent, the latest first."""
        from smp_git.read import compactions

        return self._handle.read(None, compactions.compacted)

    def bring_back(self, ids: str | Iterable[str], *, agent: str | None = None) -> Change:
        """Bring back what compactions took out."""
        from smp_git.keep import compacted

        return compacted.bring_back(self._handle, ids, agent)

    def repair(
        self, *, copy: str | PathLike[str] | None = None, dry_run: bool = False
    ) -> tuple[Repair, ...]:
        """Repair the session from what remains of it; `Store.repair` does so if it does not open.

        What is lost is also looked for in a `copy`: a session's folder, an archive, a bundle
        or a repository. Returns what was done, or would be. What nobody has is taken out of the session
        and its history, and what is known of it is kept aside, in `.git/smp/damaged`.
        """
        from smp_git.keep.repair import repair

        self._handle.keeper.flush()
        place = None if copy is None else Path(copy).absolute()
        return repair(self._handle, copy=place, dry_run=dry_run)

    # Writing

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
        """Add a memory and return it.

        `links` are pairs like `("resolves", "FIND-1")` or texts like `"resolves:FIND-1"`;
        other keywords are fields.
        If a recent memory says the same thing, `duplicate_of` names it; with
        `skip_duplicates`, nothing is written and the earlier memory is returned.
        """
        from smp_git.keep import quota
        from smp_git.write import edits

        handle = self._handle
        made = edits.new(handle, kind, text, agent, tags, links, at, fields)
        return quota.with_room(
            handle, lambda: edits.add(handle, made, skip_duplicates=skip_duplicates)
        )

    def add_many(
        self,
        items: Iterable[Mapping[str, object]],
        *,
        agent: str | None = None,
        progress: Callable[[int], None] = lambda _: None,
    ) -> Change:
        """Add many memories in one commit, all of them or none.

        Each item is a mapping with `kind`, `text`, and what else `add` takes; links may
        name other items by the `id` that those give themselves.
        """
        from smp_git.keep import quota
        from smp_git.write.batch import add_many

        quota.make_room(self._handle)
        return add_many(self._handle, items, agent, progress)

    def edit(
        self,
        memory_id: str,
        *,
        agent: str | None = None,
        text: str | None = None,
        tags: Iterable[str] | None = None,
        links: Iterable[object] | None = None,
        add_tags: Iterable[str] = (),
        remove_tags: Iterable[str] = (),
        add_links: Iterable[object] = (),
        **fields: Unpack[GivenFields],
    ) -> Memory:
        """Change a memory and return it; a field set to None is removed.

        `tags` and `links` replace those that it has; with `add_tags`, `remove_tags` and
        `add_links` the others stay.
        """
        from smp_git.keep import quota
        from smp_git.write import edits
        from smp_git.write.stage import Labels

        handle = self._handle
        change = Labels(tags, links, tuple(add_tags), tuple(remove_tags), tuple(add_links))
        return quota.with_room(
            handle, lambda: edits.edit(handle, memory_id, agent, text, change, fields)
        )

    def resolve(
        self,
        memory_id: str,
        *,
        agent: str | None = None,
        action: str | None = None,
        by: str | None = None,
        verification: str | None = None,
        next_steps: str | None = None,
    ) -> Memory:
        """Mark a finding or a decision as resolved: what was done, by whom, how that is known."""
        from smp_git.write import edits

        how = edits.Resolution(action, by, verification, next_steps)
        return edits.resolve(self._handle, memory_id, agent, how)

    def supersede(
        self,
        memory_id: str,
        text: str,
        *,
        agent: str | None = None,
        tags: Iterable[str] = (),
        links: Iterable[object] = (),
        **fields: Unpack[GivenFields],
    ) -> Memory:
        """Add a memory that replaces another of the same kind, and mark the other as superseded."""
        from smp_git.keep import quota
        from smp_git.write import edits

        handle = self._handle
        return quota.with_room(
            handle, lambda: edits.supersede(handle, memory_id, text, agent, tags, links, fields)
        )

    def pin(self, memory_id: str, *, agent: str | None = None) -> Memory:
        """Protect a memory from decay and compaction."""
        from smp_git.write import edits

        return edits.pin(self._handle, memory_id, agent, pinned=True)

    def unpin(self, memory_id: str, *, agent: str | None = None) -> Memory:
        """Let a memory decay again."""
        from smp_git.write import edits

        return edits.pin(self._handle, memory_id, agent, pinned=False)

    def link(
        self,
        memory_id: str,
        relation: object,
        target: str | None = None,
        *,
        agent: str | None = None,
    ) -> Memory:
        """Link a memory to another: by a word and an id, a pair of them, or `"word:id"`."""
        from smp_git.keep import quota
        from smp_git.write import edits

        handle = self._handle
        return quota.with_room(
            handle, lambda: edits.link(handle, memory_id, edits.one_link(relation, target), agent)
        )

    def unlink(
        self,
        memory_id: str,
        relation: object,
        target: str | None = None,
        *,
        agent: str | None = None,
    ) -> Memory:
        """Remove a link, named as `link` has it."""
        from smp_git.write import edits

        return edits.unlink(self._handle, memory_id, edits.one_link(relation, target), agent)

    def set_state(self, agent: str, fields: Mapping[str, object]) -> Memory:
        """Replace the state of an agent."""
        from smp_git.keep import quota
        from smp_git.write import edits

        handle = self._handle
        return quota.with_room(handle, lambda: edits.set_state(handle, agent, fields))

    def transaction(self, agent: str | None = None, *, reason: str | None = None) -> Transaction:
        """Return a context in which many edits become one commit, all or nothing."""
        from smp_git.keep import quota
        from smp_git.write.transaction import Transaction

        quota.make_room(self._handle)
        return Transaction(self._handle, agent, reason)

    def undo(
        self,
        id: str | None = None,
        *,
        revision: When | None = None,
        agent: str | None = None,
    ) -> Change:
        """Undo the latest write that has not been undone; call again to undo the one before.

        With an id, the latest change of that memory alone; with a revision, what that
        commit did. Raises ConflictError if that was changed since, and RefusedError for a
        deletion, which `restore` brings back.
        """
        from smp_git.write import undo

        return undo.undo(self._handle, id, revision, agent)

    def redo(self, *, agent: str | None = None) -> Change:
        """Bring back what the latest undo took back, unless something was written since."""
        from smp_git.write import undo

        return undo.redo(self._handle, agent)

    def rollback(
        self, revision: When, id: str | None = None, *, agent: str | None = None
    ) -> Change:
        """Return the session, or one memory, to an earlier state; deleted memories stay deleted."""
        from smp_git.write import undo

        return undo.rollback(self._handle, revision, id, agent)

    def commit(self, *, agent: str | None = None) -> Change:
        """Check what a person edited by hand and commit it as it is.

        Later writes to the same memory are kept. Raises InvalidFileError, naming files
        and lines, if anything does not parse, and ConflictError if both changed the
        same field; in that case nothing is committed.
        """
        from smp_git.write import hand_edits

        return hand_edits.commit(self._handle, agent)

    def hand_edits(self) -> tuple[HandEdit, ...]:
        """Return what a person changed in the session's folder and did not commit, by path."""
        from smp_git.write import hand_edits

        return hand_edits.listed(self._handle)

    def configure(self, settings: Mapping[str, object], *, agent: str | None = None) -> Change:
        """Set settings for this session only, e.g. `{"redaction": "off"}`; None removes one."""
        from smp_git.write import edits

        return edits.override(self._handle, settings, agent)

    override = configure

    def configuration(self) -> tuple[Configured, ...]:
        """Return every setting that holds in this session, with where it is set."""
        from smp_git.keep import configure

        return configure.of_session(self._handle)

    # Reading

    @overload
    def get(self, memory_id: str, *, at: When | None = None) -> Memory: ...
    @overload
    def get(self, memory_id: str, *, at: When | None = None, default: _T) -> Memory | _T: ...
    def get(
        self, memory_id: str, *, at: When | None = None, default: object = ...
    ) -> Memory | object:
        """Return a memory by its id or a unique abbreviation (`DEC-42`).

        If there is none, return `default` if one is given, else raise MemoryNotFoundError.
        """
        handle = self._handle
        try:
            found = handle.read(at, lambda snapshot: snapshot.get(snapshot.find(memory_id)))
        except MemoryNotFoundError:
            if default is ...:
                raise
            return default
        found = with_access(found, handle.accesses.of(found.id))
        if at is None:
            handle.accesses.note([found.id], handle.clock())
        return found

    def memories(self, kind: Kind | None = None, *, at: When | None = None) -> tuple[Memory, ...]:
        """Return the memories of a kind, or all, sorted by kind and number."""
        found = self._handle.read(at, lambda snapshot: snapshot.memories(kind))
        uses = self._handle.accesses.totals()
        return tuple(with_access(memory, uses.get(memory.id)) for memory in found)

    def state(self, agent: str, *, at: When | None = None) -> Mapping[str, Value]:
        """Return the state of an agent; empty if it has none."""
        name = MemoryId(f"state-{agent_name(agent)}")

        def answer(snapshot: Snapshot) -> Mapping[str, Value]:
            try:
                fields = snapshot.get(name).fields
                return MappingProxyType({k: v for k, v in fields.items() if k != CONTESTED})
            except MemoryNotFoundError:
                return MappingProxyType({})

        return self._handle.read(at, answer)

    def file(self, memory_id: str) -> Path:
        """Return the path of a memory's checked-out file."""
        self._handle.refuse_on_a_branch("no file of another branch is there")
        name = self._handle.read(None, lambda snapshot: snapshot.find(memory_id))
        return self.path / parse_id(name).path

    def __contains__(self, memory_id: object) -> bool:
        """Whether a memory of exactly this id is there; asking counts as no use."""
        if not isinstance(memory_id, str) or not is_id(memory_id):
            return False
        return self._handle.read(None, lambda now: now.blob(MemoryId(memory_id)) is not None)

    def full_id(self, text: str) -> str:
        """Return the full id for an abbreviation, also in SESSION:ID; the text itself if it matches none."""
        return self._handle.read(None, lambda now: now.full(text))

    # History

    def log(
        self,
        memory_id: str | None = None,
        *,
        limit: int | None = None,
        since: When | None = None,
        until: When | None = None,
        agents: str | Iterable[str] = (),
        kinds: Kind | Iterable[Kind] = (),
    ) -> tuple[Version, ...]:
        """Return the commits of the session, or of one memory, newest first.

        Of some time, by some agents, or such as changed memories of some kinds.
        """
        if limit is not None and limit < 0:
            raise InvalidError(f"a limit must be a number from 0, not {limit}")
        from smp_git.read import history

        limit = None if limit is None else min(limit, sys.maxsize)
        wanted = history.log_filter(since, until, agents, kinds, self._handle.clock())
        if memory_id is not None:
            return self._handle.read(
                None, lambda now: history.history(now, now.full(memory_id), wanted, limit)
            )
        return self._handle.read(None, lambda now: tuple(islice(history.log(now, wanted), limit)))

    def version(self, revision: When = "HEAD") -> Version:
        """Return the commit that a revision or a time means."""
        from smp_git.read.history import version_of

        return self._handle.read(None, lambda _: version_of(self._handle.at(revision).commit))

    def history(self, memory_id: str) -> tuple[Version, ...]:
        """Return the commits that changed one memory, newest first."""
        from smp_git.read import history

        return self._handle.read(None, lambda now: history.history(now, now.full(memory_id)))

    def changes(
        self, memory_id: str | None = None, *, at: When | None = None
    ) -> Iterator[VersionChange]:
        """Yield how each commit changed one memory, or all of them, newest first."""
        from smp_git.read import changes

        def found(now: Snapshot) -> Iterator[VersionChange]:
            if memory_id is None:
                return changes.every_change(now)
            return iter(changes.changes(now, now.full(memory_id)))

        return self._handle.read(at, found)

    def diff(
        self,
        old: When = "HEAD~1",
        new: When = "HEAD",
        *,
        ids: str | Iterable[str] | None = None,
    ) -> tuple[MemoryDiff, ...]:
        """Return how the memories, or some of them, differ between two revisions, field by field.

        A time before the session began is its beginning.
        """
        from smp_git.read import history

        at = self._handle.at

        def answer(now: Snapshot) -> tuple[MemoryDiff, ...]:
            only = None if ids is None else {now.full(name) for name in one_or_many(ids)}
            return history.diff(at(old), at(new), only)

        return self._handle.read(None, answer)

    def blame(self, memory_id: str) -> tuple[BlamedField, ...]:
        """Return, for each field of a memory, who set it and when."""
        from smp_git.read import history

        return self._handle.read(None, lambda now: history.blame(now, now.find(memory_id)))

    # Questions

    def query(
        self,
        text: str | None = None,
        *,
        at: When | None = None,
        now: datetime | None = None,
        spec: Mapping[str, object] | None = None,
        **parts: Unpack[QueryParts],
    ) -> Answer:
        """Search and return the matching memories, best first, with the reasons.

        `parts` are the parts of a query: kinds, tags (all must be present, each with
        its subtree), any_tags, not_tags, agents, since, until, where, min_priority,
        include_superseded, sort, limit, offset, explain and the others; `spec` is the
        same as a mapping.
        """
        from smp_git.ask import questions

        return questions.query(self._desk, text, at, now, spec, parts)

    def similar(
        self,
        text_or_id: str,
        *,
        limit: int = 10,
        at: When | None = None,
        now: datetime | None = None,
        **filters: Unpack[Filters],
    ) -> Answer:
        """Return the memories most similar to a memory or a text, among those that match."""
        from smp_git.ask import questions

        return questions.similar(self._desk, text_or_id, limit, at, now, filters)

    def related(
        self,
        memory_id: str,
        *,
        depth: int = 2,
        at: When | None = None,
        now: datetime | None = None,
        **filters: Unpack[Filters],
    ) -> tuple[Related, ...]:
        """Return the matching memories linked to this one in either direction, nearest first."""
        from smp_git.ask import questions

        return questions.related(self._desk, memory_id, depth, at, now, filters)

    def topics(
        self, *, limit: int | None = None, at: When | None = None
    ) -> tuple[overviews.Topic, ...]:
        """Return the tags of the session with their subtrees, most important first."""
        from smp_git.ask import questions

        return questions.topics(self._desk, limit, at)

    def index(self, *, progress: Callable[[str, int, int], None] | None = None) -> Indexed:
        """Bring the text search up to date, with the vectors of the extra `semantic`.

        `progress` is called with `pages` or `vectors`, how many are done, and how many there are.
        """
        from smp_git.ask import vectors

        return vectors.index(self._handle, progress=progress)

    def timeline(self, *, by: str = "hour", at: When | None = None) -> tuple[overviews.Bucket, ...]:
        """Return what happened by hour, day or month, oldest first."""
        from smp_git.ask import questions

        return questions.timeline(self._desk, by, at)

    def events(
        self,
        *,
        limit: int | None = None,
        at: When | None = None,
        now: datetime | None = None,
        **filters: Unpack[Filters],
    ) -> tuple[overviews.Event, ...]:
        """Return what happened, memory by memory, oldest first; with a limit, the newest of it."""
        from smp_git.ask import questions

        return questions.events(self._desk, limit, at, now, filters)

    def agents(self, *, at: When | None = None) -> tuple[overviews.AgentActivity, ...]:
        """Return the agents that wrote, busiest first."""
        from smp_git.ask import questions

        return questions.agents(self._desk, at)

    def summary(self, *, at: When | None = None, now: datetime | None = None) -> overviews.Summary:
        """Return a short summary of the session in its own words."""
        from smp_git.ask import questions

        return questions.summary(self._desk, at, now)

    def aggregate(
        self,
        *measures: str,
        text: str | None = None,
        at: When | None = None,
        **parts: Unpack[QueryParts],
    ) -> Mapping[str, object]:
        """Return counts and measures like `"count:kind"` or `"avg:size_bytes"` of what matches."""
        wanted = measures or ("count:kind",)
        asked: QueryParts = {**parts, "aggregations": wanted, "limit": 0}
        return self.query(text, at=at, **asked).aggregations

    def explain(
        self, memory_id: str, *, now: datetime | None = None
    ) -> tuple[float, tuple[str, ...]]:
        """Return a memory's priority and, line by line, how it is computed."""
        from smp_git.ask import questions

        return questions.explain(self._desk, memory_id, now)

    def forecast(self, memory_id: str, *, now: datetime | None = None) -> Forecast:
        """Return how a memory's priority falls if nobody uses it, and what happens to it when."""
        return self.forecasts([memory_id], now=now)[0]

    def forecasts(
        self, ids: Iterable[str], *, now: datetime | None = None, points: int = 60
    ) -> tuple[Forecast, ...]:
        """Return the forecasts of several memories, each with so many points of its curve."""
        from smp_git.keep.forecast import forecasts

        return forecasts(self._desk, ids, now, points)

    def watch(
        self,
        text: str | None = None,
        *,
        after: str | None = None,
        stop: Callable[[], bool] = lambda: False,
        **parts: Unpack[QueryParts],
    ) -> Iterator[Hit]:
        """Yield matching memories as anybody writes them, until `stop` returns true."""
        from smp_git.ask import questions

        return questions.watch(self._desk, text, after, stop, parts)

    def context(
        self,
        agent: str | None = None,
        *,
        prompt: str | None = None,
        topic: str | None = None,
        turns: int = 20,
        budget: int = 4000,
        at: When | None = None,
        now: datetime | None = None,
    ) -> Context:
        """Return what an agent needs to know to continue, within a budget of tokens.

        What answers the prompt comes first. A topic leaves out what is not about it.
        Pinned memories and the newest turns are left out last; the receipt says what
        was left out, and why.
        """
        from smp_git.ask import questions
        from smp_git.ask.briefing import Wish

        wanted = Wish(agent, prompt, topic, turns, budget)
        return questions.context(self._desk, self._shared_desk, wanted, at, now)

    def _shared_desk(self) -> Desk | None:
        """Return where the session of what holds across sessions answers, if there is one."""
        beside = self._shared_session()
        return beside._desk if beside is not None else None  # noqa: SLF001 - of its own kind

    def _shared_handle(self) -> Handle | None:
        beside = self._shared_session()
        return beside._handle if beside is not None else None  # noqa: SLF001 - of its own kind

    def _shared_session(self) -> Session | None:
        """Return the session of what holds across sessions, opened at the first need."""
        handle = self._handle
        place = handle.shared
        if place is None or not (place / ".git").is_dir():
            return None
        if self._known_shared is None:
            self._known_shared = Session(place, handle.clock, handle.defaults, home=handle.home)
        return self._known_shared

    def bisect(
        self, condition: Condition, *, good: When | None = None, bad: When = "HEAD"
    ) -> Culprit:
        """Return the first write after which `condition`, true before, is no longer true.

        The condition receives the session as it was after a commit, with `query`,
        `get`, `memories`, `aggregate` and `summary`. It must hold at `good` and fail at
        `bad`; without `good`, an earlier commit where it holds is searched for.
        """
        from smp_git.ask import questions

        return questions.bisect(self._desk, condition, good, bad)

    # Agents and other programs

    def values(
        self,
        agent: str | None = None,
        *,
        secrets: Secrets = "refuse",
        opaque: Iterable[str] = (),
    ) -> Values:
        """Return what programs keep under keys of their own, to read and to write in a name.

        `secrets` says what becomes of a value that holds one: it is refused, stored
        without the secret (`redact`), or stored as it is (`keep`). What is under a name in
        `opaque` is not searched, e.g. ids and signatures, which are made by chance.
        """
        from smp_git.agents.values import Values

        return Values(self._handle, agent, secrets, opaque)

    def agent(self, name: str, requirements: Given | None = None) -> Agent:
        """Return the session as one agent sees it, to read and to record in its name.

        `requirements` say what it may read and write: a mapping, or a workflow's YAML or
        Markdown file with `memory_requirements`. Without them it may not see what is
        private to others. Closed with the session.
        """
        from smp_git.agents.agent import Agent

        made = Agent(self._handle, self._shared_handle, name, requirements)
        self._agents.append(made)
        return made

    # Branches, tags, contested values

    @property
    def current_branch(self) -> str:
        """The branch that this handle works on."""
        return self._handle.reader.ref.removeprefix(HEADS)

    def branch(self, name: str) -> Self:
        """Create a branch from the current state, and return a handle that works on it."""
        from smp_git.write import branches

        handle = self._handle
        branches.create(handle, name)
        made = type(self)(
            self.path, handle.clock, handle.defaults, shared=handle.shared, home=handle.home
        )
        made.switch(name)
        return made

    def switch(self, name: str) -> None:
        """Make this handle work on another branch; the folder still shows main.

        Do not call this while another thread writes through this handle.
        """
        from smp_git.write import branches

        branches.switch(self._handle, name)
        self._close_desk()

    def branches(self) -> tuple[Branch, ...]:
        """Return the branches, main first, then by name."""
        from smp_git.write import branches

        return branches.listed(self._handle)

    @overload
    def merge(
        self, name: str, *, agent: str | None = None, dry_run: Literal[False] = False
    ) -> MergeResult: ...
    @overload
    def merge(
        self, name: str, *, agent: str | None = None, dry_run: Literal[True]
    ) -> MergePlan: ...
    def merge(
        self, name: str, *, agent: str | None = None, dry_run: bool = False
    ) -> MergeResult | MergePlan:
        """Merge another branch into the one that this handle works on.

        Changes to different fields of a memory are combined; if both sides changed the
        same field, the newer value is kept, and the other is kept beside it as
        contested. With `dry_run`, nothing is changed and the plan is returned.
        """
        from smp_git.sync import exchange

        if dry_run:
            return exchange.plan_merge(self._handle, name)
        return exchange.merge_branch(self._handle, name, agent)

    def drop_branch(self, name: str, *, discard: bool = False, by: str | None = None) -> Dropped:
        """Drop a branch; what only it held can be restored until the deadline.

        With `discard`, it cannot be restored. Raises RefusedError, with nothing
        changed, if no recoverable copy can be made here.
        """
        from smp_git.remove import delete

        return delete.drop_branch(self._handle, name, discard=discard, by=by)

    def tag(self, name: str, revision: When = "HEAD", *, move: bool = False) -> Tag:
        """Tag a commit, the newest one by default; with `move`, move a tag that is there."""
        from smp_git.write import branches

        return branches.tag(self._handle, name, revision, move=move)

    def remove_tag(self, name: str) -> Tag:
        """Remove a tag, also from the remotes with the next sync; its commit stays."""
        from smp_git.write import branches

        return branches.remove_tag(self._handle, name)

    def tags(self) -> tuple[Tag, ...]:
        """Return the tags by name."""
        from smp_git.write import branches

        return branches.tags(self._handle)

    def conflicts(self) -> tuple[Contested, ...]:
        """Return the unresolved values that lost in merges, sorted by id."""
        from smp_git.write import branches

        return branches.conflicts(self._handle)

    def resolve_conflict(
        self,
        memory_id: str,
        field: str | None = None,
        *,
        take: str | None = None,
        value: object = None,
        agent: str | None = None,
    ) -> Memory:
        """Resolve what is contested in a memory, or in one field of it, and return the memory.

        The current value is kept unless `take` names the replica whose value to use, or
        `value` is given.
        """
        from smp_git.write import branches

        return branches.settle(self._handle, memory_id, field, take, value, agent)

    # Deletion. Ids are full ids; what goes leaves the history too.

    @overload
    def delete(
        self,
        ids: str | Iterable[str] = (),
        *,
        reason: str | None = None,
        reasons: Mapping[str, str] | None = None,
        by: str | None = None,
        purge: bool = False,
        seen: Iterable[Memory] = (),
        dry_run: Literal[False] = False,
        **criteria: Unpack[Criteria],
    ) -> Receipt: ...
    @overload
    def delete(
        self,
        ids: str | Iterable[str] = (),
        *,
        reason: str | None = None,
        reasons: Mapping[str, str] | None = None,
        by: str | None = None,
        purge: bool = False,
        seen: Iterable[Memory] = (),
        dry_run: Literal[True],
        **criteria: Unpack[Criteria],
    ) -> Plan: ...
    def delete(
        self,
        ids: str | Iterable[str] = (),
        *,
        reason: str | None = None,
        reasons: Mapping[str, str] | None = None,
        by: str | None = None,
        purge: bool = False,
        seen: Iterable[Memory] = (),
        dry_run: bool = False,
        **criteria: Unpack[Criteria],
    ) -> Receipt | Plan:
        """Delete memories from the session and all of its history, in one rewrite.

        They can be restored until the deadline; with `purge`, they cannot. `reasons`
        gives reasons for single memories, by id. `criteria` are tags (with their
        subtrees), since, until, agents, kinds and text. If one of those that were `seen`
        has changed since, ConflictError is raised and nothing is deleted. With
        `dry_run`, nothing is changed and the plan is returned.
        """
        from smp_git.remove import delete

        if dry_run:
            return delete.plan_delete(self._handle, ids, criteria, purge=purge)
        return delete.delete(
            self._handle,
            ids,
            criteria,
            reason=reason,
            reasons=reasons,
            by=by,
            purge=purge,
            seen=seen,
        )

    def trash(self) -> tuple[Deleted, ...]:
        """Return what can be restored, oldest deletion first."""
        from smp_git.remove import reports

        return reports.trash(self._handle)

    def damaged_copies(self) -> tuple[Damaged, ...]:
        """Return the copies whose records cannot be read; a purge by their ids destroys them."""
        from smp_git.remove import reports

        return reports.damaged_copies(self._handle)

    def restore(
        self,
        ids: str | Iterable[str],
        *,
        with_history: bool = False,
        reason: str | None = None,
        by: str | None = None,
    ) -> Restored:
        """Restore deleted memories under their ids, and on request their earlier versions too.

        Raises RefusedError after the deadline or a purge, and DamagedError if the key
        of the sealed copy is lost or wrong; in that case nothing is restored.
        """
        from smp_git.remove import restore

        return restore.restore(self._handle, ids, with_history=with_history, reason=reason, by=by)

    def purge(
        self,
        ids: str | Iterable[str] | None = None,
        *,
        expired: bool = False,
        older_than: When | None = None,
        reason: str | None = None,
        by: str | None = None,
        dry_run: bool = False,
    ) -> Purged:
        """Make deleted memories unrecoverable: given ones, those past their deadline, or older ones.

        To purge a copy whose record is damaged, give the id of its deletion.
        """
        from smp_git.remove import purge

        if sum((ids is not None, expired, older_than is not None)) != 1:
            raise InvalidError("a purge needs ids, expired or older_than")
        if ids is None:
            return purge.purge_due(self._handle, older_than, by=by, dry_run=dry_run)
        return purge.purge(self._handle, ids, reason=reason, by=by, dry_run=dry_run)

    def redact(
        self,
        pattern: str | re.Pattern[str],
        replacement: str | None = None,
        *,
        reason: str | None = None,
        by: str | None = None,
        dry_run: bool = False,
    ) -> Redaction:
        """Remove a text, or what a compiled pattern matches, from every version of every memory.

        The earlier versions of each memory that held it are removed and cannot be
        restored. The default replacement is the one from the settings, or `[REDACTED]`.
        """
        from smp_git.remove import redact

        if dry_run:
            return redact.find(self._handle, pattern)
        return redact.redact(self._handle, pattern, replacement, reason=reason, by=by)

    def verify(self) -> Proof:
        """Search every object and file for anything ever deleted, and return what was found.

        Texts are searched for as long as a sealed copy holds them; the proof says what
        was not searched for.
        """
        from smp_git.remove import reports

        return reports.verify_deleted(self._handle)

    def receipt(self, name: str | None = None) -> Mapping[str, object]:
        """Return the receipt of a deletion, or of a memory's latest; by default the latest of all."""
        from smp_git.remove import reports

        return reports.receipt(self._handle, name)

    def audit(self, **wanted: Unpack[AuditParts]) -> tuple[Audited, ...]:
        """Return who deleted, restored, redacted or purged what and when, oldest first.

        An entry must match everything given: action, id, by, since and until.
        """
        from smp_git.remove import reports

        return reports.audit_log(self._handle, wanted)

    def anonymize(
        self,
        switches: Switches | None = None,
        *,
        copy: str | PathLike[str] | None = None,
        by: str | None = None,
    ) -> Anonymized:
        """Replace the session with a copy without names, or make the copy in the store at `copy`.

        In place, this session is closed and deleted; it can be restored until its
        deadline.
        """
        from smp_git.keep.anonymize import anonymize

        home, who = self._handle.at_home(), self._handle.actor(by)
        if copy is None:
            self.close()
        return anonymize(home, (self.id,), switches, copy=copy, by=who)[0]

    def anonymize_memories(
        self,
        ids: str | Iterable[str],
        switches: Switches | None = None,
        *,
        reason: str | None = None,
        by: str | None = None,
        dry_run: bool = False,
    ) -> AnonymizedMemories:
        """Put placeholders in the place of names in these memories, in every version of them.

        The names are those that the session tells. Earlier versions are erased, as by a
        redaction, and cannot be restored; a memory that holds no name stays as it is.
        """
        from smp_git.keep.anonymize import anonymize_memories

        named = (ids,) if isinstance(ids, str) else ids
        return anonymize_memories(
            self._handle, named, switches, reason=reason, by=by, dry_run=dry_run
        )

    def export(
        self,
        as_format: str = "jsonl",
        *,
        to: str | PathLike[str] | None = None,
        text: str | None = None,
        anonymous: bool | Switches = False,
        **parts: Unpack[QueryParts],
    ) -> Iterator[str]:
        """Yield the session in another format, or write it to a new file or folder.

        Formats are jsonl, json, yaml and markdown, and the folders 001, 003 and 004 and
        the log 000 of other programs; a bundle holds the whole history. With a text, or
        what else a query takes, only what matches is exported, in the session's order;
        `anonymous` takes out the names of people and projects, and paths.
        """
        from smp_git.convert.export import ExportOptions, export
        from smp_git.keep.mask import switches_of

        switches = switches_of(anonymous=anonymous)
        return export(self._handle, ExportOptions(as_format, text, parts, switches), to)

    def note_copy(self, path: str | PathLike[str]) -> None:
        """Remember a file that holds a copy, so that the receipts of deletions name it."""
        self._handle.reader.local.note_exports([Path(path).absolute()], self._handle.clock())

    # Remotes. A remote is named; without a name it is `origin`, or the only one.

    @property
    def remotes(self) -> Mapping[str, Remote]:
        """The remotes of the session by name, including the one from the store's pattern."""
        from smp_git.sync import exchange

        return exchange.known_remotes(self._handle)

    def add_remote(
        self, name: str, address: str | PathLike[str], *, create: bool = False
    ) -> Remote:
        """Add a remote; with `create`, make an empty repository at a path that has none."""
        from smp_git.sync import exchange

        return exchange.add_remote(self._handle, name, address, create=create)

    def remove_remote(self, name: str) -> None:
        """Remove a remote, and what was known about it."""
        from smp_git.sync import exchange

        exchange.remove_remote(self._handle, name)

    def remote_states(self) -> tuple[RemoteState, ...]:
        """Return how this replica compares with each remote, without contacting it."""
        from smp_git.sync import exchange

        return exchange.remote_states(self._handle)

    def sync(
        self,
        remote: str | None = None,
        *,
        agent: str | None = None,
        accept: bool = False,
        ask: bool = False,
        progress: Progress | None = None,
    ) -> SyncResult:
        """Fetch from a remote, merge, and push; on return, the remote has what is here.

        With `accept`, a remote that went back to an earlier state is brought up to date
        again; with `ask`, Git's credential helpers may be used. Raises a SyncError, or
        RefusedError for a remote that cannot be merged; in either case, what is here is
        kept.
        """
        from smp_git.keep import syncing

        return syncing.sync(self._handle, remote, agent, accept=accept, ask=ask, progress=progress)

    def fetch(
        self,
        remote: str | None = None,
        *,
        agent: str | None = None,
        accept: bool = False,
        ask: bool = False,
        progress: Progress | None = None,
    ) -> SyncResult:
        """Fetch from a remote without merging."""
        from smp_git.sync.exchange import exchange_with

        with_it = exchange_with(
            self._handle, remote, agent, accept=accept, ask=ask, progress=progress
        )
        return with_it.fetch()

    def push(
        self,
        remote: str | None = None,
        *,
        agent: str | None = None,
        ask: bool = False,
        progress: Progress | None = None,
    ) -> SyncResult:
        """Push to a remote; raise ConflictError if it has commits that are not here."""
        from smp_git.sync.exchange import exchange_with

        return exchange_with(self._handle, remote, agent, ask=ask, progress=progress).push()
