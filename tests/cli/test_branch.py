"""The wiring of the commands about branches: options, the terminal's choice, streams, JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from smp_git.cli.program import program

app = program()

RUNNER = CliRunner()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    run("new", "shop", "--user", "ada")
    run("add", "decision", "Use MySQL", "-f", "impact=high")
    run("branch", "idea")
    return tmp_path


def run(*arguments: object) -> Result:
    return RUNNER.invoke(app, [str(argument) for argument in arguments])


def said(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


def told(*arguments: object) -> dict[str, Any]:
    value = json.loads(said(*arguments, "--json"))
    assert isinstance(value, dict)
    return value


def ids(*arguments: object) -> list[str]:
    return [memory["id"] for memory in told(*arguments, "list")["memories"]]


def test_one_command_works_on_a_branch(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert said("--branch", "idea", "add", "finding", "aside") == "FIND-0001"
    assert said("add", "finding", "more", "--branch", "idea") == "FIND-0002"
    monkeypatch.setenv("SMP_BRANCH", "idea")
    assert ids() == ["DEC-0001", "FIND-0001", "FIND-0002"]
    assert ids("--branch", "main") == ["DEC-0001"]


def test_a_terminal_chooses_a_branch(project: Path) -> None:
    assert said("switch", "idea") == "idea"
    said("add", "finding", "aside")
    assert [(each["name"], each["current"]) for each in told("branch")["branches"]] == [
        ("main", False), ("idea", True),
    ]  # fmt: skip
    assert ids() == ["DEC-0001", "FIND-0001"]
    assert told("switch", "main") == {"branch": "main"}
    assert ids() == ["DEC-0001"]
    said("switch", "idea")
    said("use", "shop")
    assert ids() == ["DEC-0001"]


def test_a_chosen_branch_of_another_session_means_nothing(project: Path) -> None:
    said("switch", "idea")
    said("new", "other")
    assert told("branch")["total"] == 1
    assert [each["current"] for each in told("-s", "shop", "branch")["branches"]] == [True, False]


def test_a_chosen_branch_that_is_gone_is_left_by_switching(project: Path) -> None:
    said("switch", "idea")
    said("--branch", "main", "branch", "idea", "--drop")

    result = run("list")
    assert result.exit_code == 3
    assert "smp switch main" in result.stderr
    said("switch", "main")
    assert ids() == ["DEC-0001"]


def test_a_merge_says_what_it_did_and_what_it_decided(project: Path) -> None:
    said("--branch", "idea", "edit", "DEC-1", "-f", "impact=low")
    said("--branch", "idea", "add", "finding", "aside")
    said("edit", "DEC-1", "-f", "impact=medium")

    assert said("merge", "idea", "--agent", "judge").splitlines() == [
        "edit DEC-0001", "add FIND-0001", "contested DEC-0001: impact, kept medium",
    ]  # fmt: skip
    assert said("merge", "idea") == "nothing to do"
    (found,) = told("conflicts")["conflicts"]
    assert (found["kept"], found["value"], found["in_history"]) == ("medium", "low", False)
    made = told("resolve-conflict", "DEC-1", "impact", "--take", found["replica"])
    assert made["fields"] == {"impact": "low"}
    assert said("conflicts") == ""


def test_a_value_that_is_json_settles_as_such(project: Path) -> None:
    said("--branch", "idea", "edit", "DEC-1", "-f", "note=1")
    said("edit", "DEC-1", "-f", "note=2")
    said("merge", "idea")

    assert told("resolve-conflict", "DEC-1", "--value", "[3]")["fields"]["note"] == [3]
    assert run("resolve-conflict", "DEC-1").exit_code == 3


def test_a_dropped_branch_says_what_can_be_restored(project: Path) -> None:
    said("--branch", "idea", "add", "finding", "aside")

    gone = told("branch", "idea", "--drop")
    assert gone["ids"] == ["FIND-0001"]
    assert gone["deletion"]
    said("branch", "idea")
    said("--branch", "idea", "add", "finding", "aside")
    assert told("branch", "idea", "--drop", "--discard")["deletion"] is None


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("branch", "--drop"), 4),
        (("branch", "idea", "--discard"), 4),
        (("branch", "idea"), 5),
        (("branch", "A B"), 4),
        (("branch", "main", "--drop"), 7),
        (("switch", "nope"), 3),
        (("merge", "nope"), 3),
        (("tag", "a..b"), 4),
        (("resolve-conflict", "DEC-1"), 3),
        (("--branch", "idea", "commit"), 7),
        (("--branch", "idea", "path", "DEC-1"), 7),
    ],
)
def test_what_cannot_be_is_refused(project: Path, arguments: tuple[str, ...], status: int) -> None:
    result = run(*arguments)

    assert result.exit_code == status, result.stderr
    assert "hint: " in result.stderr or status == 4


def test_a_tag_is_a_revision(project: Path) -> None:
    assert said("tag", "before") == "before"
    said("edit", "DEC-1", "-f", "impact=low")
    said("tag", "after", "--at", "HEAD")
    said("tag", "after", "--at", "HEAD~1", "--move")
    said("tag", "gone")
    said("tag", "gone", "--remove")
    assert run("tag", "gone", "--remove").exit_code == 3
    assert run("tag", "--remove").exit_code == 4

    assert told("show", "DEC-1", "--at", "before")["fields"]["impact"] == "high"
    assert [each["name"] for each in told("tag")["tags"]] == ["after", "before"]
