"""Session: the door to the memories of one repository."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeVar, cast

from smp_git.format import dialect, yamlfile
from smp_git.format.config import Settings
from smp_git.format.records import FORMAT, RULE
from smp_git.git.repository import MAIN
from smp_git.model import times
from smp_git.model.errors import (
    FormatError,
    InvalidError,
    InvalidFileError,
    MemoryNotFoundError,
    RefusedError,
    shown,
)
from smp_git.model.ids import parse_id, short_id
from smp_git.model.memory import (
    CONTESTED,
    KINDS,
    CommitId,
    Memory,
    MemoryId,
    Value,
    agent_name,
    check_fields,
    check_text,
)
from smp_git.model.secrets.rules import Cleaned, Report, merged
from smp_git.read import history
from smp_git.read.history import BlamedField, MemoryDiff, Version
from smp_git.read.snapshot import Reader, Snapshot
from smp_git.write import git_index, hand_edits, recovery
from smp_git.write import undo as revert
from smp_git.write.git_index import IndexKeeper, on_open
from smp_git.write.stage import Draft, Stage, draft
from smp_git.write.writer import Change, Transaction, Writer

if TYPE_CHECKING:
    from smp_git.keep.check import Problem
    from smp_git.sync.outbound import RemoteState
from smp_git.remove.deletions import Home
from smp_git.sync.syncing import Syncing

METADATA: Final = "metadata.yaml"

_DEFAULTS: Final = Settings()

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What `metadata.yaml` says of a session."""

    id: str
    uid: str
    created_at: datetime
    user: str | None
    agents: tuple[str, ...]
    context: Mapping[str, Value]
    tags: tuple[str, ...]
    overrides: Mapping[str, Value]
    format: int = FORMAT
    rule: int = RULE


@dataclass(frozen=True, slots=True, kw_only=True)
class Participant:
    """An agent that wrote in a session: how much, and when last."""

    agent: str
    memories: int
    last_active: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """A session at a glance."""

    id: str
    path: str
    created_at: datetime
    user: str | None
    tags: tuple[str, ...]
    context: Mapping[str, Value]
    head: CommitId
    last_written_at: datetime
    memories: int
    counts: Mapping[str, int]
    participants: tuple[Participant, ...]
    size_bytes: int
    problems: tuple[str, ...]
    remotes: tuple[RemoteState, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "id": self.id,
            "path": self.path,
            "created_at": times.format_time(self.created_at),
            "user": self.user,
            "tags": list(self.tags),
            "context": deepcopy(dict(self.context)),
            "head": self.head,
            "last_written_at": times.format_time(self.last_written_at),
            "memories": self.memories,
            "counts": dict(self.counts),
            "participants": [
                {"agent": p.agent, "memories": p.memories, "last_active": p.last_active}
                for p in self.participants
            ],
            "size_bytes": self.size_bytes,
            "problems": list(self.problems),
            "remotes": [each.as_json() for each in self.remotes],
        }


