"""Read counts moved from this replica's journal into its reference, so that they travel."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Final

from smp_git.format import messages
from smp_git.git.objects import (
    BLOB,
    COMMIT,
    FILE_MODE,
    TREE,
    Child,
    Object,
    Signature,
    write_commit,
    write_tree,
)
from smp_git.git.references import ACCESS
from smp_git.git.repository import MovedError, Repository
from smp_git.model.errors import SmpError
from smp_git.model.ids import sort_key
from smp_git.model.memory import CommitId
from smp_git.read.counts import FILE, Accesses, Counts
from smp_git.write.writer import Writer

# A shorter journal stays what it is, unless it is to be pushed.
_FOLD_BYTES: Final = 64_000


def fold(accesses: Accesses, writer: Writer, *, everything: bool = False) -> None:
    """Keep what was counted, and move a long journal into this replica's reference.

    With `everything` a short one is moved too, so that it can be pushed.
    """
    accesses.flush()
    if accesses.journal_size() < (1 if everything else _FOLD_BYTES):
        return
    with suppress(SmpError, MovedError), writer.holding("counting accesses"):
        identity = writer.identity()
        ref = ACCESS + identity.tag
        signed = identity.signature(writer.clock())
        _publish(writer.reader.repository, ref, accesses.counted(ref), signed)
        accesses.clear()


def _publish(repository: Repository, ref: str, counts: Counts, signed: Signature) -> None:
    """Replace the reference by one parentless commit with these counts."""
    ordered = {name: list(counts[name]) for name in sorted(counts, key=sort_key)}
    blob = Object(BLOB, json.dumps(ordered, separators=(",", ":")).encode() + b"\n")
    tree = Object(TREE, write_tree({FILE: Child(FILE_MODE, blob.id)}))
    commit = Object(COMMIT, write_commit(tree.id, (), signed, signed, messages.ACCESSES))
    with repository.store([blob, tree, commit]) as written:
        repository.publish(ref, repository.head(ref), CommitId(commit.id), written)
