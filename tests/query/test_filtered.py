"""What is similar or related can be filtered as any query can, and only that."""

from __future__ import annotations

from typing import Any

import pytest

from smp_git import Session
from smp_git.model.errors import InvalidQueryError
from tests.query.strategies import NOW


@pytest.fixture
def filled(shop: Session) -> Session:
    for number in range(30):
        shop.add("turn", f"the cache of the login is slow, day {number}")
    shop.add("decision", "a cache for the login", tags=["speed"], importance=0.9)
    shop.add("finding", "the login is slow", tags=["speed.login"], severity="high")
    shop.link("DEC-0001", "resolves", "turn-0001")
    shop.link("FIND-0001", "derived_from", "turn-0001")
    return shop


FILTERS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "tags": ({"tags": ["speed"]}, {"DEC-0001", "FIND-0001"}),
    "kinds": ({"kinds": ["finding"]}, {"FIND-0001"}),
    "where": ({"where": [("severity", "equals", "high")]}, {"FIND-0001"}),
    "importance": ({"min_importance": 0.85}, {"DEC-0001"}),
    "not tags": ({"not_tags": ["speed.login"], "kinds": ["finding", "decision"]}, {"DEC-0001"}),
}  # fmt: skip


@pytest.mark.parametrize("name", FILTERS)
def test_similar_finds_among_what_matches(filled: Session, name: str) -> None:
    filters, expected = FILTERS[name]
    found = filled.similar("cache login slow", limit=3, now=NOW, **filters)
    assert {hit.id for hit in found} == expected
    assert found.total == len(expected)


def test_a_memory_is_not_similar_to_itself(filled: Session) -> None:
    assert [hit.id for hit in filled.similar("FIND-1", tags=["speed"])] == ["DEC-0001"]


def test_related_leads_on_through_what_does_not_match(filled: Session) -> None:
    assert [each.id for each in filled.related("DEC-1", kinds=["finding"])] == ["FIND-0001"]
    assert filled.related("DEC-1", depth=1, kinds=["finding"]) == ()
    assert [each.id for each in filled.related("DEC-1", min_priority=0)] == ["turn-0001", "FIND-0001"]  # fmt: skip


@pytest.mark.parametrize("wrong", [{"sort": ["kind"]}, {"aggregations": ["count:kind"]}, {"colour": 1}, {"kinds": ["thought"]}, {"where": [("colour", "exists", True)]}])  # fmt: skip
def test_what_is_no_filter_is_refused(filled: Session, wrong: dict[str, Any]) -> None:
    for ask in (filled.similar, filled.related):
        with pytest.raises(InvalidQueryError):
            ask("DEC-1", **wrong)
