"""Memories brought back under their own id, as a life of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from smp_git.format import document, records
from smp_git.format.document import life_of
from smp_git.format.messages import RESTORE_BATCH
from smp_git.format.records import Tombstones
from smp_git.model.errors import (
    AlreadyExistsError,
    DamagedError,
    InvalidError,
    InvalidFileError,
    MemoryNotFoundError,
    RefusedError,
)
from smp_git.model.ids import (
    FIRST,
    PURGED,
    REDACTED,
    RESTORE,
    Edge,
    Id,
    Lives,
    is_id,
    new_life,
    parse_id,
    short_id,
)
from smp_git.model.memory import VALUE, CommitId, MemoryId, check_key
from smp_git.model.results import Result
from smp_git.model.times import format_time
from smp_git.read.history import stamp
from smp_git.read.values import place_of
from smp_git.remove.audit import DROPPED, Record
from smp_git.remove.history.search import DeadVersion
from smp_git.remove.interrupted import site_of
from smp_git.remove.site import Site
from smp_git.write.handle import Handle
from smp_git.write.merge import memories
from smp_git.write.merge.memories import Stamp
from smp_git.write.stage import Stage
from smp_git.write.writer import Work

# One restoration at a time; the next one waits until the record of the one before is written.
_PATIENCE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored(Result):
    """Result of a restoration: the memories, and how many earlier versions.

    `merged` are those that lived, into which the versions of a dropped branch were merged.

    >>> gone = session.delete("FIND-0001")
    >>> session.restore("FIND-0001").ids
    ('FIND-0001',)
    """

    ids: tuple[MemoryId, ...]
    commit: CommitId | None
    versions: int
    unreadable: int
    merged: tuple[MemoryId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Return:
    """One memory on its way back: its record, the life that begins, its versions in order."""

    id: MemoryId
    record: Record
    life: str
    versions: Sequence[DeadVersion]
    # Whether it was never deleted, and is on the present branch.
    lives_on: bool = False

    @property
    def origin(self) -> str:
        """The life that the restored version had."""
        return _current(self).life or FIRST


def restore(
    handle: Handle,
    ids: str | Iterable[str],
    *,
    with_history: bool,
    reason: str | None,
    by: str | None,
) -> Restored:
    """Bring memories back; with `with_history` their earlier versions as new commits first.

    All or none, in one step. Raises AlreadyExistsError for a memory that lives,
    RefusedError after the deadline, a purge or a redaction, and DamagedError if the key
    is lost or wrong.
    """
    given = (ids,) if isinstance(ids, str) else tuple(ids)
    site, now, who = site_of(handle), handle.clock(), handle.actor(by)
    site.sweep()
    copies, why = _Copies(site), site.reason(reason)
    names = tuple(dict.fromkeys(name for each in given for name in copies.named(each)))
    returns = _found(site, names, now, copies)
    unreadable = 0
    works: list[Work] = []
    versions = 0
    if with_history:
        works, versions, unreadable = _history(site, returns)
    works.append(Work(who, _staging(site, returns), RESTORE_BATCH))
    with site.marking(_PATIENCE_SECONDS):
        change = site.writer.run_all(works, why)
        with site.writer.holding("restoring"):
            site.reader.local.keep_tombstones(_records(returns))
        # In this order: a record that says so means that the log tells of it.
        site.note("restore", at=now, by=who, ids=names, reason=why)
        _mark(site, returns, now)
    merged = tuple(item.id for item in returns if item.lives_on)
    return Restored(
        ids=names, commit=change.commit, versions=versions, unreadable=unreadable, merged=merged
    )


def _found(site: Site, names: Iterable[MemoryId], now: datetime, copies: _Copies) -> list[_Return]:
    found = []
    known = site.tombstones()
    for name in names:
        record = _record_of(site, name, now, known, copies.holding(name))
        item = _Return(id=name, record=record, life="", versions=copies.versions(record, name))
        if record.action == DROPPED and not known.is_dead(name, item.origin):
            # It was never deleted: what only the branch had is brought together with it.
            found.append(replace(item, lives_on=site.reader.snapshot().blob(name) is not None))
            continue
        _check_restorable(name, known.lives(name), item.origin)
        found.append(replace(item, life=new_life()))
    return found


def _is_short_for(short: Id, full: Id) -> bool:
    return (short.kind, short.number) == (full.kind, full.number) and short.tag in ("", full.tag)


class _Copies:
    """The records and copies of a session, each read and opened once for many memories."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._holding: dict[MemoryId, list[Record]] = {}
        self._taken: dict[str, list[MemoryId]] = {}
        self._opened: dict[str, dict[MemoryId, list[DeadVersion]]] = {}
        for record in site.trash.records():
            for item in record.items:
                if item.restored_at is None:
                    self._holding.setdefault(item.id, []).append(record)
                    self._taken.setdefault(record.deletion, []).append(item.id)

    def named(self, text: str) -> Sequence[MemoryId]:
        """Return what a full or short id names, or the id of a deletion with all that it took."""
        held = self._taken.get(text, [])
        short = None if is_id(text) else short_id(text)
        if short is not None:
            held = [name for name in self._holding if _is_short_for(short, parse_id(name))]
            if len(held) > 1:
                raise InvalidError(
                    f"{text} matches several memories", hint=f"one of {', '.join(held)}"
                )
        return held or [short.text if short is not None else parse_id(text).text]

    def holding(self, name: MemoryId) -> Sequence[Record]:
        """Return the records that hold a memory which is not back, oldest first."""
        return self._holding.get(name, ())

    def versions(self, record: Record, name: MemoryId) -> Sequence[DeadVersion]:
        """Return the versions of one memory in a copy."""
        if record.deletion not in self._opened:
            opened: dict[MemoryId, list[DeadVersion]] = {}
            for version in self._site.trash.versions(record):
                opened.setdefault(version.id, []).append(version)
            self._opened[record.deletion] = opened
        return self._opened[record.deletion].get(name, ())


