"""Records, receipts and the audit log: what is written down of each deletion, without content."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Final, Required, Self, TypedDict, Unpack

from smp_git.format import dialect, yamlfile
from smp_git.git import disk
from smp_git.git.disk import reporting
from smp_git.model.errors import DamagedError, NotFoundError
from smp_git.model.ids import FIRST, of_generation, parse_id
from smp_git.model.memory import MemoryId, Value
from smp_git.model.times import format_time, parse_time

RECORD: Final = "record.yaml"
# The action of a branch that was dropped: its memories may be on another.
DROPPED: Final = "drop_branch"
# The word that the record uses for a kind, where it is not the kind's own name.
_TYPES: Final = {"turn": "conversation_turn", "state": "agent_state"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One memory of a deletion."""

    id: MemoryId
    type: str
    timestamp: datetime
    life: str | None = FIRST
    versions: int = 1
    # Why this one, where that is another reason than the deletion's.
    reason: str | None = None
    restored_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One deletion: memories, or a whole session; `backup` is the file of its copy.

    `key` names the key of a sealed copy; it is None for a whole session and for the
    copy that a redaction keeps until its texts are back.

    >>> session.close()
    >>> receipt = store.delete_session("shop")
    >>> [each.session_id for each in store.deleted_sessions()]
    ['shop']
    """

    deletion: str
    session_id: str
    session_uid: str
    deleted_at: datetime
    deleted_by: str
    reason: str | None
    items: tuple[Item, ...]
    recovery_deadline: datetime
    backup: str
    key: str | None = None
    action: str = "delete"

    @property
    def whole(self) -> bool:
        """Whether this is the deletion of a whole session."""
        return self.action == "delete_session"

    def is_due(self, now: datetime, older_than: datetime | None = None) -> bool:
        """Whether the deadline is past, or, with `older_than`, whether this is from before it."""
        return self.deleted_at < older_than if older_than else now > self.recovery_deadline

    def item(self, memory_id: str) -> Item | None:
        """Return the item of a memory, or None."""
        return next((item for item in self.items if item.id == memory_id), None)

    def restored(self, ids: Iterable[str], at: datetime) -> Self:
        """Return the record with some items marked as restored."""
        names = set(ids)
        items = (replace(i, restored_at=at) if i.id in names else i for i in self.items)
        return replace(self, items=tuple(items))

    def without(self, ids: Iterable[str]) -> Self:
        """Return the record without some items."""
        names = set(ids)
        return replace(self, items=tuple(item for item in self.items if item.id not in names))


def type_of(memory_id: str) -> str:
    """Return the word that a record uses for the kind of a memory."""
    kind = parse_id(memory_id).kind.name
    return _TYPES.get(kind, kind)


def write_record(record: Record) -> bytes:
    """Return the bytes of a record's file."""
    body: dict[str, Value] = {
        "id": record.deletion,
        "action": record.action,
        "session_id": record.session_id,
        "session_uid": record.session_uid,
        "deleted_at": format_time(record.deleted_at),
        "deleted_by": record.deleted_by,
    }
    if record.reason:
        body["reason"] = record.reason
    body["deleted_items"] = [_item(item) for item in record.items]
    body["recovery_deadline"] = format_time(record.recovery_deadline)
    body["backup_location"] = f"deleted/{record.session_id}/{record.deletion}/{record.backup}"
    if record.key:
        body["key"] = record.key
    return dialect.write({"deletion": body}).encode()


def _item(item: Item) -> dict[str, Value]:
    out: dict[str, Value] = {
        "type": item.type,
        "id": item.id,
        "timestamp": format_time(item.timestamp),
        "versions": item.versions,
    }
    if item.life != FIRST:
        out["life"] = item.life
    if item.reason:
        out["reason_specific"] = item.reason
    if item.restored_at:
        out["restored_at"] = format_time(item.restored_at)
    return out


# A removal looks several times at every record of its session.
_REMEMBERED: Final = 1_000


@lru_cache(_REMEMBERED)
def read_record(data: bytes, what: str) -> Record:
    """Return the record of a file; raise DamagedError if it is none."""
    try:
        body = _mapping(yamlfile.read(data.decode(), what)["deletion"])
        return _record(body)
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedError(f"{what} is not a record of a deletion: {error}") from None


def _record(body: Mapping[str, Value]) -> Record:
    items = body["deleted_items"]
    reason, key = body.get("reason"), body.get("key")
    return Record(
        deletion=str(body["id"]),
        action=str(body.get("action", "delete")),
        session_id=str(body["session_id"]),
        session_uid=str(body["session_uid"]),
        deleted_at=time_of(body["deleted_at"]),
        deleted_by=str(body["deleted_by"]),
        reason=str(reason) if reason else None,
        items=tuple(_read_item(_mapping(i)) for i in items) if isinstance(items, list) else (),
        recovery_deadline=time_of(body["recovery_deadline"]),
        backup=str(body["backup_location"]).rpartition("/")[2],
        key=str(key) if key else None,
    )


def _read_item(item: Mapping[str, Value]) -> Item:
    restored, reason = item.get("restored_at"), item.get("reason_specific")
    return Item(
        id=MemoryId(str(item["id"])),
        type=str(item["type"]),
        timestamp=time_of(item["timestamp"]),
        life=life_of_row(item),
        versions=int(str(item.get("versions", 1))),
        reason=str(reason) if reason else None,
        restored_at=time_of(restored) if restored else None,
    )


def life_of_row(row: Mapping[str, object]) -> str | None:
    """Return the life of an item or a version; format 1 numbered it."""
    if "life" not in row:
        return of_generation(int(str(row.get("generation", 1))))
    return str(row["life"]) if row["life"] is not None else None


def _mapping(value: Value) -> Mapping[str, Value]:
    if not isinstance(value, dict):
        raise TypeError("not a mapping")
    return value


def time_of(value: object) -> datetime:
    """Return a time as a record has it; raise ValueError."""
    text = str(value)
    return parse_time(text, datetime.fromisoformat(text))


FILE: Final = "audit.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """One line: an action on memories of a session, or on the session itself if `ids` is empty.

    >>> gone = session.delete("FIND-0001", reason="not ours", by="ada")
    >>> [(line.action, line.ids, line.reason) for line in session.audit()]
    [('delete', ('FIND-0001',), 'not ours')]
    """

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


class Act(TypedDict, total=False):
    """When something was done, by whom, to which memories and why."""

    at: Required[datetime]
    by: Required[str]
    ids: Sequence[str]
    deletion: str
    reason: str | None
    reasons: Mapping[str, str]


def note(store: Path, action: str, session: str, **act: Unpack[Act]) -> None:
    """Add a line, durable before this returns; the caller has redacted the reason."""
    line = Audited(
        at=format_time(act["at"]),
        action=action,
        session=session,
        by=act["by"],
        ids=tuple(act.get("ids", ())),
        deletion=act.get("deletion"),
        reason=act.get("reason"),
        reasons=act.get("reasons", {}),
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
    """Criteria for lines of the log; all that are given must hold."""

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
            receipt = read_receipt_at(path.parent)
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
    try:
        found = json.loads((place / RECEIPT).read_bytes())
    except (OSError, ValueError):
        raise DamagedError(f"the receipt at {place / RECEIPT} cannot be read") from None
    return found if isinstance(found, dict) else {}
