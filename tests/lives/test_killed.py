"""A sync that brings what redactions left, killed at each step of its journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.remove.history import journal
from tests.crash.children import DIED, die_at, ended
from tests.lives.meeting import Meeting, X, Y


def _opened(meeting: Meeting, name: str) -> Session:
    machine = meeting.machines[name]
    return Store.open(machine.store.path, clock=machine.clock).session("shop")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("call", range(1, 6))
def test_what_two_redactions_left_is_there_after_a_kill(tmp_path: Path, call: int) -> None:
    meeting = Meeting(tmp_path)
    meeting.do("A", ("edit g", "redact x"))
    meeting.do("B", ("redact y",))
    meeting.sessions["B"].sync()
    meeting.sessions["A"].close()

    def killed() -> None:
        session = _opened(meeting, "A")
        die_at((journal, "write"), leaving=True, call=call)
        session.sync()

    assert ended(killed) == DIED
    meeting.sessions["A"] = session = _opened(meeting, "A")
    assert session.get("DEC-0001").content == "kiwi"
    meeting.settle("AB")
    assert meeting.problems() == []
    text = session.get("DEC-0001").fields["rationale"]
    assert text == "alpha [REDACTED] bravo [REDACTED] charlie"
    assert X not in str(text) and Y not in str(text)
