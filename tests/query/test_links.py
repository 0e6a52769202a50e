"""Links lead both ways, and the fields that name memories are links too."""

from __future__ import annotations

import pytest

from smp_git import Session
from smp_git.model.errors import InvalidError


def edges(shop: Session, name: str, depth: int = 1) -> list[tuple[str, str, str]]:
    return [(each.id, each.relation, each.direction) for each in shop.related(name, depth=depth)]


def test_the_turn_of_a_memory_leads_to_it_and_to_its_siblings(shop: Session) -> None:
    turn = shop.add("turn", "we look at the login")
    finding = shop.add("finding", "no second factor", turn_ref=turn.id)
    other = shop.add("decision", "use keys", turn_ref=1)

    assert edges(shop, turn.id) == [(other.id, "turn_ref", "from"), (finding.id, "turn_ref", "from")]  # fmt: skip
    assert edges(shop, finding.id) == [(turn.id, "turn_ref", "to"), (other.id, "same_turn", "both")]


def test_siblings_are_found_though_their_turn_is_not_there(shop: Session) -> None:
    finding = shop.add("finding", "no second factor", turn_ref=7)
    other = shop.add("finding", "no timeout", turn_ref=7)
    assert edges(shop, finding.id) == [(other.id, "same_turn", "both")]


def test_what_a_turn_or_a_state_refers_to_is_linked_both_ways(shop: Session) -> None:
    finding = shop.add("finding", "no second factor")
    turn = shop.add("turn", "see there", memory_refs=["FIND-1", "DEC-99", "not an id"])
    state = shop.set_state("veritas", {"memory_refs": [finding.id]})

    assert edges(shop, turn.id) == [(finding.id, "memory_refs", "to")]
    assert edges(shop, finding.id) == [(turn.id, "memory_refs", "from"), (state.id, "memory_refs", "from")]  # fmt: skip
    # What is written later is seen, and what goes is gone.
    late = shop.add("turn", "again", memory_refs=[finding.id])
    assert (late.id, "memory_refs", "from") in edges(shop, finding.id)
    shop.delete(turn.id)
    assert turn.id not in [name for name, *_ in edges(shop, finding.id)]


def test_every_relation_between_two_memories_is_shown(shop: Session) -> None:
    a, b = shop.add("decision", "a").id, shop.add("decision", "b").id
    shop.link(a, "led_to", b)
    shop.link(a, "references", b)
    shop.link(b, "contradicts", a)

    assert edges(shop, a, 3) == [(b, "led_to", "to"), (b, "references", "to"), (b, "contradicts", "from")]  # fmt: skip


def test_a_query_includes_what_fields_lead_to(shop: Session) -> None:
    turn = shop.add("turn", "we look at the login")
    shop.add("finding", "no second factor", turn_ref=turn.id)
    shop.add("turn", "see there", memory_refs=["FIND-1"])

    found = {str(hit.id): hit.why for hit in shop.query(kinds=["finding"], include_related=True)}

    assert found.keys() == {"FIND-0001", "turn-0001", "turn-0002"}
    assert found["turn-0001"] == ("FIND-0001 turn_ref it",)
    assert found["turn-0002"] == ("memory_refs FIND-0001",)


def test_links_of_the_past_are_those_of_the_past(shop: Session) -> None:
    turn = shop.add("turn", "we look at the login")
    then = shop.head
    shop.add("finding", "no second factor", turn_ref=turn.id)
    assert shop.related(turn.id, at=then) == ()
    assert len(shop.related(turn.id)) == 1


def test_a_link_leads_to_a_memory_of_another_session(shop: Session) -> None:
    far = "other-session:DEC-0001"
    note = shop.add("learning", "as we said there", links=[("references", far)])
    near = shop.add("decision", "here too", links=[("supersedes", "global:DEC-7")])
    shop.link(note.id, "led_to", near.id)

    assert shop.get(near.id).links[0].target == "global:DEC-0007"
    assert edges(shop, note.id, 3) == [
        (far, "references", "to"),
        (near.id, "led_to", "to"),
        ("global:DEC-0007", "supersedes", "to"),
    ]
    assert [each.kind for each in shop.related(note.id, depth=1)] == ["decision", "decision"]
    assert [hit.id for hit in shop.query(where=[("links", "contains", far)])] == [note.id]
    # What it leads to is not in this session, and not in its answers.
    found = shop.query("said", include_related=True)
    assert {hit.id for hit in found} == {note.id, near.id}
    assert not shop.check()
    shop.unlink(note.id, "references", far)
    assert edges(shop, note.id) == [(near.id, "led_to", "to")]


@pytest.mark.parametrize("target", ["a b:DEC-0001", ":DEC-0001", "x:y:DEC-0001", "x:", "x:nothing"])
def test_what_is_no_memory_of_a_session_is_refused(shop: Session, target: str) -> None:
    with pytest.raises(InvalidError):
        shop.add("learning", "see there", links=[("references", target)])


def test_writing_a_link_is_no_use_of_what_it_leads_to(shop: Session) -> None:
    one, other = shop.add("decision", "a").id, shop.add("decision", "b").id
    shop.link(one, "led_to", other)
    assert other in shop
    assert "DEC-2" not in shop
    assert "global:DEC-0001" not in shop
    assert shop.memories("decision")[1].access_count == 0
