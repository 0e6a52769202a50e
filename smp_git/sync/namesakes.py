"""Memories under the id of another one that was deleted or redacted before the two met.

A record of a deletion names an id. Its commit says when the memory had been added, so that
another memory, which a second replica of one tag gave the same id, is told from it. What
must stay true: a memory that nobody derived from the deleted one outlives it, under
another id; and what derives from it ends, also where it has taken another id meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from smp_git.format import document, messages
from smp_git.format.document import life_of
from smp_git.format.records import Tombstones, ids_of
from smp_git.git import command
from smp_git.git.objects import ObjectId
from smp_git.git.repository import Repository
from smp_git.model.errors import InvalidFileError
from smp_git.model.ids import DELETED, FIRST, Id, Lives, parse_id, parse_path
from smp_git.model.memory import CommitId, MemoryId
from smp_git.model.times import format_time
from smp_git.remove.history.moves import Move, moved_id
from smp_git.remove.history.tombstones import named
from smp_git.sync import twins
from smp_git.sync.twins import MemoryPast, Parting

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
    found = twins.part(repository, ours, theirs, known)
    here, there = twins.heads(ours if present is None else present), twins.heads(theirs)
    sides = [_ended(repository, side.values(), known) for side in (here, there)]
    if not any(sides) or twins.are_strangers(repository, ours, theirs):
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
    here, there = ({*twins.heads(side).values()} for side in (ours, theirs))
    if not known or here == there:
        return Tombstones()
    began = dict(_began(repository, there, here)) | dict(_began(repository, here, there))
    found: dict[MemoryId, Lives] = {}
    for name, times in began.items():
        lives = known.lives(name)
        if not lives.is_dead(FIRST):
            continue
        for place in _siblings(repository, here | there, parse_id(name)):
            told = twins.told_of(repository, here | there, [place.path])[place.path]
            first = twins.first_of(repository, place, told)
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
    """Return the memories that stand in a first life that is dead, by path, as yet unheard of there."""
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
    told = twins.told_of(repository, tips, sorted(asked)) if asked else {}
    for path, place in asked.items():
        first = twins.first_of(repository, place, told[path])
        times = _times(repository, place, told[path])
        if first is not None and times is not None and times.isdisjoint(began[place.text]):
            yield twins.move_of(place, told[path], first)


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
