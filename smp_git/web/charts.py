"""Geometry of the charts: curves, strips of bars and graphs, as numbers for SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple

from smp_git.ask.links import Related
from smp_git.ask.overviews import Bucket
from smp_git.keep.forecast import Forecast
from smp_git.model.memory import KINDS
from smp_git.web.wording import local, short_day

# The drawings are as wide as a telephone's screen, so that their letters keep their size there.
WIDTH: Final = 360


class Point(NamedTuple):
    """A place in a drawing."""

    x: float
    y: float


# Decay


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Something that happens at a place of a curve; `number` is its number in the list below."""

    at: Point
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The curve of a priority, up to now and from now on."""

    past: str
    future: str
    now: Point
    marks: tuple[Mark, ...]
    ticks: tuple[tuple[Point, str], ...]


_CURVE_HEIGHT: Final = 150
_TOP: Final = 10
_BOTTOM: Final = 22
_LEFT: Final = 30
_RIGHT: Final = 8


def curve(found: Forecast) -> Curve:
    """Return the drawing of a forecast."""
    first, last = found.points[0].at, found.points[-1].at
    length = (last - first) / timedelta(seconds=1) or 1.0

    def place(at: datetime, value: float) -> Point:
        share = (at - first) / timedelta(seconds=1) / length
        return Point(_round(_LEFT + share * (WIDTH - _LEFT - _RIGHT)), height(value))

    points = [(each.at, place(each.at, each.priority)) for each in found.points]
    marks = [
        Mark(at=place(each.at, each.priority), number=number)
        for number, each in enumerate(found.events, 1)
        if first <= each.at <= last
    ]
    ends = ((first, place(first, 0)), (last, place(last, 0)))
    return Curve(
        past=_line(point for at, point in points if at <= found.at),
        future=_line(point for at, point in points if at >= found.at),
        now=place(found.at, found.priority),
        marks=tuple(marks),
        ticks=tuple((point, short_day(at)) for at, point in ends),
    )


def height(value: float) -> float:
    """Return how far from the top of a curve's drawing a priority is."""
    return _round(_TOP + (1 - value) * (_CURVE_HEIGHT - _TOP - _BOTTOM))


def _line(points: Iterable[Point]) -> str:
    return " ".join(f"{point.x:g},{point.y:g}" for point in points)


def _round(number: float) -> float:
    return round(number, 1)


# Activity


