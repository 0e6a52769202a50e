"""What the Git hooks of a session call."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from smp_git.cli.app import command
from smp_git.cli.place import store_of
from smp_git.errors import InvalidError, LockedError


@command(hidden=True, example="smp hook pre-commit")
def hook(ctx: typer.Context, name: str = typer.Argument(help="The hook that Git runs")) -> None:
    """Let a plain `git commit` keep every memory of the session it is in."""
    if name != "pre-commit":
        raise InvalidError(f"no hook {name!r}", hint="the hooks are: pre-commit")
    folder = Path.cwd()
    with store_of(ctx).session(folder.name) as session:
        index = folder / os.environ.get("GIT_INDEX_FILE", ".git/index")
        if not session.before_commit(index):
            raise LockedError("another Git process holds the index", hint="commit again")