class Session(Syncing):
    """One session: add and edit memories, read them, see and undo what happened.

    Reading takes no lock and is never torn. Each write is one commit; when a method
    returns, the write is published and, by default, on the medium. A session may be
    shared by threads; close it, or use it as a context manager.
    """

    def __init__(
        self,
        path: Path,
        clock: Callable[[], datetime],
        settings: Settings = _DEFAULTS,
        *,
        shared: Path | None = None,
        home: Home | None = None,
    ) -> None:
        recovery.before_reading(path)
        reader = Reader(path, durable=settings.durable)
        self.metadata = _metadata(reader.snapshot())
        project = str(self.metadata.context.get("project_name", ""))
        super().__init__(reader, settings, clock, shared=shared, project=project)
        self._writer = Writer(self._reader, clock, timeout_seconds=settings.lock_timeout_seconds)
        self._keeper = IndexKeeper(self._writer)
        self._closed = False
        self._rules = settings.redaction.overridden(self.metadata.overrides, "metadata.yaml")
        self._redaction = settings.redaction
        self._home = home
        if min(self.metadata.format, self.metadata.rule) < FORMAT:
            self._writer.before_writing = self._upgrade
        self._finish_deletions()
        on_open(self._keeper, clock())

    def _upgrade(self) -> None:
        from smp_git.remove.history.erase import upgrade  # noqa: PLC0415 - once in the life of a session

        upgrade(self._writer, self._clock())
        self._look_anew()

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
        """Refresh Git's index and let go of the repository; a second call does nothing."""
        if not self._closed:
            self._closed = True
            # Another handle may have moved the session away: then there is nothing to refresh.
            is_here = self._reader.local.folder.is_dir()
            if is_here:
                self._keeper.stop()
            if self._known_desk is not None:
                self._known_desk.close()
            if is_here:
                self._accesses.fold(self._writer)
            self._close_main()
            self._reader.close()

    def news(self) -> tuple[str, ...]:
        """Return what plain Git took off this session since it was last asked, each said once.

        `info` names it for as long as it is not brought back.
        """
        return tuple(map(str, git_index.news(self._reader)))

    def _again(self) -> Self:
        return type(self)(
            self.path, self._clock, self._settings, shared=self._shared, home=self._home
        )

    def _look_anew(self) -> None:
        self.metadata = _metadata(self._reader.snapshot())
        self._rules = self._redaction.overridden(self.metadata.overrides, METADATA)

    def _uid(self) -> str:
        return self.metadata.uid

    @property
    def id(self) -> str:
        """The session's name, which is its folder's: a copy keeps the metadata."""
        return self._reader.path.name

    @property
    def path(self) -> Path:
        """The folder of the session, a Git repository."""
        return self._reader.path

    @property
    def head(self) -> CommitId:
        """The newest commit."""
        return self._reader.snapshot().id

    @property
    def left_alone(self) -> tuple[str, ...]:
        """The files that the last write left as they were because a person had changed them."""
        return tuple(self._writer.left)

    @property
    def longest_wait_seconds(self) -> float:
        """The longest time that a write of this handle waited for the lock."""
        return self._writer.longest_wait_seconds

    # Writing

    def add(
        self,
        kind: str,
        text: str,
        *,
        agent: str | None = None,
        tags: Iterable[str] = (),
        links: Iterable[object] = (),
        at: datetime | str | None = None,
        skip_duplicates: bool = False,
        **fields: object,
    ) -> Memory:
        """Add a memory and return it.

        `links` are pairs such as `("resolves", "FIND-0001")`; further keywords are
        fields. If a recent memory says the same, `duplicate_of` names it; with
        `skip_duplicates` nothing is written and the earlier one is returned.
        """
        name = self._by(agent)
        new = self._draft(kind, text, name, tags, links, at, fields)
        return self._one(name, lambda stage: stage.add(new, skip_duplicates=skip_duplicates))

    def edit(
        self,
        memory_id: str,
        *,
        agent: str | None = None,
        text: str | None = None,
        tags: Iterable[str] | None = None,
        links: Iterable[object] | None = None,
        **fields: object,
    ) -> Memory:
        """Change a memory and return it; a field set to None is removed."""
        new = self._rules.cleaned(text, fields)
        named = self._named(tags, links)
        return self._one(
            agent,
            lambda stage: stage.edit(
                memory_id, text=new.text, tags=named.tags, links=named.links, fields=new.fields
            ),
            new.redacted,
        )

    def resolve(
        self,
        memory_id: str,
        *,
        agent: str | None = None,
        action: str | None = None,
        by: str | None = None,
    ) -> Memory:
        """Mark a finding or a decision as resolved."""
        new = self._rules.cleaned(action, {})
        who = self._resolver(by)
        return self._one(
            agent, lambda stage: stage.resolve(memory_id, action=new.text, by=who), new.redacted
        )

    def supersede(
        self,
        memory_id: str,
        text: str,
        *,
        agent: str | None = None,
        tags: Iterable[str] = (),
        links: Iterable[object] = (),
        **fields: object,
    ) -> Memory:
        """Add a memory that replaces another of the same kind; the other says so."""
        name = self._by(agent)
        old = self._read(None, lambda snapshot: snapshot.get(snapshot.find(memory_id)))
        new = self._draft(old.kind, text, name, tags or old.tags, links, None, fields)
        return self._one(name, lambda stage: stage.supersede(old.id, new))

    def pin(self, memory_id: str, *, agent: str | None = None) -> Memory:
        """Keep a memory from decay and compaction."""
        return self._one(agent, lambda stage: stage.pin(memory_id, pinned=True))

    def unpin(self, memory_id: str, *, agent: str | None = None) -> Memory:
        """Let a memory decay again."""
        return self._one(agent, lambda stage: stage.pin(memory_id, pinned=False))

    def link(
        self, memory_id: str, relation: str, target: str, *, agent: str | None = None
    ) -> Memory:
        """Link a memory to another."""
        self._named(None, [(relation, target)])
        return self._one(agent, lambda stage: stage.link(memory_id, relation, target))

    def unlink(
        self, memory_id: str, relation: str, target: str, *, agent: str | None = None
    ) -> Memory:
        """Remove a link."""
        return self._one(agent, lambda stage: stage.unlink(memory_id, relation, target))

    def set_state(self, agent: str, fields: Mapping[str, object]) -> Memory:
        """Replace the state of an agent."""
        new = self._rules.cleaned(None, fields)
        return self._one(agent, lambda stage: stage.set_state(agent, new.fields), new.redacted)

    def transaction(
        self, agent: str | None = None, *, reason: str | None = None
    ) -> SessionTransaction:
        """Return a context in which many edits become one commit, all or nothing."""
        if reason is not None:
            reason, _ = self._rules.text(check_text(reason, "reason"))
        return SessionTransaction(self, self._writer, self._by(agent), reason)

    def undo(self, *, agent: str | None = None) -> Change:
        """Reverse the latest write that still stands; again, the one before."""
        return self._change(agent, revert.undo, revert.UNDO_BATCH)

    def rollback(
        self, revision: str | datetime, id: str | None = None, *, agent: str | None = None
    ) -> Change:
        """Bring the session, or one memory, back to how it was; what was deleted stays away."""
        target = self._at(revision)
        memory_id = self._somewhere(id, target) if id is not None else None
        return self._change(
            agent, lambda stage: revert.rollback(stage, target, memory_id), "rollback batch"
        )

    def commit(self, *, agent: str | None = None) -> Change:
        """Check what a person changed by hand and commit it as it is.

        What a later write changed in the same memory stays. Raises InvalidFileError,
        naming files and lines, if anything does not parse, and ConflictError if both
        changed the same field; then nothing is committed.
        """
        self._refuse_aside("edits by hand are committed there")

        def work(stage: Stage) -> None:
            found = hand_edits.find(stage.base, self.path)
            hand_edits.check(found, self._rules)
            same = list(found.stale_indexes)
            right = hand_edits.put_right(found.files, stage.base, stage.base.tombstones)
            whole = hand_edits.Handmade(right, found.stale_indexes, found.strangers)
            for path, data in hand_edits.brought_together(
                whole, stage.base, self._reader.local
            ).items():
                was = stage.base.repository.find(stage.base.tree, path)
                verb = "remove" if data is None else "edit" if was else ""
                stage.put_file(path, data, verb, found.files[path])
                if data is not None and was and data == stage.base.repository.blob(was):
                    same.append(path)
            hand_edits.restore(stage.base, self.path, same)

        return self._change(agent, work, "edits by hand")

    def override(self, settings: Mapping[str, object], *, agent: str | None = None) -> Change:
        """Set settings for this session alone, such as `{"redaction": "off"}`; None removes one."""
        merged_settings = {**self.metadata.overrides, **check_fields(KINDS["state"], settings)}
        kept = {
            name: value
            for name, value in merged_settings.items()
            if settings.get(name, "") is not None
        }
        rules = self._redaction.overridden(kept, "overrides")
        kept = check_fields(KINDS["state"], self._rules.settings(kept))

        def work(stage: Stage) -> None:
            stage.put_file(METADATA, _overridden(stage.base, kept), "")

        change = self._change(agent, work, "settings")
        self._rules, self.metadata = rules, _metadata(self._reader.snapshot())
        return change

    def _refuse_aside(self, why: str) -> None:
        if self._reader.ref != MAIN:
            raise RefusedError(
                f"the folder shows main, so {why}", hint="smp --branch main, or smp switch main"
            )

    def _one(
        self, agent: str | None, work: Callable[[Stage], Memory], redacted: Report = ()
    ) -> Memory:
        memory, change = self._written(agent, work)
        report = redacted or memory.redacted
        return replace(memory, commit=change.commit or self.head, redacted=report)

    def _change(self, agent: str | None, work: Callable[[Stage], None], subject: str) -> Change:
        return self._written(agent, work, subject)[1]

    def _written(
        self, agent: str | None, work: Callable[[Stage], _T], subject: str | None = None
    ) -> tuple[_T, Change]:
        name = self._by(agent)
        return self._writer.run(name, work, subject=subject)

    def _default_agent(self) -> str:
        return agent_name(self.metadata.user) if self.metadata.user else "user"

    def _draft(
        self,
        kind: str,
        text: str,
        agent: str,
        tags: Iterable[str],
        links: Iterable[object],
        at: datetime | str | None,
        fields: Mapping[str, object],
    ) -> Draft:
        moment = self._moment(at) if at is not None else None
        new = self._rules.cleaned(text, fields)
        named = self._named(tags, links)
        made = draft(
            kind,
            cast("str", new.text),
            agent=self._by(agent),
            at=moment,
            tags=cast("Iterable[str]", named.tags),
            links=cast("Iterable[object]", named.links),
            fields=new.fields,
        )
        return replace(made, redacted=new.redacted)

    def _named(self, tags: Iterable[str] | None, links: Iterable[object] | None) -> _Named:
        """Return tags and links as they are; raise InvalidError if they hold a secret."""
        return _Named(
            cast("Iterable[str] | None", self._rules.names(tags, "a tag")),
            cast("Iterable[object] | None", self._rules.names(links, "a link")),
        )

    def _resolver(self, by: str | None) -> str | None:
        """Return who resolved a memory, without secrets; what is no text is checked later."""
        return self._rules.text(by)[0] if isinstance(by, str) else by

    # Reading

    def get(self, memory_id: str, *, at: str | datetime | None = None) -> Memory:
        """Return a memory by its id or a unique abbreviation (`DEC-42`)."""
        found = self._read(at, lambda snapshot: snapshot.get(snapshot.find(memory_id)))
        if at is None:
            self._accesses.note([found.id], self._clock())
        return found

    def memories(
        self, kind: str | None = None, *, at: str | datetime | None = None
    ) -> tuple[Memory, ...]:
        """Return the memories of a kind, or all, sorted by kind and number."""
        return self._read(at, lambda snapshot: tuple(snapshot.memories(kind)))

    def state(self, agent: str, *, at: str | datetime | None = None) -> Mapping[str, Value]:
        """Return the state of an agent; empty if it has none."""
        name = MemoryId(f"state-{agent_name(agent)}")

        def answer(snapshot: Snapshot) -> Mapping[str, Value]:
            try:
                fields = snapshot.get(name).fields
                return MappingProxyType({k: v for k, v in fields.items() if k != CONTESTED})
            except MemoryNotFoundError:
                return MappingProxyType({})

        return self._read(at, answer)

    def file(self, memory_id: str) -> Path:
        """Return the checked-out file of a memory."""
        self._refuse_aside("no file of another branch stands there")
        name = self._read(None, lambda snapshot: snapshot.find(memory_id))
        return self.path / parse_id(name).path

    def info(self) -> SessionInfo:
        """Return the session at a glance."""
        return self._read(None, self._info)

    def check(self) -> tuple[Problem, ...]:
        """Return everything that is wrong with the session; empty when it is sound."""
        self._keeper.flush()
        from smp_git.keep.check import check  # noqa: PLC0415 - not every program checks

        return check(self._reader)

    def _somewhere(self, memory_id: str, target: Snapshot) -> MemoryId:
        """Return the id that a text names now, else at `target`."""
        now = self._reader.snapshot()
        with suppress(MemoryNotFoundError):
            return now.find(memory_id)
        # A deleted memory stands in no revision; whoever asks for it is told so later.
        return (
            MemoryId(memory_id)
            if now.tombstones.names_text(memory_id.encode())
            else target.find(memory_id)
        )

    # History

    def log(self, memory_id: str | None = None, *, limit: int | None = None) -> tuple[Version, ...]:
        """Return the commits of the session, or of one memory, newest first."""
        if limit is not None and limit < 0:
            raise InvalidError(f"a limit is a number from 0, not {limit}")
        if memory_id is not None:
            return self.history(memory_id)[:limit]
        return self._read(None, lambda snapshot: tuple(islice(history.log(snapshot), limit)))

    def history(self, memory_id: str) -> tuple[Version, ...]:
        """Return the commits that changed one memory, newest first."""
        return self._read(None, lambda now: history.history(now, self._full(now, memory_id)))

    def diff(
        self, old: str | datetime = "HEAD~1", new: str | datetime = "HEAD"
    ) -> tuple[MemoryDiff, ...]:
        """Return how the memories differ between two revisions, field by field."""
        return self._read(None, lambda _: history.diff(self._at(old), self._at(new)))

    def blame(self, memory_id: str) -> tuple[BlamedField, ...]:
        """Return, for each field of a memory, who gave it its value, and when."""
        return self._read(None, lambda now: history.blame(now, now.find(memory_id)))

    def full_id(self, text: str) -> str:
        """Return the full id that a text names, or the text itself if it names none."""
        return self._read(None, lambda now: self._full(now, text))

    def _full(self, snapshot: Snapshot, text: str) -> MemoryId:
        try:
            return snapshot.find(text)
        except MemoryNotFoundError:
            short = short_id(text)
            return short.text if short is not None else parse_id(text).text

    def _info(self, snapshot: Snapshot) -> SessionInfo:
        entries = snapshot.entries()
        counts: dict[str, int] = {}
        agents: dict[str, tuple[int, str]] = {}
        for entry in entries:
            kind = parse_id(entry.id).kind.name
            counts[kind] = counts.get(kind, 0) + 1
            count, last = agents.get(entry.agent, (0, ""))
            agents[entry.agent] = count + 1, max(last, entry.updated or entry.at)
        repository = snapshot.repository
        entry_sizes = {entry.blob: entry.size for entry in entries}
        size = sum(
            entry_sizes.get(blob) or repository.size(blob)
            for _, blob in repository.files(snapshot.tree)
        )
        left = [f"{path} has an uncommitted edit" for path in self._writer.left]
        return SessionInfo(
            id=self.id,
            path=str(self.path),
            created_at=self.metadata.created_at,
            user=self.metadata.user,
            tags=self.metadata.tags,
            context=self.metadata.context,
            head=snapshot.id,
            last_written_at=snapshot.commit.time,
            memories=len(entries),
            counts=counts,
            participants=tuple(
                Participant(agent=name, memories=count, last_active=last)
                for name, (count, last) in sorted(agents.items())
            ),
            size_bytes=size,
            problems=(*snapshot.problems(), *git_index.problems(self._reader), *left),
            remotes=self.remote_states() if self._home is not None else (),
        )


