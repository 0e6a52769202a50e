"""Maintenance beside writers, beside other maintainers, and on a disk that is full."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from smp_git import Store
from tests.concurrency.writers import COMMAND, LIBRARY, assert_sound, writing
from tests.conftest import Clock
from tests.crash.disks import mounted, run
from tests.life.test_maintenance import SECRET, configured, filled
from tests.support import ROOT, smp

pytestmark = pytest.mark.slow

MAINTAINS = """
import json, sys, time
from smp_git import Store
from smp_git.git import packing
from smp_git.keep import maintenance
maintenance._WORTH_PACKING, packing._MOST_PACKS = 20, 2
rounds, steps, failed = 0, set(), {}
store, end = Store.open(sys.argv[1]), time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    done = store.maintain()
    rounds += 1
    steps |= {each.step for each in done.actions}
    failed |= {name: str(error) for name, error in done.failed.items()}
print(json.dumps([rounds, sorted(steps), failed]))
"""


def test_writers_go_on_beside_two_maintainers(tmp_path: Path) -> None:
    store = Store.init(tmp_path / "store")
    store.create_session("busy").close()
    with store.create_session("gone") as session:
        session.add("finding", SECRET, agent="a")
    store.delete_session("gone")
    maintainers = [
        subprocess.Popen([sys.executable, "-c", MAINTAINS, str(store.path), "12"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]  # fmt: skip
    with writing(store.path, 80, [LIBRARY, LIBRARY, COMMAND]) as writers:
        for writer in writers[:2]:
            writer.waited()
        names = [name for writer in writers for name in writer.acknowledged()]
    found = [each.communicate(timeout=120) for each in maintainers]
    assert [each.returncode for each in maintainers] == [0, 0], found
    told = [json.loads(out) for out, _ in found]
    assert all(failed == {} for _, _, failed in told), told
    assert "packing" in {step for _, steps, _ in told for step in steps}
    assert_sound(store.path, names)


def test_a_full_disk_stops_what_needs_room_and_the_next_run_does_it(tmp_path: Path) -> None:
    clock = Clock()
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=30m", "none") as place:
        store = Store.init(place / "store", clock=clock)
        more = f"auto_purge: on\nretention: {{turn: 20}}\nkey_dir: {tmp_path / 'keys'}"
        store = configured(store, more)
        filled(store)
        with store.session("shop") as session:
            session.add("decision", "stays", agent="a")
            session.delete(session.add("finding", SECRET, agent="a").id)
        filled(store, "gone", 2)
        store.delete_session("gone")
        clock.now += timedelta(days=50)
        free = os.statvfs(place)
        (place / "filler").write_bytes(bytes(free.f_bavail * free.f_frsize))
        done = store.maintain()
        assert any("bytes are free" in note for note in done.notes)
        assert all("disk is full" in error.message for error in done.failed.values()), done.failed
        told = smp("--root", store.path, "maintain", "--all-sessions", check=False)
        assert "Traceback" not in told.stderr
        with store.session("shop") as session:
            assert "DEC-0001" in {memory.id for memory in session.memories()}
        (place / "filler").unlink()
        assert store.maintain().failed == {}
        assert store.check() == ()
        assert store.deleted_sessions() == ()


def test_a_read_only_disk_is_told(tmp_path: Path) -> None:
    clock = Clock()
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=30m", "none") as place:
        store = Store.init(place / "store", clock=clock)
        filled(store)
        clock.now += timedelta(days=50)
        run("mount", "-o", "remount,ro", place)
        told = smp("--root", store.path, "maintain", "--all-sessions", check=False)
        assert (told.returncode, "Traceback" in told.stderr) == (11, False), told.stderr
        assert "read-only" in told.stderr
        run("mount", "-o", "remount,rw", place)
        assert store.maintain().failed == {}
