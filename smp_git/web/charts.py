"""Geometry of the charts: curves, strips of bars and graphs, as numbers for SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
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
# How far apart two marks are that can both be read.
_MARK: Final = 17.0


def curve(found: Forecast) -> Curve:
    """Return the drawing of a forecast."""
    first, last = found.points[0].at, found.points[-1].at
    length = (last - first) / timedelta(seconds=1) or 1.0

    def place(at: datetime, value: float) -> Point:
        share = (at - first) / timedelta(seconds=1) / length
        return Point(_round(_LEFT + share * (WIDTH - _LEFT - _RIGHT)), height(value))

    points = [(each.at, place(each.at, each.priority)) for each in found.points]
    marks = list[Mark]()
    for number, each in enumerate(found.events, 1):
        if first <= each.at <= last:
            marks.append(Mark(at=_free(place(each.at, each.priority), marks), number=number))
    ends = ((first, place(first, 0)), (last, place(last, 0)))
    return Curve(
        past=_line(point for at, point in points if at <= found.at),
        future=_line(point for at, point in points if at >= found.at),
        now=place(found.at, found.priority),
        marks=tuple(marks),
        ticks=tuple((point, short_day(at)) for at, point in ends),
    )


def _free(point: Point, marks: Iterable[Mark]) -> Point:
    """Return a place above those of other marks that it would hide."""
    for other in marks:
        if math.dist(point, other.at) < _MARK:
            point = Point(point.x, _round(other.at.y - _MARK))
    return point


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
    """What came about in one stretch of time, and how that is called."""

    x: float
    width: float
    name: str
    count: int
    pieces: tuple[BarPart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """Bars, one for each stretch of time; `most` is how many memories the highest stands for."""

    bars: tuple[Bar, ...]
    each: str
    first: str
    last: str
    most: int


STRIP_HEIGHT: Final = 72
_MOST_BARS: Final = 90
_WIDEST: Final = 42.0
_FEW_DAYS: Final = 2
_UNITS: Final = {"hour": timedelta(hours=1), "day": timedelta(days=1)}


def is_young(buckets: Sequence[Bucket]) -> bool:
    """Whether days are too few to tell anything, so that hours are to be asked for."""
    return len(buckets) <= _FEW_DAYS


def strip(buckets: Sequence[Bucket], unit: str = "day") -> Strip | None:
    """Return the drawing of what came about by day or by hour; None if it was all at once."""
    counts = {datetime.fromisoformat(each.start): each.counts for each in buckets}
    if len(counts) < 2:  # noqa: PLR2004 - a single bar tells nothing
        return None
    first, step = min(counts), _UNITS[unit]
    together = math.ceil(((max(counts) - first) // step + 1) / _MOST_BARS)
    number = ((max(counts) - first) // step) // together + 1
    sums: list[dict[str, int]] = [{} for _ in range(number)]
    for at, found in counts.items():
        place = sums[(at - first) // step // together]
        for kind, count in found.items():
            place[kind] = place.get(kind, 0) + count
    most = max(sum(each.values()) for each in sums)
    # The first begins where the line begins, the last ends where it ends.
    wide = min(_WIDEST, 1000 / number - min(2.0, 250 / number))
    names = [_stretch(first + step * together * n, step, together) for n in range(number)]
    bars = [
        _bar(each, (n * (1000 - wide) / (number - 1), wide), names[n], most)
        for n, each in enumerate(sums)
        if each
    ]
    length = {"hour": "an hour", "day": "a day"}[unit] if together == 1 else f"{together} {unit}s"
    return Strip(
        bars=tuple(bars),
        each=length,
        first=_named(first, step),
        last=_named(max(counts), step),
        most=most,
    )


def _stretch(first: datetime, step: timedelta, together: int) -> str:
    last = first + step * (together - 1)
    return _named(first, step) + (f" to {_named(last, step)}" if together > 1 else "")


def _named(at: datetime, step: timedelta) -> str:
    return f"{at:%Y-%m-%d}" if step >= timedelta(days=1) else f"{local(at):%Y-%m-%d %H:%M}"


def _bar(counts: Mapping[str, int], place: tuple[float, float], name: str, most: int) -> Bar:
    pieces, below, (x, wide) = list[BarPart](), float(STRIP_HEIGHT), place
    for kind in KINDS:
        if count := counts.get(kind):
            tall = STRIP_HEIGHT * count / most
            below -= tall
            pieces.append(BarPart(kind=kind, y=_round(below), height=_round(max(tall, 0.5))))
    return Bar(
        x=_round(x),
        width=_round(max(wide, 1.0)),
        name=name,
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
    label: float


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
_ABOVE: Final = 26.0
_BELOW: Final = 28.0
_UNDER: Final = 19.0
_OVER: Final = -11.0
# One alone stands beside the line that leads to it.
_ASIDE: Final = 0.45
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
    middle = places[center].y
    nodes = [
        GraphNode(
            id=name,
            kind=known[name].kind if name in known else kind,
            title=known[name].title if name in known else title,
            at=place,
            depth=0 if name == center else known[name].depth,
            # Below the dot, unless lines come from there.
            label=_round(place.y + (_UNDER if place.y >= middle else _OVER)),
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
        aside = _ASIDE if len(names) == 1 else 0.0
        for number, name in enumerate(names):
            out[name] = out[via] + (number - (len(names) - 1) / 2) * fan + aside
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
