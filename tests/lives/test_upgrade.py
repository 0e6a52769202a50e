"""Sessions of format 1: read as they are, brought to format 2 by their first write."""

from __future__ import annotations

from pathlib import Path

import pytest

from smp_git import Session, Store
from tests import golden, independent_scan
from tests.lives.meeting import reachable
from tests.support import git, git_bytes

SECRETS = (b"xantippe", b"yggdrasil")


def _replicas(folder: Path) -> dict[str, Session]:
    """Make the two replicas and their remote; both had restored or redacted, and not synced."""
    hub = folder / "hub.git"
    git(folder, "init", "-q", "--bare", "-b", "main", str(hub))
    git_bytes(hub, "fast-import", "--quiet", data=(golden.APART / "hub.export").read_bytes())
    found = {}
    for name in "AB":
        store = Store.init(folder / name)
        (folder / name / "config.yaml").write_text(
            f"format: 1\nkey_dir: {folder / f'{name}-keys'}\n"
        )
        place = store.path / "active" / "shop"
        place.mkdir()
        git(place, "init", "-q", "-b", "main")
        git_bytes(place, "fast-import", "--quiet", data=(golden.APART / f"{name}.export").read_bytes())  # fmt: skip
        git(place, "checkout", "-q", "-f", "main")
        found[name] = Store.open(folder / name).session("shop")
        found[name].add_remote("origin", hub)
    return found


def test_reading_changes_nothing(tmp_path: Path) -> None:
    sessions = _replicas(tmp_path)
    for session in sessions.values():
        before = session.head
        assert session.check() == ()
        assert session.get("DEC-0001").life == ""
        assert session.query("kiwi").hits
        assert session.metadata.format == 1
        session.close()
        assert git(session.path, "rev-parse", "main").strip() == before


def test_the_first_write_raises_the_format_and_names_the_lives(tmp_path: Path) -> None:
    session = _replicas(tmp_path)["A"]
    said = {memory.id: memory.fields for memory in session.memories()}
    session.add("decision", "another one")

    assert session.metadata.format == 2
    assert session.get("FIND-0002").life.startswith("g2-")
    assert {memory.id: memory.fields for memory in session.memories()}.items() >= said.items()
    assert session.check() == ()
    assert b"generation" not in git_bytes(session.path, "log", "-p", "--format=", "--", "findings", data=b"")  # fmt: skip


@pytest.mark.parametrize("order", ["AB", "BA"])
@pytest.mark.parametrize("first", ["A", "B", "AB", ""])
def test_replicas_upgraded_at_different_times_come_to_one(tmp_path: Path, first: str, order: str) -> None:  # fmt: skip
    sessions = _replicas(tmp_path)
    for name in first:
        sessions[name].add("decision", f"written by {name} before it synced")
    for _ in range(3):
        for name in order:
            sessions[name].sync()

    a, b = sessions.values()
    assert a.head == b.head
    assert a.get("FIND-0002").fields["evidence"] == "delta echo foxtrot"
    assert a.get("FIND-0001").fields["evidence"] == "alpha [REDACTED] bravo"
    assert a.check() == b.check() == ()
    # Redacted here and restored there, each as "generation 2".
    assert a.get("FIND-0003").fields["evidence"] == "golf [REDACTED] hotel"
    assert not any(secret in reachable(tmp_path / "hub.git") for secret in SECRETS)
    for session in sessions.values():
        session.close()
        held = [where for where, data in independent_scan.everything(session.path) if any(secret in data for secret in SECRETS)]  # fmt: skip
        assert held == []


def test_two_lives_that_were_both_called_2_are_two(tmp_path: Path) -> None:
    a, b = _replicas(tmp_path).values()
    assert [s.get("FIND-0003").life for s in (a, b)] == ["g2", "g2"]
    a.add("decision", "upgrade A")
    b.add("decision", "upgrade B")
    names = {a.get("FIND-0003").life, b.get("FIND-0003").life}

    assert len(names) == 2
    assert all(name.startswith("g2-") for name in names)
