"""The commit that brings carried and joined memories or records, the same on every replica."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from smp_git.format import messages
from smp_git.format.messages import Touch
from smp_git.format.records import Tombstones
from smp_git.git.objects import COMMIT, Object, write_commit
from smp_git.model.ids import parse_path
from smp_git.model.memory import CommitId
from smp_git.read.replica import product_signs
from smp_git.read.snapshot import Snapshot
from smp_git.write.tree import Assembly, assemble


def records(said: Tombstones, brought: Iterable[str], known: Tombstones) -> Tombstones:
    """Return the records of a commit, with what is known of the memories that it brings."""
    places = [place for path in brought if (place := parse_path(path)) is not None]
    return said | Tombstones.of({place.text: known.lives(place.text) for place in places})


class Made(NamedTuple):
    """A commit that is not written yet, the last of its objects, and its tree."""

    id: CommitId
    tree: Assembly
    objects: list[Object]


def made(
    base: Snapshot, files: Mapping[str, bytes | None], *, subject: str = messages.UPGRADE
) -> Made:
    """Return a commit on top of another, a function of it and the files.

    The `subject` is that of a commit which brings no memory.
    """
    tree = assemble(base, files)
    places = [place for path in sorted(files) if (place := parse_path(path)) is not None]
    # A rewrite would take what names a memory out of the message of a commit without it.
    touches = [
        Touch(messages.CARRY, place.kind.name, place.text)
        for place in places
        if files[place.path] is not None
    ]
    author, committer = product_signs(base.commit.time)
    rest = messages.BATCH if places else subject
    text = messages.write(touches, author.name, subject=messages.CARRY_BATCH if touches else rest)
    commit = Object(COMMIT, write_commit(tree.tree, (base.id,), author, committer, text))
    return Made(CommitId(commit.id), tree, [*tree.objects, commit])
