"""Stores of every format stay readable, and what is written today has the same bytes."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from smp_git import Store
from tests import golden
from tests.support import git

# The files are frozen: a change of them is a new format, which has a folder of its own.
SUMS = {
    "memories.json": "523b35df17fd253fe11871869121faa0d2970507d369afd4d0754854089b61ab",
    "session.export": "aa5070fccb55d5f782cc8b2270b924a5a553b35ca52f238e0f39a71b1a97a2f7",
}


def test_no_golden_file_has_changed() -> None:
    found = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in golden.FORMAT_1.iterdir()
    }

    assert found == SUMS


def said(text: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(text)
    return found


def frozen() -> list[dict[str, object]]:
    """Return what the memories said in format 1, with the life that a generation is."""
    found = said((golden.FORMAT_1 / "memories.json").read_text())
    assert {each.pop("generation") for each in found} == {1}
    return [{**each, "life": None} for each in found]


def test_store_of_format_1_opens_and_says_the_same(tmp_path: Path) -> None:
    place = golden.restored(tmp_path)
    with Store.open(tmp_path / "store").session("golden") as session:
        assert said(golden.memories_of(session)) == frozen()
        assert session.check() == ()
        assert session.undo().touches
    assert git(place, "fsck", "--strict", "--no-dangling") == ""


def test_the_same_story_gives_the_same_bytes_and_commits(tmp_path: Path) -> None:
    place = golden.build(tmp_path)

    assert golden.export(place) == (golden.FORMAT_1 / "session.export").read_bytes()


def test_golden_store_can_be_written_on_under_a_new_tag(tmp_path: Path) -> None:
    golden.restored(tmp_path)
    with Store.open(tmp_path / "store").session("golden") as session:
        memory = session.add("decision", "Use nothing", agent="ada")

    assert re.fullmatch(r"DEC-\d{4}-[a-z][a-z0-9]{3}", memory.id)
