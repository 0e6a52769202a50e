"""Text for people: on a terminal without anything that would steer it. Hooks load this, so no typer."""

from __future__ import annotations

import json
import re
import sys

from smp_git.model.errors import SmpError

# What was written elsewhere may move the cursor, rename the window or hide what follows.
_STEERING = re.compile(r"[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")


# What stands out in a text for people begins and ends with these; no text holds them.
MARKS = ("\ufdd0", "\ufdd1")
_BOLD = dict(zip(map(ord, MARKS), ("\x1b[1m", "\x1b[22m"), strict=True))
_PLAIN = dict.fromkeys(map(ord, MARKS), "**")


def say(text: str, *, err: bool = False, marked: bool = False) -> None:
    """Print a line; a pipe and a file get it as it is, but `**` for what is bold on a terminal."""
    stream = sys.stderr if err else sys.stdout
    is_terminal = stream.isatty()
    shown = visible(text) if is_terminal else text
    if marked:
        shown = shown.translate(_BOLD if is_terminal else _PLAIN)
    stream.write(f"{shown}\n")
    stream.flush()


_noted: set[str] = set()


def forget_notes() -> None:
    """Begin a command, which has told nothing yet."""
    _noted.clear()


def note(text: str) -> None:
    """Tell a person something on stderr, once."""
    if text not in _noted:
        _noted.add(text)
        say(f"note: {text}", err=True)


def report(error: SmpError, *, as_json: bool = False) -> None:
    """Tell what went wrong, and the way out."""
    if as_json:
        say(json.dumps({"error": error.as_json()}, ensure_ascii=False), err=True)
        return
    say(f"smp: {error.message}", err=True)
    if error.hint:
        say(f"hint: {error.hint}", err=True)


def to_minute(time: str) -> str:
    """Return a time as a list shows it."""
    return time[:16].replace("T", " ")


def counted(number: int, noun: str) -> str:
    """Return a number of things."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def visible(text: str) -> str:
    """Return `text` with control characters written out, as JSON writes them."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
