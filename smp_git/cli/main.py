"""Start of the program, with as few commands loaded as a call needs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING, Final

from smp_git.cli.catalogue import ROOMS
from smp_git.integrations.claude_code.calls import EVENTS, read_call

if TYPE_CHECKING:
    import typer

# The common options that have a value, when they are before the command.
_VALUED: Final = frozenset(("-s", "--session", "--branch", "--root", "-C"))


def run(arguments: Sequence[str]) -> None:
    """Run the command line with these arguments."""
    if is_hook(arguments):
        from smp_git.cli.git_hooks import run_hook  # noqa: PLC0415 - a hook starts fast

        sys.exit(run_hook(arguments[1:]))
    if is_claude_hook(arguments):
        sys.exit(answer_claude(arguments[1:]))
    program(named(arguments))(list(arguments))


def answer_claude(arguments: Sequence[str]) -> int:
    """Answer a hook of Claude Code; return 0 whatever happens, for another status stops a prompt."""
    # What a package might print is neither for the model nor for the user.
    out, sys.stdout, sys.stderr = sys.stdout, StringIO(), StringIO()
    try:
        call = read_call(arguments, sys.stdin.buffer.read().decode("utf-8", "replace"))
        if call is not None:
            from smp_git.integrations.claude_code.hooks import answer  # noqa: PLC0415 - often nothing is to do

            out.write(answer(call, os.environ))
            out.flush()
    except BaseException:  # noqa: BLE001 - see above
        return 0
    return 0


def program(name: str | None = None) -> typer.Typer:
    """Return the program: the command `name` alone if there is one, else all commands."""
    from smp_git.cli import app  # noqa: PLC0415 - not for a hook

    only = name if name in ROOMS else None
    for room in [ROOMS[only]] if only else dict.fromkeys(ROOMS.values()):
        import_module(f"smp_git.cli.{room}")
    # Each command that is there is taken apart, with all its options, at every call.
    return app.program(only)


def is_hook(arguments: Sequence[str]) -> bool:
    """Return whether Git calls a hook of a session, as the hooks that are installed do it."""
    return arguments[:1] == ["hook"] and len(arguments) > 1 and not arguments[1].startswith("-")


def is_claude_hook(arguments: Sequence[str]) -> bool:
    """Return whether Claude Code calls a hook, as the hooks that are installed do it."""
    return arguments[:1] == ["claude"] and len(arguments) > 1 and arguments[1] in EVENTS


def named(arguments: Sequence[str]) -> str | None:
    """Return the first argument that is neither a common option nor the value of one."""
    rest = iter(arguments)
    for each in rest:
        if each in _VALUED:
            next(rest, None)
        elif not each.startswith("-"):
            return each
        elif each != "--json" and each.partition("=")[0] not in _VALUED:
            return None
    return None
