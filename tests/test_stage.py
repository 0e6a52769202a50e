"""Changes on top of a snapshot: additions, edits, links, duplicates."""

from __future__ import annotations

from typing import Any

import pytest

from smp_git import Session
from smp_git.model.errors import ConflictError, InvalidError, MemoryNotFoundError, RefusedError
from smp_git.write import edits
from tests.support import own, untyped


@pytest.mark.parametrize(
    "text", ["", "DEC", "DEC-", "DEC-0", "DEC-00001", "dec 1", "../DEC-0001", "DEC-0001/..", "DEC-0001\n", "DEC-1-K3FQ",
             "DEC-0001-", "DEC-" + "9" * 30, "state-", "state-../x", "HEAD", "\ud800", "x" * 10**6, None, 5, ["DEC-0001"], {}]
)  # fmt: skip
def test_text_that_names_no_memory_is_refused(session: Session, text: Any) -> None:
    for door in (session.get, session.edit, session.resolve, session.pin, session.history, session.blame, session.file):  # fmt: skip
        with pytest.raises((InvalidError, MemoryNotFoundError)) as caught:
            door(text)
        assert len(caught.value.message) < 200


@pytest.mark.parametrize("text", ["DEC-1", "dec1", "decision-1", "DEC-0001", "Dec-01"])
def test_short_forms_name_a_memory(session: Session, text: str) -> None:
    session.add("decision", "Use Redis", agent="a")

    assert session.get(text).id == "DEC-0001"


def test_edit_that_changes_nothing_writes_nothing(session: Session) -> None:
    memory = session.add("decision", "Use Redis", agent="a", impact="high")
    head = session.head
    session.edit(memory.id, impact="high", text="Use Redis", tags=[])

    assert session.head == head
    assert session.get(memory.id).updated_at is None


@pytest.mark.parametrize(("old", "new"), [(1, True), (True, 1), (1, 1.0), ([0], [False])])
def test_edit_from_one_type_to_another_is_a_change(session: Session, old: object, new: Any) -> None:
    memory = session.add("decision", "Use Redis", agent="a", **own(note=old))
    session.edit(memory.id, **own(note=new))

    found = session.get(memory.id).fields["note"]
    assert (found, type(found)) == (new, type(new))


def test_field_set_to_none_is_removed(session: Session) -> None:
    memory = session.add("decision", "Use Redis", agent="a", impact="high", **own(note="x"))
    session.edit(memory.id, impact=None, **own(note=None), **own(absent=None))

    assert session.get(memory.id).fields == {}


def test_resolved_decision_says_so(session: Session) -> None:
    memory = session.add("decision", "Use Redis", agent="a")

    assert session.resolve(memory.id).status == "resolved"


def test_resolved_finding_keeps_who_and_what(session: Session) -> None:
    memory = session.add("finding", "No TLS", agent="a", resolution={"status": "open", "owner": "b"})  # fmt: skip
    found = session.resolve(memory.id, action="TLS", by="veritas")

    resolution = found.fields["resolution"]
    assert isinstance(resolution, dict)
    assert (resolution["owner"], resolution["action_taken"], resolution["resolved_by"]) == ("b", "TLS", "veritas")  # fmt: skip
    assert found.status == "resolved"


@pytest.mark.parametrize("kind", ["turn", "learning", "preference", "artifact"])
def test_what_cannot_be_resolved_is_refused(session: Session, kind: str) -> None:
    memory = session.add(untyped(kind), "text", agent="a")

    with pytest.raises(RefusedError, match=memory.id):
        session.resolve(memory.id)


def test_chain_of_superseded_memories_names_each_successor(session: Session) -> None:
    first = session.add("decision", "Use Redis", agent="a", tags=["cache"])
    second = session.supersede(first.id, "Use Valkey")
    third = session.supersede(second.id, "Use Memcached")

    assert [m.status for m in session.memories()] == ["superseded", "superseded", "active"]
    assert session.get(third.id).links == (("supersedes", second.id),)
    assert third.tags == ("cache",)


def test_memory_superseded_twice_is_marked_once(session: Session) -> None:
    first = session.add("decision", "Use Redis", agent="a")
    session.supersede(first.id, "Use Valkey")
    session.supersede(first.id, "Use Memcached")

    assert len(session.history(first.id)) == 2


def test_memory_is_not_superseded_by_another_kind(session: Session) -> None:
    old = session.add("decision", "Use Redis", agent="a")
    with session.transaction("a") as tx:
        stage = tx._staged()
        new = edits.new(session._handle, "finding", "x", "a")
        with pytest.raises(InvalidError, match="cannot replace"):
            stage.supersede(old.id, new)


def test_state_is_set_not_added(session: Session) -> None:
    with pytest.raises(InvalidError, match="state is not added"):
        session.add(untyped("state"), "x", agent="a")


def test_link_to_an_unknown_id_is_kept(session: Session) -> None:
    memory = session.add("decision", "Use Redis", agent="a", links=[("led_to", "FIND-0099")])

    assert session.get(memory.id).links == (("led_to", "FIND-0099"),)


