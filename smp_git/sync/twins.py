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
from smp_git.git import command, references
from smp_git.git.ancestry import merge_bases
from smp_git.git.objects import ObjectId
from smp_git.git.references import HEADS, REMOTES, SEEN
from smp_git.git.repository import MAIN, Repository
from smp_git.model.errors import InvalidFileError
from smp_git.model.ids import Id, parse_path
from smp_git.model.lives import FIRST
from smp_git.model.memory import KINDS, CommitId
from smp_git.remove.history.erase import move
from smp_git.remove.history.moves import Move, moved_id, moves_in
from smp_git.remove.history.plan import Plan
from smp_git.remove.history.rewrite import History, Rewriter
from smp_git.remove.history.tombstones import effective
from smp_git.remove.site import Site
from smp_git.sync.bring import keep
from smp_git.sync.quarantine import Quarantine


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
    here, there = _heads(ours), _heads(theirs)
    pairs = list(_suspects(repository, here, there, known))
    if not pairs:
        return NOBODY
    paths = sorted({each.place.path for each in pairs})
    told = {
        tip: _told(repository, [tip], paths) for each in pairs for tip in (each.left, each.right)
    }
    seen = [tip for ref, tip in ours.items() if ref.startswith((SEEN, REMOTES))]
    sent = _told(repository, [*seen, *there.values()], paths)
    moves: dict[bool, dict[Move, None]] = {True: {}, False: {}}
    for place, one, other in pairs:
        left, right = told[one][place.path], told[other][place.path]
        first, second = _first(repository, place, left), _first(repository, place, right)
        if first is None or second is None or not left.is_apart(right):
            continue
        is_ours = left.digests.isdisjoint(sent[place.path].digests) or first > second
        moves[is_ours][_move(place, *((left, first) if is_ours else (right, second)))] = None
    return Parting(tuple(moves[True]), tuple(moves[False]))


def _move(place: Id, told: _Told, first: _First) -> Move:
    roots = tuple(sorted(each.blob for each in told.roots))
    return Move(place.text, moved_id(place.text, first.digest), roots)


def _heads(refs: Mapping[str, str]) -> dict[str, str]:
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
    if MAIN in ours and MAIN in theirs and not _bases(repository, ours[MAIN], theirs[MAIN]):
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


class _Version(NamedTuple):
    """A version of a memory: its file, and a digest that stays when what it names moves."""

    blob: str
    digest: str


class _Told(NamedTuple):
    """What a history tells of a memory: the commits that wrote it, its versions, when the first came."""

    commits: set[str]
    versions: set[_Version]
    roots: dict[_Version, datetime]

    @property
    def digests(self) -> set[str]:
        """What its versions are, whatever became of the ids that they name."""
        return {each.digest for each in self.versions}

    def is_apart(self, other: _Told) -> bool:
        """Whether nobody derived one from the other: nothing of them is the same."""
        return self.commits.isdisjoint(other.commits) and self.digests.isdisjoint(other.digests)


def _told(repository: Repository, tips: Iterable[str], paths: list[str]) -> dict[str, _Told]:
    """Return what the history of some commits tells, by path."""
    found = {path: _Told(set(), set(), {}) for path in paths}
    tips = sorted(set(tips))
    for change in command.file_changes(repository.git, tips, paths) if tips else ():
        told = found[change.path]
        told.commits.add(change.commit)
        if change.new is None:
            continue
        version = _Version(change.new, _digest(repository.blob(ObjectId(change.new))))
        told.versions.add(version)
        commit = repository.commit(CommitId(change.commit))
        # A merge adds nothing that one of its parents has not.
        if change.old is None and len(commit.parents) <= 1:
            told.roots[version] = min(commit.time, told.roots.get(version, commit.time))
    return found


def _digest(file: bytes) -> str:
    """Return a digest of a file that does not look at tags of ids: only these change in a move."""
    return hashlib.sha256(_TAGGED.sub(rb"\1", file)).hexdigest()


class _First(NamedTuple):
    """When a memory says that it was added, and its first version: the later one is greater."""

    at: datetime
    digest: str


def _first(repository: Repository, place: Id, told: _Told) -> _First | None:
    """Return how a memory began, None if not every beginning is one of its first life."""
    found: dict[_Version, datetime] = {}
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
    return _First(found[first], first.digest)


# How often a new id may be another memory's too.
_MOST_TRIES: Final = 5
_REASON: Final = "another memory had the same id"


class Apart(NamedTuple):
    """What came in as it is now, which memories took another id, and sentences that say so."""

    there: Mapping[str, str]
    moved: tuple[Move, ...] = ()
    notes: tuple[str, ...] = ()


def apart(
    site: Site,
    remote: str,
    held: Quarantine,
    there: Mapping[str, str],
    told: Tombstones,
    by: str,
    plan: Plan | None = None,
) -> Apart:
    """Give one of two memories that have one id another, in all of its history.

    Branches that are about to follow a deletion are compared as they are in the `plan`.
    """
    reader = site.reader
    moved: list[Move] = []
    notes: list[str] = []
    for _ in range(_MOST_TRIES):
        reader.snapshot()
        ours = references.read(reader.repository.git)
        ours = {ref: _as_planned(plan, held, tip) for ref, tip in ours.items()} if plan else ours
        found = part(held.repository, ours, there, effective(reader) | told)
        if found.ours:
            now = site.writer.clock()
            move(site.writer, found.ours, now, by=by)
            names = [name for each in found.ours for name in (each.old, each.new)]
            site.note("move", at=now, by=by, ids=names, reason=_REASON)
        if found.theirs:
            there = _moved(held.repository, there, found.theirs)
        notes += [_said(each, "here") for each in found.ours]
        notes += [_said(each, f"of {remote}") for each in found.theirs]
        moved += [*found.ours, *found.theirs]
        if not found:
            break
    return Apart(there, tuple(moved), tuple(notes))


def _as_planned(plan: Plan, held: Quarantine, tip: str) -> str:
    """Return what becomes of a commit if that came in too: then both sides hardly differ."""
    step = plan.rewriter.steps.get(bytes.fromhex(tip))
    return step.new.hex() if step and held.repository.has(step.new.hex()) else tip


def apart_there(
    repository: Repository, there: Mapping[str, str], pushed: Mapping[str, str], known: Tombstones
) -> Mapping[str, str]:
    """Return what a server holds as replicas bring it together with what is pushed.

    Whatever is there has been published; a memory of it moves only as on every replica.
    """
    published = {f"{SEEN}{ref}": tip for ref, tip in there.items() if ref.startswith(HEADS)}
    for _ in range(_MOST_TRIES):
        moves = part(repository, {**there, **published}, pushed, known).ours
        if not moves:
            break
        there = _moved(repository, there, moves)
        published |= {f"{SEEN}{ref}": tip for ref, tip in there.items() if ref.startswith(HEADS)}
    return there


def _moved(
    repository: Repository, there: Mapping[str, str], moves: tuple[Move, ...]
) -> dict[str, str]:
    """Return references with some memories under another id."""
    found = moves_in(repository, there.values(), moves)
    rewriter = Rewriter(repository.raw, Tombstones(), moves=found)
    refs = rewriter.rewritten(History({ref: bytes.fromhex(tip) for ref, tip in there.items()})).refs
    keep(repository, rewriter.made)
    return {ref: tip.hex() for ref, tip in refs.items()}


def _said(move: Move, where: str) -> str:
    return f"{move.old} {where} is {move.new} now: {_REASON}"
