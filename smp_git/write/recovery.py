"""Recovery after a crash: files, locks and packs put right, and the log of earlier versions replayed."""

from __future__ import annotations

import json
import struct
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

from smp_git.git import disk, references, staging, storage
from smp_git.git.locks import locked
from smp_git.git.objects import BLOB, Object, ObjectId, object_id
from smp_git.git.repository import MAIN, drop_own_ref_lock
from smp_git.git.storage import Written, store
from smp_git.model.errors import SmpError
from smp_git.model.ids import is_index, parse_path
from smp_git.read.replica import PACK_KEEP, REDO, REF, Local
from smp_git.read.snapshot import Reader

# More commits than are made in the time that the system keeps written data to itself.
_LOOKED_BACK: Final = 2_000


def is_needed(reader: Reader) -> bool:
    """Whether something local is not as a finished write leaves it."""
    local = reader.local
    return (
        bool(local.pending())
        or local.rebooted()
        or (local.folder / REF).exists()
        or (local.folder / PACK_KEEP).exists()
        or staging.is_locked_by_us(reader.repository.git)
        or references.is_locked_by_us(reader.repository.git)
    )


def repair(reader: Reader) -> list[str]:
    """Put the checked-out files, scratch files and stale locks right; return what was mended."""
    local = reader.local
    git = reader.repository.git
    replay(git)
    unlock(git, reader.ref)
    local.sweep()
    storage.drop_marks(git / "objects")
    mended: list[str] = []
    if reader.repository.checked_out() == MAIN:
        mended = _finish(reader) + (_after_reboot(reader) if local.rebooted() else [])
    local.clear_pending()
    if local.rebooted():
        local.note_boot()
    return mended


def unlock(git: Path, *refs: str) -> None:
    """Remove Git's locks that a writer of ours left when it died; the caller holds the session's."""
    for ref in (*_locked_by_us(git), *refs):
        drop_own_ref_lock(git, ref)
    staging.drop_own_index_lock(git)
    references.drop_own_lock(git)


def _locked_by_us(git: Path) -> list[str]:
    """Return the references that a writer of ours had locked when it died."""
    own = git / "smp" / REF
    locks = (git / "refs").rglob("*.lock") if own.exists() else ()
    return [str(lock.relative_to(git).with_suffix("")) for lock in locks if own.samefile(lock)]


def _finish(reader: Reader) -> list[str]:
    """Check out what a write had published and not yet checked out."""
    from smp_git.write.commit import TreeChange, check_out  # noqa: PLC0415 - after a crash

    pending = reader.local.pending()
    if not pending:
        return []
    repository = reader.repository
    tree = reader.main().tree
    changes = [
        TreeChange(path, None if old is None else ObjectId(old), repository.find(tree, path))
        for path, old in pending.items()
    ]
    check_out(reader.path, changes, repository.blob, reader.local.scratch("checkout"))
    return list(pending)


def _after_reboot(reader: Reader) -> list[str]:
    """Check out what a power cut emptied, lost, or took back to an earlier version.

    The newest commit was fsynced and the checked-out files were not, so an old
    version may be there, which would be taken for a person's edit.
    """
    from smp_git.write import commit  # noqa: PLC0415 - after a power cut

    repository = reader.repository
    storage.sweep(repository.git / "objects")
    staging.forget(repository.git)
    wanted = dict(repository.files(reader.main().tree))
    found = dict(commit.checked_out_files(reader.path))
    names = {path: object_id(BLOB, data) for path, data in found.items()}
    unlike = [
        path
        for path in wanted.keys() | found.keys()
        if wanted.get(path) != names.get(path) and (path in wanted or parse_path(path))
    ]
    lost = {path for path in unlike if commit.is_lost(found.get(path)) or is_index(path)}
    lost |= _earlier(reader, {path: names[path] for path in unlike if path not in lost})
    changes = [commit.TreeChange(path, names.get(path), wanted.get(path)) for path in sorted(lost)]
    commit.check_out(reader.path, changes, repository.blob, reader.local.scratch("checkout"))
    return sorted(lost)


