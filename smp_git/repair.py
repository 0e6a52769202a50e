"""What a dead writer or a power cut left behind, put right; the caller holds the lock."""

from __future__ import annotations

from smp_git.assembly import Change
from smp_git.checkout import check_out, mend_after_power_cut
from smp_git.git.objects import ObjectId
from smp_git.git.repository import MAIN, drop_own_ref_lock
from smp_git.snapshot import Reader


def is_needed(reader: Reader) -> bool:
    """Whether something local is not as a finished write leaves it."""
    local = reader.local
    return bool(local.pending()) or local.rebooted() or (local.folder / "ref").exists()


def repair(reader: Reader) -> list[str]:
    """Put the checked-out files, scratch files and stale locks right; return what was mended."""
    local = reader.local
    drop_own_ref_lock(reader.repository.git, reader.ref)
    local.sweep()
    mended: list[str] = []
    if reader.repository.checked_out() == MAIN:
        mended = _finish(reader) + (_after_reboot(reader) if local.rebooted() else [])
    local.clear_pending()
    if local.rebooted():
        local.note_boot()
    return mended


def _finish(reader: Reader) -> list[str]:
    """Check out what a write had published and not yet checked out."""
    pending = reader.local.pending()
    if not pending:
        return []
    repository = reader.repository
    tree = reader.snapshot().tree
    changes = [
        Change(path, None if old is None else ObjectId(old), repository.find(tree, path))
        for path, old in pending.items()
    ]
    check_out(reader.path, changes, repository.blob, reader.local.scratch("checkout"))
    return list(pending)


def _after_reboot(reader: Reader) -> list[str]:
    repository = reader.repository
    files = repository.files(reader.snapshot().tree)
    return mend_after_power_cut(
        reader.path, files, repository.blob, reader.local.scratch("checkout")
    )
