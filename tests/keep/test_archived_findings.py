"""Archived findings: out of the session, found by a query that asks, reached by what removes."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.model.errors import MemoryNotFoundError
from smp_git.model.given import Severity
from tests.conftest import Clock
from tests.damage.injuries import gone, loose
from tests.independent_scan import scan
from tests.support import git, smp
from tests.sync.support import Machine

SECRET = "plugh-0451-of-the-cave"


def archived(session: Session, clock: Clock, count: int = 6) -> list[str]:
    """Add findings, resolve most of them, and let a compaction archive those."""
    names: list[str] = []
    for number in range(count):
        text = f"The login of tenant {number} is slow, {SECRET} stands in its log. " + "x" * 300
        tags = ["web.login", f"tenant{number}"]
        severity: Severity = "critical" if number % 2 else "low"
        names.append(session.add("finding", text, agent="veritas", tags=tags, severity=severity).id)
    session.add("finding", "The login of nobody is open", agent="b")
    for name in names:
        session.resolve(name, action="mended")
    clock.now += timedelta(days=12)
    done = session.compact(0.9)
    assert [step.name for step in done.steps] == ["findings"]
    assert {each.id for each in session.compacted()} == set(names)
    return names


def ids(answer: object) -> set[str]:
    return {hit.id for hit in answer}  # type: ignore[attr-defined]


def test_a_query_finds_them_if_it_asks(session: Session, clock: Clock) -> None:
    names = archived(session, clock)
    assert ids(session.query("login", limit=None)) == {"FIND-0007"}

    found = session.query("login", include_archived=True, limit=None)

    assert ids(found) == {*names, "FIND-0007"}
    assert found.total == 7
    assert {hit.id for hit in found if hit.is_archived} == set(names)
    hit = next(hit for hit in found if hit.id == names[2])
    assert "tenant 2" in hit.memory.content
    assert hit.session == ""
    assert any("smp bring-back" in why for why in hit.why)
    assert SECRET in session.query("tenant", include_archived=True)[0].snippet
    assert ids(session.query("login", limit=None)) == {"FIND-0007"}, "and is forgotten again"


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ({"tags": ["tenant3"]}, [3]),
        ({"tags": ["web"], "where": [("severity", "equals", "critical")]}, [1, 3, 5]),
        ({"agents": ["veritas"], "any_tags": ["tenant0", "tenant1"]}, [0, 1]),
        ({"kinds": ["decision"]}, []),
        ({"kinds": ["finding"], "until": "2026-01-01T00:00:00Z"}, []),
    ],
)
def test_every_filter_holds_for_them(
    session: Session, clock: Clock, parts: dict[str, object], wanted: list[int]
) -> None:
    names = archived(session, clock)
    found = session.query(include_archived=True, limit=None, **parts)  # type: ignore[arg-type]
    assert ids(found) == {names[number] for number in wanted}


def test_they_are_sorted_counted_and_paged_with_the_others(session: Session, clock: Clock) -> None:
    archived(session, clock)
    query = {"include_archived": True, "sort": ["created_at"], "limit": 3, "offset": 5}
    found = session.query(spec={**query, "aggregations": ["count:severity"]})
    assert [hit.id for hit in found] == ["FIND-0006", "FIND-0007"]
    assert found.aggregations["count:severity"] == {"low": 3, "critical": 3}


def test_what_is_brought_back_is_there_once(session: Session, clock: Clock) -> None:
    names = archived(session, clock)
    session.bring_back(names[0])
    found = session.query("login", include_archived=True, limit=None)
    assert [str(hit.id) for hit in found].count(names[0]) == 1
    assert not next(hit for hit in found if hit.id == names[0]).is_archived


def test_deletion_and_redaction_reach_them(session: Session, clock: Clock) -> None:
    names = archived(session, clock)
    assert session.delete(names[0], purge=True).proof.clean
    assert names[0] not in ids(session.query("login", include_archived=True, limit=None))
    with pytest.raises(MemoryNotFoundError):
        session.bring_back(names[0])
    session.redact(SECRET)
    assert scan(session.path, [SECRET.encode()]) == []
    found = session.query("tenant", include_archived=True, limit=None)
    assert all(SECRET not in hit.memory.content for hit in found)


def test_they_are_never_erased_at_the_deadline(store: Store, clock: Clock) -> None:
    with store.create_session("shop") as session:
        names = archived(session, clock)
    for _ in range(3):
        clock.now += timedelta(days=20)
        with store.session("shop") as session:
            session.add("turn", "still in use", agent="a")
        store.maintain()
    with store.session("shop") as session:
        assert ids(session.query("tenant", include_archived=True, limit=None)) == set(names)
        assert set(names) == {each.id for each in session.compacted()}


def test_another_replica_finds_them_after_a_sync(tmp_path: Path) -> None:
    one, two = Machine(tmp_path, "one"), Machine(tmp_path, "two")
    session = one.begin(tmp_path / "hub.git")
    names = archived(session, one.clock)
    session.sync()
    with two.clone(tmp_path / "hub.git") as other:
        assert ids(other.query("tenant", include_archived=True, limit=None)) == set(names)


def test_an_agent_finds_only_what_it_may_see(session: Session, clock: Clock) -> None:
    text = "what only veritas knows of the login " + "x" * 400
    mine = session.add("finding", text, agent="veritas", tags=["private"], severity="low").id
    session.resolve(mine)
    clock.now += timedelta(days=12)
    session.compact(0.9)
    assert session.compacted()
    seen = {
        name: ids(session.agent(name).query("login", include_archived=True, limit=None))
        for name in ("veritas", "another")
    }
    assert seen == {"veritas": {mine}, "another": set()}


def test_all_sessions_are_asked(store: Store, clock: Clock) -> None:
    for name in ("shop", "bank"):
        with store.create_session(name) as session:
            archived(session, clock, 2)
    found = store.query("tenant", include_archived=True, limit=None)
    assert {(hit.session, hit.is_archived) for hit in found} == {("shop", True), ("bank", True)}
    store.close()


def test_one_that_is_lost_hides_no_other(session: Session, clock: Clock) -> None:
    names = archived(session, clock)
    (before,) = {each.before for each in session.compacted()}
    name = git(session.path, "rev-parse", f"{before}:findings/000/{names[1]}.yaml").strip()
    file = loose(session.path, name)
    whole = file.read_bytes()
    file.chmod(0o600)
    gone(file)
    session._handle.reader.reopen()
    found = session.query("tenant", include_archived=True, limit=None)
    assert ids(found) >= set(names) - {names[1]}
    assert any(names[1] in each for each in session.info().problems)
    file.write_bytes(whole)
    session._handle.reader.reopen()


def test_by_the_command(store: Store, clock: Clock) -> None:
    with store.create_session("shop") as session:
        names = archived(session, clock, 2)
    root = ("--root", store.path, "-s", "shop")
    shown = smp(*root, "query", "tenant", "--archived").stdout
    assert f"archived: smp bring-back {names[0]}" in shown
    printed = json.loads(smp(*root, "query", "tenant", "--archived", "--json").stdout)
    assert {each["id"]: each["archived"] for each in printed["memories"]} == dict.fromkeys(names, True)  # fmt: skip
    assert "nothing found" in smp(*root, "query", "tenant", check=False).stderr
    smp(*root, "bring-back", names[0])
    assert smp(*root, "query", "tenant").stdout
