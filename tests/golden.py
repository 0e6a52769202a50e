"""The golden stores: one story, told with a fixed clock and fixed replicas, frozen as bytes.

`python -m tests.golden` writes the store of the present format anew. That is right only
while the format is not released; afterwards a change of bytes is a new format.
"""

from __future__ import annotations

import json
import os
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from smp_git import Session, Store
from smp_git.keep.stores import _build
from smp_git.model.memory import Value
from smp_git.read.replica import Identity, Local
from tests.support import git, git_bytes, own

GOLDEN: Final = Path(__file__).parent / "data" / "golden"
FORMAT_1: Final = GOLDEN / "format-1"
FORMAT_2: Final = GOLDEN / "format-2"
# The session of format 2 with values, which make it one of format 3.
FORMAT_3: Final = GOLDEN / "format-3"
# The same with subjects that count, and with a README, which makes it one of rule 3.
RULE_3: Final = GOLDEN / "rule-3"
# Two replicas of format 1 that restored and redacted apart, and their remote.
APART: Final = GOLDEN / "format-1-apart"
# A session of format 2 whose power was cut: its last writes stand in a write-ahead log alone,
# which earlier versions kept. The log is as it was, but for the zeros at its end.
WRITE_AHEAD: Final = GOLDEN / "write-ahead"
# When the branch was written that the first write of the log replaced, as the log says.
_MOVED_NS: Final = 1795122270724485849
METADATA: Final[dict[str, Value]] = {
    "id": "golden",
    "uid": "0123456789abcdef0123456789abcdef",
    "format": 2,
    "rule": 2,
    "created_at": "2026-01-11T14:30:00Z",
    "replica": "gold",
    "user": "user-123",
    "agents": ["architect", "veritas"],
    "context": {"project_name": "Shop", "phase": 2, "open": True},
    "tags": ["golden", "format.one"],
}


class StoryClock:
    """A clock that stands still until the story goes on."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 11, 14, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def tick(self) -> None:
        """Go on by a minute and a bit."""
        self.now += timedelta(seconds=61, microseconds=1)


def build(folder: Path) -> Path:
    """Tell the story in a new store below `folder`; return the session's folder."""
    clock = StoryClock()
    store = Store.init(folder / "store", clock=clock)
    place = store.path / "active" / "golden"
    _build(place, METADATA, Identity("gold", creator=True), "user-123", clock(), durable=False)
    with store.session("golden") as session:
        _additions(session, clock)
        _changes(session, clock)
    Local(place / ".git").identify(place, Identity("k3fq", creator=False), place)
    with store.session("golden") as session:
        _second_replica(session, clock)
    return place


def build_values(folder: Path) -> Path:
    """Tell the story, then that of a program with values; return the session's folder."""
    place, clock = build(folder), StoryClock()
    clock.now += timedelta(days=1)
    with Store.open(folder / "store", clock=clock).session("golden") as session:
        _values(session, clock)
    return place


def build_readme(folder: Path) -> Path:
    """Tell both stories and maintain the store; return the session's folder."""
    place, clock = build_values(folder), StoryClock()
    clock.now += timedelta(days=2)
    assert Store.open(folder / "store", clock=clock).maintain().failed == {}
    return place


def restored(folder: Path, frozen: Path = FORMAT_1) -> Path:
    """Make a store of the frozen text below `folder`; return the session's folder."""
    store = Store.init(folder / "store")
    place = store.path / "active" / "golden"
    place.mkdir()
    git(place, "init", "-q", "-b", "main")
    git_bytes(place, "fast-import", "--quiet", data=(frozen / "session.export").read_bytes())
    git(place, "checkout", "-q", "-f", "main")
    return place


def cut_off(folder: Path) -> Path:
    """Make the store whose power was cut below `folder`; return the session's folder."""
    place = restored(folder, WRITE_AHEAD)
    smp = place / ".git" / "smp"
    smp.mkdir()
    (smp / "redo").write_bytes((WRITE_AHEAD / "redo").read_bytes() + bytes(256 << 10))
    os.utime(place / ".git/refs/heads/main", ns=(_MOVED_NS, _MOVED_NS))
    return place


