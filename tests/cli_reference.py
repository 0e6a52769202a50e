"""Writes docs/reference/cli.md from the program: `python -m tests.cli_reference`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from smp_git.cli.catalogue import GROUPS
from smp_git.cli.help import Description, Param, common, describe, told
from smp_git.cli.program import program
from tests.support import ROOT

app = program()

PAGE = ROOT / "docs/reference/cli.md"

_HEAD = """\
# Commands

This page is generated from the program by `python -m tests.cli_reference`.

Run `smp COMMAND [ARGUMENTS] [OPTIONS]`; `git smp COMMAND` and `python -m smp_git COMMAND` work too.
`smp help` lists the commands by group, `smp help COMMAND` explains one, and `man smp` has the same in pages.
`smp completion` prints what completes commands, ids and more in bash, zsh and fish.
Results go to standard output; messages and notes go to standard error.
The [exit status](exit-statuses.md) says what went wrong, and [JSON](json.md) describes the output of `--json`.
A terminal gets colour, columns that fit it, times like "2 hours ago", and a pager (`SMP_PAGER`, `PAGER` or `less`) for what is longer than its screen; a pipe gets plain text, and times in UTC.
`NO_COLOR` turns colour off, and `FORCE_COLOR` on in a pipe.
No command ever prompts.

Without `-s` or `SMP_SESSION`, a command uses the session chosen in this terminal by `smp new` or `smp use`, or else the only session in the store.
Without `--root` or `SMP_ROOT`, it looks for a store in the current folder and its parents.
Without `--agent` or `SMP_AGENT`, the writer is the session's user: whom `smp new --user` named, else the name that Git writes into commits (`user.name`), else the login name.
"""


def sentences(text: str) -> str:
    """Return the paragraphs of a text with one sentence on a line."""
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    return "\n\n".join(re.sub(r"(?<=[.])(?<!e\.g\.) (?=[A-Z`])", "\n", part) for part in paragraphs)


def commands() -> dict[str, Any]:
    """Return the commands that the program shows, by name."""
    group: Any = typer.main.get_command(app)
    return {name: one for name, one in sorted(group.commands.items()) if not one.hidden}


def text() -> str:
    """Return the page."""
    lines = [_HEAD, "## Options of every command", "", *_options(common())]
    for name, entries in GROUPS.items():
        lines += ["", f"## {name}"]
        for each in entries:
            lines += ["", *_section(describe(each))]
    return "\n".join(lines) + "\n"


def _section(found: Description) -> Iterator[str]:
    yield f"### smp {found.name}"
    yield ""
    yield f"{found.title}."
    for paragraph in found.more:
        yield ""
        yield sentences(paragraph)
    yield ""
    yield from ("```text", found.usage, "```", "")
    if found.arguments:
        yield from ("| argument | |", "|---|---|")
        yield from (f"| `{_cell(one.place)}` | {_cell(told(one))} |" for one in found.arguments)
        yield ""
    if found.options:
        yield from _options(found.options)
        yield ""
    yield f"Example: `{found.example}`"


def _options(options: Sequence[Param]) -> Iterator[str]:
    yield from ("| option | |", "|---|---|")
    for each in options:
        names = ", ".join(f"`{_cell(f'{name} {each.place}'.strip())}`" for name in each.names)
        yield f"| {names} | {_cell(told(each))} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(text())
