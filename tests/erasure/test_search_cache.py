"""Nothing of a deleted memory is in the cache of the text search: no word, stem, vector or snippet."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from smp_git import Session, Store
from smp_git.ask import catalogue, desk, vectors
from smp_git.ask.text import batches, cache
from smp_git.remove.history import sweep
from tests.independent_scan import scan
from tests.search.test_semantic import ConceptEncoder

WORD, STEM = "quizzifications", "quizzif"
TEXT = f"the kitten of {WORD}"
VECTOR = ConceptEncoder().vector(TEXT)[:12]
TRACES = [WORD.encode(), STEM.encode(), VECTOR]

Removal = Callable[[Session], object]
REMOVALS: dict[str, Removal] = {
    "delete": lambda session: session.delete("DEC-0002"),
    "purge": lambda session: session.delete("DEC-0002", purge=True),
    "redact": lambda session: session.redact(TEXT),
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    Store.init(tmp_path / "store")
    (tmp_path / "store/config.yaml").write_text("format: 1\nsemantic: on\n")
    with patch.object(vectors, "find_encoder", ConceptEncoder):
        yield Store.open(tmp_path / "store")


@pytest.fixture
def asked(store: Store) -> Iterator[Session]:
    """A session that was asked, so that its cache holds all traces."""
    with store.create_session("asked", user="ada") as session:
        session.add("decision", "the lorry stays")
        session.add("decision", TEXT)
        session.index()
        session.query("kitten")
        assert all(traces(session.path, [trace]) for trace in TRACES)
        yield session


def traces(folder: Path, wanted: list[bytes]) -> list[str]:
    """Return the places in the local files of a session in which something stands."""
    return scan(folder / ".git" / "smp", wanted)


@pytest.mark.parametrize("removal", REMOVALS)
def test_no_trace_is_left_before_and_after_the_next_question(asked: Session, removal: str) -> None:
    with Store.open(asked.path.parent.parent).session("asked") as other:
        other.query("kitten")
        REMOVALS[removal](asked)
        assert traces(asked.path, TRACES) == []

        for session in (other, asked):
            found = session.query(f"{WORD} lorry kitten")
            assert WORD not in "".join(hit.snippet for hit in found)
            assert {hit.id for hit in session.query(WORD)} == set()
            assert traces(asked.path, TRACES) == []


@pytest.mark.parametrize("removal", REMOVALS)
def test_the_scan_sees_what_a_deletion_would_leave(asked: Session, removal: str) -> None:
    def leave_caches(*_: object) -> None:
        return

    with (
        patch.object(sweep, "_tidy_local", leave_caches),
        patch.object(sweep, "drop_vectors", leave_caches),
    ):
        REMOVALS[removal](asked)

    assert all(traces(asked.path, [trace]) for trace in TRACES)


def test_rows_that_are_dropped_leave_nothing_in_the_file(asked: Session) -> None:
    """Versions no longer in use are dropped a few at a time, and their bytes with them."""
    file = asked.path / ".git/smp/search.db"
    for number in range(20):
        asked.edit("DEC-0002", text=f"edit {number} of it")
        asked.query("edit")

    assert WORD.encode() not in file.read_bytes()
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_copied_cache_of_another_session_answers_nothing(asked: Session, store: Store) -> None:
    with store.create_session("plain", user="ada") as session:
        session.add("decision", "nothing of the kind")
        session.query("kind")
        place = session.path / ".git/smp/search.db"
        shutil.copyfile(asked.path / ".git/smp/search.db", place)
    with store.session("plain") as again:
        assert {hit.id for hit in again.query(WORD)} == set()
        assert {hit.id for hit in again.query("nothing of the kind")} == {"DEC-0001"}


def test_only_the_vectors_of_the_deleted_go(asked: Session) -> None:
    session = asked
    session.add("decision", "a cat")
    session.index()
    session.delete("DEC-0003")

    assert session.index().made == 0
    assert traces(session.path, [VECTOR])


def test_vectors_made_before_a_deletion_and_kept_after_it_are_not_written(asked: Session) -> None:
    """Another process made a vector, and the deletion came before it could write."""
    (asked.path / ".git/smp/vectors").unlink()

    class Slow(ConceptEncoder):
        def vector(self, text: str) -> bytes:
            if text.endswith(TEXT) and len(asked.memories("decision")) == 2:
                asked.delete("DEC-0002")
            return super().vector(text)

    with (
        Store.open(asked.path.parent.parent).session("asked") as other,
        patch.object(vectors, "find_encoder", Slow),
    ):
        other.index()

    assert traces(asked.path, TRACES) == []
    assert (asked.path / ".git/smp/vectors").exists()


@pytest.mark.parametrize("removal", REMOVALS)
def test_an_index_made_during_a_deletion_is_not_written(
    asked: Session, removal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process read the pages, and the deletion came before it could write."""
    (asked.path / ".git/smp/search.db").unlink()
    encode, removals = batches.encode, [REMOVALS[removal]]

    def slowly(pages: Any) -> dict[str, bytes]:
        made = encode(pages)
        if removals:
            removals.pop()(asked)
        return made

    monkeypatch.setattr(cache, "encode", slowly)
    with Store.open(asked.path.parent.parent).session("asked") as other:
        for _ in range(2):
            assert {hit.id for hit in other.query("lorry")} == {"DEC-0001"}
            assert traces(asked.path, TRACES) == []
        asked.edit("DEC-0001", text="the lorry goes")
        assert len(other.query("lorry")) == 1
    assert traces(asked.path, TRACES) == []


