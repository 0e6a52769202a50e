"""Start of the program, with as few commands loaded as a call needs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from io import StringIO
from typing import Final

from smp_git.integrations.claude_code.calls import EVENTS, is_idle, read_call

# What the scripts of shells call.
ASK: Final = "__complete"


def run(arguments: Sequence[str]) -> None:
    """Run the command line with these arguments."""
    if is_hook(arguments):
        from smp_git.cli.git_hooks import run_hook  # noqa: PLC0415 - a hook starts fast

        sys.exit(run_hook(arguments[1:]))
    if is_claude_hook(arguments):
        sys.exit(answer_claude(arguments[1:]))
    if arguments[:1] == [ASK]:
        from smp_git.cli.complete import complete  # noqa: PLC0415 - not for a hook

        complete(arguments[1:])
        return
    from smp_git.cli.catalogue import ROOMS  # noqa: PLC0415 - not for a hook
    from smp_git.cli.help import command_in  # noqa: PLC0415 - as above
    from smp_git.cli.program import program  # noqa: PLC0415 - as above
    from smp_git.cli.terminal import ready  # noqa: PLC0415 - as above

    ready()
    name = command_in(arguments)
    # Help, and what is no command, needs no more than one of them.
    program(name if name in ROOMS else "status")(list(arguments))


def answer_claude(arguments: Sequence[str]) -> int:
    """Answer a hook of Claude Code; return 0 whatever happens, for another status stops a prompt."""
    # What a package might print is neither for the model nor for the user.
    out, sys.stdout, sys.stderr = sys.stdout, StringIO(), StringIO()
    try:
        call = read_call(arguments, sys.stdin.buffer.read().decode("utf-8", "replace"))
        if call is not None and not is_idle(call, os.environ):
            from smp_git.integrations.claude_code.hooks import answer  # noqa: PLC0415 - often nothing is to do

            out.write(answer(call, os.environ))
            out.flush()
    except BaseException:  # noqa: BLE001 - see above
        return 0
    return 0


def is_hook(arguments: Sequence[str]) -> bool:
    """Return whether Git calls a hook of a session, as the hooks that are installed do it."""
    return arguments[:1] == ["hook"] and len(arguments) > 1 and not arguments[1].startswith("-")


def is_claude_hook(arguments: Sequence[str]) -> bool:
    """Return whether Claude Code calls a hook, as the hooks that are installed do it."""
    return arguments[:1] == ["claude"] and len(arguments) > 1 and arguments[1] in EVENTS