@dataclass(frozen=True, slots=True, kw_only=True)
class BarPart:
    """The part of a bar that is of one kind."""

    kind: str
    y: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What came about in one stretch of time: from its first day to its last."""

    x: float
    width: float
    first: date
    last: date
    count: int
    pieces: tuple[BarPart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """Bars, one for each stretch of time; `most` is how many memories the highest stands for."""

    bars: tuple[Bar, ...]
    days: int
    most: int


STRIP_HEIGHT: Final = 72
_MOST_BARS: Final = 90


def strip(buckets: Sequence[Bucket]) -> Strip | None:
    """Return the drawing of what came about day by day; None if nothing did."""
    if not buckets:
        return None
    counts = {date.fromisoformat(each.start): each.counts for each in buckets}
    first, last = min(counts), max(counts)
    days = math.ceil(((last - first).days + 1) / _MOST_BARS)
    number = ((last - first).days // days) + 1
    sums: list[dict[str, int]] = [{} for _ in range(number)]
    for each, found in counts.items():
        place = sums[(each - first).days // days]
        for kind, count in found.items():
            place[kind] = place.get(kind, 0) + count
    most = max(sum(each.values()) for each in sums)
    wide = 1000 / max(number, 12)
    bars = [
        _bar(each, n * wide, wide, first + timedelta(days=n * days), days, most)
        for n, each in enumerate(sums)
        if each
    ]
    return Strip(bars=tuple(bars), days=days, most=most)


def _bar(
    counts: Mapping[str, int], x: float, wide: float, first: date, days: int, most: int
) -> Bar:
    pieces, below = list[BarPart](), float(STRIP_HEIGHT)
    for kind in KINDS:
        if count := counts.get(kind):
            height = STRIP_HEIGHT * count / most
            below -= height
            pieces.append(BarPart(kind=kind, y=_round(below), height=_round(max(height, 0.5))))
    return Bar(
        x=_round(x),
        width=_round(max(wide - min(2.0, wide / 4), 1.0)),
        first=first,
        last=first + timedelta(days=days - 1),
        count=sum(counts.values()),
        pieces=tuple(pieces),
    )


# Lives of sessions


class Stretch(NamedTuple):
    """A stretch of time as a part of a line that is 1,000 wide."""

    x: float
    width: float


_THINNEST: Final = 6.0


def spans(times: Sequence[tuple[datetime, datetime]]) -> list[Stretch]:
    """Return stretches of time on one scale, from the earliest to the latest."""
    if not times:
        return []
    first = min(start for start, _ in times)
    length = (max(end for _, end in times) - first) / timedelta(seconds=1) or 1.0

    def share(at: datetime) -> float:
        return 1000 * ((at - first) / timedelta(seconds=1)) / length

    return [
        Stretch(
            _round(min(share(start), 1000 - _THINNEST)),
            _round(max(_THINNEST, share(end) - share(start))),
        )
        for start, end in times
    ]


# Links


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """A memory in a graph."""

    id: str
    kind: str
    title: str
    at: Point
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdge:
    """A link in a graph, from its source to its target."""

    start: Point
    end: Point
    relation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The memories around one; `left_out` are those for which there is no room."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    height: float
    left_out: int


_MOST_NEAR: Final = 10
_MOST_FAR: Final = 14
# How far those are that are linked directly, and the others: to the side, and up and down.
_NEAR: Final = (95.0, 72.0)
_FAR: Final = (145.0, 128.0)
_ABOVE: Final = 14.0
_BELOW: Final = 28.0
_FEW: Final = 4
_MIDDLE: Final = WIDTH / 2
_DOT: Final = 9.0


def graph(center: str, kind: str, title: str, found: Sequence[Related]) -> Graph | None:
    """Return the drawing of what links lead to from a memory; None if there is nothing."""
    if not found:
        return None
    near = list(dict.fromkeys(each.id for each in found if each.depth == 1))
    far: dict[str, str] = {each.id: each.via for each in found if each.depth > 1}
    angles = _angles(near[:_MOST_NEAR], far)
    places = {center: Point(_MIDDLE, 0.0)}
    for name, angle in angles.items():
        wide, high = _FAR if name in far else _NEAR
        places[name] = Point(_MIDDLE + wide * math.cos(angle), high * math.sin(angle))
    top = min(place.y for place in places.values()) - _ABOVE
    places = {name: Point(_round(x), _round(y - top)) for name, (x, y) in places.items()}
    known: dict[str, Related] = {each.id: each for each in reversed(found)}
    nodes = [
        GraphNode(
            id=name,
            kind=known[name].kind if name in known else kind,
            title=known[name].title if name in known else title,
            at=place,
            depth=0 if name == center else known[name].depth,
        )
        for name, place in places.items()
    ]
    edges = [_edge(places, each) for each in found if each.id in places and each.via in places]
    return Graph(
        nodes=tuple(nodes),
        edges=tuple(edges),
        height=_round(max(place.y for place in places.values()) + _BELOW),
        left_out=len({each.id for each in found}) - len(places) + 1,
    )


def _angles(near: Sequence[str], far: Mapping[str, str]) -> dict[str, float]:
    """Return the angle of each memory: those further off near the one that leads to them."""
    step = 2 * math.pi / max(len(near), 1)
    # A line straight down would go through the name below the dot.
    first = 0.0 if len(near) < _FEW else step / 2
    out = {name: first + number * step for number, name in enumerate(near)}
    behind: dict[str, list[str]] = {}
    for name, via in list(far.items()):
        if via in out and len([each for some in behind.values() for each in some]) < _MOST_FAR:
            behind.setdefault(via, []).append(name)
    for via, names in behind.items():
        fan = min(step, 1.9) / max(len(names), 1)
        for number, name in enumerate(names):
            out[name] = out[via] + (number - (len(names) - 1) / 2) * fan
    return out


def _edge(places: Mapping[str, Point], link: Related) -> GraphEdge:
    """Return a link as a line that ends before the dots, in the direction in which it leads."""
    one, other = places[link.via], places[link.id]
    if link.direction == "from":
        one, other = other, one
    length = math.dist(one, other) or 1.0
    dx, dy = (other.x - one.x) / length * _DOT, (other.y - one.y) / length * _DOT
    return GraphEdge(
        start=Point(_round(one.x + dx), _round(one.y + dy)),
        end=Point(_round(other.x - dx), _round(other.y - dy)),
        relation=link.relation,
    )


def first_days(found: Strip) -> tuple[str, str]:
    """Return the days at the ends of a strip."""
    return f"{found.bars[0].first:%d %b %Y}", f"{found.bars[-1].last:%d %b %Y}"


def today(now: datetime) -> date:
    """Return the day that a time is of, here."""
    return local(now).date()
