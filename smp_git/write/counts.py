"""Read counts moved from this replica's journal into its reference, so that they travel."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime
from typing import Final

from smp_git.git.objects import (
    BLOB,
    FILE_MODE,
    TREE,
    Child,
    Object,
    write_tree,
)
from smp_git.git.references import ACCESS
from smp_git.git.repository import MovedError, Repository
from smp_git.model.errors import SmpError
from smp_git.model.ids import sort_key
from smp_git.model.memory import CommitId
from smp_git.read.counts import FILE, Accesses, Counts
from smp_git.read.replica import Identity
from smp_git.write import commit
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
        repository, counts = writer.reader.repository, accesses.counted(ref)
        _publish(repository, ref, counts, identity, writer.clock())
        accesses.clear()


def _publish(
    repository: Repository, ref: str, counts: Counts, identity: Identity, at: datetime
) -> None:
    """Replace the reference by one parentless commit with these counts."""
    ordered = {name: list(counts[name]) for name in sorted(counts, key=sort_key)}
    blob = Object(BLOB, json.dumps(ordered, separators=(",", ":")).encode() + b"\n")
    tree = Object(TREE, write_tree({FILE: Child(FILE_MODE, blob.id)}))
    made = commit.of_accesses(tree.id, identity, at)
    with repository.store([blob, tree, made]) as written:
        repository.publish(ref, repository.head(ref), CommitId(made.id), written)
