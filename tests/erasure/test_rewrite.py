"""The rewrite is a pure function of history and tombstones: its laws."""

from __future__ import annotations

from hypothesis import given

from smp_git.erasure.pages import generation
from smp_git.erasure.rewrite import History, raw_commit, rewrite
from smp_git.format.tombstones import Tombstones, tombstone
from tests.erasure.histories import (
    PATHS,
    Objects,
    commit,
    graves,
    histories,
    reachable,
    rewritten,
    session_tree,
)


@given(made=histories(), left=graves, right=graves)
def test_rewriting_twice_is_rewriting_once_by_the_union(
    made: tuple[Objects, History], left: Tombstones, right: Tombstones
) -> None:
    objects, history = made
    _, one = rewritten(*rewritten(objects, history, left), right)
    _, other = rewritten(*rewritten(objects, history, right), left)
    _, both = rewritten(objects, history, left | right)

    assert one == both
    assert other == both


@given(made=histories(), gone=graves)
def test_rewriting_again_changes_nothing(made: tuple[Objects, History], gone: Tombstones) -> None:
    once = rewritten(*made, gone)

    assert rewrite(once[0].read, once[1], gone) == (once[1], {})


@given(made=histories())
def test_rewriting_by_nothing_changes_nothing(made: tuple[Objects, History]) -> None:
    objects, history = made

    assert rewrite(objects.read, history, Tombstones()) == (history, {})


@given(made=histories(), gone=graves)
def test_what_remains_is_what_the_model_says(made: tuple[Objects, History], gone: Tombstones) -> None:  # fmt: skip
    """Trees of the rewritten history are the old ones without the gone, byte for byte."""
    objects, history = made
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
        if path in ids:
            number = generation(data, has_front_matter=path.endswith(".md"))
            if number <= gone.limit(ids[path]):
                continue
        if path.endswith("index.yaml"):
            lines = data.decode().splitlines(keepends=True)
            left = [line for line in lines if not _is_gone(line, gone)]
            if not left:
                continue
            blob = Objects().add(b"blob", "".join(left).encode())
        kept[path] = blob
    return frozenset(kept.items())


def _is_gone(line: str, gone: Tombstones) -> bool:
    number = 2 if '"gen":2' in line else 1
    return number <= gone.limit(line.split('"')[3])


@given(made=histories(), gone=graves)
def test_no_gone_path_line_or_trailer_is_left(made: tuple[Objects, History], gone: Tombstones) -> None:  # fmt: skip
    objects, history = made
    after, _ = rewritten(objects, history, gone)

    for kind, data in after.kept.values():
        for name in PATHS:
            if gone.is_purged(name):
                assert kind != b"tree" or PATHS[name].rpartition("/")[2].encode() not in data
                assert kind != b"blob" or f'"id":"{name}"'.encode() not in data
                assert kind != b"commit" or f"Memory: {name}\n".encode() not in data


def test_only_commits_from_the_first_that_holds_it_are_rewritten() -> None:
    objects = Objects()
    first = commit(
        objects, session_tree(objects, {"DEC-0001": (1, "red")}, ""), [], "settings\n", 1
    )
    state = {"DEC-0001": (1, "red"), "DEC-0002": (1, "blue")}
    second = commit(objects, session_tree(objects, state, ""), [first], "decision DEC-0002: blue\n", 2)  # fmt: skip
    third = commit(objects, session_tree(objects, state, "x"), [second], "edits by hand\n", 3)

    after, new = rewritten(objects, History({"refs/heads/main": third}), Tombstones([tombstone("DEC-0002")]))  # fmt: skip

    tip = raw_commit(after.read(new.refs["refs/heads/main"])[1])
    assert tip.parents == (first,)
    assert tip.rest == raw_commit(objects.read(third)[1]).rest


@given(made=histories(), gone=graves)
def test_tombstones_of_many_other_pages_change_nothing(made: tuple[Objects, History], gone: Tombstones) -> None:  # fmt: skip
    elsewhere = Tombstones(tombstone(f"{prefix}-{number:04d}") for prefix in ("DEC", "turn") for number in range(250, 5_000, 100))  # fmt: skip

    assert rewritten(*made, gone | elsewhere)[1] == rewritten(*made, gone)[1]
