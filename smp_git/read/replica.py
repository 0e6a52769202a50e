"""The local files of a replica, `.git/smp`: its name, counters, epoch and markers."""

from __future__ import annotations

import json
import os
import string
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from smp_git.format import records
from smp_git.format.records import Tombstones
from smp_git.git import disk
from smp_git.git.objects import Signature
from smp_git.git.storage import Written
from smp_git.model.ids import random_name
from smp_git.model.times import format_time

# Most of the small files are shorter.
_USUAL: Final = 4096
_NOTHING: Final = b"{}"
_MACHINE_ID: Final = Path("/etc/machine-id")


class Use(StrEnum):
    """The use of a local file, which decides what becomes of it with a deletion."""

    KEPT = "kept"  # Holds no content; stays as it is.
    TRIMMED = "trimmed"  # Names memories; stays without those that are gone.
    CACHE = "cache"  # Can be made again; goes.
    CONTENT = "content"  # Holds text of memories; goes, and nothing of it may be left.


ACCESSES: Final = "access.log"
CATALOGUE: Final = "search-catalogue"
DAMAGED: Final = "damaged"
# What is known of each thing that was lost, in a folder of that.
RECORD: Final = "record.jsonl"
EMBEDDINGS: Final = "embeddings"
ERASURE: Final = "erasure.json"
EXPORTS: Final = "exports.json"
LEFT: Final = "left.json"
PACK_KEEP: Final = "pack-keep"
PENDING: Final = "pending.json"
REDO: Final = "redo"
REF: Final = "ref"
REMOTE_STATES: Final = "remotes.json"
SEARCH: Final = "search.db"
VECTORS: Final = "vectors"
_COUNTERS: Final = "counters.json"
_IDENTITY: Final = "replica.json"
_REPORTED: Final = "told.json"
_SIZE: Final = "size.json"
_TOMBSTONES: Final = "tombstones.json"
_VETTED: Final = "vetted.json"
# Every file of `.git/smp`, by name. What is not here is removed with the next deletion.
# Modules of git/ name their own once more, for they cannot look up here.
FILES: Final[Mapping[str, Use]] = MappingProxyType(
    {
        "boot": Use.KEPT,  # the start of the machine at which this was last in use
        _COUNTERS: Use.KEPT,  # the highest numbers given
        "epoch": Use.KEPT,  # how often history was rewritten
        ERASURE: Use.KEPT,  # a deletion under way: ids only
        "gc-lock": Use.KEPT,  # our link to a lock of Git's, as are the next four
        "index-lock": Use.KEPT,
        PACK_KEEP: Use.KEPT,
        "packed-lock": Use.KEPT,
        REF: Use.KEPT,
        "index-tree": Use.KEPT,  # the tree that Git's index was last brought up to
        "lock": Use.KEPT,  # who writes
        EXPORTS: Use.KEPT,  # where the session was exported to, and when
        REMOTE_STATES: Use.KEPT,  # what was last seen of each remote
        _IDENTITY: Use.KEPT,  # who this replica is
        _TOMBSTONES: Use.KEPT,  # what was deleted, whatever branch says so
        ACCESSES: Use.TRIMMED,  # which memories were read
        LEFT: Use.TRIMMED,  # checked-out files that a person had changed
        PENDING: Use.TRIMMED,  # checked-out files that a write is about to change
        VECTORS: Use.TRIMMED,  # what memories mean, in numbers
        EMBEDDINGS: Use.CACHE,  # what texts of programs mean, in numbers, by digests of the texts
        _SIZE: Use.CACHE,  # the bytes of a tree, and when it was tried to make it smaller
        _REPORTED: Use.CACHE,  # commits that Git took off main and a person was told of
        _VETTED: Use.CACHE,  # up to where others' commits were looked through
        DAMAGED: Use.CONTENT,  # what a repair could not use: broken files, and what is known of them
        REDO: Use.CONTENT,  # the write-ahead log of an earlier version, until it is replayed
        CATALOGUE: Use.CONTENT,
        SEARCH: Use.CONTENT,
        f"{SEARCH}-journal": Use.CONTENT,
        f"{SEARCH}-shm": Use.CONTENT,
        f"{SEARCH}-wal": Use.CONTENT,
    }
)


