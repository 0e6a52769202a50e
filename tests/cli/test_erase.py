"""The wiring of the commands that delete: plans, confirmations, streams, statuses, JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from smp_git.cli.program import program

app = program()

RUNNER = CliRunner()
TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    run("new", "shop", "--user", "ada")
    run("add", "decision", "Use Redis", "-t", "database.cache", "-a", "architect")
    run("add", "finding", "No MFA", "-t", "security", "-a", "veritas")
    return tmp_path


def run(*arguments: object, stdin: str | None = None) -> Result:
    return RUNNER.invoke(app, [str(argument) for argument in arguments], input=stdin)


def said(*arguments: object, stdin: str | None = None) -> str:
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


def told(*arguments: object) -> dict[str, Any]:
    value = json.loads(said(*arguments, "--json"))
    assert isinstance(value, dict)
    return value


def ids() -> list[str]:
    return [memory["id"] for memory in told("list")["memories"]]


def test_delete_prints_its_receipt(project: Path) -> None:
    receipt = told("delete", "DEC-0001", "--reason", "outdated", "--by", "ada")

    assert receipt["ids"] == ["DEC-0001"]
    assert receipt["proof"]["clean"]
    assert ids() == ["FIND-0001"]


def test_delete_says_what_it_did(project: Path) -> None:
    out = said("delete", "DEC-0001").splitlines()

    assert out[0] == "deleted DEC-0001"
    assert any("nothing found" in line for line in out)
    assert any(line.startswith("  restorable until ") for line in out)


@pytest.mark.parametrize(
    ("criterion", "expected"),
    [
        (("--tag", "database"), ["DEC-0001"]),
        (("--agent", "veritas"), ["FIND-0001"]),
        (("--kind", "finding"), ["FIND-0001"]),
        (("--text", "redis"), ["DEC-0001"]),
        (("--since", "1 hour ago"), ["DEC-0001", "FIND-0001"]),
    ],
    ids=lambda value: value[0],
)
def test_delete_by_criteria_can_be_tried_first(project: Path, criterion: tuple[str, str], expected: list[str]) -> None:  # fmt: skip
    plan = told("delete", *criterion, "--dry-run")

    assert plan["ids"] == expected
    assert plan["dry_run"]
    assert len(ids()) == 2


def test_a_dry_run_shows_titles(project: Path) -> None:
    assert said("delete", "--tag", "security", "--dry-run") == "would delete FIND-0001: No MFA"


def test_delete_with_purge_asks_for_yes(project: Path) -> None:
    result = run("delete", "DEC-0001", "--purge")

    assert result.exit_code == 7
    assert result.stdout == "would delete DEC-0001: Use Redis\n"
    assert "smp: this cannot be undone" in result.stderr
    assert "smp delete" not in result.stderr
    assert len(ids()) == 2


def test_delete_with_purge_and_yes_leaves_nothing_to_restore(project: Path) -> None:
    said("delete", "DEC-0001", "--purge", "--yes")

    assert told("trash")["total"] == 0
    assert run("restore", "DEC-0001").exit_code == 7


def test_trash_and_restore(project: Path) -> None:
    said("delete", "DEC-0001", "--reason", "outdated", "--by", "ada")
    (row,) = told("trash")["memories"]
    assert (row["id"], row["type"], row["reason"]) == ("DEC-0001", "decision", "outdated")
    assert said("trash").startswith("DEC-0001  deleted ")

    assert said("restore", "DEC-0001", "--with-history") == "restored DEC-0001"

    assert ids() == ["DEC-0001", "FIND-0001"]
    assert said("trash") == ""
    assert run("trash").stderr == "note: the trash is empty\n"


def test_purge_now_asks_for_yes(project: Path) -> None:
    said("delete", "DEC-0001")

    result = run("purge", "DEC-0001", "--now")

    assert (result.exit_code, result.stdout) == (7, "would purge DEC-0001\n")
    assert told("trash")["total"] == 1
    assert said("purge", "DEC-0001", "--now", "--yes") == "purged DEC-0001"
    assert told("trash")["total"] == 0


@pytest.mark.parametrize("arguments", [("DEC-0001",), (), ("--now",), ("--expired", "--older-than", "1d")])  # fmt: skip
def test_purge_wants_to_be_told_what(project: Path, arguments: tuple[str, ...]) -> None:
    assert run("purge", *arguments).exit_code == 4


def test_purge_older_than_asks_for_yes_and_expired_does_not(project: Path) -> None:
    said("delete", "DEC-0001")

    assert said("purge", "--expired") == "nothing to purge"
    assert run("purge", "--older-than", "1s").exit_code == 7
    assert told("purge", "--older-than", "1w", "--yes")["ids"] == []


def test_redact_asks_for_yes(project: Path) -> None:
    result = run("redact", "Redis")

    assert (result.exit_code, result.stdout) == (7, "would redact DEC-0001\n")
    assert said("redact", "Redis", "--replacement", "a cache", "--yes") == "redacted DEC-0001"
    assert told("show", "DEC-0001")["content"] == "Use a cache"


def test_redact_takes_a_pattern_and_the_standard_input(project: Path) -> None:
    assert said("redact", "--regex", "Red.s", "--dry-run") == "would redact DEC-0001"
    assert said("redact", "-", "--dry-run", stdin="No MFA\n") == "would redact FIND-0001"
    assert run("redact", "--regex", "(", "--dry-run").exit_code == 4


def test_a_receipt_reads_well(project: Path) -> None:
    told("delete", "DEC-0001", "--reason", "outdated", "--by", "ada")

    out = said("receipt").splitlines()

    assert out[0] == "deleted DEC-0001"
    assert out[1].startswith("  1 version, ")
    assert out[-1].endswith(" by ada: outdated")
    assert not any("{" in line or "None" in line for line in out)


def test_receipt_and_verify(project: Path) -> None:
    made = told("delete", "DEC-0001")

    assert told("receipt", "DEC-0001")["deletion"] == made["deletion"]
    assert told("verify", "--deleted")["clean"]
    assert said("verify", "--deleted").endswith("nothing found")
    assert run("receipt", "DEC-0099").exit_code == 3


@pytest.fixture
def copied(project: Path) -> Path:
    """A copy of a memory's text that a person put beside it."""
    said("add", "decision", "The vault opens at 04:51 with the word plugh", "-a", "architect")
    made = Path(said("path", "DEC-0001")).parents[2] / "mine.txt"
    made.write_text("The vault opens at 04:51 with the word plugh")
    return made


