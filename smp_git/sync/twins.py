"""Two memories with one id: one of them takes another id before anything is merged.

What must stay true: two additions that nobody derived from each other never become one
memory, no version of either is lost, and every replica gives the same one the same new id.

A record of a deletion names an id. Its commit says when the memory had been added, so that
another memory, which a second replica of one tag gave the same id, is told from it. What
must stay true: a memory that nobody derived from the deleted one outlives it, under
another id; and what derives from it ends, also where it has taken another id meanwhile.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import product
from typing import Final, NamedTuple

from smp_git.format import document, messages
from smp_git.format.document import life_of
from smp_git.format.records import Tombstones, ids_of
from smp_git.git import command, references
from smp_git.git.objects import ObjectId
from smp_git.git.references import HEADS, REMOTES, SEEN, merge_bases
from smp_git.git.repository import MAIN, Repository
from smp_git.model.errors import InvalidFileError
from smp_git.model.ids import DELETED, FIRST, Id, Lives, parse_id, parse_path
from smp_git.model.memory import KINDS, CommitId, MemoryId
from smp_git.model.times import format_time
from smp_git.remove.history.erase import move
from smp_git.remove.history.plan import RewritePlan, effective, named
from smp_git.remove.history.renaming import Move, moved_id, moves_in
from smp_git.remove.history.rewrite import Rewriter
from smp_git.remove.site import Site
from smp_git.sync.heads import keep_made
from smp_git.sync.quarantine import Quarantine


class Parting(NamedTuple):
    """Memories of either side that take another id."""

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


def part_twins(
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
    """History of a memory: the commits that wrote it, its versions, when the first came."""

    commits: set[str]
    versions: set[_FileVersion]
    roots: dict[_FileVersion, datetime]

    @property
    def digests(self) -> set[str]:
        """The digests of its versions, whatever became of the ids that they name."""
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


_BEGAN: Final = "Began: "

# When the memories that were deleted or redacted had been added, by the id they had.
_Began = Mapping[MemoryId, Collection[str]]


def part(
    repository: Repository,
    ours: Mapping[str, str],
    theirs: Mapping[str, str],
    known: Tombstones,
    present: Mapping[str, str] | None = None,
) -> Parting:
    """Return which memories take another id before two sides may meet, for whatever reason.

    `ours` may be what becomes of our references; a memory that ends there still lives in
    the `present` ones.
    """
    found = part_twins(repository, ours, theirs, known)
    here, there = heads(ours if present is None else present), heads(theirs)
    sides = [_ended(repository, side.values(), known) for side in (here, there)]
    if not any(sides) or are_strangers(repository, ours, theirs):
        return found
    began = _began(repository, {*here.values(), *there.values()}, ())
    left, right = (
        _others(repository, side.values(), places, began)
        for side, places in zip((here, there), sides, strict=True)
    )
    return Parting((*found.ours, *left), (*found.theirs, *right))


def moved_away(
    repository: Repository, ours: Mapping[str, str], theirs: Mapping[str, str], known: Tombstones
) -> Tombstones:
    """Return records of memories that had taken another id when they were deleted under the old one."""
    here, there = ({*heads(side).values()} for side in (ours, theirs))
    if not known or here == there:
        return Tombstones()
    began = dict(_began(repository, there, here)) | dict(_began(repository, here, there))
    found: dict[MemoryId, Lives] = {}
    for name, times in began.items():
        lives = known.lives(name)
        if not lives.is_dead(FIRST):
            continue
        for place in _siblings(repository, here | there, parse_id(name)):
            told = told_of(repository, here | there, [place.path])[place.path]
            first = first_of(repository, place, told)
            if first is None or format_time(first.at) not in times:
                continue
            if moved_id(name, first.digest) == place.text:
                flags = {DELETED, *lives.flags.get(FIRST, ())}
                found[place.text] = known.lives(place.text) | Lives({FIRST: flags})
    return Tombstones.of(found)


def _began(repository: Repository, tips: Iterable[str], beside: Iterable[str]) -> _Began:
    found: dict[MemoryId, set[str]] = {}
    told = command.messages(repository.git, sorted(tips), sorted(beside), _BEGAN)
    for name, at in messages.read_began(told):
        found.setdefault(name, set()).add(at)
    return found


def _ended(repository: Repository, tips: Iterable[str], known: Tombstones) -> dict[str, Id]:
    """Return the memories that are in a first life that is dead, by path, as yet unheard of there."""
    found: dict[str, Id] = {}
    for tip in sorted(set(tips)):
        tree = repository.commit(CommitId(tip)).tree
        said = set(named(repository.raw, [bytes.fromhex(tip)]).items)
        unheard = Tombstones(each for each in known.items if each not in said)
        for name in ids_of(unheard):
            place = parse_id(name)
            blob = repository.find(tree, place.path)
            if blob is None or place.name or not unheard.is_dead(name, FIRST):
                continue
            if life_of(repository.blob(blob), place.path) == FIRST:
                found[place.path] = place
    return found


def _others(
    repository: Repository, tips: Iterable[str], places: Mapping[str, Id], began: _Began
) -> Iterator[Move]:
    """Yield the moves of memories of which no version is one of the memory that ended."""
    asked = {path: place for path, place in places.items() if began.get(place.text)}
    told = told_of(repository, tips, sorted(asked)) if asked else {}
    for path, place in asked.items():
        first = first_of(repository, place, told[path])
        times = _times(repository, place, told[path])
        if first is not None and times is not None and times.isdisjoint(began[place.text]):
            yield move_of(place, told[path], first)


def _times(repository: Repository, place: Id, told: MemoryPast) -> set[str] | None:
    """Return when the versions of a memory say that it was added, None if one cannot be read."""
    try:
        found = {
            document.decode(repository.blob(ObjectId(each.blob)), place.path).created_at
            for each in told.versions
        }
    except InvalidFileError:
        return None
    return set(map(format_time, found))


def _siblings(repository: Repository, tips: Iterable[str], place: Id) -> set[Id]:
    """Return the memories on branches with the number of an id, and another tag."""
    found: set[Id] = set()
    for tip in tips:
        page = repository.folder(repository.commit(CommitId(tip)).tree, place.page)
        entries = repository.tree(page) if page else {}
        places = (parse_path(f"{place.page}/{name}") for name in entries)
        found |= {
            each
            for each in places
            if each
            and each.number == place.number
            and each.tag != place.tag
            and each.kind == place.kind
        }
    return found


# How often a new id may be another memory's too.
_MOST_TRIES: Final = 5
_REASON: Final = "another memory had the same id"


class Apart(NamedTuple):
    """Incoming references as they are now, the memories that took another id, and sentences that say so.

    `records` are what was told, and end memories too that had taken another id when they
    were deleted under the old one; `heads` are the branches here that were looked at.
    """

    there: Mapping[str, str]
    records: Tombstones
    heads: Mapping[str, str]
    moved: tuple[Move, ...] = ()
    notes: tuple[str, ...] = ()


def apart(
    site: Site,
    remote: str,
    held: Quarantine,
    there: Mapping[str, str],
    told: Tombstones,
    by: str,
    plan: RewritePlan | None = None,
) -> Apart:
    """Give one of two memories that have one id another, in all of its history.

    Branches that are about to follow a deletion are compared as they are in the `plan`.
    """
    reader = site.reader
    moved: list[Move] = []
    notes: list[str] = []
    looked_at: Mapping[str, str] = {}
    for _ in range(_MOST_TRIES):
        reader.snapshot()
        looked_at = references.read(reader.repository.git)
        ours = _as_planned(plan, held, looked_at)
        found = part(held.repository, ours, there, effective(reader) | told, looked_at)
        if found.ours:
            now, plan = site.writer.clock(), None
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
    ours = _as_planned(plan, held, references.read(reader.repository.git))
    records = moved_away(held.repository, ours, there, effective(reader) | told)
    return Apart(there, told | records, heads(looked_at), tuple(moved), tuple(notes))


def _as_planned(
    plan: RewritePlan | None, held: Quarantine, ours: Mapping[str, str]
) -> Mapping[str, str]:
    """Return what becomes of our references if that came in too: then both sides hardly differ."""
    if plan is None:
        return ours
    steps, there = plan.rewriter.steps, held.repository
    made = {ref: steps.get(bytes.fromhex(tip)) for ref, tip in ours.items()}
    return {
        ref: step.new.hex() if (step := made[ref]) and there.has(step.new.hex()) else tip
        for ref, tip in ours.items()
    }


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
    refs = rewriter.references(there)
    keep_made(repository, rewriter.made)
    return refs


def _said(move: Move, where: str) -> str:
    return f"{move.old} {where} is {move.new} now: {_REASON}"
