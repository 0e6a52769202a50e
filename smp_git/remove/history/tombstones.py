"""What was deleted, wherever it is written down: on any reference, and in the local copy."""

from __future__ import annotations

from collections.abc import Iterable

from smp_git.format import records
from smp_git.format.records import Tombstones
from smp_git.git import references
from smp_git.git.objects import COMMIT, raw_commit, read_tree
from smp_git.git.references import REMOTES
from smp_git.read.snapshot import Reader
from smp_git.remove.history.rewrite import TAG, Read


def effective(reader: Reader) -> Tombstones:
    """Return the union of all tombstones that this replica knows."""
    refs = references.read(reader.repository.git).items()
    tips = (bytes.fromhex(tip) for ref, tip in refs if is_proof(ref))
    return reader.local.tombstones() | named(reader.repository.raw, tips)


def is_proof(ref: str) -> bool:
    """Whether what a reference says was deleted counts: not what plain Git fetched past every check."""
    return not ref.startswith(REMOTES)


def named(read: Read, tips: Iterable[bytes]) -> Tombstones:
    """Return the union of the tombstones at some commits and tags."""
    blobs = {blob for tip in set(tips) if (blob := _blob(read, tip)) is not None}
    found = [item for blob in blobs for item in records.read(read(blob)[1]).items]
    return Tombstones(found)


def _blob(read: Read, tip: bytes) -> bytes | None:
    kind, data = read(tip)
    while kind == TAG:
        kind, data = read(bytes.fromhex(data[7:47].decode()))
    if kind != COMMIT:
        return None
    entry = read_tree(read(raw_commit(data).tree)[1]).get(records.PATH)
    return bytes.fromhex(entry.id) if entry is not None else None
