"""A deletion by criteria takes what meets all of them, and no more."""

from __future__ import annotations

from typing import Any

import pytest

from smp_git import Session, Store
from smp_git.model.errors import ConflictError, InvalidError, MemoryNotFoundError
from smp_git.remove.history import erase
from smp_git.remove.history.plan import make_plan


@pytest.fixture
def varied(session: Session) -> Session:
    session.add(
        "decision", "Use OAuth", agent="architect", tags=["security.login"], at="2026-01-01"
    )
    session.add("decision", "Use Redis", agent="architect", tags=["database"], at="2026-01-02")
    session.add("finding", "No MFA", agent="veritas", tags=["security"], at="2026-01-03")
    session.add("turn", "Let us use oauth", agent="user-123", at="2026-01-04", topic="Redis")
    return session


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        ({"tags": ["security"]}, ["DEC-0001", "FIND-0001"]),
        ({"tags": ["security.login"]}, ["DEC-0001"]),
        ({"since": "2026-01-03"}, ["turn-0001", "FIND-0001"]),
        ({"until": "2026-01-01"}, ["DEC-0001"]),
        ({"since": "2026-01-02", "until": "2026-01-03"}, ["DEC-0002", "FIND-0001"]),
        ({"agents": ["Architect"]}, ["DEC-0001", "DEC-0002"]),
        ({"kinds": ["turn", "finding"]}, ["turn-0001", "FIND-0001"]),
        ({"text": "OAUTH"}, ["turn-0001", "DEC-0001"]),
        ({"text": "redis"}, ["turn-0001", "DEC-0002"]),
        ({"agents": ["architect"], "tags": ["security"]}, ["DEC-0001"]),
        ({"ids": ["DEC-0001", "DEC-0002"], "tags": ["database"]}, ["DEC-0002"]),
    ],
    ids=str,
)
def test_all_criteria_must_hold(varied: Session, criteria: dict[str, Any], expected: list[str]) -> None:  # fmt: skip
    before = varied.head

    plan = varied.delete(dry_run=True, **criteria)

    assert list(plan.ids) == expected
    assert varied.head == before
    assert varied.trash() == ()


def test_what_was_planned_is_deleted_in_one_rewrite(varied: Session) -> None:
    receipt = varied.delete(tags=["security"], reason="policy")

    assert sorted(receipt.ids) == ["DEC-0001", "FIND-0001"]
    assert [memory.id for memory in varied.memories()] == ["turn-0001", "DEC-0002"]
    assert len({item.deletion for item in varied.trash()}) == 1


def test_no_criterion_deletes_nothing(varied: Session) -> None:
    with pytest.raises(InvalidError, match="nothing to delete was named"):
        varied.delete(reason="oops")


def test_a_criterion_that_nothing_meets_says_so(varied: Session) -> None:
    with pytest.raises(MemoryNotFoundError, match="no memory matches all of this"):
        varied.delete(tags=["nowhere"])


def test_what_changed_since_it_was_seen_is_not_deleted(varied: Session) -> None:
    seen = varied.get("DEC-0001")
    varied.edit("DEC-0001", impact="high")
    before = varied.head

    for purge in (False, True):
        with pytest.raises(ConflictError, match="DEC-0001 changed"):
            varied.delete("DEC-0001", seen=[seen], purge=purge)

    assert varied.head == before
    assert varied.trash() == ()
    assert varied.delete("DEC-0001", seen=[varied.get("DEC-0001")]).ids == ("DEC-0001",)


def test_an_edit_while_a_deletion_is_planned_stops_it(
    varied: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, real = varied.get("DEC-0001"), make_plan

    def slow(*given: Any, **more: Any) -> Any:
        made = real(*given, **more)
        with Store.open(varied.path.parents[1]).session(varied.id) as other:
            other.edit("DEC-0001", impact="high")
        return made

    monkeypatch.setattr(erase, "make_plan", slow)
    with pytest.raises(ConflictError, match="DEC-0001 changed"):
        varied.delete("DEC-0001", seen=[seen])

    assert varied.get("DEC-0001").fields["impact"] == "high"
    assert varied.trash() == ()
