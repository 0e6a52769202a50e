"""Examples in Markdown pages: found, run in order, and compared with what the page shows.

In what a page shows, `…` stands for any text within its line, and a line of nothing
but `…` for any number of lines.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from typer.testing import CliRunner

from smp_git.cli.program import program
from tests.support import ROOT

app = program()

_FENCE = re.compile(r"```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What only a shell understands; a command without it runs in this process, which is faster.
_SHELL = re.compile(r"[|&;<>$`*\\]")


# A path asked for inside a longer command.
_INNER = re.compile(r"\$\(smp (path [A-Za-z0-9-]+)\)")


class Block(NamedTuple):
    """A fenced block of a page; `shown` is the `text` block right after it."""

    language: str
    text: str
    line: int
    shown: str | None


class Step(NamedTuple):
    """A command of a console block and the output that the page shows."""

    command: str
    shown: str


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    found = list(_FENCE.finditer(text))
    return [
        Block(
            match[1],
            match[2],
            text.count("\n", 0, match.start()) + 2,
            following[2] if following and following[1] == "text" else None,
        )
        for match, following in zip_longest(found, found[1:])
    ]


def steps(block: Block) -> Iterator[Step]:
    """Yield the commands of a console block; `> ` continues a command."""
    command: list[str] = []
    shown: list[str] = []
    for line in [*block.text.splitlines(), "$ "]:
        if line.startswith("$ "):
            if command:
                yield Step("\n".join(command), "\n".join(shown))
            command, shown = [line[2:]], []
        elif line.startswith("> ") and command and not shown:
            command.append(line[2:])
        else:
            assert command, f"line {block.line}: output before the first command"
            shown.append(line)


def agrees(shown: str, actual: str) -> bool:
    """Whether `actual` is what a page shows, `…` standing for what differs."""
    pattern = "".join(
        r"(?:[^\n]*\n)*?"
        if line.strip() == "…"
        else re.escape(line.rstrip()).replace("…", r"[^\n]*?") + r"[ \t]*\n"
        for line in shown.rstrip("\n").split("\n")
    )
    return re.fullmatch(pattern, actual.rstrip("\n") + "\n") is not None


class _Checker(doctest.OutputChecker):
    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return agrees(want, got) or super().check_output(want, got, optionflags)


class Desk:
    """The folder and the names in which the examples of one page run, one after another."""

    def __init__(self, folder: Path) -> None:
        self.here = folder
        self.names: dict[str, object] = {"__name__": "__main__"}
        self.status = 0
        self.environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
        self._make_commands(folder.parent / f"{folder.name}-bin")

    def _make_commands(self, folder: Path) -> None:
        folder.mkdir()
        for name in ("smp", "git-smp"):
            (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} -P -m smp_git "$@"\n')
            (folder / name).chmod(0o700)
        self.environment["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"

    def run(self, block: Block) -> None:
        """Run one block; raise AssertionError if it does not do what the page shows."""
        if block.language == "console":
            for step in steps(block):
                self._compare(step.shown, self.command(step.command), step.command, block)
        elif ">>> " in block.text:
            self._doctest(block)
        else:
            self._script(block)

    def _compare(self, shown: str, actual: str, what: str, block: Block) -> None:
        assert agrees(shown, actual), (
            f"block at line {block.line}: {what}\n--- shown\n{shown}\n--- actual\n{actual}"
        )

    def command(self, line: str) -> str:
        """Run a command as a terminal would and return what it prints."""
        words = shlex.split(line)
        if words[0] == "cd":
            self.here = self.here / words[1]
            return ""
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            self.environment[name] = value
            return ""
        if words[0] == "smp" and not _SHELL.search(line):
            return self._here(words[1:])
        return self._in_shell(_INNER.sub(lambda match: self._here(match[1].split()).rstrip(), line))

    def _here(self, arguments: list[str]) -> str:
        with contextlib.chdir(self.here):
            result = CliRunner().invoke(app, arguments, prog_name="smp", env=self.environment)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        self.status = result.exit_code
        # The pages show what a person at a terminal sees; this is none.
        shown = result.output.splitlines(keepends=True)
        return "".join(line for line in shown if not line.startswith("note: no terminal here"))

    def _in_shell(self, line: str) -> str:
        done = subprocess.run(
            ["/bin/sh", "-c", f"(exit {self.status})\n{line}"],
            cwd=self.here,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.status = done.returncode
        return done.stdout

    def _doctest(self, block: Block) -> None:
        parser = doctest.DocTestParser()
        test = parser.get_doctest(block.text, self.names, "page", "page", block.line - 1)
        test.globs = self.names
        told = io.StringIO()
        with contextlib.chdir(self.here):
            runner = doctest.DocTestRunner(checker=_Checker(), verbose=False)
            runner.run(test, out=told.write, clear_globs=False)
        assert not runner.failures, told.getvalue()

    def _script(self, block: Block) -> None:
        told = io.StringIO()
        code = compile(block.text, f"line {block.line}", "exec")
        with contextlib.chdir(self.here), contextlib.redirect_stdout(told):
            exec(code, self.names)
        if block.shown is not None:
            self._compare(block.shown, told.getvalue(), "the block above", block)
