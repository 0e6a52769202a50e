"""What comes first and why: decay, use, replacement, clocks."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from smp_git import Session, Store
from smp_git.write import handle
from tests.conftest import Clock
from tests.query.support import cloned, scored
from tests.support import git

START = datetime(2026, 1, 11, 14, 30, tzinfo=UTC)


def ids(session: Session, *args: object, **parts: object) -> list[str]:
    return [hit.id for hit in session.query(*args, **parts)]  # type: ignore[arg-type]


def test_what_was_replaced_ranks_behind_and_says_so(shop: Session) -> None:
    old = shop.add("decision", "use MySQL as database", impact="high")
    new = shop.supersede(old.id, "use PostgreSQL as database")
    other = shop.add("finding", "database is slow", severity="low")

    for answer in (shop.query(), shop.query("database"), shop.query("MySQL database")):
        assert [hit.id for hit in answer][-1] == old.id
        assert f"superseded by {new.id}" in answer[-1].why
        assert other.id in [hit.id for hit in answer]
    assert old.id not in ids(shop, include_superseded=False)


def test_a_link_alone_replaces(shop: Session) -> None:
    decision = shop.add("decision", "old way")
    newer = shop.add("decision", "new way", links=[("supersedes", decision.id)])

    assert ids(shop) == [newer.id, decision.id]
    assert ids(shop, include_superseded=False) == [newer.id]


def test_decay_ranks_and_hides_only_when_asked(shop: Session) -> None:
    old = shop.add("finding", "slow login", at=START - timedelta(days=90), severity="low")
    new = shop.add("finding", "slow search", at=START, severity="low")

    assert ids(shop) == [new.id, old.id]
    assert ids(shop, min_priority=0.5) == [new.id]
    assert ids(shop, min_priority=0.5, include_decayed=True) == [new.id, old.id]


def test_priorities_fall_as_the_clock_goes_on_and_answers_agree_with_explain(shop: Session) -> None:
    finding = shop.add("finding", "slow login", at=START, severity="low")
    moments = [START + timedelta(days=days) for days in (0, 1, 10, 100, 10_000)]

    priorities = [shop.query(now=now)[0].priority for now in moments]

    assert priorities == sorted(priorities, reverse=True)
    assert priorities[0] == 0.9
    assert priorities[1] == pytest.approx(0.9 * 2.718281828**-0.05)
    assert priorities[-1] == 0.3
    assert [shop.explain(finding.id, now=now)[0] for now in moments] == priorities


def test_a_memory_from_the_future_counts_as_new_and_no_more(shop: Session) -> None:
    shop.add("turn", "from now", at=START)
    ahead = shop.add("turn", "from tomorrow", at=START + timedelta(days=300))

    found = shop.query(now=START)

    assert [hit.priority for hit in found] == [1.0, 1.0]
    assert found[0].id == ahead.id
    assert shop.query(now=START + timedelta(days=301))[0].id == ahead.id
    assert all(0 <= hit.score <= 1 for hit in shop.query("tomorrow", now=START - timedelta(days=9)))


def test_what_never_decays_stays(shop: Session) -> None:
    at = START - timedelta(days=1000)
    kept = [
        shop.add("decision", "open", at=at),
        shop.add("finding", "critical", at=at, severity="critical"),
        shop.add("turn", "pinned", at=at, pinned=True),
    ]
    shop.add("turn", "gone", at=at)

    assert set(ids(shop, now=START, min_priority=0.8)) == {memory.id for memory in kept}


def test_explain_shows_every_part(shop: Session) -> None:
    shop.add("finding", "slow login", severity="low")
    (hit,) = shop.query("login", explain=True)

    names = [line.split()[0] for line in hit.why]
    assert names[:6] == ["matches", "text.words", "text", "time", "importance", "access"]
    assert {"priority.base", "priority.time", "priority.floor", "priority.priority"} <= set(names)


# Uses


def test_what_is_read_rises_without_a_commit(shop: Session) -> None:
    first = shop.add("finding", "one", at=START - timedelta(days=20), severity="low")
    second = shop.add("finding", "two", at=START - timedelta(days=20), severity="low")
    length = len(shop.log())
    before = shop.query(now=START)[1].priority

    for _ in range(100):
        shop.get(second.id)

    assert ids(shop, now=START) == [second.id, first.id]
    assert shop.query(now=START)[0].priority > before
    assert len(shop.log()) == length
    assert git(shop.path, "for-each-ref", "refs/smp/access") == ""


def test_uses_reach_the_disk_in_batches_and_the_next_process(fast_store: Store) -> None:
    with fast_store.create_session("shop") as shop:
        many = [shop.add("finding", f"number {n}", severity="low").id for n in range(70)]
        journal = shop.path / ".git" / "smp" / "access.log"
        for name in many[:63]:
            shop.get(name)
        assert not journal.exists()
        for name in many[63:]:
            shop.get(name)
        assert len(journal.read_text().splitlines()) == 1
    with fast_store.session("shop") as shop:
        assert "1 accesses" in " ".join(shop.explain(many[-1])[1])


def test_a_long_journal_becomes_the_reference_of_this_replica(fast_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(handle, "_FOLD_BYTES", 1)
    with fast_store.create_session("shop") as shop:
        name = shop.add("finding", "slow", severity="low").id
        length = len(shop.log())
        for _ in range(3):
            shop.get(name)
    with fast_store.session("shop") as shop:
        shop.get(name)
    with fast_store.session("shop") as shop:
        (ref,) = git(shop.path, "for-each-ref", "--format=%(refname)", "refs/smp/access").split()
        tag = json.loads((shop.path / ".git" / "smp" / "replica.json").read_text())["tag"]
        assert ref == f"refs/smp/access/{tag}"
        assert json.loads(git(shop.path, "show", f"{ref}:access.json"))[name][0] == 4
        assert git(shop.path, "rev-list", "--count", ref).strip() == "1"
        assert not (shop.path / ".git" / "smp" / "access.log").exists()
        assert "4 accesses" in " ".join(shop.explain(name)[1])
        assert len(shop.log()) == length


def test_uses_of_all_replicas_count_together(shop: Session, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(handle, "_FOLD_BYTES", 1)
    name = shop.add("finding", "slow", severity="low").id
    copy = cloned(shop, Clock())
    copy.get(name)
    copy.close()
    shop.get(name)

    git(shop.path, "fetch", "-q", str(copy.path), "refs/smp/access/*:refs/smp/access/*")

    assert "2 accesses" in " ".join(shop.explain(name)[1])


@pytest.mark.parametrize("line", ["torn {", "[]", '{"FIND-0001": 5}', '{"FIND-0001": [Infinity, "x"]}', '{"FIND-0001": [1e300, "soon"]}', '{"FIND-0001": [-4, "0001-01-01T00:00:00+23:00"]}', '{"nobody": [1, "2026-01-01T00:00:00Z"]}', "\x00\xff"])  # fmt: skip
def test_a_damaged_journal_breaks_no_answer(shop: Session, line: str) -> None:
    shop.add("finding", "slow", severity="low")
    (shop.path / ".git" / "smp" / "access.log").write_text(line + "\n")

    (hit,) = shop.query("slow")
    assert 0 <= hit.priority <= 1
    (shop.path / ".git" / "smp" / "access.log").unlink()


def test_a_reference_that_is_no_commit_counts_nothing(shop: Session) -> None:
    shop.add("finding", "slow", severity="low")
    blob = git(shop.path, "rev-parse", "HEAD:metadata.yaml").strip()
    git(shop.path, "update-ref", "refs/smp/access/zzzz", blob)

    assert len(scored(shop.query("slow"))) == 1
    git(shop.path, "update-ref", "-d", "refs/smp/access/zzzz")
