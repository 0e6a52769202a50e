"""The interface of an agent: what it reads, what it records, in its own name."""

from __future__ import annotations

from contextlib import suppress

import pytest

from smp_git import Session, Store
from smp_git.model.errors import AccessError, ConflictError, InvalidError


def test_what_one_agent_records_another_finds(session: Session) -> None:
    veritas, architect = session.agent("Veritas"), session.agent("architect")
    finding = veritas.record_finding(
        "Card numbers reach the log", severity="critical", tags=["security.logging"]
    )
    decision = architect.record_decision(
        "Mask card numbers before logging", rationale="The log leaves the machine",
        links=[("resolves", finding.id)],
    )  # fmt: skip

    assert [hit.id for hit in architect.get_relevant_findings("log")] == [finding.id]
    assert [hit.id for hit in veritas.get_relevant_decisions("card numbers")] == [decision.id]
    assert (finding.agent, decision.agent) == ("veritas", "architect")
    assert finding.fields["discovered_by"] == "veritas"
    assert decision.fields["made_by"] == "architect"
    assert [each.id for each in veritas.related(decision.id)] == [finding.id]


def test_resolved_findings_and_replaced_decisions_are_left_out_unless_asked_for(
    session: Session,
) -> None:
    veritas = session.agent("veritas")
    done = veritas.record_finding("No backup of the log", severity="high")
    veritas.resolve(done.id, action="added")
    open_one = veritas.record_finding("No rotation of the log")
    old = veritas.record_decision("Use MySQL")
    new = veritas.supersede(old.id, "Use PostgreSQL")

    assert [hit.id for hit in veritas.get_relevant_findings("log")] == [open_one.id]
    assert {hit.id for hit in veritas.get_relevant_findings("log", include_resolved=True)} == {
        done.id,
        open_one.id,
    }
    assert [hit.id for hit in veritas.get_relevant_decisions()] == [new.id]
    assert len(veritas.get_relevant_decisions(include_superseded=True)) == 2


def test_conversation_is_told_in_its_order(session: Session) -> None:
    veritas = session.agent("veritas")
    for number in range(5):
        veritas.record_turn(f"said {number}", role="user" if number % 2 else "assistant")

    assert [m.content for m in veritas.get_conversation_context(3)] == [
        "said 2", "said 3", "said 4",
    ]  # fmt: skip


def test_preferences_of_all_sessions_hold_unless_this_one_says_otherwise(store: Store) -> None:
    with store.global_session() as shared:
        shared.add("preference", "Short answers", category="style", key="length")
        shared.add("preference", "Metric units", category="style", key="units")
    with store.create_session("shop") as session:
        agent = session.agent("veritas")
        own = agent.record_preference("Long answers", category="style", key="length")

        assert [m.content for m in agent.get_user_preferences()] == ["Long answers", "Metric units"]
        assert agent.get_user_preferences()[0].id == own.id


def test_state_is_merged_and_replaced(session: Session) -> None:
    veritas = session.agent("veritas")
    veritas.update_agent_state(
        current_context={"current_task": "verify", "focus": "login"},
        session_learnings=["look at the log"],
    )
    veritas.update_agent_state(current_context={"current_task": "report", "focus": None}, mood=3)

    assert veritas.state["current_context"] == {"current_task": "report"}
    assert veritas.state["session_learnings"] == ["look at the log"]
    assert veritas.state["mood"] == 3
    veritas.replace_agent_state({"working_memory": {"step": 1}})
    assert dict(veritas.state) == {"working_memory": {"step": 1}}


def test_two_handles_that_merge_into_one_state_lose_nothing(store: Store) -> None:
    store.create_session("shop").close()
    with store.session("shop") as one, store.session("shop") as two:
        first, second = one.agent("veritas"), two.agent("veritas")
        for number in range(5):
            first.update_agent_state(working_memory={f"a{number}": number})
            second.update_agent_state(working_memory={f"b{number}": number})

        assert len(dict(first.state["working_memory"])) == 10  # type: ignore[arg-type]


