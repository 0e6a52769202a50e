"""Memories merged by field: which value stands, what is kept of the other, whose bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from smp_git import Session
from smp_git.format import document, records
from smp_git.format.records import Tombstones
from smp_git.git.references import is_ancestor, merge_bases
from smp_git.model.ids import FIRST, REDACT, REDACTED, RESTORE, Edge, Lives, deleted
from smp_git.model.memory import CommitId, MemoryId
from tests.merging.histories import History, changed, memory


@pytest.fixture
def history(session: Session) -> History:
    return History(session)


OLD = memory("DEC-0001", "Use OAuth", rationale="known", impact="high", tags=["security"])


def test_different_fields_of_one_memory_merge(history: History) -> None:
    base = history.put(history.root, OLD)
    ours = history.put(base, changed(OLD, 1, rationale="well known"))
    theirs = history.put(base, changed(OLD, 2, impact="low"), tag="bbbb")

    found = history.get(history.merged(ours, theirs), "DEC-0001")

    assert (found.fields["rationale"], found.fields["impact"]) == ("well known", "low")
    assert found.updated_at == changed(OLD, 2).updated_at
    assert "contested" not in found.fields


def test_the_newer_value_of_one_field_stands_and_the_other_is_kept(history: History) -> None:
    base = history.put(history.root, OLD)
    ours = history.put(base, changed(OLD, 5, impact="medium"))
    theirs = history.put(base, changed(OLD, 2, impact="low"), tag="bbbb")

    merged = history.merged(ours, theirs)

    assert history.get(merged, "DEC-0001").fields["impact"] == "medium"
    assert history.lost(merged, "DEC-0001") == [("impact", "low", "bbbb")]


def test_at_one_time_the_greater_tag_stands(history: History) -> None:
    base = history.put(history.root, OLD)
    ours = history.put(base, changed(OLD, 1, impact="medium"), tag="zzzz")
    theirs = history.put(base, changed(OLD, 1, impact="low"), tag="bbbb")

    merged = history.merged(ours, theirs)

    assert history.get(merged, "DEC-0001").fields["impact"] == "medium"
    assert history.lost(merged, "DEC-0001") == [("impact", "low", "bbbb")]


def test_a_field_is_as_old_as_its_own_last_change(history: History) -> None:
    base = history.put(history.root, OLD)
    ours = history.put(base, changed(OLD, 5, impact="medium"))
    early = changed(OLD, 3, impact="low")
    theirs = history.put(base, early, tag="bbbb")
    theirs = history.put(theirs, changed(early, 9, rationale="later"), tag="bbbb")

    found = history.get(history.merged(ours, theirs), "DEC-0001")

    assert (found.fields["impact"], found.fields["rationale"]) == ("medium", "later")


def test_the_same_change_on_both_sides_is_no_conflict(history: History) -> None:
    base = history.put(history.root, OLD)
    ours = history.put(base, changed(OLD, 5, impact="low"))
    theirs = history.put(base, changed(OLD, 2, impact="low"), tag="bbbb")

    assert history.lost(history.merged(ours, theirs), "DEC-0001") == []


def test_a_removed_field_loses_or_stands_like_any_value(history: History) -> None:
    base = history.put(history.root, OLD)
    ours = history.put(base, changed(OLD, 5, impact=None))
    theirs = history.put(base, changed(OLD, 2, impact="low"), tag="bbbb")

    merged = history.merged(ours, theirs)

    assert "impact" not in history.get(merged, "DEC-0001").fields
    assert history.lost(merged, "DEC-0001") == [("impact", "low", "bbbb")]


def test_the_main_text_is_a_field(history: History) -> None:
    turn = memory("turn-0001", "said")
    base = history.put(history.root, turn)
    ours = history.put(base, replace(changed(turn, 1), content="said here"))
    theirs = history.put(base, replace(changed(turn, 2), content="said there"), tag="bbbb")

    merged = history.merged(ours, theirs)

    assert history.get(merged, "turn-0001").content == "said there"
    assert history.lost(merged, "turn-0001") == [("content", "said here", "aaaa")]


def test_tags_and_links_merge_as_sets(history: History) -> None:
    old = replace(OLD, tags=("a", "b"), links=document.check_links([("about", "DEC-0009")]))
    base = history.put(history.root, old)
    ours = history.put(base, replace(changed(old, 1), tags=("b", "c"), links=()))
    more = document.check_links([("about", "DEC-0009"), ("about", "DEC-0008")])
    theirs = history.put(base, replace(changed(old, 1), tags=("a", "b", "d"), links=more))

    found = history.get(history.merged(ours, theirs), "DEC-0001")

    assert found.tags == ("b", "c", "d")
    assert found.links == (("about", "DEC-0008"),)


def test_an_edit_wins_over_a_plain_removal(history: History) -> None:
    base = history.put(history.root, OLD)
    ours = history.remove(base, "DEC-0001")
    theirs = history.put(base, changed(OLD, 1, impact="low"))

    assert history.get(history.merged(ours, theirs), "DEC-0001").fields["impact"] == "low"


def test_what_is_removed_and_unchanged_goes(history: History) -> None:
    base = history.put(history.root, OLD, memory("DEC-0002"))
    ours = history.remove(base, "DEC-0001")
    theirs = history.put(base, memory("DEC-0002", "other", minutes=1))

    assert history.reader.at(history.merged(ours, theirs)).blob("DEC-0001") is None


def test_what_both_added_is_told_apart_by_field(history: History) -> None:
    mine = memory("state-ada", "", minutes=1, current_context="here", working_memory="a")
    other = memory("state-ada", "", minutes=2, current_context="there", memory_refs=["DEC-0001"])
    ours = history.put(history.root, mine)
    theirs = history.put(history.root, other, tag="bbbb")

    merged = history.merged(ours, theirs)
    found = history.get(merged, "state-ada").fields

    assert {name: found[name] for name in ("current_context", "working_memory", "memory_refs")} == {
        "current_context": "there", "working_memory": "a", "memory_refs": ["DEC-0001"],
    }  # fmt: skip
    assert history.lost(merged, "state-ada") == [("current_context", "here", "aaaa")]


def test_comments_of_a_person_survive_whoever_wrote_them(history: History) -> None:
    commented = document.encode(OLD).replace(b"impact:", b"# weighed twice\nimpact:")
    base = history.put(history.root, OLD)
    ours = history.commit(base, {OLD.path: commented}, tag="")
    theirs = history.put(base, changed(OLD, 2, rationale="other"), tag="bbbb")

    merged = history.merged(ours, theirs)

    assert b"# weighed twice\nimpact: high\n" in history.files(merged)[OLD.path]
    assert history.get(merged, "DEC-0001").fields["rationale"] == "other"


def test_what_is_settled_on_one_side_is_settled(history: History) -> None:
    base = history.put(history.root, OLD)
    left = history.put(base, changed(OLD, 5, impact="medium"))
    right = history.put(base, changed(OLD, 2, impact="low"), tag="bbbb")
    both = history.merged(left, right)
    found = history.get(both, "DEC-0001")
    ours = history.put(both, changed(found, 7, contested=None))
    theirs = history.put(both, changed(found, 8, rationale="x"), tag="bbbb")

    assert history.lost(history.merged(ours, theirs), "DEC-0001") == []


def test_three_values_are_kept_in_whatever_order_they_meet(history: History) -> None:
    base = history.put(history.root, OLD)
    sides = [
        history.put(base, changed(OLD, minutes, impact=value), tag=tag)
        for minutes, value, tag in ((1, "one", "aaaa"), (2, "two", "bbbb"), (3, "three", "cccc"))
    ]
    found = []
    for first, second, third in ((0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)):
        both = history.merged(sides[first], sides[second])
        found.append(history.files(history.merged(both, sides[third]))[OLD.path])

    assert len(set(found)) == 1
    assert document.decode(found[0], OLD.path).fields["impact"] == "three"


def test_a_memory_that_was_away_gives_its_fields_no_age(history: History) -> None:
    base = history.put(history.root, OLD)
    gone = history.remove(base, "DEC-0001", tag="zzzz")
    early = history.put(base, changed(OLD, 0, impact=None), tag="bbbb")
    late = history.put(base, changed(OLD, 0, impact="p"), tag="cccc")
    found = [
        history.files(history.merged(history.merged(first, second), third))[OLD.path]
        for first, second, third in ((gone, early, late), (early, late, gone), (gone, late, early))
    ]

    assert len(set(found)) == 1
    assert b"replica: bbbb" in found[0]


def test_a_tombstone_wins_over_either_side(history: History) -> None:
    base = history.put(history.root, OLD, memory("DEC-0002"))
    ours = history.put(base, changed(OLD, 1, impact="low"))
    theirs = history.put(base, memory("DEC-0003"))
    known = Tombstones.of({MemoryId(name): deleted() for name in ("DEC-0001", "DEC-0002")})

    merged = history.merged(ours, theirs, known=known)

    assert [entry.id for entry in history.reader.at(merged).entries()] == ["DEC-0003"]


def test_a_later_life_wins_over_an_earlier_one(history: History) -> None:
    base = history.put(history.root, OLD)
    ours = history.put(base, changed(OLD, 9, impact="low"))
    back = replace(OLD, life="brightly", updated_at=None)
    known = deleted().begun("brightly", Edge(RESTORE, (FIRST,)))
    grave = records.write(Tombstones([records.tombstone("DEC-0001", known)]))
    theirs = history.commit(base, {OLD.path: document.encode(back), records.PATH: grave})

    merged = history.merged(ours, theirs)

    assert history.get(merged, "DEC-0001").life == "brightly"
    assert history.get(merged, "DEC-0001").fields["impact"] == "high"


def test_records_are_united(history: History) -> None:
    back = deleted().begun("brightly", Edge(RESTORE, (FIRST,)))
    redacted = Lives({FIRST: (REDACTED,)}).begun("quietest", Edge(REDACT, (FIRST,), {"*": "x"}))
    one = {MemoryId("DEC-0001"): deleted(), MemoryId("DEC-0002"): back}
    two = {MemoryId("DEC-0001"): deleted(purged=True), MemoryId("DEC-0002"): redacted}
    ours = history.commit(history.root, {records.PATH: records.write(Tombstones.of(one))})
    theirs = history.commit(
        history.root, {records.PATH: records.write(Tombstones.of(two))}, tag="bbbb"
    )

    found = records.read(history.files(history.merged(ours, theirs))[records.PATH])

    assert found == Tombstones.of(one) | Tombstones.of(two)
    assert found.lives("DEC-0001") == deleted(purged=True)
    assert found.lives("DEC-0002") == back | redacted


def test_replicas_are_united(history: History) -> None:
    base = history.commit(history.root, {"replicas/aaaa.yaml": b"tag: aaaa\n"})
    ours = history.commit(base, {"replicas/aaaa.yaml": None, "replicas/bbbb.yaml": b"tag: bbbb\n"})
    theirs = history.commit(base, {"replicas/cccc.yaml": b"tag: cccc\n"}, tag="bbbb")

    found = history.files(history.merged(ours, theirs))

    assert {f"replicas/{tag}.yaml" for tag in ("aaaa", "bbbb", "cccc")} <= found.keys()


def test_metadata_merges_key_by_key(history: History) -> None:
    start = b"id: shop # its name\nuser: ada\ncontext:\n  a: 1\n  b: 2\ntags: []\n"
    base = history.commit(history.root, {"metadata.yaml": start})
    mine = start.replace(b"a: 1", b"a: 11").replace(b"user: ada", b"user: bob")
    other = start.replace(b"b: 2", b"b: 22").replace(b"user: ada", b"user: eve")
    ours = history.commit(base, {"metadata.yaml": mine})
    theirs = history.commit(base, {"metadata.yaml": other}, tag="bbbb")

    merged = history.merged(ours, theirs)

    assert history.files(merged)["metadata.yaml"] == (
        b"id: shop # its name\nuser: eve\ncontext:\n  a: 11\n  b: 22\ntags: []\n"
    )
    assert history.merge(ours, theirs).contested == (("metadata.yaml", "user", "eve", ("bob",)),)


def test_of_other_files_the_later_stands_and_is_reported(history: History) -> None:
    base = history.commit(history.root, {"notes.txt": b"a\nb\n"})
    ours = history.commit(base, {"notes.txt": b"a\nc\n"})
    theirs = history.commit(base, {"notes.txt": b"a\nd\n"}, tag="")

    merged = history.merged(ours, theirs)

    assert history.files(merged)["notes.txt"] == b"a\nd\n"
    assert [item.id for item in history.merge(ours, theirs).contested] == ["notes.txt"]


@pytest.mark.parametrize("broken", [b"id: [", b"", b"\xff", b"<<<<<<< ours\n"])
def test_a_side_that_cannot_be_read_counts_as_unchanged(history: History, broken: bytes) -> None:
    base = history.put(history.root, OLD)
    ours = history.commit(base, {OLD.path: broken}, unread=[OLD.path])
    edited = history.put(base, changed(OLD, 1, impact="low"))
    untouched = history.put(base, memory("DEC-0002"))
    gone = history.remove(base, "DEC-0001")

    assert history.get(history.merged(ours, edited), "DEC-0001").fields["impact"] == "low"
    assert history.get(history.merged(ours, untouched), "DEC-0001") == OLD
    assert history.reader.at(history.merged(ours, gone)).blob("DEC-0001") is None
    assert [item.id for item in history.merge(untouched, ours).contested] == ["DEC-0001"]


def test_what_cannot_be_read_and_has_no_base_is_kept(history: History) -> None:
    base = history.put(history.root, memory("DEC-0002"))
    ours = history.commit(base, {OLD.path: b"id: ["}, unread=[OLD.path])
    theirs = history.put(base, memory("DEC-0003"))

    assert history.files(history.merged(ours, theirs))[OLD.path] == b"id: ["


def test_merging_a_merged_side_again_changes_nothing(history: History) -> None:
    base = history.put(history.root, OLD)
    ours = history.put(base, changed(OLD, 5, impact="medium"))
    theirs = history.put(base, changed(OLD, 2, impact="low"), tag="bbbb")
    merged = history.merged(ours, theirs)

    assert history.merge(merged, theirs).files == {}
    assert history.merge(merged, ours).files == {}
    assert history.merge(merged, merged).files == {}


def test_bases_that_crossed_are_merged_into_one(history: History) -> None:
    base = history.put(history.root, OLD)
    left = history.put(base, changed(OLD, 5, impact="medium"))
    right = history.put(base, changed(OLD, 2, impact="low", rationale="r"), tag="bbbb")
    ours = history.merged(left, right, tag="aaaa")
    theirs = history.merged(right, left, tag="bbbb")
    found = history.get(ours, "DEC-0001")
    ours = history.put(ours, changed(found, 6, impact="later"))
    theirs = history.put(theirs, changed(found, 7, rationale="else"), tag="bbbb")

    assert merge_bases(history.repository, ours, theirs) == sorted([left, right])
    merged = history.merged(ours, theirs)

    fields = history.get(merged, "DEC-0001").fields
    assert (fields["impact"], fields["rationale"]) == ("later", "else")
    assert history.lost(merged, "DEC-0001") == [("impact", "low", "bbbb")]


def test_ancestry(history: History) -> None:
    base = history.put(history.root, OLD)
    ours = history.put(base, memory("DEC-0002"))

    assert is_ancestor(history.repository, base, ours)
    assert is_ancestor(history.repository, ours, ours)
    assert not is_ancestor(history.repository, ours, base)


def test_values_that_do_not_fit_are_left_to_the_history(history: History) -> None:
    large = "x" * 900_000
    old = changed(OLD, 0, **{f"f{n}": "" for n in range(4)})
    base = history.put(history.root, old)
    ours = history.put(base, changed(old, 1, **{f"f{n}": f"{n}{large}" for n in range(4)}))
    theirs = history.put(
        base, changed(old, 2, **{f"f{n}": f"{large}{n}" for n in range(4)}), tag="bbbb"
    )

    merged = history.merged(ours, theirs)

    assert history.lost(merged, "DEC-0001") == [(f"f{n}", "(none)", "aaaa") for n in range(4)]
    assert history.get(merged, "DEC-0001").fields["f0"] == f"{large}0"


def test_a_memory_that_would_grow_too_large_stays_as_the_newer_side_has_it(
    history: History,
) -> None:
    large = "x" * 1_000_000
    base = history.put(history.root, OLD)
    ours = history.put(base, changed(OLD, 1, a=large, b=large, c=large))
    theirs = history.put(base, changed(OLD, 2, d=large, e=large), tag="bbbb")

    merged = history.merged(ours, theirs)

    assert history.get(merged, "DEC-0001").fields["d"] == large
    assert [name for name, _, _ in history.lost(merged, "DEC-0001")] == ["a", "b", "c"]


# Comments


def _by_hand(history: History, base: CommitId, path: str, **changes: str) -> CommitId:
    """Replace words of a file by hand, `_` standing for what cannot be in a name."""
    data = history.files(base)[path].decode()
    for old, new in changes.items():
        assert old in data
        data = data.replace(old, new, 1)
    return history.commit(base, {path: data.encode()}, tag="")


DEC = "decisions/000/DEC-0001.yaml"


def test_comments_of_both_sides_are_kept(history: History) -> None:
    base = _by_hand(history, history.put(history.root, OLD), DEC, kind="# of old\nkind")
    ours = _by_hand(
        history, base, DEC, rationale="# ours, above\nrationale", impact="# ours too\nimpact"
    )
    theirs = _by_hand(
        history, base, DEC, high="low  # theirs, beside",
        tags="# theirs, above\ntags", rationale="# theirs as well\nrationale",
    )  # fmt: skip

    merged = history.merged(ours, theirs)

    lines = history.files(merged)[DEC].decode().splitlines()
    assert [line for line in lines if "#" in line and not line.startswith("impact")] == [
        "# of old", *sorted(("# ours, above", "# theirs as well"), key=lines.index), "# ours too",
        *[line for line in lines if line in ("# theirs, beside",)], "# theirs, above",
    ]  # fmt: skip
    assert history.get(merged, "DEC-0001").fields["impact"] == "low"
    text = "\n".join(lines)
    assert text.count("# theirs, beside") == 1
    assert lines.index("# theirs, above") + 1 == next(n for n, line in enumerate(lines) if line.startswith("tags"))  # fmt: skip


def test_a_comment_that_one_side_changed_or_removed_is_as_that_side_has_it(
    history: History,
) -> None:
    first = history.put(history.root, OLD)
    base = _by_hand(history, first, DEC, kind="# one\nkind", impact="# two\nimpact")
    ours = _by_hand(history, base, DEC, known="well known  # why", **{"# two\n": ""})
    theirs = _by_hand(history, base, DEC, high="low  # so", one="uno")

    file = history.files(history.merged(ours, theirs))[DEC].decode()

    assert [line for line in ("# one", "# uno", "# two", "# why", "# so") if line in file] == ["# uno", "# why", "# so"]  # fmt: skip


def test_what_only_looks_like_a_comment_is_none(history: History) -> None:
    text = "first\n# no comment\n  # nor this"
    base = history.put(history.root, memory("DEC-0001", text, rationale="a # b", impact="#1"))
    old = history.get(base, "DEC-0001")
    ours = history.put(base, changed(old, 1, rationale="c # d"))
    theirs = history.put(base, changed(old, 2, impact="#2"), tag="bbbb")

    found = history.get(history.merged(ours, theirs), "DEC-0001")

    assert (found.content, found.fields["rationale"], found.fields["impact"]) == (text, "c # d", "#2")  # fmt: skip


def test_comments_in_front_matter_are_kept_and_the_text_below_is_as_it_is(
    history: History,
) -> None:
    turn = "conversation/000/turn-0001.md"
    base = history.put(history.root, memory("turn-0001", "# Title\n\ntext # no comment"))
    ours = _by_hand(history, base, turn, agent="# ours\nagent")
    theirs = _by_hand(history, base, turn, kind="# theirs\nkind", Title="Head")

    file = history.files(history.merged(ours, theirs))[turn].decode()

    assert file.index("# theirs\nkind") < file.index("# ours\nagent")
    assert file.endswith("---\n# Head\n\ntext # no comment\n")


def test_comments_of_the_metadata_are_kept(history: History) -> None:
    path = "metadata.yaml"
    ours = _by_hand(history, history.root, path, id="# ours\nid")
    theirs = _by_hand(history, history.root, path, uid="# theirs\nuid")

    file = history.files(history.merged(ours, theirs))[path].decode()

    assert "# ours\n" in file
    assert "# theirs\n" in file


def test_comments_that_cannot_be_kept_are_reported(history: History) -> None:
    base = history.put(history.root, OLD)
    flow = '{id: DEC-0001, created_at: "2026-01-11T14:30:00Z", kind: decision, decision: Use it} # ours\n'
    ours = history.commit(base, {DEC: flow.encode()}, tag="")
    theirs = _by_hand(history, base, DEC, impact="# theirs\nimpact", known="well known")

    found = history.merge(ours, theirs)

    assert "#" in [each.field for each in found.contested]
    assert {each.field for each in found.contested} == {each.field for each in history.merge(theirs, ours).contested}  # fmt: skip
