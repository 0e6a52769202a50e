"""The sessions of a store: those in use, archived ones, and deleted ones with their deadlines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from smp_git.keep.glance import Glance
from smp_git.model.errors import SmpError
from smp_git.read.archives import Archived
from smp_git.remove.audit import Record
from smp_git.session import Session
from smp_git.store import Store
from smp_git.web.charts import Stretch, spans


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """A session and the time in which it was written to."""

    glance: Glance
    life: Stretch


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A session that does not open, and the way out."""

    id: str
    message: str
    hint: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsView:
    """Every session of a store, the one that was written to last first."""

    rows: tuple[SessionRow, ...]
    broken: tuple[Broken, ...]
    archived: tuple[Archived, ...]
    deleted: tuple[Record, ...]


def sessions(store: Store, opened: Iterable[Session | Broken]) -> SessionsView:
    """Return the sessions of a store, given those that open and what is known of others."""
    glances, broken = list[Glance](), list[Broken]()
    for each in opened:
        if isinstance(each, Broken):
            broken.append(each)
            continue
        try:
            glances.append(each.glance())
        except SmpError as error:
            broken.append(Broken(id=each.id, message=error.message, hint=error.hint))
    glances.sort(key=lambda each: each.last_written_at, reverse=True)
    lives = spans([(each.created_at, each.last_written_at) for each in glances])
    return SessionsView(
        rows=tuple(
            SessionRow(glance=each, life=life) for each, life in zip(glances, lives, strict=True)
        ),
        broken=tuple(broken),
        archived=store.archived_sessions(),
        deleted=store.deleted_sessions(),
    )
