"""What an addition notices of the memories that are there, however many there are."""

from __future__ import annotations

import sys
from types import FrameType

from smp_git import Session
from smp_git.read.snapshot import Reader


def targets(session: Session, memory_id: str) -> list[str]:
    return [link.target for link in session.get(memory_id).links if link.relation == "supersedes"]


def test_preference_replaces_the_one_of_the_same_key_on_an_older_page(session: Session) -> None:
    with session.transaction(agent="user") as tx:
        for number in range(120):
            tx.add("preference", f"Prefers way {number}", category="style", key=f"key-{number}")

    late = session.add("preference", "Prefers another way", category="style", key="key-7")

    assert targets(session, late.id) == ["PREF-0008"]
    assert session.get("PREF-0008").status == "superseded"


def test_preference_replaces_one_that_is_only_staged(session: Session) -> None:
    with session.transaction(agent="user") as tx:
        tx.add("preference", "Prefers tabs", category="style", key="indent")
        second = tx.add("preference", "Prefers spaces", category="style", key="indent")
        third = tx.add("preference", "Prefers four spaces", category="style", key="indent")

    assert targets(session, second.id) == ["PREF-0001"]
    assert targets(session, third.id) == [second.id]


def test_preference_of_another_category_or_without_a_key_replaces_nothing(
    session: Session,
) -> None:
    session.add("preference", "Prefers tabs", category="style", key="indent")
    session.add("preference", "Prefers mornings", category="style")

    other = session.add("preference", "Prefers two columns", category="layout", key="indent")
    plain = session.add("preference", "Prefers evenings", category="style")

    assert targets(session, other.id) == []
    assert targets(session, plain.id) == []


def test_addition_is_compared_with_the_newest_fifty_only(session: Session) -> None:
    with session.transaction(agent="user") as tx:
        for number in range(101):
            tx.add("decision", f"Use component {number} in place {number * 7}")

    old = session.add("decision", "Use component 0 in place 0")
    new = session.add("decision", "Use component 100 in place 700")

    assert old.duplicate_of is None
    assert new.duplicate_of == "DEC-0101"


def test_addition_in_a_transaction_looks_once_where_the_branch_is(session: Session) -> None:
    looks = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is Reader.snapshot.__code__:
            looks.append(frame)

    with session.transaction(agent="architect") as tx:
        # Ids are taken under the lock, which looks too: first one, then several.
        tx.add("decision", "Use SAML")
        tx.add("decision", "Use passkeys")
        sys.setprofile(note)
        try:
            tx.add("decision", "Use OAuth", agent="architect", tags=["a"], links=[])
        finally:
            sys.setprofile(None)

    assert len(looks) == 1
