"""Completion: what may stand next, and the scripts in the real shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from smp_git import Store
from smp_git.cli.complete import candidates
from smp_git.cli.program import program
from tests.face.support import environment


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SMP_ROOT", str(tmp_path / "store"))
    with Store.init(tmp_path / "store").create_session("shop", user="ada") as session:
        session.add("decision", "Use\tRedis\x1b[2J", agent="architect", tags=["storage.cache"])
        session.add("finding", "No MFA", agent="veritas")
        session.tag("launch")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "current", "expected"),
    [
        ([], "und", ["undo", "undelete-session"]),
        ([], "--js", ["--json"]),
        (["-s"], "", ["shop"]),
        (["show"], "DEC", ["DEC-0001"]),
        (["-s", "shop", "show"], "F", ["FIND-0001"]),
        (["show", "DEC-0001", "--at"], "lau", ["launch"]),
        (["show", "DEC-0001"], "", []),
        (["add"], "dec", ["decision"]),
        (["add", "finding", "x", "-f"], "sev", ["severity="]),
        (["add", "finding", "x", "-f"], "severity=cr", ["severity=critical"]),
        (["edit", "FIND-0001", "--field"], "root", ["root_cause="]),
        (["link", "DEC-0001"], "resolves:", ["resolves:DEC-0001", "resolves:FIND-0001"]),
        (["list", "--tag"], "", ["storage.cache"]),
        (["list"], "--agent=v", ["--agent=veritas"]),
        (["list", "--since", "2 days ago"], "--unt", ["--until"]),
        (["delete", "DEC-0001"], "F", ["FIND-0001"]),
        (["config", "set"], "trash", ["trash_days="]),
        (["fields"], "st", ["state"]),
        (["completion"], "", ["bash", "zsh", "fish"]),
        (["help"], "forg", ["forget"]),
        (["add", "--file"], "", []),
        (["no-such"], "", []),
    ],
)
def test_what_may_stand_next(
    shop: Path, words: list[str], current: str, expected: list[str]
) -> None:
    assert sorted(value for value, _ in candidates(words, current)) == sorted(expected)


def test_what_is_given_once_is_not_offered_again(shop: Path) -> None:
    offered = [value for value, _ in candidates(["list", "--since", "x", "--tag", "y"], "--")]

    assert "--since" not in offered
    assert "--tag" in offered


def test_no_store_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert candidates(["show"], "") == []


def test_every_option_and_argument_says_what_stands_there() -> None:
    import typer.main

    group = typer.main.get_command(program())
    bare = [
        (name, param.name)
        for name, each in group.commands.items()  # type: ignore[attr-defined]
        for param in each.params
        if not each.hidden and not param.metavar and not getattr(param, "is_flag", False)
    ]

    assert bare == []


# Real shells

_PROMPT = "ready> "


def _environment(shop: Path) -> dict[str, str]:
    folder = shop / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "smp").write_text(f'#!/bin/sh\nexec {sys.executable} -P -m smp_git "$@"\n')
    (folder / "smp").chmod(0o700)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return environment(shop, PATH=path, SMP_ROOT=str(shop / "store"), TERM="dumb", PS1=_PROMPT)


def _typed(command: list[str], setup: str, keys: str, done: str, env: dict[str, str]) -> str:
    """Type into a shell at a terminal until `done` is on the screen, and return the screen."""
    import pty
    import select

    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True
    ) as process:
        os.close(theirs)
        shown = ""
        try:
            for text, wanted in ((f"{setup}; echo do''ne\n", "done\r\n"), (keys, done)):
                os.write(ours, text.encode())
                limit = time.monotonic() + 60
                while wanted not in shown and time.monotonic() < limit:
                    if select.select([ours], [], [], 0.5)[0]:
                        shown += os.read(ours, 65536).decode(errors="replace")
                assert wanted in shown, shown
        finally:
            process.kill()
            os.close(ours)
    return shown


def _has(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"no {shell} here")


@pytest.mark.slow
@_has("bash")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("smp show DE", "C-0001 "),
        ("smp link DEC-0001 resolves:F", "IND-0001 "),
    ],
)
def test_bash_completes(shop: Path, typed: str, completed: str) -> None:
    command = ["bash", "--norc", "--noprofile", "-i"]
    _typed(command, 'eval "$(smp completion bash)"', f"{typed}\t", completed, _environment(shop))


@pytest.mark.slow
@_has("zsh")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("smp show DE", "C-0001 "),
        ("smp link DEC-0001 resolves:F", "IND-0001 "),
    ],
)
def test_zsh_completes(shop: Path, typed: str, completed: str) -> None:
    setup = 'autoload -U compinit; compinit -u -D; eval "$(smp completion zsh)"'
    _typed(["zsh", "-f", "-i"], setup, f"{typed}\t", completed, _environment(shop))


@pytest.mark.slow
@_has("fish")
def test_fish_completes(shop: Path) -> None:
    code = 'smp completion fish | source; complete -C "smp show DE"; complete -C "smp fields le"'
    done = subprocess.run(
        ["fish", "--no-config", "-c", code], env=_environment(shop), capture_output=True, text=True
    )

    assert done.stdout == "DEC-0001\tUse Redis\\u001b[2J\nlearning\n", done.stderr
