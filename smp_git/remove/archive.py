"""Archives: a session as one compressed file with a summary, put away and brought back.

A session is active or archived at every moment. While both are there, because a process died
between two steps, it is active, and the archive is removed when the session is opened next.
"""

from __future__ import annotations

import gzip
import json
import os
import secrets
import shutil
import tarfile
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from smp_git.git import disk, locks
from smp_git.git.disk import reporting
from smp_git.git.locks import locked
from smp_git.git.repository import MAIN, Repository
from smp_git.model.errors import ConflictError, DamagedError, LockedError, RefusedError
from smp_git.model.memory import CommitId
from smp_git.model.names import ARCHIVED
from smp_git.read.archives import ARCHIVE
from smp_git.read.replica import DAMAGED, Local, Use, folder_identity, use_of
from smp_git.remove.history import journal
from smp_git.remove.history.plan import check
from smp_git.write.handle import Home

# Which folder this is, so that a copy of it is not taken for the same replica.
REPLICA: Final = "origin.json"
_LEVEL: Final = 6
_CHUNK: Final = 1 << 20
_NEW: Final = ".new-"
_GONE: Final = ".gone-"
_PATIENCE_SECONDS: Final = 10.0
# Locks, and what only says that somebody is at work.
_NOT_KEPT: Final = ("gc.pid", "gc.pid.lock", "objects/maintenance.lock", locks.REWRITING)


def put_away(home: Home, name: str, head: CommitId, said: Mapping[str, bytes]) -> int:
    """Make an archive of a session, with these files beside it; return how large it is.

    Raises ConflictError if the session is not at `head` any more, and RefusedError where it
    holds something that belongs to a place outside.
    """
    place, target = home.path / "active" / name, home.path / ARCHIVED / name
    git = place / ".git"
    check(git)
    with reporting(f"the archive of session {name}"), alone(home.path, name):
        disk.make_folders(target.parent)
        made = target.with_name(f"{_NEW}{secrets.token_hex(4)}.{name}")
        deadline = time.monotonic() + _PATIENCE_SECONDS
        try:
            made.mkdir(mode=0o700)
            with (
                locks.rewriting(git, deadline, "archiving"),
                locked(Local(git).lock_path, deadline, "archiving the session"),
            ):
                _check_head(place, head)
                size = _write(place, made / ARCHIVE)
                told = {**said, REPLICA: json.dumps(_replica(made)).encode()}
                for file, data in told.items():
                    disk.replace_durably(made / file, data, made / f"{file}.tmp")
                journal.reached("archive written")
                _discard(target)
                made.rename(target)
                disk.flush_folder(target.parent)
                journal.reached("archive in place")
                _discard(place, target.parent)
                journal.reached("session put away")
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return size


def bring_back(home: Home, name: str) -> Path:
    """Make an archive a session again, as it was to the byte; return its folder."""
    place, kept = home.path / "active" / name, home.path / ARCHIVED / name
    with reporting(f"session {name}"), alone(home.path, name):
        if place.exists():
            _discard(kept)
            return place
        made = kept.with_name(f"{_NEW}{secrets.token_hex(4)}.{name}")
        try:
            _unpack(kept / ARCHIVE, made)
            _keep_identity(kept, made, place)
            _flush(made)
            journal.reached("session unpacked")
            made.rename(place)
            disk.flush_folder(place.parent)
            journal.reached("session in place")
            _discard(kept)
            journal.reached("archive removed")
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return place


def salvage(home: Home, name: str) -> Path:
    """Make a session of what can be read of its archive, and keep the archive aside in it."""
    place, kept = home.path / "active" / name, home.path / ARCHIVED / name
    with reporting(f"session {name}"), alone(home.path, name):
        made = kept.with_name(f"{_NEW}{secrets.token_hex(4)}.{name}")
        try:
            unpack_readable(kept / ARCHIVE, made)
            if not (made / ".git").is_dir():
                raise DamagedError(
                    f"nothing of session {name} can be read in its archive",
                    hint="smp clone brings it from a remote; a backup of the store has it",
                )
            _keep_identity(kept, made, place)
            aside = made / ".git" / "smp" / DAMAGED / ARCHIVE
            disk.make_folders(aside.parent)
            shutil.copyfile(kept / ARCHIVE, aside)
            _flush(made)
            made.rename(place)
            disk.flush_folder(place.parent)
            _discard(kept)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return place


def unpack_readable(archive: Path, made: Path) -> None:
    """Unpack what can be read of an archive, up to where it is damaged."""
    made.mkdir(mode=0o700)
    with suppress(*_UNREADABLE, DamagedError), _opened(archive) as tar:
        for member in tar:
            _place(tar, member, made)


def settle(store: Path, name: str) -> None:
    """Remove what a dead process left, as `finish` does; who is at it in this moment is left alone."""
    with suppress(LockedError, OSError):
        finish(store, name, 0)


def finish(store: Path, name: str, patience_seconds: float = _PATIENCE_SECONDS) -> None:
    """Remove the archive of a session that is active, and what a dead process left of either."""
    above = store / ARCHIVED
    try:
        found = os.listdir(above)  # noqa: PTH208 - at every open
    except OSError:
        return
    stale = [each for each in found if each.startswith(".") and each.endswith(f".{name}")]
    if name in found and (store / "active" / name).exists():
        stale.append(name)
    if stale:
        with alone(store, name, patience_seconds):
            for each in stale:
                if each != name or (store / "active" / name).exists():
                    _discard(above / each)


