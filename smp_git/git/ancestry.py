"""Where two histories part: their merge bases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final

from smp_git.git.objects import Commit
from smp_git.git.repository import Repository
from smp_git.model.memory import CommitId

_LEFT: Final = 1
_RIGHT: Final = 2
_BOTH: Final = 3
# An ancestor of a common one: common too, but no base.
_BELOW: Final = 4


def merge_bases(repository: Repository, left: CommitId, right: CommitId) -> list[CommitId]:
    """Return the common ancestors that no other one descends from, sorted; empty if unrelated."""
    one = repository.common(left, right)
    if one in (None, left, right):
        return [one] if one else []
    found = _common(repository, left, right)
    if len(found) > 1:
        found = independent(repository, found)
    return sorted(found)


def is_ancestor(repository: Repository, older: CommitId, newer: CommitId) -> bool:
    """Whether `newer` is `older` or descends from it."""
    return repository.common(older, newer) == older


def independent(repository: Repository, commits: Iterable[CommitId]) -> list[CommitId]:
    """Return the commits that are no ancestors of another one among them, sorted."""
    names = set(commits)
    return sorted(
        name
        for name in names
        if not any(name in _common(repository, name, other) for other in names - {name})
    )


def _common(repository: Repository, left: CommitId, right: CommitId) -> list[CommitId]:
    """Return the common ancestors met first, which clocks that run apart may make too many."""
    seen: dict[CommitId, int] = {left: _LEFT}
    seen[right] = seen.get(right, 0) | _RIGHT
    queue: list[tuple[float, CommitId]] = []
    found: dict[CommitId, None] = {}

    def add(name: CommitId) -> None:
        heappush(queue, (-repository.commit(name).time.timestamp(), name))

    for name in seen:
        add(name)
    while any(not seen[name] & _BELOW for _, name in queue):
        _, name = heappop(queue)
        sides = seen[name]
        if sides & _BOTH == _BOTH:
            if not sides & _BELOW:
                found[name] = None
            sides |= _BELOW
        for parent in repository.commit(name).parents:
            known = seen.get(parent, 0)
            if known | sides != known:
                seen[parent] = known | sides
                add(parent)
    return [name for name in found if not seen[name] & _BELOW]


def newest_first(
    repository: Repository, tip: CommitId, follow: Callable[[Commit], Iterable[CommitId]]
) -> Iterator[Commit]:
    """Yield a commit and what `follow` leads to from each, reading no further than asked."""
    seen = {tip}
    queue = [(-repository.commit(tip).time.timestamp(), tip)]
    while queue:
        commit = repository.commit(heappop(queue)[1])
        yield commit
        for parent in set(follow(commit)) - seen:
            seen.add(parent)
            heappush(queue, (-repository.commit(parent).time.timestamp(), parent))


def only_in(repository: Repository, tip: CommitId, others: Iterable[CommitId]) -> list[Commit]:
    """Return the commits that `tip` has and none of the others, newest first."""
    seen: dict[CommitId, int] = dict.fromkeys(others, _RIGHT)
    seen[tip] = seen.get(tip, 0) | _LEFT
    queue = [(-repository.commit(name).time.timestamp(), name) for name in seen]
    heapify(queue)
    while any(not seen[name] & _RIGHT for _, name in queue):
        name = heappop(queue)[1]
        for parent in repository.commit(name).parents:
            known = seen.get(parent, 0)
            if known | seen[name] != known:
                seen[parent] = known | seen[name]
                heappush(queue, (-repository.commit(parent).time.timestamp(), parent))
    wanted = sum(sides == _LEFT for sides in seen.values())
    found = (commit for commit in repository.walk(tip) if seen.get(commit.id) == _LEFT)
    return list(islice(found, wanted))
