"""Every command with wrong, missing, huge and hostile input: one form of error, no traceback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
import typer
from typer.testing import CliRunner, Result

from smp_git import Store
from smp_git.cli.app import build
from smp_git.cli.program import program

_COMMANDS: Final[dict[str, Any]] = typer.main.get_command(build()).commands  # type: ignore[attr-defined]
# These serve until they are stopped, or write outside the store: their own tests run them.
_ELSEWHERE: Final = frozenset({"web", "mcp", "watch", "demo", "claude", "hook", "completion"})
_NAMES: Final = sorted(_COMMANDS.keys() - _ELSEWHERE)
# As docs/reference/errors.md lists them.
_STATUSES: Final = frozenset(range(2, 14))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    place = tmp_path / "inner"
    place.mkdir()
    with Store.init(tmp_path / "store").create_session("shop", user="ada") as session:
        session.add("decision", "Use Redis", agent="ada", tags=["cache"])
        session.add("finding", "It is slow", agent="ada")
    monkeypatch.chdir(place)
    yield tmp_path / "store"
    assert not list(tmp_path.rglob("pwned"))


def run(root: Path, *arguments: str) -> Result:
    # As the program does: only the command that is called is built.
    return CliRunner().invoke(program(arguments[0]), ["--root", str(root), *arguments], input="")


def judge(done: Result, *arguments: str) -> None:
    """Raise AssertionError unless a command ended as one may."""
    about = (arguments, done.exit_code, done.stderr, done.exception)
    assert done.exception is None or isinstance(done.exception, SystemExit), about
    if not done.exit_code:
        return
    assert done.exit_code in _STATUSES, about
    errors = [line for line in done.stderr.splitlines() if line.startswith("smp: ")]
    if "--json" in arguments:
        (line,) = (line for line in done.stderr.splitlines() if line.startswith('{"error"'))
        assert json.loads(line)["error"].keys() >= {"code", "message"}, about
    elif done.exit_code != _FOUND:
        assert len(errors) == 1, about
        assert len(done.stderr) < _SHORT, about


# What a check or a proof ends with, which is no error.
_FOUND: Final = 9
# An error quotes no more of what it refuses.
_SHORT: Final = 1_500


# Longer than any name, beyond 64 bits, and in no year that a clock knows.
_HUGE: Final = ("very " * 1_000, "9" * 40, "99999-01-01")


def _places(name: str) -> list[Any]:
    return [each for each in _COMMANDS[name].params if each.param_type_name == "argument"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that wrong commands leave as it is."""
    place = tmp_path_factory.mktemp("shared") / "store"
    with Store.init(place).create_session("shop", user="ada") as session:
        session.add("decision", "Use Redis", agent="ada", tags=["cache"])
    return place


@pytest.fixture(scope="module")
def worn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that huge commands may change."""
    place = tmp_path_factory.mktemp("worn") / "store"
    with Store.init(place).create_session("shop", user="ada") as session:
        session.add("decision", "Use Redis", agent="ada", tags=["cache"])
    return place


@pytest.mark.parametrize("name", _NAMES)
def test_wrong_and_missing_arguments_are_told_in_one_form(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    root = shared
    wrong = run(root, name, "--no-such-option")
    judge(wrong, name, "--no-such-option")
    assert wrong.exit_code == 2
    given = [name, *("\x1b[2J\udcff" for _ in _places(name)), "--json"]
    judge(run(root, *given), *given)
    missing = [name] if any(each.required for each in _places(name)) else [name, *["x"] * 9]
    judge(run(root, *missing), *missing)


@pytest.mark.parametrize("name", _NAMES)
def test_huge_arguments_are_told_in_one_form(
    worn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for huge in _HUGE if _places(name) else ():
        given = [name, *(huge for _ in _places(name))]
        done = run(worn, *given)
        judge(done, *given)
        # Nothing but a folder has a name that is too long for the disk.
        assert done.exit_code != 11 or name == "init", (given, done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("name", _NAMES)
def test_huge_values_of_options_are_told_in_one_form(
    worn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    options = [
        each
        for each in _COMMANDS[name].params
        if each.param_type_name == "option" and not each.is_flag
    ]
    needed = ["DEC-1" for each in _places(name) if each.required]
    for number, (option, huge) in enumerate(product(options, _HUGE)):
        # What one of them does is not in the way of the next.
        copy = tmp_path / str(number)
        shutil.copytree(worn, copy, symlinks=True)
        monkeypatch.chdir(copy.parent)
        given = [name, *needed, option.opts[0], huge]
        judge(run(copy, *given), *given)
        shutil.rmtree(copy)


@pytest.mark.parametrize(
    "given",
    [
        ("bring-back", "HUGE"),
        ("delete-session", "HUGE"),
        ("config", "HUGE", "HUGE"),
        ("export", "--format=HUGE"),
        ("import", "HUGE"),
        ("new", "--context", "HUGE"),
    ],
    ids=lambda given: given[0],
)
def test_an_error_does_not_repeat_a_huge_argument_whole(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    given = tuple(each.replace("HUGE", "very " * 1_000) for each in given)
    for arguments in (given, (*given, "--json")):
        done = run(shared, *arguments)
        judge(done, *arguments)
        assert done.exit_code
        assert "very" in done.stderr and "…" in done.stderr
        assert len(done.stderr) < _BRIEF


# One that repeats the beginning and the end of what it refuses, its hint, and what JSON adds.
_BRIEF: Final = 900


def test_an_output_that_is_closed_early_is_no_error(root: Path) -> None:
    call = [sys.executable, "-P", "-m", "smp_git", "--root", str(root), "list"]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(call, stdout=closed, stderr=subprocess.PIPE, check=False)

    assert done.returncode == 0
    assert done.stderr == b""
