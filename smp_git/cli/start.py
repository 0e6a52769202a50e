"""The program with as few commands loaded as a call needs."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Final

from typer.models import CommandInfo

from smp_git.cli.app import app

# The module of each command that is called often; all others load the whole program.
ROOMS: Final = {
    **dict.fromkeys(("add", "edit", "resolve", "supersede", "pin", "unpin", "link", "state", "undo", "rollback", "commit"), "write"),
    **dict.fromkeys(("show", "list", "log", "diff", "blame", "path"), "read"),
    **dict.fromkeys(("query", "similar", "related", "context", "watch", "topics", "summary", "explain"), "ask"),
    **dict.fromkeys(("branch", "switch", "merge", "tag", "conflicts", "resolve-conflict"), "branch"),
    **dict.fromkeys(("hook", "hooks"), "hook"),
    **dict.fromkeys(("new", "use", "info", "sessions"), "sessions"),
}  # fmt: skip


# The common options that have a value, when they stand before the command.
_VALUED: Final = frozenset(("-s", "--session", "--branch", "--root", "-C"))


def run(arguments: Sequence[str]) -> None:
    """Run the command line with these arguments."""
    name = named(arguments)
    room = ROOMS.get(name) if name else None
    import_module(f"smp_git.cli.{room or 'program'}")
    if room:
        # Each command that is there is taken apart, with all its options, at every call.
        app.registered_commands = [each for each in app.registered_commands if called(each) == name]
        # A program of one command would take its name for an argument.
        app.callback()(_nothing)
    app(list(arguments))


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


def _nothing() -> None:
    pass


def called(command: CommandInfo) -> str | None:
    """Return what a command is called."""
    return command.name or (command.callback.__name__ if command.callback else None)
