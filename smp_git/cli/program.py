"""The program `smp`: help, commands, and one form for whatever goes wrong."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

import typer
from typer.core import TyperGroup

from smp_git.cli.app import boundary, build
from smp_git.cli.catalogue import ROOMS
from smp_git.cli.common import SAID, take_note
from smp_git.cli.help import answer, command_in, common, describe, unknown
from smp_git.model.errors import UsageError, nearest
from smp_git.model.memory import COMMON_FIELDS, KINDS

# What typer raises for any wrong use; it exports the one below it alone.
_WRONG_USE: Final[type[Exception]] = typer.BadParameter.__bases__[0]
# What other programs call an option, or what people take it to be called.
_ELSEWHERE: Final = {
    "--prompt": "--for", "--question": "--for", "--query": "--for", "--task": "--for",
    "--tokens": "--budget", "--max-tokens": "--budget",
    "--max": "--limit", "--count": "--limit", "--top": "--limit", "--top-k": "--limit",
    "--after": "--since", "--from": "--since", "--before": "--until", "--to": "--until",
    "--author": "--agent", "--user": "--agent", "--type": "--kind", "--label": "--tag",
    "--filter": "--where", "--force": "--yes", "--message": "--reason",
}  # fmt: skip


def program(name: str | None = None) -> typer.Typer:
    """Return the program: the command `name` alone if there is one, else all commands."""
    return build(name if name in ROOMS else None, Program)


class Program(TyperGroup):
    """The commands; whatever goes wrong is told in one form, and help is our own."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **named: Any) -> Any:
        """Run the command line, and leave with its status."""
        arguments = list(sys.argv[1:] if args is None else args)
        SAID.clear()
        take_note({"common_json": "--json" in arguments})
        with boundary():
            name = command_in(arguments)
            if answer(arguments, name):
                sys.exit(0)
            if name is None or name not in ROOMS:
                raise (
                    unknown(name)
                    if name
                    else UsageError("no command", hint="smp help lists the commands")
                )
            SAID["command"] = name
            try:
                status = super().main(arguments, *rest, **{**named, "standalone_mode": False})
            except _WRONG_USE as error:
                raise _usage_error(error, name) from None
            sys.exit(status)


def _usage_error(error: Any, name: str) -> UsageError:
    """Return what typer says of a wrong use, in our form: the thing concerned, and the way out."""
    wrong = getattr(error, "option_name", None)
    if wrong is None or not hasattr(error, "possibilities"):
        text = error.format_message().split("\n")[0].rstrip(".").replace("(s)", "")
        _, colon, reason = text.partition(": ")
        options = getattr(getattr(error, "param", None), "opts", ())
        if colon and options:
            # How a value is introduced differs from version to version of typer.
            return UsageError(f"{options[-1]}: {_small(reason)}", hint=f"smp help {name}")
        return UsageError(_small(text), hint=f"smp help {name}")
    known = [each for option in (*describe(name).options, *common()) for each in option.names]
    field = wrong.lstrip("-").replace("-", "_")
    if "--field" in known and any(
        field in (*kind.fields, *COMMON_FIELDS) for kind in KINDS.values()
    ):
        return UsageError(
            f"smp {name} has no option {wrong}", hint=f"{field} is a field: --field {field}=VALUE"
        )
    meant = _ELSEWHERE.get(wrong)
    near = meant if meant in known else nearest(wrong, known)
    return UsageError(
        f"smp {name} has no option {wrong}",
        hint=f"did you mean {near}?" if near else f"smp help {name}",
    )


def _small(text: str) -> str:
    return text[:1].lower() + text[1:]
