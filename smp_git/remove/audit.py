"""The audit log of a store and the receipts of its deletions, without content."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from smp_git.git import disk
from smp_git.git.disk import reporting
from smp_git.model.errors import DamagedError, NotFoundError
from smp_git.model.times import format_time

FILE: Final = "audit.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """One line: an action on memories of a session, or on the session itself if `ids` is empty."""

    at: str
    action: str
    session: str
    by: str
    ids: tuple[str, ...] = ()
    deletion: str | None = None
    reason: str | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """Return the object that a line of the log is."""
        return {
            "at": self.at,
            "action": self.action,
            "session": self.session,
            "by": self.by,
            "ids": list(self.ids),
            "deletion": self.deletion,
            "reason": self.reason,
            **({"reasons": dict(self.reasons)} if self.reasons else {}),
        }


def note(
    store: Path,
    action: str,
    session: str,
    *,
    at: datetime,
    by: str,
    ids: Iterable[str] = (),
    deletion: str | None = None,
    reason: str | None = None,
    reasons: Mapping[str, str] | None = None,
) -> None:
    """Add a line, durable before this returns; the caller has redacted the reason."""
    line = Audited(
        at=format_time(at),
        action=action,
        session=session,
        by=by,
        ids=tuple(ids),
        deletion=deletion,
        reason=reason,
        reasons=dict(reasons or {}),
    )
    text = json.dumps(line.as_json(), ensure_ascii=False, separators=(",", ":"))
    with reporting("the audit log"):
        fd = os.open(store / FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            disk.write_all(fd, f"{text}\n".encode())
            disk.flush(fd)
        finally:
            os.close(fd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which lines of the log are asked for; all that is given must hold."""

    session: str | None = None
    action: str | None = None
    id: str | None = None
    by: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def fits(self, line: Audited) -> bool:
        """Whether a line is asked for."""
        at = datetime.fromisoformat(line.at)
        return (
            self.session in (None, line.session)
            and self.action in (None, line.action)
            and (self.id is None or self.id in line.ids or self.id == line.deletion)
            and self.by in (None, line.by)
            and (self.since is None or at >= self.since)
            and (self.until is None or at <= self.until)
        )


def read(store: Path, wanted: Filter | None = None) -> tuple[Audited, ...]:
    """Return the lines of the log, oldest first; a torn line is passed over."""
    try:
        lines = (store / FILE).read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return ()
    found = [line for line in map(_parsed, lines) if line is not None]
    return tuple(line for line in found if wanted is None or wanted.fits(line))


def _parsed(text: str) -> Audited | None:
    try:
        found = json.loads(text)
        datetime.fromisoformat(found["at"])
        return Audited(**{**found, "ids": tuple(found["ids"])})
    except (ValueError, TypeError, KeyError):
        return None


RECEIPT: Final = "receipt.json"


def keep_receipt(place: Path, receipt: Mapping[str, object]) -> None:
    """Keep the receipt of the deletion whose folder is `place`."""
    with reporting(f"the receipt of {place.name}"):
        disk.make_folders(place)
        data = json.dumps(receipt, ensure_ascii=False).encode() + b"\n"
        disk.replace_file(place / RECEIPT, data, place / f"{RECEIPT}.tmp")


def has_receipt(place: Path) -> bool:
    """Whether the receipt of the deletion whose folder is `place` is kept."""
    return (place / RECEIPT).exists()


def read_receipt(folder: Path, name: str | None = None) -> dict[str, object]:
    """Return the receipt of a deletion or of a memory, the latest if several; raise NotFoundError."""
    for path in sorted(folder.glob(f"[!.]*/{RECEIPT}"), reverse=True):
        try:
            receipt = _parsed_receipt(path)
        except DamagedError:
            if name in (None, path.parent.name):
                raise
            continue
        ids = receipt.get("ids")
        named = name in (None, receipt.get("deletion")) or (isinstance(ids, list) and name in ids)
        if named:
            return receipt
    raise NotFoundError(
        f"no receipt of {name}" if name else "no receipt", hint="smp trash lists the deletions"
    )


def read_receipt_at(place: Path) -> dict[str, object]:
    """Return the receipt in the folder of a deletion; raise DamagedError."""
    return _parsed_receipt(place / RECEIPT)


def _parsed_receipt(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        raise DamagedError(f"the receipt at {path} cannot be read") from None
    return found if isinstance(found, dict) else {}