def use_of(name: str) -> Use | None:
    """Return what a file of `.git/smp` is for, None if nobody knows it."""
    # Half-made files are content until they have their own name.
    return Use.CONTENT if name.endswith((".tmp", ".tmp.lock")) else FILES.get(name)


# Ends the address of whoever commits by this program.
OURS: Final = "@smp"
# Signs what follows from its parents, and so is nobody's own: the same on every replica.
_PRODUCT: Final = "smp-git"


class Identity(NamedTuple):
    """The identity of a replica: its tag, and whether it created the session (then ids carry no tag)."""

    tag: str
    creator: bool

    @property
    def suffix(self) -> str:
        """The tag that new ids carry."""
        return "" if self.creator else self.tag

    def signs(self, agent: str, at: datetime) -> tuple[Signature, Signature]:
        """Return the author and the committer of a commit: the agent, and this replica."""
        return Signature(agent, f"{agent}{OURS}", at), self.signature(at)

    def signature(self, at: datetime) -> Signature:
        """Return how this replica signs for itself."""
        return Signature(f"smp-{self.tag}", f"{self.tag}{OURS}", at)


def product_signs(at: datetime) -> tuple[Signature, Signature]:
    """Return author and committer of a commit that any replica would make alike."""
    signed = Signature(_PRODUCT, f"{_PRODUCT}{OURS}", at)
    return signed, signed


def is_products(email: str) -> bool:
    """Whether a commit is signed by no replica of its own."""
    return email == f"{_PRODUCT}{OURS}"


def new_tag() -> str:
    """Return a random tag: four characters, the first a letter."""
    letters = string.ascii_lowercase
    return random_name(letters, 1) + random_name(letters + string.digits, 3)


