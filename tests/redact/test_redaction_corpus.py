"""How exact redaction is on the corpus in `tests/data/redaction`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from smp_git.redact import PATTERNS, redact

DATA = Path(__file__).parent.parent / "data" / "redaction"
PRECISION = 0.98
RECALL = 0.97


def read(name: str) -> list[Any]:
    lines = (DATA / name).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def is_found(sample: dict[str, Any]) -> bool:
    """Say whether just the secret is replaced, under the expected name."""
    secret = "".join(sample["secret"])
    expected = f"{sample['before']}[REDACTED:{sample['name']}]{sample['after']}"
    return redact(sample["before"] + secret + sample["after"]).text == expected


def test_precision_and_recall_stay_within_bounds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    positive, negative = read("positive.jsonl"), read("negative.jsonl")

    hits = sum(is_found(sample) for sample in positive)
    false = [s["text"] for s in negative if redact(s["text"]).text != s["text"]]
    precision, recall = hits / (hits + len(false)), hits / len(positive)
    with capsys.disabled():
        print(f"\nredaction: precision {precision:.3f}, recall {recall:.3f}")

    assert precision >= PRECISION
    assert recall >= RECALL


def test_the_corpus_is_large_and_covers_every_pattern() -> None:
    positive, negative = read("positive.jsonl"), read("negative.jsonl")

    assert min(len(positive), len(negative)) >= 150
    assert {s["name"] for s in positive} == {p.name for p in PATTERNS}


def test_no_file_of_the_corpus_holds_a_whole_token() -> None:
    text = (DATA / "positive.jsonl").read_text(encoding="utf-8")
    tokens = [p for p in PATTERNS if p.name.endswith(("-token", "-key", "jwt"))]

    assert redact(text, tokens).found == ()
