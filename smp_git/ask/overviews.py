"""Overviews of a session: topics, timeline, agents, a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from smp_git.ask.catalogue import Catalogue, Row, roots_of
from smp_git.model.errors import InvalidQueryError
from smp_git.model.ids import sort_key
from smp_git.model.memory import KINDS, VALUE, MemoryId, Value
from smp_git.model.results import Result
from smp_git.read.snapshot import Snapshot

_SHOWN_IDS = 20
_SUMMARY_LINES = 5
# Tags that stand together less often do so by chance.
_SHARED_MENTIONS = 2
# Who took part in a decision or a finding, besides who wrote it.
_TAKING_PART = ("made_by", "discovered_by", "agreed_by", "approved_by", "agents_involved")


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic(Result):
    """A tag with its subtree: how much it matters here, and what it names.

    >>> [(topic.topic, topic.mentions) for topic in session.topics()]
    [('security', 2), ('security.login', 1)]
    """

    topic: str
    weight: float
    mentions: int
    first_at: str
    last_at: str
    subtopics: tuple[str, ...]
    memories: tuple[MemoryId, ...]
    related_memories: dict[str, tuple[MemoryId, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket(Result):
    """One stretch of time and what came about in it.

    >>> [bucket.count for bucket in session.timeline(by="day")]
    [3]
    """

    start: str
    count: int
    counts: dict[str, int]
    memories: tuple[MemoryId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(Result):
    """One memory as an event: when it came about, who took part, what it was about.

    >>> {event.ref: event.severity for event in session.events()}["FIND-0001"]
    'high'
    """

    at: str
    type: str
    ref: MemoryId
    title: str
    participants: tuple[str, ...]
    severity: str | None
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentActivity(Result):
    """One agent: how much it wrote, of which kinds, from when to when.

    >>> [(each.agent, each.memories) for each in session.agents()]
    [('ada', 3)]
    """

    agent: str
    memories: int
    counts: dict[str, int]
    first_at: str
    last_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Result):
    """A session in a few lines, taken from its own words.

    >>> summary = session.summary()
    >>> (summary.decisions, summary.open_findings)
    (('Use OAuth 2.0 (DEC-0001)',), ('No second factor (FIND-0001)',))
    """

    counts: dict[str, int]
    topics: tuple[str, ...]
    decisions: tuple[str, ...]
    open_findings: tuple[str, ...]
    preferences: tuple[str, ...]
    learnings: tuple[str, ...]
    first_at: str | None
    last_at: str | None

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {**Result.as_json(self), "text": self.text}

    @property
    def text(self) -> str:
        """The summary as Markdown."""
        each = (f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in self.counts.items())
        counted = ", ".join(each) or "nothing"
        # Nobody reads fractions of a second.
        first, last = (f"{at[:19]}Z" if at else "" for at in (self.first_at, self.last_at))
        lines = [f"{counted}, from {first} to {last}" if first else counted]
        for name, items in (
            ("Topics", self.topics),
            ("Decisions", self.decisions),
            ("Open findings", self.open_findings),
            ("Preferences", self.preferences),
            ("Learnings", self.learnings),
        ):
            if items:
                lines += ["", f"## {name}", *(f"- {item}" for item in items)]
        return "\n".join(lines)


def topics(catalogue: Catalogue, limit: int | None = None) -> tuple[Topic, ...]:
    """Return the tags of a session, the weightiest first."""
    found: dict[str, list[Row]] = {}
    beside: dict[str, Counter[str]] = {}
    for row in _rows(catalogue):
        roots = roots_of(tuple(row.entry.tags))
        for root in roots:
            found.setdefault(root, []).append(row)
            beside.setdefault(root, Counter()).update(roots)
    most = max((len(rows) for rows in found.values()), default=1)
    made = [_topic(name, rows, most, beside) for name, rows in found.items()]
    made.sort(key=lambda topic: (-topic.mentions, topic.topic))
    return tuple(made[:limit])


def _topic(name: str, rows: list[Row], most: int, beside: Mapping[str, Mapping[str, int]]) -> Topic:
    rows.sort(key=lambda row: (row.at, row.entry.id))
    newest = rows[::-1]
    kinds = {kind: [row.entry.id for row in newest if row.kind == kind] for kind in KINDS}
    return Topic(
        topic=name,
        weight=round(len(rows) / most, 4),
        mentions=len(rows),
        first_at=rows[0].entry.at,
        last_at=rows[-1].entry.at,
        subtopics=_subtopics(name, beside),
        memories=tuple(row.entry.id for row in newest[:_SHOWN_IDS]),
        related_memories={kind: tuple(ids[:_SHOWN_IDS]) for kind, ids in kinds.items() if ids},
    )


def _subtopics(name: str, beside: Mapping[str, Mapping[str, int]]) -> tuple[str, ...]:
    """Return the tags below a topic, then rarer ones that mostly stand beside it."""
    below = sorted(other for other in beside if other.rpartition(".")[0] == name)
    shared = {
        other: count
        for other, count in beside[name].items()
        if count >= _SHARED_MENTIONS
        and beside[other][other] <= 2 * count
        and beside[other][other] < beside[name][name]
        and not f"{other}.".startswith(f"{name}.")
    }
    return (*below, *sorted(shared, key=lambda other: (-shared[other], other)))


def timeline(catalogue: Catalogue, by: str = "hour") -> tuple[Bucket, ...]:
    """Return what came about, hour by hour or day by day, oldest first."""
    patterns = {"hour": "%Y-%m-%dT%H:00:00Z", "day": "%Y-%m-%d", "month": "%Y-%m"}
    if by not in patterns:
        raise InvalidQueryError(f"no timeline by {by!r}", hint="by hour, day or month")
    buckets: dict[str, list[Row]] = {}
    for row in sorted(_rows(catalogue), key=lambda row: (row.at, row.entry.id)):
        buckets.setdefault(row.at.strftime(patterns[by]), []).append(row)
    return tuple(
        Bucket(
            start=start,
            count=len(rows),
            counts=_counts(rows),
            memories=tuple(row.entry.id for row in rows),
        )
        for start, rows in buckets.items()
    )


def events(rows: Iterable[Row], snapshot: Snapshot) -> tuple[Event, ...]:
    """Return memories as events, oldest first."""
    ordered = sorted(rows, key=lambda row: (row.at, sort_key(row.entry.id)))
    return tuple(
        Event(
            at=row.entry.at,
            type=row.kind,
            ref=row.entry.id,
            title=row.entry.title,
            participants=_participants(row, snapshot),
            severity=row.entry.severity,
            topics=tuple(row.entry.tags),
        )
        for row in ordered
    )


def _participants(row: Row, snapshot: Snapshot) -> tuple[str, ...]:
    names: list[Value] = [row.entry.speaker or row.entry.agent]
    if row.kind in ("decision", "finding"):
        memory = snapshot.readable(row.entry.id)
        for said in map(memory.fields.get, _TAKING_PART) if memory is not None else ():
            names += said if isinstance(said, list) else [said]
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str) and name))


def agents(catalogue: Catalogue) -> tuple[AgentActivity, ...]:
    """Return the agents of a session, the busiest first."""
    found: dict[str, list[Row]] = {}
    for row in _rows(catalogue):
        found.setdefault(row.entry.agent, []).append(row)
    made = [
        AgentActivity(
            agent=name,
            memories=len(rows),
            counts=_counts(rows),
            first_at=min(rows, key=lambda row: row.at).entry.at,
            last_at=max(rows, key=lambda row: row.at).entry.at,
        )
        for name, rows in found.items()
    ]
    return tuple(sorted(made, key=lambda activity: (-activity.memories, activity.agent)))


def _rows(catalogue: Catalogue) -> list[Row]:
    """Return the rows of all memories but values, which other questions may have loaded."""
    return [row for row in catalogue.rows if row.kind != VALUE]


def _counts(rows: Iterable[Row]) -> dict[str, int]:
    counts = dict.fromkeys(KINDS, 0)
    for row in rows:
        counts[row.kind] += 1
    return {kind: count for kind, count in counts.items() if count}


def summary(catalogue: Catalogue, ordered: Sequence[Row]) -> Summary:
    """Return a session in a few lines; `ordered` are its memories by priority."""
    times = sorted(row.entry.at for row in ordered)

    def best(kind: str, *statuses: str) -> tuple[str, ...]:
        fitting = [
            row.entry
            for row in ordered
            if row.kind == kind
            and not catalogue.is_superseded(row)
            and (not statuses or row.entry.status in statuses)
        ]
        return tuple(f"{entry.title} ({entry.id})" for entry in fitting[:_SUMMARY_LINES])

    return Summary(
        counts=_counts(ordered),
        topics=tuple(topic.topic for topic in topics(catalogue, _SUMMARY_LINES)),
        decisions=best("decision"),
        open_findings=best("finding", "open"),
        preferences=best("preference"),
        learnings=best("learning"),
        first_at=times[0] if times else None,
        last_at=times[-1] if times else None,
    )
