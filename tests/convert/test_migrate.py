"""A project in older formats is migrated: backed up, taken in, checked; and again, without harm."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from smp_git import Store
from smp_git.errors import InvalidError
from tests.conftest import Clock
from tests.support import ROOT, smp

FOREIGN = ROOT / "tests/data/foreign"


def _project(place: Path) -> Path:
    base = place / ".bmad"
    shutil.copytree(FOREIGN / "003", base / "sessions")
    shutil.copy(FOREIGN / "000/session-2026-01-11.jsonl", base / "sessions")
    shutil.copytree(FOREIGN / "001", base / "memory")
    (base / "logs").mkdir()
    (base / "logs/talk.md").write_text(
        "# Conversation History\n**Session:** talk-7\n**Participants:** ada, veritas\n\n---\n\n"
        "## Turn 1 - 2026-02-01 10:00:00\n**Speaker:** veritas\n\nI looked at the login.\n\n"
        "**Memory Stored:**\n- Finding: No second factor [FIND-001]\n"
        "- Decision to ask for one [DEC-001]\n\n---\n"
    )
    return place


def test_project_is_migrated_and_every_check_holds(tmp_path: Path) -> None:
    done = Store.migrate(_project(tmp_path))

    assert set(done.checks.values()) == {True}
    assert done.problems == ()
    store = Store.open(tmp_path)
    assert store.sessions() == (
        "sess-2026-01-11-abc123",
        "session-2026-01-11",
        "session-2026-01-11-abc123",
        "talk-7",
    )
    with store.session("talk-7") as session:
        finding, decision = session.memories("finding")[0], session.memories("decision")[0]
        assert (finding.content, finding.agent) == ("No second factor", "veritas")
        assert decision.content == "Ask for one"
        assert finding.fields["turn_ref"] == "turn-0001"
    assert [each.session for each in store.archived_sessions()] == ["session-2025-12-01-old001"]
    assert store.check() == ()


def test_backup_holds_every_byte_of_before(tmp_path: Path) -> None:
    before = {
        path.relative_to(tmp_path / ".bmad"): path.read_bytes()
        for path in _project(tmp_path).rglob("*")
        if path.is_file() and path.name != "config.json"
    }

    Store.migrate(tmp_path)

    backup = tmp_path / ".bmad/backup-pre-smp"
    for name, data in before.items():
        assert (backup / name).read_bytes() == data
    assert "keep_until" in json.loads((backup / "backup.json").read_text())


def test_second_migration_adds_nothing_and_keeps_what_was_written_since(tmp_path: Path) -> None:
    Store.migrate(_project(tmp_path))
    store = Store.open(tmp_path)
    with store.session("talk-7") as session:
        session.add("finding", "New since")
        session.delete("FIND-0001")

    again = Store.migrate(tmp_path)

    assert sum(each.added.total() for each in again.sessions) == 0
    assert set(again.checks.values()) == {True}
    with store.session("talk-7") as session:
        assert [each.content for each in session.memories("finding")] == ["New since"]


def test_what_was_added_since_is_migrated_too(tmp_path: Path) -> None:
    Store.migrate(_project(tmp_path))
    log = tmp_path / ".bmad/logs/talk.md"
    log.write_text(
        log.read_text() + "\n## Turn 2 - 2026-02-02 10:00:00\n**Speaker:** ada\n\nYes.\n"
    )

    Store.migrate(tmp_path)

    with Store.open(tmp_path).session("talk-7") as session:
        assert [turn.content.split("\n")[0] for turn in session.memories("turn")] == [
            "I looked at the login.",
            "Yes.",
        ]


def test_dry_run_only_tells(tmp_path: Path) -> None:
    before = sorted(_project(tmp_path).rglob("*"))

    done = Store.migrate(tmp_path, dry_run=True)

    assert ".bmad/sessions/active/session-2026-01-11-abc123" in done.found
    assert sorted(tmp_path.rglob("*")) == before


def test_project_without_older_memory_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="no memory in an older format"):
        Store.migrate(tmp_path)


def test_command_migrates(tmp_path: Path) -> None:
    _project(tmp_path)

    assert "would migrate" in smp("migrate", "--dry-run", cwd=tmp_path).stdout
    done = smp("migrate", cwd=tmp_path)

    assert "yes: nothing is lost" in done.stdout
    assert "NO" not in done.stdout.split("yes:")[0]


def test_receipt_names_the_backup_and_maintenance_removes_it_when_it_is_due(
    tmp_path: Path,
) -> None:
    clock = Clock()
    Store.migrate(_project(tmp_path), clock=clock)
    store = Store.open(tmp_path, clock=clock)
    backup = tmp_path / ".bmad/backup-pre-smp"
    with store.session("talk-7") as session:
        assert "backup-pre-smp" in " ".join(session.delete("FIND-0001").out_of_reach)

    clock.now += timedelta(days=29)
    store.maintain()
    assert backup.is_dir()
    clock.now += timedelta(days=2)
    store.maintain()
    assert not backup.exists()