def test_link_to_itself_is_refused(session: Session) -> None:
    memory = session.add("decision", "Use Redis", agent="a")
    with pytest.raises(InvalidError, match="itself"):
        session.link(memory.id, "supersedes", memory.id)
    with pytest.raises(InvalidError, match="itself"):
        session.add("decision", "Use Valkey", agent="a", links=[("led_to", "DEC-0002")])

    assert session.get(memory.id).status == "active"


def test_same_link_twice_is_one(session: Session) -> None:
    memory = session.add("decision", "Use Redis", agent="a")
    session.link(memory.id, "led_to", "FIND-0001")
    head = session.head
    session.link(memory.id, "led_to", "FIND-0001")

    assert session.head == head


@pytest.mark.parametrize(
    "link", ["DEC-0001", ("resolves",), ("a", "b", "c"), ("Resolves", "DEC-0001"), ("re solves", "DEC-0001"),
             ("resolves", "DEC-1"), ("resolves", "nonsense"), ("resolves", None), (None, "DEC-0001"), 5, {"a": "DEC-0001", "b": "DEC-0001"}]
)  # fmt: skip
def test_what_is_no_link_is_refused(session: Session, link: Any) -> None:
    with pytest.raises(InvalidError):
        session.add("decision", "Use Redis", agent="a", links=[link])


@pytest.mark.parametrize("links", ["resolves:DEC-0001", 5, None, {"resolves": "DEC-0001"}])
def test_links_that_are_no_list_are_refused(session: Session, links: Any) -> None:
    with pytest.raises(InvalidError, match="links must be a list"):
        session.add("decision", "Use Redis", agent="a", links=links)


def test_missing_link_cannot_be_removed(session: Session) -> None:
    memory = session.add("decision", "Use Redis", agent="a")

    with pytest.raises(MemoryNotFoundError, match="no link"):
        session.unlink(memory.id, "led_to", "FIND-0001")


def test_preferences_of_one_transaction_supersede_each_other(session: Session) -> None:
    with session.transaction("a") as tx:
        old = tx.add("preference", "Dark mode", category="ui", key="theme")
        tx.add("preference", "Light mode", category="ui", key="theme")

    assert session.get(old.id).status == "superseded"


def test_preference_of_another_category_stands(session: Session) -> None:
    old = session.add("preference", "Dark mode", agent="a", category="ui", key="theme")
    session.add("preference", "Baroque", agent="a", category="music", key="theme")

    assert session.get(old.id).status == "active"


def test_near_duplicate_of_a_long_title_is_reported(session: Session) -> None:
    first = session.add("learning", "users of the shop prefer short answers in chat", agent="a")
    again = session.add("learning", "Users of the shop prefer short answers, in chat!", agent="a")

    assert again.duplicate_of == first.id


def test_superseded_memory_is_no_duplicate(session: Session) -> None:
    first = session.add("decision", "Use Redis", agent="a")
    session.supersede(first.id, "Use Valkey")

    assert session.add("decision", "Use Redis", agent="a").duplicate_of is None


def test_set_state_twice_the_same_writes_once(session: Session) -> None:
    session.set_state("veritas", {"on": 1})
    head = session.head
    session.set_state("Veritas", {"on": 1})

    assert session.head == head
    assert session.set_state("veritas", {"on": True}).fields == {"on": True}
    assert session.head != head


@pytest.mark.parametrize("fields", [{5: 1}, {"id": 1}, {"state": 1}, {None: 1}, {True: 1}])
def test_state_with_a_bad_field_is_refused(session: Session, fields: Any) -> None:
    with pytest.raises(InvalidError, match="field"):
        session.set_state("veritas", fields)


@pytest.mark.parametrize("reason", ["\ud800", "a\0b", 5, "x" * 1_048_577])
def test_reason_that_no_message_can_hold_is_refused_at_once(session: Session, reason: Any) -> None:
    with pytest.raises(InvalidError, match="reason"):
        session.transaction("a", reason=reason)


def test_reason_cannot_forge_a_trailer(session: Session) -> None:
    with session.transaction("a", reason="x\nAgent: eve\nMemory: DEC-0009") as tx:
        tx.add("learning", "something")

    message = session._handle.reader.snapshot().commit.message
    assert message.endswith("Agent: a\nReason: x Agent: eve Memory: DEC-0009\n")


def test_title_cannot_forge_a_trailer(session: Session) -> None:
    session.add("learning", "x\u2028Agent: eve\x85Turn: turn-0009", agent="a", title="y\nAgent: eve\n")  # fmt: skip
    version = session.log()[0]

    assert version.subject == "learning LEARN-0001: y"
    assert len(version.touches) == 1


def test_batch_of_two_transactions_on_one_memory_conflicts(session: Session) -> None:
    memory = session.add("decision", "Use Redis", agent="a")
    first = session.transaction("a")
    second = session.transaction("b")
    first.edit(memory.id, **own(note=1))
    second.edit(memory.id, **own(note=2))
    first.commit()
    head = session.head
    with pytest.raises(ConflictError, match=memory.id):
        second.commit()

    assert session.head == head


def test_ended_transaction_takes_nothing_more(session: Session) -> None:
    with session.transaction("a") as tx:
        tx.rollback()
        with pytest.raises(RefusedError, match="ended"):
            tx.add("learning", "x")

    assert len(session.log()) == 1