def _record_of(
    site: Site, name: MemoryId, now: datetime, known: Tombstones, held: Sequence[Record]
) -> Record:
    """Return the record of a memory's latest deletion; raise the error that says why it is none."""
    if known.is_purged(name):
        raise RefusedError(f"{name} was purged, which is final")
    of_a_branch = held and held[-1].action == DROPPED
    if site.reader.snapshot().blob(name) is not None and not of_a_branch:
        raise AlreadyExistsError(f"{name} is not deleted", hint=f"smp show {name} shows it")
    if not held:
        raise MemoryNotFoundError(f"no copy of {name} is kept", hint="smp trash lists what is kept")
    record = held[-1]
    if now > record.recovery_deadline:
        raise RefusedError(
            f"{name} could be restored until {format_time(record.recovery_deadline)}, which is past"
        )
    return record


def _check_restorable(name: MemoryId, known: Lives, life: str) -> None:
    """Raise RefusedError if a copy may hold what a redaction took out."""
    ended = known.ended_by(life)
    if PURGED in ended:
        raise RefusedError(f"{name} was purged, which is final")
    if REDACTED in ended:
        raise RefusedError(
            f"{name} was redacted after this copy was made, so the copy is not restored",
            hint="restore it where it was redacted, or add it again",
        )


def _current(item: _Return) -> DeadVersion:
    current = [version for version in item.versions if version.current] or item.versions
    if not current:
        raise DamagedError(f"the copy of {item.id} holds no version of it")
    return current[-1]


def _latest(item: _Return, stage: Stage) -> bytes:
    """Return the file as it comes back."""
    data = renewed(item.id, _current(item).data, item.life or item.origin)
    if data is None:
        raise DamagedError(f"the last version of {item.id} cannot be read, so it is not restored")
    _refuse_second(item.id, data, stage)
    head = stage.base.file(item.id)
    if head is None or (item.life and life_of(head, parse_id(item.id).path) == item.life):
        # The earlier versions may have come before it.
        return data
    if item.life:
        raise AlreadyExistsError(f"{item.id} is not deleted", hint=f"smp show {item.id} shows it")
    return _merged(item, head, data) if item.lives_on else data


