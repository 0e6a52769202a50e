"""Memories brought back under their own id, as their next generation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from smp_git.errors import (
    AlreadyExistsError,
    DamagedError,
    InvalidFileError,
    MemoryNotFoundError,
    RefusedError,
)
from smp_git.format import document
from smp_git.format.ids import parse_id
from smp_git.memory import CommitId, MemoryId
from smp_git.recovery.record import DROPPED, Record
from smp_git.recovery.seal import Kept
from smp_git.recovery.site import Site
from smp_git.stage import Stage
from smp_git.transaction import Change
from smp_git.when import format_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What a restoration brought back: the memories, and how many earlier versions."""

    ids: tuple[MemoryId, ...]
    commit: CommitId | None
    versions: int
    unreadable: int

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "ids": list(self.ids),
            "commit": self.commit,
            "versions": self.versions,
            "unreadable": self.unreadable,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Return:
    """One memory on its way back: its record, its next generation, its versions in order."""

    id: MemoryId
    record: Record
    generation: int
    versions: Sequence[Kept]


def restore(site: Site, ids: Sequence[str], now: datetime, *, by: str, reason: str | None = None, with_history: bool = False) -> Restored:  # fmt: skip
    """Bring memories back; with `with_history` their earlier versions as new commits first.

    All or none: raises RefusedError after the deadline or after a purge, and
    DamagedError if the key is lost or wrong.
    """
    site.sweep()
    names = tuple(dict.fromkeys(parse_id(name).text for name in ids))
    returns = _found(site, names, now)
    unreadable = versions = 0
    if with_history:
        versions, unreadable = _bring_history(site, returns)
    change = _bring(site, by, {item.id: _latest(item) for item in returns}, site.reason(reason))
    _mark(site, returns, now)
    site.note("restore", at=now, by=by, ids=names, reason=site.reason(reason))
    return Restored(ids=names, commit=change.commit, versions=versions, unreadable=unreadable)


def _found(site: Site, names: Iterable[MemoryId], now: datetime) -> list[_Return]:
    records = {name: _record_of(site, name, now) for name in names}
    distinct = {record.deletion: record for record in records.values()}
    copies = {name: site.trash.versions(record) for name, record in distinct.items()}
    known = site.tombstones()
    return [
        _Return(
            id=name,
            record=record,
            generation=known.limit(name) + 1,
            versions=[version for version in copies[record.deletion] if version.id == name],
        )
        for name, record in records.items()
    ]


def _record_of(site: Site, name: MemoryId, now: datetime) -> Record:
    """Return the record of a memory's latest deletion; raise the error that says why it is none."""
    if site.tombstones().is_purged(name):
        raise RefusedError(f"{name} was purged, which is final")
    held = [record for record in site.trash.records(readable=True) if _holds(record, name)]
    is_there = site.reader.snapshot().blob(name) is not None
    of_a_branch = held and held[-1].action == DROPPED
    if is_there and not of_a_branch and not _was_interrupted(site, name):
        raise AlreadyExistsError(f"{name} is not deleted")
    if not held:
        raise MemoryNotFoundError(f"no copy of {name} is kept", hint="smp trash lists what is kept")
    record = held[-1]
    if now > record.recovery_deadline:
        raise RefusedError(
            f"{name} could be restored until {format_time(record.recovery_deadline)}, which is past"
        )
    return record


def _was_interrupted(site: Site, name: MemoryId) -> bool:
    """Whether a memory is there only because bringing back its history did not come to its end."""
    memory = site.reader.snapshot().get(name)
    items = (record.item(name) for record in site.trash.records(readable=True))
    return any(
        item is not None and item.restored_at is None and memory.generation == item.generation + 1
        for item in items
    )


def _holds(record: Record, name: MemoryId) -> bool:
    item = record.item(name)
    return item is not None and item.restored_at is None


def _latest(item: _Return) -> bytes:
    current = [version for version in item.versions if version.current] or item.versions
    if not current:
        raise DamagedError(f"the copy of {item.id} holds no version of it")
    data = renewed(item.id, current[-1].data, item.generation)
    if data is None:
        raise DamagedError(f"the last version of {item.id} cannot be read, so it is not restored")
    return data


def _bring_history(site: Site, returns: Sequence[_Return]) -> tuple[int, int]:
    """Commit the earlier versions, one commit for each that once held them, oldest first."""
    groups: dict[tuple[datetime, str], dict[MemoryId, bytes]] = {}
    agents: dict[tuple[datetime, str], str] = {}
    unreadable = count = 0
    for item in returns:
        for version in _earlier(item):
            data = renewed(item.id, version.data, item.generation)
            if data is None:
                unreadable += 1
                continue
            groups.setdefault((version.at, version.commit), {})[item.id] = data
            agents[version.at, version.commit] = version.agent
            count += 1
    for moment in sorted(groups):
        _bring(site, agents[moment], groups[moment], None)
    return count, unreadable


def _earlier(item: _Return) -> Sequence[Kept]:
    last = [place for place, version in enumerate(item.versions) if version.current]
    end = last[-1] if last else len(item.versions) - 1
    return [version for place, version in enumerate(item.versions) if place != end]


def renewed(memory_id: MemoryId, data: bytes, generation: int) -> bytes | None:
    """Return a version's file as the given generation, or None if it cannot be read."""
    try:
        memory = document.decode(data, parse_id(memory_id).path)
    except InvalidFileError:
        return None
    return document.edited(data, memory, replace(memory, generation=generation))


def _bring(site: Site, by: str, files: dict[MemoryId, bytes], reason: str | None) -> Change:
    return site.writer.run(by, staging(files), reason=reason, subject="restore batch")[1]


def staging(files: dict[MemoryId, bytes]) -> Callable[[Stage], None]:
    """Return the work of staging memories that come back."""

    def work(stage: Stage) -> None:
        for name, data in files.items():
            stage.put_file(parse_id(name).path, data, "restore")

    return work


def _mark(site: Site, returns: Sequence[_Return], now: datetime) -> None:
    by_record: dict[str, list[_Return]] = {}
    for item in returns:
        by_record.setdefault(item.record.deletion, []).append(item)
    for items in by_record.values():
        record = items[0].record
        site.trash.update(record.restored((item.id for item in items), now))
