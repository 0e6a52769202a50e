"""Migration of a project that keeps its memory in older formats: backup, import, checks, report."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from smp_git.convert import formats
from smp_git.convert.entries import ForeignMemory, ForeignSession, Trouble
from smp_git.convert.files import is_plain
from smp_git.convert.intake import ImportOptions, take
from smp_git.convert.report import Imported
from smp_git.git import disk
from smp_git.keep import check, stores
from smp_git.keep.every import opened
from smp_git.model.errors import DamagedError, InvalidError
from smp_git.model.names import PLACE
from smp_git.model.results import Result
from smp_git.model.times import format_time
from smp_git.read import archives
from smp_git.remove import archive
from smp_git.write.handle import BACKUP, BACKUP_MANIFEST, Home

_LATER: Final = "later-"
_KEPT_FOR: Final = timedelta(days=30)
_FOLDER: Final = ".bmad"
# Where these programs keep what they remember, below the project's folder.
_PLACES: Final = ("sessions", "memory", "conversations", "logs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration(Result):
    """What a migration did, and whether its checks hold.

    >>> Store.migrate(folder / "older", dry_run=True).found
    ('.bmad/logs',)
    """

    backup: str | None
    found: tuple[str, ...]
    sessions: tuple[Imported, ...] = ()
    checks: dict[str, bool] = field(default_factory=dict)
    dry_run: bool = False

    @property
    def problems(self) -> tuple[Trouble, ...]:
        """What could not be read or stored."""
        return tuple(each for session in self.sessions for each in session.problems)


def migrate(
    project: Path,
    home_at: Callable[[Path], Home],
    now: datetime,
    *,
    dry_run: bool,
    progress: Callable[[int], None],
) -> Migration:
    """Back up what older formats keep in a project, and take it into sessions; repeatable.

    The old folders stay where they are, but for sessions in the place of the store,
    which only the backup keeps.
    """
    base = project / _FOLDER
    found = list(_found(base))
    if not found and not (base / BACKUP).is_dir():
        raise InvalidError(
            f"{project} keeps no memory in an older format",
            hint=f"smp migrate looks in {_FOLDER}; smp import takes anything else",
        )
    shown = tuple(path.relative_to(project).as_posix() for path in found)
    if dry_run:
        return Migration(backup=None, found=shown, dry_run=True)
    backup = base / BACKUP
    for path in found:
        _back_up(path, backup, base)
    _note(backup, now)
    _make_room(base / PLACE.name, backup)
    stores.init(base / PLACE.name)
    home = home_at(base / PLACE.name)
    done = list(_taken(home, backup, progress))
    return Migration(
        backup=str(backup),
        found=shown,
        sessions=tuple(done),
        checks=_checks(home, backup, done),
    )


def _found(base: Path) -> Iterator[Path]:
    """Yield what can be taken in, each whole: a folder of sessions, a log, a conversation."""
    for name in _PLACES:
        place = base / name
        if not place.is_dir():
            continue
        if name == "sessions":
            yield from _old_sessions(place)
        elif formats.recognised(place) in ("000", "001", "003", "004"):
            yield place
        else:
            yield from (path for path in sorted(place.rglob("*")) if _is_log(path))


def _old_sessions(place: Path) -> Iterator[Path]:
    for part in ("active", "archived", "deleted"):
        for folder in sorted((place / part).glob("*")):
            if folder.is_dir() and not (folder / ".git").exists() and _is_old(folder, part):
                yield folder
    if (place / "global").is_dir() and not (place / "global/.git").exists():
        yield place / "global"
    for path in sorted(place.glob("*.jsonl")):
        if is_plain(path) and formats.recognised(path) == "000":
            yield path


def _is_old(folder: Path, part: str) -> bool:
    """Whether a folder is of the older format; ours of that part look otherwise."""
    if part == "deleted":
        return any(folder.glob("*deletion-record.yaml"))
    if part == "archived":
        return (folder / "summary.yaml").is_file() and not _is_ours(folder / "summary.yaml")
    return formats.recognised(folder) == "003"


def _is_ours(summary: Path) -> bool:
    with suppress(OSError):
        return b"\nuid:" in summary.read_bytes() or b"\nformat:" in summary.read_bytes()
    return False


def _is_log(path: Path) -> bool:
    return is_plain(path) and formats.recognised(path) in ("000", "003", "claude-code")


def _back_up(path: Path, backup: Path, base: Path) -> None:
    """Copy something and compare the copy; raise DamagedError, with nothing changed, if it differs."""
    copy, digest = backup / path.relative_to(base), _digest(path)
    if copy.exists() and _digest(copy) != digest:
        # An earlier migration kept it as it was then.
        copy = backup / f"{_LATER}{digest[:8]}" / path.relative_to(base)
    if copy.exists():
        return
    with disk.reporting(f"the backup of {path.relative_to(base)}"):
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        scratch = copy.with_name(f".{copy.name}.tmp")
        shutil.rmtree(scratch, ignore_errors=True)
        if path.is_dir():
            shutil.copytree(path, scratch, symlinks=True)
        else:
            shutil.copy2(path, scratch)
        if _digest(scratch) != digest:
            raise DamagedError(f"the backup of {path} differs from it", hint="try again")
        scratch.rename(copy)


def _digest(path: Path) -> str:
    """Return a digest of a file, or of the names and bytes of all files in a folder."""
    found = hashlib.sha256()
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if is_plain(each))
    for file in files:
        found.update(f"{file.relative_to(path)}\0".encode("utf-8", "surrogateescape"))
        found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()


def _note(backup: Path, now: datetime) -> None:
    """Say in the backup when it was made, and until when it is kept."""
    place = backup / BACKUP_MANIFEST
    if place.exists():
        return
    said = {"made_at": format_time(now), "keep_until": format_time(now + _KEPT_FOR)}
    disk.replace_durably(
        place, json.dumps(said).encode() + b"\n", backup / f".{BACKUP_MANIFEST}.tmp"
    )


def _make_room(place: Path, backup: Path) -> None:
    """Remove the old sessions from where the store will be; the backup has them."""
    for path in list(_old_sessions(place)) if place.is_dir() else ():
        name = Path("sessions") / path.relative_to(place)
        if not any((copy / name).exists() for copy in _copies(backup)):
            raise DamagedError(f"{path} is not in the backup", hint="try again")
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for part in ("active", "archived", "deleted"):
        with suppress(OSError):
            (place / part).rmdir()


def _copies(backup: Path) -> list[Path]:
    """Return the backup, and what later migrations added to it."""
    return [backup, *sorted(backup.glob(f"{_LATER}*"))]


def _sources(backup: Path) -> Iterator[ForeignSession]:
    """Yield the sessions in the backup, each known by the place that it was copied from."""
    for copy in _copies(backup):
        for path in _places_in(copy):
            name = formats.format_of(path, None)
            for source in formats.FORMATS[name].read(path):
                place = source.place and backup.parent / source.place.relative_to(copy)
                yield replace(source, place=place)


def _places_in(backup: Path) -> Iterator[Path]:
    if (backup / "sessions").is_dir():
        yield from sorted((backup / "sessions").glob("*.jsonl"))
        if any((backup / "sessions" / part).is_dir() for part in ("active", "archived", "global")):
            yield backup / "sessions"
    for name in _PLACES[1:]:
        path = backup / name
        if path.is_dir() and formats.recognised(path) in ("000", "001", "003", "004"):
            yield path
        else:
            yield from (each for each in sorted(path.rglob("*")) if _is_log(each))


def _taken(home: Home, backup: Path, progress: Callable[[int], None]) -> Iterator[Imported]:
    yield from take(home, _sources(backup), ImportOptions(progress=progress))


def _checks(home: Home, backup: Path, done: list[Imported]) -> dict[str, bool]:
    """Return the four checks of the older format's guide, each made on what is there now."""
    turns = kept = entries = 0
    for source in _sources(backup):
        for item in source.items:
            if isinstance(item, ForeignMemory):
                entries += 1
                turns += item.kind == "turn"
    here = sum(each.added.total() + each.known + each.deleted for each in done)
    lost = sum(len(each.problems) for each in done)
    kept = sum(
        _count(home, name, "turn") for name in {each.session for each in done if each.session}
    )
    names = {each.session for each in done if each.session}
    return {
        "all conversations are here": kept >= turns - sum(each.deleted for each in done),
        "nothing is lost": here + lost >= entries,
        "indexes are sound": all(_is_sound(home, name) for name in names),
        "agents can read": all(_count(home, name, None) >= 0 for name in names),
    }


def _count(home: Home, name: str, kind: str | None) -> int:
    if archives.is_archived(home.path, name):
        counts = archives.read(home.path, name).said.get("counts")
        known = counts if isinstance(counts, dict) else {}
        wanted = known.values() if kind is None else [known.get(kind)]
        return sum(number for number in wanted if isinstance(number, int))
    with opened(home, name) as handle:
        return len(handle.reader.snapshot().memories(kind))


def _is_sound(home: Home, name: str) -> bool:
    if archives.is_archived(home.path, name):
        return archive.whole(home.path, name) is None
    with opened(home, name) as handle:
        handle.keeper.flush()
        return not check.check(handle.reader)
