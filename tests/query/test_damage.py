"""Caches and indexes are broken in every way: answers stay right, and somebody is told."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.ask import catalogue, desk
from smp_git.format import lines
from tests.conftest import Clock
from tests.query import naive
from tests.query.strategies import NOW
from tests.query.support import relaxed_store, scored, told
from tests.support import git

INDEX = Path("findings/000/index.yaml")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A session with caches on the disk, and nobody who knows them."""
    monkeypatch.setattr(desk, "_WORTH_KEEPING", 1)
    store = relaxed_store(tmp_path / "store", Clock())
    with store.create_session("shop", user="ada") as session, session.transaction() as tx:
        for word in ("timeout", "login", "cache", "session timeout"):
            tx.add("finding", f"slow {word}", severity="low", tags=[word.split()[-1]])
        tx.add("decision", "use a cache")
    with store.session("shop") as session:
        session.query("slow", now=NOW)
    with store.session("shop") as session:
        yield session


def cache(session: Session, name: str = "search.db") -> Path:
    return session.path / ".git" / "smp" / name


def again(session: Session) -> Session:
    """Return another handle, which knows nothing yet."""
    return Store.open(session.path.parent.parent, clock=Clock()).session("shop")


def is_right(session: Session) -> bool:
    """Whether answers are those of the files in the tree."""
    by_words = [name for name, _ in scored(session.query("timeout", now=NOW))]
    known = naive.scan(session.path, NOW)
    return told(session.query(now=NOW)) == naive.answer(known, {}, NOW) and set(by_words) == {"FIND-0001", "FIND-0004"}  # fmt: skip


# Caches


def garbage(file: Path) -> None:
    file.write_bytes(b"not what it was" * 1000)


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def deleted(file: Path) -> None:
    file.unlink()


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def flipped(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)


