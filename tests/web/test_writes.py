"""Writes from the page: one commit each, shown; none over what somebody else wrote meanwhile."""

from __future__ import annotations

import pytest

from smp_git import Session, Store
from smp_git.errors import MemoryNotFoundError
from tests.support import own
from tests.web.served import Visitor

DEC = "/s/shop/m/DEC-0001"


def subjects(session: Session, number: int = 1) -> list[str]:
    return [each.subject for each in session.log(limit=number)]


def test_each_write_is_one_commit_which_is_shown(visitor: Visitor, shop: Session) -> None:
    before = len(shop.log())
    for action, form, subject in (
        ("pin", {}, "pin decision DEC-0001"),
        ("unpin", {}, "unpin decision DEC-0001"),
        ("tags", {"tags": "security, login.page"}, "edit decision DEC-0001: Use OAuth"),
        ("edit", {"text": "Use OAuth 2.1"}, "edit decision DEC-0001: Use OAuth 2.1"),
        ("resolve", {"action": "done"}, "resolve decision DEC-0001"),
    ):
        answer = visitor.send(DEC, action, **form)

        assert subjects(shop) == [subject]
        assert f"Done: {subject} , commit {shop.head[:9]} ." in answer.told
    memory = shop.get("DEC-1", at="HEAD")

    assert len(shop.log()) == before + 5
    assert memory.tags == ("security", "login.page")
    assert (memory.content, memory.status) == ("Use OAuth 2.1", "resolved")
    assert shop.log()[0].agent == "user-123"


def test_forgetting_shows_its_receipt_and_restoring_brings_it_back(
    visitor: Visitor, shop: Session
) -> None:
    form = visitor.get(f"{DEC}/forget")
    assert "It can be restored until" in form.told
    receipt = visitor.post(f"{DEC}/forget", {**form.hidden, "reason": "no longer ours"})

    assert "DEC-0001 forgotten by user-123" in receipt.told
    assert "nothing of it is left" in receipt.told
    assert "no longer ours" in receipt.told
    with pytest.raises(MemoryNotFoundError):
        shop.get("DEC-1")
    (deletion,) = {each.deletion for each in shop.trash() if each.id == "DEC-0001"}
    trash = visitor.get("/s/shop/trash").hidden
    back = visitor.post("/s/shop/restore", {**trash, "id": "DEC-0001", "deletion": deletion})

    assert back.status == 200
    assert "Use OAuth" in back.told
    assert shop.get("DEC-1").content == "Use OAuth"
    again = visitor.post("/s/shop/restore", {**trash, "id": "DEC-0001", "deletion": deletion})
    assert (again.status, "no longer in the trash" in again.told) == (409, True)


def test_what_is_forgotten_for_good_is_in_no_trash(visitor: Visitor, shop: Session) -> None:
    receipt = visitor.send(DEC, "forget", purge="1")

    assert "forgotten for good" in receipt.told
    assert [each.id for each in shop.trash()] == ["LEARN-0001"]


def test_a_second_tab_writes_nothing_over_the_first(visitor: Visitor, shop: Session) -> None:
    first, second = visitor.get(f"{DEC}/edit").hidden, visitor.get(f"{DEC}/edit").hidden
    visitor.post(f"{DEC}/edit", {**first, "field.rationale": "Everybody has it"})
    before = shop.head

    form = {**second, "text": "Use OIDC", "field.rationale": "A proven standard"}
    answer = visitor.post(f"{DEC}/edit", form)

    assert answer.status == 409
    assert shop.head == before
    assert "Somebody changed it meanwhile" in answer.told
    assert "<del>A proven standard</del><ins>Everybody has it</ins>" in answer.text
    assert 'value="Use OIDC"' in answer.text
    assert 'value="Everybody has it"' in answer.text
    # Who has seen that may save: what was typed, and the other's change beside it.
    saved = visitor.post(
        f"{DEC}/edit", {**answer.hidden, "text": "Use OIDC", "field.rationale": "Everybody has it"}
    )
    memory = shop.get("DEC-1", at="HEAD")
    assert saved.status == 200
    assert (memory.content, memory.fields["rationale"]) == ("Use OIDC", "Everybody has it")


@pytest.mark.parametrize("action", ["pin", "tags", "resolve", "edit", "forget"])
def test_nothing_is_done_to_a_memory_that_moved(
    visitor: Visitor, shop: Session, action: str
) -> None:
    shown = visitor.get(f"{DEC}/forget" if action == "forget" else DEC).hidden
    shop.edit("DEC-1", impact="critical", agent="veritas")
    before = shop.head

    answer = visitor.post(f"{DEC}/{action}", {**shown, "tags": "x", "text": "other"})

    assert answer.status == 409
    assert shop.head == before
    assert "critical" in answer.told


def test_a_write_without_the_version_that_was_shown_is_refused(
    visitor: Visitor, shop: Session
) -> None:
    before, token = shop.head, visitor.server.door.token
    for form in ({}, {"seen": "", "commit": shop.head}, {"seen": "x" * 32}):
        assert visitor.post(f"{DEC}/pin", {"token": token, **form}).status == 409

    assert shop.head == before


