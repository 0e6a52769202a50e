"""The keys of sealed copies: in the user's own data folder, one a deletion, destroyed by a purge.

A key belongs to the store that made it. A copied store neither opens with it nor destroys
it while that store stands; one that was moved, or put back in its place, is that store.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from smp_git.git import disk
from smp_git.git.disk import reporting
from smp_git.model.errors import DamagedError, RefusedError

KEY_BYTES: Final = 32
# Where a project has its store, and a home its data.
_IN_PROJECT: Final = ".bmad/sessions"
_OF_A_HOME: Final = frozenset(
    f"{folder}/smp-git/keys"
    for folder in (".local/share", "Library/Application Support", "AppData/Local")
)
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

    def __init__(self, place: Path | None, uid: str, store: Path) -> None:
        self._folder = place / uid if place is not None else None
        self._uid = uid
        self._store = store

    def check(self) -> Path:
        """Return the folder; raise RefusedError if there is no lasting one, apart from the copies."""
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
        return self._folder

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
                disk.force(fd)
            finally:
                os.close(fd)
            here = self._store.resolve()
            said = {"store": str(here), "inode": here.stat().st_ino}
            owner = place / f"{name}.json"
            disk.replace_durably(owner, json.dumps(said).encode(), place / f"{name}.tmp")
            for each in (place, place.parent):
                disk.force_folder(each)
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
        except OSError:
            key = b""
        if len(key) != KEY_BYTES:
            raise DamagedError(
                f"the key of {name} is not {where}, so its sealed copy cannot be opened",
                hint="restore on the machine and as the user that deleted, or bring back the key",
            )
        return key

    def destroy(self, name: str) -> None:
        """Overwrite a key, remove it, and force both out; a key that is gone stays gone.

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
                disk.force(fd)
            finally:
                os.close(fd)
            path.unlink()
            path.with_suffix(".json").unlink(missing_ok=True)
            disk.force_folder(path.parent)

    def destroy_all(self, deletion: str) -> None:
        """Destroy every key that a deletion ever had."""
        if self._folder is not None and self._folder.is_dir():
            for path in self._folder.glob("*.key"):
                if path.stem == deletion or path.stem.startswith(f"{deletion}."):
                    self.destroy(path.stem)


def _inode(store: Path) -> int | None:
    """Return the inode of a store, None if no store stands there."""
    try:
        return store.stat().st_ino if (store / "config.yaml").is_file() else None
    except OSError:
        return None
