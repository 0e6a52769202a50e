"""What mem0 and LangGraph keep comes in: files that the real libraries wrote."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from smp_git import Store
from smp_git.errors import InvalidError
from tests.support import ROOT

FOREIGN = ROOT / "tests/data/foreign"


def test_what_mem0_returned(store: Store) -> None:
    """Written by mem0 2.2.1: `json.dump(memory.get_all(filters={"user_id": "ada"}), file)`."""
    done = store.import_(FOREIGN / "mem0/ada.json")

    assert (done.format, done.added, done.problems) == ("mem0", 3, ())
    with store.session("mem0-ada") as session:
        found = {memory.content: memory for memory in session.memories("learning")}
        tea = found["Ada prefers green tea."]
        assert tea.fields["metadata"] == {"category": "drinks", "source": "talk"}
        assert tea.created_at.isoformat() == "2026-11-20T07:34:00.020952+00:00"
        assert tea.fields["user_id"] == "ada"
        assert found["We ship on Fridays."].agent == "helper"


@pytest.mark.parametrize("form", ["answer", "list", "lines"])
def test_memories_of_mem0_in_any_form(store: Store, tmp_path: Path, form: str) -> None:
    items = [
        {"id": "a", "memory": "Likes tea", "categories": ["Food & Drink"], "hash": "x"},
        {"id": "b", "memory": "Likes cake"},
        "not one",
    ]
    path = tmp_path / ("all.jsonl" if form == "lines" else "all.json")
    said: object = {"results": items, "count": 3} if form == "answer" else items
    lines = "".join(json.dumps(item) + "\n" for item in items)
    path.write_text(lines if form == "lines" else json.dumps(said))

    done = store.import_(path)

    assert (done.format, done.added, len(done.problems)) == ("mem0", 2, 1)
    with store.session("mem0-all") as session:
        assert session.get("LEARN-0001").tags == ("food-drink",)
    path.write_text(
        lines.replace("Likes cake", "Likes pie") if form == "lines" else json.dumps(said)
    )
    assert store.import_(path).updated == (form == "lines")


def test_store_that_langgraph_wrote(store: Store) -> None:
    """Written by langgraph-checkpoint-sqlite 3.1.2: `SqliteStore.put` of three items, one twice."""
    done = store.import_(FOREIGN / "langgraph/store.db")

    assert (done.format, done.added, done.problems) == ("langgraph", 3, ())
    with store.session("langgraph-store") as session:
        found = {memory.title: memory for memory in session.memories("learning")}
        assert found["m1"].content == "Ada prefers green tea"
        assert found["m1"].tags == ("memories.ada",)
        assert found["m2"].content == "Ships on Fridays"
        assert json.loads(found["ada"].content) == {"name": "Ada", "tags": ["x"]}


def test_database_of_something_else_is_refused(store: Store, tmp_path: Path) -> None:
    for number, (sql, why) in enumerate(
        [
            ("CREATE TABLE checkpoints (thread_id TEXT)", "holds checkpoints"),
            ("CREATE TABLE users (id TEXT)", "no known format"),
            ("CREATE VIEW store AS SELECT 1 AS prefix, 2 AS key, 3 AS value", "no known format"),
        ]
    ):
        path = tmp_path / f"{number}.db"
        with closing(sqlite3.connect(path)) as base:
            base.execute(sql)
        with pytest.raises(InvalidError, match=why):
            store.import_(path)
    assert store.sessions() == ()


def test_torn_database_gives_what_can_be_read(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    shutil.copy(FOREIGN / "langgraph/store.db", path)
    with closing(sqlite3.connect(path)) as base, base:
        for number in range(300):
            base.execute(
                "INSERT INTO store (prefix, key, value) VALUES ('notes', ?, ?)",
                (f"k{number}", json.dumps({"text": f"Note {number} " + "x" * 300})),
            )
        base.execute("INSERT INTO store (prefix, key, value) VALUES ('notes', 'bad', '{torn')")
    whole = path.read_bytes()
    path.write_bytes(whole[:60_000] + bytes(8_192) + whole[68_192:])

    done = store.import_(path)

    assert done.added > 3
    assert any("cannot be read further" in each.reason for each in done.problems)
    path.write_bytes(whole[:-40_000])
    with pytest.raises(InvalidError, match="cannot be read as a database"):
        store.import_(path)
