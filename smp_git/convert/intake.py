"""Entries of another program taken into sessions: nothing twice, nothing that was deleted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.convert import bundle, drafts, revising, transcripts
from smp_git.convert.entries import (
    ForeignArchive,
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
from smp_git.convert.ledger import FOLDER, Ledger, SessionPart, part_of
from smp_git.convert.report import Import, Imported
from smp_git.convert.revising import KnownEntry
from smp_git.format import imports
from smp_git.keep import archive, stores
from smp_git.keep.every import opened
from smp_git.model.errors import (
    ConflictError,
    InvalidError,
    SessionNotFoundError,
    SmpError,
    StorageError,
)
from smp_git.model.ids import parse_id
from smp_git.model.memory import VALUE, MemoryId, Value, check_key, is_same
from smp_git.model.secrets.rules import merged
from smp_git.read import archives, sizes
from smp_git.read.imported import taken
from smp_git.read.values import SeenValues
from smp_git.remove.forgotten import SOURCE
from smp_git.write import edits
from smp_git.write.handle import GLOBAL, Handle, Home
from smp_git.write.stage import Draft, Stage
from smp_git.write.transaction import Transaction

# So much below the warning an import ends a part: what is written later does not compact it at once.
_BELOW_WARNING: Final = 5
# What a memory takes beside its text: its keys, its index line, its page.
_OVERHEAD: Final = 600
_PROGRESS_EVERY: Final = 200
# How often an import looks again because somebody else wrote the same meanwhile.
_TRIES: Final = 5
# Entries that are here already are compared in groups of so many bytes.
_COMPARED_BYTES: Final = 4_000_000


class ImportOptions(NamedTuple):
    """How an import is to be done."""

    session: str | None = None
    # The bytes of a session; None is what the settings say.
    quota: int | None = None
    dry_run: bool = False
    # Whether sessions that were deleted here come in too.
    again: bool = False
    progress: Callable[[int], None] = lambda _: None


def take(
    home: Home, sources: Iterable[ForeignSession], wanted: ImportOptions
) -> Iterator[Imported]:
    """Take sessions in one by one, each in one commit for each session that it becomes.

    What one of them cannot be written for is a problem, and the others are taken in;
    but a disk that takes none of them is an error.
    """
    is_any_in = False
    ledger = Ledger(home, again=wanted.again or wanted.session is not None)
    for source in sources:
        name = wanted.session or (GLOBAL if source.shared else ledger.name_for(source))
        if name is None:
            yield Imported(session="", source=source.name, was_deleted=True)
            continue
        try:
            for each in _Intake(home, ledger, ledger.known_as(name, source), name, wanted).run():
                is_any_in = True
                yield each
        except SmpError as error:
            if isinstance(error, StorageError) and not is_any_in:
                raise
            why = error.message + (f"; {error.hint}" if error.hint else "")
            trouble = Trouble(where=source.name, reason=why)
            yield Imported(session=name, source=source.name, problems=[trouble])


class _Intake:
    """One source on its way into one session, or into several if it is too large for one."""

    def __init__(
        self, home: Home, ledger: Ledger, source: ForeignSession, name: str, wanted: ImportOptions
    ) -> None:
        self._home, self._ledger, self._source, self._wanted = home, ledger, source, wanted
        self._name = name
        # What the source is called, and its memories begin with.
        self._origin = source.name
        self._parts = list(ledger.parts(name, None if wanted.session else source))
        there = [part for part in self._parts if not part.is_deleted]
        self._part = there[-1] if there else SessionPart(name)
        # The ids of the source in the part that is written, and in the others with their sessions.
        self._ids: dict[str, MemoryId] = {}
        self._before: dict[str, str] = {}
        for part in there:
            self._know(part)
        self._seen = Counter[str]()
        self._gone: list[str] = []
        self._again: list[tuple[SessionPart, KnownEntry]] = []
        self._again_bytes = 0
        self._count = 0
        self._touched: dict[str, Mapping[str, Value] | None] = {}

    def run(self) -> Iterator[Imported]:
        """Yield what became of each part."""
        settings = self._home.settings
        quota = self._wanted.quota or settings.quota_bytes
        limit = quota * (settings.quota_warn_percent - _BELOW_WARNING) // 100
        report, batch, size = self._report(), list[ForeignMemory](), -1
        for item in self._source.items:
            entry = self._new(item, report)
            if entry is None:
                continue
            weight, size = _weight(entry), self._bytes() if size < 0 else size
            if size + weight > limit and (batch or size):
                later = _from_last_day(batch)
                self._write(batch[: len(batch) - len(later)], report)
                yield report
                report, batch = self._next_part(), later
                size = sum(map(_weight, later))
            batch.append(entry)
            size += weight
        self._write(batch, report)
        self._revise(report)
        if self._source.archived is not None:
            self._put_away(self._source.archived)
        yield report

    def _new(self, item: Item, report: Imported) -> ForeignMemory | None:
        """Note what an item is; return it if it is a memory that is to be taken in."""
        if isinstance(item, Trouble):
            report.problems.append(item)
        elif isinstance(item, PassedOver):
            report.left_out[item.what] += item.count
        elif isinstance(item, ForeignDeletion):
            self._note_deleted(item, report)
        else:
            entry = self._apart(item)
            if not self._is_settled(entry, report):
                return entry
        return None

    def _note_deleted(self, item: ForeignDeletion, report: Imported) -> None:
        """Note that the source deleted something; what is here of it is named, and stays."""
        source = f"{self._origin}/{item.id}"
        here = [each for each in self._parts if not each.is_deleted and source in each.taken.ids]
        for part in here:
            name = part.taken.ids[source]
            why = f"deleted there since it was imported; smp -s {part.name} delete {name} follows"
            report.problems.append(Trouble(where=source, reason=why))
        if not here:
            report.deleted += 1
            self._gone.append(source)

    def _source_of(self, entry: ForeignMemory) -> str:
        """Return what a memory is called in its source, with its session and format."""
        return f"{self._origin}/{entry.id or entry.where}"

    def _apart(self, entry: ForeignMemory) -> ForeignMemory:
        """Return an entry whose id no other one of the source has: the second gets a number."""
        name = entry.id or entry.where
        self._seen[name] += 1
        number = self._seen[name]
        return entry if number == 1 else replace(entry, id=f"{name}#{number}")

    def _is_settled(self, entry: ForeignMemory, report: Imported) -> bool:
        """Whether an entry is here, was deleted or cannot be stored; the report has it then."""
        source = self._source_of(entry)
        if self._is_own(entry, report):
            return True
        for part in self._parts:
            is_in = source in part.taken.ids
            if is_in or part.taken.has_had(source):
                # What an archive has, and what was deleted from it, is not told apart.
                is_here = not part.is_deleted and (is_in or part.is_archived)
                report.known += is_here
                report.deleted += not is_here
                if is_in and is_here:
                    self._compare(part, entry, source, report)
                return True
        if self._source.format == transcripts.FORMAT and self._ledger.is_recorded(source):
            report.known += 1
            return True
        if self._ledger.was_purged(source):
            report.deleted += 1
            return True
        why = drafts.refusal(entry)
        if why is not None:
            report.problems.append(Trouble(where=entry.where, reason=why))
        return why is not None

    def _is_own(self, entry: ForeignMemory, report: Imported) -> bool:
        """Whether an entry is of the session that it is to go into, and is or was there."""
        for taken_in in (part.taken for part in self._parts if not part.is_deleted):
            if not self._source.uid or taken_in.uid != self._source.uid:
                continue
            is_here = entry.id in taken_in.here
            if is_here and entry.kind in ("state", VALUE):
                # Those are compared by their names.
                return False
            if is_here or taken_in.has_had_own(entry.id):
                report.known += is_here
                report.deleted += not is_here
                return True
        return False

    def _compare(
        self, part: SessionPart, entry: ForeignMemory, source: str, report: Imported
    ) -> None:
        """Have an entry compared that is here already; a turn never changes, a value by its program."""
        if entry.kind not in ("turn", VALUE):
            self._again.append((part, KnownEntry(entry, source, part.taken.ids[source])))
            self._again_bytes += _weight(entry)
        if self._again_bytes > _COMPARED_BYTES:
            self._revise(report)

    def _revise(self, report: Imported) -> None:
        """Change what the source changed since it was taken in."""
        waiting, self._again, self._again_bytes = self._again, [], 0
        for name in dict.fromkeys(part.name for part, _ in waiting):
            known = [each for part, each in waiting if part.name == name]
            ids = self._ids if name == self._part.name else self._of(name)
            with opened(self._home, name) as handle:
                for left in reversed(range(_TRIES)):
                    before = deepcopy(report)
                    try:
                        self._change(handle, known, ids, report)
                        break
                    except ConflictError:
                        if not left:
                            raise
                        report.take_back(before)

    def _change(
        self,
        handle: Handle,
        known: Sequence[KnownEntry],
        ids: Mapping[str, MemoryId],
        report: Imported,
    ) -> None:
        """Change what the source changed; raise ConflictError if somebody else does so meanwhile."""
        # Begun before anything is compared: what changes after that is in the way.
        with Transaction(handle, None, self._reason) as tx:
            found = list(revising.revisions(handle, known, ids, self._before, report))
            report.updated.update(each.memory.kind for each in found)
            if not found or self._wanted.dry_run:
                tx.rollback()
                return
            for each in found:
                each.stage(tx)

    @property
    def _reason(self) -> str:
        return f"{revising.REASON} {self._source.format}"

    def _of(self, name: str) -> dict[str, MemoryId]:
        """Return the ids of the source in one of its sessions."""
        head = f"{self._origin}/"
        return {
            source.removeprefix(head): here
            for part in self._parts
            if part.name == name
            for source, here in part.taken.ids.items()
            if source.startswith(head)
        }

    def _know(self, part: SessionPart) -> None:
        """Take note of the ids that the source has in a part."""
        found = self._of(part.name)
        if part.name == self._part.name:
            self._ids |= found
        else:
            self._before |= {key: f"{part.name}:{here}" for key, here in found.items()}

    def _report(self) -> Imported:
        return Imported(session=self._part.name, source=self._origin)

    def _next_part(self) -> Imported:
        self._before |= {key: f"{self._part.name}:{here}" for key, here in self._ids.items()}
        self._ids = {}
        self._parts = [each for each in self._parts if each.name != self._part.name]
        self._parts.append(self._part)
        known, number = {part.name for part in self._parts}, 2
        while part_of(self._name, number) in known or self._ledger.is_taken(
            part_of(self._name, number)
        ):
            number += 1
        self._part = SessionPart(part_of(self._name, number))
        return self._report()

    def _bytes(self) -> int:
        if not self._ledger.is_there(self._part.name):
            return 0
        with opened(self._home, self._part.name) as handle:
            return sizes.tracked_bytes(handle.reader, handle.reader.snapshot())

    def _write(self, batch: Sequence[ForeignMemory], report: Imported) -> None:
        name = self._part.name
        is_there = self._ledger.is_there(name)
        if self._wanted.dry_run:
            report.added.update(entry.kind for entry in batch)
            report.created = bool(batch) and not is_there and not self._part.is_archived
            return
        if not batch and not (self._gone and not self._part.is_archived):
            return
        if self._part.is_archived:
            batch = self._restored(batch, report)
        elif not is_there:
            _create(self._home, name, self._source, report, self._wanted.quota)
            self._ledger.note_active(name)
        self._touched.setdefault(name, None)
        with opened(self._home, name) as handle:
            edits.never_import(handle, self._gone, None)
            for left in reversed(range(_TRIES)):
                before = deepcopy(report)
                try:
                    self._commit(handle, batch, report)
                    break
                except ConflictError:
                    if not left:
                        raise
                    # Somebody else wrote meanwhile: an agent, a hook, another import.
                    report.take_back(before)
                    batch = self._unknown(handle, batch, report)

    def _restored(self, batch: Sequence[ForeignMemory], report: Imported) -> list[ForeignMemory]:
        """Restore the part from its archive; return what of a batch it really has not."""
        name = self._part.name
        self._touched[name] = archive.kept_of(self._home.path, name)
        archive.restore(self._home, name, reason=self._reason)
        self._ledger.note_active(name)
        with opened(self._home, name) as handle:
            return self._unknown(handle, batch, report)

    def _unknown(
        self, handle: Handle, batch: Sequence[ForeignMemory], report: Imported
    ) -> list[ForeignMemory]:
        """Return what of a batch the part has not, as it is now."""
        name = self._part.name
        self._part = SessionPart(name, taken(handle.reader.snapshot()))
        self._parts = [each for each in self._parts if each.name != name] + [self._part]
        self._know(self._part)
        return [entry for entry in batch if not self._is_settled(entry, report)]

    def _put_away(self, said: ForeignArchive) -> None:
        """Archive what was archived in the source, as it was there or as it was here before."""
        for name, before in self._touched.items():
            if before is None:
                archive.archive(
                    self._home, name, reason=said.reason, by=as_agent(said.by) or None, at=said.at
                )
            else:
                archive.archive_again(self._home, name, before)

    def _drafts(
        self, handle: Handle, batch: Sequence[ForeignMemory], report: Imported
    ) -> Iterator[tuple[ForeignMemory, Draft | None]]:
        """Yield each entry with its draft, None for what has none; what cannot be stored is a problem."""
        for entry in batch:
            if entry.kind == VALUE:
                if not self._has_value(handle, entry, report):
                    yield entry, None
                continue
            if entry.kind == "state":
                if not self._has_state(handle, entry, report):
                    yield entry, None
                continue
            try:
                yield entry, drafts.draft_of(handle, entry, self._source_of(entry))
            except InvalidError as error:
                report.problems.append(Trouble(where=entry.where, reason=error.message))

    def _has_state(self, handle: Handle, entry: ForeignMemory, report: Imported) -> bool:
        """Whether an agent has a state here already, which is then compared and not replaced."""
        known = MemoryId(f"state-{_agent(entry)}")
        if handle.reader.snapshot().blob(known) is None:
            return False
        report.known += 1
        self._again.append((self._part, KnownEntry(entry, self._source_of(entry), known)))
        return True

    def _has_value(self, handle: Handle, entry: ForeignMemory, report: Imported) -> bool:
        """Whether there is a value under a key already, which its program may have changed since."""
        try:
            key = check_key(entry.fields.get("key"))
        except InvalidError as error:
            report.problems.append(Trouble(where=entry.where, reason=error.message))
            return True
        known = SeenValues(handle.reader.snapshot()).get(key)
        if known is not None and not is_same(known.value, drafts.value_of(entry)):
            why = "the session has another value under its key"
            report.problems.append(Trouble(where=entry.where, reason=why))
        elif known is not None:
            report.known += 1
        return known is not None

    def _commit(self, handle: Handle, batch: Sequence[ForeignMemory], report: Imported) -> None:
        """Write a batch; raise ConflictError if something of it came in by another way meanwhile."""
        guarded = replace(handle, guard=self._refuse_known)
        with Transaction(guarded, None, self._reason) as tx:
            found = list(self._drafts(handle, batch, report))
            if not found:
                tx.rollback()
                return
            added = [entry for entry, draft in found if draft is not None]
            ids = tx.reserve(Counter(entry.kind for entry in added))
            for entry in added:
                self._ids[entry.id] = next(ids[entry.kind])
            for entry, draft in found:
                if entry.kind == VALUE:
                    self._put_value(tx, entry, report)
                elif draft is None:
                    self._set_state(tx, entry, report)
                else:
                    tx.put(drafts.linked(draft, entry, self._ids, self._before))
                report.added[entry.kind] += 1
                self._count += 1
                if self._count % _PROGRESS_EVERY == 0:
                    self._wanted.progress(self._count)
        if tx.change is not None:
            report.redacted = merged([report.redacted, tx.change.redacted])
        _count_reads(handle, [entry for entry, _ in found], self._ids)

    def _refuse_known(self, stage: Stage) -> None:
        """Raise ConflictError if the part has, or had, something of what is staged by now."""
        if stage.base.id == self._part.taken.head:
            return
        sources = {imports.source_of(memory) for memory in stage.memories.values()} - {None}
        now = taken(stage.base)
        if any(source in now.ids or now.has_had(str(source)) for source in sources):
            raise ConflictError("what is imported came in by another way meanwhile")

    def _set_state(self, tx: Transaction, entry: ForeignMemory, report: Imported) -> None:
        fields = drafts.state_fields(entry, self._source_of(entry), self._ids)
        try:
            tx.set_state(_agent(entry), fields)
        except InvalidError as error:
            report.problems.append(Trouble(where=entry.where, reason=error.message))

    def _put_value(self, tx: Transaction, entry: ForeignMemory, report: Imported) -> None:
        key, source = check_key(entry.fields["key"]), self._source_of(entry)
        try:
            tx.values("redact").put(key, drafts.value_of(entry), beside={"source": source})
        except InvalidError as error:
            report.problems.append(Trouble(where=entry.where, reason=error.message))


def _agent(state: ForeignMemory) -> str:
    return state.agent or "agent"


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
    place = {FOLDER: str(source.place)} if source.place else {}
    context = {**place, **source.context, SOURCE: source.name}
    agents = [agent for each in source.agents if (agent := as_agent(each))]
    user, tags = as_agent(source.user) or None, _tags(source.tags)
    own = {"quota_bytes": quota} if quota else {}
    wanted = {**source.overrides, **own}
    for settings in (wanted, own) if source.overrides else (own,):
        try:
            stores.create_session(
                home,
                new,
                now,
                user=user,
                agents=agents,
                context=context,
                tags=tags,
                overrides=settings,
            )
        except InvalidError as error:
            why = f"the session says less than its source: {error.message}"
            report.problems.append(Trouble(where=source.name, reason=why))
        else:
            return
    stores.create_session(home, new, now, context=context, overrides=own)


def _tags(given: Iterable[str]) -> list[str]:
    return [tag for each in given if (tag := as_tag(each))]


def _count_reads(
    handle: Handle, entries: Iterable[ForeignMemory], ids: Mapping[str, MemoryId]
) -> None:
    read: dict[str, tuple[int, datetime]] = {}
    for entry in entries:
        last = entry.last_read or entry.at
        if entry.reads and last is not None and entry.id in ids:
            read[ids[entry.id]] = entry.reads, last
    handle.accesses.take(read)


def import_path(home: Home, path: Path, *, as_format: str | None, wanted: ImportOptions) -> Import:
    """Take in what is at a path."""
    name = format_of(path, as_format)
    if name == BUNDLE:
        made = bundle.take(home, path, wanted.session)
        return Import(format=name, sessions=(_of_bundle(home, made.name),))
    if wanted.session is not None:
        wanted = wanted._replace(session=_into(home, wanted.session))
    try:
        done = _joined(take(home, FORMATS[name].read(path), wanted))
    except SmpError:
        # One of a disk that refuses writes is an OSError too.
        raise
    except OSError as error:
        raise InvalidError(f"{error.filename or path} cannot be read: {error.strerror}") from None
    if not done:
        raise InvalidError(f"{path} holds no session", hint=f"it was read as {name}; see --as")
    return Import(format=name, sessions=tuple(done), dry_run=wanted.dry_run)


def _of_bundle(home: Home, name: str) -> Imported:
    with opened(home, name) as handle:
        snapshot = handle.reader.snapshot()
        kinds = Counter(parse_id(entry.id).kind.name for entry in snapshot.entries())
    return Imported(session=name, source=BUNDLE, created=True, added=kinds)


def _joined(found: Iterable[Imported]) -> list[Imported]:
    """Return what became of the sessions; troubles that belong to none go with the one before."""
    done: list[Imported] = []
    for each in found:
        if done and each.problems and not each.says_something:
            done[-1].problems.extend(each.problems)
        else:
            done.append(each)
    return done


def _into(home: Home, text: str) -> str:
    """Return the id of the session that an import goes into: one that is there, or a new one."""
    if text in archives.names(home.path):
        return text
    with suppress(SessionNotFoundError):
        return stores.find_session(home.path, text)
    return GLOBAL if text == GLOBAL else stores.new_id(home, text, home.clock())