def _refuse_second(name: MemoryId, data: bytes, stage: Stage) -> None:
    """Raise AlreadyExistsError for a value whose key was written again meanwhile."""
    place = parse_id(name)
    if place.kind.name == VALUE:
        key = check_key(document.decode(data, place.path).fields["key"])
        now = place_of(stage.base, key)
        if now.entry is not None and now.id != place:
            raise AlreadyExistsError(
                f"the key of {name} was written again, as {now.id.text}",
                hint=f"smp delete {now.id.text}, then restore {name}",
            )


def _merged(item: _Return, head: bytes, data: bytes) -> bytes:
    """Return what a memory says together with what only a dropped branch said of it."""
    path = parse_id(item.id).path
    left, right = memories.version(head, path), memories.version(data, path)
    if left is None or right is None:
        raise DamagedError(
            f"{path} cannot be read, so nothing is merged into it",
            hint="fix it by hand, then smp commit",
        )
    at = Stamp(stamp(left.memory), ""), Stamp(stamp(right.memory), "")
    return memories.joined(None, left, right, lambda _: at).file


def _staging(
    site: Site, returns: Sequence[_Return], files: Mapping[MemoryId, bytes] | None = None
) -> Callable[[Stage], None]:
    """Return the work of staging files, or the memories as they come back, with the records."""

    def work(stage: Stage) -> None:
        latest = {item.id: _latest(item, stage) for item in returns if files is None}
        for name, data in (files or latest).items():
            stage.put_file(parse_id(name).path, data, "restore")
        if found := _records(returns):
            # Where they came from has to be told.
            known = site.tombstones()
            before = Tombstones.of({name: known.lives(name) for name in records.ids_of(found)})
            stage.put_file(records.PATH, records.write(stage.base.said | found | before), "")

    return work


def _records(returns: Sequence[_Return]) -> Tombstones:
    """Return how the lives that begin came about."""
    found: Mapping[MemoryId, Lives] = {
        item.id: Lives({}, {item.life: Edge(RESTORE, (item.origin,))})
        for item in returns
        if item.life
    }
    return Tombstones.of(found)


def _history(site: Site, returns: Sequence[_Return]) -> tuple[list[Work], int, int]:
    """Return the commits of the earlier versions, one for each that once held them, oldest first.

    With them, how many versions they bring and how many cannot be read.
    """
    groups: dict[tuple[datetime, str], dict[MemoryId, bytes]] = {}
    agents: dict[tuple[datetime, str], str] = {}
    unreadable = 0
    for item in returns:
        for version in _earlier(item):
            data = renewed(item.id, version.data, item.life or item.origin)
            if data is None:
                unreadable += 1
                continue
            groups.setdefault((version.at, version.commit), {})[item.id] = data
            agents[version.at, version.commit] = version.agent
    works = [
        Work(agents[at], _staging(site, returns, groups[at]), RESTORE_BATCH)
        for at in sorted(groups)
    ]
    return works, sum(map(len, groups.values())), unreadable


def _earlier(item: _Return) -> Sequence[DeadVersion]:
    if item.lives_on:
        return ()
    last = [place for place, version in enumerate(item.versions) if version.current]
    end = last[-1] if last else len(item.versions) - 1
    return [version for place, version in enumerate(item.versions) if place != end]


def renewed(memory_id: MemoryId, data: bytes, life: str) -> bytes | None:
    """Return a version's file as of another life, or None if it cannot be read."""
    try:
        memory = document.decode(data, parse_id(memory_id).path)
    except InvalidFileError:
        return None
    return document.edited(data, memory, replace(memory, life=life))


def _mark(site: Site, returns: Sequence[_Return], now: datetime) -> None:
    by_record: dict[str, list[_Return]] = {}
    for item in returns:
        by_record.setdefault(item.record.deletion, []).append(item)
    for items in by_record.values():
        record = site.trash.record(items[0].record)
        site.trash.update(record.restored((item.id for item in items), now))
