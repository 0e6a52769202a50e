"""Values of programs: back exactly as they were given, and kept like every other memory."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import unicodedata
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings

from smp_git import Session, Store
from smp_git.format import metadata
from smp_git.model.errors import (
    AlreadyExistsError,
    ConflictError,
    FormatError,
    InvalidError,
    QuotaExceededError,
    RefusedError,
    UntrustedError,
)
from smp_git.model.memory import MAX_KEY_BYTES, MAX_VALUE_BYTES, is_same
from smp_git.read.values import SeenValues
from smp_git.write.values import Writing
from tests import independent_scan, strategies
from tests.conftest import Clock
from tests.support import ROOT, git, smp, untyped

MAIL = "jane.roe@gmail.com"
SECRET = "Zebra-Kumquat-4711"

# What a value is


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(strategies.value_keys, strategies.json_values)
@example(("k",), None)
@example(("k",), "")
@example(("k",), "null")
@example(("k",), "\ud83d\0\x7f\u2028\ufeff")
@example(("k",), {"": {"": [[], {}, -0.0, 1e-07, 1e22, 2**80, "yes", "\r\n"]}, "k" * 300: 1})
@example(("a\nb", "", "null"), "  text\n\n")
def test_value_comes_back_exactly(session: Session, key: tuple[str, ...], value: Any) -> None:
    values = session.values("program", secrets="keep")

    values.put(key, value)

    found = values.get(key)
    assert found is not None
    assert is_same(found.value, value)
    assert repr(found.value) == repr(value)
    assert found.key == key
    assert key in [each.key for each in values.list(key[:1])]


@pytest.mark.parametrize("value", [
    "x" * 3_000_000, "long line\n" * 300_000, {"image": "A" * 7_000_000}, ["a\n"] * 200_000,
    [[n, n / 7] for n in range(60_000)], "\U0001f600" * 1_000_000,
], ids=["text", "lines", "image", "list", "numbers", "emoji"])  # fmt: skip
def test_large_value_comes_back_exactly(session: Session, value: object) -> None:
    values = session.values(secrets="keep")

    values.put("large", value)

    found = values.get("large")
    assert found is not None and found.value == value
    assert session.check() == ()


def nested(depth: int) -> object:
    value: object = "deep"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("value", [
    {1: "a"}, {None: 1}, ["\ud83d\ude00"], math.nan, math.inf, b"bytes", {"a": {1, 2}}, object(), nested(101),
    10**5000, "x" * MAX_VALUE_BYTES, [0] * 1_100_000,
], ids=["whole number as key", "null as key", "two halves", "nan", "infinite", "bytes", "set", "object", "deep", "digits", "long", "many"])  # fmt: skip
def test_what_json_would_change_is_refused(session: Session, value: object) -> None:
    before = session.head

    with pytest.raises(InvalidError):
        session.values(secrets="keep").put("k", value)
    assert session.head == before


def test_deepest_value_that_is_taken_can_be_read_by_everything(session: Session) -> None:
    values = session.values()
    kept = values.put("k", nested(100))

    assert values.get("k").value == nested(100)  # type: ignore[union-attr]
    assert session.get(kept.id).as_json()["kind"] == "value"
    assert session.check() == ()


def test_keys_are_told_apart_exactly(session: Session) -> None:
    keys = [
        ("a", "b"), ("a/b",), ("a", "b", ""), ("é",), (unicodedata.normalize("NFD", "é"),),
        ("A", "b"), ("a", "c"), ("ab",), ("0",), ("null",),
    ]  # fmt: skip
    values = session.values()
    values.put_all({key: index for index, key in enumerate(keys)})

    assert {each.key: each.value for each in values.items()} == dict(zip(keys, range(10), strict=True))  # fmt: skip
    assert [each.key for each in values.list(("a",))] == [("a", "b"), ("a", "b", ""), ("a", "c")]
    assert [each.key for each in values.list("a")] == [("a", "b"), ("a", "b", ""), ("a", "c")]
    assert values.list(("a", "b", "", "d")) == ()


@pytest.mark.parametrize("key", [(), ("a\0b",), ("\ud800",), ("x" * MAX_KEY_BYTES,), 7, ("a", 7), None])  # fmt: skip
def test_key_that_cannot_be_written_is_refused(session: Session, key: Any) -> None:
    with pytest.raises(InvalidError):
        session.values().put(key, 1)


# Writes


def test_put_of_several_is_one_commit_or_none(session: Session) -> None:
    values, before = session.values("program"), session.head

    with pytest.raises(InvalidError):
        values.put_all({("a",): 1, ("b",): object()})
    assert (session.head, values.list()) == (before, ())

    values.put_all({("a",): 1, ("b",): "two"})

    (newest,) = session.log(limit=1)
    assert (newest.agent, {touch.title for touch in newest.touches}) == ("program", {"a", "b"})


def test_expected_revision_must_be_there(session: Session) -> None:
    values = session.values()
    first = values.put("k", 1, expected=None)
    second = values.put("k", 2, expected=first.revision)

    for stale in (first.revision, None, "nonsense"):
        with pytest.raises(ConflictError):
            values.put("k", 3, expected=stale)
    assert values.get("k") == second
    assert values.list("k")[0].revision == second.revision


def test_same_value_again_writes_nothing(session: Session) -> None:
    values = session.values("program")
    first = values.put("k", {"a": 1})
    head = session.head

    assert values.put("k", {"a": 1}) == first
    assert session.head == head
    assert values.put("k", {"a": 1.0}).revision != first.revision


_COUNTER = """
import sys
from smp_git import Store
with Store.open(sys.argv[1]).session("shop") as session:
    values = session.values("counter")
    for _ in range(int(sys.argv[2])):
        values.write(lambda now: now.put("n", (now.get("n").value if now.get("n") else 0) + 1))
