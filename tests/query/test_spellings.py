"""Queries are understood as other formats spell them, and a slip of the pen is pointed out."""

from __future__ import annotations

from typing import Any

import pytest

from smp_git import Session, Store
from smp_git.model.errors import InvalidQueryError, MemoryNotFoundError
from tests.support import own


@pytest.fixture
def filled(shop: Session) -> Session:
    shop.add("decision", "use a cache", tags=["security.auth"], confidence="high", importance=0.9, at="2026-01-05")  # fmt: skip
    shop.add("finding", "login is slow", tags=["security", "deprecated"], severity="high", at="2026-01-08")  # fmt: skip
    shop.add("turn", "the login", agent="veritas", confidence="low", at="2026-01-10")
    shop.link("DEC-0001", "resolves", "FIND-0001")
    return shop


SPELLINGS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "time range": ({"time_range": {"start": "2026-01-08", "end": "2026-01-10"}, "sort": "time_asc"}, ["FIND-0001", "turn-0001"]),
    "timeRange": ({"timeRange": {"end": "2026-01-05"}}, ["DEC-0001"]),
    "dateFilter": ({"dateFilter": {"start": "2026-01-09"}}, ["turn-0001"]),
    "tags": ({"tags": {"include": ["security"], "exclude": ["deprecated"]}}, ["DEC-0001"]),
    "time_desc": ({"sort": "time_desc"}, ["turn-0001", "FIND-0001", "DEC-0001"]),
    "a sort key": ({"sort": {"field": "timestamp", "direction": "asc"}}, ["DEC-0001", "FIND-0001", "turn-0001"]),
    "agentFilter": ({"agentFilter": ["veritas"]}, ["turn-0001"]),
    "confidenceFilter": ({"confidenceFilter": ["high", "medium"]}, ["DEC-0001"]),
    "both filters": ({"confidenceFilter": ["high", "low"], "filters": [{"field": "agent", "value": "veritas"}]}, ["turn-0001"]),
    "minImportance": ({"minImportance": 0.85}, ["DEC-0001"]),
    "conversation": ({"types": ["conversation"]}, ["turn-0001"]),
    "plural": ({"types": ["decisions", "conversation_turns"], "sort": "time"}, ["DEC-0001", "turn-0001"]),
    "references": ({"references": ["DEC-1"]}, ["FIND-0001"]),
    "maxDepth": ({"references": ["FIND-0001"], "maxDepth": 2, "types": ["decision"]}, ["DEC-0001"]),
}  # fmt: skip


@pytest.mark.parametrize("name", SPELLINGS)
def test_other_spellings_mean_the_same(filled: Session, name: str) -> None:
    spec, expected = SPELLINGS[name]
    found = [str(hit.id) for hit in filled.query(spec=spec)]
    assert found == expected or sorted(found) == expected == sorted(expected)


def test_relevance_is_spelled_in_many_ways(filled: Session) -> None:
    best = [hit.id for hit in filled.query("login")]
    assert len(best) == 2
    for sort in ("relevance", "relevance_desc", "-relevance", ["relevance"], [("relevance", "desc")]):  # fmt: skip
        assert [hit.id for hit in filled.query(spec={"text": "login", "sortBy": sort})] == best
    assert [hit.id for hit in filled.query("login", sort="relevance_asc")] == best[::-1]


def test_references_reach_as_far_as_they_say(shop: Session) -> None:
    a, b, c = (shop.add("decision", word).id for word in "abc")
    shop.link(a, "led_to", b)
    shop.link(b, "led_to", c)

    assert {hit.id for hit in shop.query(references=[a])} == {b}
    assert {hit.id for hit in shop.query(references=[a], max_depth=2)} == {b, c}
    with pytest.raises(MemoryNotFoundError):
        shop.query(references=["DEC-99"])


def test_a_field_that_nobody_has_is_refused_with_what_was_meant(filled: Session) -> None:
    with pytest.raises(InvalidQueryError) as caught:
        filled.query(where=[("sevrity", "equals", "high")])
    assert caught.value.hint == "perhaps severity"
    filled.add("turn", "here", **own(sevrity="high"))
    assert [hit.id for hit in filled.query(where=[("sevrity", "equals", "high")])] == ["turn-0002"]
    # What a kind knows is no slip, though nobody has said it yet.
    assert filled.query(where=[("root_cause", "exists", True)]).total == 0


def test_the_past_knows_the_fields_of_the_past(filled: Session) -> None:
    then = filled.head
    filled.add("turn", "here", **own(colour="red"))
    assert filled.query(where=[("colour", "exists", True)]).total == 1
    with pytest.raises(InvalidQueryError, match="colour"):
        filled.query(where=[("colour", "exists", True)], at=then)


def test_a_field_of_one_session_is_known_to_a_query_over_all(fast_store: Store) -> None:
    for name in ("one", "two"):
        with fast_store.create_session(name) as session:
            session.add("turn", "here", **own(colour="red" if name == "one" else None))
    assert fast_store.query(where=[("colour", "equals", "red")]).total == 1
    with pytest.raises(InvalidQueryError, match="color"):
        fast_store.query(where=[("color", "equals", "red")])
    with fast_store.session("two") as two:
        two.add("turn", "there", memory_refs=["turn-0001"])
    assert [hit.session for hit in fast_store.query(references=["turn-0002"])] == ["two"]


def test_a_tag_that_nobody_has_gets_a_note(filled: Session, fast_store: Store) -> None:
    for answer in (filled.query(tags=["securty"]), fast_store.query(tags=["securty"])):
        assert answer.problems == (
            "no memory has the tag securty; perhaps security or security.auth",
        )
    assert filled.query(tags=["security.auth"], not_tags=["deprecated"]).problems == ()
    assert filled.query(kinds=["turn"], any_tags=["security"]).problems == ()


def test_any_field_sorts_and_is_measured(filled: Session) -> None:
    for number, colour in enumerate(("red", "blue", "red")):
        filled.add("artifact", f"number {number}", **own(colour=colour), **own(height=number), agreed_by=["ada", "eve"])  # fmt: skip

    found = filled.query(kinds=["artifact"], sort=["colour", "-height"], aggregations=["count:colour", "avg:height", "count:agreed_by", "max:colour"])  # fmt: skip

    assert [hit.id for hit in found] == ["ART-0002", "ART-0003", "ART-0001"]
    assert found.aggregations == {"count:colour": {"red": 2, "blue": 1}, "avg:height": 1.0, "count:agreed_by": {"ada": 3, "eve": 3}, "max:colour": "red"}  # fmt: skip


def test_uses_are_fields_too(filled: Session) -> None:
    for _ in range(3):
        filled.get("FIND-1")
    filled.get("DEC-1")

    assert [hit.id for hit in filled.query(sort=["-access_count"])] == ["FIND-0001", "DEC-0001", "turn-0001"]  # fmt: skip
    assert [hit.id for hit in filled.query(where=[("access_count", "greater_than", 1)])] == ["FIND-0001"]  # fmt: skip
    assert [hit.id for hit in filled.query(where=[("last_accessed", "exists", False)])] == ["turn-0001"]  # fmt: skip
    assert filled.query(where=[("decay.last_accessed", "greater_than", "2 hours ago")]).total == 2
    assert filled.aggregate("sum:access_count") == {"sum:access_count": 4}