def whole(store: Path, name: str) -> str | None:
    """Return what is wrong with the archive of a session, None if it can be read to its end."""
    try:
        with _opened(store / ARCHIVED / name / ARCHIVE) as tar:
            names = {member.name for member in tar}
    except _UNREADABLE as error:
        return f"its archive cannot be read: {error}; smp -s {name} repair brings back what can be"
    return None if ".git/HEAD" in names else "its archive holds no repository"


_UNREADABLE: Final = (OSError, EOFError, zlib.error, tarfile.TarError)


@contextmanager
def _opened(archive: Path) -> Iterator[tarfile.TarFile]:
    """Open an archive, and read it to its end, where the checksum of all of it stands."""
    with gzip.open(archive) as packed:
        with tarfile.open(fileobj=packed, mode="r|") as tar:
            yield tar
        while packed.read(_CHUNK):
            pass


@contextmanager
def alone(
    store: Path, name: str, patience_seconds: float = _PATIENCE_SECONDS, *, room: str = "archive"
) -> Iterator[None]:
    """Let nobody else archive or bring back this session, or be in another `room` of it."""
    # A folder of its own: locks in one folder keep each other out.
    folder = store / ".lock" / f"{room}-{name}"
    disk.make_folders(folder)
    try:
        with locked(
            folder / "lock",
            time.monotonic() + patience_seconds,
            "archiving",
        ):
            yield
    except LockedError as error:
        if name in error.message:
            raise
        raise LockedError(
            f"session {name} is being archived or restored by somebody else", hint="try again"
        ) from error


def _check_head(place: Path, head: CommitId) -> None:
    repository = Repository(place)
    try:
        if repository.head(MAIN) != head:
            raise ConflictError(
                f"session {place.name} was written to while it was being archived",
                hint="it is in use; archive it later",
            )
    finally:
        repository.close()


def _replica(folder: Path) -> dict[str, object]:
    return dict(folder_identity(folder))


def _keep_identity(kept: Path, made: Path, place: Path) -> None:
    """Let the session be the replica that was archived, unless this archive is a copy."""
    local = Local(made / ".git")
    with suppress(OSError, ValueError):
        said = json.loads((kept / REPLICA).read_bytes())
        if said == _replica(kept) and (known := local.known_identity()) is not None:
            local.identify(made, known, place)


def _write(place: Path, target: Path) -> int:
    """Write a session as a compressed tar file, durable and read once more; return its size."""
    count = 0
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as file:
        with (
            gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            for path in _kept(place):
                tar.add(path, path.relative_to(place).as_posix(), recursive=False)
                # Each file as itself: a second name would be read from far behind.
                tar.inodes.clear()  # type: ignore[attr-defined]
                count += 1
        file.flush()
        disk.flush(file.fileno())
    with _opened(target) as tar:
        if sum(1 for _ in tar) != count:
            raise DamagedError(f"the archive at {target} is not what was written")
    return target.stat().st_size


def _kept(place: Path) -> Iterator[Path]:
    """Yield what an archive holds: all but locks and caches."""
    git = place / ".git"
    left = {git / each for each in _NOT_KEPT}
    for path in sorted(place.rglob("*")):
        if path in left or (path.parent == git / "smp" and not _is_kept(path.name)):
            continue
        if path.is_symlink() or path.is_file() or path.is_dir():
            yield path
        else:
            raise RefusedError(
                f"{path} is neither a file nor a folder", hint="move it out of the session"
            )


def _is_kept(name: str) -> bool:
    return use_of(name) in (Use.KEPT, Use.TRIMMED) and not name.endswith("lock")


def _unpack(archive: Path, made: Path) -> None:
    """Unpack an archive; nothing in it reaches outside of its folder."""
    try:
        with _opened(archive) as tar:
            made.mkdir(mode=0o700)
            for member in tar:
                _place(tar, member, made)
    except (EOFError, zlib.error, tarfile.TarError, gzip.BadGzipFile) as error:
        raise DamagedError(
            f"the archive at {archive} cannot be read: {error}",
            hint=f"smp -s {archive.parent.name} repair brings back what can be read",
        ) from error


def _place(tar: tarfile.TarFile, member: tarfile.TarInfo, made: Path) -> None:
    parts = Path(member.name).parts
    target = made.joinpath(*parts)
    above = [made.joinpath(*parts[:end]) for end in range(1, len(parts))]
    if ".." in parts or not parts or Path(member.name).is_absolute():
        raise DamagedError(f"the archive names {member.name}, which is outside of the session")
    if any(each.is_symlink() for each in above):
        raise DamagedError(f"the archive leads through a link at {member.name}")
    if member.isdir():
        target.mkdir(mode=0o700, exist_ok=True)
        target.chmod(member.mode | 0o700)
    elif member.issym():
        target.symlink_to(member.linkname)
    elif (source := tar.extractfile(member)) is not None:
        with target.open("xb") as file:
            shutil.copyfileobj(source, file)
        target.chmod(member.mode)
        os.utime(target, (member.mtime, member.mtime))


def _flush(top: Path) -> None:
    """Make everything below a folder durable."""
    for path in sorted(top.rglob("*"), reverse=True):
        if path.is_symlink():
            continue
        if path.is_dir():
            disk.flush_folder(path)
            continue
        fd = os.open(path, os.O_RDONLY)
        try:
            disk.flush(fd)
        finally:
            os.close(fd)
    disk.flush_folder(top)


def _discard(folder: Path, aside: Path | None = None) -> None:
    """Remove a session's folder or archive: out of sight first, durably, then for good."""
    if not folder.exists():
        return
    above = aside or folder.parent
    name = folder.name.rpartition(".")[2]
    gone = above / f"{_GONE}{secrets.token_hex(4)}.{name}"
    folder.rename(gone)
    disk.flush_folder(folder.parent)
    disk.flush_folder(above)
    shutil.rmtree(gone, ignore_errors=True)
