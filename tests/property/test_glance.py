"""A glance at a file tells the same line as reading it, or nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smp_git.format import document, glance
from smp_git.model.errors import InvalidFileError
from smp_git.model.ids import parse_id
from smp_git.model.memory import Memory
from smp_git.read.pages import line_of, row_of
from tests import strategies

# What people and other programs do to a file, and what its writers must never do.
_BITS = (
    "\n", " ", "  ", "- ", ":", ": ", "|", "|-\n", '"', "'", "#", " # why", "---\n", "\t", "\0", "\r", "\x85",
    "\u2028", "\ufeff", "a: b\n", "  a: b\n", "- a\n", "tags: []\n", "tags:\n- x\n", "id: x\n", "links: {}\n",
    "kind: turn\n", "generation: 2\n", "generation: 1\n", "life: brightly\n", "life:\n", "title: |\n  two\n  lines\n", 'title: " "\n', "title: null\n", "pinned: true\n", "pinned: 1\n",
    "status: open\n", "status: 5\n", "resolution:\n  status: done\n", "key: k\n", "topic: t\n", "confidence: .5\n",
    "tokens: -1\n", "turn_ref: 12\n", "created_at: 2026-01-01\n", 'updated_at: "2026-01-01T24:00:00Z"\n', 'updated_at: "2026-01-01T00:00:00.000000Z"\n',
    "on: x\n", "{}\n", "9", "é", "decision: x\n", "content: x\n", "agent: Ada Lovelace\n", "agent: 5\n",
)  # fmt: skip


def _both(file: bytes, memory: Memory) -> tuple[str | None, str | None]:
    place = parse_id(memory.id)
    try:
        read = row_of(file, place.path, "b" * 40)[0]
    except InvalidFileError:
        read = None
    return glance.line(file, place, "b" * 40), read


@settings(max_examples=200)
@given(strategies.memories())
def test_a_glance_tells_what_reading_tells(memory: Memory) -> None:
    seen, read = _both(document.encode(memory), memory)

    assert seen in (None, read)


@settings(max_examples=300)
@given(strategies.memories(), st.data())
def test_whatever_was_done_to_the_file(memory: Memory, data: st.DataObject) -> None:
    text = document.encode(memory).decode()
    for _ in range(data.draw(st.integers(1, 3))):
        starts = [0, *(at + 1 for at, letter in enumerate(text) if letter == "\n")]
        at = data.draw(st.sampled_from(starts) | st.integers(0, len(text)))
        gone = data.draw(st.sampled_from((0, 0, 1, 3)))
        text = text[:at] + data.draw(st.sampled_from(_BITS)) + text[at + gone :]
    seen, read = _both(text.encode(), memory)

    assert seen in (None, read)


_USUAL = {
    "DEC-0042": """id: DEC-0042
kind: decision
created_at: "2026-01-11T14:30:00.250000Z"
updated_at: "2026-01-12T14:30:00Z"
agent: architect
turn_ref: turn-0003
title: "Use OAuth: 2.0"
decision: |
  Use OAuth 2.0 with é.

  It is safe.
rationale: "Because: it is."
alternatives:
- basic auth
- name: SAML
  reason: too large
impact: high
confidence: high
pinned: true
tags:
- security
- area.login
links:
- resolves: FIND-0001
""",
    "turn-0001": """---
id: turn-0001
kind: turn
created_at: "2026-01-11T14:30:00Z"
agent: user
speaker: Ada
role: user
tokens: 12
---

 \u3000How are you?
""",
    "FIND-0007-k3fq": """id: FIND-0007-k3fq
kind: finding
created_at: "2026-01-11T14:30:00Z"
agent: veritas
finding: a short one
severity: critical
location:
  file: a.py
  line: 12
importance: 0.5
""",
}


@pytest.mark.parametrize("name", _USUAL)
def test_the_usual_takes_no_more_than_a_glance(name: str) -> None:
    place, file = parse_id(name), _USUAL[name].encode()

    assert glance.line(file, place, "b") == row_of(file, place.path, "b")[0]


def test_what_a_glance_cannot_judge_is_read() -> None:
    place, file = parse_id("DEC-0042"), _USUAL["DEC-0042"].replace("high", "high # sure").encode()

    assert glance.line(file, place, "b") is None
    assert line_of(file, place, "b") == row_of(file, place.path, "b")[0]
    with pytest.raises(InvalidFileError, match="DEC-0042"):
        line_of(file.replace(b"DEC-0042", b"DEC-0043"), place, "b")
