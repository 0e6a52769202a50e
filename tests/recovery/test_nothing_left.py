"""After a purge an independent scan finds nothing in the whole store, nor beside the keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from smp_git import Session, Store
from tests import independent_scan
from tests.support import git, untyped

SENTINEL = "Zebra-Kumquat-Sentinel-4711"
NEEDLES = [SENTINEL.encode(), SENTINEL.casefold().encode()]


def spread(session: Session) -> list[str]:
    """Put the sentinel into every kind, and edit, tag and link what holds it."""
    told: dict[str, dict[str, Any]] = {
        "turn": {"speaker": SENTINEL, "topic": SENTINEL},
        "decision": {"rationale": SENTINEL, "alternatives": [{SENTINEL: SENTINEL}]},
        "finding": {"evidence": [SENTINEL], "location": {"artifact": SENTINEL}},
        "preference": {"category": SENTINEL, "value": {"x": [SENTINEL]}},
        "learning": {"topic": SENTINEL, SENTINEL.replace("-", "_"): 1},
        "artifact": {"name": SENTINEL, "title": SENTINEL},
    }
    ids: list[str] = []
    for kind, fields in told.items():
        links = [("references", ids[-1])] if ids else []
        memory = session.add(untyped(kind), f"{SENTINEL} as a {kind}\n\n{SENTINEL}", links=links, tags=[SENTINEL.casefold()], **fields)  # fmt: skip
        ids.append(memory.id)
        for number in range(5 if kind != "turn" else 0):
            session.edit(memory.id, text=f"{SENTINEL} number {number} of a {kind}")
    for number in range(3):
        session.set_state("veritas", {"working_memory": {"seen": [SENTINEL, number]}})
        session.values("langgraph").put(("notes", "one"), {"seen": [SENTINEL, number]})
    kept = session.values("langgraph").put(("notes", "one"), SENTINEL)
    return [*ids, "state-veritas", kept.id]


@pytest.fixture
def spread_out(session: Session) -> list[str]:
    session.add("decision", "This one stays")
    ids = spread(session)
    folder = session.path
    git(folder, "branch", "experiment", "HEAD~3")
    git(folder, "tag", "-a", "v1", "-m", "a version", "HEAD~2")
    git(folder, "notes", "add", "-m", "checked", "HEAD~1")
    git(folder, "gc", "-q")
    session.add("finding", "Something else")
    return ids


def test_after_a_deletion_only_the_sealed_copy_knows(store: Store, session: Session, spread_out: list[str]) -> None:  # fmt: skip
    receipt = session.delete(spread_out, reason="all of it")

    assert receipt.proof.clean
    assert independent_scan.scan(store.path, NEEDLES) == []
    assert store.key_folder is not None
    assert independent_scan.scan(store.key_folder, NEEDLES) == []
    assert [memory.id for memory in session.memories()] == ["DEC-0001", "FIND-0002"]
    git(session.path, "fsck", "--full", "--strict")
    session.restore(spread_out, with_history=True)
    assert len(session.history("FIND-0001")) == 6


def test_after_a_purge_nobody_knows(store: Store, session: Session, spread_out: list[str], isolated_environment: Path) -> None:  # fmt: skip
    session.delete(spread_out)
    sealed = [path.read_bytes() for path in store.path.rglob("*.sealed")]

    session.purge(spread_out)

    assert independent_scan.scan(store.path, [*NEEDLES, *sealed]) == []
    assert list(isolated_environment.rglob("*.key")) == []
    assert session.verify().clean


def test_after_a_redaction_only_the_rest_is_told(store: Store, session: Session, spread_out: list[str]) -> None:  # fmt: skip
    import re

    session.redact(re.compile(re.escape(SENTINEL) + "|" + re.escape(SENTINEL.replace("-", "_")), re.IGNORECASE), "gone")  # fmt: skip

    assert independent_scan.scan(store.path, NEEDLES) == []
    assert len(session.memories()) == len(spread_out) + 2
    assert session.get("FIND-0001").content == "gone number 4 of a finding"
