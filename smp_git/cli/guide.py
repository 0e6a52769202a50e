"""Commands that explain: help, the fields of a kind, and what completes commands in a shell."""

from __future__ import annotations

from typing import Annotated

import typer

from smp_git.cli.app import command
from smp_git.cli.common import emit
from smp_git.cli.complete import SHELLS, script
from smp_git.cli.help import about
from smp_git.cli.screen import table
from smp_git.cli.terminal import paint
from smp_git.model.errors import UsageError
from smp_git.model.fields import fields_of
from smp_git.model.memory import KINDS, kind_named


@command("help", example="smp help delete")
def help_(
    ctx: typer.Context,
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COMMAND|GROUP]", help="A command, or a group like branches"),
    ] = None,
) -> None:
    """Explain the program, a command or a group of commands"""
    text = about(what or [])
    emit(ctx, {"help": text}, text, paged=True)


@command(example="smp fields finding")
def fields(
    ctx: typer.Context,
    kind: Annotated[
        str | None, typer.Argument(metavar="[KIND]", help="The kind; all of them if omitted")
    ] = None,
) -> None:
    """List the fields of a kind of memory

    Other fields are kept too, as they are given.
    """
    names = [kind_named(kind).name] if kind else list(KINDS)
    found = {name: fields_of(name) for name in names}
    value: dict[str, object] = {
        name: [
            {"field": field, "type": what, "meaning": text} for field, (what, text) in each.items()
        ]
        for name, each in found.items()
    }
    emit(
        ctx,
        value,
        lambda: "\n\n".join(_table(name, each) for name, each in found.items()),
        paged=True,
    )


def _table(kind: str, found: dict[str, tuple[str, str]]) -> str:
    rows = [
        (paint("cyan", name), what, text.replace("`", "")) for name, (what, text) in found.items()
    ]
    head = f"{paint('bold', kind)}: {KINDS[kind].main} is its text"
    return f"{head}\n{table(('FIELD', 'TYPE', 'MEANING'), rows)}"


@command(example="smp completion bash >> ~/.bashrc")
def completion(
    ctx: typer.Context,
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="The shell")],
) -> None:
    """Print what completes commands in a shell

    Commands, options, ids, sessions, kinds, fields and more. For bash, add the line eval
    "$(smp completion bash)" to ~/.bashrc; for zsh the same with zsh to ~/.zshrc, behind
    compinit; for fish, put what it prints into ~/.config/fish/completions/smp.fish.
    """
    if shell not in SHELLS:
        raise UsageError(f"no completion for {shell}", hint=f"there is one for {', '.join(SHELLS)}")
    text = script(shell)
    emit(ctx, {"shell": shell, "script": text}, text, copied=True)
