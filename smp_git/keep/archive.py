"""Sessions archived and restored, and work done within an archive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from smp_git.ask.catalogue import Row
from smp_git.ask.desk import Desk
from smp_git.format import dialect, imports
from smp_git.keep import growth, opening
from smp_git.keep.stores import find_session, open_by_id
from smp_git.model.errors import (
    ConflictError,
    LockedError,
    RefusedError,
    SessionArchivedError,
    SessionNotFoundError,
    shown,
)
from smp_git.model.memory import CommitId, Value
from smp_git.model.names import ARCHIVED
from smp_git.model.times import format_time
from smp_git.read import archives, imported
from smp_git.read.archives import SUMMARY, Archived
from smp_git.read.replica import REMOTE_STATES
from smp_git.remove import archive as rooms
from smp_git.remove import audit, sessions
from smp_git.remove.interrupted import finish_interrupted
from smp_git.write.handle import GLOBAL, Handle, Home

# Of more memories a summary keeps those of the highest priority.
_MOST_LINES: Final = 200
_TRIES: Final = 3
_SECONDS: Final = 60.0
_PATIENCE_SECONDS: Final = 5.0


def archive(
    home: Home,
    name: str,
    *,
    reason: str | None = None,
    by: str | None = None,
    at: datetime | None = None,
) -> Archived:
    """Archive a session by its whole id; return what its summary says.

    `at` is when it was archived in the program that it comes from.
    """
    if name == GLOBAL:
        raise RefusedError(
            "the session global is not archived", hint="what is in it holds for every session"
        )
    who = sessions.actor(home, by) or "user"
    why, now = sessions.reason_of(home, reason), home.clock()
    told: dict[str, Value] = {
        "archived_at": format_time(at or now),
        "archived_by": who,
        "reason": why,
    }
    _put_away(home, name, told)
    audit.note(home.path, "archive", name, at=now, by=who, reason=why)
    return archives.read(home.path, name)


def restore(home: Home, text: str, *, reason: str | None = None, by: str | None = None) -> Path:
    """Restore an archived session by its id or a prefix of it; return its folder."""
    name = find_archived(home.path, text)
    who, why = sessions.actor(home, by) or "user", sessions.reason_of(home, reason)
    place = rooms.bring_back(home, name)
    audit.note(home.path, "unarchive", name, at=home.clock(), by=who, reason=why)
    return place


def undelete(home: Home, name: str, *, reason: str | None, by: str | None) -> Path:
    """Restore a deleted session, from its archive if it was archived; return its folder."""
    place = sessions.undelete(home, name, by, reason)
    return rooms.bring_back(home, name) if place.parent.name == ARCHIVED else place


def find_archived(store: Path, text: str) -> str:
    """Return the id of an archived session that begins with `text`; raise SessionNotFoundError."""
    try:
        name = find_session(store, text)
    except SessionArchivedError as error:
        return str(error.session_id)
    raise _not_archived(name)


def _not_archived(name: str) -> SessionNotFoundError:
    return SessionNotFoundError(
        f"session {shown(name)} is not archived", hint="smp sessions --all lists what is"
    )


@contextmanager
def within(home: Home, name: str) -> Iterator[str]:
    """Restore an archived session for as long as this lasts, and archive it again as it was.

    A process that dies leaves it active, and maintenance archives it once more. Two that
    look into one archive take turns: the second would archive it under the first.
    """
    with rooms.alone(home.path, name, room="within"):
        if not archives.is_archived(home.path, name):
            raise _not_archived(name)
        told = kept_of(home.path, name)
        rooms.bring_back(home, name)
        try:
            yield name
        finally:
            _put_away(home, name, told)


@contextmanager
def opened_within(home: Home, name: str) -> Iterator[Handle]:
    """Open an archived session for as long as this lasts."""
    with within(home, name):
        handle = open_by_id(home, name)
        try:
            yield handle
        finally:
            opening.close(handle)


def kept_of(store: Path, name: str) -> dict[str, Value]:
    """Return when a session was archived, by whom and why."""
    before = archives.read(store, name).said
    return {key: before.get(key) for key in ("archived_at", "archived_by", "reason")}


def archive_again(home: Home, name: str, told: Mapping[str, Value]) -> None:
    """Archive what has taken the place of an archived session."""
    _put_away(home, name, told)


def _put_away(home: Home, name: str, told: Mapping[str, Value]) -> None:
    """Archive a session that nobody writes to; raise ConflictError if somebody does."""
    for left in reversed(range(_TRIES)):
        handle = open_by_id(home, name)
        try:
            head, said = _summarised(handle, told)
            known = _imported(handle)
            finish_interrupted(handle)
            _pack(handle)
        finally:
            opening.close(handle)
        said["original_size_bytes"] = _bytes(handle.reader.path)
        try:
            rooms.put_away(home, name, head, _beside(handle.reader.path, said) | known)
        except ConflictError:
            if not left:
                raise
        else:
            return


def _oldest(rows: list[Row]) -> dict[str, Value]:
    """Return the time of the oldest memory of each kind."""
    found: dict[str, Value] = {}
    for row in rows:
        found[row.kind] = min(str(found.get(row.kind, row.entry.at)), row.entry.at)
    return dict(sorted(found.items()))


def _beside(place: Path, said: Mapping[str, Value]) -> dict[str, bytes]:
    """Return the files beside an archive: its summary, and what was last seen of its remotes."""
    found = {SUMMARY: dialect.write(said).encode()}
    with suppress(FileNotFoundError):
        found[REMOTE_STATES] = (place / ".git" / "smp" / REMOTE_STATES).read_bytes()
    return found


def _imported(handle: Handle) -> dict[str, bytes]:
    """Return the file by which an import tells, without the archive, what is in it already."""
    found = imported.file_of(imported.taken(handle.reader.main()))
    return {imports.PATH: found} if found else {}


def _pack(handle: Handle) -> None:
    """Pack loose objects, which compress badly one by one, unless somebody else is at it."""
    try:
        growth.pack(handle, _SECONDS, _PATIENCE_SECONDS)
    except LockedError:
        return


def _summarised(handle: Handle, told: Mapping[str, Value]) -> tuple[CommitId, dict[str, Value]]:
    """Return the head of a session, and what is kept of it in its own words."""
    desk, now, snapshot = Desk(handle), handle.clock(), handle.reader.main()
    try:
        summary = desk.summary(snapshot, now)
        topics = desk.topics(snapshot, None)
        rows = desk.by_priority(desk.whole(snapshot), now)
    finally:
        desk.close()
    said = handle.metadata
    return snapshot.id, {
        "id": handle.name,
        "uid": said.uid,
        "state": "archived",
        **told,
        "created_at": format_time(said.created_at),
        "last_access": format_time(handle.used_at()),
        "user": said.user,
        "tags": list(said.tags),
        "context": dict(said.context),
        "head": snapshot.id,
        "counts": dict(summary.counts),
        "oldest": _oldest(rows),
        "topics": [each.topic for each in topics],
        "decisions": list(summary.decisions),
        "open_findings": list(summary.open_findings),
        "preferences": list(summary.preferences),
        "learnings": list(summary.learnings),
        "remotes": [*sorted(handle.reader.repository.remotes())],
        "memories": [
            {
                "id": row.entry.id,
                "kind": row.kind,
                "at": row.entry.at,
                "agent": row.entry.agent,
                "title": row.entry.title,
                "tags": list(row.entry.tags or ()),
            }
            for row in rows[:_MOST_LINES]
        ],
    }


def _bytes(place: Path) -> int:
    return sum(each.stat().st_size for each in place.rglob("*") if each.is_file())
