"""Store: the door to a folder of sessions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from smp_git.keep import stores
from smp_git.keep.log import Log, logging
from smp_git.model.errors import AlreadyExistsError, SessionArchivedError
from smp_git.model.names import PLACE
from smp_git.model.settings import Settings
from smp_git.model.times import When
from smp_git.read import places
from smp_git.session import Session
from smp_git.write.handle import GLOBAL

# What asks, removes and syncs is loaded by what does: most programs only read and write.
if TYPE_CHECKING:
    from smp_git.ask.answer import Answer
    from smp_git.ask.request import QueryParts
    from smp_git.convert.migrate import Migration
    from smp_git.convert.report import Import
    from smp_git.keep.anonymize import Anonymized
    from smp_git.keep.configure import Configured
    from smp_git.keep.info import SessionInfo
    from smp_git.keep.maintenance import Maintained
    from smp_git.keep.mask import Switches
    from smp_git.keep.repairs import Repair
    from smp_git.keep.stats import Stats
    from smp_git.keep.syncing import Synced
    from smp_git.read.archives import Archived
    from smp_git.remove.audit import Audited, Record
    from smp_git.remove.purge import Purged
    from smp_git.remove.reports import AuditParts
    from smp_git.remove.sessions import SessionReceipt
    from smp_git.remove.trash import Damaged


_now = partial(datetime.now, UTC)  # noqa: TID251 - the clock of the program; tests pass their own
# What Git needs to reach a remote, and where keys are.
_ENVIRONMENT: Mapping[str, str] = os.environ  # noqa: TID251 - the one door


@logging
class Store:
    """A folder of sessions: the store at `path`, or in the project at `path`.

    Without a path: the one in `SMP_ROOT`, or else the nearest in the current folder
    and its parents. Close it when done, or use it as a context manager: that closes what
    questions to all sessions opened. Operations that delete a session need its full id.

    >>> with Store(folder / "project") as store:
    ...     store.sessions()
    ('shop',)
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        given = path if path is not None else _ENVIRONMENT.get("SMP_ROOT")
        place = places.store_at(stores.absolute(given)) if given else places.above(Path.cwd())
        self._home = stores.home_at(place, clock, _ENVIRONMENT)
        self._asked: dict[str, Session] = {}
        self._log = Log(self._home, "Store")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """The folder of the store."""
        return self._home.path

    @property
    def clock(self) -> Callable[[], datetime]:
        """The clock."""
        return self._home.clock

    @property
    def settings(self) -> Settings:
        """The settings from `config.yaml`."""
        return self._home.settings

    def configure(self, settings: Mapping[str, object]) -> None:
        """Set settings in `config.yaml`; None removes one. Sessions that are open keep theirs."""
        from smp_git.keep import configure

        self._home = configure.configure(self._home, settings)

    def configuration(self) -> tuple[Configured, ...]:
        """Return every setting of the store, with where it is set."""
        from smp_git.keep import configure

        return configure.of_store(self._home)

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    @classmethod
    def init(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        clock: Callable[[], datetime] = _now,
    ) -> Store:
        """Create a store at `path`, or open the one that is there.

        The default path is `.bmad/sessions` in the current folder.
        """
        place = stores.absolute(path) if path is not None else Path.cwd() / PLACE
        stores.init(place)
        return cls(place, clock=clock)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        clock: Callable[[], datetime] = _now,
    ) -> Store:
        """Open a store, as `Store(path)` does."""
        return cls(path, clock=clock)

    @property
    def key_folder(self) -> Path | None:
        """The folder for the keys of sealed copies; None if there is no durable place for them."""
        from smp_git.remove import seal

        return seal.folder(self._home)

    # Sessions

    def create_session(
        self,
        id: str | None = None,
        *,
        user: str | None = None,
        agents: Iterable[str] = (),
        context: Mapping[str, object] | None = None,
        tags: Iterable[str] = (),
        overrides: Mapping[str, object] | None = None,
    ) -> Session:
        """Create a session and return it; without an id, it is named after the date.

        `overrides` are settings for this session only, e.g. `{"redaction": "off"}`.
        """
        home, now = self._home, self.clock()
        name = stores.new_id(home, id, now)
        place = stores.create_session(
            home,
            name,
            now,
            user=user,
            agents=agents,
            context=context,
            tags=tags,
            overrides=overrides,
        )
        return self._opened(place)

    def global_session(self) -> Session:
        """Return the session for what applies to all sessions, created on first use."""
        if not (self.path / GLOBAL).exists():
            stores.create_session(self._home, GLOBAL, self.clock())
        return self._opened(self.path / GLOBAL)

    def session(
        self, id: str, *, create: bool = False, patience_seconds: float | None = None
    ) -> Session:
        """Open a session by its id or by a unique prefix of it.

        With `create`, the id is the whole one, and a session that is not there is made.
        Writes wait for its lock as long as the settings say, or for `patience_seconds`.
        """
        if id == GLOBAL:
            return self.global_session()
        if create and id not in self.sessions():
            # Somebody else may be making it, or it is in the archive.
            with suppress(AlreadyExistsError):
                self.create_session(id).close()
        return self._opened(stores.ready(self.path, self._active(id)), patience_seconds)

    def _active(self, id: str) -> str:
        """Return the id of a session, which is restored first if the settings say so."""
        try:
            return self.find_session(id)
        except SessionArchivedError as error:
            if not self.settings.auto_restore:
                raise
            return self.unarchive_session(str(error.session_id)).name

    def find_session(self, text: str) -> str:
        """Return the id that starts with `text`; raise SessionNotFoundError or InvalidError."""
        return stores.find_session(self.path, text)

    def sessions(self) -> tuple[str, ...]:
        """Return the ids of the sessions, sorted."""
        return stores.session_ids(self.path)

    def check(self) -> tuple[str, ...]:
        """Return every problem in any session."""
        from smp_git.keep import every

        return every.check_all(self._home)

    def repair(
        self, id: str, *, copy: str | os.PathLike[str] | None = None, dry_run: bool = False
    ) -> tuple[Repair, ...]:
        """Repair a session from what remains of it, though it may not open.

        What is lost is also looked for in a `copy`: a session's folder, an archive, a bundle
        or a repository. Returns what was done, or would be. What nobody has is taken out of
        the session and its history, and what is known of it is kept aside, in
        `.git/smp/damaged`. A session whose archive is damaged becomes active again.
        """
        from smp_git.keep.repair import repair_session

        try:
            name = id if id == GLOBAL else self.find_session(id)
        except SessionArchivedError as error:
            name = str(error.session_id)
        place = None if copy is None else stores.absolute(copy)
        return repair_session(self._home, name, place, dry_run=dry_run)

    def _opened(self, place: Path, patience_seconds: float | None = None) -> Session:
        shared, settings = self.path / GLOBAL, self.settings
        if patience_seconds is not None:
            settings = replace(settings, lock_timeout_seconds=patience_seconds)
        return Session(
            place,
            self.clock,
            settings,
            shared=None if place == shared else shared,
            home=self._home,
        )

    def maintain(self, session: str | None = None, *, dry_run: bool = False) -> Maintained:
        """Do what is due in the store, or in one session: once more, and nothing is left to do.

        Memories past their retention, deletions past their deadline, indexes, vectors,
        packing, sessions that were not used for long. One that fails stops no other.
        """
        from smp_git.keep.maintenance import maintain

        self.close()
        only = session if session in (None, GLOBAL) else self.find_session(str(session))
        return maintain(self._home, only=only, dry_run=dry_run)

    def stats(self) -> Stats:
        """Return the metrics of the store: sessions, memories, bytes, and what its log counts."""
        from smp_git.keep.stats import stats

        return stats(self._home)

    # Questions to all sessions

    def query(
        self,
        text: str | None = None,
        *,
        now: datetime | None = None,
        spec: Mapping[str, object] | None = None,
        **parts: Unpack[QueryParts],
    ) -> Answer:
        """Search all sessions and return the matching memories, best first.

        A session that cannot be read stops nothing: `problems` name it. Each hit names its session; a session that has not been used for a while counts
        for less. An archived session is searched by its summary: `archived` of the answer. Sessions stay open for the next query until `close`.
        """
        from smp_git.ask.across import across

        opened, left = self._asked_sessions()
        desks = [session._desk for session in opened]  # noqa: SLF001 - the other door
        moment = now or self.clock()
        return across(desks, text, moment, spec, parts, store=self.path, left=left)

    def close(self) -> None:
        """Close the sessions that queries opened."""
        while self._asked:
            self._asked.popitem()[1].close()
        self._log.close()

    def _asked_sessions(self) -> tuple[list[Session], list[str]]:
        """Return the sessions that answer, and what is to be said of those that do not open."""
        names = (*self.sessions(), *([GLOBAL] if (self.path / GLOBAL).is_dir() else []))
        left: list[str] = []
        for gone in self._asked.keys() - set(names):
            self._asked.pop(gone).close()
        for name in names:
            with stores.naming(name, left):
                if name not in self._asked:
                    self._asked[name] = self._opened(stores.place_of(self._home, name))
        return [self._asked[name] for name in names if name in self._asked], left

    def infos(self) -> tuple[tuple[SessionInfo, ...], tuple[str, ...]]:
        """Return an overview of every session, and what is to be said of those that do not open."""
        found: list[SessionInfo] = []
        left: list[str] = []
        for name in self.sessions():
            with stores.naming(name, left), self.session(name) as session:
                found.append(session.info())
        return tuple(found), tuple(left)

    # Sessions archived and restored

    def archive_session(
        self, id: str, reason: str | None = None, *, by: str | None = None
    ) -> Archived:
        """Archive a session: one compressed file with its whole history, and a summary.

        The summary is found by queries over all sessions. Needs the full id.
        """
        from smp_git.keep import archive

        if id in self._asked:
            self._asked.pop(id).close()
        name = id if id == GLOBAL else self.find_session(id)
        return archive.archive(self._home, name, reason=reason, by=by)

    def unarchive_session(
        self, id: str, reason: str | None = None, *, by: str | None = None
    ) -> Path:
        """Restore an archived session as it was, and return its folder."""
        from smp_git.keep import archive

        return archive.restore(self._home, id, reason=reason, by=by)

    @contextmanager
    def within_archive(self, id: str) -> Iterator[Session]:
        """Yield an archived session, restored for as long as the block lasts, and archived again.

        So it is deleted from, redacted and purged; what is archived after it is without it.
        """
        from smp_git.keep import archive

        with archive.within(self._home, archive.find_archived(self.path, id)) as name:
            session = self._opened(self.path / "active" / name)
            try:
                yield session
            finally:
                session.close()

    def archived_sessions(self) -> tuple[Archived, ...]:
        """Return what is kept of each archived session, by id."""
        from smp_git.read import archives

        return tuple(archives.every(self.path)[0])

    # Whole sessions deleted and brought back

    def delete_session(
        self, id: str, reason: str | None = None, *, by: str | None = None
    ) -> SessionReceipt:
        """Delete a session: move it unchanged to `deleted/` until its deadline."""
        from smp_git.remove import sessions

        return sessions.delete(self._home, id, reason, by)

    def undelete_session(
        self, id: str, *, by: str | None = None, reason: str | None = None
    ) -> Session:
        """Restore a deleted session and open it; raise RefusedError after its deadline.

        One that was archived when it was deleted is restored from its archive.
        """
        from smp_git.keep import archive

        return self._opened(archive.undelete(self._home, id, reason=reason, by=by))

    def purge_session(
        self, id: str, *, reason: str | None = None, by: str | None = None, dry_run: bool = False
    ) -> tuple[Damaged, ...]:
        """Destroy a deleted session, and the copies of what was deleted from it earlier.

        Returns the copies that are left: their records cannot be read, and they may
        belong to another session of that name in the trash. With `dry_run`, nothing is
        destroyed.
        """
        from smp_git.remove import sessions

        if dry_run:
            return sessions.plan_purge(self._home, id)
        return sessions.purge(self._home, id, reason, by)

    def deleted_sessions(self) -> tuple[Record, ...]:
        """Return the records of the deleted sessions, oldest first."""
        from smp_git.remove import sessions

        return sessions.deleted(self._home)

    def purge_expired(
        self,
        *,
        older_than: When | None = None,
        by: str | None = None,
        dry_run: bool = False,
    ) -> Purged:
        """Destroy every copy and every deleted session past its deadline, or older than a time.

        If something cannot be purged, the rest still is; the result names it.
        """
        from smp_git.keep import every

        return every.purge_expired(self._home, older_than, by=by, dry_run=dry_run)

    def audit(
        self,
        session: str | None = None,
        *,
        action: str | None = None,
        id: str | None = None,
        by: str | None = None,
        since: When | None = None,
        until: When | None = None,
    ) -> tuple[Audited, ...]:
        """Return who deleted, restored, redacted or purged what, and when.

        Covers all sessions unless one is given. `id` names a memory or a
        deletion; a session that no longer exists keeps its entries.
        """
        from smp_git.remove import reports

        wanted: AuditParts = {"action": action, "id": id, "by": by, "since": since, "until": until}
        return reports.audit_log_of_store(self._home, session, wanted)

    def anonymize_session(
        self,
        id: str,
        switches: Switches | None = None,
        *,
        copy: str | os.PathLike[str] | None = None,
        by: str | None = None,
    ) -> Anonymized:
        """Make a copy of a session without names, with a new identity and without its history.

        In place, the old session is deleted; with `copy`, the anonymized session is
        created in the store at that folder, and nothing else changes.
        """
        return self._anonymized((id,), switches, copy, by)[0]

    def anonymize(
        self,
        switches: Switches | None = None,
        *,
        copy: str | os.PathLike[str] | None = None,
        by: str | None = None,
    ) -> tuple[Anonymized, ...]:
        """Anonymize every session, archived ones and the global one too.

        A name gets the same placeholder in all of them.
        """
        from smp_git.keep.anonymize import anonymize_all

        return anonymize_all(self._home, switches, copy=copy, by=by)

    def _anonymized(
        self,
        ids: Iterable[str],
        switches: Switches | None,
        copy: str | os.PathLike[str] | None,
        by: str | None,
    ) -> tuple[Anonymized, ...]:
        from smp_git.keep.anonymize import anonymize

        names = [self.find_session(name) for name in ids]
        return anonymize(self._home, names, switches, copy=copy, by=by)

    # In from other programs

    def import_(
        self,
        path: str | os.PathLike[str],
        *,
        as_format: str | None = None,
        session: str | None = None,
        quota: int | None = None,
        again: bool = False,
        dry_run: bool = False,
        progress: Callable[[int], None] = lambda _: None,
    ) -> Import:
        """Import memories of other programs; the format is told by the content unless given.

        Each session of the source becomes a session here, or everything goes into
        `session`. What an earlier import brought, or what was deleted here or there, is
        not imported again; with `again`, sessions that were deleted here as a whole are.
        What the source changed since is changed here. What cannot be read is in
        `problems`; everything else is imported.
        """
        from smp_git.convert.intake import ImportOptions, import_path

        wanted = ImportOptions(session, quota, dry_run, again, progress)
        return import_path(self._home, stores.absolute(path), as_format=as_format, wanted=wanted)

    def export(
        self,
        as_format: str = "jsonl",
        *,
        to: str | os.PathLike[str] | None = None,
        text: str | None = None,
        anonymous: bool | Switches = False,
        **parts: Unpack[QueryParts],
    ) -> Iterator[str]:
        """Yield all sessions as one text of JSON lines, or write each into a new folder.

        Archived ones are among them. With a text, or what else a query takes, only what
        matches is exported; with `anonymous`, a name has the same placeholder everywhere.
        """
        from smp_git.convert.export import ExportOptions, export_all
        from smp_git.keep.mask import switches_of

        switches = switches_of(anonymous=anonymous)
        return export_all(self._home, ExportOptions(as_format, text, parts, switches), to)

    @staticmethod
    def migrate(
        path: str | os.PathLike[str] | None = None,
        *,
        dry_run: bool = False,
        clock: Callable[[], datetime] = _now,
        progress: Callable[[int], None] = lambda _: None,
    ) -> Migration:
        """Migrate a project that keeps its memory in older formats below `.bmad`.

        Everything is backed up to `.bmad/backup-pre-smp` first; the backup is compared
        with the original, and kept for 30 days. It can be repeated: only what is new is
        taken in.
        """
        from smp_git.convert.migrate import migrate

        project = stores.absolute(path) if path is not None else Path.cwd()
        return migrate(
            project,
            lambda place: stores.home_at(place, clock, _ENVIRONMENT),
            clock(),
            dry_run=dry_run,
            progress=progress,
        )

    # Sharing

    def clone(
        self,
        address: str,
        id: str | None = None,
        *,
        ask: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> Session:
        """Clone a session from a remote and open it.

        It keeps its own id unless another is given. If the store has a remote pattern,
        `address` can be the id of a session. Raises UntrustedError, with nothing left
        behind, if the remote's content is not sound.
        """
        from smp_git.keep.every import clone

        return self._opened(clone(self._home, address, id, ask=ask, progress=progress))

    def sync(
        self,
        remote: str | None = None,
        *,
        agent: str | None = None,
        ask: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> Synced:
        """Sync every session that has the remote, including the global one.

        A session that fails does not stop the others.
        """
        from smp_git.keep import syncing

        return syncing.sync_all(self._home, remote, agent=agent, ask=ask, progress=progress)
