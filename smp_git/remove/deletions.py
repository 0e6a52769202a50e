"""What a session can lose and get back: deletion, restoration, purge, redaction, proof."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict, Unpack, overload

from smp_git.ask.questions import Questions
from smp_git.format.config import Settings
from smp_git.model.errors import InvalidError, RefusedError, SmpError
from smp_git.model.memory import Memory, agent_name, check_text
from smp_git.model.secrets.rules import Rules
from smp_git.write.writer import Writer

# What deletes is loaded by what deletes: most programs only read and write.
if TYPE_CHECKING:
    from smp_git.keep.anonymize import Anonymized, Switches
    from smp_git.remove.audit import Audited
    from smp_git.remove.delete import Plan
    from smp_git.remove.history.journal import Receipt
    from smp_git.remove.history.prove import Proof
    from smp_git.remove.purge import Purged
    from smp_git.remove.redact import Redaction
    from smp_git.remove.restore import Restored
    from smp_git.remove.site import Site
    from smp_git.remove.trash import Damaged, Deleted


class Home(NamedTuple):
    """The store that a session stands in, as far as its deletions and remotes need it."""

    store: Path
    settings: Settings
    keys: Callable[[], Path | None]
    anonymize: Callable[..., Anonymized]
    surroundings: Callable[[], Mapping[str, str]]


class Criteria(TypedDict, total=False):
    """What a deletion is about; all that is given must hold."""

    tags: Iterable[str]
    since: datetime | str | None
    until: datetime | str | None
    agents: Iterable[str]
    kinds: Iterable[str]
    text: str | None


class AuditParts(TypedDict, total=False):
    """Which lines of the audit log are asked for; all that is given must hold."""

    action: str | None
    id: str | None
    by: str | None
    since: datetime | str | None
    until: datetime | str | None


class Deletions(Questions):
    """The deleting half of a session. Ids are full ids; what goes leaves the history too."""

    _writer: Writer
    _rules: Rules
    _home: Home | None

    # fmt: off
    @overload
    def delete(self, ids: str | Iterable[str] = (), *, reason: str | None = None, reasons: Mapping[str, str] | None = None, by: str | None = None, purge: bool = False, dry_run: Literal[False] = False, **criteria: Unpack[Criteria]) -> Receipt: ...
    @overload
    def delete(self, ids: str | Iterable[str] = (), *, reason: str | None = None, reasons: Mapping[str, str] | None = None, by: str | None = None, purge: bool = False, dry_run: Literal[True], **criteria: Unpack[Criteria]) -> Plan: ...
    # fmt: on
    def delete(
        self,
        ids: str | Iterable[str] = (),
        *,
        reason: str | None = None,
        reasons: Mapping[str, str] | None = None,
        by: str | None = None,
        purge: bool = False,
        dry_run: bool = False,
        **criteria: Unpack[Criteria],
    ) -> Receipt | Plan:
        """Delete memories from the session and all of its history, in one rewrite.

        They can be restored until the deadline; with `purge` they cannot. `reasons` are those
        of single memories, by id. `criteria` are
        tags (with their subtrees), since, until, agents, kinds and text. With `dry_run`
        nothing is changed and the plan is returned.
        """
        from smp_git.remove import delete as deletion  # noqa: PLC0415 - few programs delete
        from smp_git.remove.delete import select, selection  # noqa: PLC0415 - few programs delete

        site, now = self._site(), self._clock()
        wanted = selection(
            ids,
            tags=criteria.get("tags", ()),
            since=self._moment_or_none(criteria.get("since")),
            until=self._moment_or_none(criteria.get("until")),
            agents=criteria.get("agents", ()),
            kinds=criteria.get("kinds", ()),
            text=criteria.get("text"),
        )
        found = self._read(None, lambda snapshot: select(snapshot, wanted))
        if dry_run:
            return deletion.plan(site, found, now, purge=purge)
        return deletion.delete(
            site, found, now, by=self._by(by), reason=reason, reasons=reasons, purge=purge
        )

    def trash(self) -> tuple[Deleted, ...]:
        """Return what can be restored, oldest deletion first."""
        from smp_git.remove.trash import deleted  # noqa: PLC0415 - few programs delete

        site = self._site()
        site.sweep()
        known, now = site.tombstones(), self._clock()
        return tuple(
            deleted(item, record)
            for record in site.trash.records()
            for item in record.items
            if item.restored_at is None
            and now <= record.recovery_deadline
            and not known.is_purged(item.id)
        )

    def damaged_copies(self) -> tuple[Damaged, ...]:
        """Return the copies whose records cannot be read; a purge by their ids destroys them."""
        return self._site().trash.damaged()

    def restore(
        self,
        ids: str | Iterable[str],
        *,
        with_history: bool = False,
        reason: str | None = None,
        by: str | None = None,
    ) -> Restored:
        """Bring deleted memories back under their ids; their earlier versions too if asked.

        Raises RefusedError after the deadline or a purge, and DamagedError if the key of
        the sealed copy is lost or wrong; then nothing is restored.
        """
        from smp_git.remove import restore  # noqa: PLC0415 - few programs delete

        names = (ids,) if isinstance(ids, str) else tuple(ids)
        return restore.restore(
            self._site(),
            names,
            self._clock(),
            by=self._by(by),
            reason=reason,
            with_history=with_history,
        )

    def purge(
        self,
        ids: str | Iterable[str] | None = None,
        *,
        expired: bool = False,
        older_than: datetime | str | timedelta | None = None,
        reason: str | None = None,
        by: str | None = None,
        dry_run: bool = False,
    ) -> Purged:
        """Make deleted memories unrecoverable: some, those past their deadline, or older ones.

        A copy whose record is damaged is named by the id of its deletion.
        """
        from smp_git.remove import purge as copies  # noqa: PLC0415 - few programs delete
        from smp_git.remove import purge as purging  # noqa: PLC0415

        if sum((ids is not None, expired, older_than is not None)) != 1:
            raise InvalidError(
                "a purge is of ids, of what is expired, or of what is older than a time"
            )
        site, now = self._site(), self._clock()
        if ids is not None:
            given = (ids,) if isinstance(ids, str) else tuple(ids)
            broken = {each.deletion for each in site.trash.damaged()} & set(given)
            left = [each for each in given if each not in broken]
            names = purging.named(site, left)
            if dry_run:
                return purging.Purged(
                    ids=names, copies=len(broken), dry_run=True, damaged=tuple(sorted(broken))
                )
            return purging.purge(site, names, now, by=self._by(by), reason=reason, damaged=broken)
        records = purging.due(site, now, purging.moment_before(older_than, now))
        if dry_run:
            return purging.Purged(ids=records.ids, copies=len(records), dry_run=True)
        copies.follow(site)
        return purging.purge_due(site, records, now, by=self._by(by))

    def redact(
        self,
        pattern: str | re.Pattern[str],
        replacement: str | None = None,
        *,
        reason: str | None = None,
        by: str | None = None,
        dry_run: bool = False,
    ) -> Redaction:
        """Take a text, or what a compiled pattern fits, out of every version of every memory.

        The earlier versions of each memory that held it go, and cannot be restored.
        Without a replacement it is what the settings say, `[REDACTED]` by default.
        """
        from smp_git.remove import redact as redaction  # noqa: PLC0415 - few programs delete

        site = self._site()
        if dry_run:
            return redaction.find(site, pattern)
        return redaction.redact(
            site,
            pattern,
            self._replacement(replacement),
            self._clock(),
            by=self._by(by),
            reason=reason,
        )

    def _replacement(self, given: str | None) -> str:
        """Return what stands in the place of a text, itself without secrets."""
        if given is None:
            return self._rules.gap
        return self._rules.text(check_text(given, "replacement"))[0]

    def verify(self) -> Proof:
        """Search every object and file for what was ever deleted, and return what was found.

        Texts are searched as long as a sealed copy tells them; the proof says what is not.
        """
        if self._home is None:
            from smp_git.remove.history.prove import verify  # noqa: PLC0415
            from smp_git.remove.history.tombstones import effective  # noqa: PLC0415 - few programs delete

            return verify(
                self._reader,
                effective(self._reader),
                (),
                ("any text: this session stands in no store",),
            )
        from smp_git.remove import site as verification  # noqa: PLC0415 - few programs delete

        return verification.verify(self._site())

    def receipt(self, name: str | None = None) -> Mapping[str, object]:
        """Return the receipt of a deletion, or of a memory's latest; without a name the last one."""
        from smp_git.remove import audit as receipts  # noqa: PLC0415 - few programs delete

        return receipts.read_receipt(self._site().trash.folder, name)

    def audit(self, **wanted: Unpack[AuditParts]) -> tuple[Audited, ...]:
        """Return who deleted, restored, redacted or purged what and when, oldest first.

        What is given of action, id, by, since and until must hold.
        """
        from smp_git.remove import audit  # noqa: PLC0415 - few programs delete

        trash = self._site().trash
        since, until = (
            self._moment_or_none(wanted.get("since")),
            self._moment_or_none(wanted.get("until")),
        )
        return audit.read(
            trash.store,
            audit.Filter(
                session=trash.session_id,
                action=wanted.get("action"),
                id=wanted.get("id"),
                by=wanted.get("by"),
                since=since,
                until=until,
            ),
        )

    def _take_over(self, memories: Iterable[Memory]) -> int:
        """Add memories with the ids and times that they have elsewhere; return how many.

        Each run of memories of one agent is one commit, in the order given. Raises
        AlreadyExistsError, and adds nothing, if an id is taken.
        """
        from smp_git.remove import takeover  # noqa: PLC0415 - few programs delete

        return takeover.take_over(self._writer, tuple(memories))

    def anonymize(
        self,
        switches: Switches | None = None,
        *,
        copy: str | PathLike[str] | None = None,
        by: str | None = None,
    ) -> Anonymized:
        """Replace the session by a copy without names, or make such a copy in the store at `copy`.

        In place, this session is closed and deleted; it can be brought back until its
        deadline.
        """
        home, who = self._at_home(), self._by(by)
        if copy is None:
            self.close()
        return home.anonymize(self._reader.path.name, switches, copy=copy, by=who)

    def close(self) -> None:
        """Let go of the repository."""
        raise NotImplementedError

    def _site(self) -> Site:
        """Return where deletions are made, once what was interrupted is finished."""
        from smp_git.remove import finish  # noqa: PLC0415 - few programs delete

        self._finish_deletions()
        site = self._place()
        finish.settle(site, self._clock)
        return site

    def _place(self) -> Site:
        from smp_git.remove.site import Site  # noqa: PLC0415 - few programs delete
        from smp_git.remove.trash import Trash  # noqa: PLC0415

        home = self._at_home()
        name, uid = self._reader.path.name, self._uid()
        trash = Trash(home.store, home.keys(), home.settings.retention, name, uid)
        return Site(writer=self._deleting(), trash=trash, rules=self._rules)

    def _deleting(self) -> Writer:
        """Return the writer of deletions, which concern the whole session."""
        return self._writer

    def _at_home(self) -> Home:
        if self._home is None:
            raise RefusedError("this session stands in no store, so nothing could be recovered")
        return self._home

    def _finish_deletions(self) -> None:
        """Finish a deletion that was interrupted."""
        if self._home is not None and (self._reader.local.folder / "erasure.json").exists():
            from smp_git.remove import finish  # noqa: PLC0415 - only after a crash

            with suppress(SmpError):
                finish.finish(self._place())

    def _uid(self) -> str:
        raise NotImplementedError

    def _by(self, given: str | None) -> str:
        """Return who acts, the session's user unless somebody is named."""
        if not given:
            return self._default_agent()
        return agent_name(self._rules.name(given, "the name of an agent"))

    def _default_agent(self) -> str:
        raise NotImplementedError

    def _moment_or_none(self, at: datetime | str | None) -> datetime | None:
        return self._moment(at) if at is not None else None
