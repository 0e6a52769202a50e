"""Heads of a remote made clean, with commits on top where lives died or met."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from smp_git.format.records import PATH, Tombstones, write
from smp_git.git import references, storage
from smp_git.git.objects import COMMIT, FOLDER_MODE, TREE, Child, raw_commit, read_tree
from smp_git.git.repository import MAIN, Repository
from smp_git.git.storage import Packed
from smp_git.model.ids import parse_id
from smp_git.model.memory import CommitId
from smp_git.read.snapshot import PageCache, Reader, Snapshot
from smp_git.remove.history.reading import TAG
from smp_git.remove.history.renaming import renames
from smp_git.remove.history.rewrite import MadeObject, Rewriter
from smp_git.remove.meeting import Meeting
from smp_git.sync.quarantine import Quarantine
from smp_git.write import commit


class Arrived(NamedTuple):
    """The references of a remote as it names them, and as they are here once cleaned."""

    named: Mapping[str, str]
    clean: Mapping[str, str]
    known: Tombstones
    rewriter: Rewriter | None

    @property
    def is_rewritten(self) -> bool:
        """Whether the remote holds anything that was deleted."""
        return self.named != self.clean


def cleaned(
    repository: Repository, named: Mapping[str, str], known: Tombstones, trusted: frozenset[str]
) -> Arrived:
    """Return what `named` references come to without what is `known` to be deleted.

    What the `trusted` commits reach holds nothing deleted.
    """
    if not known or not named:
        return Arrived(named, named, known, None)
    rewriter = Rewriter(repository.raw, known)
    rewriter.trust(trusted)
    return Arrived(named, rewriter.references(named), known, rewriter)


def commits_of(repository: Repository, tips: Iterable[str]) -> list[CommitId]:
    """Return the commits among some objects; annotated tags are left out."""
    return [CommitId(t) for t in set(tips) if repository.raw(bytes.fromhex(t))[0] == COMMIT]


def boundary(
    repository: Repository, tips: Iterable[str], known: Iterable[CommitId]
) -> frozenset[str]:
    """Return the commits on which what `tips` have more than `known` ones is built."""
    commits = commits_of(repository, tips)
    new = repository.beyond(commits, known)
    below = {parent for name in new for parent in repository.commit(name).parents}
    return frozenset((below | set(commits)) - set(new))


def needed(arrived: Arrived, session: Repository) -> Iterator[Packed]:
    """Yield every object of a rewritten history that the session does not have."""
    rewriter = arrived.rewriter
    assert rewriter is not None  # noqa: S101 - only what was rewritten is taken so
    waiting = [bytes.fromhex(tip) for tip in arrived.clean.values()]
    # A commit that nothing names may be left by a sync that was killed before its trees came.
    whole = set(session.beyond(commits_of(session, references.read(session.git).values()), ()))
    seen: set[bytes] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        is_here = session.has(name.hex())
        kind, data = rewriter.read(name)
        if kind == COMMIT:
            if name.hex() in whole:
                continue
            commit = raw_commit(data)
            waiting += [commit.tree, *commit.parents]
        elif kind == TREE:
            children = read_tree(data).values()
            waiting += [bytes.fromhex(each.id) for each in children if each.mode == FOLDER_MODE]
            yield from _files(rewriter, session, seen, children)
        elif kind == TAG:
            waiting.append(bytes.fromhex(data[7:47].decode()))
        if not is_here:
            made = rewriter.made.get(name)
            yield Packed(name, kind, data, made.like if made else None)


def _files(
    rewriter: Rewriter, session: Repository, seen: set[bytes], children: Iterable[Child]
) -> Iterator[Packed]:
    for each in children:
        name = bytes.fromhex(each.id)
        if each.mode == FOLDER_MODE or name in seen:
            continue
        seen.add(name)
        if not session.has(each.id):
            yield Packed(name, *rewriter.read(name))


def of_this_format(held: Quarantine, there: Mapping[str, str], known: Tombstones) -> dict[str, str]:
    """Return what came with its generations written as lives."""
    found = renames(held.repository, there.values(), known)
    if not found:
        return dict(there)
    rewriter = Rewriter(held.repository.raw, known, found)
    refs = rewriter.references(there)
    keep_made(held.repository, rewriter.made)
    return refs


def keep_made(repository: Repository, made: Mapping[bytes, MadeObject]) -> None:
    """Put new objects beside what came in."""
    packed = [Packed(n, m.type, m.data, m.like) for n, m in made.items()]
    if packed:
        storage.write_pack(repository.git / "objects", packed)


def topped(reader: Reader, held: Quarantine, arrived: Arrived, meeting: Meeting) -> Arrived:
    """Return what came with commits on top that bring files, the same on every replica."""
    if arrived.rewriter is not None:
        keep_made(held.repository, arrived.rewriter.made)
    clean = dict(arrived.clean)

    def add(ref: str, files: Mapping[str, bytes | None]) -> None:
        made = commit.carrying(at(ref), files)
        with held.repository.store(made.objects):
            clean[ref] = made.id

    def at(ref: str) -> Snapshot:
        return Snapshot(PageCache(held.repository, reader.local), CommitId(clean[ref]))

    for ref, brought in meeting.theirs.items():
        said = commit.carried_records(at(ref).said, brought, arrived.known)
        add(ref, {**brought, PATH: write(said)})
        if gone := brought.keys() & meeting.removed:
            add(ref, dict.fromkeys(sorted(gone)))
    return arrived._replace(clean=clean)


def returned(
    before: Tombstones, known: Tombstones, there: Mapping[str, str], repository: Repository
) -> Iterator[str]:
    """Say which memories that were deleted here live again, restored elsewhere."""
    tip = there.get(MAIN)
    if tip is None:
        return
    tree = repository.commit(CommitId(tip)).tree
    for each in known.items:
        name = each.first.text
        if each.lives.is_plain or each.lives.is_gone or not before.is_gone(name):
            continue
        if repository.find(tree, parse_id(name).path) is not None:
            yield f"{name} was deleted here and restored elsewhere; it is restored here too"
