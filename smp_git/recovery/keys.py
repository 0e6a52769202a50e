"""The keys of sealed copies: in the user's own data folder, one a deletion, destroyed by a purge."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from smp_git.errors import DamagedError, RefusedError
from smp_git.git import disk
from smp_git.git.disk import reporting

KEY_BYTES: Final = 32
# File systems that are gone after a restart.
_FLEETING: Final = frozenset({"tmpfs", "ramfs"})


def folder(key_dir: Path | None, environment: Mapping[str, str], store: Path) -> Path | None:
    """Return where keys stand, or None if this user has no place that lasts as long as the store."""
    if key_dir is not None:
        return key_dir
    data = _data_folder(environment)
    if data is None or not _may_write(data) or _is_fleeting(data, store):
        return None
    return data / "smp-git" / "keys"


def _data_folder(environment: Mapping[str, str]) -> Path | None:
    if sys.platform == "win32":
        return _absolute(environment.get("LOCALAPPDATA"))
    given = _absolute(environment.get("XDG_DATA_HOME"))
    if given is not None:
        return given
    home = _absolute(environment.get("HOME"))
    if home is None or not home.is_dir() or home == Path(home.anchor):
        return None
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    return home / ".local" / "share"


def _absolute(text: str | None) -> Path | None:
    return Path(text) if text and Path(text).is_absolute() else None


def _may_write(place: Path) -> bool:
    nearest = next(above for above in (place, *place.parents) if above.exists())
    return os.access(nearest, os.W_OK | os.X_OK)


def _is_fleeting(place: Path, store: Path) -> bool:
    """Whether the disk of `place` is gone sooner than that of the store."""
    return _kind_of_disk(place) in _FLEETING and _kind_of_disk(store) not in _FLEETING


def _kind_of_disk(place: Path) -> str:
    """Return the type of the file system below `place`, or an empty text if nobody says."""
    nearest = next(above for above in (place, *place.parents) if above.exists())
    device = nearest.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}" if hasattr(os, "major") else ""
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return ""
    rows = [line.split(" ") for line in lines]
    return next((row[row.index("-") + 1] for row in reversed(rows) if row[2] == wanted), "")


class Keys:
    """The keys of one session's sealed copies; each is a file of random bytes."""

    def __init__(self, place: Path | None, uid: str) -> None:
        self._folder = place / uid if place is not None else None
        self._uid = uid

    def check(self) -> Path:
        """Return the folder; raise RefusedError if there is no lasting one."""
        if self._folder is None:
            raise RefusedError(
                "there is no lasting folder for the key of a recoverable copy",
                hint="name one with key_dir in config.yaml, or delete for good with --purge",
            )
        return self._folder

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
                disk.force(fd)
            finally:
                os.close(fd)
            for each in (place, place.parent):
                disk.force_folder(each)
        return key

    def read(self, name: str) -> bytes:
        """Return a key; raise DamagedError if it is lost."""
        where = f"in {self._folder}" if self._folder else "on this machine"
        try:
            key = (self._folder / f"{name}.key").read_bytes() if self._folder else b""
        except OSError:
            key = b""
        if len(key) != KEY_BYTES:
            raise DamagedError(
                f"the key of {name} is not {where}, so its sealed copy cannot be opened",
                hint="restore on the machine and as the user that deleted, or bring back the key",
            )
        return key

    def destroy(self, name: str) -> None:
        """Overwrite a key, remove it, and force both out; a key that is gone stays gone."""
        if self._folder is None:
            return
        path = self._folder / f"{name}.key"
        with reporting(f"the key of {name}"):
            try:
                fd = os.open(path, os.O_WRONLY)
            except FileNotFoundError:
                return
            try:
                disk.write_all(fd, secrets.token_bytes(KEY_BYTES))
                disk.force(fd)
            finally:
                os.close(fd)
            path.unlink()
            disk.force_folder(path.parent)
