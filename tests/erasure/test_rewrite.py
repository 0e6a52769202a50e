"""The rewrite is a pure function of history and records: its laws."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from smp_git.format.records import Tombstones, tombstone
from smp_git.git.objects import raw_commit
from smp_git.model.ids import FIRST, REDACT, REDACTED, RESTORE, Edge, Lives, deleted
from smp_git.remove.history.rewrite import History
from tests import some_lives
from tests.erasure.histories import (
    PATHS,
    Case,
    Objects,
    State,
    cases,
    commit,
    reachable,
    rewrite,
    rewritten,
    session_tree,
)


@settings(max_examples=max(150, (settings.default or settings()).max_examples))
@given(cases)
def test_rewriting_twice_is_rewriting_once_by_the_union(case: Case) -> None:
    objects, history, left, right = case
    _, one = rewritten(*rewritten(objects, history, left), right)
    _, other = rewritten(*rewritten(objects, history, right), left)
    _, both = rewritten(objects, history, left | right)

    assert one == both
    assert other == both


@given(cases)
def test_rewriting_again_changes_nothing(case: Case) -> None:
    once = rewritten(case.objects, case.history, case.left)

    assert rewrite(once[0].read, once[1], case.left) == (once[1], {})


@given(cases)
def test_the_same_history_and_records_give_the_same_commits(case: Case) -> None:
    """Whoever rewrites it, and in whatever order the records came to be known."""
    objects, history, left, right = case

    found = [rewrite(objects.read, history, known) for known in (left | right, right | left | right)]  # fmt: skip

    assert found[0] == found[1]


@given(cases)
def test_rewriting_by_nothing_changes_nothing(case: Case) -> None:
    objects, history, *_ = case

    assert rewrite(objects.read, history, Tombstones()) == (history, {})


@given(cases)
def test_what_remains_is_what_the_model_says(case: Case) -> None:
    """Trees of the rewritten history are the old ones without the gone, byte for byte."""
    objects, history, gone, _ = case
    after, new = rewritten(objects, history, gone)

    expected = {_without(objects, tree, gone) for tree in _trees(objects, history)}
    found = {tuple(sorted(after.files(tree).items())) for tree in _trees(after, new)}
    assert found <= {tuple(sorted(each)) for each in expected}
    for ref, tip in history.refs.items():
        if ref.startswith("refs/heads/"):
            old, fresh = raw_commit(objects.read(tip)[1]), raw_commit(after.read(new.refs[ref])[1])
            assert dict(_without(objects, old.tree, gone)) == after.files(fresh.tree)


def _trees(objects: Objects, history: History) -> list[bytes]:
    plain = History({r: t for r, t in history.refs.items() if "notes" not in r}, history.stashed)
    found = reachable(objects, plain).values()
    return [raw_commit(data).tree for kind, data in found if kind == b"commit"]


def _without(objects: Objects, tree: bytes, gone: Tombstones) -> frozenset[tuple[str, bytes]]:
    files = objects.files(tree)
    ids = {path: name for name, path in PATHS.items()}
    kept: dict[str, bytes] = {}
    for path, blob in files.items():
        data = objects.read(blob)[1]
        if path in ids and _is_dead(gone, ids[path], objects.lives[blob]):
            continue
        if path.endswith("index.yaml"):
            lines = data.decode().splitlines(keepends=True)
            left = [line for line in lines if not _is_dead(gone, *objects.lines[line])]
            if not left:
                continue
            blob = Objects().add(b"blob", "".join(left).encode())
        kept[path] = blob
    return frozenset(kept.items())


def _is_dead(known: Tombstones, name: str, life: str | None) -> bool:
    """Whether a version may not stand, by the rules in plain words."""
    found = known.lives(name)
    if not known.names(name):
        return False
    if life is None:
        return all(some_lives.is_dead(found, each) for each in found.known)
    return some_lives.is_dead(found, life)


@given(cases)
def test_no_gone_path_line_or_trailer_is_left(case: Case) -> None:
    objects, history, gone, _ = case
    after, _ = rewritten(objects, history, gone)

    for kind, data in after.kept.values():
        for name in PATHS:
            if gone.is_gone(name):
                assert kind != b"tree" or PATHS[name].rpartition("/")[2].encode() not in data
                assert kind != b"blob" or f'"id":"{name}"'.encode() not in data
                assert kind != b"commit" or f"Memory: {name}\n".encode() not in data


def test_only_commits_from_the_first_that_holds_it_are_rewritten() -> None:
    objects = Objects()
    alone: State = {"DEC-0001": (FIRST, "red")}
    first = commit(objects, session_tree(objects, alone, ""), [], "settings\n", 1)
    state: State = {**alone, "DEC-0002": (FIRST, "blue")}
    second = commit(objects, session_tree(objects, state, ""), [first], "decision DEC-0002: blue\n", 2)  # fmt: skip
    third = commit(objects, session_tree(objects, state, "x"), [second], "edits by hand\n", 3)

    after, new = rewritten(objects, History({"refs/heads/main": third}), Tombstones([tombstone("DEC-0002", deleted())]))  # fmt: skip

    tip = raw_commit(after.read(new.refs["refs/heads/main"])[1])
    assert tip.parents == (first,)
    assert tip.rest == raw_commit(objects.read(third)[1]).rest


_BACK = deleted().begun("brightly", Edge(RESTORE, (FIRST,)))
_CLEAN = Lives({FIRST: (REDACTED,)}).begun("quietest", Edge(REDACT, (FIRST,)))


@pytest.mark.parametrize(
    ("known", "standing"),
    [
        (deleted(), []),
        (deleted(before=_BACK), []),
        (deleted(before=_CLEAN, purged=True), []),
        (_BACK, ["brightly"]),
        (_CLEAN, ["quietest"]),
        # The restored life lacks the redaction, and what was redacted was deleted.
        (_BACK | _CLEAN, []),
        (_BACK.begun("quietest", Edge(REDACT, ("brightly",))), ["quietest"]),
        (_CLEAN.begun("brightly", Edge(RESTORE, ("quietest",))), ["brightly", "quietest"]),
    ],
    ids=["deleted", "restored, then deleted", "redacted, then purged", "restored", "redacted", "redacted and restored at once", "restored, then redacted", "redacted, then restored"],
)  # fmt: skip
def test_of_each_life_that_stands_its_versions_are_left(known: Lives, standing: list[str]) -> None:
    objects = Objects()
    tip: list[bytes] = []
    for number, life in enumerate((FIRST, *known.edges)):
        tree = session_tree(objects, {"DEC-0001": (life, "red")}, str(number))
        tip = [commit(objects, tree, tip, "decision DEC-0001: red\n", number)]

    after, _ = rewritten(objects, History({"refs/heads/main": tip[0]}), Tombstones([tombstone("DEC-0001", known)]))  # fmt: skip

    left = {objects.lives[name] for name in after.kept if name in objects.lives}
    assert sorted(str(each) for each in left) == standing


@given(cases)
def test_tombstones_of_many_other_pages_change_nothing(case: Case) -> None:
    made, gone = (case.objects, case.history), case.left
    elsewhere = Tombstones(tombstone(f"{prefix}-{number:04d}", deleted()) for prefix in ("DEC", "turn") for number in range(250, 5_000, 100))  # fmt: skip

    assert rewritten(*made, gone | elsewhere)[1] == rewritten(*made, gone)[1]
