"""What the pages show, of a session as it is and as it was, sound or broken."""

from __future__ import annotations

import os
import re
import shutil
import zlib
from datetime import timedelta
from urllib.parse import quote

import pytest

from smp_git import Session, Store
from tests.conftest import Clock
from tests.web.hostile import TEXTS, hostile_session
from tests.web.served import Visitor

PAGES = ("", "timeline", "search?q=mfa", "context?prompt=login", "log", "compare?old=HEAD~3",
         "branches", "trash", "size")  # fmt: skip


def test_sessions_are_listed_with_what_tells_them_apart(
    visitor: Visitor, store: Store, shop: Session
) -> None:
    store.create_session("other").close()
    store.create_session("old").close()
    store.archive_session("old")
    store.create_session("gone").close()
    store.delete_session("gone", by="ada")

    told = visitor.get("/").told

    assert "shop active 4 memories · user-123" in told
    assert "other created 0 memories" in told
    assert "Archived old" in told
    assert "gone deleted" in told
    assert visitor.get("/s/old/").status == 200
    assert "smp unarchive old" in visitor.get("/s/old/").told
    assert store.archived_sessions() != ()


def test_overview_says_what_is_open_and_what_holds(visitor: Visitor, shop: Session) -> None:
    told = visitor.get("/s/shop/").told

    assert "4 memories of user-123" in told
    assert "Open findings 1 No timeout high FIND-0002" in told
    assert "Decisions that hold 1 Use OAuth DEC-0001" in told
    assert "security 1" in told


def test_timeline_is_narrowed_and_turned(visitor: Visitor, session: Session, clock: Clock) -> None:
    with session.transaction(agent="ada") as tx:
        for number in range(70):
            tx.add("learning", f"Learned {number}", tags=["even" if number % 2 == 0 else "odd"])
    session.add("finding", "No MFA", agent="veritas", severity="high")

    first, second = visitor.get("/s/shop/timeline"), visitor.get("/s/shop/timeline", page="2")

    assert (first.page.ids.count("main"), first.text.count('class="event ')) == (1, 60)
    assert second.text.count('class="event ') == 11
    assert "page 1 of 2" in first.told
    assert visitor.get("/s/shop/timeline", tag="odd").told.count("Learned") == 35
    assert "1 memory" in visitor.get("/s/shop/timeline", agent="veritas").told
    assert "No MFA" in visitor.get("/s/shop/timeline", kind="finding", since="2026-01-01").told
    assert "Nothing fits" in visitor.get("/s/shop/timeline", until="2020-01-01").told


def test_search_says_why_each_result_ranks(visitor: Visitor, shop: Session) -> None:
    told = visitor.get("/s/shop/search", q="oauth standard").told

    assert "matches oauth, standard" in told
    assert re.search(r"text 1\.000 0\.40 0\.400 time \d\.\d{3} 0\.30", told)
    assert "priority.base 0.9500: of the kind" in told


def test_search_while_typing_finds_words_that_begin_so(visitor: Visitor, shop: Session) -> None:
    whole = visitor.get("/s/shop/search", q="time")
    typed = visitor.get("/s/shop/search", q="time", part="1")

    assert "Nothing answers" in whole.told
    assert "No timeout" in typed.told
    assert "<html" not in typed.text
    assert visitor.get("/search", q="oau", part="1").text.count('<li class="hit') == 1


def test_a_phrase_that_is_being_typed_is_taken_as_far_as_it_goes(
    visitor: Visitor, shop: Session
) -> None:
    for text in ('"', '"no', '"no time', '"No timeout', '"No timeout"', 'x "', '"" "'):
        answer = visitor.get("/s/shop/search", q=text, part="1")
        assert answer.status == 200
    assert "No timeout" in visitor.get("/s/shop/search", q='"No timeout', part="1").told
    wrong = visitor.get("/s/shop/search", q="x", kind="dream", part="1")
    assert (wrong.status, "<html" in wrong.text, "dream" in wrong.told) == (400, False, True)


def test_a_result_shows_its_title_once(visitor: Visitor, session: Session) -> None:
    session.add("learning", "Timeouts are told\nEach timeout stands in the protocol")
    session.add("learning", "A timeout")

    text = visitor.get("/s/shop/search", q="timeout").text

    assert text.count("are told") == 1
    assert "A <mark>timeout</mark>" in text
    assert '<p class="excerpt said">' in text


def test_names_that_are_no_text_are_shown(visitor: Visitor, store: Store, shop: Session) -> None:
    strange = os.fsdecode(b"\xff<b>.yaml")
    (shop.path / "decisions" / "000" / strange).write_text("x")
    for page in PAGES:
        assert visitor.get(f"/s/shop/{page}").status == 200
    (shop.path / "decisions" / "000" / strange).unlink()


