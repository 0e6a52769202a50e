"""The graph beside a log: a lane for each line of commits, as git draws it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smp_git.read.history import Version


def graph(found: Sequence[Version], every: Sequence[Version]) -> dict[str, list[str]]:
    """Return, for each commit that is found, what stands before it and on the lines below it.

    `every` is the whole log: a commit that is left out is passed over on the way to its
    parents.
    """
    parents = _nearest({each.commit for each in found}, every)
    lanes: list[str] = []
    drawn: dict[str, list[str]] = {}
    for each in found:
        name: str = each.commit
        if name not in lanes:
            lanes.append(name)
        at = lanes.index(name)
        row = " ".join("*" if lane == at else "|" for lane in range(len(lanes)))
        drawn[name] = [row, *_below(lanes, at, parents[name])]
    return drawn


def _nearest(wanted: set[str], every: Sequence[Version]) -> Mapping[str, Sequence[str]]:
    """Return the nearest wanted ancestors of each commit."""
    near: dict[str, Sequence[str]] = {}
    for each in reversed(every):
        found = [
            name
            for parent in each.parents
            for name in ([parent] if parent in wanted else near.get(parent, ()))
        ]
        near[each.commit] = tuple(dict.fromkeys(found))
    return near


def _below(lanes: list[str], at: int, parents: Sequence[str]) -> list[str]:
    """Move the lanes on behind the commit in lane `at`, and return the lines that show it."""
    rows = []
    if parents and parents[0] not in lanes:
        lanes[at] = parents[0]
    elif parents and lanes.index(parents[0]) > at:
        other = lanes.index(parents[0])
        lanes[at] = parents[0]
        rows.append(_joining(len(lanes), other, at))
        del lanes[other]
    else:
        rows += [_joining(len(lanes), at, lanes.index(parents[0]))] if parents else []
        rows += [_joining(len(lanes), at, at - 1)] if not parents and lanes[at + 1 :] else []
        del lanes[at]
        at = lanes.index(parents[0]) if parents else at
    for parent in parents[1:]:
        rows.append(_parting(len(lanes), at))
        if parent not in lanes:
            lanes.insert(at + 1, parent)
    return rows


def _joining(count: int, lane: int, into: int) -> str:
    """Return the line on which a lane ends in another to its left, and those to its right move up."""
    row = list(" " * (2 * count))
    for each in range(count):
        if each < lane:
            row[2 * each] = "|"
            if into < each and each + 1 < lane:
                row[2 * each + 1] = "_"
        elif each > lane or into >= 0:
            row[2 * each - 1] = "/"
    return "".join(row).rstrip()


def _parting(count: int, lane: int) -> str:
    """Return the line on which a new lane begins right of another."""
    row = list(" " * (2 * count + 1))
    for each in range(count):
        row[2 * each + (each > lane)] = "\\" if each > lane else "|"
    row[2 * lane + 1] = "\\"
    return "".join(row).rstrip()
