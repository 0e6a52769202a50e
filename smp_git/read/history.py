"""History: revisions and times as snapshots, log, diff by memory and field, blame."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import heappop, heappush
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from smp_git.format import document, messages
from smp_git.format.messages import Touch
from smp_git.git.objects import FOLDER_MODE, Commit, ObjectId
from smp_git.git.references import newest_first
from smp_git.git.repository import Repository
from smp_git.model import times
from smp_git.model.errors import (
    DamagedError,
    InvalidError,
    InvalidFileError,
    InvalidRevisionError,
    MemoryNotFoundError,
    SmpError,
)
from smp_git.model.ids import Id, parse_id, parse_path
from smp_git.model.memory import (
    KINDS,
    CommitId,
    Memory,
    MemoryId,
    Value,
    agent_name,
    is_same,
    kind_named,
    one_or_many,
)
from smp_git.model.results import Result
from smp_git.model.times import When, format_time, moment_of
from smp_git.read.replica import is_products
from smp_git.read.snapshot import Reader, Snapshot

# Means the bytes of a file as a whole.
WHOLE: Final = ""
# From so many paths on, comparing two trees is cheaper than looking each path up.
_MANY: Final = 16
_REPLICA = re.compile(r"([a-z][a-z0-9]{3})@smp")

Asked = Mapping[str, Iterable[str]]


class Origin(NamedTuple):
    """A commit, and when the memory said there that it was changed; the later one is greater."""

    at: datetime
    replica: str
    commit: Commit


def is_alike(left: Mapping[str, Value], right: Mapping[str, Value], name: str) -> bool:
    """Whether a field has the same value in two memories, or is in neither."""
    return (name in left) == (name in right) and is_same(left.get(name), right.get(name))


def stamp(memory: Memory) -> datetime:
    """Return when a memory says that it was changed last."""
    return memory.updated_at or memory.created_at


def replica_of(commit: Commit) -> str:
    """Return the tag of the replica that made a commit; empty for a person's own."""
    match = _REPLICA.fullmatch(commit.committer_email)
    return match[1] if match else ""


def origins(
    repository: Repository, asked: Mapping[CommitId, Asked]
) -> dict[tuple[str, str], Origin]:
    """Return where fields come from, by path and field; asked of the commits that have them.

    A merge gives no value: of its parents, the one with the same value is followed, and
    if several have it, the latest origin is taken.
    """
    return _Search(repository, asked).found


class _FieldVersion(NamedTuple):
    """A file at one commit: its fields, and when it says that it was changed."""

    fields: Mapping[str, Value]
    at: datetime | None


class _Search:
    """Follows fields from commit to commit, newest first."""

    def __init__(self, repository: Repository, asked: Mapping[CommitId, Asked]) -> None:
        self._repository = repository
        self._versions: dict[tuple[str, ObjectId | None], _FieldVersion] = {}
        self._wanted: dict[CommitId, dict[str, set[str]]] = {}
        self._queue: list[tuple[float, CommitId]] = []
        self.found: dict[tuple[str, str], Origin] = {}
        for commit, fields in asked.items():
            for path, names in fields.items():
                self._want(commit, path, set(names))
        while self._queue:
            name = heappop(self._queue)[1]
            wanted = self._wanted.pop(name, None)
            if wanted:
                self._look(repository.commit(name), wanted)

    def _want(self, commit: CommitId, path: str, fields: set[str]) -> None:
        if not fields:
            return
        if commit not in self._wanted:
            self._wanted[commit] = {}
            when = self._repository.commit(commit).time
            heappush(self._queue, (-when.timestamp(), commit))
        self._wanted[commit].setdefault(path, set()).update(fields)

    def _look(self, commit: Commit, wanted: Mapping[str, set[str]]) -> None:
        left = {path: set(fields) for path, fields in wanted.items()}
        for name in commit.parents:
            parent = self._repository.commit(name)
            changed = self._changed(parent.tree, commit.tree, wanted)
            for path, fields in wanted.items():
                same = self._same(path, fields, changed[path]) if path in changed else fields
                self._want(name, path, same)
                left[path] -= same
        for path, fields in left.items():
            self._note(commit, path, fields)

    def _changed(
        self, old: ObjectId, new: ObjectId, paths: Iterable[str]
    ) -> dict[str, tuple[ObjectId | None, ObjectId | None]]:
        """Return those of the paths that differ between two trees, with both versions."""
        if old == new:
            return {}
        wanted = set(paths)
        if len(wanted) > _MANY:
            found = self._repository.changes(old, new)
            return {path: (left, right) for path, left, right in found if path in wanted}
        find = self._repository.find
        pairs = {path: (find(old, path), find(new, path)) for path in wanted}
        return {path: pair for path, pair in pairs.items() if pair[0] != pair[1]}

    def _same(
        self, path: str, fields: set[str], blobs: tuple[ObjectId | None, ObjectId | None]
    ) -> set[str]:
        """Return those of the fields that a file has alike in two versions."""
        before, after = (self._version(path, blob) for blob in blobs)
        if before.at is None or after.at is None:
            # A memory that is not there has no field, not even an absent one.
            return set()
        return {name for name in fields - {WHOLE} if is_alike(before.fields, after.fields, name)}

    def _note(self, commit: Commit, path: str, fields: set[str]) -> None:
        if not fields:
            return
        blob = self._repository.find(commit.tree, path)
        at = self._version(path, blob).at or commit.time
        here = Origin(at, replica_of(commit), commit)
        for name in fields:
            known = self.found.get((path, name))
            if known is None or _rank(here) > _rank(known):
                self.found[path, name] = here

    def _version(self, path: str, blob: ObjectId | None) -> _FieldVersion:
        found = self._versions.get((path, blob))
        if found is None:
            found = self._versions[path, blob] = self._read(path, blob)
        return found

    def _read(self, path: str, blob: ObjectId | None) -> _FieldVersion:
        if blob is None or parse_path(path) is None:
            return _FieldVersion({}, None)
        try:
            memory = document.decode(self._repository.blob(blob), path)
        except InvalidFileError:
            return _FieldVersion({}, None)
        return _FieldVersion(document.fields_of(memory), stamp(memory))


