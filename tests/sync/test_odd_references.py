"""Branches and tags that no replica takes in: they are left out and named, the rest is synced."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from smp_git import Session
from tests.support import git
from tests.sync.support import Machine, head, sound

ODD = ("heads/-x", "heads/" + "0" * 40, "heads/HEAD", "tags/" + "n" * 220, "heads/a\u00a0b", "tags/deep/-y")  # fmt: skip


def _two(folder: Path) -> tuple[Session, Session, Path]:
    hub = folder / "hub.git"
    one = Machine(folder, "one").begin(hub)
    return one, Machine(folder, "two").clone(hub), hub


def _name(folder: Path, name: str, target: str = "refs/heads/main") -> None:
    value = git(folder, "rev-parse", target).strip()
    git(folder, "update-ref", f"refs/{name}", value)


@pytest.mark.parametrize("name", ODD)
def test_odd_name_here_is_not_published_and_the_rest_is(tmp_path: Path, name: str) -> None:
    one, two, hub = _two(tmp_path)
    _name(one.path, name)
    one.add("finding", "goes out", agent="a")

    result = one.sync()

    assert any("left out: no session takes one of that name" in note for note in result.notes)
    assert git(hub, "for-each-ref", "--format=%(refname)").split() == ["refs/heads/main"]
    two.sync()
    assert two.get("FIND-0001").content == "goes out"


@pytest.mark.parametrize("name", ODD)
def test_odd_name_that_somebody_pushed_stops_nothing(tmp_path: Path, name: str) -> None:
    one, two, hub = _two(tmp_path)
    one.add("finding", "comes in", agent="a")
    one.sync()
    _name(hub, name)

    result = two.sync()

    assert any(" of origin is left out" in note for note in result.notes)
    assert two.get("FIND-0001").content == "comes in"
    two.add("finding", "goes out", agent="b")
    two.sync()
    assert head(hub) == two.head
    clone = Machine(tmp_path, "three").clone(hub)
    assert clone.head == two.head
    for session in (two, clone):
        assert (
            f"refs/{name}" not in git(session.path, "for-each-ref", "--format=%(refname)").split()
        )
        sound(session)


def test_bad_content_below_an_odd_name_stays_outside(tmp_path: Path) -> None:
    one, two, hub = _two(tmp_path)
    blob = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], cwd=hub, input=b"evil", capture_output=True, check=True
    ).stdout.decode().strip()  # fmt: skip
    tree = subprocess.run(
        ["git", "mktree"], cwd=hub, input=f"120000 blob {blob}\tlink\n".encode(), capture_output=True, check=True
    ).stdout.decode().strip()  # fmt: skip
    commit = git(hub, "commit-tree", tree, "-m", "evil").strip()
    git(hub, "update-ref", "refs/heads/-x", commit)
    one.add("finding", "comes in", agent="a")
    one.sync()

    two.sync()

    assert two.get("FIND-0001").content == "comes in"
    for name in (blob, tree, commit):
        assert subprocess.run(["git", "cat-file", "-e", name], cwd=two.path, check=False).returncode
    sound(two)


@pytest.mark.parametrize("what", ["main^{tree}", "main:metadata.yaml"])
def test_tag_of_no_commit_stops_nothing_on_either_side(tmp_path: Path, what: str) -> None:
    one, two, hub = _two(tmp_path)
    _name(one.path, "tags/mine", what)
    one.add("finding", "goes out", agent="a")

    result = one.sync()

    assert any("tag 'mine' here is left out: it names no commit" in note for note in result.notes)
    _name(hub, "tags/theirs", what)
    result = two.sync()
    assert any("tag 'theirs' of origin is left out" in note for note in result.notes)
    assert two.get("FIND-0001").content == "goes out"
    assert two.sync().fetched == 0


def test_odd_names_far_away_are_left_out_too(tmp_path: Path) -> None:
    one, two, hub = _two(tmp_path)
    git(hub, "pack-refs", "--all")
    with (hub / "packed-refs").open("ab") as packed:
        packed.write(f"{head(hub)} refs/heads/".encode() + os.fsencode("z\udcff") + b"\n")
    one.add("finding", "comes in", agent="a")
    one.sync()
    two.remove_remote("origin")
    two.add_remote("origin", f"file://{hub}")

    assert any("left out" in note for note in two.sync().notes)

    assert two.get("FIND-0001").content == "comes in"


@pytest.mark.parametrize("name", ["pull/1/head", "notes/review", "keep/x"])
def test_what_no_push_reaches_and_may_hold_the_deleted_is_named(tmp_path: Path, name: str) -> None:
    one, _, hub = _two(tmp_path)
    one.add("decision", "a plan of xantippe", agent="a")
    one.sync()
    _name(hub, name)
    one.redact("xantippe")

    (said,) = one.sync().notes

    assert f"refs/{name}" in said
    assert "xantippe" in git(hub, "log", "-p", f"refs/{name}")
    one.delete("DEC-0001")
    _name(hub, name)
    assert any(f"refs/{name}" in note for note in one.sync().notes)
    _name(hub, name)
    one.delete("DEC-0002")
    git(hub, "update-ref", "-d", f"refs/{name}")
    assert one.sync().notes == ()


def test_a_reference_to_what_is_here_is_not_named(tmp_path: Path) -> None:
    one, _, hub = _two(tmp_path)
    _name(hub, "pull/1/head", git(hub, "rev-list", "--max-parents=0", "main").strip())
    one.add("decision", "a plan", agent="a")
    one.sync()
    one.delete("DEC-0002")

    assert one.sync().notes == ()
