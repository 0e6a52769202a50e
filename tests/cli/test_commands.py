"""The wiring of the commands: streams, statuses, JSON, options."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from smp_git.cli.program import program
from tests.support import git

app = program()

RUNNER = CliRunner()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    run("new", "shop", "--user", "ada")
    return tmp_path


def run(*arguments: object, stdin: str | bytes | None = None) -> Result:
    return RUNNER.invoke(app, [str(argument) for argument in arguments], input=stdin)


def said(*arguments: object, stdin: str | bytes | None = None) -> str:
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


def told(*arguments: object) -> dict[str, Any]:
    value = json.loads(said(*arguments, "--json"))
    assert isinstance(value, dict)
    return value


def test_new_makes_the_store_and_the_session_current(project: Path) -> None:
    assert said("add", "decision", "Use Redis") == "DEC-0001"
    assert (project / ".bmad/sessions/active/shop/decisions/000/DEC-0001.yaml").is_file()


def test_init_keeps_the_store_out_of_the_projects_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "-q")
    said("init")
    said("new", "shop")
    git(tmp_path, "add", ".")

    assert git(tmp_path, "status", "--porcelain") == ""


def test_add_takes_every_option(project: Path) -> None:
    memory = told(
        "add",
        "finding",
        "No MFA",
        "-a",
        "Veritas",
        "-t",
        "security.login",
        "-t",
        "mfa",
        "-l",
        "references:turn-0001",
        "-f",
        "severity=critical",
        "-f",
        'location={"line_numbers": [45, 60]}',
        "--when",
        "2026-01-11T14:30:00Z",
    )

    assert memory["agent"] == "veritas"
    assert memory["tags"] == ["security.login", "mfa"]
    assert memory["fields"] == {"severity": "critical", "location": {"line_numbers": [45, 60]}}
    assert memory["created_at"] == "2026-01-11T14:30:00Z"
    assert memory["links"] == [{"relation": "references", "target": "turn-0001"}]


def test_json_of_a_memory_keeps_its_contract(project: Path) -> None:
    said("add", "decision", "Use Redis")
    keys = {
        "id",
        "kind",
        "created_at",
        "agent",
        "tags",
        "title",
        "content",
        "fields",
        "links",
        "size_bytes",
        "path",
        "commit",
    }

    assert keys <= told("show", "DEC-1").keys()
    listed = told("list")
    assert listed["total"] == 1 and keys <= listed["memories"][0].keys()


def test_standard_input_is_kept_to_the_byte(project: Path) -> None:
    said("add", "turn", "-", stdin=b"Hello\r\n---\nworld  \n")

    assert told("show", "turn-1")["content"] == "Hello\r\n---\nworld  \n"


def test_text_from_a_file(project: Path) -> None:
    (project / "note.md").write_text("# A plan\n")
    said("add", "artifact", "--file", "note.md")

    assert told("show", "ART-1")["title"] == "# A plan"


def test_common_options_stand_before_or_after_the_command(
    project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    said("add", "decision", "Use Redis")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))

    assert "Use Redis" in said("-C", project, "-s", "sho", "list")
    assert "Use Redis" in said("list", "-C", project, "--session", "shop")
    assert "Use Redis" in said("list", "--root", project / ".bmad/sessions", "-s", "shop")


def test_environment_names_store_and_session(
    project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    said("new", "other")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    monkeypatch.setenv("SMP_ROOT", str(project / ".bmad/sessions"))
    monkeypatch.setenv("SMP_SESSION", "shop")
    monkeypatch.setenv("SMP_AGENT", "veritas")

    assert told("add", "decision", "Use Redis")["agent"] == "veritas"
    assert told("info")["id"] == "shop"


def test_several_sessions_without_a_current_one_are_an_error(project: Path) -> None:
    said("new", "other")
    for file in (project / ".bmad/sessions/.current").iterdir():
        file.unlink()

    assert run("list").exit_code == 3
    said("use", "oth")
    assert told("info")["id"] == "other"


def test_history_commands(project: Path) -> None:
    said("add", "decision", "Use Redis", "-f", "impact=low")
    said("edit", "DEC-1", "-f", "impact=high", "-a", "veritas")

    assert "edit decision DEC-0001" in said("log", "DEC-1")
    assert told("log", "-n", "1")["total"] == 1
    assert "  ~ impact: low -> high" in said("diff")
    assert "veritas  impact: high" in said("blame", "DEC-1")
    assert told("show", "DEC-1", "--at", "HEAD~1")["fields"]["impact"] == "low"
    assert said("undo") == "undo DEC-0001"
    assert said("rollback", "HEAD~1", "DEC-1") == "rollback DEC-0001"
    assert said("rollback", "HEAD") == "nothing to do"


def test_a_time_before_the_session_is_told_to_be_its_beginning(project: Path) -> None:
    said("add", "decision", "Use Redis")
    said("tag", "v1")
    told_of = "began at .*, so this is its beginning"

    for command in (
        "list --at", "query Redis --at", "show DEC-1 --at", "diff", "rollback", "topics --at",
        "timeline --at", "timeline --events --at", "agents --at", "summary --at",
        "similar Redis --at", "related DEC-1 --at", "context --at", "aggregate --at", "state ada --at",
    ):  # fmt: skip
        assert len(re.findall(told_of, run(*command.split(), "yesterday").stderr)) == 1, command
    assert not re.search(told_of, run("topics", "--at", "HEAD~1").stderr)
    assert not re.search(told_of, run("diff", "HEAD~1", "v1").stderr)


def test_a_rollback_to_before_the_first_memory_wants_yes(project: Path) -> None:
    said("add", "decision", "Use Redis")
    refused = run("rollback", "yesterday")

    assert refused.exit_code == 7
    assert "this would remove 1 memory\nhint: nothing was changed; --yes" in refused.stderr
    assert told("list")["total"] == 1
    assert said("rollback", "yesterday", "--yes") == "rollback DEC-0001"
    assert told("list")["total"] == 0
    assert said("rollback", "yesterday") == "nothing to do"
    said("undo")
    assert told("list")["total"] == 1


def test_state_is_shown_and_merged(project: Path) -> None:
    said("state", "veritas", "-f", "current_context=verify")
    said("state", "veritas", "-f", 'working_memory=["MFA"]')

    assert told("state", "veritas")["state"] == {
        "current_context": "verify",
        "working_memory": ["MFA"],
    }
    assert said("state", "nobody") == "{}"


def test_what_one_types_first_is_understood(project: Path) -> None:
    said("add", "decision", "Use Redis")
    said("add", "finding", "It is slow")

    assert run("related", "DEC-1").stderr == "note: nothing is linked with DEC-1\n"
    said("link", "DEC-1", "resolves", "find1")
    assert said("related", "DEC-1") == "-> resolves  FIND-0001  It is slow"
    said("link", "DEC-1", "resolves", "find1", "--remove")
    assert said("related", "DEC-1") == ""
    said("add", "finding", "It is dear")
    moment = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    assert re.match(rf"1 decision, 2 findings, from {moment} to {moment}\n", said("summary"))
    assert "1 decision, 2 findings" in said("info")


def test_settings_are_shown_and_set_as_in_git_config(project: Path) -> None:
    for words in (("trash_days=60",), ("trash_days", "50"), ("set", "trash_days", "40")):
        assert said("config", *words).split()[:2] == ["trash_days", f"{words[-1][-2:]}.0"]
    assert said("config", "trash_days") == "40.0"
    assert "perhaps trash_days" in run("config", "trash_day").stderr
    assert run("config", "show", "trash_days", "3").exit_code == 4
    assert told("config", "unset", "trash_days")["settings"][0]["source"] == "default"


def test_an_export_is_in_the_format_that_its_ending_says(project: Path) -> None:
    said("add", "decision", "Use Redis")

    for name, start in {"a.md": "# ", "a.json": "{", "a.YAML": "smp_export: ", "a": '{"'}.items():
        said("export", "-o", name)
        assert (project / name).read_text().startswith(start), name
    said("export", "-o", "b.md", "--format", "json")
    assert json.loads((project / "b.md").read_text())


def test_links_pins_and_resolution(project: Path) -> None:
    said("add", "finding", "No MFA")
    said("add", "decision", "Require MFA")
    said("link", "DEC-1", "resolves:FIND-1")
    said("resolve", "FIND-1", "--action", "done", "--by", "ada")
    said("pin", "DEC-1")

    assert told("show", "DEC-1")["links"] == [{"relation": "resolves", "target": "FIND-0001"}]
    assert told("show", "DEC-1")["fields"]["pinned"] is True
    assert told("show", "FIND-1")["fields"]["resolution"]["action_taken"] == "done"
    said("unpin", "DEC-1")
    said("link", "DEC-1", "resolves:FIND-0001", "--remove")
    assert told("show", "DEC-1")["links"] == []


def test_supersede_says_so_at_both_ends(project: Path) -> None:
    said("add", "decision", "Use PostgreSQL 16")

    assert said("supersede", "DEC-1", "Use PostgreSQL 18") == "DEC-0002"
    assert told("show", "DEC-1")["fields"]["status"] == "superseded"


def test_commit_names_file_and_line_of_what_does_not_parse(project: Path) -> None:
    said("add", "decision", "Use Redis")
    file = Path(said("path", "DEC-1"))
    before = file.read_text()
    file.write_text(before + "broken: [\n")
    result = run("commit")

    assert result.exit_code == 4
    assert f"decisions/000/DEC-0001.yaml:{before.count(chr(10)) + 2}:" in result.stderr
    file.write_text(before + "note: by hand\n")
    assert said("commit") == "edit DEC-0001"
    assert told("show", "DEC-1")["fields"]["note"] == "by hand"


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (("show", "DEC-9"), 3, "memory_not_found"),
        (("show", "nonsense"), 4, "invalid"),
        (("add", "wish", "x"), 4, "invalid"),
        (("add", "decision", " "), 4, "invalid"),
        (("add", "decision", "x", "-t", "Not A Tag"), 4, "invalid"),
        (("add", "decision", "x", "-f", "novalue"), 4, "invalid"),
        (("add", "decision", "x", "-l", "FIND-1"), 4, "invalid"),
        (("add", "decision", "x", "--when", "sometime"), 4, "invalid"),
        (("show", "DEC-1", "--at", "HEAD~99"), 3, "invalid_revision"),
        (("-s", "nothing", "list"), 3, "session_not_found"),
        (("-C", "/", "list"), 8, "no_store"),
        (("undo",), 7, "refused"),
        (("new", "shop"), 5, "already_exists"),
        (("new", "no/slash"), 4, "invalid"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_errors_have_a_status_a_code_and_a_sentence(
    project: Path, arguments: tuple[str, ...], status: int, code: str
) -> None:
    result = run(*arguments, "--json")
    error = json.loads(result.stderr)["error"]

    assert (result.exit_code, error["code"]) == (status, code)
    assert error["message"] and result.stdout == ""
    text = run(*arguments).stderr
    assert text.startswith("smp: ") and "Traceback" not in text


def test_every_command_has_help_and_an_example() -> None:
    for name in [
        line.split()[0]
        for line in said("--help").partition("Commands:")[2].splitlines()
        if line.strip()
    ]:
        assert "Example: smp" in said(name, "--help") or "Example: $EDITOR" in said(name, "--help")


def test_demo_leaves_a_sound_session(project: Path) -> None:
    value = told("demo", "here")

    assert said("--root", "here", "-s", value["session"], "check") == "sound"
    assert git(Path(value["path"]), "status", "--porcelain") == ""
    assert "architect" in git(Path(value["path"]), "shortlog", "-sn", "HEAD")


@pytest.mark.parametrize("prompt", [b"Which gasket fits?", b"\xff\xfe\0 gasket \x80", b"gasket " * 300_000, b""])  # fmt: skip
def test_context_reads_any_prompt_from_standard_input(project: Path, prompt: bytes) -> None:
    said("add", "learning", "the gasket of 40 mm fits")
    text = said("context", "--for", "-", stdin=prompt)
    assert text.startswith("## What answers the question" if prompt else "## Learnings")
    assert said("context", "--for", "which gasket?").startswith("## What answers the question")


def test_query_takes_every_threshold_and_any_sort_key(project: Path) -> None:
    said("add", "decision", "use a cache", "-f", "importance=0.9", "-f", "height=3")
    said("add", "decision", "use no cache", "-f", "importance=0.2", "-f", "height=5")

    assert told("query", "--min-importance", "0.5")["total"] == 1
    assert told("query", "cache", "--min-relevance", "1")["total"] == 0
    assert told("query", "--min-priority", "1", "--include-decayed")["total"] == 2
    assert told("query", "--min-priority", "1")["total"] == 0
    assert [each["id"] for each in told("query", "--sort", "-height")["memories"]] == ["DEC-0002", "DEC-0001"]  # fmt: skip


def test_a_slip_in_a_query_is_pointed_out(project: Path) -> None:
    said("add", "finding", "it is slow", "-f", "severity=high", "-t", "speed")
    for wrong, hint in {"severity=hgh": "perhaps high", "sevrity=high": "perhaps severity"}.items():
        result = run("query", "-w", wrong)
        assert result.exit_code != 0
        assert hint in result.stderr
    assert "is not closed" in run("query", '"it is').stderr
    assert "no memory has the tag sped; perhaps speed" in run("query", "-t", "sped").stderr


def test_show_and_json_tell_how_often_a_memory_was_read(project: Path) -> None:
    said("add", "decision", "use a cache")
    assert run("show", "DEC-1").stderr == ""
    assert "note: read once before, last on" in run("show", "DEC-1").stderr
    said("query", "cache")
    assert told("show", "DEC-1")["access_count"] == 2
    assert told("list")["memories"][0]["access_count"] == 3
    hit = told("query", "cache")["memories"][0]
    assert hit["access_count"] == 3
    assert hit["last_accessed"] >= hit["created_at"]
    assert told("similar", "cache")["memories"][0]["access_count"] == 3