class Local:
    """The local files of one replica; none of them travels."""

    def __init__(self, git: Path) -> None:
        self.folder = git / "smp"
        self.lock_path = self.folder / "lock"
        self._pending = f"{self.folder}/{PENDING}"
        self._redo = f"{self.folder}/{REDO}"
        self._counters = f"{self.folder}/{_COUNTERS}"
        self._left = f"{self.folder}/{LEFT}"
        self._epoch = str(self.folder / "epoch")
        self._tombstones: tuple[bytes, Tombstones] = b"", Tombstones()

    def scratch(self, name: str) -> str:
        """Return a place for a file that is about to be renamed into the session."""
        return f"{self.folder}/{name}.tmp"

    # The epoch: raised by whatever rewrites history under open handles

    def epoch(self) -> bytes:
        """Return the epoch; a change means that every handle must be opened anew."""
        try:
            fd = os.open(self._epoch, os.O_RDONLY)
        except FileNotFoundError:
            return b""
        try:
            return os.read(fd, _USUAL)
        finally:
            os.close(fd)

    def raise_epoch(self) -> None:
        """Make every handle open anew before it answers or writes again."""
        before = self.epoch()
        number = int(before) + 1 if before.isdigit() else 1
        disk.replace_durably(self._epoch, str(number).encode(), self.scratch("epoch"))

    # What was deleted here, whatever branch says so; only grows

    def tombstones(self) -> Tombstones:
        """Return the local copy of the tombstones."""
        path = f"{self.folder}/{_TOMBSTONES}"
        if not os.access(path, os.F_OK):
            return Tombstones()
        data = Path(path).read_bytes()
        if data != self._tombstones[0]:
            self._tombstones = data, records.read(data)
        return self._tombstones[1]

    def keep_tombstones(self, found: Tombstones) -> None:
        """Add to the local copy of the tombstones, durably."""
        known = self.tombstones()
        if not known.covers(found):
            data = records.write(known | found)
            disk.replace_durably(self.folder / _TOMBSTONES, data, self.scratch(_TOMBSTONES))

    # Identity

    def identity(self, session: Path) -> Identity | None:
        """Return who writes here, or None if this folder is a copy or a fresh clone.

        A folder that was moved stays itself: same machine, same inode, and nothing left
        at the place it had before.
        """
        kept = _json(self.folder / _IDENTITY)
        here = _place(session, session)
        same = all(kept.get(key) == here[key] for key in ("machine", "inode"))
        before = Path(str(kept.get("path")))
        if not same or (str(before) != here["path"] and (before / ".git" / "smp").exists()):
            return None
        return self.known_identity()

    def known_identity(self) -> Identity | None:
        """Return who wrote here last, wherever this folder has come to since."""
        kept = _json(self.folder / _IDENTITY)
        if not isinstance(kept.get("tag"), str):
            return None
        return Identity(str(kept["tag"]), bool(kept.get("creator")))

    def identify(self, session: Path, identity: Identity, place: Path) -> None:
        """Remember who writes in the folder `session`, which is or will be at `place`."""
        self._keep(_IDENTITY, {**_place(session, place), **identity._asdict()})

    # Counters

    def counters(self) -> dict[str, int]:
        """Return the highest number given, by prefix; empty if none is known."""
        return {
            prefix: number
            for prefix, number in _json(self._counters).items()
            if isinstance(number, int)
        }

    def keep_counters(self, counters: Mapping[str, int], written: Written | None = None) -> None:
        """Remember the highest numbers; `written` makes them durable with a commit."""
        fd = self._overwrite(_COUNTERS, counters)
        if written is not None:
            written.keep(fd, str(self.folder))
        else:
            os.close(fd)

    # The pending marker: which checked-out files a write in progress concerns

    def mark_pending(self, changes: Mapping[str, str | None]) -> None:
        """Note the files about to change, each with its version before."""
        os.close(self._overwrite(PENDING, changes))

    def pending(self) -> dict[str, str | None]:
        """Return the files that a write left unfinished; empty if none did."""
        found = _json(self._pending)
        return {path: old if isinstance(old, str) else None for path, old in found.items()}

    def is_unfinished(self) -> bool:
        """Whether the next write has to finish one, or what the log of an earlier version has."""
        return os.access(self._redo, os.F_OK) or bool(self.pending())

    def clear_pending(self) -> None:
        """Note that the checked-out files are up to date."""
        os.close(self._overwrite(PENDING, {}))

    # What was looked through for memories that others' commits dropped

    def vetted(self) -> tuple[str | None, dict[str, list[str]]]:
        """Return the commit up to which was looked, and what was found by commit."""
        kept = _json(self.folder / _VETTED)
        commit, found = kept.get("commit"), kept.get("found")
        if not isinstance(commit, str) or not isinstance(found, dict):
            return None, {}
        return commit, {str(name): [str(each) for each in ids] for name, ids in found.items()}

    def note_vetted(self, commit: str, found: Mapping[str, list[str]]) -> None:
        """Remember the commit up to which was looked, and what was found by commit."""
        os.close(self._overwrite(_VETTED, {"commit": commit, "found": dict(found)}))

    def forget_vetted(self) -> None:
        """Forget it: another look goes through all commits."""
        (self.folder / _VETTED).unlink(missing_ok=True)

    def is_erasing(self) -> bool:
        """Whether a deletion was begun and not finished."""
        return (self.folder / ERASURE).exists()

    # Losses that were reported, each once

    def reported(self) -> list[str]:
        """Return the commits that Git took off main, as far as a person was told so."""
        found = _json(self.folder / _REPORTED).get("commits")
        return [str(each) for each in found] if isinstance(found, list) else []

    def note_reported(self, commits: Iterable[str]) -> None:
        """Remember the commits that a person was told of."""
        os.close(self._overwrite(_REPORTED, {"commits": list(commits)}))

    # How many bytes a tree has, and at how many a compaction found nothing more to do

    def size(self) -> tuple[str, int] | None:
        """Return the tree whose bytes were counted last, and how many they are."""
        kept = _json(self.folder / _SIZE)
        tree, size = kept.get("tree"), kept.get("bytes")
        return (tree, size) if isinstance(tree, str) and isinstance(size, int) else None

    def keep_size(self, tree: str, size: int) -> None:
        """Remember the bytes of a tree."""
        self._keep(_SIZE, {**_json(self.folder / _SIZE), "tree": tree, "bytes": size})

    def tried(self) -> int:
        """Return the bytes at which a compaction was last tried; 0 if none was."""
        size = _json(self.folder / _SIZE).get("tried")
        return size if isinstance(size, int) else 0

    def note_tried(self, size: int) -> None:
        """Remember the bytes at which a compaction was tried."""
        self._keep(_SIZE, {**_json(self.folder / _SIZE), "tried": size})

    # What a repair kept aside

    def kept_aside(self) -> int:
        """Return of how many lost memories and files something is known."""
        count = 0
        for file in (self.folder / DAMAGED).glob(f"*/{RECORD}"):
            with suppress(OSError):
                count += len(file.read_bytes().splitlines())
        return count

    # Copies that were exported

    def exports(self) -> dict[str, str]:
        """Return where the session was exported to, and when."""
        found = _json(self.folder / EXPORTS)
        return {place: at for place, at in found.items() if isinstance(at, str)}

    def note_exports(self, places: Iterable[Path], at: datetime) -> None:
        """Remember copies, and forget those that are gone."""
        known = {name: when for name, when in self.exports().items() if Path(name).exists()}
        with disk.reporting(f"to session {self.folder.parent.parent.name}"):
            self._keep(EXPORTS, {**known, **{str(each): format_time(at) for each in places}})

    def told_of_size(self) -> int:
        """Return which warning of its size was given last; 0 if none holds."""
        level = _json(self.folder / _SIZE).get("told")
        return level if isinstance(level, int) else 0

    def note_told_of_size(self, level: int) -> None:
        """Remember the warning that was given."""
        self._keep(_SIZE, {**_json(self.folder / _SIZE), "told": level})

    # Checked-out files left alone because a person had changed them

    def left_alone(self) -> dict[str, str]:
        """Return the files that writes left alone, each with the version it was edited from."""
        found = _json(self._left)
        return {path: blob for path, blob in found.items() if isinstance(blob, str)}

    def note_left_alone(self, bases: Mapping[str, str | None], done: Iterable[str]) -> None:
        """Note the files that a write left alone, and those that it brought up to date."""
        known = self.left_alone()
        if not known and not bases:
            return
        finished = set(done)
        kept = {path: blob for path, blob in known.items() if path not in finished}
        kept |= {
            path: blob for path, blob in bases.items() if blob is not None and path not in known
        }
        if kept != known:
            self._keep(LEFT, kept)

    # The boot: a change means that the machine may have lost what was not fsynced

    def rebooted(self) -> bool:
        """Whether the machine has started anew since this was last noted."""
        kept = _text(self.folder / "boot")
        return kept != disk.boot()

    def note_boot(self) -> None:
        """Note the present boot."""
        boot = disk.boot()
        if boot:
            disk.replace_file(self.folder / "boot", boot.encode(), self.scratch("boot"))

    def sweep(self) -> None:
        """Remove what dead writers left half-made; the caller holds the lock."""
        for scratch in (
            *self.folder.glob("*.tmp"),
            *self.folder.glob("*.tmp.lock"),
            *self.folder.parent.glob("objects/tmp_obj_smp*"),
            *self.folder.glob("tmp_obj_smp*"),
        ):
            scratch.unlink(missing_ok=True)

    def _overwrite(self, name: str, value: object) -> int:
        """Write a small file in place, its first line being the value; return its descriptor.

        A new file renamed over the old one would make the file system write it out at
        once, which costs more than the whole commit. A torn file reads as empty.
        """
        fd = os.open(f"{self.folder}/{name}", os.O_WRONLY | os.O_CREAT, 0o600)
        disk.write_all(fd, json.dumps(value).encode() + b"\n" if value else b"{}\n")
        return fd

    def _keep(self, name: str, value: object) -> Path:
        path = self.folder / name
        disk.replace_file(path, json.dumps(value).encode(), self.scratch(name))
        return path


def folder_identity(folder: Path) -> dict[str, object]:
    """Return what tells a folder from a copy of it."""
    return {"machine": _text(_MACHINE_ID), "inode": folder.stat().st_ino}


def _place(session: Path, place: Path) -> dict[str, object]:
    return {**folder_identity(session), "path": str(place.resolve())}


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _json(path: Path | str) -> dict[str, object]:
    """Return the value on the first line of a file, empty if it is missing or torn."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return {}
    try:
        data = os.read(fd, _USUAL)
        while b"\n" not in data and (more := os.read(fd, _USUAL)):
            data += more
        line = data.partition(b"\n")[0]
        found = json.loads(line) if line != _NOTHING else {}
    except (OSError, ValueError):
        return {}
    finally:
        os.close(fd)
    return found if isinstance(found, dict) else {}
