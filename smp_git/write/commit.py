"""The only maker of commits: who signs, on what, with which message; the rewrite copies instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from smp_git.format import messages
from smp_git.format.messages import Touch
from smp_git.format.records import Tombstones
from smp_git.git.objects import COMMIT, Object, ObjectId, Signature, write_commit
from smp_git.model.ids import parse_path
from smp_git.model.memory import CommitId
from smp_git.read.replica import Identity, product_signs
from smp_git.read.snapshot import Snapshot
from smp_git.write.tree import Assembly, assemble


class Made(NamedTuple):
    """A commit that is not written yet, the last of its objects, and its tree."""

    id: CommitId
    tree: Assembly
    objects: list[Object]


def signed(
    tree: ObjectId,
    parents: tuple[CommitId, ...],
    identity: Identity,
    agent: str,
    at: datetime,
    message: str,
) -> Object:
    """Return the commit of an agent, by this replica."""
    return _made(tree, parents, *identity.signs(agent, at), message)


def derived(tree: ObjectId, parents: tuple[CommitId, ...], at: datetime, subject: str) -> Object:
    """Return a commit that follows from its parents: the same on every replica."""
    author, committer = product_signs(at)
    message = messages.write((), author.name, subject=subject)
    return _made(tree, parents, author, committer, message)


def of_accesses(tree: ObjectId, identity: Identity, at: datetime) -> Object:
    """Return the parentless commit of a replica's read counts."""
    own = identity.signature(at)
    return _made(tree, (), own, own, messages.ACCESSES)


def carrying(
    base: Snapshot, files: Mapping[str, bytes | None], *, subject: str = messages.UPGRADE
) -> Made:
    """Return a commit that brings files on top of another, a function of both.

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
    head = messages.CARRY_BATCH if touches else rest
    text = messages.write(touches, author.name, subject=head)
    commit = _made(tree.tree, (base.id,), author, committer, text)
    return Made(CommitId(commit.id), tree, [*tree.objects, commit])


def carried_records(said: Tombstones, brought: Iterable[str], known: Tombstones) -> Tombstones:
    """Return the records of a commit, with what is known of the memories that it brings."""
    places = [place for path in brought if (place := parse_path(path)) is not None]
    return said | Tombstones.of({place.text: known.lives(place.text) for place in places})


def _made(
    tree: ObjectId,
    parents: tuple[CommitId, ...],
    author: Signature,
    committer: Signature,
    message: str,
) -> Object:
    return Object(COMMIT, write_commit(tree, parents, author, committer, message))
