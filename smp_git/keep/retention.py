"""Memories past the time that their kind is kept, and which rule keeps them all the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from smp_git.keep.preserved import Preserved
from smp_git.model.errors import ConflictError
from smp_git.model.lifecycle import MAINTAINER
from smp_git.model.memory import KINDS, MemoryId
from smp_git.model.settings import Settings
from smp_git.remove.delete import delete
from smp_git.remove.history.journal import Receipt
from smp_git.write.handle import Handle

REASON: Final = "past its retention"
_STRICT: Final = "strict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """What is past its time, and how many memories each rule keeps."""

    ids: tuple[MemoryId, ...]
    kept: Mapping[str, int] = field(default_factory=dict)


def limits(said: Mapping[str, object]) -> dict[str, timedelta]:
    """Return how long each kind is kept, as the settings say."""
    return {
        name: timedelta(days=days)
        for name, days in said.items()
        if name in KINDS and isinstance(days, (int, float)) and not isinstance(days, bool)
    }


def deadline(settings: Settings, kind: str, created_at: datetime) -> datetime | None:
    """Return when maintenance deletes a memory that no rule keeps; None if it does not."""
    kept = limits(settings.retention).get(kind) if settings.auto_purge else None
    return created_at + kept if kept is not None else None


def is_strict(settings: Settings) -> bool:
    """Whether no rule keeps what is past its time."""
    return settings.retention.get(_STRICT) is True


def expired(handle: Handle, now: datetime) -> Expired:
    """Return the memories of a session that are past their time."""
    settings = handle.settings
    wanted = limits(settings.retention)
    snapshot = handle.reader.main()
    old = {
        entry.id
        for kind in wanted
        for page in snapshot.pages(kind)
        for entry in page.entries.values()
        if now - datetime.fromisoformat(entry.at) > wanted[kind]
    }
    if not old or is_strict(settings):
        return Expired(ids=tuple(sorted(old)))
    preserved, kept, ids = Preserved(handle, snapshot, now), dict[str, int](), list[MemoryId]()
    catalogue = preserved.catalogue
    for row in (catalogue.row(catalogue.by_id[name]) for name in sorted(old)):
        reason = preserved.rule(row)
        if reason:
            kept[reason] = kept.get(reason, 0) + 1
        else:
            ids.append(row.entry.id)
    return Expired(ids=tuple(ids), kept=kept)


def remove(handle: Handle, ids: tuple[MemoryId, ...]) -> Receipt:
    """Delete what is past its time; it can be restored as long as anything that was deleted.

    Raises ConflictError, with nothing deleted, if a rule keeps some of it by now.
    """

    def check() -> None:
        if set(ids) - {*expired(handle, handle.clock()).ids}:
            raise ConflictError("some of what was past its time is kept by now", hint="try again")

    return delete(
        handle, ids, {}, reason=REASON, reasons=None, by=MAINTAINER, purge=False, check=check
    )
