"""Stores of every format stay readable, and what is written today has the same bytes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from smp_git import Store
from tests import golden
from tests.support import git, own

# The files are frozen: a change of them is a new format, which has a folder of its own.
SUMS = {
    "format-1/memories.json": "523b35df17fd253fe11871869121faa0d2970507d369afd4d0754854089b61ab",
    "format-1/session.export": "aa5070fccb55d5f782cc8b2270b924a5a553b35ca52f238e0f39a71b1a97a2f7",
    "format-1-apart/A.export": "03a65997c6f3bee93f31f0dfc7b608274cc23eab603542d513750874f40e5083",
    "format-1-apart/B.export": "20df8cf496069905e54fce32d3a7eeff445bfaad84a87d620c40cf2bc9cb6fea",
    "format-1-apart/hub.export": "8417660706a596fac6426802070fdf90efc70e900802b28be72a20393e729696",
    "format-2/memories.json": "1f030121f431e2e1de0735059b07328845f085d3a9066737c7240fd869a3c142",
    "format-2/session.export": "10c3bf70cea45d883457f2497ec38cf70ca4bd808b04675d1446c17644df6ce2",
    "format-3/memories.json": "3a8a379d1336103f1ca7103165db6c736b3b53c7cb27b34f17f6b1aa8d0d5d28",
    "format-3/session.export": "e25061b3ac8daf0dd2c2b0736612596074eddbd1cf0846c561c4121851710a68",
    "rule-3/memories.json": "127f44e83521c0e35e8bd90b2ead204cb8176aa27d999cde7bf7a56aa739e3ab",
    "rule-3/session.export": "57d427c9a5d399e03e512bbf27ab81ce07bd1252c087077cdd848bed5b0800d2",
    "write-ahead/memories.json": "dc89f17c405444814ce865013bd2f65be75a7eb06a80d3021c280856279b3b09",
    "write-ahead/redo": "7634ffc32d495a6cde85ed5c4d0ad5517047a0dc41860c7133d10528934177a1",
    "write-ahead/session.export": "c55602fd8629beb60aa3b812e013549cdc0d294b7de71b2620d91693d5e7c1e0",
}


def test_no_golden_file_has_changed() -> None:
    found = {
        f"{file.parent.name}/{file.name}": hashlib.sha256(file.read_bytes()).hexdigest()
        for file in golden.GOLDEN.glob("*/*")
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
        before = session.metadata.format
        assert session.undo().touches
        assert (before, session.metadata.format) == (1, 2)
        assert session.check() == ()
    assert git(place, "fsck", "--strict", "--no-dangling") == ""


def test_store_of_format_2_opens_and_says_the_same(tmp_path: Path) -> None:
    place = golden.restored(tmp_path, golden.FORMAT_2)
    with Store.open(tmp_path / "store").session("golden") as session:
        assert said(golden.memories_of(session)) == said((golden.FORMAT_2 / "memories.json").read_text())  # fmt: skip
        assert session.check() == ()
    assert git(place, "fsck", "--strict", "--no-dangling") == ""


def test_store_of_format_3_opens_and_says_the_same(tmp_path: Path) -> None:
    place = golden.restored(tmp_path, golden.FORMAT_3)
    with Store.open(tmp_path / "store").session("golden") as session:
        assert said(golden.memories_of(session)) == said((golden.FORMAT_3 / "memories.json").read_text())  # fmt: skip
        assert session.check() == ()
        assert session.values().get(("users", "u1", "profile")).value == "now a text"  # type: ignore[union-attr]
    assert git(place, "fsck", "--strict", "--no-dangling") == ""


def test_store_of_rule_3_opens_and_says_the_same(tmp_path: Path) -> None:
    place = golden.restored(tmp_path, golden.RULE_3)
    with Store.open(tmp_path / "store").session("golden") as session:
        assert said(golden.memories_of(session)) == said((golden.RULE_3 / "memories.json").read_text())  # fmt: skip
        assert session.check() == ()
        assert session.metadata.rule == 3
        session.delete("DEC-0001", purge=True)
        assert "[DEC-0001]" not in git(place, "log", "-p", "--format=", "main", "--", "README.md")
    assert git(place, "fsck", "--strict", "--no-dangling") == ""


def test_writes_that_only_a_write_ahead_log_has_are_there(tmp_path: Path) -> None:
    place = golden.cut_off(tmp_path)
    with Store.open(tmp_path / "store").session("golden") as session:
        assert said(golden.memories_of(session)) == said((golden.WRITE_AHEAD / "memories.json").read_text())  # fmt: skip
        assert session.check() == ()
    assert git(place, "fsck", "--strict", "--no-dangling") == ""


def test_the_same_story_gives_the_same_bytes_and_commits(tmp_path: Path) -> None:
    place = golden.build_readme(tmp_path)

    frozen = golden.restored(tmp_path / "frozen", golden.RULE_3)
    # What a README says in words may change; a rewrite goes by its lines.
    assert golden.export(place, "main~1") == golden.export(frozen, "main~1")
    assert git(place, "diff", "--stat", "main~1", "main", "--", ".", ":!README.md") == git(
        frozen, "diff", "--stat", "main~1", "main", "--", ".", ":!README.md"
    )


def test_golden_store_can_be_written_on_under_a_new_tag(tmp_path: Path) -> None:
    golden.restored(tmp_path)
    with Store.open(tmp_path / "store").session("golden") as session:
        memory = session.add("decision", "Use nothing", agent="ada")

    assert re.fullmatch(r"DEC-\d{4}-[a-z][a-z0-9]{3}", memory.id)


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(golden.restored, id="format 1"),
        pytest.param(partial(golden.restored, frozen=golden.FORMAT_2), id="format 2"),
        pytest.param(partial(golden.restored, frozen=golden.FORMAT_3), id="format 3"),
        pytest.param(partial(golden.restored, frozen=golden.RULE_3), id="rule 3"),
        pytest.param(golden.cut_off, id="write-ahead log"),
    ],
)
def test_golden_store_is_changed_synced_with_a_clone_and_verified(
    tmp_path: Path, made: Callable[[Path], Path]
) -> None:
    place = made(tmp_path)
    (tmp_path / "store/config.yaml").write_text(f"format: 1\nkey_dir: {tmp_path / 'keys'}\n")
    store = Store.open(tmp_path / "store")
    other = Store.init(tmp_path / "other")
    with store.session("golden") as here:
        kept = [each.id for each in here.memories() if each.kind not in ("turn", "state")]
        edited, removed, also = kept[:3]
        here.edit(edited, **own(note="here"))
        here.delete(removed)
        here.add_remote("origin", tmp_path / "hub.git", create=True)
        here.sync()
        with other.clone(str(tmp_path / "hub.git")) as there:
            there.edit(also, **own(note="in the clone"))
            there.sync()
            here.sync()
            here.restore(removed)
            here.sync()
            there.sync()

            assert said(golden.memories_of(here)) == said(golden.memories_of(there))
            assert here.get(also).fields["note"] == "in the clone"
            assert there.get(edited).fields["note"] == "here"
            assert there.get(removed).life
            assert here.check() == there.check() == ()
            clone = there.path
    for each in (place, clone):
        assert git(each, "fsck", "--strict", "--no-dangling") == ""
