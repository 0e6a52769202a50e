"""What people are told: on a terminal without anything that would steer it."""

from __future__ import annotations

import re
import sys

import typer

# What was written elsewhere may move the cursor, rename the window or hide what follows.
_STEERING = re.compile(r"[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")


def say(text: str, *, err: bool = False) -> None:
    """Print a line; a pipe and a file get it as it is."""
    stream = sys.stderr if err else sys.stdout
    # Whatever `color` says of colours: without it what looks like one is left out of a pipe.
    typer.echo(visible(text) if stream.isatty() else text, err=err, color=True)


def visible(text: str) -> str:
    """Return `text` with control characters written out, as JSON writes them."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
