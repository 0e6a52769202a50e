"""Twins: two memories with one id, parted before anything is merged.

What must stay true: two additions that nobody derived from each other never become one
memory, no version of either is lost, and every replica gives the same one the same new id.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import product
from typing import Final, NamedTuple

from smp_git.format import document
from smp_git.format.records import Tombstones
from smp_git.git import command
from smp_git.git.ancestry import merge_bases
from smp_git.git.objects import ObjectId
from smp_git.git.references import HEADS, REMOTES, SEEN
from smp_git.git.repository import MAIN, Repository
from smp_git.model.errors import InvalidFileError
from smp_git.model.ids import FIRST, Id, parse_path
from smp_git.model.memory import KINDS, CommitId
from smp_git.remove.history.moves import Move, moved_id


class Parting(NamedTuple):
    """Which memories of either side take another id."""

    ours: tuple[Move, ...] = ()
    theirs: tuple[Move, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.ours or self.theirs)


NOBODY: Final = Parting()

_PREFIXES: Final = "|".join(kind.prefix for kind in KINDS.values()).encode()
_TAGGED: Final = re.compile(
    rb"(?<![A-Za-z0-9_-])((?:%s)-[0-9]{4,18})-[a-z][a-z0-9]{3}(?![A-Za-z0-9_-])" % _PREFIXES,
    re.IGNORECASE,
)


def part(
    repository: Repository, ours: Mapping[str, str], theirs: Mapping[str, str], known: Tombstones
) -> Parting:
    """Return which memories take another id before two sides may meet.

    `ours` are all references here; `repository` has the objects of both sides. What no
    remote has yet moves; of two that remotes have, the one that was added later.
    """
    here, there = heads(ours), heads(theirs)
    pairs = list(_suspects(repository, here, there, known))
    if not pairs:
        return NOBODY
    paths = sorted({each.place.path for each in pairs})
    told = {
        tip: told_of(repository, [tip], paths) for each in pairs for tip in (each.left, each.right)
    }
    seen = [tip for ref, tip in ours.items() if ref.startswith((SEEN, REMOTES))]
    sent = told_of(repository, [*seen, *there.values()], paths)
    moves: dict[bool, dict[Move, None]] = {True: {}, False: {}}
    for place, one, other in pairs:
        left, right = told[one][place.path], told[other][place.path]
        first, second = first_of(repository, place, left), first_of(repository, place, right)
        if first is None or second is None or not left.is_apart(right):
            continue
        is_ours = left.digests.isdisjoint(sent[place.path].digests) or first > second
        moves[is_ours][move_of(place, *((left, first) if is_ours else (right, second)))] = None
    return Parting(tuple(moves[True]), tuple(moves[False]))


def move_of(place: Id, told: MemoryPast, first: Beginning) -> Move:
    """Return how a memory takes another id."""
    roots = tuple(sorted(each.blob for each in told.roots))
    return Move(place.text, moved_id(place.text, first.digest), roots)


def heads(refs: Mapping[str, str]) -> dict[str, str]:
    """Return the branches among some references."""
    return {ref: tip for ref, tip in refs.items() if ref.startswith(HEADS)}


# Which memories may be twins, from what the branches hold now


class _Suspect(NamedTuple):
    """A memory that a branch of either side holds otherwise, and that no base of them holds."""

    place: Id
    left: str
    right: str


def _suspects(
    repository: Repository, ours: Mapping[str, str], theirs: Mapping[str, str], known: Tombstones
) -> Iterator[_Suspect]:
    """Yield the memories that may be twins, by pairs of branches."""
    if are_strangers(repository, ours, theirs):
        return
    for left, right in product(sorted(set(ours.values())), sorted(set(theirs.values()))):
        bases = _bases(repository, left, right) if left != right else [CommitId(left)]
        if left in bases or right in bases:
            continue
        trees = [_tree(repository, base) for base in bases]
        for place in _unlike(repository, left, right):
            if not known.names(place.text) and not any(
                repository.find(tree, place.path) for tree in trees
            ):
                yield _Suspect(place, left, right)


def are_strangers(
    repository: Repository, ours: Mapping[str, str], theirs: Mapping[str, str]
) -> bool:
    """Whether two sides have no beginning in common."""
    return MAIN in ours and MAIN in theirs and not _bases(repository, ours[MAIN], theirs[MAIN])


def _bases(repository: Repository, left: str, right: str) -> list[CommitId]:
    return merge_bases(repository, CommitId(left), CommitId(right))


def _tree(repository: Repository, commit: str) -> ObjectId:
    return repository.commit(CommitId(commit)).tree


def _unlike(repository: Repository, left: str, right: str) -> list[Id]:
    """Return the memories with a number that two commits hold in different versions."""
    trees = _tree(repository, left), _tree(repository, right)
    places = (parse_path(path) for path, one, other in repository.changes(*trees) if one and other)
    return [place for place in places if place is not None and not place.name]


# What histories tell of them


class _FileVersion(NamedTuple):
    """A version of a memory: its file, and a digest that stays when what it names moves."""

    blob: str
    digest: str


class MemoryPast(NamedTuple):
    """What a history tells of a memory: the commits that wrote it, its versions, when the first came."""

    commits: set[str]
    versions: set[_FileVersion]
    roots: dict[_FileVersion, datetime]

    @property
    def digests(self) -> set[str]:
        """What its versions are, whatever became of the ids that they name."""
        return {each.digest for each in self.versions}

    def is_apart(self, other: MemoryPast) -> bool:
        """Whether nobody derived one from the other: nothing of them is the same."""
        return self.commits.isdisjoint(other.commits) and self.digests.isdisjoint(other.digests)


def told_of(repository: Repository, tips: Iterable[str], paths: list[str]) -> dict[str, MemoryPast]:
    """Return what the history of some commits tells, by path."""
    found = {path: MemoryPast(set(), set(), {}) for path in paths}
    tips = sorted(set(tips))
    for change in command.file_changes(repository.git, tips, paths) if tips else ():
        told = found[change.path]
        told.commits.add(change.commit)
        if change.new is None:
            continue
        version = _FileVersion(change.new, _digest(repository.blob(ObjectId(change.new))))
        told.versions.add(version)
        commit = repository.commit(CommitId(change.commit))
        # A merge adds nothing that one of its parents has not.
        if change.old is None and len(commit.parents) <= 1:
            told.roots[version] = min(commit.time, told.roots.get(version, commit.time))
    return found


def _digest(file: bytes) -> str:
    """Return a digest of a file that does not look at tags of ids: only these change in a move."""
    return hashlib.sha256(_TAGGED.sub(rb"\1", file)).hexdigest()


class Beginning(NamedTuple):
    """When a memory says that it was added, and its first version: the later one is greater."""

    at: datetime
    digest: str


def first_of(repository: Repository, place: Id, told: MemoryPast) -> Beginning | None:
    """Return how a memory began, None if not every beginning is one of its first life."""
    found: dict[_FileVersion, datetime] = {}
    for version in told.roots:
        try:
            memory = document.decode(repository.blob(ObjectId(version.blob)), place.path)
        except InvalidFileError:
            return None
        if memory.life != FIRST:
            return None
        found[version] = memory.created_at
    if not found:
        return None
    first = min(found, key=lambda each: (told.roots[each], each.digest))
    return Beginning(found[first], first.digest)
