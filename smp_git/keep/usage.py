"""Size of a session: what it has of its quota, what takes it, and what compaction would gain."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from smp_git.keep.compact import compact
from smp_git.keep.quota import advice
from smp_git.read import sizes
from smp_git.read.snapshot import Snapshot
from smp_git.write.handle import Handle

_LARGEST: Final = 10
_PACE: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeFile:
    """A tracked file, its bytes, and its share of the session."""

    path: str
    size: int
    percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeReport:
    """What a session has of its quota, and what takes it.

    >>> size = session.size()
    >>> 0 < size.bytes < size.quota_bytes
    True
    """

    bytes: int
    quota_bytes: int
    components: dict[str, int]
    largest: tuple[LargeFile, ...]
    days_until_quota: float | None
    compaction_gain: int
    git_bytes: int
    advice: tuple[str, ...]

    @property
    def percent(self) -> float:
        """How much of the quota is used."""
        return round(100 * self.bytes / self.quota_bytes, 1)

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "bytes": self.bytes,
            "quota_bytes": self.quota_bytes,
            "percent": self.percent,
            "components": dict(self.components),
            "largest": [
                {"path": each.path, "bytes": each.size, "percent": each.percent}
                for each in self.largest
            ],
            "days_until_quota": self.days_until_quota,
            "compaction_gain": self.compaction_gain,
            "git_bytes": self.git_bytes,
            "advice": list(self.advice),
        }


def report(handle: Handle) -> SizeReport:
    """Return what a session has of its quota, what takes it, and what could be done."""
    return handle.read(None, lambda snapshot: _report(handle, snapshot))


def _report(handle: Handle, snapshot: Snapshot) -> SizeReport:
    files = sorted(sizes.files(snapshot), key=lambda file: (-file.size, file.path))
    total, quota = sum(file.size for file in files), handle.settings.quota_bytes
    components: dict[str, int] = {}
    for file in files:
        components[file.component] = components.get(file.component, 0) + file.size
    return SizeReport(
        bytes=total,
        quota_bytes=quota,
        components=dict(sorted(components.items(), key=lambda item: -item[1])),
        largest=tuple(
            LargeFile(path=file.path, size=file.size, percent=round(100 * file.size / total, 1))
            for file in files[:_LARGEST]
        ),
        days_until_quota=_days(snapshot, handle.clock(), quota - total),
        compaction_gain=compact(handle, total, dry_run=True).freed_bytes,
        git_bytes=_folder_bytes(handle.reader.repository.git),
        advice=tuple(advice(handle)),
    )


def _days(snapshot: Snapshot, now: datetime, room: int) -> float | None:
    """Return in how many days the quota is reached at the pace of the last week."""
    entries = snapshot.entries()
    moments = [(datetime.fromisoformat(entry.at), entry.size) for entry in entries]
    recent = sum(size for at, size in moments if now - at < _PACE)
    if not recent:
        return None
    age = min(_PACE, max(timedelta(hours=1), now - min(at for at, _ in moments)))
    return round(max(0, room) / (recent / (age / timedelta(days=1))), 1)


def _folder_bytes(folder: Path) -> int:
    total = 0
    for each in folder.rglob("*"):
        with suppress(OSError):
            total += each.lstat().st_size if each.is_file() else 0
    return total