def test_other_writes_and_rewrites_of_history_leave_an_open_page_good(
    visitor: Visitor, shop: Session
) -> None:
    shown = visitor.get(DEC).hidden
    shop.add("turn", "Something else")
    shop.delete("FIND-0002", by="ada")

    assert visitor.post(f"{DEC}/pin", shown).status == 200
    assert shop.get("DEC-1").pinned


def test_only_what_was_changed_in_the_form_is_changed(visitor: Visitor, shop: Session) -> None:
    shop.edit("DEC-1", alternatives=[{"option": "SAML"}], confidence=0.8, **own(note="two\nlines\n"),
              agreed_by=["ada", "bob"])  # fmt: skip
    page = visitor.get(f"{DEC}/edit")
    before = shop.get("DEC-1", at="HEAD")
    as_a_browser_sends_it = {
        "text": "Use OAuth", "field.note": "two\r\nlines\r\n", "field.confidence": "0.8",
        "field.alternatives": "- option: SAML", "field.agreed_by": "- ada\r\n- bob",
    }  # fmt: skip

    same = visitor.post(f"{DEC}/edit", {**page.hidden, **as_a_browser_sends_it})
    assert same.status == 200
    assert shop.get("DEC-1", at="HEAD") == before
    changed = {**as_a_browser_sends_it, "field.alternatives": "- option: SAML\r\n- option: none",
               "field.note": "", "new.name": "owner", "new.value": "ada"}  # fmt: skip
    visitor.post(f"{DEC}/edit", {**page.hidden, **changed})
    after = shop.get("DEC-1", at="HEAD").fields

    assert after["alternatives"] == [{"option": "SAML"}, {"option": "none"}]
    assert "note" not in after
    assert (after["owner"], after["confidence"], after["agreed_by"]) == ("ada", 0.8, ["ada", "bob"])


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"field.confidence": "enormous"}, "confidence"),
        ({"field.alternatives": "- [broken"}, "alternatives"),
        ({"new.name": "tags", "new.value": "x"}, "tags is not set here"),
        ({"new.name": "rationale", "new.value": "x"}, "there is a field rationale already"),
        ({"new.name": "no name", "new.value": "x"}, "no name"),
    ],
    ids=str,
)
def test_what_was_typed_comes_back_with_what_is_wrong(
    visitor: Visitor, shop: Session, form: dict[str, str], said: str
) -> None:
    shop.edit("DEC-1", alternatives=["none"])
    before, page = shop.head, visitor.get(f"{DEC}/edit")

    answer = visitor.post(f"{DEC}/edit", {**page.hidden, "text": "Typed for an hour", **form})

    assert answer.status == 400
    assert said in answer.told
    assert 'value="Typed for an hour"' in answer.text
    assert shop.head == before


def test_a_secret_that_is_typed_is_not_stored(visitor: Visitor, shop: Session) -> None:
    visitor.send(DEC, "edit", text="The key is AKIAIOSFODNN7EXAMPLE")

    assert "AKIAIOSFODNN7EXAMPLE" not in shop.get("DEC-1").content


def test_contested_values_are_settled(visitor: Visitor, shop: Session) -> None:
    shop.edit("DEC-1", impact="low")
    shop.merge("idea")
    page = visitor.get(DEC)
    replica = shop.conflicts()[0].replica

    assert "impact is contested" in page.told
    answer = visitor.post(
        f"{DEC}/settle", {**page.hidden, "field": "impact", "replica": replica, "take": "other"}
    )

    assert answer.status == 200
    assert shop.conflicts() == ()
    assert shop.get("DEC-1").fields["impact"] == "high"


def test_turns_cannot_be_edited(visitor: Visitor, shop: Session) -> None:
    assert "/edit" not in visitor.get("/s/shop/m/turn-0001").text
    shown = visitor.get("/s/shop/m/turn-0001").hidden
    answer = visitor.post("/s/shop/m/turn-0001/edit", {**shown, "text": "Other"})

    assert visitor.get("/s/shop/m/turn-0001/edit").status == 400
    assert answer.status == 400
    assert "a turn is not edited" in answer.told


def test_states_are_edited_as_a_whole(visitor: Visitor, shop: Session) -> None:
    shop.set_state("veritas", {"working_memory": {"a": 1, "b": 2}, "current_context": "login"})
    path = "/s/shop/m/state-veritas"

    visitor.post(
        f"{path}/edit", {**visitor.get(f"{path}/edit").hidden, "field.working_memory": "a: 1"}
    )

    assert dict(shop.state("veritas")) == {"working_memory": {"a": 1}, "current_context": "login"}


def test_news_tells_what_others_wrote(visitor: Visitor, shop: Session) -> None:
    head = shop.head
    still = visitor.get("/s/shop/news", since=head)
    shop.add("decision", "Use <b>TLS</b>", agent="veritas")
    moved = visitor.get("/s/shop/news", since=head)

    assert still.text == '{"moved":false}'
    assert '"agent":"veritas"' in moved.text
    assert moved.headers["content-type"] == "application/json"


def test_writes_are_in_the_name_that_was_given(store: Store, shop: Session) -> None:
    from tests.web.served import served

    with served(store, agent="grace") as server:
        visitor = Visitor(server)
        visitor.enter()
        visitor.send(DEC, "pin")

    assert shop.log()[0].agent == "grace"
