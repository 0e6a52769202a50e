"""Where memories are deleted and brought back: one session, its trash, who redacts its reasons."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime

from smp_git.format.records import Tombstones
from smp_git.git.locks import locked
from smp_git.model.errors import InvalidError
from smp_git.model.memory import check_text
from smp_git.model.secrets.rules import Rules
from smp_git.read.snapshot import Reader
from smp_git.remove import audit
from smp_git.remove.history.tombstones import effective
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

    def note(self, action: str, *, at: datetime, by: str, ids: Iterable[str], deletion: str | None = None, reason: str | None = None, reasons: Mapping[str, str] | None = None) -> None:  # fmt: skip
        """Write a line of the audit log."""
        trash = self.trash
        audit.note(trash.store, action, trash.session_id, at=at, by=by, ids=ids, deletion=deletion, reason=reason, reasons=reasons)  # fmt: skip

    def note_once(self, action: str, *, at: datetime, by: str, ids: Iterable[str], deletion: str, reason: str | None = None, reasons: Mapping[str, str] | None = None) -> None:  # fmt: skip
        """Write a line of the audit log unless this deletion has it."""
        wanted = audit.Filter(session=self.trash.session_id, action=action, id=deletion)
        if not audit.read(self.trash.store, wanted):
            self.note(action, at=at, by=by, ids=ids, deletion=deletion, reason=reason, reasons=reasons)  # fmt: skip

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
        return (self.reader.local.folder / "erasure.json").exists()
