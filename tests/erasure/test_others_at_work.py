"""Writers and readers in other processes while history is rewritten: nothing lost, nothing torn."""

from __future__ import annotations

import subprocess
import sys

import pytest

from smp_git import Store
from smp_git.erasure.erase import erase
from tests.conftest import Clock
from tests.support import ROOT, git

WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from smp_git import Session
with Session(Path(sys.argv[1]), lambda: datetime.now(UTC)) as session:
    for number in range(40):
        print(session.add("turn", f"{sys.argv[2]} says {number}", agent=sys.argv[2]).id, flush=True)
"""
READER = """
import sys, time
from datetime import UTC, datetime
from pathlib import Path
from smp_git import Session
with Session(Path(sys.argv[1]), lambda: datetime.now(UTC)) as session:
    end = time.monotonic() + 4
    while time.monotonic() < end:
        found = session.memories()
        assert len({memory.commit for memory in found}) <= 1
        assert all(memory.content for memory in found)
"""


@pytest.mark.slow
def test_nothing_is_lost_and_nobody_reads_a_torn_state(store: Store, clock: Clock) -> None:
    with store.create_session("busy") as session:
        for number in range(8):
            session.add("decision", f"decision number {number} is about to go", agent="a")
        place = session.path
        writers = [_started(WRITER, place, f"w{number}") for number in range(2)]
        reader = _started(READER, place)
        for number in range(1, 9):
            receipt = erase(session._writer, [f"DEC-{number:04d}"], by="a", now=clock())
            assert receipt.proof.clean, receipt.proof.hits
        said = [each.communicate(timeout=120) for each in writers]
        written = [line for out, _ in said for line in out.split()]

        assert [error for _, error in said] == ["", ""]
        assert reader.communicate(timeout=60)[1] == ""
        assert [each.returncode for each in (*writers, reader)] == [0, 0, 0]
        assert len(set(written)) == 80
        assert {memory.id for memory in session.memories()} == set(written)
    assert git(place, "fsck", "--full", "--strict", "--no-dangling") == ""


def _started(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
