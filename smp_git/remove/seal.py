"""Sealed copies: encrypted versions of deleted memories, and their keys in the user's data folder.

A key belongs to the store that made it. A copied store neither opens with it nor destroys
it while that store is there; one that was moved, or put back in its place, is that store.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import stat
import sys
import tarfile
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.git import disk
from smp_git.git.disk import reporting
from smp_git.model.errors import DamagedError, RefusedError
from smp_git.model.memory import MemoryId
from smp_git.model.times import format_time
from smp_git.remove.audit import life_of_row, time_of
from smp_git.remove.history.search import DeadVersion
from smp_git.write.handle import Home

KEY_BYTES: Final = 32
# Where a project has its store, and a home its data.
_IN_PROJECT: Final = ".bmad/sessions"
_OF_A_HOME: Final = frozenset(
    f"{folder}/smp-git/keys"
    for folder in (".local/share", "Library/Application Support", "AppData/Local")
)
# File systems that are gone after a restart.
_FLEETING: Final = frozenset({"tmpfs", "ramfs"})


def folder(home: Home) -> Path | None:
    """Return where keys are, or None if this user has no place that lasts as long as the store."""
    if home.settings.key_dir is not None:
        return home.settings.key_dir
    data = _data_folder(home.environment)
    if data is None:
        return None
    if _kind_of_disk(data) in _FLEETING and _kind_of_disk(home.path) not in _FLEETING:
        # Its disk is gone sooner than that of the store.
        return None
    return data / "smp-git" / "keys"


def _data_folder(environment: Mapping[str, str]) -> Path | None:
    if sys.platform == "win32":
        return _absolute(environment.get("LOCALAPPDATA"))
    given = _absolute(environment.get("XDG_DATA_HOME"))
    if given is not None:
        return given
    home = _absolute(environment.get("HOME"))
    if home is None or _is_missing(home) or home == Path(home.anchor):
        return None
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    return home / ".local" / "share"


def _absolute(text: str | None) -> Path | None:
    return Path(text) if text and Path(text).is_absolute() else None


def _is_missing(place: Path) -> bool:
    """Whether no folder is there; one that is closed to this user may be."""
    try:
        return not stat.S_ISDIR(place.stat().st_mode)
    except PermissionError:
        return False
    except OSError:
        return True


def _nearest(place: Path) -> Path:
    """Return a place, or the first folder above it that this user can see."""
    return next(above for above in (place, *place.parents) if os.access(above, os.F_OK))


def _closed(place: Path) -> Path | None:
    """Return the folder that keeps this user from writing in `place`, None if nothing does."""
    nearest = _nearest(place)
    return None if os.access(nearest, os.W_OK | os.X_OK) else nearest


def _kind_of_disk(place: Path) -> str:
    """Return the type of the file system below `place`, or an empty text if nobody says."""
    device = _nearest(place).stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}" if hasattr(os, "major") else ""
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return ""
    rows = [line.split(" ") for line in lines]
    return next((row[row.index("-") + 1] for row in reversed(rows) if row[2] == wanted), "")


def project_of(store: Path) -> Path | None:
    """Return the project that a store is a part of, which is copied and backed up with it."""
    place = store.resolve()
    if place.match(f"*/{_IN_PROJECT}"):
        return place.parents[1]
    return next((above for above in place.parents if (above / ".git").exists()), None)


def shares_tree(place: Path, store: Path) -> bool:
    """Whether a folder of keys is copied together with the store or its project.

    A home that holds a store, and is no repository, is the one tree that both may be in:
    there is nothing outside it for its user.
    """
    there, project = place.resolve(), project_of(store)
    if there.is_relative_to(store.resolve()):
        return True
    if project is None or not there.is_relative_to(project):
        return False
    is_home = there.relative_to(project).as_posix() in _OF_A_HOME
    return not is_home or (project / ".git").exists()


class Keys:
    """The keys of one session's sealed copies; each is a file of random bytes."""

    def __init__(self, home: Home, uid: str) -> None:
        place = folder(home)
        self._folder = place / uid if place is not None else None
        self._store = home.path

    def check(self) -> Path:
        """Return the folder; raise RefusedError unless it lasts, is open, and apart from the copies."""
        if self._folder is None:
            raise RefusedError(
                "there is no lasting folder for the key of a recoverable copy",
                hint="name one with key_dir in config.yaml, or delete for good with --purge",
            )
        if shares_tree(self._folder.parent, self._store):
            raise RefusedError(
                f"the folder for keys, {self._folder.parent}, lies in the store or the project that holds the copies",
                hint="name another with key_dir in config.yaml, or delete for good with --purge",
            )
        if closed := _closed(self._folder):
            raise RefusedError(
                f"the folder for keys, {self._folder.parent}, cannot be written: {closed} is closed to this user",
                hint=f"open {closed}, name another with key_dir in config.yaml, or delete for good with --purge",
            )
        return self._folder

    def check_destroyable(self, names: Iterable[str]) -> None:
        """Raise RefusedError if one of these keys may be there, and is out of reach."""
        if self._folder is None:
            return
        for name in names:
            if self._is_out_of_reach(self._folder / f"{name}.key") and not self.owner(name):
                closed = _closed(self._folder)
                raise RefusedError(
                    f"the key of {name} cannot be destroyed: {closed} is closed to this user",
                    hint=f"open {closed}, then try again",
                )

    def _is_out_of_reach(self, key: Path) -> bool:
        try:
            key.stat()
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return _closed(key.parent) is not None

    def has(self, deletion: str) -> bool:
        """Whether a key of a deletion is here."""
        return self._folder is not None and any(self._folder.glob(f"{deletion}.*"))

    def owner(self, name: str) -> Path | None:
        """Return the other store, still there, to which a key belongs; None if it is ours."""
        if self._folder is None:
            return None
        try:
            said = json.loads((self._folder / f"{name}.json").read_bytes())
            store, inode = Path(said["store"]), said["inode"]
        except (OSError, ValueError, KeyError, TypeError):
            # Made before keys said whose they are.
            return None
        here = self._store.resolve()
        if store == here or inode == here.stat().st_ino:
            return None
        return store if _inode(store) == inode else None

    def create(self, name: str) -> bytes:
        """Make a key, durable before this returns."""
        place = self.check()
        key = secrets.token_bytes(KEY_BYTES)
        with reporting(f"the key of {name}"):
            disk.make_folders(place)
            place.chmod(0o700)
            fd = os.open(place / f"{name}.key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                disk.write_all(fd, key)
                disk.flush(fd)
            finally:
                os.close(fd)
            here = self._store.resolve()
            said = {"store": str(here), "inode": here.stat().st_ino}
            owner = place / f"{name}.json"
            disk.replace_durably(owner, json.dumps(said).encode(), place / f"{name}.tmp")
            for each in (place, place.parent):
                disk.flush_folder(each)
        return key

    def read(self, name: str) -> bytes:
        """Return a key; raise DamagedError if it is lost, or another store's."""
        if owner := self.owner(name):
            raise DamagedError(
                f"the key of {name} belongs to the store at {owner}, of which this one is a copy",
                hint="restore it there, and sync",
            )
        where = f"in {self._folder}" if self._folder else "on this machine"
        try:
            key = (self._folder / f"{name}.key").read_bytes() if self._folder else b""
        except PermissionError as error:
            raise DamagedError(
                f"the key of {name} is closed to this user, so its sealed copy cannot be opened",
                hint=f"open {error.filename}, or restore as the user that deleted",
            ) from None
        except OSError:
            key = b""
        if len(key) != KEY_BYTES:
            raise DamagedError(
                f"the key of {name} is not {where}, so its sealed copy cannot be opened",
                hint="restore on the machine and as the user that deleted, or bring back the key",
            )
        return key

    def destroy(self, name: str) -> None:
        """Overwrite a key, remove it, and flush both; a key that is gone stays gone.

        Another store's key stays.
        """
        if self._folder is None or self.owner(name):
            return
        path = self._folder / f"{name}.key"
        with reporting(f"the key of {name}"):
            try:
                fd = os.open(path, os.O_WRONLY)
            except FileNotFoundError:
                path.with_suffix(".json").unlink(missing_ok=True)
                return
            try:
                disk.write_all(fd, secrets.token_bytes(KEY_BYTES))
                disk.flush(fd)
            finally:
                os.close(fd)
            path.unlink()
            path.with_suffix(".json").unlink(missing_ok=True)
            disk.flush_folder(path.parent)

    def destroy_all(self, deletion: str) -> None:
        """Destroy every key that a deletion ever had."""
        if self._folder is not None and self._folder.is_dir():
            for path in self._folder.glob("*.key"):
                if path.stem == deletion or path.stem.startswith(f"{deletion}."):
                    self.destroy(path.stem)


def _inode(store: Path) -> int | None:
    """Return the inode of a store, None if no store is there."""
    try:
        return store.stat().st_ino if (store / "config.yaml").is_file() else None
    except OSError:
        return None


# The first form did not bind the deadline.
_FIRST: Final = b"SMP-GIT SEALED 1\n"
_MAGIC: Final = b"SMP-GIT SEALED 2\n"
_NONCE_BYTES: Final = 12
_LIST: Final = "versions.json"


def packed(versions: Iterable[DeadVersion]) -> bytes:
    """Return versions as a compressed archive, in their order."""
    kept = list(versions)
    rows = [_row(version) for version in kept]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=6) as archive:
        _put(archive, _LIST, json.dumps(rows).encode())
        for number, version in enumerate(kept):
            _put(archive, f"{number:06d}", version.data)
    return out.getvalue()


