"""What a session can lose and get back: deletion, restoration, purge, redaction, proof."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from os import PathLike
from typing import Literal, TypedDict, Unpack, overload

from smp_git.erasure.erase import Receipt
from smp_git.erasure.proof import Proof, verify
from smp_git.errors import InvalidError
from smp_git.memory import Memory, agent_name
from smp_git.questions import Questions
from smp_git.recovery import audit, deletion, purge, receipts, redaction, restore, takeover
from smp_git.recovery.anonymize import Anonymized, Switches
from smp_git.recovery.audit import Audited
from smp_git.recovery.deletion import Plan
from smp_git.recovery.purge import Purged, moment_before
from smp_git.recovery.record import Item, Record
from smp_git.recovery.redaction import REPLACEMENT, Redaction
from smp_git.recovery.restore import Restored
from smp_git.recovery.selection import select, selection
from smp_git.recovery.site import Site, no_site
from smp_git.recovery.trash import Trash
from smp_git.redact.rules import Rules
from smp_git.transaction import Writer


class Criteria(TypedDict, total=False):
    """What a deletion is about; all that is given must hold."""

    tags: Iterable[str]
    since: datetime | str | None
    until: datetime | str | None
    agents: Iterable[str]
    kinds: Iterable[str]
    text: str | None


class Deletions(Questions):
    """The deleting half of a session. Ids are full ids; what goes leaves the history too."""

    _writer: Writer
    _rules: Rules
    _trash: Trash | None
    _anonymize: Callable[..., Anonymized]

    # fmt: off
    @overload
    def delete(self, ids: str | Iterable[str] = (), *, reason: str | None = None, by: str | None = None, purge: bool = False, dry_run: Literal[False] = False, **criteria: Unpack[Criteria]) -> Receipt: ...
    @overload
    def delete(self, ids: str | Iterable[str] = (), *, reason: str | None = None, by: str | None = None, purge: bool = False, dry_run: Literal[True], **criteria: Unpack[Criteria]) -> Plan: ...
    # fmt: on
    def delete(self, ids: str | Iterable[str] = (), *, reason: str | None = None, by: str | None = None, purge: bool = False, dry_run: bool = False, **criteria: Unpack[Criteria]) -> Receipt | Plan:  # fmt: skip
        """Delete memories from the session and all of its history, in one rewrite.

        They can be restored until the deadline; with `purge` they cannot. `criteria` are
        tags (with their subtrees), since, until, agents, kinds and text. With `dry_run`
        nothing is changed and the plan is returned.
        """
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
        return deletion.delete(site, found, now, by=self._by(by), reason=reason, purge=purge)

    def trash(self) -> tuple[tuple[Item, Record], ...]:
        """Return what can be restored: each memory with the record of its deletion, oldest first."""
        site = self._site()
        site.sweep()
        known, now = site.tombstones(), self._clock()
        return tuple(
            (item, record)
            for record in site.trash.records()
            for item in record.items
            if item.restored_at is None
            and now <= record.recovery_deadline
            and not known.is_purged(item.id)
        )

    def restore(self, ids: str | Iterable[str], *, with_history: bool = False, reason: str | None = None, by: str | None = None) -> Restored:  # fmt: skip
        """Bring deleted memories back under their ids; their earlier versions too if asked.

        Raises RefusedError after the deadline or a purge, and DamagedError if the key of
        the sealed copy is lost or wrong; then nothing is restored.
        """
        names = (ids,) if isinstance(ids, str) else tuple(ids)
        return restore.restore(
            self._site(), names, self._clock(), by=self._by(by), reason=reason, with_history=with_history,
        )  # fmt: skip

    def purge(self, ids: str | Iterable[str] | None = None, *, expired: bool = False, older_than: datetime | str | timedelta | None = None, reason: str | None = None, by: str | None = None, dry_run: bool = False) -> Purged:  # fmt: skip
        """Make deleted memories unrecoverable: some, those past their deadline, or older ones."""
        if sum((ids is not None, expired, older_than is not None)) != 1:
            raise InvalidError("a purge is of ids, of what is expired, or of what is older than a time")  # fmt: skip
        site, now = self._site(), self._clock()
        if ids is not None:
            names = purge.named(site, (ids,) if isinstance(ids, str) else ids)
            if dry_run:
                return Purged(ids=names, copies=0, dry_run=True)
            return purge.purge(site, names, now, by=self._by(by), reason=reason)
        records = purge.due(site, now, moment_before(older_than, now))
        if dry_run:
            due = tuple(item.id for record in records for item in record.items)
            return Purged(ids=due, copies=len(records), dry_run=True)
        purge.follow(site)
        return purge.purge_due(site, records, now, by=self._by(by))

    def redact(self, pattern: str | re.Pattern[str], replacement: str = REPLACEMENT, *, reason: str | None = None, by: str | None = None, dry_run: bool = False) -> Redaction:  # fmt: skip
        """Take a text, or what a compiled pattern fits, out of every version of every memory.

        The earlier versions of each memory that held it go, and cannot be restored.
        """
        site = self._site()
        if dry_run:
            return redaction.find(site, redaction.compiled(pattern))
        return redaction.redact(site, pattern, replacement, self._clock(), by=self._by(by), reason=reason)  # fmt: skip

    def verify(self) -> Proof:
        """Search every object and file for what was ever deleted, and return what was found."""
        return verify(self._reader, self._site().tombstones())

    def receipt(self, name: str | None = None) -> Mapping[str, object]:
        """Return the receipt of a deletion, or of a memory's latest; without a name the last one."""
        return receipts.read(self._site().trash.folder, name)

    def audit(self) -> tuple[Audited, ...]:
        """Return who deleted, restored, redacted or purged what and when, oldest first."""
        trash = self._site().trash
        return audit.read(trash.store, trash.session_id)

    @property
    def redaction(self) -> Rules:
        """What is redacted before it is written."""
        return self._rules

    def take_over(self, memories: Iterable[Memory]) -> int:
        """Add memories with the ids and times that they have elsewhere; return how many.

        Each run of memories of one agent is one commit, in the order given. Raises
        AlreadyExistsError, and adds nothing, if an id is taken.
        """
        return takeover.take_over(self._writer, tuple(memories))

    def anonymize(self, switches: Switches | None = None, *, copy: str | PathLike[str] | None = None, by: str | None = None) -> Anonymized:  # fmt: skip
        """Replace the session by a copy without names, or make such a copy in the store at `copy`.

        In place, this session is closed and deleted; it can be brought back until its
        deadline.
        """
        self._site()
        who = self._by(by)
        if copy is None:
            self.close()
        return self._anonymize(self._reader.path.name, switches, copy=copy, by=who)

    def close(self) -> None:
        """Let go of the repository."""
        raise NotImplementedError

    def _site(self) -> Site:
        if self._trash is None:
            raise no_site()
        return Site(writer=self._writer, trash=self._trash, rules=self._rules)

    def _finish_deletions(self) -> None:
        """Bring back the redacted texts that a process which died has left behind."""
        if self._trash is not None and self._trash.is_redacting():
            redaction.finish(self._site())

    def _by(self, given: str | None) -> str:
        return agent_name(given) if given else self._default_agent()

    def _default_agent(self) -> str:
        raise NotImplementedError

    def _moment_or_none(self, at: datetime | str | None) -> datetime | None:
        return self._moment(at) if at is not None else None
