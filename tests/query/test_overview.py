"""Topics, timeline, agents, links and the summary of a session."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from smp_git import Session
from smp_git.model.errors import InvalidQueryError


def test_topics_count_their_subtrees(shop: Session) -> None:
    shop.add("finding", "one", tags=["auth.login"])
    shop.add("finding", "two", tags=["auth.session", "slow"])

    auth, *others = shop.topics()

    assert (auth.topic, auth.mentions, auth.weight) == ("auth", 2, 1.0)
    assert auth.subtopics == ("auth.login", "auth.session")
    assert auth.memories == ("FIND-0002", "FIND-0001")
    assert [topic.topic for topic in others] == ["auth.login", "auth.session", "slow"]
    assert [topic.topic for topic in shop.topics(limit=1)] == ["auth"]


def test_topics_name_their_memories_by_kind_and_what_stands_beside_them(shop: Session) -> None:
    for tags in (["auth", "mfa"], ["auth", "mfa"], ["auth", "oauth", "mfa"], ["auth"], ["ui", "mfa", "oauth"], ["ui"], ["ui", "oauth"]):  # fmt: skip
        shop.add("finding", "one", tags=tags)
    shop.add("decision", "two", tags=["auth"])

    found = {topic.topic: topic for topic in shop.topics()}

    assert found["auth"].related_memories == {"decision": ("DEC-0001",), "finding": ("FIND-0004", "FIND-0003", "FIND-0002", "FIND-0001")}  # fmt: skip
    # oauth stands beside auth once only, beside mfa and ui twice; ui is no rarer than oauth.
    assert found["auth"].subtopics == ("mfa",)
    assert found["mfa"].subtopics == ("oauth",)
    assert found["ui"].subtopics == ()
    assert found["oauth"].subtopics == ()


def test_events_say_who_took_part_and_what_it_was_about(shop: Session) -> None:
    shop.add("turn", "said", speaker="Ada", at=datetime(2026, 1, 5, 9, tzinfo=UTC))
    shop.add("finding", "no second factor", agent="veritas", discovered_by="eve", severity="high", tags=["auth.mfa"], at=datetime(2026, 1, 4, tzinfo=UTC))  # fmt: skip
    shop.add("decision", "use keys", agreed_by=["eve", "ada"], made_by="zoe", at=datetime(2026, 1, 6, tzinfo=UTC))  # fmt: skip

    found = shop.events()

    assert [(e.at[:10], e.type, e.ref, e.participants, e.severity, e.topics) for e in found] == [
        ("2026-01-04", "finding", "FIND-0001", ("veritas", "eve"), "high", ("auth.mfa",)),
        ("2026-01-05", "turn", "turn-0001", ("Ada",), None, ()),
        ("2026-01-06", "decision", "DEC-0001", ("ada", "zoe", "eve"), None, ()),
    ]
    assert [e.ref for e in shop.events(limit=2)] == ["turn-0001", "DEC-0001"]
    assert [e.ref for e in shop.events(tags=["auth"])] == ["FIND-0001"]
    assert [e.ref for e in shop.events(since="2026-01-05", limit=1)] == ["DEC-0001"]
    with pytest.raises(InvalidQueryError, match="events takes no sort"):
        shop.events(sort=["kind"])  # type: ignore[call-arg]


def test_timeline_by_hour_day_and_month(shop: Session) -> None:
    for hour in (9, 9, 11):
        shop.add("turn", "said", at=datetime(2026, 1, 5, hour, 30, tzinfo=UTC))
    shop.add("decision", "done", at=datetime(2026, 2, 1, tzinfo=UTC))

    assert [(b.start, b.count) for b in shop.timeline()] == [("2026-01-05T09:00:00Z", 2), ("2026-01-05T11:00:00Z", 1), ("2026-02-01T00:00:00Z", 1)]  # fmt: skip
    assert [(b.start, b.counts) for b in shop.timeline(by="day")] == [("2026-01-05", {"turn": 3}), ("2026-02-01", {"decision": 1})]  # fmt: skip
    assert [b.start for b in shop.timeline(by="month")] == ["2026-01", "2026-02"]
    with pytest.raises(InvalidQueryError, match="no timeline by 'week'"):
        shop.timeline(by="week")


def test_agents_the_busiest_first(shop: Session) -> None:
    shop.add("turn", "a", agent="veritas")
    shop.add("turn", "b")
    shop.add("decision", "c")

    assert [(a.agent, a.memories, a.counts) for a in shop.agents()] == [("ada", 2, {"turn": 1, "decision": 1}), ("veritas", 1, {"turn": 1})]  # fmt: skip


def test_related_follows_links_both_ways_and_survives_cycles(shop: Session) -> None:
    a, b, c, d = (shop.add("decision", word).id for word in "abcd")
    shop.link(a, "led_to", b)
    shop.link(b, "led_to", c)
    shop.link(c, "led_to", a)
    shop.link(d, "references", a)
    shop.link(c, "references", "DEC-0999")

    near = shop.related(a, depth=1)
    assert [(r.id, r.relation, r.direction) for r in near] == [(b, "led_to", "to"), (c, "led_to", "from"), (d, "references", "from")]  # fmt: skip
    assert {r.id for r in shop.related(b, depth=10)} == {a, c, d}
    assert [(r.depth, r.via) for r in shop.related(d) if r.id == b] == [(2, a)]
    for wrong in (0, 11):
        with pytest.raises(InvalidQueryError, match="depth"):
            shop.related(a, depth=wrong)


def test_the_summary_is_of_the_sessions_own_words(shop: Session) -> None:
    assert shop.summary().text == "nothing"
    shop.add("finding", "login is slow", severity="high", tags=["auth"])
    shop.add("finding", "mended", status="resolved")
    old = shop.add("decision", "cache it")
    shop.supersede(old.id, "do not cache it")

    summary = shop.summary()

    assert summary.counts == {"decision": 2, "finding": 2}
    assert summary.open_findings == ("login is slow (FIND-0001)",)
    assert [line.partition(" (")[0] for line in summary.decisions] == ["do not cache it"]
    assert "## Open findings\n- login is slow (FIND-0001)" in summary.text


def test_aggregates_of_what_matches(shop: Session) -> None:
    shop.add("turn", "a", tokens=10)
    shop.add("turn", "b", tokens=5)
    shop.add("finding", "c", severity="high", tags=["x.y"])

    assert shop.aggregate() == {"count:kind": {"turn": 2, "finding": 1}}
    assert shop.aggregate("sum:tokens", "avg:tokens", "min:tokens", "count:tag") == {"sum:tokens": 15, "avg:tokens": 7.5, "min:tokens": 5, "count:tag": {"x.y": 1}}  # fmt: skip
    assert shop.aggregate("max:confidence", kinds=["turn"]) == {"max:confidence": None}