def test_an_index_held_in_memory_is_not_written_after_a_deletion(asked: Session) -> None:
    """It could not be written at first, for the file was locked."""
    place = asked.path / ".git/smp/search.db"
    place.unlink()
    with Store.open(asked.path.parent.parent).session("asked") as other:
        with closing(sqlite3.connect(place, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            assert len(other.query("lorry")) == 1
        asked.delete("DEC-0002")
        asked.add("turn", "a page of its own")
        assert len(other.query("page lorry")) == 2
        assert place.exists()
        assert traces(asked.path, TRACES) == []


@pytest.mark.parametrize("removal", REMOVALS)
def test_a_catalogue_read_before_a_deletion_is_not_written(
    asked: Session, removal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "_WORTH_KEEPING", 1)
    other = Store.open(asked.path.parent.parent).session("asked")
    other.query(kinds=["decision"])
    REMOVALS[removal](asked)
    # Of the kind that was removed nobody asks again.
    other.query(kinds=["turn"])
    other.close()
    assert traces(asked.path, TRACES) == []

    with Store.open(asked.path.parent.parent).session("asked") as again:
        again.query(kinds=["decision"])
    assert (asked.path / ".git/smp/search-catalogue").exists()


def test_labels_of_the_deleted_are_not_in_a_catalogue_written_later(
    asked: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "_WORTH_KEEPING", 1)
    word = "sesquipedal"
    links = [("about", f"session-{word}:DEC-0001")]
    gone = asked.add("preference", "x", tags=[word], key=word, agent=word, links=links)
    with Store.open(asked.path.parent.parent).session("asked") as other:
        assert len(other.query(tags=[word])) == 1
        asked.delete(gone.id)
        assert len(other.query(kinds=["preference"])) == 0
        assert other.query(kinds=["decision"])
    assert (asked.path / ".git/smp/search-catalogue").exists()
    assert traces(asked.path, [word.encode()]) == []


@pytest.mark.parametrize("removal", REMOVALS)
def test_a_catalogue_made_during_a_deletion_is_not_written(
    asked: Session, removal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question leaves it behind; the deletion comes before the file is there."""
    monkeypatch.setattr(desk, "_WORTH_KEEPING", 1)
    as_bytes, removals = catalogue.Catalogue.as_bytes, [REMOVALS[removal]]

    def slowly(known: Any) -> bytes:
        made = as_bytes(known)
        if removals:
            removals.pop()(asked)
        return made

    monkeypatch.setattr(catalogue.Catalogue, "as_bytes", slowly)
    other = Store.open(asked.path.parent.parent).session("asked")
    other.query(kinds=["decision"])
    assert traces(asked.path, TRACES) == []
    assert removals == []
    other.close()
    assert traces(asked.path, TRACES) == []


@pytest.mark.parametrize("removal", REMOVALS)
def test_a_catalogue_is_not_there_whose_writing_a_deletion_overtakes(
    asked: Session, removal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deletion comes when the file is there and empty, and it was asked if it may be kept."""
    monkeypatch.setattr(desk, "_WORTH_KEEPING", 1)
    checksum, removals = catalogue._sum, [REMOVALS[removal]]

    def slowly(body: bytes) -> bytes:
        if removals:
            assert (asked.path / ".git/smp/search-catalogue").exists()
            removals.pop()(asked)
        return checksum(body)

    monkeypatch.setattr(catalogue, "_sum", slowly)
    other = Store.open(asked.path.parent.parent).session("asked")
    other.query(kinds=["decision"])
    assert removals == []
    assert traces(asked.path, TRACES) == []
    other.close()
