"""One word, one meaning: plans before what goes far, notes on slips, choices, counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from smp_git import Store
from smp_git.cli.program import program

app = program()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with Store.init(tmp_path / "store").create_session("shop", user="ada") as session:
        session.add("decision", "Use Redis", agent="ada", tags=["cache"], impact="low")
        session.add("finding", "It is slow", agent="ada", tags=["cache"])
    return tmp_path / "store"


def run(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["--root", str(root), *arguments])


def told(root: Path, *arguments: str) -> Any:
    return json.loads(run(root, *arguments, "--json").stdout)


def ids(root: Path) -> list[str]:
    return [each["id"] for each in told(root, "list")["memories"]]


# Going back


def test_undo_takes_an_id_or_a_revision_and_redo_takes_it_back(root: Path) -> None:
    run(root, "edit", "DEC-1", "Use Valkey")
    run(root, "add", "turn", "hello")

    assert run(root, "undo", "dec1").stdout == "undo DEC-0001\n"
    assert run(root, "redo").stdout == "redo DEC-0001\n"
    assert run(root, "undo", "HEAD~2").stdout == "undo turn-0001\n"
    assert run(root, "redo").stdout == "redo turn-0001\n"
    assert run(root, "redo").exit_code == 7


def test_a_deletion_is_not_undone_but_restored(root: Path) -> None:
    assert "in full it is FIND-0001" in run(root, "delete", "FIND-1").stderr
    run(root, "delete", "FIND-0001")

    refused = run(root, "undo")
    assert refused.exit_code == 7
    assert "smp restore FIND-0001" in refused.stderr
    assert run(root, "restore", "FIND-1").stdout == "restored FIND-0001\n"


# Plans


def test_what_is_deleted_by_a_criterion_is_shown_first(root: Path) -> None:
    shown = run(root, "delete", "--tag", "cache")

    assert shown.exit_code == 7
    assert shown.stdout == "would delete DEC-0001: Use Redis\nwould delete FIND-0001: It is slow\n"
    assert shown.stderr.startswith("smp: 2 memories match\nhint: ")
    assert len(ids(root)) == 2

    done = run(root, "delete", "--tag", "cache", "--yes")
    (deletion,) = {word for word in done.stdout.split() if word in _deletions(root)}
    assert run(root, "restore", deletion).stdout == "restored DEC-0001\nrestored FIND-0001\n"


def _deletions(root: Path) -> set[str]:
    return {each["deletion"] for each in told(root, "trash")["memories"]}


@pytest.mark.parametrize("more", [(), ("--all-sessions",), ("--dry-run",)])
def test_a_session_is_anonymized_in_place_only_when_confirmed(
    root: Path, more: tuple[str, ...]
) -> None:
    shown = run(root, "anonymize", *more)

    assert shown.stdout == "would replace shop by a copy without names\n"
    assert shown.exit_code == (0 if more == ("--dry-run",) else 7)
    assert [each["id"] for each in told(root, "sessions")["sessions"]] == ["shop"]


# Slips


def test_a_field_that_is_perhaps_a_slip_is_told(root: Path) -> None:
    slip = run(root, "add", "decision", "x", "-f", "impakt=high", "-f", "colour=red")

    assert slip.stderr == "note: impakt is a field of your own, kept as it is; perhaps impact was meant\n"  # fmt: skip
    assert "perhaps severity" in run(root, "edit", "DEC-1", "-f", "sevrity=high").stderr
    assert run(root, "edit", "DEC-1", "-f", "impact=high").stderr == ""


# Choices


def test_a_default_session_is_used_by_whoever_chose_none(root: Path) -> None:
    made = run(root, "new", "blog")
    assert "smp use --default blog" in made.stderr
    for each in (root / ".current").iterdir():
        each.unlink()
    assert run(root, "list").exit_code == 3

    assert run(root, "use", "--default", "shop").stderr == ""
    assert len(ids(root)) == 2
    assert "smp use --default blog" in run(root, "use", "blog").stderr
    assert ids(root) == []


def test_a_branch_that_no_terminal_keeps_is_told(root: Path) -> None:
    run(root, "branch", "idea")

    assert "--branch idea" in run(root, "switch", "idea").stderr
    assert run(root, "switch", "main").stderr == ""


# Counts


def test_what_is_done_to_many_is_told_in_counts(root: Path) -> None:
    with Store.open(root).session("shop") as session, session.transaction("ada") as tx:
        for number in range(30):
            tx.add("learning", f"Fact {number}", tags=["fact"])

    assert run(root, "undo").stdout == "undo 30 memories: LEARN-0001 to LEARN-0030\n"
    run(root, "redo")
    plan = run(root, "delete", "--tag", "fact").stdout.splitlines()
    assert (len(plan), plan[-1]) == (21, "and 10 more")
    done = run(root, "delete", "--tag", "fact", "--yes").stdout
    assert done.startswith("deleted 30 memories: LEARN-0001, LEARN-0002, LEARN-0003 and 27 more\n")


def test_what_is_not_there_has_one_status(root: Path) -> None:
    missing = [
        ("show", "DEC-9"),
        ("show", "DEC-1", "--at", "nowhere"),
        ("undo", "nowhere"),
        ("undo", "DEC-9"),
    ]
    missing += [("switch", "nowhere"), ("use", "nowhere"), ("diff", "DEC-9"), ("log", "DEC-9")]

    assert {run(root, *each).exit_code for each in missing} == {3}
