"""What a terminal is shown: nothing that steers it; a pipe gets every byte."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from smp_git import Store
from smp_git.cli.terminal import visible
from tests.face.support import without_progress

_EVIL = "Use \x1b]0;owned\x07\x1b[2J Redis\x9b31m\rhidden\n\tand a tab\r\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    store = Store.init(tmp_path / "store")
    with store.create_session("shop", user="ann") as session:
        session.add("turn", _EVIL, agent="ann", speaker="ann")
        session.add("decision", "plain", rationale=_EVIL)
    return tmp_path / "store"


@pytest.mark.parametrize("command", [("show", "turn-1"), ("list",), ("log",), ("show", "DEC-1"), ("query", "redis"), ("diff", "HEAD~2"), ("show", "turn-1", "--json")])  # fmt: skip
@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_nothing_that_steers_reaches_a_terminal(root: Path, command: tuple[str, ...]) -> None:
    said = _on_a_terminal(root, command)

    assert said
    if command[0] == "query":
        assert "\x1b[1mRedis\x1b[m" in said
    said = _without_colour(said)
    assert not [each for each in said if (each < " " and each not in "\n\t") or "\x7f" <= each <= "\x9f"]  # fmt: skip
    if "--json" in command:
        assert json.loads(said)["content"] == _EVIL


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_errors_steer_no_terminal_either(root: Path) -> None:
    assert "\x1b" not in _without_colour(_on_a_terminal(root, ("show", "\x1b[2Jx")))


def test_a_pipe_gets_what_was_written(root: Path) -> None:
    done = subprocess.run(_command(root, ("show", "turn-1")), stdout=subprocess.PIPE, check=True)

    assert "\x1b]0;owned\x07\x1b[2J Redis\x9b31m\rhidden" in done.stdout.decode()


def test_a_pipe_gets_asterisks_for_what_is_bold(root: Path) -> None:
    done = subprocess.run(_command(root, ("query", "redis")), stdout=subprocess.PIPE, check=True)

    assert "**Redis**" in done.stdout.decode()
    assert "\x1b[1m" not in done.stdout.decode()


def test_lines_and_tabs_are_no_danger() -> None:
    assert visible("a\tb\r\nc\n") == "a\tb\r\nc\n"
    assert visible("a\rb\x1b") == "a\\u000db\\u001b"


def _without_colour(text: str) -> str:
    """Colours are our own: they move nothing and hide nothing."""
    return re.sub(r"\x1b\[[0-9]*m", "", text)


def _command(root: Path, command: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-m", "smp_git", "--root", str(root), "-s", "shop", *command]


def _on_a_terminal(root: Path, command: tuple[str, ...]) -> str:
    import pty

    ours, theirs = pty.openpty()
    with subprocess.Popen(_command(root, command), stdin=theirs, stdout=theirs, stderr=theirs) as process:  # fmt: skip
        os.close(theirs)
        parts = []
        try:
            while part := os.read(ours, 65536):
                parts.append(part)
        except OSError:
            # Linux says so when the other end is closed.
            pass
        process.wait(30)
    os.close(ours)
    # The terminal itself puts a return before each newline.
    return without_progress(b"".join(parts).decode().replace("\r\r\n", "\n").replace("\r\n", "\n"))
