"""Help, wrong use, and output that cannot be written: one form for each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from smp_git import Store
from smp_git.cli import help as helping
from smp_git.cli.catalogue import ENTRIES, GROUPS
from smp_git.cli.program import program
from tests.face.support import environment, on_terminal
from tests.support import ROOT, smp

app = program()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), prog_name="smp")


def test_smp_alone_shows_ten_commands() -> None:
    result = run()

    assert result.exit_code == 0
    assert sum(line.startswith("  smp ") for line in result.stdout.splitlines()) == 10


def test_words_of_other_programs_lead_to_commands() -> None:
    for word, meant in helping._ELSEWHERE.items():
        assert word not in ENTRIES
        for each in meant.split(" or "):
            command, _, option = each.partition(" ")
            assert command in ENTRIES or each == "--version", word
            assert not option or any(
                option in known.names for known in helping.describe(command).options
            )


@pytest.mark.parametrize("arguments", [("help",), ("--help",), ("-h",)])
def test_help_lists_every_command_in_its_group(arguments: tuple[str, ...]) -> None:
    lines = run(*arguments).stdout.splitlines()

    for group, entries in GROUPS.items():
        at = lines.index(group)
        listed = [line.split()[0] for line in lines[at + 1 :] if line[2:3].strip()]
        assert listed[: len(entries)] == list(entries)


@pytest.mark.parametrize("name", ["add", "delete", "config", "undo"])
def test_a_command_is_explained_in_the_same_words_by_each_way(name: str) -> None:
    said = run("help", name).stdout

    assert said == run(name, "--help").stdout == run("-s", "x", name, "-h").stdout
    assert ENTRIES[name].summary in said
    assert f"smp {name}" in said


def test_help_of_what_takes_fields_names_them() -> None:
    assert "root_cause" in run("add", "--help").stdout
    assert "important" not in run("fields", "finding").stdout.split("\n", 1)[0]
    assert "root_cause" in run("fields", "finding").stdout


def test_version() -> None:
    assert run("--version").stdout == "smp 0.1.0\n"


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("ad",), "no command 'ad'", "did you mean add?"),
        (("forget",), "no command 'forget'", "did you mean delete?"),
        (("help", "forgett"), "no command 'forgett'", "smp help lists the commands"),
        (("-s", "x"), "no command", "smp help lists the commands"),
        (
            ("add", "finding", "x", "--severity", "high"),
            "smp add has no option --severity",
            "severity is a field: --field severity=VALUE",
        ),
        (("list", "--limt", "3"), "smp list has no option --limt", "did you mean --limit or --at?"),
        (("context", "--prompt", "x"), "smp context has no option --prompt", "did you mean --for?"),
        (("list", "--type", "turn"), "smp list has no option --type", "did you mean --kind?"),
        (("show",), "missing argument 'ID'", "smp help show"),
        (("show", "a", "b"), "got unexpected extra argument (b)", "smp help show"),
        (("add", "turn", "x", "--tag"), "option '--tag' requires an argument", "smp help add"),
        (("completion", "tcsh"), "no completion for tcsh", "there is one for bash, zsh, fish"),
    ],
)
def test_wrong_use_is_told_as_every_error_is(
    arguments: tuple[str, ...], message: str, hint: str
) -> None:
    result = run(*arguments)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.lower() == f"smp: {message}\nhint: {hint}\n".lower()
    told = json.loads(run("--json", *arguments).stderr)["error"]
    assert (told["code"], told["hint"]) == ("usage", hint)


def test_a_number_that_is_none_is_told_with_its_option() -> None:
    result = run("list", "--limit", "many")

    assert result.exit_code == 2
    assert result.stderr.startswith("smp: --limit: ")
    assert result.stderr.endswith("\nhint: smp help list\n")


# Output


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Store.init(tmp_path / "store").create_session("shop", user="ada").close()
    return tmp_path / "store"


def _into(place: str, root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-P", "-m", "smp_git", "--root", str(root), *arguments]
    return subprocess.run(
        ["/bin/sh", "-c", f'"$@" {place}', "sh", *call],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
@pytest.mark.parametrize("place", [">/dev/full", ">&-"])
def test_what_was_written_is_no_failure_though_nobody_could_be_told(root: Path, place: str) -> None:
    added = _into(place, root, "add", "turn", "hello")
    listed = _into(place, root, "list")

    assert added.returncode == 0
    assert listed.returncode == 11
    for each in (added, listed):
        assert each.stderr.startswith("smp: cannot write the output: ")
        assert len(each.stderr.splitlines()) == 1
    assert "hello" in smp("--root", root, "list").stdout


@pytest.mark.parametrize("place", ["2>&-", "2>/dev/full"])
def test_what_nobody_hears_is_no_error(root: Path, place: str) -> None:
    assert _into(place, root, "trash").returncode == 0


def test_a_reader_that_leaves_early_is_no_error(root: Path) -> None:
    done = _into("| true", root, "help")

    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_input_is_an_empty_one(root: Path) -> None:
    done = _into("<&-", root, "add", "turn", "-")

    assert done.returncode == 4
    assert done.stderr.startswith("smp: ")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize("columns", [40, 60, 100, 200])
def test_help_fits_the_terminal(columns: int, tmp_path: Path) -> None:
    call = [sys.executable, "-P", "-m", "smp_git", "help"]
    shown = on_terminal(call, columns=columns, env=environment(tmp_path, NO_COLOR="1"))

    assert max(map(len, shown.splitlines())) <= max(columns, 60)