def _rank(origin: Origin) -> tuple[datetime, str, datetime, CommitId]:
    return origin.at, origin.replica, origin.commit.time, origin.commit.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One commit of a session, or of one memory.

    >>> [(version.agent, version.subject) for version in session.log(limit=1)]
    [('ada', 'edit decision DEC-0001: Use OAuth 2.0')]
    """

    commit: CommitId
    at: datetime
    agent: str
    subject: str
    touches: tuple[Touch, ...]
    reason: str | None = None
    parents: tuple[CommitId, ...] = ()

    @property
    def untold(self) -> int:
        """How many memories the commit touched that its subject neither names nor counts."""
        is_counted = messages.head(self.subject) != self.subject
        return 0 if is_counted else max(len(self.touches) - 1, 0)

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "commit": self.commit,
            "at": format_time(self.at),
            "agent": self.agent,
            "subject": self.subject,
            "touched": [touch.id for touch in self.touches],
            "reason": self.reason,
            "parents": list(self.parents),
        }


class FieldChange(NamedTuple):
    """One field of a memory before and after; None where it is absent.

    >>> [(each.field, each.after) for each in session.diff("HEAD~1", "HEAD")[0].fields][1:]
    [('rationale', 'Industry standard')]
    """

    field: str
    before: Value
    after: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDiff(Result):
    """The difference of one memory between two revisions.

    >>> [(each.id, each.change) for each in session.diff("HEAD~1", "HEAD")]
    [('DEC-0001', 'changed')]
    """

    id: MemoryId
    kind: str
    change: str
    title: str
    fields: tuple[FieldChange, ...]


class BlamedField(NamedTuple):
    """One field of a memory and the commit that gave it its value.

    >>> {each.field: each.agent for each in session.blame("DEC-0001")}["rationale"]
    'ada'
    """

    field: str
    value: Value
    commit: CommitId
    at: datetime
    agent: str

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {**self._asdict(), "at": format_time(self.at)}


def version_of(commit: Commit) -> Version:
    """Return what a commit says of itself."""
    message = messages.read(commit.message)
    return Version(
        commit=commit.id,
        at=commit.time,
        agent=commit.author,
        subject=message.subject,
        touches=message.touches,
        reason=message.reason,
        parents=commit.parents,
    )


class LogFilter(NamedTuple):
    """Which commits of a log are wanted: all that fit everything that is given."""

    since: datetime | None = None
    until: datetime | None = None
    agents: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()

    def takes(self, snapshot: Snapshot, commit: Commit) -> bool:
        """Whether a commit is wanted."""
        return (
            (self.since is None or commit.time >= self.since)
            and (self.until is None or commit.time <= self.until)
            and (not self.agents or commit.author in self.agents)
            and (not self.kinds or any(_changes(snapshot, commit, kind) for kind in self.kinds))
        )


_ALL: Final = LogFilter()


def log_filter(
    since: When | None,
    until: When | None,
    agents: str | Iterable[str],
    kinds: str | Iterable[str],
    now: datetime,
) -> LogFilter:
    """Return which commits are wanted; raise InvalidError for what is no time, agent or kind."""
    return LogFilter(
        since=moment_of(since, now) if since is not None else None,
        until=moment_of(until, now) if until is not None else None,
        agents=frozenset(map(agent_name, one_or_many(agents))),
        kinds=frozenset(kind_named(name).name for name in one_or_many(kinds)),
    )


def log(snapshot: Snapshot, wanted: LogFilter = _ALL) -> Iterator[Version]:
    """Yield the commits of the session, newest first."""
    for commit in snapshot.walk():
        if wanted.takes(snapshot, commit):
            yield version_of(commit)


def _changes(snapshot: Snapshot, commit: Commit, kind: str) -> bool:
    """Whether a commit changed memories of a kind; a merge, if it differs from each parent."""
    repository, folder = snapshot.repository, KINDS[kind].folder
    try:
        trees = [repository.commit(each).tree for each in (commit.id, *commit.parents)]
        here, *before = [repository.tree(tree).get(folder) for tree in trees]
    except DamagedError as error:
        snapshot.pass_over(f"commit {commit.id[:12]}", error)
        return False
    return here not in before if before else here is not None


class Touched(NamedTuple):
    """A commit that changed a file: the file after it, and before it in its first parent."""

    commit: Commit
    blob: ObjectId | None
    before: ObjectId | None


def touching(
    snapshot: Snapshot, memory_id: MemoryId, wanted: LogFilter = _ALL
) -> Iterator[Touched]:
    """Yield the commits that changed one memory, newest first, past those that cannot be read."""
    finder = _Finder(snapshot, parse_id(memory_id).path)
    for commit in snapshot.walk():
        if not wanted.takes(snapshot, commit):
            continue
        found = finder.passing(commit.id)
        before = [finder.passing(parent) for parent in commit.parents]
        if found is None or None in before:
            # What led to it cannot be told.
            continue
        if found not in before if before else found.blob is not None:
            first = before[0] if before else None
            yield Touched(commit, found.blob, first.blob if first else None)


def versions(snapshot: Snapshot, memory_id: MemoryId) -> Iterator[tuple[Version, ObjectId | None]]:
    """Yield the commits that changed one memory, newest first, with its file after each."""
    for each in touching(snapshot, memory_id):
        yield version_of(each.commit), each.blob


class _Found(NamedTuple):
    """The version of a file in a commit that can be read, None if there is none."""

    blob: ObjectId | None


class _Finder:
    """Finds one path in many trees, looking once into each page."""

    def __init__(self, snapshot: Snapshot, path: str) -> None:
        self._snapshot = snapshot
        self._repository = snapshot.repository
        self._folder, self._rest = path.split("/", 1)
        self._known: dict[ObjectId | None, ObjectId | None] = {None: None}

    def passing(self, commit: CommitId) -> _Found | None:
        """Return the file in a commit, None if that cannot be read."""
        try:
            return _Found(self.find(self._repository.commit(commit).tree))
        except DamagedError as error:
            self._snapshot.pass_over(f"commit {commit[:12]}", error)
            return None

    def find(self, tree: ObjectId) -> ObjectId | None:
        """Return the blob at the path below `tree`, or None."""
        child = self._repository.tree(tree).get(self._folder)
        folder = child.id if child is not None and child.mode == FOLDER_MODE else None
        if folder not in self._known:
            assert folder is not None  # noqa: S101 - None is known from the start
            self._known[folder] = self._repository.find(folder, self._rest)
        return self._known[folder]


def history(
    snapshot: Snapshot, memory_id: MemoryId, wanted: LogFilter = _ALL, limit: int | None = None
) -> tuple[Version, ...]:
    """Return the commits that changed one memory, newest first; raise MemoryNotFoundError."""
    touched = islice(touching(snapshot, memory_id, wanted), limit)
    found = tuple(version_of(each.commit) for each in touched)
    if not found and (wanted == _ALL or not any(touching(snapshot, memory_id))):
        raise unknown(snapshot, memory_id)
    return found


def unknown(snapshot: Snapshot, memory_id: MemoryId) -> SmpError:
    """Return the error for a memory without a history, which a gap in that of the session may hide."""
    lost: dict[CommitId, DamagedError] = {}
    for _ in snapshot.repository.walk(snapshot.id, lost):
        pass
    missing = MemoryNotFoundError(f"no memory {memory_id}, now or before")
    return next(iter(lost.values()), missing)


def diff(
    old: Snapshot, new: Snapshot, only: Collection[MemoryId] | None = None
) -> tuple[MemoryDiff, ...]:
    """Return how the memories of two snapshots differ, sorted like ids; or how some of them do."""
    found = []
    for path, before, after in new.repository.changes(old.tree, new.tree):
        place = parse_path(path)
        if place is not None and (only is None or place.text in only):
            found.append((place.sort_key, file_diff(new.repository, place, before, after)))
    return tuple(item for _, item in sorted(found, key=lambda pair: pair[0]))


def file_diff(
    repository: Repository, place: Id, before: ObjectId | None, after: ObjectId | None
) -> MemoryDiff:
    """Return how two versions of a memory's file differ, field by field; None is no file."""
    left, right = (repository.blob(blob) if blob else None for blob in (before, after))
    return bytes_diff(place, left, right)


