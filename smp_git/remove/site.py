"""The place where memories are deleted and brought back, and the proof at any later time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from smp_git.format.records import Tombstones
from smp_git.git.locks import locked
from smp_git.model.errors import DamagedError, InvalidError
from smp_git.model.ids import parse_id
from smp_git.model.memory import check_text
from smp_git.model.secrets.rules import Rules
from smp_git.read.snapshot import Reader
from smp_git.remove import audit
from smp_git.remove.audit import DROPPED, Record
from smp_git.remove.history import prove
from smp_git.remove.history.judge import Judge, how_many
from smp_git.remove.history.plan import effective
from smp_git.remove.history.prove import Proof
from smp_git.remove.history.search import DeadVersion
from smp_git.remove.seal import Kept
from smp_git.remove.trash import Trash
from smp_git.write.writer import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One session and the trash of its store."""

    writer: Writer
    trash: Trash
    rules: Rules

    @property
    def reader(self) -> Reader:
        """The session, to read."""
        return self.writer.reader

    def tombstones(self) -> Tombstones:
        """Return everything that was deleted, on any branch."""
        return effective(self.reader)

    def reason(self, text: str | None) -> str | None:
        """Return a reason without secrets."""
        return self.rules.text(check_text(text, "reason"))[0] if text is not None else None

    def reasons(self, given: Mapping[str, str] | None, ids: Iterable[str]) -> dict[str, str]:
        """Return the reasons of single memories without secrets; raise InvalidError for others."""
        found, names = dict[str, str](), set(ids)
        for name, text in (given or {}).items():
            if name not in names:
                raise InvalidError(
                    f"a reason is given for {name}, which is not deleted here",
                    hint="reasons of single memories are of those that are named",
                )
            found[name] = self.reason(text) or ""
        return {name: text for name, text in found.items() if text}

    def marking(self, patience_seconds: float) -> AbstractContextManager[object]:
        """Let nobody else mark what is restored meanwhile; raise LockedError after a while."""
        trash = self.trash
        return locked(
            trash.store / ".lock" / f"trash-{trash.session_id}",
            time.monotonic() + patience_seconds,
            "restoring",
        )

    def note(
        self,
        action: str,
        *,
        at: datetime,
        by: str,
        ids: Iterable[str],
        deletion: str | None = None,
        reason: str | None = None,
        reasons: Mapping[str, str] | None = None,
    ) -> None:
        """Write a line of the audit log."""
        trash = self.trash
        audit.note(
            trash.store,
            action,
            trash.session_id,
            at=at,
            by=by,
            ids=ids,
            deletion=deletion,
            reason=reason,
            reasons=reasons,
        )

    def note_once(
        self,
        action: str,
        *,
        at: datetime,
        by: str,
        ids: Iterable[str],
        deletion: str,
        reason: str | None = None,
        reasons: Mapping[str, str] | None = None,
    ) -> None:
        """Write a line of the audit log unless this deletion has it."""
        wanted = audit.Filter(session=self.trash.session_id, action=action, id=deletion)
        if not audit.read(self.trash.store, wanted):
            self.note(
                action, at=at, by=by, ids=ids, deletion=deletion, reason=reason, reasons=reasons
            )

    def sweep(self) -> None:
        """Settle what interrupted deletions left, unless one is under way."""
        if not self.trash.is_unsettled() or self._is_erasing():
            return
        # Copies are made under the lock, so none of those seen here is still being made.
        with self.writer.holding("settling deletions"):
            if not self._is_erasing():
                known = self.tombstones()
                self.trash.sweep(known.is_dead)

    def _is_erasing(self) -> bool:
        return self.reader.local.is_erasing()


class Unsealed(NamedTuple):
    """What sealed copies tell of the deleted, and in words what nobody tells."""

    versions: tuple[DeadVersion, ...]
    unknown: tuple[str, ...]


def verify(site: Site) -> Proof:
    """Search everything for what was ever deleted; texts are unsealed in memory only."""
    known = site.tombstones()
    told = tell(site, known)
    return prove.verify(site.reader, known, told.versions, told.unknown)


def tell(site: Site, known: Tombstones, ids: Iterable[str] | None = None) -> Unsealed:
    """Return the dead versions that the copies of this session hold, of some memories or all."""
    wanted = None if ids is None else set(ids)
    judge, versions, closed = Judge(known), list[DeadVersion](), set[str]()
    records = site.trash.records()
    for record in records:
        names = _names(record, wanted)
        if not names or record.action == DROPPED:
            continue
        try:
            kept = site.trash.versions(record)
        except (DamagedError, ImportError):
            # Its key is lost, or nothing here can decrypt.
            closed |= names
            continue
        versions += (
            _version(each) for each in kept if each.id in names and judge.is_dead_file(each.data)
        )
    found = {each.id for each in versions}
    unknown = [
        f"the text of {name}: its sealed copy does not open here" for name in sorted(closed - found)
    ]
    if wanted is None:
        back = {item.id for record in records for item in record.items if item.restored_at}
        unknown += _untold(how_many(known) - len(found | closed | back))
    return Unsealed(tuple(versions), tuple(unknown))


def _names(record: Record, wanted: set[str] | None) -> set[str]:
    """Return the memories of a record that are still deleted; a restored one lives."""
    names = {str(item.id) for item in record.items if item.restored_at is None}
    return names if wanted is None else names & wanted


def _untold(number: int) -> list[str]:
    whose = (
        "a deleted or redacted memory"
        if number == 1
        else f"{number:,} deleted or redacted memories"
    )
    return [f"the text of {whose}, which no copy here holds"] if number > 0 else []


def _version(kept: Kept) -> DeadVersion:
    path = parse_id(kept.id).path
    return DeadVersion(kept.id, path, kept.life, kept.at, kept.agent, kept.commit, kept.data)