def _additions(session: Session, clock: StoryClock) -> None:
    clock.tick()
    session.add(
        "turn", "Which database?\r\n\r\n---\ntrailing  \n\U0001f600 caf\u00e9\u2028end\n",
        agent="user-123", role="user", type="question", conversation_id="c-1", tokens=12,
    )  # fmt: skip
    clock.tick()
    session.add(
        "decision", "Use PostgreSQL", agent="architect", tags=["database", "database.sql"],
        rationale="ACID.\n\n  Indented,\nand long: " + "word " * 30, impact="high", confidence="high",
        alternatives=[{"name": "MySQL", "why": "no"}, ["nested", ["deeper"]], {}, []],
        reversible=False, turn_ref=1, **own(custom={"yes": "no", "1": 1, "f": 1e-07, "n": None}),
        links=[("derived_from", "turn-0001"), ("led_to", "FIND-0009")],
    )  # fmt: skip
    clock.tick()
    session.add("finding", "No TLS\nbetween the services", agent="veritas", severity="critical", category="security")  # fmt: skip
    clock.tick()
    session.add("preference", "Dark mode", agent="ux", category="ui", key="theme", confidence=0.8)
    clock.tick()
    session.add("preference", "Light mode", agent="ux", category="ui", key="theme")
    clock.tick()
    session.add("learning", "12:30", agent="Ren\u00e9e Lef\u00e8vre", importance=0.25, pinned=True)
    clock.tick()
    session.add("artifact", "# Report\n", agent="veritas", type="analysis", name="report.md")


def _changes(session: Session, clock: StoryClock) -> None:
    clock.tick()
    session.edit(
        "DEC-0001", agent="veritas", impact=None, **own(note="- a: b # c"), title="PostgreSQL"
    )
    clock.tick()
    session.resolve("FIND-0001", agent="veritas", action="TLS everywhere")
    clock.tick()
    session.supersede("DEC-0001", "Use SQLite", agent="architect")
    clock.tick()
    session.pin("DEC-0002", agent="architect")
    clock.tick()
    session.link("DEC-0002", "resolves", "FIND-0001", agent="architect")
    clock.tick()
    session.set_state("veritas", {"working_memory": {"concerns": ["timeout"]}, "on": True})
    clock.tick()
    with session.transaction("veritas", reason="verification,\nthe second round") as tx:
        tx.add("finding", "Session timeout is missing", turn_ref="turn-1")
        tx.set_state("veritas", {"current_context": "timeouts"})
    clock.tick()
    session.undo(agent="user-123")
    clock.tick()
    session.rollback("HEAD~6", "DEC-0001", agent="user-123")
    clock.tick()
    with session.transaction("importer") as tx:
        for number in range(101):
            tx.add("turn", f"Turn {number}", role="assistant")


def _second_replica(session: Session, clock: StoryClock) -> None:
    clock.tick()
    session.add("decision", "Use DuckDB", agent="analyst", tags=["database"])
    clock.tick()
    file = session.file("LEARN-0001")
    file.write_text("# checked twice\n" + file.read_text().replace("pinned: true", "pinned:   true   # keep"))  # fmt: skip
    session.commit(agent="person")
    clock.tick()
    session.edit("LEARN-0001", agent="analyst", importance=0.5, evidence=["one", "two"])
    clock.tick()
    session.file("ART-0001").unlink()
    session.commit(agent="person")
    clock.tick()
    with session.transaction("importer") as tx:
        for number in range(7):
            tx.add("learning", f"Fact number {number} of many", agent="importer")
    clock.tick()
    session.rollback("HEAD~1", agent="person")


def _values(session: Session, clock: StoryClock) -> None:
    values = session.values("langgraph", secrets="redact")
    told: dict[tuple[str, ...], object] = {
        ("users", "u1", "profile"): {"name": "Ren\u00e9e", "n": [1, 2.5, None, True, 2**70], "": {}},
        ("users", "u1", "note"): "a text\r\n  of lines\u2028\n",
        ("odd", "\U0001f600/ ", ""): ["\ud83d\0", "yes", "12:30", {"k" * 200: [[]]}],
        ("null",): None,
        ("mail",): {"to": "jane.roe@gmail.com"},
        ("large",): ["0123456789abcdef" * 8] * 20,
    }  # fmt: skip
    for key, value in told.items():
        clock.tick()
        values.put(key, value)
    clock.tick()
    values.put_all({("users", "u1", "profile"): "now a text", ("null",): "12"})
    clock.tick()
    values.remove("mail")
    clock.tick()
    values.erase(("users", "u1", "note"), purge=True)
    clock.tick()
    values.put(("users", "u1", "note"), {"again": 1})


def memories_of(session: Session) -> str:
    """Return every memory as JSON text, without its uses, which no memory holds."""
    uses = ("access_count", "last_accessed")
    found = [
        {key: value for key, value in memory.as_json().items() if key not in uses}
        for memory in session.memories()
    ]
    return json.dumps(found, ensure_ascii=True, indent=1) + "\n"


def export(place: Path, revision: str = "main") -> bytes:
    """Return the history of a session, with every byte of its files."""
    return git_bytes(place, "fast-export", "--show-original-ids", revision)


def _write() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = build_readme(Path(folder))
        RULE_3.mkdir(parents=True, exist_ok=True)
        (RULE_3 / "session.export").write_bytes(export(place))
        with Store.open(Path(folder) / "store").session("golden") as session:
            (RULE_3 / "memories.json").write_text(memories_of(session))


if __name__ == "__main__":
    _write()
