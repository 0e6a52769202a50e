"""The log: what was done and for how long, never what it was about; bounded, and counted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from smp_git import Store
from smp_git.model.errors import MemoryNotFoundError, SmpError
from tests.support import smp

SECRET = "plugh-0451-of-the-cave"


def lines(store: Store) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (store.path / "log.jsonl").read_text().splitlines()]


def configured(store: Store, text: str) -> Store:
    (store.path / "config.yaml").write_text(f"format: 1\n{text}\n")
    return Store(store.path, clock=store.clock)


def worked(store: Store) -> None:
    with store.create_session("shop") as session:
        session.add("decision", f"{SECRET} is said", tags=["cave"], agent="a")
        session.query(f"what about {SECRET}?", tags=["cave"])
        session.delete("DEC-0001", reason=f"because of {SECRET}")
        with pytest.raises(MemoryNotFoundError):
            session.get("DEC-0001")
        with pytest.raises(SmpError):
            session.add("decision", SECRET, tags=[f"{SECRET}!"])


@pytest.mark.parametrize("level", ["error", "warn", "info", "debug"])
def test_no_content_is_in_it(store: Store, level: str) -> None:
    store = configured(store, f"log: {level}")
    worked(store)
    path = store.path / "log.jsonl"
    text = path.read_text() if path.exists() else ""
    assert SECRET not in text
    assert "cave" not in text
    assert (text == "") is (level in ("error", "warn"))


def test_a_line_says_what_was_done_where_and_how_long_it_took(store: Store) -> None:
    worked(store)
    found = {each["metadata"].get("operation", each["message"]): each for each in lines(store)}
    assert set(found) == {"create_session", "delete", "used"}
    line = found["delete"]
    assert set(line) == {"timestamp", "level", "component", "session_id", "message", "metadata"}
    assert (line["level"], line["component"], line["session_id"]) == ("INFO", "Session", "shop")
    assert line["metadata"]["duration_ms"] > 0
    assert found["used"]["metadata"]["writes"]["count"] == 1
    assert (store.path / "log.jsonl").stat().st_mode & 0o777 == 0o600


def test_what_was_blocked_is_told(store: Store) -> None:
    worked(store)
    with store.session("shop") as session, pytest.raises(SmpError):
        session.drop_branch("main")
    assert "WARN" in {each["level"] for each in lines(store)}


def test_it_is_bounded(store: Store) -> None:
    store = configured(store, "log: debug\nlog_bytes: 10000")
    with store.create_session("shop") as session:
        session.add("decision", "one", agent="a")
        for _ in range(200):
            session.get("DEC-0001")
    names = sorted(path.name for path in store.path.glob("log.jsonl*"))
    assert names == ["log.jsonl", "log.jsonl.1"]
    assert all((store.path / name).stat().st_size <= 10_000 for name in names)


def test_off_is_off(store: Store) -> None:
    store = configured(store, "log: off")
    worked(store)
    assert not (store.path / "log.jsonl").exists()


def test_metrics_of_a_store(store: Store) -> None:
    worked(store)
    with store.create_session("other") as session:
        session.add("finding", "two", agent="a")
    store.archive_session("other")
    found = store.stats()
    assert found.states == {"active": 1, "archived": 1}
    metrics = found.metrics
    assert metrics["memory.sessions.active"] == 1
    assert metrics["memory.entries.total"] == 0
    assert metrics["memory.operations.write.duration_ms"]["count"] == 2  # type: ignore[index]
    assert metrics["memory.operations.query.duration_ms"]["count"] == 1  # type: ignore[index]
    assert len(metrics) == 9
    shown = smp("--root", store.path, "stats").stdout
    assert "memory.locks.contention.count" in shown
    printed = json.loads(smp("--root", store.path, "stats", "--json").stdout)
    assert printed["metrics"].keys() == metrics.keys()
