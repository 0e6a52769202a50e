"""The report: one file, complete, that asks nothing from anywhere and runs nothing of a memory's."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.errors import SmpError
from smp_git.web import report
from tests.conftest import Clock
from tests.support import smp
from tests.web.hostile import TEXTS, Page, hostile_session


def made(session: Session, place: Path, clock: Clock, *, anonymous: bool = False) -> str:
    report.write(session, place, clock, anonymous=anonymous)
    return place.read_text()


def test_report_holds_every_memory_with_its_history_links_and_fate(
    shop: Session, tmp_path: Path, clock: Clock
) -> None:
    text = made(shop, tmp_path / "shop.html", clock)
    told = " ".join(" ".join(Page(text).text).split())

    assert [
        each for each in ("turn-0001", "FIND-0001", "DEC-0001") if f'id="{each}"' not in text
    ] == []
    assert "<del>A </del><ins>A proven </ins>" in text or "<ins>proven </ins>" in text
    assert "resolve finding FIND-0001" in told
    assert 'class="curve"' in text
    assert 'class="graph"' in text
    assert "rationale A proven standard ada" in told
    assert "Merging it into main would" in told
    assert "29 days left" in told or "30 days left" in told
    assert "objects and" in told
    assert "Ada is ill" not in text


def test_report_asks_nothing_from_anywhere(shop: Session, tmp_path: Path, clock: Clock) -> None:
    text = made(shop, tmp_path / "shop.html", clock)
    page = Page(text)

    assert page.scripts == ["", ""]
    assert [href for href in page.hrefs if not href.startswith("#")] == []
    assert [href for href in page.hrefs if href[1:] not in page.ids] == []
    assert len(page.ids) == len(set(page.ids))
    assert re.findall(r"(?:src|action|url\()\s*=?[\"'(]?https?:", text) == []
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src &#39;none&#39;; style-src &#39;sha256-")
    assert "unsafe" not in policy


def test_hostile_texts_stay_texts(store: Store, tmp_path: Path, clock: Clock) -> None:
    with hostile_session(store) as session:
        text = made(session, tmp_path / "hostile.html", clock)
    page = Page(text)

    assert page.suspicious == []
    assert len(page.scripts) == 2
    assert [href for href in page.hrefs if not href.startswith("#")] == []
    told = "".join(page.text)
    for each in TEXTS:
        assert " ".join(each.split())[:60] in " ".join(told.split())


def test_anonymous_report_names_nobody(
    session: Session, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    session.add("turn", "Maria Huber works in /home/maria/shop", agent="ada", speaker="Maria Huber")
    session.add("decision", "Ask Maria Huber", made_by="Maria Huber")
    session.edit("DEC-1", text="Ask Maria Huber first")

    text = made(session, tmp_path / "anonymous.html", clock, anonymous=True)

    assert [name for name in ("Maria", "Huber", "/home/", "user-123") if name in text] == []
    assert "User-" in text
    assert list((tmp_path / "scratch").iterdir()) == []


def test_receipt_of_a_later_deletion_names_the_report(
    shop: Session, tmp_path: Path, clock: Clock
) -> None:
    made(shop, tmp_path / "shop.html", clock)

    receipt = shop.delete("DEC-0001", by="ada")

    assert any("shop.html" in each and "a copy" in each for each in receipt.out_of_reach)


def test_report_is_for_its_owner_and_replaces_nothing_unasked(
    shop: Session, tmp_path: Path, clock: Clock
) -> None:
    place = tmp_path / "shop.html"
    made(shop, place, clock)
    before = place.read_bytes()

    with pytest.raises(SmpError, match="exists"):
        report.write(shop, place, clock)
    with pytest.raises(SmpError, match="no folder"):
        report.write(shop, tmp_path / "nowhere" / "shop.html", clock)

    assert place.read_bytes() == before
    assert place.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_looking_counts_as_no_use(shop: Session, tmp_path: Path, clock: Clock) -> None:
    head = shop.head
    made(shop, tmp_path / "shop.html", clock)

    assert shop.get("DEC-1", at=head).access_count == 0
    assert shop.head == head


def test_damaged_memory_is_named_and_stops_nothing(
    shop: Session, tmp_path: Path, clock: Clock
) -> None:
    name = shop._handle.reader.snapshot().blob("DEC-0001")
    assert name is not None
    file, written = shop.file("DEC-0001"), shop.file("DEC-0001").read_bytes()
    file.unlink()
    loose = shop.path / ".git/objects" / name[:2] / name[2:]
    data = loose.read_bytes()
    loose.chmod(0o600)
    loose.write_bytes(b"nonsense")
    shop.close()
    try:
        with Store.open(shop.path.parents[1], clock=clock).session("shop") as again:
            text = made(again, tmp_path / "shop.html", clock)
    finally:
        loose.write_bytes(data)
        file.write_bytes(written)

    assert "cannot be read" in text
    assert 'id="FIND-0001"' in text


def test_person_who_wrote_as_an_agent_is_named_to_be_taken_out(
    store: Store, tmp_path: Path
) -> None:
    with store.create_session("shop", user="ada") as session:
        session.add("decision", "Ask first", agent="grace")
    place, command = tmp_path / "anonymous.html", ["--root", str(store.path), "report", "-o"]

    wrong = smp(*command, str(place), "--user", "grace", check=False)
    made = smp(*command, str(place), "--user", "grace", "--anonymize")

    assert (wrong.returncode, made.returncode) == (4, 0), (wrong.stderr, made.stderr)
    assert [name for name in ("grace", "Grace") if name in place.read_text()] == []


def test_command_writes_a_report(store: Store, tmp_path: Path) -> None:
    store.create_session("shop").close()
    done = smp("--root", store.path, "report", "--json", cwd=tmp_path)

    assert json.loads(done.stdout)["path"] == str(tmp_path / "shop.html")
    again = smp("--root", store.path, "report", cwd=tmp_path, check=False)
    assert (again.returncode, "exists" in again.stderr) == (5, True)
    once_more = smp("--root", store.path, "report", "--force", cwd=tmp_path)
    assert "a report is a copy" in once_more.stderr
