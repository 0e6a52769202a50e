"""Whole sessions of a store: deleted, brought back, purged, and the store's audit log."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from smp_git.model.errors import RefusedError, SessionNotFoundError
from smp_git.model.memory import agent_name, check_text
from smp_git.read.history import moment_of
from smp_git.remove import audit, sessions
from smp_git.remove.audit import Audited, Record
from smp_git.remove.sessions import SessionReceipt
from smp_git.remove.trash import Damaged
from smp_git.write.handle import Home


def actor(home: Home, by: str | None) -> str | None:
    """Return the name of who acts, None if nobody is named."""
    if not by:
        return None
    return agent_name(home.settings.redaction.name(by, "the name of an agent"))


def _reason(home: Home, reason: str | None) -> str | None:
    return home.settings.redaction.text(check_text(reason or "", "reason"))[0] or None


def _is_there(home: Home, name: str) -> bool:
    return (home.path / "active" / name / ".git").is_dir()


def delete(home: Home, name: str, reason: str | None, by: str | None) -> SessionReceipt:
    """Delete a session: it moves to `deleted/` as it is, until its deadline."""
    place = home.path / "active" / name
    if not name or Path(name).name != name or not _is_there(home, name):
        raise SessionNotFoundError(
            f"no session {name!r}", hint="smp sessions lists them; give the whole id"
        )
    why, who = _reason(home, reason), actor(home, by)
    uid, user = sessions.identity_of(place)
    return sessions.delete(
        home.path,
        place,
        uid,
        home.settings,
        home.clock(),
        by=who or agent_name(user),
        reason=why,
    )


def undelete(home: Home, name: str, by: str | None) -> Path:
    """Bring a deleted session back; raise RefusedError after its deadline."""
    record = sessions.find(home.path, name, home.settings.retention)
    who = actor(home, by) or "user"
    return sessions.undelete(home.path, record, home.settings, home.clock(), by=who)


def purge(home: Home, name: str, reason: str | None, by: str | None) -> tuple[Damaged, ...]:
    """Destroy a deleted session, with the copies of what was deleted from it before.

    Returns the copies that are left: their records cannot be read, and they may be of
    another session of that name which is in the trash.
    """
    if _is_there(home, name):
        raise RefusedError(f"session {name} is not deleted", hint="delete it first")
    why = _reason(home, reason)
    record = sessions.find(home.path, name, home.settings.retention)
    return purge_record(home, record, home.clock(), by, why)


def purge_record(
    home: Home, record: Record, now: datetime, by: str | None, reason: str | None
) -> tuple[Damaged, ...]:
    """Destroy one deleted session; return the copies that are left."""
    who = actor(home, by) or "user"
    return sessions.purge(home.path, record, home.settings, home.keys(), now, by=who, reason=reason)


def deleted(home: Home) -> tuple[Record, ...]:
    """Return the records of the deleted sessions, oldest first."""
    sessions.sweep(home.path, home.settings)
    return sessions.deleted(home.path, home.settings.retention)


def audit_log(
    home: Home,
    session: str | None,
    *,
    action: str | None,
    memory_id: str | None,
    by: str | None,
    since: datetime | str | None,
    until: datetime | str | None,
) -> tuple[Audited, ...]:
    """Return who deleted, restored, redacted or purged what and when, in all sessions or one."""
    now = home.clock()
    wanted = audit.Filter(
        session=session,
        action=action,
        id=memory_id,
        by=by,
        since=moment_of(since, now) if since is not None else None,
        until=moment_of(until, now) if until is not None else None,
    )
    return audit.read(home.path, wanted)