def test_memory_refs_of_a_state_name_what_they_are(session: Session) -> None:
    veritas = session.agent("veritas")
    finding = veritas.record_finding("No MFA")
    state = veritas.update_agent_state(
        memory_refs={"findings_created": [finding.id], "decisions_made": []}
    )

    assert state.fields["memory_refs"] == {"findings_created": [finding.id], "decisions_made": []}
    assert [(each.id, each.relation) for each in veritas.related(finding.id)] == [
        ("state-veritas", "memory_refs")
    ]
    with pytest.raises(InvalidError, match="findings_created must be a list of texts"):
        veritas.update_agent_state(memory_refs={"findings_created": [1]})  # type: ignore[list-item]


def test_a_transaction_is_one_commit_and_rolls_back(session: Session) -> None:
    veritas = session.agent("veritas")
    before = session.head
    with veritas.transaction(reason="verification") as tx:
        finding = tx.add("finding", "No MFA", severity="high")
        tx.link(finding.id, "references", tx.add("decision", "Use OAuth").id)
        tx.update_agent_state({"working_memory": {"checked": [finding.id]}})
    assert len(session.log()) == 2
    assert veritas.history(finding.id)[0].reason is None  # it says more than of one memory
    with suppress(KeyError), veritas.transaction() as tx:
        tx.edit(finding.id, severity="low")
        raise KeyError
    assert veritas.get(finding.id).fields["severity"] == "high"
    tx = veritas.transaction()
    tx.edit(finding.id, severity="low")
    session.edit(finding.id, severity="info")
    with pytest.raises(ConflictError):
        tx.commit()
    assert session.head != before


# What is private to one agent


def test_a_state_is_seen_by_its_own_agent_alone(session: Session) -> None:
    veritas, architect = session.agent("veritas"), session.agent("architect")
    veritas.update_agent_state(working_memory={"secret": "plan zanzibar"})
    architect.update_agent_state(working_memory={"mine": "here"})

    assert [hit.id for hit in architect.query(kinds=["state"])] == ["state-architect"]
    assert [hit.id for hit in architect.query("zanzibar")] == []
    assert [m.id for m in architect.memories("state")] == ["state-architect"]
    assert [hit.id for hit in veritas.query("zanzibar")] == ["state-veritas"]
    with pytest.raises(AccessError, match="architect may not read state-veritas: it is private"):
        architect.get("state-veritas")


def test_what_is_tagged_private_is_for_its_writer(session: Session) -> None:
    veritas, architect = session.agent("veritas"), session.agent("architect")
    note = veritas.record_learning("The user is in a hurry", tags=["private.mood"])

    assert veritas.get(note.id).content == "The user is in a hurry"
    assert not architect.query("hurry")
    assert "hurry" not in architect.context("in a hurry").text
    with pytest.raises(AccessError, match="architect may not read"):
        architect.edit(note.id, text="not so")
    with pytest.raises(AccessError, match="architect may not read"):
        architect.forget(note.id)
    assert session.get(note.id).content == "The user is in a hurry"


def test_a_twin_that_is_private_to_another_counts_as_none(session: Session) -> None:
    veritas, architect = session.agent("veritas"), session.agent("architect")
    hidden = veritas.record_learning("Check the log format always", tags=["private"])
    made = architect.record_learning("Check the log format always", skip_duplicates=True)

    assert made.id != hidden.id
    assert made.duplicate_of is None


def test_forget_and_restore_in_the_name_of_the_agent(session: Session, tmp_path: object) -> None:
    veritas = session.agent("veritas")
    note = veritas.record_finding("No MFA")
    receipt = veritas.forget(note.id, reason="wrong")

    assert (receipt.by, receipt.ids) == ("veritas", (note.id,))
    assert veritas.restore(note.id).ids == (note.id,)
    assert veritas.get(note.id).content == "No MFA"