def test_memory_shows_fields_with_who_wrote_them_history_links_and_fate(
    visitor: Visitor, shop: Session
) -> None:
    answer = visitor.get("/s/shop/m/DEC-0001")

    assert "rationale A proven standard ada" in answer.told
    assert "<del>A </del><ins>A proven </ins>" in answer.text or "<ins>proven </ins>" in answer.text
    assert re.search(r"resolves FIND-0001 ?: No MFA", answer.told)
    assert 'class="curve"' in answer.text
    assert "It does not fall: neither resolved nor superseded, holds." in answer.told
    assert 'class="graph"' in answer.text


def test_looking_counts_as_no_use(visitor: Visitor, shop: Session) -> None:
    head = shop.head
    for page in (*PAGES, "m/DEC-0001", "m/DEC-0001/edit", "m/DEC-0001/forget"):
        assert visitor.get(f"/s/shop/{page}").status == 200

    assert shop.get("DEC-1", at=head).access_count == 0
    assert shop.head == head


def test_past_is_shown_as_it_was_and_changes_nothing(visitor: Visitor, shop: Session) -> None:
    told = visitor.get("/s/shop/m/DEC-0001", at="HEAD~4")

    assert "You see the session as it was" in told.told
    assert "rationale A standard" in told.told
    assert '<form method="post"' not in told.text
    assert "at=HEAD~4" in "".join(told.page.hrefs)
    assert visitor.get("/s/shop/", at="HEAD~4").status == 200
    assert visitor.get("/s/shop/timeline", at="yesterday").status in (200, 400)


def test_two_moments_are_compared(visitor: Visitor, shop: Session) -> None:
    answer = visitor.get("/s/shop/compare", old="HEAD~3", new="HEAD")

    assert "1 added, 1 changed" in answer.told
    assert "FIND-0002 No timeout added" in answer.told
    assert "no difference" in visitor.get("/s/shop/compare", old="HEAD", new="HEAD").told
    assert visitor.get("/s/shop/compare", old="nowhere").status in (400, 404)


def test_branches_say_what_a_merge_would_do(visitor: Visitor, shop: Session) -> None:
    shop.edit("DEC-1", impact="low")
    before = shop.head

    told = visitor.get("/s/shop/branches").told

    assert "idea" in told
    assert "Merging it into main would combine both: 1 memory, and 1 value contested" in told
    assert "impact" in told
    assert shop.head == before


def test_trash_has_days_left_and_receipts_what_was_proved(visitor: Visitor, shop: Session) -> None:
    page = visitor.get("/s/shop/trash")
    (receipt,) = {href for href in page.page.hrefs if "/receipts/" in href}
    answer = visitor.get(receipt.removeprefix(visitor.server.door.root))

    assert "LEARN-0001 1 version" in page.told
    assert "30 days left" in page.told
    assert "private" in page.told
    assert "nothing of it is left" in answer.told
    assert "Ada is ill" not in page.text + answer.text


def test_size_says_what_compaction_would_gain(
    visitor: Visitor, session: Session, clock: Clock
) -> None:
    session.add("learning", "Old and forgotten " + "x" * 5000)
    clock.now += timedelta(days=400)

    told = visitor.get("/s/shop/size").told

    assert "learnings 5.1 kB" in told
    assert re.search(r"At most 5\.\d kB \. In this order", told)
    assert "LEARN-0001" in told


def test_context_says_what_it_holds_and_what_not_and_why(visitor: Visitor, shop: Session) -> None:
    shop.add("finding", "Everything is slow " + "x" * 4000, severity="low")

    answer = visitor.get("/s/shop/context", prompt="oauth", agent="veritas", budget="200")

    assert "What answers the question" in answer.told
    assert "DEC-0001" in answer.told
    assert "only its title" in answer.told
    assert visitor.get("/s/shop/context", prompt="x", budget="many").status == 400


@pytest.mark.parametrize(
    "path", [f"/s/hostile/{page}" for page in PAGES] + ["/", "/search?q=script"]
)
def test_hostile_texts_stay_texts(visitor: Visitor, store: Store, path: str) -> None:
    hostile_session(store).close()
    answer = visitor.get(path)

    assert answer.status == 200
    assert answer.page.suspicious == []
    assert len(answer.page.scripts) == 1
    assert [href for href in answer.page.hrefs if not href.startswith(("/", "#"))] == []


