"""Following a session: what others write, only what matches, and only what changed is read."""

from __future__ import annotations

import threading
from itertools import islice

import pytest

from smp_git import Session, Store
from smp_git.read.snapshot import Snapshot
from tests.support import python

_WRITES = """
import sys
from smp_git import Store
with Store.open(sys.argv[1]).session("shop") as session:
    session.add("finding", "harmless", severity="low")
    session.add("finding", "leak of keys", severity="critical")
    session.add("decision", "stop", severity="critical")
"""


def test_what_another_process_writes_is_seen_if_it_matches(shop: Session) -> None:
    shop.add("finding", "before", severity="critical")
    found = shop.watch(kinds=["finding"], where=[("severity", "equals", "critical")])

    python(_WRITES, shop.path.parent.parent)

    assert [hit.memory.content for hit in islice(found, 1)] == ["leak of keys"]


def test_watching_can_begin_in_the_past_and_be_stopped(shop: Session) -> None:
    start = shop.head
    shop.add("finding", "one about login")
    shop.add("finding", "two")
    stop = threading.Event()

    found = shop.watch("login", after=start, stop=stop.is_set)
    assert next(found).title == "one about login"
    stop.set()
    assert list(found) == []


def _noting(monkeypatch: pytest.MonkeyPatch, name: str, names: list[str]) -> None:
    """Let a method of snapshots note what it is asked for."""
    method = getattr(Snapshot, name)

    def noting(self: Snapshot, what: str) -> object:
        names.append(what)
        return method(self, what)

    monkeypatch.setattr(Snapshot, name, noting)


def test_only_what_changed_is_read(fast_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with fast_store.create_session("shop") as writer, fast_store.session("shop") as shop:
        with writer.transaction(agent="ada") as tx:
            for number in range(500):
                tx.add("finding", f"number {number}", source="a")
        read: list[str] = []
        looked: list[str] = []
        _noting(monkeypatch, "get", read)
        _noting(monkeypatch, "page", looked)
        found = shop.watch(where=[("source", "equals", "b")], after=shop.head)
        shop.query(limit=1)
        late = writer.add("finding", "the first", source="b", agent="ada")
        read.clear()
        looked.clear()

        assert next(found).title == "the first"
        assert set(read) == {late.id}
        assert set(looked) == {late.path.rpartition("/")[0]}


def test_watching_goes_on_after_history_was_rewritten(shop: Session) -> None:
    shop.add("finding", "one")
    found = shop._desk.watch(shop._desk.asked(None, None, {}, shop._handle.clock()), after="0" * 40, stop=lambda: bool(calls.append(1)) or len(calls) > 2)  # type: ignore[arg-type, func-returns-value]  # fmt: skip
    calls: list[int] = []

    assert list(found) == []