@pytest.mark.parametrize("more", [(), ("--purge", "--yes")], ids=["delete", "purge"])
def test_deletion_that_leaves_something_says_so_by_its_status(copied: Path, more: tuple[str, ...]) -> None:  # fmt: skip
    result = run("delete", "DEC-0002", *more)

    assert result.exit_code == 9
    assert "found at the file mine.txt" in result.stdout
    assert "nothing found" not in result.stdout
    copied.unlink()


def test_verify_finds_what_the_receipt_reported(copied: Path) -> None:
    run("delete", "DEC-0002")

    result = run("verify", "--deleted")

    assert result.exit_code == 9
    assert result.stdout.splitlines()[-1].endswith(" for ids and texts: found at the file mine.txt")
    copied.unlink()
    assert said("verify").endswith("for ids and texts: nothing found")


def test_purge_finds_what_its_copy_tells_for_the_last_time(copied: Path) -> None:
    run("delete", "DEC-0002")

    result = run("purge", "DEC-0002", "--now", "--yes")

    assert result.exit_code == 9
    assert result.stdout.startswith("purged DEC-0002\n")
    assert result.stdout.endswith("found at the file mine.txt\n")
    assert said("verify").splitlines() == [
        "not searched: the text of a deleted or redacted memory, which no copy here holds",
        said("verify").splitlines()[-1],
    ]
    assert said("verify").endswith(" for ids only: nothing found")
    copied.unlink()


def test_anonymize_prints_the_new_session(project: Path) -> None:
    name = said("-s", "shop", "anonymize", "--yes")

    assert [session["id"] for session in told("sessions")["sessions"]] == [name]
    assert told("trash", "--sessions")["sessions"][0]["id"] == "shop"


def test_a_whole_session_goes_and_comes_back(project: Path) -> None:
    assert told("delete-session", "shop", "--reason", "finished")["reason"] == "finished"
    assert told("sessions")["total"] == 0
    assert told("trash", "--sessions")["total"] == 1

    assert said("undelete-session", "shop") == "shop"
    assert ids() == ["DEC-0001", "FIND-0001"]


def test_purge_session_asks_for_yes(project: Path) -> None:
    said("delete-session", "shop")

    assert run("purge-session", "shop").exit_code == 7
    assert run("purge-session", "shopp").exit_code == 3
    assert said("purge-session", "shop", "--yes") == "purged shop"
    assert told("trash", "--sessions")["total"] == 0


def test_audit_lists_what_happened(project: Path) -> None:
    said("delete", "DEC-0001", "--by", "ada")
    said("restore", "DEC-0001", "--by", "ada")

    assert [line["action"] for line in told("audit")["lines"]] == ["delete", "restore"]
    assert "ada  delete   shop  DEC-0001" in said("audit")


def test_a_redacted_secret_is_noted(project: Path) -> None:
    result = run("add", "turn", f"my key is {TOKEN}")

    assert result.stdout == "turn-0001\n"
    assert "note: a github-token was redacted\n" in result.stderr
    assert told("add", "turn", f"and {TOKEN}")["redacted"] == {"github-token": 1}
    assert TOKEN not in result.stdout + result.stderr


def test_anonymize_takes_every_session(project: Path) -> None:
    said("new", "other")

    assert told("anonymize", "--all-sessions", "--yes")["total"] == 2
    assert told("trash", "--sessions")["total"] == 2
