"""What is noted of a deletion under way, which the next process goes on from after a crash."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path

from smp_git.format import records
from smp_git.model.memory import MemoryId
from smp_git.read.replica import ERASURE
from smp_git.remove.history import journal
from smp_git.remove.history.journal import Journal
from smp_git.remove.history.renaming import Move

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
DEAD = b'- {"id": "DEC-0007", "generation": 1}\n'


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    """With something in each field, so that none is forgotten or comes back in another form."""
    kept = Journal(
        deletion="0123456789ab",
        step=journal.SEALING,
        at=NOW,
        by="ada",
        purge=True,
        tombstones=records.read(DEAD),
        arrived=True,
        ids=(MemoryId("DEC-0007"),),
        reason="why",
        reasons={"DEC-0007": "why"},
        deadline=NOW + timedelta(days=30),
        redacts=True,
        upgrades=True,
        removed=("decisions/000/DEC-0007.yaml",),
        moves=(Move(MemoryId("DEC-0002"), MemoryId("DEC-0002-b3k"), ("11" * 20, "22" * 20)),),
        brought={"refs/heads/main": {"decisions/000/DEC-0007.yaml": "33" * 20}},
        old={"refs/heads/main": "44" * 20},
        new={"refs/heads/main": "55" * 20},
    )
    assert all(getattr(kept, each.name) for each in fields(kept))

    journal.write(tmp_path, kept)

    assert (tmp_path / ERASURE).is_file()
    assert journal.read(tmp_path) == kept
