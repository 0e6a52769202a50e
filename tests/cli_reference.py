"""Writes docs/reference/cli.md from the program: `python -m tests.cli_reference`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import typer

from smp_git.cli.main import program
from tests.support import ROOT

app = program()

PAGE = ROOT / "docs/reference/cli.md"

# The placeholder for the value of an option that does not name one itself.
_PLACES: Final = {"str": "TEXT", "path": "FILE", "int": "N", "int range": "N", "float": "N"}

_HEAD = """\
# Commands

This page is generated from the program by `python -m tests.cli_reference`.

Run `smp COMMAND [ARGUMENTS] [OPTIONS]`; `git smp COMMAND` and `python -m smp_git COMMAND` work too.
Results go to standard output; messages and notes go to standard error.
The [exit status](exit-statuses.md) says what went wrong, and [JSON](json.md) describes the output of `--json`.
No command ever prompts.

Without `-s` or `SMP_SESSION`, a command uses the session chosen in this terminal by `smp new` or `smp use`, or else the only session in the store.
Without `--root` or `SMP_ROOT`, it looks for a store in the current folder and its parents.
Without `--agent` or `SMP_AGENT`, the writer is the session's user.
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
    group: Any = typer.main.get_command(app)
    common = {option.name for option in group.params}
    lines = [_HEAD, "## Options of every command", "", *_options(group.params)]
    for name, command in commands().items():
        lines += ["", *_section(name, command, common)]
    return "\n".join(lines) + "\n"


def _section(name: str, command: Any, common: set[str]) -> Iterator[str]:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [
        param
        for param in command.params
        if param.param_type_name == "option" and param.name not in common
    ]
    title, _, more = command.help.partition("\n")
    yield f"## smp {name}"
    yield ""
    yield f"{title}."
    if more.strip():
        yield ""
        yield sentences(more.strip())
    yield ""
    yield from ("```text", " ".join(["smp", name, *map(_shape, arguments)]), "```", "")
    if arguments:
        yield from ("| argument | |", "|---|---|")
        yield from (f"| `{_cell(_shape(one))}` | {_told(one)} |" for one in arguments)
        yield ""
    if options:
        yield from _options(options)
        yield ""
    yield f"Example: `{command.epilog.removeprefix('Example: ')}`"


def _options(options: list[Any]) -> Iterator[str]:
    yield from ("| option | |", "|---|---|")
    for option in options:
        names = ", ".join(f"`{_cell(name)}`" for name in _names(option))
        if option.name != "help":
            again = " (may be repeated)" if option.multiple else ""
            yield f"| {names} | {_told(option)}{again} |"


def _names(option: Any) -> list[str]:
    shown = option.metavar or (None if option.is_flag else _place(option))
    return [f"{name} {shown}" if shown else name for name in option.opts]


def _place(option: Any) -> str:
    """Return what stands for a value; typer 0.29 keeps a type of Python's, older ones click's."""
    if hasattr(option, "type"):
        kind: str = option.type.name
    else:
        said = option.type_descriptor.annotation
        other = "path" if "Path" in str(said) else "str"
        kind = {int: "int", float: "float"}.get(said, other)
    return _PLACES.get(kind, kind.upper())


def _told(param: Any) -> str:
    default = f" (`{param.default}` by default)" if isinstance(param.default, (str, Path)) else ""
    return _cell(param.help or "") + default


def _shape(argument: Any) -> str:
    name: str = argument.metavar or f"[{argument.name.upper()}]"
    return name if argument.required or name.startswith("[") else f"[{name}]"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(text())
