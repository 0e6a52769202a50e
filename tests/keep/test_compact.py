"""Compaction: what goes and in which order, what never goes, and what comes back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smp_git import Session, Store
from smp_git.errors import CompactionFailedError, InvalidError, MemoryNotFoundError
from smp_git.format import messages
from smp_git.keep import compact
from smp_git.read.derived import SOURCES, ranges, sources_of
from smp_git.remove import derived
from smp_git.write.writer import Work
from tests.conftest import Clock
from tests.support import before_next_write, git, git_bytes
from tests.sync.support import Machine


def _talk(session: Session, clock: Clock, turns: int, days: float = 0.0) -> None:
    for number in range(turns):
        text = f"We agreed that Vendor{number} gets {number * 7} euros. " + "and so on " * 30
        session.add("turn", text, agent="user")
    clock.now += timedelta(days=days)


def _subjects(session: Session) -> list[str]:
    return [each.subject for each in session.log() if each.subject in messages.COMPACTED.values()]


def test_steps_are_done_in_order_and_each_is_a_commit(session: Session, clock: Clock) -> None:
    session.add("learning", "Old and forgotten " + "x" * 500)
    clock.now += timedelta(days=200)
    session.add("finding", "Solved " + "y" * 500, severity="low")
    session.resolve("FIND-1")
    session.set_state("veritas", {"current_context": "c", "working_memory": {"w": "z" * 900}})
    _talk(session, clock, 120, days=9)

    done = session.compact("90%")

    assert [step.name for step in done.steps] == ["decayed", "conversation", "findings", "states"]
    assert _subjects(session)[::-1] == [messages.COMPACTED[step.name] for step in done.steps]
    assert done.after_bytes == session.info().size_bytes
    assert session.state("veritas") == {"current_context": "c"}
    assert session.info().last_compaction is not None
    assert session.check() == ()
    assert git(session.path, "status", "--porcelain") == ""


def test_no_more_goes_than_is_asked_for(session: Session, clock: Clock) -> None:
    for number in range(20):
        session.add("learning", f"Thing {number} " + "x" * 500)
    clock.now += timedelta(days=300)
    session.add("decision", "The latest")

    done = session.compact(2_000)

    assert 2_000 <= done.freed_bytes < 5_000
    assert done.reached
    # The oldest first.
    assert done.steps[0].removals[0].id == "LEARN-0001"


def test_dry_run_tells_what_is_done_then_and_changes_nothing(
    session: Session, clock: Clock
) -> None:
    _talk(session, clock, 120, days=9)
    head = session.head

    told = session.compact("50%", dry_run=True)

    assert session.head == head
    done = session.compact("50%")
    assert [step.removals for step in told.steps] == [step.removals for step in done.steps]
    assert abs(told.freed_bytes - done.freed_bytes) < done.freed_bytes * 0.1


@pytest.mark.parametrize("target", ["x", "-1", -5, "10 parsecs", float("nan")])
def test_a_target_that_is_none_is_refused(session: Session, target: object) -> None:
    with pytest.raises(InvalidError):
        session.compact(target)  # type: ignore[arg-type]


_AGES = st.floats(0, 400)
_MEMORIES = st.lists(
    st.tuples(
        st.sampled_from(["turn", "decision", "finding", "preference", "learning", "artifact"]),
        _AGES,
        st.sampled_from(["", "pinned", "resolved", "explicit", "read"]),
    ),
    min_size=1,
    max_size=14,
)


@given(memories=_MEMORIES, preset=st.sampled_from(["default", "relevance", "threshold"]))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rules_keep_what_they_name(
    tmp_path_factory: pytest.TempPathFactory, memories: list[tuple[str, float, str]], preset: str
) -> None:
    clock = Clock()
    store = Store.init(tmp_path_factory.mktemp("rules") / "store", clock=clock)
    store.configure({"durability": "relaxed"})
    now, kept = clock.now, set()
    with store.create_session("shop") as session:
        for number, (kind, age, what) in enumerate(memories):
            fields = (
                {"confidence": "explicit"} if (kind, what) == ("preference", "explicit") else {}
            )
            at = now - timedelta(days=age)
            made = session.add(kind, f"{kind} number {number} {'x' * 90}", at=at, **fields)  # type: ignore[arg-type]
            if what == "pinned" and kind != "turn":
                session.pin(made.id)
            if what == "resolved" and kind in ("decision", "finding"):
                session.resolve(made.id)
            if what == "read":
                session.get(made.id)
            over = what == "resolved"
            if (
                (kind in ("decision", "finding") and not over)
                or (what == "pinned" and kind != "turn")
                or fields
                or what == "read"
                or (kind == "turn" and age < 0.99)
            ):
                kept.add(made.id)

        session.compact(1.0 - 1e-9, preset=preset)

        assert kept <= {memory.id for memory in session.memories()}
        assert session.check() == ()


def test_an_edit_made_meanwhile_wins(store: Store, session: Session, clock: Clock) -> None:
    session.add("learning", "Old " + "x" * 500)
    session.add("learning", "Older " + "y" * 500)
    clock.now += timedelta(days=300)
    plan = compact._Plan(
        session._handle, session._handle.reader.snapshot(), clock(), is_estimate=False
    )
    step = next(iter(plan.steps("default", 10_000)))
    with store.session("shop") as other:
        other.edit("LEARN-1", text="Old, and used again")

    session._handle.writer.run_all(
        [Work("smp", compact._doing(step), messages.COMPACTED[step.name], named=False)]
    )

    assert [memory.id for memory in session.memories()] == ["LEARN-0001"]


def test_compacted_is_listed_and_brought_back_as_it_was(session: Session, clock: Clock) -> None:
    made = session.add("finding", "Solved " + "y" * 900, severity="low")
    session.resolve("FIND-1")
    before = session.get("FIND-1")
    clock.now += timedelta(days=16)

    session.compact("90%")

    assert [(each.id, each.is_archived) for each in session.compacted()] == [(made.id, True)]
    with pytest.raises(MemoryNotFoundError):
        session.bring_back("FIND-9")
    session.bring_back("FIND-1")
    again = session.get("FIND-1")
    assert (again.content, again.fields) == (before.content, before.fields)
    assert session.compacted() == ()


def test_compacted_is_redacted_and_still_brought_back(session: Session, clock: Clock) -> None:
    session.add("learning", "Old plugh-0451 " + "x" * 500)
    clock.now += timedelta(days=300)
    session.compact("90%")

    done = session.redact("plugh-0451")

    assert done.receipt is not None
    assert done.receipt.proof.clean
    assert [(each.id, each.step) for each in session.compacted()] == [("LEARN-0001", "decayed")]
    session.bring_back("LEARN-1")
    assert session.get("LEARN-1").content.startswith("Old [REDACTED] ")
    assert session.verify().clean


def test_what_is_redacted_while_it_is_brought_back_comes_redacted(
    store: Store, session: Session, clock: Clock
) -> None:
    session.add("learning", "Old plugh-0451 " + "x" * 500)
    clock.now += timedelta(days=300)
    session.compact("90%")
    with store.session("shop") as other:
        before_next_write(session, lambda: other.redact("plugh-0451"))

        session.bring_back("LEARN-1")

    assert session.get("LEARN-1").content.startswith("Old [REDACTED] ")
    assert session.verify().clean


def test_undo_takes_a_compaction_back(session: Session, clock: Clock) -> None:
    session.add("learning", "Old " + "x" * 900)
    clock.now += timedelta(days=300)
    session.compact()

    session.undo()

    assert session.get("LEARN-1").content.startswith("Old ")


def test_old_conversation_is_named_by_its_summary(session: Session, clock: Clock) -> None:
    _talk(session, clock, 120, days=9)

    session.compact("80%")

    (one, two) = session.memories("artifact")
    assert sources_of(one.fields[SOURCES]) == {f"turn-{n:04d}" for n in range(1, 51)}
    assert sources_of(two.fields[SOURCES]) == {f"turn-{n:04d}" for n in range(51, 101)}
    assert "We agreed that Vendor7 gets 49 euros." in one.content
    # The last block may still grow.
    assert len(session.memories("turn")) == 20


@given(st.sets(st.tuples(st.integers(1, 300), st.sampled_from(["", "-k3fq", "-abcd"]))))
def test_ranges_name_what_they_were_made_of(numbers: set[tuple[int, str]]) -> None:
    names = {f"turn-{number:04d}{tag}" for number, tag in numbers}

    assert sources_of(ranges(names)) == names  # type: ignore[arg-type]


def test_a_program_of_the_user_summarises(store: Store, clock: Clock, tmp_path: Path) -> None:
    program = tmp_path / "short.sh"
    program.write_text("#!/bin/sh\nwc -c | tr -d ' '\n")
    program.chmod(0o755)
    store.configure({"summarizer": f"{program} --fast"})
    with store.create_session("told") as session:
        _talk(session, clock, 60, days=9)
        session.compact("80%")
        (made,) = session.memories("artifact")
        assert made.fields["source"] == "summarizer"
        assert made.content.split("\n\n")[1].strip().isdigit()


@pytest.mark.parametrize(
    ("script", "said"),
    [("exit 3", "ended with 3"), ("sleep 9", "longer than 0.5 s"), ("true", "prints nothing")],
)
def test_a_program_that_fails_changes_nothing(
    store: Store, clock: Clock, tmp_path: Path, script: str, said: str
) -> None:
    program = tmp_path / "bad.sh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    store.configure({"summarizer": str(program), "summarizer_timeout_seconds": 0.5})
    with store.create_session("told") as session:
        _talk(session, clock, 60, days=9)
        head = session.head
        with pytest.raises(CompactionFailedError, match=said):
            session.compact("80%")
        assert session.head == head


def _stored(place: Path) -> bytes:
    """Return every object of a repository."""
    return git_bytes(place, "cat-file", "--batch-all-objects", "--batch")


# Replicas


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Machine, Session, Machine, Session]]:
    ada, bob = Machine(tmp_path, "ada"), Machine(tmp_path, "bob")
    mine = ada.begin(tmp_path / "hub.git")
    theirs = bob.clone(tmp_path / "hub.git")
    yield ada, mine, bob, theirs
    mine.close()
    theirs.close()


def test_replicas_that_compact_at_once_make_one_summary(
    pair: tuple[Machine, Session, Machine, Session],
) -> None:
    ada, mine, bob, theirs = pair
    for number in range(15):
        bob.clock.now = ada.clock.now
        _talk(mine, ada.clock, 51)
        mine.sync()
        theirs.sync()
        ada.clock.now += timedelta(days=9)
        bob.clock.now = ada.clock.now
        mine.compact("60%")
        theirs.compact("60%")
        mine.sync()
        theirs.sync()
        mine.sync()
        names = [memory.id for memory in mine.memories("artifact")]
        assert names == [memory.id for memory in theirs.memories("artifact")]
        stood_for = [
            name
            for memory in mine.memories("artifact")
            for name in sources_of(memory.fields[SOURCES])
        ]
        assert len(stood_for) == len(set(stood_for)), number
        assert mine.head == theirs.head


def test_deleting_a_turn_reaches_its_summary(session: Session, clock: Clock) -> None:
    session.add(
        "turn", "We agreed that Nightingale pays 4711 crowns to Ada in May 2027.", agent="user"
    )
    _talk(session, clock, 60, days=9)
    session.compact("60%")
    (before,) = session.memories("artifact")
    assert "Nightingale" in before.content

    session.delete("turn-0001", purge=True)

    (after,) = session.memories("artifact")
    assert after.id != before.id
    assert sources_of(after.fields[SOURCES]) == sources_of(before.fields[SOURCES]) - {"turn-0001"}
    assert "Vendor3 gets 21 euros" in after.content
    assert b"Nightingale" not in _stored(session.path)


def test_turns_of_one_summary_that_are_deleted_at_once_are_both_gone(
    store: Store, session: Session, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    _talk(session, clock, 60, days=9)
    session.add("turn", "Yesterday")
    session.compact("90%")
    put_back, made = derived.put_back, session.memories("artifact")[0]
    told = [f"turn-{n:04}" for n in range(1, 51) if f"- turn-{n:04} " in made.content]

    def late(*arguments: Any) -> None:
        monkeypatch.setattr(derived, "put_back", put_back)
        with store.session("shop") as other:
            other.delete(told[1], purge=True)
        put_back(*arguments)

    monkeypatch.setattr(derived, "put_back", late)
    session.delete(told[0], purge=True)

    (rest,) = session.memories("artifact")
    assert [each for each in told if f"- {each} " in rest.content] == told[2:]
    assert session.verify().clean


def test_summary_that_was_deleted_is_not_made_again(session: Session, clock: Clock) -> None:
    _talk(session, clock, 60, days=9)
    session.add("turn", "Yesterday")
    (made,) = (each for step in session.compact("90%").steps for each in step.made)
    session.bring_back([each.id for each in session.compacted()])
    session.delete(made.id)

    assert session.compact("90%").steps == ()

    assert made.id not in session
    assert "turn-0001" in session
    assert session.check() == ()


def test_redacting_a_turn_reaches_its_summary(session: Session, clock: Clock) -> None:
    session.add(
        "turn", "We agreed that Nightingale pays 4711 crowns to Ada in May 2027.", agent="user"
    )
    _talk(session, clock, 60, days=9)
    session.compact("60%")

    session.redact("Nightingale")

    assert b"Nightingale" not in _stored(session.path)


def test_a_turn_deleted_elsewhere_is_in_no_summary_after_a_sync(
    pair: tuple[Machine, Session, Machine, Session], tmp_path: Path
) -> None:
    ada, mine, bob, theirs = pair
    mine.add(
        "turn", "We agreed that Nightingale pays 4711 crowns to Ada in May 2027.", agent="user"
    )
    _talk(mine, ada.clock, 60)
    mine.sync()
    theirs.sync()
    mine.delete("turn-0001", purge=True)
    bob.clock.now = ada.clock.now + timedelta(days=9)
    theirs.compact("60%")
    assert any("Nightingale" in memory.content for memory in theirs.memories("artifact"))

    mine.sync()
    theirs.sync()
    mine.sync()

    # The remote itself drops what nothing names when it collects garbage.
    git(tmp_path, "clone", "-q", "--mirror", "--no-local", "hub.git", "taken")
    for place in (mine.path, theirs.path, tmp_path / "taken"):
        assert b"Nightingale" not in _stored(place)
    assert [memory.id for memory in mine.memories("artifact")]


# A user's own questions


def test_a_question_keeps_what_answers_it(session: Session, clock: Clock) -> None:
    wanted = session.add("learning", "Deploy to Lisbon on Mondays " + "x" * 400)
    other = session.add("learning", "Deploy to Paris on Fridays " + "y" * 400)
    made = session.recall("When do we deploy to Lisbon?", wanted.id, first=3)
    assert session.recall("when do we deploy to Lisbon?", [wanted.id], first=2).id == made.id
    assert session.query("When do we deploy to Lisbon?").hits[0].id == wanted.id
    clock.now += timedelta(days=300)

    done = session.compact("90%")

    assert done.kept["recall question"] == 2
    assert {each.id for step in done.steps for each in step.removals} == {other.id}
    (asked,) = session.recall_test()
    assert (asked.expected, asked.missing) == ((wanted.id,), ())
    session.delete(wanted.id)
    assert session.recall_test() == ()
    with pytest.raises(MemoryNotFoundError):
        session.recall("What else?", "LEARN-0009")


@pytest.mark.parametrize("purge", [False, True])
def test_question_that_was_deleted_is_asked_again(session: Session, *, purge: bool) -> None:
    kept = session.add("decision", "Use PostgreSQL").id
    gone = session.add("decision", "Use no database at all").id
    first = session.recall("Which database?", [kept, gone])
    session.delete(gone, purge=purge)
    assert first.id not in session

    made = session.recall("Which database?", kept)

    assert session.recall("which database?", kept, first=3).id == made.id
    assert [(each.first, each.expected) for each in session.recall_test()] == [(3, (kept,))]
    assert session.verify().clean


def test_the_same_question_of_two_replicas_is_one(
    pair: tuple[Machine, Session, Machine, Session],
) -> None:
    _, mine, _, theirs = pair
    mine.recall("Is it PostgreSQL?", "DEC-1")
    theirs.recall("Is it PostgreSQL?", "DEC-1", first=4)

    mine.sync()
    theirs.sync()
    mine.sync()

    assert mine.head == theirs.head
    assert len(mine.recall_test()) == 1
    assert not mine.recall_test()[0].missing