class _Named(NamedTuple):
    """The tags and links of a memory, without secrets; None where none are given."""

    tags: Iterable[str] | None
    links: Iterable[object] | None


class SessionTransaction(Transaction):
    """A transaction that takes what `Session.add` and its neighbours take."""

    def __init__(self, session: Session, writer: Writer, agent: str, reason: str | None) -> None:
        super().__init__(writer, agent, reason)
        self._session = session
        self._redacted: list[Report] = []

    def add(
        self,
        kind: str,
        text: str,
        *,
        agent: str | None = None,
        tags: Iterable[str] = (),
        links: Iterable[object] = (),
        at: datetime | str | None = None,
        skip_duplicates: bool = False,
        **fields: object,
    ) -> Memory:
        """Stage a new memory and return it; its id is final."""
        new = self._session._draft(kind, text, agent or self.agent, tags, links, at, fields)  # noqa: SLF001 - the session's other half
        self._redacted.append(new.redacted)
        return self.add_draft(new, skip_duplicates=skip_duplicates)

    def edit(
        self,
        memory_id: str,
        *,
        text: str | None = None,
        tags: Iterable[str] | None = None,
        links: Iterable[object] | None = None,
        **fields: object,
    ) -> Memory:
        """Stage a change of a memory."""
        new = self._cleaned(text, fields)
        named = self._session._named(tags, links)  # noqa: SLF001 - as above
        done = self.staged().edit(
            memory_id, text=new.text, tags=named.tags, links=named.links, fields=new.fields
        )
        return replace(done, redacted=new.redacted)

    def resolve(
        self, memory_id: str, *, action: str | None = None, by: str | None = None
    ) -> Memory:
        """Stage the resolution of a finding or decision."""
        who = self._session._resolver(by)  # noqa: SLF001 - as above
        return self.staged().resolve(memory_id, action=self._cleaned(action, {}).text, by=who)

    def supersede(
        self,
        memory_id: str,
        text: str,
        *,
        tags: Iterable[str] = (),
        links: Iterable[object] = (),
        **fields: object,
    ) -> Memory:
        """Stage a memory that replaces another."""
        kind = self.get(memory_id).kind
        new = self._session._draft(kind, text, self.agent, tags, links, None, fields)  # noqa: SLF001 - as above
        self._redacted.append(new.redacted)
        return self.staged().supersede(memory_id, new)

    def pin(self, memory_id: str) -> Memory:
        """Stage that a memory is kept from decay."""
        return self.staged().pin(memory_id, pinned=True)

    def unpin(self, memory_id: str) -> Memory:
        """Stage that a memory may decay again."""
        return self.staged().pin(memory_id, pinned=False)

    def link(self, memory_id: str, relation: str, target: str) -> Memory:
        """Stage a link."""
        self._session._named(None, [(relation, target)])  # noqa: SLF001 - as above
        return self.staged().link(memory_id, relation, target)

    def unlink(self, memory_id: str, relation: str, target: str) -> Memory:
        """Stage that a link goes."""
        return self.staged().unlink(memory_id, relation, target)

    def set_state(self, agent: str, fields: Mapping[str, object]) -> Memory:
        """Stage the state of an agent."""
        new = self._cleaned(None, fields)
        agent = self._session._by(agent)  # noqa: SLF001 - as above
        return replace(self.staged().set_state(agent, new.fields), redacted=new.redacted)

    def commit(self) -> Change:
        """Write what is staged; raise ConflictError if it was changed meanwhile."""
        change = replace(super().commit(), redacted=merged(self._redacted))
        self.change = change
        return change

    def _cleaned(self, text: str | None, fields: Mapping[str, object]) -> Cleaned:
        new = self._session._rules.cleaned(text, fields)  # noqa: SLF001 - as above
        self._redacted.append(new.redacted)
        return new


