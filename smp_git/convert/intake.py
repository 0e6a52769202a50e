"""Entries of another program taken into sessions: nothing twice, nothing that was deleted."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from smp_git.convert import bundle, transcripts
from smp_git.convert.entries import (
    REFERENCES,
    ForeignDeletion,
    ForeignMemory,
    ForeignSession,
    Item,
    PassedOver,
    Trouble,
    as_agent,
    as_tag,
)
from smp_git.convert.formats import BUNDLE, FORMATS, format_of
from smp_git.format import imports
from smp_git.format.imports import GIVEN
from smp_git.keep import opening, stores
from smp_git.model.errors import InvalidError, SessionNotFoundError, SmpError
from smp_git.model.ids import parse_id
from smp_git.model.memory import KINDS, Link, MemoryId, Value, agent_name, check_fields
from smp_git.model.secrets.rules import Report, merged
from smp_git.model.times import format_time
from smp_git.read import sizes
from smp_git.write import edits
from smp_git.write.handle import GLOBAL, Handle, Home
from smp_git.write.stage import Draft
from smp_git.write.transaction import Transaction

# So much below the warning an import ends a part: what is written later does not compact it at once.
_BELOW_WARNING: Final = 5
# What a memory takes beside its text: its keys, its index line, its page.
_OVERHEAD: Final = 600
_LONGEST_ID: Final = 60
# Formats whose sessions have names that are kept.
_OF_SESSIONS: Final = ("000", "001", "003", "004", "smp")
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")
_PROGRESS_EVERY: Final = 200


@dataclass(slots=True, kw_only=True)
class Imported:
    """What became of one session of the source."""

    session: str
    source: str
    created: bool = False
    added: Counter[str] = field(default_factory=Counter)
    known: int = 0
    deleted: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    redacted: Report = ()
    problems: list[Trouble] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "session": self.session,
            "source": self.source,
            "created": self.created,
            "added": dict(self.added),
            "known": self.known,
            "deleted": self.deleted,
            "left_out": dict(self.left_out),
            "redacted": dict(self.redacted),
            "problems": [each.as_json() for each in self.problems],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """What an import did: the format it found, and what became of each session."""

    format: str
    sessions: tuple[Imported, ...]
    dry_run: bool = False

    @property
    def problems(self) -> tuple[Trouble, ...]:
        """What could not be read or stored; everything else was."""
        return tuple(each for session in self.sessions for each in session.problems)

    @property
    def added(self) -> int:
        """How many memories were added."""
        return sum(session.added.total() for session in self.sessions)

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "format": self.format,
            "dry_run": self.dry_run,
            "added": self.added,
            "sessions": [session.as_json() for session in self.sessions],
        }


class ImportOptions(NamedTuple):
    """How an import is to be done."""

    session: str | None = None
    # The bytes of a session; None is what the settings say.
    quota: int | None = None
    dry_run: bool = False
    progress: Callable[[int], None] = lambda _: None


def take(
    home: Home, sources: Iterable[ForeignSession], wanted: ImportOptions
) -> Iterator[Imported]:
    """Take sessions in one by one, each in one commit for each session that it becomes."""
    recorded: frozenset[str] | None = None
    for source in sources:
        if recorded is None and source.format == transcripts.FORMAT:
            recorded = _recorded(home)
        name = wanted.session or (GLOBAL if source.shared else _name_for(home, source))
        yield from _Intake(home, source, name, wanted, recorded or frozenset()).run()


def _recorded(home: Home) -> frozenset[str]:
    """Return the turns of transcripts that sessions have which are no import of one."""
    found = set[str]()
    for name in stores.session_ids(home.path):
        with suppress(SmpError), _opened(home, name) as handle:
            if "source" not in handle.metadata.context:
                found |= _sources(handle)[0].keys()
    return frozenset(each for each in found if each.startswith(f"{transcripts.FORMAT}:"))


def _name_for(home: Home, source: ForeignSession) -> str:
    """Return the id of the session that a source becomes; the same at each import."""
    plain = as_agent(source.id.rpartition("/")[2]) or "session"
    if source.format not in ("000", "001", "003", "004", "smp"):
        plain = f"{source.format}-{plain}"
    kept = "".join(c for c in source.id if c.isalnum() or c in "-_")
    name = (
        source.id
        if kept == source.id and source.format in ("001", "003", "004", "smp", "000")
        else plain
    )
    name = name[:_LONGEST_ID].strip("-_") or "session"
    for number in range(1, 1000):
        candidate = name if number == 1 else f"{name[: _LONGEST_ID - 4]}-{number}"
        if _is_free_or_of(home, candidate, source):
            return candidate
    raise InvalidError(f"no name is left for session {source.id}", hint="name one with --session")


def _is_free_or_of(home: Home, name: str, source: ForeignSession) -> bool:
    if name.lower() not in {each.lower() for each in stores.session_ids(home.path)}:
        return True
    with suppress(SmpError), _opened(home, name) as handle:
        return handle.metadata.context.get("source") == source.name
    return False


@contextmanager
def _opened(home: Home, name: str) -> Iterator[Handle]:
    handle = stores.open_by_id(home, name)
    try:
        yield handle
    finally:
        opening.close(handle)


class _Known(NamedTuple):
    """The memories that a session has from a source, by their names there; and what is not to come."""

    ids: dict[str, MemoryId]
    gone: frozenset[str]
    uid: str
    bytes: int


class _Intake:
    """One source on its way into one session, or into several if it is too large for one."""

    def __init__(
        self,
        home: Home,
        source: ForeignSession,
        name: str,
        wanted: ImportOptions,
        recorded: frozenset[str],
    ) -> None:
        self._home, self._source, self._wanted = home, source, wanted
        self._recorded = recorded
        self._name = name
        self._part = 1
        self._ids: dict[str, MemoryId] = {}
        self._before: dict[str, str] = {}
        self._taken = 0
        self._gone: list[str] = []

    def run(self) -> Iterator[Imported]:
        """Yield what became of each part."""
        known = self._known_of_all_parts()
        settings = self._home.settings
        quota = self._wanted.quota or settings.quota_bytes
        limit = quota * (settings.quota_warn_percent - _BELOW_WARNING) // 100
        report = self._report()
        batch: list[ForeignMemory] = []
        size = known.bytes
        for item in self._source.items:
            if isinstance(item, ForeignDeletion):
                self._gone.append(f"{self._source.name}/{item.id}")
            if isinstance(item, ForeignMemory) and self._is_recorded(item):
                report.known += 1
                continue
            entry = _counted(item, report, known, self._source)
            if entry is None:
                continue
            weight = _weight(entry)
            if size + weight > limit and (batch or size):
                later = _from_last_day(batch)
                self._write(batch[: len(batch) - len(later)], report, known)
                yield report
                report, batch, known = self._next_part(), later, known._replace(bytes=0)
                size = sum(map(_weight, later))
            batch.append(entry)
            size += weight
        self._write(batch, report, known)
        yield report

    def _is_recorded(self, item: ForeignMemory) -> bool:
        """Whether a hook recorded a turn, in whatever session it was used in."""
        return source_of(self._source, item) in self._recorded

    def _report(self) -> Imported:
        return Imported(session=self._session, source=self._source.name)

    @property
    def _session(self) -> str:
        return self._name if self._part == 1 else f"{self._name[: _LONGEST_ID - 4]}-p{self._part}"

    def _next_part(self) -> Imported:
        # A link may lead into another session; other references are kept beside.
        self._before |= {key: f"{self._session}:{name}" for key, name in self._ids.items()}
        self._part += 1
        self._ids = {}
        return self._report()

    def _known_of_all_parts(self) -> _Known:
        """Return what earlier imports brought, and go on where the last one ended."""
        ids: dict[str, MemoryId] = {}
        gone: frozenset[str] = frozenset()
        uid, size, here = "", 0, dict[str, MemoryId]()
        while self._session in stores.session_ids(self._home.path) or self._is_shared_there():
            with _opened(self._home, self._session) as handle:
                here, size = _sources(handle)
                gone |= _gone(handle)
                uid = uid or handle.metadata.uid
            ids |= here
            self._part += 1
            if self._session not in stores.session_ids(self._home.path):
                self._part -= 1
                break
        self._ids = dict(here)
        return _Known(ids, gone, uid, size)

    def _is_shared_there(self) -> bool:
        return self._session == GLOBAL and (self._home.path / GLOBAL / ".git").is_dir()

    def _write(self, batch: Sequence[ForeignMemory], report: Imported, known: _Known) -> None:
        if self._wanted.dry_run:
            report.added.update(entry.kind for entry in batch)
            report.created = not known.ids
            return
        there = self._session in stores.session_ids(self._home.path) or self._is_shared_there()
        if not there and not batch and not report.deleted:
            return
        if not there:
            _create(self._home, self._session, self._source, report, self._wanted.quota)
        with _opened(self._home, self._session) as handle:
            edits.never_import(handle, set(self._gone) - known.ids.keys(), None)
            drafts = list(_drafts(handle, batch, self._source, report))
            if drafts:
                self._commit(handle, drafts, report)

    def _commit(
        self, handle: Handle, drafts: Sequence[tuple[ForeignMemory, Draft | None]], report: Imported
    ) -> None:
        names = [entry for entry, draft in drafts if draft is not None]
        with Transaction(handle, None, f"import from {self._source.format}") as tx:
            ids = tx.reserve(Counter(entry.kind for entry in names))
            for entry in names:
                self._ids[entry.id] = next(ids[entry.kind])
            for entry, draft in drafts:
                if draft is None:
                    _set_state(tx, entry, self._source, self._ids, report)
                else:
                    tx.put(_linked(draft, entry, self._ids, self._before))
                report.added[entry.kind] += 1
                self._taken += 1
                if self._taken % _PROGRESS_EVERY == 0:
                    self._wanted.progress(self._taken)
        if tx.change is not None:
            report.redacted = merged([report.redacted, tx.change.redacted])
        _count_reads(handle, [entry for entry, _ in drafts], self._ids)


def _counted(
    item: Item, report: Imported, known: _Known, source: ForeignSession
) -> ForeignMemory | None:
    """Note what an item is; return it if it is a memory to be taken in."""
    if isinstance(item, Trouble):
        report.problems.append(item)
    elif isinstance(item, PassedOver):
        report.left_out[item.what] += item.count
    elif isinstance(item, ForeignDeletion):
        report.deleted += 1
    elif source_of(source, item) in known.ids:
        report.known += 1
    elif known.gone and imports.digest(known.uid, source_of(source, item)) in known.gone:
        report.deleted += 1
    else:
        return item
    return None


def source_of(source: ForeignSession, entry: ForeignMemory) -> str:
    """Return what a memory is called in its source, with its session and format."""
    return f"{source.name}/{entry.id or entry.where}"


def _weight(entry: ForeignMemory) -> int:
    return len(entry.text.encode()) + len(json.dumps(dict(entry.fields))) + _OVERHEAD


def _from_last_day(batch: Sequence[ForeignMemory]) -> list[ForeignMemory]:
    """Return the entries of the last day if they are the smaller half: parts begin with a day."""
    last = batch[-1].at.date() if batch and batch[-1].at else None
    later = []
    for entry in reversed(batch):
        if last is None or entry.at is None or entry.at.date() != last:
            break
        later.append(entry)
    return list(reversed(later)) if len(later) * 2 < len(batch) else []


def _sources(handle: Handle) -> tuple[dict[str, MemoryId], int]:
    snapshot = handle.reader.snapshot()
    found = {
        source: memory.id
        for memory in snapshot.memories()
        if (source := edits.source_of(memory)) is not None
    }
    return found, sizes.tracked_bytes(handle.reader, snapshot)


def _gone(handle: Handle) -> frozenset[str]:
    snapshot = handle.reader.snapshot()
    blob = snapshot.repository.find(snapshot.tree, imports.PATH)
    return imports.read(snapshot.repository.blob(blob)) if blob else frozenset()


def _create(
    home: Home, name: str, source: ForeignSession, report: Imported, quota: int | None
) -> None:
    """Make the session that a source becomes; what its rules refuse is left out and named."""
    now = min(home.clock(), source.created_at or home.clock())
    report.created = True
    if name == GLOBAL:
        stores.create_session(home, GLOBAL, now)
        return
    new = stores.new_id(home, name, now)
    context = {**source.context, "source": source.name}
    agents = [agent for each in source.agents if (agent := as_agent(each))]
    user, tags = as_agent(source.user) or None, _tags(source.tags)
    own = {"quota_bytes": quota} if quota else {}
    try:
        stores.create_session(
            home,
            new,
            now,
            user=user,
            agents=agents,
            context=context,
            tags=tags,
            overrides={**source.overrides, **own},
        )
    except InvalidError as error:
        why = f"the session says less than its source: {error.message}"
        report.problems.append(Trouble(where=source.name, reason=why))
        stores.create_session(home, new, now, context=context, overrides=own)


def _tags(given: Iterable[str]) -> list[str]:
    return [tag for each in given if (tag := as_tag(each))]


def _drafts(
    handle: Handle, batch: Sequence[ForeignMemory], source: ForeignSession, report: Imported
) -> Iterator[tuple[ForeignMemory, Draft | None]]:
    """Yield each entry with its draft, None for a state; what cannot be stored is a problem."""
    found = list[Report]()
    for entry in batch:
        if entry.kind == "state":
            yield entry, None
            continue
        try:
            draft = _draft(handle, entry, source)
        except InvalidError as error:
            report.problems.append(Trouble(where=entry.where, reason=error.message))
            continue
        found.append(draft.redacted)
        yield entry, draft
    report.redacted = merged(found)


def _draft(handle: Handle, entry: ForeignMemory, source: ForeignSession) -> Draft:
    own = entry.fields.get("source")
    key = "source" if own is None else f"source{GIVEN}"
    fields: dict[str, object] = {
        **{name: value for name, value in entry.fields.items() if name not in REFERENCES},
        key: source_of(source, entry),
    }
    text = entry.text if entry.text.strip() or entry.kind == "artifact" else _instead(entry)
    who = entry.agent or agent_name(handle.actor(None))
    try:
        return edits.new(handle, entry.kind, text, who, entry.tags, (), entry.at, fields)
    except InvalidError:
        # A secret in a name is taken out of it with the name; the text stays.
        return edits.new(handle, entry.kind, text, handle.actor(None), (), (), entry.at, fields)


def _instead(entry: ForeignMemory) -> str:
    """Return a text for a memory that has only fields."""
    said = [f"{name}: {value}" for name, value in entry.fields.items() if isinstance(value, str)]
    if not said:
        raise InvalidError(f"a {entry.kind} needs text")
    return "\n".join(said)


def _linked(
    draft: Draft,
    entry: ForeignMemory,
    ids: Mapping[str, MemoryId],
    elsewhere: Mapping[str, str],
) -> Draft:
    """Return a draft with its links and references under the ids that they have here."""
    fields = dict(draft.fields)
    links = list(draft.links)
    lost: list[Value] = []
    for word, target in entry.links:
        here = ids.get(target) or elsewhere.get(target)
        if here is not None:
            links.append(Link(word, MemoryId(here)))
        else:
            lost.append(f"{word}:{target}")
    if lost:
        fields[f"links{GIVEN}"] = lost
    fields |= _references(entry, ids)
    return replace(draft, links=tuple(dict.fromkeys(links)), fields=MappingProxyType(fields))


def _references(entry: ForeignMemory, ids: Mapping[str, MemoryId]) -> dict[str, Value]:
    """Return the fields that name memories, under their ids here; what names others is kept beside."""
    out: dict[str, Value] = {}
    for name in REFERENCES:
        if name not in entry.fields:
            continue
        given = entry.fields[name]
        here = _mapped(given, ids)
        if here not in (None, [], {}, ""):
            try:
                out |= check_fields(KINDS[entry.kind], {name: here})
            except InvalidError:
                here = None
        if _count(here) < _count(given):
            out[name + GIVEN] = given
    return out


def _mapped(value: Value, ids: Mapping[str, MemoryId]) -> Value:
    """Return a value with the ids of what was taken in, and without those of anything else."""
    if isinstance(value, str):
        return ids.get(value)
    if isinstance(value, list):
        return [here for each in value if (here := _mapped(each, ids)) is not None]
    if isinstance(value, dict):
        return {name: _mapped(each, ids) for name, each in value.items()}
    return value


def _count(value: Value) -> int:
    """Return how many texts a value holds."""
    if isinstance(value, list):
        return sum(map(_count, value))
    if isinstance(value, dict):
        return sum(map(_count, value.values()))
    return int(isinstance(value, str))


def _set_state(
    tx: Transaction,
    entry: ForeignMemory,
    source: ForeignSession,
    ids: Mapping[str, MemoryId],
    report: Imported,
) -> None:
    fields: dict[str, object] = {
        name: value for name, value in entry.fields.items() if name not in REFERENCES
    }
    fields["source"] = source_of(source, entry)
    fields |= _references(entry, ids)
    if entry.at is not None:
        fields["last_updated"] = format_time(entry.at)
    try:
        tx.set_state(entry.agent or "agent", fields)
    except InvalidError as error:
        report.problems.append(Trouble(where=entry.where, reason=error.message))


def _count_reads(
    handle: Handle, entries: Iterable[ForeignMemory], ids: Mapping[str, MemoryId]
) -> None:
    read: dict[str, tuple[int, datetime]] = {}
    for entry in entries:
        last = entry.last_read or entry.at
        if entry.reads and last is not None and entry.id in ids:
            read[ids[entry.id]] = entry.reads, last
    handle.accesses.take(read)


def import_path(
    home: Home,
    path: Path,
    *,
    as_format: str | None,
    session: str | None,
    quota: int | None,
    dry_run: bool,
    progress: Callable[[int], None],
) -> Import:
    """Take in what is at a path."""
    name = format_of(path, as_format)
    if name == BUNDLE:
        made = bundle.take(home, path, session)
        return Import(format=name, sessions=(_of_bundle(home, made.name),))
    into = _into(home, session) if session is not None else None
    wanted = ImportOptions(into, quota, dry_run, progress)
    try:
        done = _joined(take(home, FORMATS[name].read(path), wanted))
    except OSError as error:
        raise InvalidError(f"{error.filename or path} cannot be read: {error.strerror}") from None
    if not done:
        raise InvalidError(f"{path} holds no session", hint=f"it was read as {name}; see --as")
    return Import(format=name, sessions=tuple(done), dry_run=dry_run)


def _of_bundle(home: Home, name: str) -> Imported:
    with _opened(home, name) as handle:
        snapshot = handle.reader.snapshot()
        kinds = Counter(parse_id(entry.id).kind.name for entry in snapshot.entries())
    return Imported(session=name, source=BUNDLE, created=True, added=kinds)


def _joined(found: Iterable[Imported]) -> list[Imported]:
    """Return what became of the sessions; troubles that belong to none go with the one before."""
    done: list[Imported] = []
    for each in found:
        empty = not (each.added or each.known or each.deleted or each.left_out or each.created)
        if empty and done and each.problems:
            done[-1].problems.extend(each.problems)
        else:
            done.append(each)
    return done


def _into(home: Home, text: str) -> str:
    """Return the id of the session that an import goes into: one that is there, or a new one."""
    try:
        return stores.find_session(home.path, text)
    except SessionNotFoundError:
        return GLOBAL if text == GLOBAL else stores.new_id(home, text, home.clock())