def unpacked(data: bytes) -> list[DeadVersion]:
    """Return the versions of an archive."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
            rows = json.loads(_get(archive, _LIST))
            return [_version(row, _get(archive, f"{n:06d}")) for n, row in enumerate(rows)]
    except (tarfile.TarError, KeyError, ValueError, EOFError, OSError) as error:
        raise DamagedError(f"a copy for recovery cannot be read: {error}") from None


class Bound(NamedTuple):
    """Binding of a copy: it opens only as the copy of this deletion, until this deadline."""

    deletion: str
    uid: str
    deadline: datetime

    def data(self, magic: bytes) -> bytes:
        """Return the associated data of the encryption."""
        said = [b"smp-git sealed copy", self.deletion.encode(), self.uid.encode()]
        if magic == _MAGIC:
            said.append(format_time(self.deadline).encode())
        return b"\0".join(said)


def sealed(data: bytes, key: bytes, bound: Bound) -> bytes:
    """Return `data` encrypted, bound to its deletion, its session and its deadline."""
    from cryptography.hazmat.primitives.ciphers.aead import (  # noqa: PLC0415 - only deletions need it
        ChaCha20Poly1305,
    )

    nonce = secrets.token_bytes(_NONCE_BYTES)
    return _MAGIC + nonce + ChaCha20Poly1305(key).encrypt(nonce, data, bound.data(_MAGIC))


def opened(data: bytes, key: bytes, bound: Bound) -> bytes:
    """Return what was sealed; raise DamagedError if the key, copy or deadline is not the right one."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305  # noqa: PLC0415

    magic = next((each for each in (_MAGIC, _FIRST) if data.startswith(each)), None)
    if magic is None:
        raise DamagedError(f"the sealed copy of {bound.deletion} is damaged")
    start = len(magic) + _NONCE_BYTES
    try:
        return ChaCha20Poly1305(key).decrypt(
            data[len(magic) : start], data[start:], bound.data(magic)
        )
    except (InvalidTag, ValueError):
        raise DamagedError(
            f"the sealed copy of {bound.deletion} does not open: its key is another, or it or the deadline in its record was changed",
            hint="bring back the key, the copy and the record as they were when the memory was deleted",
        ) from None


def check_available() -> None:
    """Raise RefusedError if this installation cannot encrypt."""
    try:
        import cryptography  # noqa: F401, PLC0415 - asked before anything is done
    except ImportError:
        raise RefusedError(
            "the package cryptography is missing, so no recoverable copy can be made",
            hint="install it: pip install cryptography",
        ) from None


def _row(version: DeadVersion) -> dict[str, object]:
    return {
        "id": version.id,
        "life": version.life,
        "at": format_time(version.at),
        "agent": version.agent,
        "commit": version.commit,
        "current": version.current,
    }


def _version(row: dict[str, object], data: bytes) -> DeadVersion:
    return DeadVersion(
        id=MemoryId(str(row["id"])),
        life=life_of_row(row),
        at=time_of(row["at"]),
        agent=str(row["agent"]),
        commit=str(row["commit"]),
        current=bool(row["current"]),
        data=data,
    )


def _put(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    entry.mode = 0o600
    archive.addfile(entry, io.BytesIO(data))


def _get(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    if file is None:
        raise KeyError(name)
    return file.read()
