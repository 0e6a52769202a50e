"""Laws of merging over generated histories: order does not matter, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smp_git import Store
from smp_git.format import document
from smp_git.format.records import Tombstones
from smp_git.git.references import independent, is_ancestor, merge_bases
from smp_git.model.ids import (
    DELETED,
    FIRST,
    PURGED,
    REDACT,
    REDACTED,
    RESTORE,
    Edge,
    Lives,
    parse_id,
)
from smp_git.model.memory import CommitId, Memory, MemoryId, is_same
from tests.merging.histories import History, changed, memory
from tests.support import git

TAGS = ("aaaa", "bbbb", "cccc")
BASE = (
    memory("DEC-0001", "Use OAuth", impact="high", tags=["x", "y"]),
    memory("DEC-0002", "Use Redis", rationale="fast"),
    memory("turn-0001", "said"),
)
IDS = (*(each.id for each in BASE), "FIND-0001-bbbb", "state-ada")
FIELDS = ("impact", "rationale", "note")


class Edit(NamedTuple):
    """One write of one replica; its clock is its own."""

    name: str
    minutes: int
    fields: dict[str, str | None]
    text: str | None
    tags: tuple[str, ...] | None
    by_hand: bool


edits = st.builds(
    Edit,
    st.sampled_from(IDS),
    st.integers(0, 6),
    st.dictionaries(st.sampled_from(FIELDS), st.none() | st.sampled_from("pqr"), max_size=2),
    st.none() | st.sampled_from(("one", "two")),
    st.none() | st.sets(st.sampled_from("xyz"), max_size=3).map(lambda found: tuple(sorted(found))),
    st.booleans(),
)
removals = st.sampled_from(IDS[:3])
writes = st.lists(edits | removals, max_size=4)
merges = st.tuples(st.integers(0, 2), st.integers(0, 2))
stories = st.lists(st.tuples(st.integers(0, 2), edits | removals) | merges, max_size=8)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    folder: Path = tmp_path_factory.mktemp("laws") / "store"
    Store.init(folder)
    (folder / "config.yaml").write_text("format: 1\ndurability: relaxed\n")
    with Store.open(folder).create_session("shop") as session:
        yield History(session)


law = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def written(history: History, tip: CommitId, write: Edit | str, tag: str) -> CommitId:
    """Do one write of a replica on top of a commit."""
    known = {entry.id for entry in history.reader.at(tip).entries()}
    if isinstance(write, str):
        return history.remove(tip, write, tag=tag) if write in known else tip
    if write.name not in known:
        fresh = memory(
            write.name, "" if write.name == "state-ada" else "new", minutes=write.minutes
        )
        return history.put(tip, edited(fresh, write), tag=tag)
    old = history.get(tip, write.name)
    path = parse_id(write.name).path
    file = document.edited(history.files(tip)[path], old, edited(old, write))
    if write.by_hand:
        file = file.replace(b"\nkind:", f"\n# {tag}\nkind:".encode(), 1)
    return history.commit(tip, {path: file}, "" if write.by_hand else tag)


def edited(old: Memory, write: Edit) -> Memory:
    new = changed(old, write.minutes, **write.fields)
    text = old.content if write.text is None or old.kind == "state" else write.text
    tags = old.tags if write.tags is None else write.tags
    return replace(new, content=text, tags=tags)


def line(history: History, base: CommitId, found: list[Edit | str], tag: str) -> CommitId:
    for write in found:
        base = written(history, base, write, tag)
    return base


def said(history: History, commit: CommitId) -> dict[str, dict[str, Any]]:
    """What a commit says, whatever its bytes."""
    out: dict[str, dict[str, Any]] = {}
    for entry in history.reader.at(commit).entries():
        fields: dict[str, Any] = document.fields_of(history.get(commit, entry.id))
        out[entry.id] = {**fields, "tags": sorted(fields.get("tags", []))}
    return out


def contested(fields: dict[str, Any], name: str) -> list[Any]:
    return [item["value"] for item in fields.get("contested", []) if item["field"] == name]


@law
@given(writes, writes)
def test_both_ways_give_one_tree_and_nothing_is_lost(
    history: History, mine: list[Edit | str], others: list[Edit | str]
) -> None:
    base = history.put(history.root, *BASE)
    ours, theirs = line(history, base, mine, "aaaa"), line(history, base, others, "bbbb")

    merged = history.merged(ours, theirs)

    before, after = said(history, base), said(history, merged)
    for side in (said(history, ours), said(history, theirs)):
        for name, fields in side.items():
            for field in fields.keys() - {"updated_at", "created_at", "tags"}:
                if is_same(before.get(name, {}).get(field), fields[field]):
                    continue
                found = after[name]
                assert fields[field] in (found.get(field), *contested(found, field))
    for fields in after.values():
        for item in fields.get("contested", []):
            assert not is_same(item["value"], fields.get(item["field"]))
    assert history.merge(merged, ours).files == {}
    assert history.merge(merged, theirs).files == {}


@law
@given(writes, writes)
def test_what_one_side_changed_is_taken_to_the_byte(
    history: History, mine: list[Edit | str], others: list[Edit | str]
) -> None:
    base = history.put(history.root, *BASE)
    ours, theirs = line(history, base, mine, "aaaa"), line(history, base, others, "bbbb")
    was, left, right = (history.files(each) for each in (base, ours, theirs))

    found = history.files(history.merged(ours, theirs))

    for path in was.keys() | left.keys() | right.keys():
        if left.get(path) == was.get(path):
            assert found.get(path) == right.get(path)
        elif right.get(path) == was.get(path):
            assert found.get(path) == left.get(path)
        elif path in left and path in right:
            before, sides = comments(was.get(path, b"")), (left[path], right[path])
            kept = before.intersection(*map(comments, sides))
            added = set().union(*map(comments, sides)) - before
            assert comments(found[path]) == kept | added


def comments(file: bytes) -> set[bytes]:
    return {line for line in file.splitlines() if line.startswith(b"# ")}


@law
@given(writes, writes)
def test_a_side_that_did_nothing_leaves_the_other_as_it_is(
    history: History, first: list[Edit | str], second: list[Edit | str]
) -> None:
    base = line(history, history.put(history.root, *BASE), first, "aaaa")
    theirs = line(history, base, second, "bbbb")

    assert history.files(history.commit(base, history.merge(base, theirs).files)) == history.files(theirs)  # fmt: skip
    assert history.merge(theirs, base).files == {}


@law
@given(writes, writes, writes)
def test_three_replicas_come_to_say_the_same_in_any_order(
    history: History, one: list[Edit | str], two: list[Edit | str], three: list[Edit | str]
) -> None:
    base = history.put(history.root, *BASE)
    tips = [
        line(history, base, found, tag) for found, tag in zip((one, two, three), TAGS, strict=True)
    ]
    results = []
    for first, second, third in permutations(tips):
        center = history.merged(first, second)
        results.append(said(history, history.merged(center, third)))

    for result in results[1:]:
        assert result == results[0]


@law
@given(stories)
def test_merges_across_each_other_hold_the_laws(history: History, story: list[Any]) -> None:
    base = history.put(history.root, *BASE)
    tips = [base, base, base]
    for one, two in story:
        if not isinstance(two, int):
            tips[one] = written(history, tips[one], two, TAGS[one])
        elif not is_ancestor(history.repository, tips[two], tips[one]):
            merged = history.merged(tips[one], tips[two], tag=TAGS[one])
            assert history.merge(merged, tips[two]).files == {}
            assert history.merge(tips[one], merged).files == history.merge(tips[one], tips[two]).files  # fmt: skip
            tips[one] = merged
    center = tips[0]
    for tip in tips[1:]:
        center = history.merged(center, tip)

    for tip in tips:
        joined = history.commit(tip, history.merge(tip, center).files)
        assert history.files(joined) == history.files(center)
    assert all(not entry.endswith("missing or wrong") for entry in history.reader.at(center).problems())  # fmt: skip


# How a first life may have ended: deleted, purged, redacted, restored, or redacted and deleted.
endings = st.builds(
    lambda flags, edges: Lives({FIRST: flags, **edges[1]}, edges[0]),
    st.sampled_from(((DELETED,), (REDACTED,), (DELETED, PURGED))),
    st.sampled_from(
        (
            ({}, {}),
            ({"brightly": Edge(RESTORE, (FIRST,))}, {}),
            ({"quietest": Edge(REDACT, (FIRST,))}, {}),
            ({"quietest": Edge(REDACT, (FIRST,))}, {"quietest": (DELETED,)}),
            ({"brightly": Edge(RESTORE, (FIRST,)), "quietest": Edge(REDACT, ("brightly",))}, {"brightly": (REDACTED,)}),
            ({"brightly": Edge(RESTORE, (FIRST,)), "quietest": Edge(REDACT, (FIRST,))}, {}),
        )
    ),
)  # fmt: skip


@law
@given(
    writes,
    writes,
    st.dictionaries(st.sampled_from(IDS), endings, max_size=3),
)
def test_what_was_deleted_is_in_no_merge(
    history: History, mine: list[Edit | str], others: list[Edit | str], ended: dict[str, Lives]
) -> None:
    """Whatever ended the first life, a life that stands is what comes out, and no dead one."""
    known = Tombstones.of({MemoryId(name): each for name, each in ended.items()})
    base = history.put(history.root, *BASE)
    ours, theirs = line(history, base, mine, "aaaa"), line(history, base, others, "bbbb")
    text = {"state-ada": ""}
    back = [
        memory(name, text.get(name, "back"), life=life)
        for name, each in ended.items()
        for life in sorted(each.edges)
        if not each.is_dead(life)
    ]
    dead = [
        memory(name, text.get(name, "dead"), life=sorted(each.edges)[0])
        for name, each in ended.items()
        if each.edges and each.is_gone
    ]
    theirs = history.put(theirs, *back, tag="bbbb") if back else theirs
    ours = history.put(ours, *dead, tag="aaaa") if dead else ours

    merged = history.merged(ours, theirs, known=known)

    found = said(history, merged)
    assert {name for name in found if name in ended} == {each.id for each in back}
    for each in back:
        assert found[each.id]["life"] == each.life
        assert "contested" not in found[each.id]
    assert history.merge(merged, ours, known).files == {}


@law
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=10))
def test_merge_bases_are_those_of_git(history: History, shape: list[tuple[int, int]]) -> None:
    commits = [history.put(history.root, BASE[0])]
    for one, two in shape:
        parents = dict.fromkeys((commits[one % len(commits)], commits[two % len(commits)]))
        commits.append(history.commit(tuple(parents), {}))
    left, right = commits[-1], commits[-2]
    told = git(history.reader.path, "merge-base", "--all", left, right).split()

    assert merge_bases(history.repository, left, right) == sorted(told)
    assert independent(history.repository, map(CommitId, told)) == sorted(told)
