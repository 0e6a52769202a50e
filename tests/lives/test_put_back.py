"""Plain Git puts an old version of a living memory back: the memory lives on, without what is gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from smp_git import Session
from tests import independent_scan
from tests.lives.meeting import Meeting, X, Y, reachable
from tests.lives.plain import run
from tests.support import own
from tests.sync.support import Machine

# What began another life of the memory, and what a field says then.
ENDS = {
    "redact": (("redact x",), f"alpha [REDACTED] bravo {Y} charlie"),
    "delete and restore": (("delete", "restore"), f"alpha {X} bravo {Y} charlie"),
}
TYPED = "typed: at the kitchen table\n"


def _sync(meeting: Meeting, name: str) -> None:
    meeting.notes[name] += meeting.sessions[name].sync().notes


def _moved_there(meeting: Meeting) -> None:
    meeting.sessions["A"].edit("DEC-0002", **own(side_note="meanwhile"))
    _sync(meeting, "A")
    _sync(meeting, "B")


def _pushed(meeting: Meeting) -> None:
    assert run(meeting.sessions["B"].path, "push", "-q", str(meeting.remotes[0]), "main")
    _sync(meeting, "A")


def _pushed_and_cloned(meeting: Meeting) -> None:
    assert run(meeting.sessions["B"].path, "push", "-q", str(meeting.remotes[0]), "main")
    machine = meeting.machines["C"] = Machine(meeting.remotes[0].parent, "C")
    clone = machine.clone(meeting.remotes[0])
    meeting.sessions["C"] = clone
    meeting.notes["C"] = []
    clone.add("finding", "from the clone", agent="c")
    clone.sync()


# What comes upon it first.
FIRST: dict[str, Callable[[Meeting], object]] = {
    "sync": lambda meeting: _sync(meeting, "B"),
    "sync with more": _moved_there,
    "delete another": lambda meeting: meeting.sessions["B"].delete("DEC-0002"),
    "purge another": lambda meeting: meeting.sessions["B"].delete("DEC-0002", purge=True),
    "redact another": lambda meeting: meeting.sessions["B"].redact("of no weight"),
    "redact it": lambda meeting: meeting.sessions["B"].redact("alpha"),
    "push": _pushed,
    "push and clone": _pushed_and_cloned,
}


def _put_back(session: Session, old: str) -> None:
    session.check()
    session.file("DEC-0001").write_text(old)
    assert run(session.path, "commit", "-q", "-a", "-m", "as it was")


@pytest.fixture
def meeting(tmp_path: Path) -> Meeting:
    found = Meeting(tmp_path)
    found.sessions["A"].add("decision", "a word of no weight", agent="a")
    found.settle("AB")
    return found


@pytest.mark.parametrize("typed", ["", TYPED], ids=["as it was", "with more"])
@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("end", ENDS)
def test_a_memory_lives_on_past_an_old_version_of_it(meeting: Meeting, tmp_path: Path, end: str, first: str, typed: str) -> None:  # fmt: skip
    b = meeting.sessions["B"]
    old = b.file("DEC-0001").read_text()
    steps, text = ENDS[end]
    meeting.do("A", steps)
    meeting.settle("AB")
    _put_back(b, old + typed)

    FIRST[first](meeting)
    meeting.settle("".join(meeting.sessions))

    if first == "redact it":
        text = text.replace("alpha", "[REDACTED]")
    for session in meeting.sessions.values():
        assert session.get("DEC-0001").fields["rationale"] == text
    assert meeting.problems() == []
    if end == "redact":
        for name in meeting.sessions:
            for where, data in independent_scan.everything(tmp_path / name):
                assert X.encode() not in data, where
        assert X.encode() not in reachable(meeting.remotes[0])
    if first != "redact it" and not first.endswith("another"):
        said = [each for notes in meeting.notes.values() for each in notes]
        assert any(each.startswith("DEC-0001: plain Git had put an old version back") for each in said)  # fmt: skip
