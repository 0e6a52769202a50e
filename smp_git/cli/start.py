"""The program with as few commands loaded as a call needs."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Final

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


def run(arguments: Sequence[str]) -> None:
    """Run the command line with these arguments."""
    room = ROOMS.get(arguments[0]) if arguments else None
    import_module(f"smp_git.cli.{room or 'program'}")
    app(list(arguments))