def test_hostile_texts_stay_texts_on_each_memory_and_commit(visitor: Visitor, store: Store) -> None:
    with hostile_session(store) as session:
        names = [each.id for each in session.memories()]
        commits = [each.commit for each in session.log()]
    paths = [
        *(f"m/{name}{more}" for name in names[:20] for more in ("", "/edit", "/forget")),
        *(f"c/{name}" for name in commits),
        *(f"search?q={quote(text[:500])}" for text in TEXTS),
        *(f"timeline?tag={quote(text[:500])}" for text in TEXTS),
        *(f"context?prompt={quote(text[:500])}&agent={quote(text[:50])}" for text in TEXTS),
        *(f"compare?old={quote(text[:500])}" for text in TEXTS),
        *(f"m/{quote(text[:200], safe='')}" for text in TEXTS),
    ]
    for path in paths:
        answer = visitor.get(f"/s/hostile/{path}")
        assert answer.status < 500
        assert (path, answer.page.suspicious) == (path, [])
        assert len(answer.page.scripts) <= 1


@pytest.mark.parametrize(
    "path",
    [
        "/s/../../etc/passwd/", "/s/%2e%2e/", "/s/..%2f..%2f/", "/s/shop/m/..%2f..%2fmetadata.yaml",
        "/s/shop/m/%00", "/s/shop/c/--help", "/s/shop/c/HEAD@%7B99%7D", "/s/shop/receipts/..%2f..",
        "/static/..%2fapp.py", "/static/../app.py", "/static/%2e%2e%2fapp.py", "/s/SHOP/", "/s/sho/",
        "/s/shop/timeline?page=0", "/s/shop/timeline?page=-1", "/s/shop/timeline?page=99999999999",
        "/s/shop/timeline?since=never", "/s/shop/search?q=" + "a" * 20_000, "/s/shop/nothing",
        "/s/shop/?at=" + "a" * 5000, "/s/shop/m/DEC-9999", "/s/shop/m/DEC-0001/nothing",
        "/s/shop/search?q=%22open", "/s/shop/context?budget=1e99", "/s/shop/timeline?kind=dream",
    ],
)  # fmt: skip
def test_tricks_are_answered_and_nothing_happens(
    visitor: Visitor, shop: Session, path: str
) -> None:
    answer = visitor.get(path)

    assert 400 <= answer.status < 500
    assert "Traceback" not in answer.text


def test_huge_requests_are_refused(visitor: Visitor, shop: Session) -> None:
    large = visitor.ask("POST", "/s/shop/m/DEC-0001/pin", b"a=" + b"x" * 5_000_000)
    many = visitor.ask("POST", "/s/shop/m/DEC-0001/pin", "&".join(f"a{n}=1" for n in range(1000)))
    bytes_ = visitor.ask("POST", "/s/shop/m/DEC-0001/pin", b"token=\xff\xfe")

    assert (large.status, many.status, bytes_.status) == (413, 400, 400)


def test_a_session_that_goes_while_it_is_looked_at_is_told(
    visitor: Visitor, store: Store, shop: Session
) -> None:
    assert visitor.get("/s/shop/m/DEC-0001").status == 200
    store.delete_session("shop", by="ada")

    gone = visitor.get("/s/shop/m/DEC-0001")
    assert gone.status == 404
    assert "shop" in gone.told

    with store.create_session("shop") as other:
        other.add("decision", "Another one")
        assert "Another one" in visitor.get("/s/shop/m/DEC-0001").told


def test_a_memory_that_was_forgotten_says_how_it_comes_back(
    visitor: Visitor, shop: Session
) -> None:
    answer = visitor.get("/s/shop/m/LEARN-0001")

    assert answer.status == 404
    assert "LEARN-0001 was deleted the trash of the session restores it" in answer.told


def test_damage_is_named_and_stops_nothing(visitor: Visitor, shop: Session) -> None:
    name = shop._handle.reader.snapshot().blob("DEC-0001")
    assert name is not None
    file = shop.file("DEC-0001")
    loose = shop.path / ".git/objects" / name[:2] / name[2:]
    kept = {each: each.read_bytes() for each in (file, loose)}
    file.unlink()
    loose.chmod(0o600)
    loose.write_bytes(zlib.compress(b"blob 3\0abc"))
    try:
        for page in (*PAGES, "m/FIND-0001", "m/DEC-0001"):
            answer = visitor.get(f"/s/shop/{page}")
            assert (page, answer.status) == (page, 200)
        assert "cannot be read" in visitor.get("/s/shop/m/DEC-0001").told
        assert "smp repair" in visitor.get("/s/shop/").told
    finally:
        for place, data in kept.items():
            place.write_bytes(data)


def test_a_session_that_does_not_open_stops_no_other(
    visitor: Visitor, store: Store, shop: Session
) -> None:
    store.create_session("broken").close()
    broken = store.path / "active/broken/.git"
    shutil.rmtree(broken / "objects")
    try:
        told = visitor.get("/").told
        assert "shop active" in told
        assert "broken" in told
        assert visitor.get("/s/broken/").status in (404, 500)
    finally:
        shutil.rmtree(broken.parent)