def _metadata(snapshot: Snapshot) -> Metadata:
    """Return what the session says of itself; raise FormatError if it is too new."""
    repository = snapshot.repository
    blob = repository.find(snapshot.tree, "metadata.yaml")
    if blob is None:
        raise FormatError(f"{repository.path} is a Git repository, but no session")
    found = yamlfile.read(repository.blob(blob).decode("utf-8", "replace"), "metadata.yaml")
    for name, known in (("format", FORMAT), ("rule", RULE)):
        number = found.get(name)
        if not isinstance(number, int) or number > known:
            raise FormatError(
                f"session {repository.path.name} has {name} {shown(number)}; this program knows {known}",
                hint="install a newer smp-git",
            )
    user, tags, agents, context, overrides = (
        found.get(key) for key in ("user", "tags", "agents", "context", "overrides")
    )
    return Metadata(
        id=str(found.get("id")),
        uid=str(found.get("uid")),
        created_at=_created_at(found.get("created_at")),
        user=user if isinstance(user, str) else None,
        tags=tuple(str(tag) for tag in tags) if isinstance(tags, list) else (),
        agents=tuple(str(name) for name in agents) if isinstance(agents, list) else (),
        context=MappingProxyType(context if isinstance(context, dict) else {}),
        overrides=MappingProxyType(overrides if isinstance(overrides, dict) else {}),
        format=int(str(found["format"])),
        rule=int(str(found["rule"])),
    )


def _overridden(snapshot: Snapshot, overrides: dict[str, Value]) -> bytes:
    """Return `metadata.yaml` with other overrides, all else as it stands."""
    blob = snapshot.repository.find(snapshot.tree, METADATA)
    old = snapshot.repository.blob(blob).decode() if blob else ""
    edited = yamlfile.edit(old, {"overrides": overrides or None}, ("tags", "overrides"))
    whole = yamlfile.read(old, METADATA)
    return (edited or dialect.write({**whole, "overrides": overrides})).encode()


def _created_at(text: Value) -> datetime:
    try:
        if isinstance(text, str) and _DATE.match(text):
            return times.parse_time(text, datetime.max.replace(tzinfo=UTC))
    except ValueError:
        pass
    raise InvalidFileError(f"metadata.yaml: created_at is no time: {shown(text)}")
