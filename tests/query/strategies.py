"""Sessions small enough to look through by hand, and every question one can ask them."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from hypothesis import strategies as st

from smp_git import Session
from smp_git.ask.conditions import OPERATORS
from smp_git.ask.request import COUNTED, MEASURES, from_specification
from smp_git.model.errors import InvalidQueryError
from smp_git.model.memory import CONFIDENCE_RANKS, KINDS, SEVERITIES
from tests.support import untyped

NOW = datetime(2026, 1, 20, 12, tzinfo=UTC)
# Few, so that several memories share one; the last is ahead of the clock.
TIMES = tuple(NOW - timedelta(hours=hours) for hours in (0.01, 1, 1, 30, 24 * 8, 24 * 400, -48))
AGENTS = ("ada", "veritas", "code-review")
TAGS = ("a", "a.b", "a.b.c", "ab", "b", "b.c")
WORDS = ("session", "timeout", "login", "cache", "query", "slow", "Session", "timeouts", "ünïcode", "I prefer")  # fmt: skip
LONG = "long " * 20
_ADDED = tuple(kind for kind in KINDS if kind not in ("state", "value"))

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
_labels = st.sampled_from(("auth", "style", "Auth", LONG))
_anything = st.sampled_from(
    (True, False, 0, 1, 2.5, "1", "auth", "", ["auth", "x"], [], {"y": 1}, {"y": {"z": "deep"}}, LONG)
)  # fmt: skip
_COMMON: dict[str, st.SearchStrategy[Any]] = {
    "confidence": st.sampled_from((*CONFIDENCE_RANKS, 0, 1, 0.25, 0.123456)),
    "importance": st.sampled_from((0, 1, 0.5, 0.333333)),
    "pinned": st.booleans(),
    "turn_ref": st.integers(1, 3),
    "title": texts,
    "x": _anything,
    "x.y": _anything,
    "note": _anything,
}
_OF_KIND: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "turn": {"speaker": _labels, "role": st.sampled_from(("user", "assistant")), "tokens": st.integers(0, 3), "conversation_id": _labels, "type": st.sampled_from(("question", "answer"))},
    "decision": {"impact": st.sampled_from(("high", "low", LONG)), "reversible": st.booleans(), "status": st.sampled_from(("active", "resolved", "superseded")), "rationale": texts, "tokens": _anything},
    "finding": {"severity": st.sampled_from(SEVERITIES), "category": _labels, "status": st.sampled_from(("open", "resolved")), "impact": st.sampled_from(("high", LONG))},
    "preference": {"key": _labels, "topic": _labels, "category": _labels, "value": _anything},
    "learning": {"topic": _labels, "category": _labels, "evidence": _anything},
    "artifact": {"type": st.sampled_from(("report", "question")), "topic": _labels, "media_type": st.just("text/plain")},
}  # fmt: skip


class Added(NamedTuple):
    """One memory to add."""

    kind: str
    text: str
    agent: str
    tags: list[str]
    at: datetime
    links: list[tuple[str, str]]
    fields: dict[str, Any]


class Edit(NamedTuple):
    """A change of the memory at a place among all, counted around."""

    how: str
    place: int


@st.composite
def _added(draw: st.DrawFn) -> Added:
    kind = draw(st.sampled_from(_ADDED))
    known = _COMMON | _OF_KIND[kind]
    names = draw(st.lists(st.sampled_from(tuple(known)), max_size=5, unique=True))
    relation = st.sampled_from(("supersedes", "resolves", "led_to"))
    target = st.sampled_from(("DEC-0001", "DEC-0002", "FIND-0001", "PREF-0001", "turn-0001"))
    return Added(
        kind,
        draw(texts),
        draw(st.sampled_from(AGENTS)),
        draw(st.lists(st.sampled_from(TAGS), max_size=3, unique=True)),
        draw(st.sampled_from(TIMES)),
        draw(st.lists(st.tuples(relation, target), max_size=1)),
        {name: draw(known[name]) for name in names},
    )


additions = st.lists(_added(), min_size=1, max_size=9)
edits = st.lists(
    st.builds(Edit, st.sampled_from(("supersede", "resolve", "pin", "retag", "state", "reword")), st.integers(0, 8)),
    max_size=4,
)  # fmt: skip


def add(session: Session, wanted: list[Added]) -> None:
    """Write the additions, as one commit."""
    given = Counter[str]()
    with session.transaction(agent="ada") as tx:
        for one in wanted:
            given[one.kind] += 1
            own = f"{KINDS[one.kind].prefix}-{given[one.kind]:04d}"
            links = [link for link in one.links if link[1] != own]
            tx.add(untyped(one.kind), one.text, agent=one.agent, tags=one.tags, at=one.at, links=links, **one.fields)  # fmt: skip


def apply(session: Session, wanted: list[Edit]) -> None:
    """Write the edits, each as a commit."""
    for edit in wanted:
        names = [memory.id for memory in session.memories() if memory.kind != "state"]
        name = names[edit.place % len(names)]
        if edit.how == "state":
            session.set_state(AGENTS[edit.place % 3], {"working_memory": ["auth"], "note": "x"})
        elif name.startswith("turn"):
            session.add("turn", "said later", at=TIMES[0], speaker="ada")
        elif edit.how == "supersede":
            session.supersede(name, "replaced by this", agent="veritas")
        elif edit.how == "resolve" and name.startswith(("FIND", "DEC")):
            session.resolve(name, agent="ada", action="fixed")
        elif edit.how == "pin":
            session.pin(name)
        elif edit.how == "retag":
            session.edit(name, tags=["b.c", "new"], importance=0.9)
        else:
            session.edit(name, text="worded anew, slow cache")


_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "kind": st.sampled_from(tuple(KINDS)),
    "agent": st.sampled_from(AGENTS),
    "tags": st.sampled_from(TAGS),
    "created_at": st.sampled_from((*TIMES, "yesterday", "8 days ago", "2026-01-19")),
    "updated_at": st.sampled_from((NOW, "2026-01-11")),
    "severity": st.sampled_from((*SEVERITIES, "odd")),
    "status": st.sampled_from(("open", "active", "resolved", "superseded")),
    "confidence": st.sampled_from((*CONFIDENCE_RANKS, 0.25, 0.123456, 1)),
    "importance": st.sampled_from((0.5, 1, 0.333333)),
    "priority": st.sampled_from((0.3, 0.8, 1)),
    "size_bytes": st.sampled_from((100, 200)),
    "tokens": st.integers(0, 3),
    "id": st.sampled_from(("DEC-0001", "FIND-0001")),
    "links": st.sampled_from(("DEC-0001", "FIND-0001")),
    "turn_ref": st.sampled_from(("turn-0001", "turn-0002")),
    "x.y": _anything,
    "fields.x.y.z": _anything,
    **dict.fromkeys(("pinned", "reversible"), st.booleans()),
    **dict.fromkeys(("title", "content", "decision", "finding", "rationale"), st.sampled_from(WORDS)),
    **dict.fromkeys(("category", "topic", "key", "impact", "speaker", "type", "role", "conversation_id"), st.sampled_from(("auth", "style", "high", "user", "question", LONG))),
    **dict.fromkeys(("x", "note", "value", "evidence", "missing", "life", "generation"), _anything),
}  # fmt: skip
FIELDS = tuple(_VALUES)
_PATTERNS = ("auth", "^s", "[a-c]", "slow|fast", "t$", "")


@st.composite
def conditions(draw: st.DrawFn) -> tuple[str, str, Any]:
    """A valid condition."""
    field, operator = draw(st.sampled_from(FIELDS)), draw(st.sampled_from(OPERATORS))
    values = _VALUES[field]
    wanted: st.SearchStrategy[Any] = values
    if operator == "exists":
        wanted = st.booleans()
    elif operator == "matches":
        wanted = st.sampled_from(_PATTERNS)
    elif operator == "in":
        wanted = st.lists(values, max_size=3)
    elif operator == "between":
        wanted = st.tuples(values, values)
    return field, operator, draw(wanted)


def _is_valid(parts: dict[str, Any]) -> bool:
    try:
        from_specification(parts, NOW)
    except InvalidQueryError:
        return False
    return True


_sorts = st.tuples(st.sampled_from((*FIELDS, "relevance")), st.sampled_from(("asc", "desc")))
_counts = st.sampled_from([f"count:{name}" for name in (*COUNTED, *FIELDS) if name != "tags"])
_measures = st.builds("{}:{}".format, st.sampled_from(MEASURES), st.sampled_from(FIELDS))
_tag_lists = st.lists(st.sampled_from((*TAGS, "none")), min_size=1, max_size=2)
_filters: dict[str, st.SearchStrategy[Any]] = {
    "kinds": st.lists(st.sampled_from(tuple(KINDS)), max_size=3),
    "tags": _tag_lists,
    "any_tags": _tag_lists,
    "not_tags": _tag_lists,
    "agents": st.lists(st.sampled_from(AGENTS), min_size=1, max_size=2),
    "since": st.sampled_from((*TIMES, "2 days ago", "last week")),
    "until": st.sampled_from((*TIMES, "1h ago", "2026-01-19")),
    "where": st.lists(conditions(), min_size=1, max_size=2),
    "min_priority": st.sampled_from((0, 0.3, 0.6, 0.81, 1)),
    "min_importance": st.sampled_from((0.4, 0.5, 0.75)),
    "include_superseded": st.booleans(),
}
_pages: dict[str, st.SearchStrategy[Any]] = {
    "limit": st.none() | st.integers(0, 6),
    "offset": st.integers(0, 4),
}
_shapes: dict[str, st.SearchStrategy[Any]] = {
    "sort": st.lists(_sorts, max_size=2),
    "aggregations": st.lists(_counts | _measures, max_size=2),
}
filters = st.fixed_dictionaries({}, optional=_filters).filter(_is_valid)
queries = st.fixed_dictionaries({}, optional=_filters | _shapes | _pages).filter(_is_valid)
operators = st.lists(conditions(), min_size=1, max_size=1).map(lambda found: {"where": found, "limit": None}).filter(_is_valid)  # fmt: skip
questions = st.sampled_from(
    ("session", "slow query", '"session timeout"', "time*", "what did ada say", "UNICODE ünïcode", "nothing such", "login yesterday")
)  # fmt: skip