def bytes_diff(place: Id, before: bytes | None, after: bytes | None) -> MemoryDiff:
    """Return how the bytes of two versions of a memory's file differ; None is no file."""
    left, right = (_fields(place.path, file) for file in (before, after))
    return _compared(place.text, place.kind.name, left, right)


def _compared(
    memory_id: MemoryId,
    kind: str,
    left: Mapping[str, Value] | None,
    right: Mapping[str, Value] | None,
) -> MemoryDiff:
    before, after = left or {}, right or {}
    names = dict.fromkeys((*before, *after))
    changed = [
        FieldChange(name, before.get(name), after.get(name))
        for name in names
        if not is_same(before.get(name), after.get(name)) and name not in ("id", "kind")
    ]
    change = "added" if left is None else "removed" if right is None else "changed"
    title = str(after.get("_title") or before.get("_title") or "")
    shown = tuple(item for item in changed if item.field != "_title")
    return MemoryDiff(id=memory_id, kind=kind, change=change, title=title, fields=shown)


def _fields(path: str, file: bytes | None) -> dict[str, Value] | None:
    """Return a memory's file as a mapping with its title as `_title`, or None if absent."""
    if file is None:
        return None
    try:
        memory = document.decode(file, path)
    except InvalidFileError:
        return {"file": file.decode("utf-8", "replace")}
    return {**document.fields_of(memory), "_title": memory.title}


