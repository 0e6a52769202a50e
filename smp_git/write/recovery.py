"""What a dead writer or a power cut left behind, put right; the caller holds the lock."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Final

from smp_git.git import references, staging, storage
from smp_git.git.objects import BLOB, ObjectId, object_id
from smp_git.git.repository import MAIN, drop_own_ref_lock
from smp_git.model.ids import is_index, parse_path
from smp_git.read.replica import PACK_KEEP, REF
from smp_git.read.snapshot import Reader
from smp_git.write.tree import TreeChange, check_out, is_lost, standing

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
    for ref in (*_locked_by_us(git), reader.ref):
        drop_own_ref_lock(git, ref)
    staging.drop_own_index_lock(git)
    references.drop_own_lock(git)
    local.sweep()
    storage.drop_marks(git / "objects")
    mended: list[str] = []
    if reader.repository.checked_out() == MAIN:
        mended = _finish(reader) + (_after_reboot(reader) if local.rebooted() else [])
    local.clear_pending()
    if local.rebooted():
        local.note_boot()
    return mended


def _locked_by_us(git: Path) -> list[str]:
    """Return the references that a writer of ours had locked when it died."""
    own = git / "smp" / REF
    locks = (git / "refs").rglob("*.lock") if own.exists() else ()
    return [str(lock.relative_to(git).with_suffix("")) for lock in locks if own.samefile(lock)]


def _finish(reader: Reader) -> list[str]:
    """Check out what a write had published and not yet checked out."""
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
    version may stand there, which would be taken for a person's edit.
    """
    repository = reader.repository
    storage.sweep(repository.git / "objects")
    staging.forget(repository.git)
    wanted = dict(repository.files(reader.main().tree))
    found = dict(standing(reader.path))
    names = {path: object_id(BLOB, data) for path, data in found.items()}
    unlike = [
        path
        for path in wanted.keys() | found.keys()
        if wanted.get(path) != names.get(path) and (path in wanted or parse_path(path))
    ]
    lost = {path for path in unlike if is_lost(found.get(path)) or is_index(path)}
    lost |= _earlier(reader, {path: names[path] for path in unlike if path not in lost})
    changes = [TreeChange(path, names.get(path), wanted.get(path)) for path in sorted(lost)]
    check_out(reader.path, changes, repository.blob, reader.local.scratch("checkout"))
    return sorted(lost)


def _earlier(reader: Reader, found: Mapping[str, ObjectId]) -> set[str]:
    """Return the files that stand in a version which one of the latest commits has."""
    earlier: set[str] = set()
    repository = reader.repository
    for commit in islice(repository.walk(reader.main().id), _LOOKED_BACK):
        rest = found.keys() - earlier
        if not rest:
            break
        earlier |= {path for path in rest if repository.find(commit.tree, path) == found[path]}
    return earlier
