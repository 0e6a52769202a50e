"""Deleting, restoring and writing at once: nothing is lost, nothing comes back by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from smp_git import Store
from tests.support import ROOT

pytestmark = pytest.mark.slow

WORK = {
    "deletes": 'session.delete(f"DEC-{n:04d}")',
    "comes and goes": 'session.delete(f"FIND-{n:04d}"); session.restore(f"FIND-{n:04d}")',
    "lists": "session.trash()",
    "adds": 'session.add("turn", f"said {n}")',
}


def test_deleting_restoring_listing_and_adding_at_once(tmp_path: Path) -> None:
    store = Store.init(tmp_path / "store")
    (store.path / "config.yaml").write_text("format: 1\nlock_timeout_seconds: 60\n")
    with store.create_session("shop") as session, session.transaction() as t:
        for _ in range(8):
            t.add("decision", "to go")
            t.add("finding", "to go and come")
    code = "import sys\nfrom smp_git import Store\nwith Store.open(sys.argv[1]).session('shop') as session:\n    for n in range(1, 9): {}"  # fmt: skip
    children = [
        subprocess.Popen([sys.executable, "-c", code.format(act), str(store.path)], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for act in WORK.values()
    ]  # fmt: skip
    for child in children:
        _, said = child.communicate(timeout=300)
        assert child.returncode == 0, said

    store = Store.open(store.path)
    with store.session("shop") as session:
        ids = [memory.id for memory in session.memories()]
        assert len([name for name in ids if name.startswith("turn")]) == 8
        assert [name for name in ids if name.startswith("DEC")] == []
        assert len([name for name in ids if name.startswith("FIND")]) == 8
        assert sorted({item.id for item in session.trash()}) == [
            f"DEC-{n:04d}" for n in range(1, 9)
        ]
        assert session.verify().clean
    assert store.check() == ()
