"""How exact redaction is on the corpus in `tests/data/redaction`.

`positive` and `negative` were collected by hand. The other files are made of frames by
`tests/redact/samples.py`, before the patterns for them were written; what is held out
was not looked at while they were.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from smp_git.model.secrets.patterns import PATTERNS
from smp_git.model.secrets.redaction import redact
from tests.redact.samples import HELD_OUT, PARTS, WRITING

DATA = Path(__file__).parent.parent / "data" / "redaction"
PRECISION = 0.98
RECALL = 0.97
HELD_OUT_RECALL = 0.95
# What stands for a secret; the address of a webhook may stay before it.
_PLACEHOLDER = re.compile(r"(?:https://[\w./]+)?\[REDACTED:[a-z0-9-]+\]")


def read(name: str) -> list[Any]:
    lines = (DATA / name).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def is_found(sample: dict[str, Any]) -> bool:
    """Say whether just the secret is replaced, under the expected name."""
    secret = "".join(sample["secret"])
    expected = f"{sample['before']}[REDACTED:{sample['name']}]{sample['after']}"
    return redact(sample["before"] + secret + sample["after"]).text == expected


def is_replaced(sample: dict[str, Any]) -> bool:
    """Say whether just the secret is replaced, under whatever name."""
    before, after = sample["before"], sample["after"]
    text = redact(before + "".join(sample["secret"]) + after).text
    around = text.startswith(before) and text.endswith(after)
    return around and bool(_PLACEHOLDER.fullmatch(text[len(before) : len(text) - len(after)]))


def false_alarms(name: str) -> list[str]:
    return [s["text"] for s in read(name) if redact(s["text"]).text != s["text"]]


def test_precision_and_recall_stay_within_bounds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    positive = read("positive.jsonl")

    hits = sum(is_found(sample) for sample in positive)
    false = false_alarms("negative.jsonl")
    precision, recall = hits / (hits + len(false)), hits / len(positive)
    with capsys.disabled():
        print(f"\nredaction: precision {precision:.3f}, recall {recall:.3f}")

    assert precision >= PRECISION
    assert recall >= RECALL


@pytest.mark.parametrize("part", PARTS)
def test_secrets_of_both_parts_are_found(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    secrets = read(f"{part}_secrets.jsonl")

    missed = [sample for sample in secrets if not is_replaced(sample)]
    recall = 1 - len(missed) / len(secrets)
    with capsys.disabled():
        print(f"\nredaction, {part}: recall {recall:.3f} of {len(secrets)}")

    assert recall >= HELD_OUT_RECALL


@pytest.mark.parametrize("part", PARTS)
def test_no_lookalike_of_either_part_is_taken_for_a_secret(part: str) -> None:
    assert false_alarms(f"{part}_lookalikes.jsonl") == []


def test_the_corpus_is_large_and_covers_every_pattern() -> None:
    positive, negative = read("positive.jsonl"), read("negative.jsonl")

    assert min(len(positive), len(negative)) >= 150
    assert {s["name"] for s in positive} == {p.name for p in PATTERNS}
    for kind in ("secrets", "lookalikes"):
        assert len(read(f"{HELD_OUT}_{kind}.jsonl")) >= 250
        assert len(read(f"{WRITING}_{kind}.jsonl")) >= 250


@pytest.mark.parametrize("name", ["positive.jsonl", *(f"{part}_secrets.jsonl" for part in PARTS)])
def test_no_file_of_the_corpus_holds_a_whole_token(name: str) -> None:
    text = (DATA / name).read_text(encoding="utf-8")
    tokens = [p for p in PATTERNS if p.name.endswith(("-token", "-key", "jwt"))]

    assert redact(text, tokens).found == ()