"""


def test_two_processes_that_read_and_write_lose_nothing(store: Store, session: Session) -> None:
    command = [sys.executable, "-c", _COUNTER, str(store.path), "15"]
    running = [subprocess.Popen(command, cwd=ROOT) for _ in range(2)]

    assert [each.wait(120) for each in running] == [0, 0]
    assert session.values().get("n").value == 30  # type: ignore[union-attr]


def test_write_sees_what_it_stages(session: Session) -> None:
    values = session.values()
    values.put_all({("a",): 1, ("b",): 2})

    def work(now: Writing) -> list[tuple[str, ...]]:
        now.remove("a")
        now.put("c", 3)
        now.put("a", 1)
        now.remove("b")
        assert now.get("b") is None
        assert now.get("c").value == 3  # type: ignore[union-attr]
        return now.keys()

    assert values.write(work) == [("a",), ("c",)]
    assert [(each.key, each.value) for each in values.items()] == [(("a",), 1), (("c",), 3)]
    assert session.check() == ()


def test_put_and_removal_in_one_write_leave_no_trace(session: Session) -> None:
    session.values().put("other", 1)
    head = session.head

    def work(now: Writing) -> None:
        now.put("a", 1)
        now.remove("a")

    session.values().write(work)
    assert session.head == head


def test_appended_values_are_in_the_order_of_appends(session: Session) -> None:
    values = session.values()
    values.put(("log", "0100"), "no number of ours")
    for number in range(12):
        values.write(lambda now, n=number: now.append("log", n))  # type: ignore[misc]

    def both(now: Writing) -> None:
        now.append("log", "x")
        now.append("log", "y")

    values.write(both)
    values.remove(values.list("log")[-2].key)
    values.write(lambda now: now.append("log", "last"))

    assert [each.value for each in values.items("log")][:-1] == [*range(12), "x", "last"]


def test_what_stands_beside_a_value_stays_until_it_is_removed(session: Session) -> None:
    values = session.values()
    values.write(lambda now: now.put("k", 1, beside={"ttl_minutes": 2.5, "why": "because"}))
    values.put("k", 2)
    values.write(lambda now: now.put("k", 3, beside={"ttl_minutes": None}))

    found = values.get("k")
    assert found is not None
    assert (found.value, dict(found.beside)) == (3, {"why": "because"})


def test_use_is_noted_outside_the_history(session: Session, clock: Clock) -> None:
    values = session.values()
    kept, head = values.put("k", 1), session.head
    assert values.used_at(kept.id) is None

    values.note_use([kept.id])

    assert session.head == head
    with Session(session.path, clock) as again:
        assert again.values().used_at(kept.id) is not None
        assert again.values().now() > kept.created_at


def test_what_is_erased_is_what_was_found_when_it_goes(session: Session) -> None:
    values, asked = session.values(), []
    values.put(("log", "1"), 1)
    values.put(("log", "2"), 2)

    def find(seen: SeenValues) -> list[tuple[str, ...]]:
        asked.append(found := [each.key for each in seen.items(("log",)) if each.value != 9])
        if len(asked) == 1:
            values.put(("log", "1"), 9)
            values.put(("log", "3"), 3)
        return found

    assert values.erase_found(find) == (("log", "2"), ("log", "3"))
    assert [each.value for each in values.items("log")] == [9]
    assert values.erase_found(lambda seen: seen.keys(("none",))) == ()


def test_transaction_takes_values_beside_memories(session: Session) -> None:
    with session.transaction("program") as tx:
        tx.add("decision", "Keep it")
        tx.values().put("k", 1)

    assert len(session.log(limit=1)[0].touches) == 2
    late = session.transaction()
    late.values().put("k", 2)
    session.values().put("k", 3)
    with pytest.raises(ConflictError):
        late.commit()
    assert session.values().get("k").value == 3  # type: ignore[union-attr]


def test_full_session_refuses_a_put_and_takes_a_removal(session: Session) -> None:
    values = session.values()
    values.put("small", 1)
    session.configure({"quota_bytes": 100_000})

    with pytest.raises(QuotaExceededError):
        values.put("large", "word " * 40_000)
    assert [each.key for each in values.list()] == [("small",)]
    assert values.remove("small") == 1


# History, undo, removal, erasure


def test_history_keeps_what_was_there(session: Session) -> None:
    values = session.values("program")
    for value in (1, "two", {"three": 3}):
        values.put("k", value)
    middle = values.history("k")[1].commit
    assert values.remove("k", "unknown") == 1

    found = [each.stored.value if each.stored else None for each in values.history("k")]
    assert found == [None, {"three": 3}, "two", 1]
    assert values.get("k") is None
    assert values.get("k", at=middle).value == "two"  # type: ignore[union-attr]
    assert [each.value for each in values.items(at=middle)] == ["two"]
    session.undo()
    assert values.get("k").value == {"three": 3}  # type: ignore[union-attr]


def test_erased_value_is_nowhere_and_its_key_can_be_written_again(
    store: Store, session: Session
) -> None:
    values = session.values("program")
    values.put(("users", SECRET), {"note": SECRET})
    values.put(("users", SECRET), {"note": f"{SECRET} again"})

    receipt = values.erase(("users", SECRET), reason="asked for")

    assert receipt is not None and receipt.proof.clean
    assert independent_scan.scan(store.path, [SECRET.encode()]) == []
    assert values.erase(("users", SECRET)) is None
    again = values.put(("users", SECRET), {"note": "new"})
    assert again.id not in receipt.ids
    with pytest.raises(AlreadyExistsError, match="written again"):
        session.restore(receipt.ids)
    values.erase(("users", SECRET), purge=True)
    session.restore(receipt.ids)
    assert values.get(("users", SECRET)).value == {"note": f"{SECRET} again"}  # type: ignore[union-attr]
    assert len(values.list()) == 1
    values.put(("users", SECRET), "third")
    assert len(values.list()) == 1
    assert session.check() == ()


def test_removed_value_can_be_erased(store: Store, session: Session) -> None:
    values = session.values()
    values.put("k", SECRET * 3)
    values.remove("k")

    assert values.erase("k") is not None
    assert independent_scan.scan(store.path, [SECRET.encode()]) == []
    assert values.erase("never there") is None


def test_maintenance_erases_what_was_removed_long_ago(
    store: Store, session: Session, clock: Clock
) -> None:
    session.configure({"archive_after_days": 1000})
    values = session.values()
    values.put_all({("gone",): SECRET * 3, ("back",): 1, **{(f"n{n}",): n for n in range(120)}})
    values.remove("gone", "back", *(f"n{n}" for n in range(120)))
    values.put("back", 2)

    def erased() -> list[int]:
        return [each.count for each in store.maintain().actions if each.step == "erase"]

    clock.now += timedelta(days=20)
    assert erased() == []
    clock.now += timedelta(days=11)
    assert erased() == [121]
    assert independent_scan.scan(store.path, [SECRET.encode()]) == []
    assert [each.key for each in values.list()] == [("back",)]
    assert values.put("gone", "new").value == "new"


# Secrets


def test_secret_is_refused_with_its_place(session: Session) -> None:
    head = session.head

    with pytest.raises(InvalidError, match=r"\(email\) at profile\.contacts\[1\]"):
        session.values().put("k", {"profile": {"contacts": ["none", f"write to {MAIL}"]}})
    with pytest.raises(InvalidError, match="a key holds a secret"):
        session.values(secrets="redact").put(("users", MAIL), 1)
    assert session.head == head


def test_policy_for_secrets_is_the_callers(session: Session) -> None:
    value = {"mail": MAIL, "n": 1}

    clean = session.values(secrets="redact").put("clean", value)
    exact = session.values(secrets="keep").put("exact", value)

    assert (clean.value, dict(clean.redacted)) == ({"mail": "[REDACTED:email]", "n": 1}, {"email": 1})  # fmt: skip
    assert (exact.value, dict(exact.redacted)) == (value, {})
    found = session.values().get("clean")
    assert found == clean
    session.configure({"redaction": "off"})
    assert session.values().put("off", value).value == value
    with pytest.raises(InvalidError, match="no policy"):
        session.values(secrets="seal")  # type: ignore[arg-type]


def test_names_that_are_opaque_are_not_searched(session: Session) -> None:
    token = "q8Zr2VtLx0WcN5yKeJ7uHsB4mDfG1aPo9iTzXvQ6"
    given = {
        "id": token,
        "deep": [{"signature": {"of": token}, "text": f"{MAIL} said"}],
        "text": token,
    }

    found = session.values(secrets="redact", opaque={"id", "signature"}).put("k", given)

    assert found.value == {
        "id": token, "deep": [{"signature": {"of": token}, "text": "[REDACTED:email] said"}],
        "text": "[REDACTED:long-token]",
    }  # fmt: skip
    with pytest.raises(InvalidError, match=r"at deep\[0\]\.text"):
        session.values(opaque={"id", "signature"}).put("k", given)


@pytest.mark.parametrize("value", [
    {"a": [SECRET, 47114711, {SECRET: f'"{SECRET}"\n\\'}]}, SECRET, f"line\n{SECRET}\n", [SECRET],
])  # fmt: skip
def test_redaction_leaves_a_value_that_json_reads(session: Session, value: object) -> None:
    values = session.values()
    kept = values.put("k", value)

    done = session.redact(SECRET)
    session.redact("47114711")

    assert done.ids == (kept.id,)
    found = values.get("k")
    assert found is not None
    assert SECRET not in json.dumps(found.value)
    assert type(found.value) is type(value)
    assert independent_scan.scan(session.path, [SECRET.encode(), b"47114711"]) == []
    assert values.put("k", value).value == value


def test_redaction_does_not_change_a_key(session: Session) -> None:
    values = session.values()
    kept = values.put(("users", SECRET), {"note": SECRET})

    for dry_run in (True, False):
        with pytest.raises(RefusedError, match=f"the key of {kept.id}"):
            session.redact(SECRET, dry_run=dry_run)
    session.delete(kept.id, purge=True)
    assert session.redact(SECRET).ids == ()


# What does not happen to values


def test_values_answer_no_question_unless_their_kind_is_named(session: Session) -> None:
    session.add("decision", "Cats are allowed", tags=["pets"])
    kept = session.values("program").put("pet", {"name": "Tom", "says": "cats are great"})

    assert [hit.id for hit in session.query("cats").hits] == ["DEC-0001"]
    assert [hit.id for hit in session.query().hits] == ["DEC-0001"]
    assert [hit.id for hit in session.query(kinds=["value"]).hits] == [kept.id]
    named = session.query(kinds=["value"], where=[("value.name", "equals", "Tom")])
    assert [hit.id for hit in named.hits] == [kept.id]
    with pytest.raises(InvalidError, match="not searched by text"):
        session.query("cats", kinds=["value"])
    assert [hit.id for hit in session.similar("cats are great").hits] == ["DEC-0001"]
    assert kept.id not in session.context("program", prompt="cats").text
    assert session.summary().counts == {"decision": 1}
    assert [each.agent for each in session.agents()] == ["user-123"]
    assert sum(each.count for each in session.timeline()) == 1
    assert session.info().counts == {"decision": 1, "value": 1}


def test_values_neither_decay_nor_are_compacted(session: Session, clock: Clock) -> None:
    kept = session.values().put("k", "word " * 1000)
    session.add("learning", "word " * 1000)
    at_first, _ = session.explain(kept.id)
    clock.now += timedelta(days=900)

    assert session.explain(kept.id)[0] == at_first
    gone = [each.id for step in session.compact("90%").steps for each in step.removals]
    assert gone == ["LEARN-0001"]
    assert session.values().get("k") is not None


def test_value_is_changed_by_its_program_alone(session: Session) -> None:
    kept = session.values().put("k", {"a": 1})

    for change in ({"text": "x"}, {"value": 2}, {"key": ["other"]}, {"title": "x"}):
        with pytest.raises(RefusedError, match="the program that keeps it"):
            session.edit(kept.id, **change)
    with pytest.raises(InvalidError, match="put under a key"):
        session.add(untyped("value"), "text")
    session.pin(kept.id)
    session.link(kept.id, "references", session.add("decision", "Other").id)
    found = session.get(kept.id)
    assert (found.pinned, len(found.links), found.fields["value"]) == (True, 1, {"a": 1})
    # The program's own write keeps what people put beside the value.
    session.values().put("k", {"a": 2})
    assert session.get(kept.id).links == found.links


def test_person_edits_a_value_by_hand(session: Session) -> None:
    values = session.values()
    kept = values.put("k", {"a": 1})
    file = session.file(kept.id)

    file.write_text("# checked\n" + file.read_text().replace('"a": 1', '"a": [1, 2]'))
    session.commit()
    assert values.get("k").value == {"a": [1, 2]}  # type: ignore[union-attr]
    values.put("k", {"a": 3})
    assert "# checked" in file.read_text()
    for broken in ('{"a": ', '"one" "two"', "NaN"):
        file.write_text(file.read_text().replace('"a": 3', f'"a": {broken}'))
        with pytest.raises(InvalidError, match="not JSON"):
            session.commit()
        git(session.path, "checkout", "-q", "HEAD", "--", str(file))
    file.write_text(file.read_text().replace("- k", "- other"))
    with pytest.raises(InvalidError, match="the key is not the one"):
        session.commit()
    git(session.path, "checkout", "-q", "HEAD", "--", str(file))


# The format


def test_session_has_the_format_of_values_from_the_first_one_on(session: Session) -> None:
    session.add("decision", "Plain")
    assert session.metadata.format == 2
    session.branch("idea").values().put("k", 1)
    assert session.metadata.format == 2

    session.values().put("k", 1)

    assert session.metadata.format == 3
    assert session.values().remove("k") == 1
    session.rollback("HEAD~2")
    assert session.metadata.format == 3
    assert session.check() == ()


def older() -> None:
    """Become a program that knows no values."""
    metadata.KNOWN["format"] = 2


def newer() -> None:
    metadata.KNOWN["format"] = 3


def test_older_program_refuses_a_session_with_values(
    store: Store, session: Session, tmp_path: Path
) -> None:
    store.create_session("plain").close()
    git(tmp_path, "init", "-q", "--bare", "hub.git")
    session.add_remote("origin", tmp_path / "hub.git")
    session.sync()
    session.values().put("k", 1)
    session.sync()
    other = Store.init(tmp_path / "other")
    older()

    with pytest.raises(FormatError, match="has format 3; this program knows 2"):
        store.session("shop")
    with pytest.raises(UntrustedError, match="format 3; this program knows 2"):
        other.clone(str(tmp_path / "hub.git"))
    store.session("plain").close()
    newer()


# Two replicas


@pytest.fixture
def twins(store: Store, session: Session, tmp_path: Path, clock: Clock) -> tuple[Session, Session]:
    """One session on two machines that sync."""
    git(tmp_path, "init", "-q", "--bare", "hub.git")
    session.add_remote("origin", tmp_path / "hub.git")
    session.add("decision", "First")
    session.sync()
    other = Store.init(tmp_path / "other", clock=clock)
    other.clone(str(tmp_path / "hub.git"))
    return session, other.session("shop")


def settle(*replicas: Session) -> list[dict[tuple[str, ...], Any]]:
    for _ in range(2):
        for each in replicas:
            each.sync()
    assert len({each.head for each in replicas}) == 1
    assert [each.check() for each in replicas] == [(), ()]
    return [{each.key: each.value for each in one.values().items()} for one in replicas]


def test_replicas_share_values(twins: tuple[Session, Session]) -> None:
    here, there = twins
    here.values().put(("a",), {"of": "here"})
    there.values().put(("b",), {"of": "there"})
    here.values().put(("same",), {"x": 1, "y": [1]})
    there.values().put(("same",), {"x": 2, "y": [2]})

    one, two = settle(here, there)

    assert one == two == {("a",): {"of": "here"}, ("b",): {"of": "there"}, ("same",): {"x": 2, "y": [2]}}  # fmt: skip
    (lost,) = here.conflicts()
    assert (lost.field, lost.value) == ("value", {"x": 1, "y": [1]})


def test_of_two_writes_one_holds_whole(twins: tuple[Session, Session]) -> None:
    here, there = twins
    here.values().put("k", {"a": 1, "b": 1})
    settle(here, there)
    here.values().put("k", {"a": 2, "b": 1})
    there.values().put("k", {"a": 1, "b": 2})

    one, two = settle(here, there)

    assert one == two == {("k",): {"a": 1, "b": 2}}
    there.values().put("k", {"a": 2, "b": 2})
    settle(here, there)
    assert here.conflicts() == there.conflicts() == ()


def test_text_and_json_of_one_key_meet(twins: tuple[Session, Session]) -> None:
    here, there = twins
    here.values().put("k", {"a": 1})
    settle(here, there)
    here.values().put("k", {"a": 2})
    there.values().put("k", "a text")

    one, two = settle(here, there)

    assert one == two == {("k",): "a text"}
    here.values().put("k", ["json"])
    there.values().put("k", "other text")
    assert settle(here, there)[0] == {("k",): "other text"}
    here.values().put("k", None)
    assert settle(here, there)[1] == {("k",): None}


def test_removal_and_write_at_the_same_time(twins: tuple[Session, Session]) -> None:
    """A removal is no deletion: what was written meanwhile stays."""
    here, there = twins
    here.values().put_all({("k",): 1, ("gone",): 1})
    settle(here, there)
    here.values().remove("k", "gone")
    there.values().put("k", 2)

    assert settle(here, there) == [{("k",): 2}] * 2


def test_erasure_reaches_the_other_replica(twins: tuple[Session, Session]) -> None:
    here, there = twins
    here.values().put("k", f"{SECRET} one")
    settle(here, there)
    here.values().erase("k", purge=True)
    here.values().put("k", "new")
    there.values().put("k", f"{SECRET} two")

    assert settle(here, there) == [{("k",): "new"}] * 2
    for each in twins:
        assert independent_scan.scan(each.path, [SECRET.encode()]) == []


def test_key_that_was_restored_and_written_at_once_is_erased_whole(
    twins: tuple[Session, Session],
) -> None:
    mine, theirs = twins
    first = mine.values("app").put("k", "the first plugh-0451")
    mine.values("app").erase("k")
    mine.sync()
    theirs.sync()
    theirs.values("app").put("k", "the second plugh-0451")
    mine.restore(first.id)
    for session in (mine, theirs, mine):
        session.sync()
    assert len(mine.memories("value")) == 2

    mine.values("app").erase("k")

    assert mine.values("app").get("k") is None
    assert mine.memories("value") == ()
    assert mine.values("app").erase("k") is None


def test_redaction_meets_a_write(twins: tuple[Session, Session]) -> None:
    here, there = twins
    here.values().put("k", {"a": SECRET, "n": 47114711})
    settle(here, there)
    here.redact(SECRET)
    there.values().put("k", {"a": SECRET, "n": 47114711, "b": "later words"})

    one, two = settle(here, there)

    assert one == two
    assert isinstance(one[("k",)], dict)
    assert "later words" in str(one)
    for each in twins:
        assert independent_scan.scan(each.path, [SECRET.encode()]) == []


# In and out


@pytest.mark.parametrize("as_format", ["jsonl", "json", "yaml"])
def test_export_and_import_keep_values_exactly(
    store: Store, session: Session, tmp_path: Path, as_format: str
) -> None:
    told: dict[tuple[str, ...], Any] = {
        ("text",): "  text\n", ("null",): None, ("deep",): nested(60), ("odd", "ü/"): {"": "\ud83d\0", "k" * 200: 2**70},
        ("json as a text",): '{"a": 1}', ("scalar",): "12", ("long",): "x" * 1_100_000,
    }  # fmt: skip
    session.values(secrets="keep").put_all(told)
    session.export(as_format, to=tmp_path / f"out.{as_format}")

    done = store.import_(tmp_path / f"out.{as_format}", session="copy")

    assert done.problems == ()
    with store.session("copy") as copy:
        found = {each.key: each.value for each in copy.values().items()}
        assert copy.check() == ()
        assert copy.metadata.format == 3
    assert found == told
    again = store.import_(tmp_path / f"out.{as_format}", session="copy")
    assert again.problems == ()


def test_import_does_not_replace_a_value(store: Store, session: Session, tmp_path: Path) -> None:
    values = session.values()
    values.put("k", "old")
    session.export("jsonl", to=tmp_path / "out.jsonl")
    values.put("k", "new")

    done = store.import_(tmp_path / "out.jsonl", session="shop")

    assert "another value under its key" in str(done.problems)
    assert values.get("k").value == "new"  # type: ignore[union-attr]


@pytest.mark.parametrize("as_format", ["markdown", "000", "001", "003", "004"])
def test_other_formats_are_written_beside_values(
    session: Session, tmp_path: Path, as_format: str
) -> None:
    session.add("decision", "Plain")
    session.values().put("k", {"a": nested(50), "b": "\ud83d"})

    session.export(as_format, to=tmp_path / "out")

    assert (tmp_path / "out").exists()


def test_anonymized_copy_has_no_name_in_keys_and_values(store: Store, session: Session) -> None:
    session.values("program").put(("users", "user-123"), {"user-123": ["by user-123"]})

    done = session.anonymize()

    with store.session(done.session) as copy:
        (kept,) = copy.values().items()
        assert (kept.key, kept.value) == (("users", "User-1"), {"User-1": ["by User-1"]})
        assert copy.check() == ()


# As a person sees it


def test_command_shows_a_value_by_the_beginning_of_its_id(store: Store, session: Session) -> None:
    kept = session.values("program").put(("users", "u1"), {"name": "Ann", "odd": "\ud83d"})
    session.close()

    def said(*arguments: object) -> str:
        return smp("--root", store.path, "-s", "shop", *arguments).stdout

    assert kept.id in said("list", "--kind", "value")
    assert kept.id not in said("list")
    assert "users/u1" in said("log")
    shown = json.loads(said("show", kept.id[:10], "--json"))
    assert shown["fields"]["value"] == {"name": "Ann", "odd": "\ud83d"}
    assert "Ann" in said("show", kept.id.lower()[:12])
    assert "values" in said("size")