def _earlier(reader: Reader, found: Mapping[str, ObjectId]) -> set[str]:
    """Return the files that are a version which one of the latest commits has."""
    earlier: set[str] = set()
    repository = reader.repository
    for commit in islice(repository.walk(reader.main().id), _LOOKED_BACK):
        rest = found.keys() - earlier
        if not rest:
            break
        earlier |= {path for path in rest if repository.find(commit.tree, path) == found[path]}
    return earlier


_FRAME: Final = struct.Struct(">4sII")
_MAGIC: Final = b"smp1"
# A writer that is at work has the lock for milliseconds.
_PATIENCE_SECONDS: Final = 5.0

# The head of a record: where a reference was and goes, the counters, and what is in its body.
_Head = dict[str, Any]


def before_reading(path: Path) -> None:
    """Bring back what only the log has, before anybody looks at the session at `path`."""
    if (path / ".git/smp" / REDO).exists():
        deadline, lock = time.monotonic() + _PATIENCE_SECONDS, Local(path / ".git").lock_path
        # What cannot be brought back now, on a disk that is read-only, is by the next writer.
        with (
            suppress(SmpError),
            disk.reporting(f"to session {path.name}"),
            locked(lock, deadline, "recovering"),
        ):
            replay(path / ".git")


def replay(git: Path) -> None:
    """Make durable what the log has, if there is one, and remove it; the caller holds the lock."""
    log = git / "smp" / REDO
    if not log.exists():
        return
    records = list(_records(log.read_bytes()))
    heads = [head for head, _ in records]
    objects = {item.id: item for _, body in records for item in body}
    with Written(git / "objects") as written:
        store(git / "objects", list(objects.values()), written)
        _recount(Local(git), heads, written)
        written.flush()
    for ref in {head["ref"]: None for head in heads}:
        _move(git, ref, [head for head in heads if head["ref"] == ref])
    log.unlink()


def _records(data: bytes) -> Iterator[tuple[_Head, list[Object]]]:
    """Yield the whole records, oldest first; the check of each goes on from the one before."""
    at = total = 0
    while len(frame := data[at : at + _FRAME.size]) == _FRAME.size:
        magic, length, expected = _FRAME.unpack(frame)
        body = data[at + _FRAME.size : at + _FRAME.size + length]
        total = zlib.crc32(body, total)
        if magic != _MAGIC or total != expected:
            return
        yield _read(body)
        at += _FRAME.size + length


def _read(body: bytes) -> tuple[_Head, list[Object]]:
    line, _, rest = body.partition(b"\n")
    head: _Head = json.loads(line)
    objects = []
    for _, length in head["objects"]:
        kind, _, data = zlib.decompress(rest[:length]).partition(b"\0")
        objects.append(Object(kind.partition(b" ")[0], data))
        rest = rest[length:]
    return head, objects


def _recount(local: Local, heads: list[_Head], written: Written) -> None:
    counters = local.counters()
    for head in heads:
        counters |= {
            prefix: max(number, counters.get(prefix, 0))
            for prefix, number in head["counters"].items()
        }
    if counters:
        local.keep_counters(counters, written)


def _move(git: Path, ref: str, heads: list[_Head]) -> None:
    """Move a reference to the newest write, unless somebody else put it where it is."""
    drop_own_ref_lock(git, ref)
    new = heads[-1]["new"]
    if _is_lost(git, ref, heads):
        disk.replace_durably(git / ref, f"{new}\n".encode(), git / "smp" / "ref.tmp")


def _is_lost(git: Path, ref: str, heads: list[_Head]) -> bool:
    """Whether a power cut took the last move of a reference.

    A reference that Git moved is a file of which no record knows the time.
    """
    file, last = git / ref, heads[-1]
    try:
        text = file.read_bytes().strip().decode("ascii", "replace")
        time_ns = file.stat().st_mtime_ns
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        packed = git / "packed-refs"
        seen = packed.stat().st_mtime_ns if packed.exists() else None
        return str(last["boot"]) != disk.boot() and seen == last["stood"][2]
    if len(text) != len(last["new"]) or not text.isalnum():
        return True
    return bool(text != last["new"]) and any(head["stood"][:2] == [text, time_ns] for head in heads)
