"""What a store can lose and get back: whole sessions deleted, brought back, purged, made nameless."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from smp_git.format.config import Settings
from smp_git.model.errors import InvalidError, RefusedError, SessionNotFoundError, SmpError
from smp_git.model.memory import agent_name, aware, check_text
from smp_git.model.times import parse_time
from smp_git.session import Session

# What deletes is loaded by what deletes: most programs only read and write.
if TYPE_CHECKING:
    from smp_git.keep.anonymize import Anonymized, Nameless, Switches
    from smp_git.remove.audit import Audited
    from smp_git.remove.purge import Purged
    from smp_git.remove.record import Record
    from smp_git.remove.sessions import SessionReceipt
    from smp_git.remove.trash import Damaged

_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})


class Removals:
    """The deleting half of a store. A session is named by its whole id here."""

    path: Path
    clock: Callable[[], datetime]
    settings: Settings

    def delete_session(
        self, id: str, reason: str | None = None, *, by: str | None = None
    ) -> SessionReceipt:
        """Delete a session: it moves to `deleted/` as it is, until its deadline."""
        from smp_git.remove import sessions as whole  # noqa: PLC0415 - few programs delete

        if id not in self.sessions():
            raise SessionNotFoundError(
                f"no session {id!r}", hint="smp sessions lists them; give the whole id"
            )
        why = self.settings.redaction.text(check_text(reason or "", "reason"))[0]
        place = self.path / "active" / id
        who = self._actor(by)
        uid, user = whole.identity_of(place)
        return whole.delete(
            self.path,
            place,
            uid,
            self.settings,
            self.clock(),
            by=who or agent_name(user),
            reason=why or None,
        )

    def undelete_session(self, id: str, *, by: str | None = None) -> Session:
        """Bring a deleted session back and open it; raise RefusedError after its deadline."""
        from smp_git.remove import sessions as whole  # noqa: PLC0415 - few programs delete

        record, who = whole.find(self.path, id, self.settings.retention), self._actor(by) or "user"
        whole.undelete(self.path, record, self.settings, self.clock(), by=who)
        return self.session(id)

    def purge_session(
        self, id: str, *, reason: str | None = None, by: str | None = None
    ) -> tuple[Damaged, ...]:
        """Destroy a deleted session, with the copies of what was deleted from it before.

        Returns the copies that are left: their records cannot be read, and they may be of
        another session of that name which is in the trash.
        """
        from smp_git.remove import sessions as whole  # noqa: PLC0415 - few programs delete

        if id in self.sessions():
            raise RefusedError(f"session {id} is not deleted", hint="delete it first")
        why = self.settings.redaction.text(check_text(reason or "", "reason"))[0]
        record = whole.find(self.path, id, self.settings.retention)
        return self._purge(record, self.clock(), by, why or None)

    def deleted_sessions(self) -> tuple[Record, ...]:
        """Return the records of the deleted sessions, oldest first."""
        from smp_git.remove import sessions as whole  # noqa: PLC0415 - few programs delete

        whole.sweep(self.path, self.settings)
        return whole.deleted(self.path, self.settings.retention)

    def purge_expired(
        self,
        *,
        older_than: datetime | str | timedelta | None = None,
        by: str | None = None,
        dry_run: bool = False,
    ) -> Purged:
        """Destroy every copy and every deleted session past its deadline, or older than a time.

        What cannot be purged stops nothing else; the answer names it.
        """
        from smp_git.remove.purge import Purged, moment_before  # noqa: PLC0415 - few programs delete

        now = self.clock()
        moment, found, left = moment_before(older_than, now), list[Purged](), list[str]()
        for name in self.sessions():
            with _naming(f"session {name}", left), self.session(name) as session:
                found.append(
                    session.purge(
                        expired=older_than is None, older_than=older_than, by=by, dry_run=dry_run
                    )
                )
        due = [record for record in self.deleted_sessions() if record.is_due(now, moment)]
        gone = []
        for record in due:
            with _naming(f"deleted session {record.session_id}", left):
                damaged = () if dry_run else self._purge(record, now, by, "deadline passed")
                left += [
                    f"{each.deletion}, whose record cannot be read: {each.why}" for each in damaged
                ]
                gone.append(record.session_id)
        return Purged(
            ids=tuple(item for each in found for item in each.ids),
            copies=sum(each.copies for each in found),
            sessions=tuple(gone),
            dry_run=dry_run,
            kept_keys=tuple(dict.fromkeys(store for each in found for store in each.kept_keys)),
            damaged=tuple(name for each in found for name in each.damaged),
            left=tuple(left),
        )

    def audit(
        self,
        session: str | None = None,
        *,
        action: str | None = None,
        id: str | None = None,
        by: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
    ) -> tuple[Audited, ...]:
        """Return who deleted, restored, redacted or purged what and when, in all sessions or one.

        `id` is of a memory or a deletion; a session that is gone has its lines still.
        """
        from smp_git.remove import audit  # noqa: PLC0415 - few programs delete

        now = self.clock()
        wanted = audit.Filter(
            session=session,
            action=action,
            id=id,
            by=by,
            since=_moment(since, now),
            until=_moment(until, now),
        )
        return audit.read(self.path, wanted)

    def anonymize_session(
        self,
        id: str,
        switches: Switches | None = None,
        *,
        copy: str | PathLike[str] | None = None,
        by: str | None = None,
    ) -> Anonymized:
        """Make a copy of a session without names, with a new identity and without its history.

        In place, the old session is deleted; with `copy` the anonymized session is made
        in the store at that folder, and nothing else changes.
        """
        return self._anonymized((id,), switches, copy, by)[0]

    def anonymize(
        self,
        switches: Switches | None = None,
        *,
        copy: str | PathLike[str] | None = None,
        by: str | None = None,
    ) -> tuple[Anonymized, ...]:
        """Do so with every session; a name has the same placeholder in all of them."""
        return self._anonymized(self.sessions(), switches, copy, by)

    def _anonymized(
        self,
        ids: Sequence[str],
        given: Switches | None,
        copy: str | PathLike[str] | None,
        by: str | None,
    ) -> tuple[Anonymized, ...]:
        from smp_git.keep import anonymize  # noqa: PLC0415 - few programs delete

        switches, told = given or anonymize.Switches(), {}
        for name in ids:
            with self.session(name) as session:
                told[session.id] = anonymize.origin_of(session.metadata), session.memories()
        mask = anonymize.mask_of(told.values(), switches)
        target = self if copy is None else self._store_at(copy)
        made = []
        for name, (origin, memories) in told.items():
            new = anonymize.nameless(origin, memories, mask, switches)
            fresh = target._made_nameless(new)  # noqa: SLF001 - another store's same half
            receipt = self._replaced(name, by or origin.user) if copy is None else None
            made.append(replace(fresh, receipt=receipt))
        return tuple(made)

    def _made_nameless(self, new: Nameless) -> Anonymized:
        from smp_git.keep.anonymize import Anonymized  # noqa: PLC0415 - few programs delete

        origin, name = new.origin, f"anonymous-{secrets.token_hex(4)}"
        with self.create_session(
            name, user=origin.user, agents=origin.agents, context=origin.context, tags=origin.tags
        ) as fresh:
            fresh._take_over(new.memories)  # noqa: SLF001 - the other half of a store
            return Anonymized(
                session=name,
                path=str(fresh.path),
                memories=len(new.memories),
                placeholders=new.placeholders,
            )

    def _replaced(self, name: str, by: str | None) -> SessionReceipt:
        from smp_git.remove import audit  # noqa: PLC0415 - few programs delete

        receipt = self.delete_session(name, "replaced by an anonymized copy", by=by)
        audit.note(self.path, "anonymize", name, at=self.clock(), by=receipt.by)
        return receipt

    def _purge(
        self, record: Record, now: datetime, by: str | None, reason: str | None
    ) -> tuple[Damaged, ...]:
        from smp_git.remove import sessions as whole  # noqa: PLC0415 - few programs delete

        return whole.purge(
            self.path,
            record,
            self.settings,
            self.key_folder,
            now,
            by=self._actor(by) or "user",
            reason=reason,
        )

    def _actor(self, by: str | None) -> str | None:
        """Return the name of who acts, None if nobody is named."""
        if not by:
            return None
        return agent_name(self.settings.redaction.name(by, "the name of an agent"))

    # What the other half of a store does

    @property
    def key_folder(self) -> Path | None:
        """Where the keys of sealed copies stand."""
        raise NotImplementedError

    def session(self, id: str) -> Session:
        """Open a session."""
        raise NotImplementedError

    def sessions(self) -> tuple[str, ...]:
        """Return the ids of the sessions."""
        raise NotImplementedError

    def create_session(
        self,
        id: str | None = None,
        *,
        user: str | None = None,
        agents: Iterable[str] = (),
        context: Mapping[str, object] | None = None,
        tags: Iterable[str] = (),
        overrides: Mapping[str, object] = _NOTHING,
    ) -> Session:
        """Make a session."""
        raise NotImplementedError

    def _store_at(self, path: str | PathLike[str]) -> Removals:
        raise NotImplementedError


@contextmanager
def _naming(what: str, left: list[str]) -> Iterator[None]:
    """Go on past an error, and name it among what is left."""
    try:
        yield
    except SmpError as error:
        left.append(f"{what}: {error.message}" + (f"; {error.hint}" if error.hint else ""))


def _moment(at: datetime | str | None, now: datetime) -> datetime | None:
    if not isinstance(at, str):
        return aware(at) if at is not None else None
    try:
        return parse_time(at, now)
    except ValueError as error:
        raise InvalidError(str(error)) from None