def another_version(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 77")


Damage = Callable[[Path], None]


@pytest.mark.parametrize("damage", [garbage, truncated, deleted, emptied, flipped, another_version])
def test_a_damaged_search_cache_changes_no_answer_and_is_made_again(shop: Session, damage: Damage) -> None:  # fmt: skip
    damage(cache(shop))

    with again(shop) as session:
        assert is_right(session)
        told_of = bool(session.query("timeout").problems)
    assert told_of == (damage in (garbage, truncated, another_version))
    with again(shop) as session:
        assert is_right(session)
        assert session.query("timeout").problems == ()


@pytest.mark.parametrize("damage", [garbage, truncated, deleted, emptied, flipped, a_folder])
def test_a_damaged_catalogue_changes_no_answer(shop: Session, damage: Damage) -> None:
    file = cache(shop, "search-catalogue")
    assert file.exists()
    damage(file)

    with again(shop) as session:
        assert is_right(session)
    assert damage is a_folder or catalogue.load(file) is not None


def test_a_question_leaves_the_catalogue_though_nobody_closes(shop: Session) -> None:
    file = cache(shop, "search-catalogue")
    file.unlink()
    still_open = Store.open(shop.path.parent.parent).session("shop")
    assert still_open.query(kinds=["finding"]).total == 4

    assert catalogue.load(file) is not None
    assert file.stat().st_mode & 0o777 == 0o600
    with again(shop) as session:
        assert is_right(session)
    still_open.close()


def test_a_catalogue_is_not_written_through_a_link(shop: Session) -> None:
    file = cache(shop, "search-catalogue")
    named = file.with_name("named")
    named.touch()
    file.unlink()
    file.symlink_to(named)
    with again(shop) as session:
        assert is_right(session)

    assert named.read_bytes() == b""
    assert not file.is_symlink()


def test_a_catalogue_of_another_version_is_read_anew(shop: Session, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(catalogue, "_FORM", 77)

    assert catalogue.load(cache(shop, "search-catalogue")) is None
    with again(shop) as session:
        assert is_right(session)


def test_a_locked_search_cache_keeps_nobody_waiting(shop: Session) -> None:
    with closing(sqlite3.connect(cache(shop), isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        late = shop.add("finding", "another timeout")
        with again(shop) as session:
            answer = session.query("timeout")

    assert {hit.id for hit in answer} == {"FIND-0001", "FIND-0004", late.id}
    assert any("is locked" in problem or "in use" in problem for problem in answer.problems)


def test_where_nothing_can_be_written_answers_are_right(shop: Session, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    def refuse(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("attempt to write a readonly database")

    def refuse_file(*_: object) -> None:
        raise PermissionError

    cache(shop).unlink()
    monkeypatch.setattr(sqlite3, "connect", refuse)
    cache(shop, "search-catalogue").unlink()
    monkeypatch.setattr(catalogue, "_for_the_owner", refuse_file)

    with again(shop) as session:
        assert is_right(session)
        assert any("unusable" in problem for problem in session.query("timeout").problems)


# Indexes of pages


def rewritten(session: Session, text: str | None) -> None:
    """Commit another index for the findings, as somebody with Git would."""
    file = session.path / INDEX
    file.unlink() if text is None else file.write_text(text)
    git(session.path, "add", "-A")
    git(session.path, "-c", "core.hooksPath=/dev/null", "commit", "-qm", "by hand")


def line(**changes: object) -> Callable[[list[str]], list[str]]:
    """Return an edit that changes keys of the first line."""

    def change(found: list[str]) -> list[str]:
        (entry,) = lines.read_lines(found[:1])
        assert entry is not None
        return [lines.write_line(entry._replace(**changes)), *found[1:]]  # type: ignore[arg-type]

    return change


EDITS: dict[str, Callable[[list[str]], list[str] | None]] = {
    "missing": lambda _: None,
    "empty": lambda _: [],
    "a line removed": lambda found: found[1:],
    "a line repeated": lambda found: [found[0], *found],
    "100,000 lines": lambda found: found + found[:1] * 100_000,
    "no JSON": lambda found: ["- {nonsense\n", *found[1:]],
    "not maps": lambda found: ["- 5\n", "- []\n", *found],
    "a blob that is not there": line(blob="0" * 40, title="a lie"),
    "a memory that is not there": lambda found: [*found, found[0].replace("FIND-0001", "FIND-0099")],
    "a time that is none": line(at="yesterday"),
    "a time without a zone": line(at="2026-01-11T14:30:00"),
    "an importance out of range": line(importance=7.0),
    "no number": lambda found: [found[0].replace('"size":', '"importance":NaN,"size":'), *found[1:]],
    "an id that is none": line(id="0001"),
    "an id of another kind": line(id="DEC-0001"),
    "binary": lambda found: ["\x01\ufffd\n", *found],
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_a_wrong_index_changes_no_answer_is_told_and_mended_by_the_next_write(shop: Session, name: str) -> None:  # fmt: skip
    shop.query("slow")
    edited = EDITS[name]((shop.path / INDEX).read_text().splitlines(keepends=True))
    rewritten(shop, None if edited is None else "".join(edited))

    with again(shop) as cold:
        for session in (shop, cold):
            assert is_right(session)
            if name != "binary":
                assert any("findings/000" in problem for problem in session.query().problems)
        assert any(problem.path == str(INDEX) for problem in cold.check())
        cold.add("finding", "one more")
        assert cold.check() == ()
        assert cold.query().problems == ()


def test_a_line_that_lies_about_a_file_that_is_there_is_named_by_check(shop: Session) -> None:
    found = (shop.path / INDEX).read_text().splitlines(keepends=True)
    rewritten(shop, "".join(line(title="a lie")(found)))

    assert [problem.code for problem in shop.check()] == ["stale_index"]


def test_a_file_that_cannot_be_read_is_told_and_hides_nothing_else(shop: Session) -> None:
    (shop.path / "findings/000/FIND-0002.yaml").write_text("id: FIND-0002\nkind: [\n")
    rewritten(shop, (shop.path / INDEX).read_text())

    with again(shop) as session:
        answer = session.query(kinds=["finding"], where=[("recommendation", "exists", False)])

    assert {hit.id for hit in answer} == {"FIND-0001", "FIND-0003", "FIND-0004"}
    assert any("FIND-0002" in problem for problem in answer.problems)


def test_problems_of_kinds_that_are_not_asked_are_not_told(shop: Session) -> None:
    rewritten(shop, "")

    assert shop.query(kinds=["decision"]).problems == ()


def test_reference_to_what_is_missing_is_found(shop: Session) -> None:
    place = shop.path / ".git/refs/smp/seen/origin/heads/main"
    place.parent.mkdir(parents=True)
    place.write_text("12" * 20 + "\n")

    (problem,) = shop.check()

    assert problem.message == "refs/smp/seen/origin/heads/main names 121212121212, which is missing"
