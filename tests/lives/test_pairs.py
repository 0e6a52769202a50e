"""Every operation against every other on one memory, on two replicas, in both orders of syncing.

The outcomes are those of docs/explanation/when-deletions-meet.md. `as it was` is the
first text of field f, `-x` the same without x; g is named where it changed. Two outcomes
mean that the order of syncing decides who may restore a copy: the first where A syncs
first, the second where B does. Whoever syncs last keeps what no remote ever had.

The table is written down, and read by tests of its own: it has the rows of the page, and
breaks none of its sentences.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Final

import pytest

from tests.lives.meeting import OPERATIONS, Meeting, X, Y

pytestmark = pytest.mark.slow

# On A, on B, and what stands everywhere once both have synced three times.
EXPECTED: Final = """
nothing | nothing | f: as it was
nothing | edit f | f: new bside ftext
nothing | edit g | f: as it was; g: new bside gtext
nothing | edit g with x | f: as it was; g: has xantippe bside
nothing | delete | gone, can be restored at B
nothing | purge | gone
nothing | remove | gone
nothing | delete, restore | f: as it was
nothing | delete, restore, edit g | f: as it was; g: new bside gtext
nothing | redact x | f: -x
nothing | redact y | f: -y
nothing | redact x, edit f | f: new bside ftext
nothing | edit f, redact x | f: new bside ftext
nothing | redact x, delete | gone, can be restored at B
nothing | redact x, delete, restore | f: -x
edit f | nothing | f: new aside ftext
edit f | edit f | f: new aside ftext
edit f | edit g | f: new aside ftext; g: new bside gtext
edit f | edit g with x | f: new aside ftext; g: has xantippe bside
edit f | delete | gone, can be restored at B / gone, can be restored at AB
edit f | purge | gone
edit f | remove | f: new aside ftext
edit f | delete, restore | f: as it was
edit f | delete, restore, edit g | f: as it was; g: new bside gtext
edit f | redact x | f: new aside ftext
edit f | redact y | f: new aside ftext
edit f | redact x, edit f | f: new aside ftext
edit f | edit f, redact x | f: new aside ftext
edit f | redact x, delete | gone, can be restored at B
edit f | redact x, delete, restore | f: new aside ftext
edit g | nothing | f: as it was; g: new aside gtext
edit g | edit f | f: new bside ftext; g: new aside gtext
edit g | edit g | f: as it was; g: new aside gtext
edit g | edit g with x | f: as it was; g: new aside gtext
edit g | delete | gone, can be restored at B / gone, can be restored at AB
edit g | purge | gone
edit g | remove | f: as it was; g: new aside gtext
edit g | delete, restore | f: as it was
edit g | delete, restore, edit g | f: as it was; g: new bside gtext
edit g | redact x | f: -x; g: new aside gtext
edit g | redact y | f: -y; g: new aside gtext
edit g | redact x, edit f | f: new bside ftext; g: new aside gtext
edit g | edit f, redact x | f: new bside ftext; g: new aside gtext
edit g | redact x, delete | gone, can be restored at B
edit g | redact x, delete, restore | f: -x; g: new aside gtext
edit g with x | nothing | f: as it was; g: has xantippe aside
edit g with x | edit f | f: new bside ftext; g: has xantippe aside
edit g with x | edit g | f: as it was; g: has xantippe aside
edit g with x | edit g with x | f: as it was; g: has xantippe aside
edit g with x | delete | gone, can be restored at B / gone, can be restored at AB
edit g with x | purge | gone
edit g with x | remove | f: as it was; g: has xantippe aside
edit g with x | delete, restore | f: as it was
edit g with x | delete, restore, edit g | f: as it was; g: new bside gtext
edit g with x | redact x | f: -x; g: has [REDACTED] aside
edit g with x | redact y | f: -y; g: has xantippe aside
edit g with x | redact x, edit f | f: new bside ftext; g: has [REDACTED] aside
edit g with x | edit f, redact x | f: new bside ftext; g: has [REDACTED] aside
edit g with x | redact x, delete | gone, can be restored at B
edit g with x | redact x, delete, restore | f: -x; g: has [REDACTED] aside
delete | nothing | gone, can be restored at A
delete | edit f | gone, can be restored at AB / gone, can be restored at A
delete | edit g | gone, can be restored at AB / gone, can be restored at A
delete | edit g with x | gone, can be restored at AB / gone, can be restored at A
delete | delete | gone, can be restored at AB
delete | purge | gone
delete | remove | gone, can be restored at A
delete | delete, restore | f: as it was
delete | delete, restore, edit g | f: as it was; g: new bside gtext
delete | redact x | gone, can be restored at B / gone
delete | redact y | gone, can be restored at B / gone
delete | redact x, edit f | gone, can be restored at B / gone
delete | edit f, redact x | gone, can be restored at B / gone
delete | redact x, delete | gone, can be restored at B
delete | redact x, delete, restore | f: -x
purge | nothing | gone
purge | edit f | gone
purge | edit g | gone
purge | edit g with x | gone
purge | delete | gone
purge | purge | gone
purge | remove | gone
purge | delete, restore | gone
purge | delete, restore, edit g | gone
purge | redact x | gone
purge | redact y | gone
purge | redact x, edit f | gone
purge | edit f, redact x | gone
purge | redact x, delete | gone
purge | redact x, delete, restore | gone
remove | nothing | gone
remove | edit f | f: new bside ftext
remove | edit g | f: as it was; g: new bside gtext
remove | edit g with x | f: as it was; g: has xantippe bside
remove | delete | gone, can be restored at B
remove | purge | gone
remove | remove | gone
remove | delete, restore | f: as it was
remove | delete, restore, edit g | f: as it was; g: new bside gtext
remove | redact x | f: -x
remove | redact y | f: -y
remove | redact x, edit f | f: new bside ftext
remove | edit f, redact x | f: new bside ftext
remove | redact x, delete | gone, can be restored at B
remove | redact x, delete, restore | f: -x
delete, restore | nothing | f: as it was
delete, restore | edit f | f: as it was
delete, restore | edit g | f: as it was
delete, restore | edit g with x | f: as it was
delete, restore | delete | f: as it was
delete, restore | purge | gone
delete, restore | remove | f: as it was
delete, restore | delete, restore | f: as it was
delete, restore | delete, restore, edit g | f: as it was; g: new bside gtext
delete, restore | redact x | f: -x
delete, restore | redact y | f: -y
delete, restore | redact x, edit f | f: new bside ftext
delete, restore | edit f, redact x | f: new bside ftext
delete, restore | redact x, delete | gone, can be restored at B
delete, restore | redact x, delete, restore | f: -x
delete, restore, edit g | nothing | f: as it was; g: new aside gtext
delete, restore, edit g | edit f | f: as it was; g: new aside gtext
delete, restore, edit g | edit g | f: as it was; g: new aside gtext
delete, restore, edit g | edit g with x | f: as it was; g: new aside gtext
delete, restore, edit g | delete | f: as it was; g: new aside gtext
delete, restore, edit g | purge | gone
delete, restore, edit g | remove | f: as it was; g: new aside gtext
delete, restore, edit g | delete, restore | f: as it was; g: new aside gtext
delete, restore, edit g | delete, restore, edit g | f: as it was; g: new aside gtext
delete, restore, edit g | redact x | f: -x; g: new aside gtext
delete, restore, edit g | redact y | f: -y; g: new aside gtext
delete, restore, edit g | redact x, edit f | f: new bside ftext; g: new aside gtext
delete, restore, edit g | edit f, redact x | f: new bside ftext; g: new aside gtext
delete, restore, edit g | redact x, delete | gone, can be restored at B
delete, restore, edit g | redact x, delete, restore | f: -x; g: new aside gtext
redact x | nothing | f: -x
redact x | edit f | f: new bside ftext
redact x | edit g | f: -x; g: new bside gtext
redact x | edit g with x | f: -x; g: has [REDACTED] bside
redact x | delete | gone / gone, can be restored at A
redact x | purge | gone
redact x | remove | f: -x
redact x | delete, restore | f: -x
redact x | delete, restore, edit g | f: -x; g: new bside gtext
redact x | redact x | f: -x
redact x | redact y | f: -x-y
redact x | redact x, edit f | f: new bside ftext
redact x | edit f, redact x | f: [REDACTED]
redact x | redact x, delete | gone
redact x | redact x, delete, restore | f: -x
redact y | nothing | f: -y
redact y | edit f | f: new bside ftext
redact y | edit g | f: -y; g: new bside gtext
redact y | edit g with x | f: -y; g: has xantippe bside
redact y | delete | gone / gone, can be restored at A
redact y | purge | gone
redact y | remove | f: -y
redact y | delete, restore | f: -y
redact y | delete, restore, edit g | f: -y; g: new bside gtext
redact y | redact x | f: -x-y
redact y | redact y | f: -y
redact y | redact x, edit f | f: new bside ftext
redact y | edit f, redact x | f: [REDACTED]
redact y | redact x, delete | gone
redact y | redact x, delete, restore | f: -x-y
redact x, edit f | nothing | f: new aside ftext
redact x, edit f | edit f | f: new aside ftext
redact x, edit f | edit g | f: new aside ftext; g: new bside gtext
redact x, edit f | edit g with x | f: new aside ftext; g: has [REDACTED] bside
redact x, edit f | delete | gone / gone, can be restored at A
redact x, edit f | purge | gone
redact x, edit f | remove | f: new aside ftext
redact x, edit f | delete, restore | f: new aside ftext
redact x, edit f | delete, restore, edit g | f: new aside ftext; g: new bside gtext
redact x, edit f | redact x | f: new aside ftext
redact x, edit f | redact y | f: new aside ftext
redact x, edit f | redact x, edit f | f: new aside ftext
redact x, edit f | edit f, redact x | f: new aside ftext
redact x, edit f | redact x, delete | gone
redact x, edit f | redact x, delete, restore | f: new aside ftext
edit f, redact x | nothing | f: new aside ftext
edit f, redact x | edit f | f: new aside ftext
edit f, redact x | edit g | f: new aside ftext; g: new bside gtext
edit f, redact x | edit g with x | f: new aside ftext; g: has [REDACTED] bside
edit f, redact x | delete | gone / gone, can be restored at A
edit f, redact x | purge | gone
edit f, redact x | remove | f: new aside ftext
edit f, redact x | delete, restore | f: new aside ftext
edit f, redact x | delete, restore, edit g | f: new aside ftext; g: new bside gtext
edit f, redact x | redact x | f: [REDACTED]
edit f, redact x | redact y | f: [REDACTED]
edit f, redact x | redact x, edit f | f: [REDACTED]
edit f, redact x | edit f, redact x | f: new [REDACTED] ftext
edit f, redact x | redact x, delete | gone
edit f, redact x | redact x, delete, restore | f: [REDACTED]
redact x, delete | nothing | gone, can be restored at A
redact x, delete | edit f | gone, can be restored at A
redact x, delete | edit g | gone, can be restored at A
redact x, delete | edit g with x | gone, can be restored at A
redact x, delete | delete | gone, can be restored at A
redact x, delete | purge | gone
redact x, delete | remove | gone, can be restored at A
redact x, delete | delete, restore | gone, can be restored at A
redact x, delete | delete, restore, edit g | gone, can be restored at A
redact x, delete | redact x | gone
redact x, delete | redact y | gone
redact x, delete | redact x, edit f | gone
redact x, delete | edit f, redact x | gone
redact x, delete | redact x, delete | gone
redact x, delete | redact x, delete, restore | gone
redact x, delete, restore | nothing | f: -x
redact x, delete, restore | edit f | f: -x
redact x, delete, restore | edit g | f: -x
redact x, delete, restore | edit g with x | f: -x
redact x, delete, restore | delete | f: -x
redact x, delete, restore | purge | gone
redact x, delete, restore | remove | f: -x
redact x, delete, restore | delete, restore | f: -x
redact x, delete, restore | delete, restore, edit g | f: -x; g: new bside gtext
redact x, delete, restore | redact x | f: -x
redact x, delete, restore | redact y | f: -x-y
redact x, delete, restore | redact x, edit f | f: -x
redact x, delete, restore | edit f, redact x | f: [REDACTED] [REDACTED] [REDACTED]
redact x, delete, restore | redact x, delete | gone
redact x, delete, restore | redact x, delete, restore | f: -x
"""
ROWS: Final = [tuple(line.split(" | ")) for line in EXPECTED.strip().splitlines()]
TABLE: Final = {(here, there): outcome for here, there, outcome in ROWS}
_TEXTS: Final = {
    "as it was": f"alpha {X} bravo {Y} charlie",
    "-x": f"alpha [REDACTED] bravo {Y} charlie",
    "-y": f"alpha {X} bravo [REDACTED] charlie",
    "-x-y": "alpha [REDACTED] bravo [REDACTED] charlie",
}


def test_no_pair_is_left_out() -> None:
    assert {(a, b) for a, b, _ in ROWS} == {(a, b) for a in OPERATIONS for b in OPERATIONS}


# What the page says of two operations, whichever side does which. `here` and `there` are
# the sides of the page.
SENTENCES: Final = """
redact x | redact y | f: -x-y
redact x | delete, restore | f: -x
redact x | delete, restore, edit g | f: -x; g: new there gtext
redact x | edit g | f: -x; g: new there gtext
redact x | edit g with x | f: -x; g: has [REDACTED] there
redact x | edit f | f: new there ftext
redact x | remove | f: -x
edit f, redact x | delete, restore | f: new here ftext
delete | edit f | gone
delete | redact x, edit f | gone
delete | redact x | gone
redact x, delete | delete, restore | gone, can be restored at here
redact x, delete | delete, restore, edit g | gone, can be restored at here
delete | delete, restore | f: as it was
delete | delete, restore, edit g | f: as it was; g: new there gtext
delete, restore | edit g | f: as it was
delete, restore | delete, restore, edit g | f: as it was; g: new there gtext
remove | edit f | f: new there ftext
remove | edit g | f: as it was; g: new there gtext
"""


@pytest.mark.parametrize("sentence", SENTENCES.strip().splitlines())
def test_the_table_has_what_the_page_says(sentence: str) -> None:
    here, there, outcome = sentence.split(" | ")
    side = {"A": "aside", "B": "bside"}
    for one, other, (mine, theirs) in ((here, there, "AB"), (there, here, "BA")):
        wanted = outcome.replace("at here", f"at {mine}")
        wanted = wanted.replace("there", side[theirs]).replace("here", side[mine])
        found = TABLE[one, other].split(" / ")
        assert all(each == wanted or (wanted == "gone" and each.startswith("gone")) for each in found), (one, other)  # fmt: skip


@pytest.mark.parametrize(("here", "there"), list(product(OPERATIONS, repeat=2)))
def test_the_table_breaks_no_promise(here: str, there: str) -> None:
    outcome = TABLE[here, there]
    steps = [*OPERATIONS[here], *OPERATIONS[there]]
    if "purge" in steps:
        assert outcome == "gone"
    if "redact x" in steps:
        assert X not in outcome
        assert "as it was" not in outcome
        assert outcome != "f: -y"
    if "redact y" in steps:
        assert "as it was" not in outcome
        assert outcome != "f: -x"
    if not {"delete", "purge", "remove"} & set(steps):
        assert not outcome.startswith("gone")
        for side, operation in (("aside", here), ("bside", there)):
            # What one side alone wrote in a field stands; words may be masked beside a redaction.
            other = there if operation == here else here
            if operation == "edit g" and "edit g" not in other:
                assert f"new {side} gtext" in outcome
            if operation == "edit f" and "edit f" not in other:
                assert f"new {side} ftext" in outcome
    if "restore" in steps and "purge" not in steps and "remove" not in steps and "redact x, delete" not in {here, there}:  # fmt: skip
        assert not outcome.startswith("gone")


def _said(outcome: str) -> str:
    """Return an outcome as the table has it."""
    for short, text in _TEXTS.items():
        outcome = outcome.replace(text, short)
    return outcome.replace(" g=delta echo", "").replace("f=", "f: ").replace(" g=", "; g: ")


@pytest.mark.parametrize("order", ["AB", "BA"])
@pytest.mark.parametrize(
    ("here", "there", "expected"), ROWS, ids=[f"{a} - {b}" for a, b, _ in ROWS]
)
def test_outcome_is_as_told(tmp_path: Path, here: str, there: str, expected: str, order: str) -> None:  # fmt: skip
    meeting = Meeting(tmp_path)
    meeting.do("A", OPERATIONS[here])
    meeting.do("B", OPERATIONS[there])
    meeting.settle(order)

    assert meeting.problems() == []
    first, _, second = expected.partition(" / ")
    assert _said(meeting.shown()) == (second if second and order == "BA" else first)