def blame(snapshot: Snapshot, memory_id: MemoryId) -> tuple[BlamedField, ...]:
    """Return, for each field of a memory, the commit that gave it its present value."""
    path = parse_id(memory_id).path
    now = document.fields_of(snapshot.get(memory_id))
    found = origins(snapshot.repository, {snapshot.id: {path: now}})
    told = {name: version_of(origin.commit) for (_, name), origin in found.items()}
    return tuple(
        BlamedField(name, value, told[name].commit, told[name].at, told[name].agent)
        for name, value in now.items()
        if name in told and name not in ("id", "kind")
    )


def at_time(snapshot: Snapshot, moment: datetime) -> CommitId | None:
    """Return the newest commit that is not younger than `moment`, or None.

    Of a merge that an agent or a person made it is the branch that took the other in; the
    parents of a merge that a sync made are alike.
    """

    def follow(commit: Commit) -> Sequence[CommitId]:
        return commit.parents if is_products(commit.committer_email) else commit.parents[:1]

    found = newest_first(snapshot.repository, snapshot.id, follow)
    return next((commit.id for commit in found if commit.time <= moment), None)


_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_T = TypeVar("_T")


def at_revision(reader: Reader, revision: When, now: datetime) -> Snapshot:
    """Return the session as it was at a commit, tag, branch or time.

    A time before the session is its beginning, so that "since yesterday" holds for a young one.
    """
    text = revision if isinstance(revision, str) else None
    if text is not None and not (times.is_relative(text) or _DATE.match(text)):
        return reader.at(reader.repository.resolve(text, reader.ref))
    newest = reader.snapshot()
    try:
        found = at_time(newest, moment_of(revision, now))
    except InvalidError as error:
        raise InvalidRevisionError(error.message) from None
    if found is None:
        found = list(newest.walk())[-1].id
    return reader.at(found)
