"""Every command with wrong, missing, huge, hostile and closed input: one form of error, no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import typer
from typer.testing import CliRunner, Result

from smp_git import Store
from smp_git.cli.app import build
from smp_git.cli.program import program
from tests.face.support import environment, on_terminal
from tests.support import ROOT

app = program()
_COMMANDS: Final[dict[str, Any]] = typer.main.get_command(build()).commands  # type: ignore[attr-defined]
# These serve until they are stopped, or write outside the store: their own tests run them.
_ELSEWHERE: Final = frozenset({"web", "mcp", "watch", "demo", "claude", "hook", "completion"})
_NAMES: Final = sorted(_COMMANDS.keys() - _ELSEWHERE)
# As docs/reference/errors.md lists them.
_STATUSES: Final = frozenset(range(2, 14))
_HOSTILE: Final = (
    "", " ", "\x00", "\x1b]0;title\x07\x1b[2J", "a\r\nb", "\udcff", "’; drop table x", "{{7*7}}",
    "%s%n", "$(touch pwned)", "`touch pwned`", "--", "-", "*", "a" * 5_000, "9" * 5_000, "-1",
    "DEC-0", "DEC-99999999999999999999", "9999-12-31T23:59:59Z", "HEAD~99999999999999999999",
    "HEAD^^^^^", "..", "main..", "1e999", "NaN", "[" * 5_000, "𝕏" * 500, "refs/heads/main",
)  # fmt: skip


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
    return CliRunner().invoke(app, ["--root", str(root), *arguments], input="")


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


def _places(name: str) -> list[Any]:
    return [each for each in _COMMANDS[name].params if each.param_type_name == "argument"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that wrong commands leave as it is."""
    place = tmp_path_factory.mktemp("shared") / "store"
    with Store.init(place).create_session("shop", user="ada") as session:
        session.add("decision", "Use Redis", agent="ada", tags=["cache"])
    return place


@pytest.mark.parametrize("name", _NAMES)
def test_wrong_and_missing_arguments_are_told_in_one_form(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    root = shared
    judge(run(root, name, "--no-such-option"), name, "--no-such-option")
    assert run(root, name, "--no-such-option").exit_code == 2
    given = [name, *("\x1b[2J\udcff" for _ in _places(name)), "--json"]
    judge(run(root, *given), *given)
    missing = [name] if any(each.required for each in _places(name)) else [name, *["x"] * 9]
    judge(run(root, *missing), *missing)


@pytest.mark.slow
@pytest.mark.parametrize("name", _NAMES)
def test_no_argument_however_hostile_ends_in_a_traceback(root: Path, name: str) -> None:
    for text in _HOSTILE:
        if not _places(name):
            break
        given = [name, "--", *(text for _ in _places(name))]
        judge(run(root, *given), *given)
    for option in _COMMANDS[name].params:
        takes = option.param_type_name == "option" and not getattr(option, "is_flag", False)
        if not takes or option.name.startswith("common") or option.metavar in ("FILE", "DIR", "PATH"):  # fmt: skip
            continue
        for text in ("", "\x00", "\udcff", "9" * 5_000, "a" * 5_000, "1e999", "-1"):
            given = [name, f"{option.opts[-1]}={text}", *("DEC-1" for _ in _places(name))]
            judge(run(root, *given), *given)


@pytest.mark.slow
@pytest.mark.parametrize("name", _NAMES)
def test_closed_streams_end_in_no_traceback(root: Path, name: str) -> None:
    call = [sys.executable, "-P", "-m", "smp_git", "--root", str(root), name]
    call += ["DEC-0001" for each in _places(name) if each.required]
    env = {**environment(root.parent), "PYTHONPATH": str(ROOT)}
    shell = ["sh", "-c", 'exec "$@" <&- >&- 2>"$SAID"', "sh", *call]
    said = root.parent / "said"
    done = subprocess.run(shell, env={**env, "SAID": str(said)}, check=False, timeout=60)

    assert "Traceback" not in said.read_text()
    assert done.returncode in {0, *_STATUSES}


def test_an_output_that_is_closed_early_is_no_error(root: Path) -> None:
    call = [sys.executable, "-P", "-m", "smp_git", "--root", str(root), "list"]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(call, stdout=closed, stderr=subprocess.PIPE, check=False)

    assert done.returncode == 0
    assert done.stderr == b""


# Screens


_SEEN: Final = (
    ("list",), ("log",), ("show", "DEC-1"), ("query", "slow"), ("status",), ("sessions",),
    ("help",), ("fields", "finding"), ("trash",), ("config",), ("topics",), ("timeline",),
    ("agents",), ("blame", "DEC-1"), ("diff", "DEC-1"), ("delete", "--tag", "cache"),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize("columns", [60, 100, 200])
def test_what_is_shown_fits_the_terminal(root: Path, columns: int) -> None:
    from smp_git.cli.screen import width

    text = "A long decision about the cache, " * 8 + "会话超时 " * 20
    with Store.open(root).session("shop") as session:
        session.edit("DEC-1", text=text, rationale=text)
    tables = {"list", "log", "sessions", "trash", "blame", "topics"}
    for command in _SEEN:
        call = [sys.executable, "-P", "-m", "smp_git", "--root", str(root), *command]
        shown = on_terminal(call, columns=columns, env=environment(root.parent, NO_COLOR="1"))

        assert "Traceback" not in shown
        if command[0] in tables:
            assert max(map(width, shown.splitlines())) <= columns, command
