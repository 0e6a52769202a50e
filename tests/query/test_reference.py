"""The reference of queries lists what there is."""

from __future__ import annotations

import re

from smp_git.ask.conditions import _OPERATOR_ALIASES, ALIASES, OPERATORS
from smp_git.ask.request import CONFIDENCES, COUNTED, MEASURES, PARTS, RANGES
from smp_git.model.decay import PRESETS
from tests.support import ROOT

DOCS = ROOT / "docs"


def section(page: str, heading: str) -> str:
    text = (DOCS / page).read_text()
    return re.split(r"^## ", text.partition(f"\n## {heading}\n")[2], flags=re.MULTILINE)[0]


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of a section's table, without its head."""
    lines = [line for line in section(page, heading).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def words(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_every_part_is_listed_with_its_other_names() -> None:
    listed = {name: part for row in rows("reference/query.md", "Parts") for part in words(row[0]) for name in (part, *words(row[1]))}  # fmt: skip
    assert listed == dict(PARTS)


def test_every_operator_is_listed_with_its_other_names() -> None:
    table = rows("reference/query.md", "Conditions")
    assert [words(row[0])[0] for row in table] == list(OPERATORS)
    assert {name: words(row[0])[0] for row in table for name in words(row[1])} == dict(_OPERATOR_ALIASES)  # fmt: skip


def test_every_alias_of_a_field_is_listed() -> None:
    assert {words(row[0])[0]: words(row[1])[0] for row in rows("reference/query.md", "Aliases")} == dict(ALIASES)  # fmt: skip


def test_spellings_of_other_formats_are_listed() -> None:
    listed = words(section("reference/query.md", "Other spellings"))
    assert {*RANGES, *CONFIDENCES} <= set(listed)


def test_aggregations_are_listed() -> None:
    counts, measures = section("reference/query.md", "Aggregations").strip().split("\n\n")[:2]
    assert words(counts)[:4] == ["count", *COUNTED]
    assert words(measures) == list(MEASURES)


def test_the_numbers_of_decay_are_those_of_the_default() -> None:
    listed = {row[0]: tuple(map(float, row[1:])) for row in rows("explanation/ranking.md", "Priority")}  # fmt: skip
    rules = PRESETS["default"].rules
    assert listed == {kind: (rule.base, rule.rate, rule.boost, rule.floor) for kind, rule in rules.items()}  # fmt: skip
