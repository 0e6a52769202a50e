"""Who is at the command line: as Git says, else the system."""

from __future__ import annotations

import getpass
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress

import typer

from smp_git.cli.common import asker
from smp_git.git.command import program
from smp_git.model.errors import InvalidError, SmpError
from smp_git.model.memory import agent_name

# Git reads a file or two.
_PATIENCE_SECONDS = 10


def person() -> str:
    """Return the name of who types: what Git writes into commits, else the login name."""
    # Of an address, which is no name and would be kept out as a secret, the name in it.
    names = (name.partition("@")[0].strip() for name in _names())
    return next(filter(_is_name, names), "user")


def actor(ctx: typer.Context, given: str | None) -> str:
    """Return who acts on a whole session, which is not asked for its user."""
    return asker(ctx, given) or person()


def _names() -> Iterator[str]:
    yield os.environ.get("GIT_AUTHOR_NAME", "")
    with suppress(OSError, subprocess.SubprocessError, SmpError):
        yield (
            subprocess.run(  # noqa: S603 - our own arguments
                [program(), "config", "--get", "user.name"],
                capture_output=True,
                timeout=_PATIENCE_SECONDS,
                check=False,
            )
            .stdout.decode("utf-8", "replace")
            .strip()
        )
    # Where a user has no name, as in some containers.
    with suppress(OSError, KeyError, ImportError):
        yield getpass.getuser()


def _is_name(text: str) -> bool:
    """Whether an agent can be named so: a name in another script alone cannot."""
    try:
        return bool(agent_name(text))
    except InvalidError:
        return False
