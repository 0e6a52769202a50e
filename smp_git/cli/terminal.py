"""Text for people: in colour, and without what would steer a terminal. Hooks load this, so no typer."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Final, NamedTuple, TextIO

from smp_git.cli.progress import PROGRESS
from smp_git.model.errors import SmpError, StorageError

# What was written elsewhere may move the cursor, rename the window or hide what follows.
_STEERING = re.compile(r"[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
# So much is listed one by one.
MOST: Final = 20
# No more of an error is shown: it may repeat what was given, or a path made of that.
_LONGEST: Final = 400
# Halves of characters, which no encoding writes; JSON has this for them too.
_HALVES = re.compile("[\ud800-\udfff]")


class _Style(NamedTuple):
    """One way to stand out: the marks around it, its colour, and what is in their place without."""

    begin: str
    end: str
    colour: str
    plain: tuple[str, str] = ("", "")


# Marks are characters that Unicode keeps for a program's own use.
_END: Final = "\ufddf"
_STYLES: Final[Mapping[str, _Style]] = {
    "match": _Style("\ufdd0", "\ufdd1", "1", ("**", "**")),
    "gone": _Style("\ufdd2", "\ufdd3", "31", ("[-", "-]")),
    "new": _Style("\ufdd4", "\ufdd5", "32", ("{+", "+}")),
    "bold": _Style("\ufdd6", _END, "1"),
    "dim": _Style("\ufdd7", _END, "2"),
    "red": _Style("\ufdd8", _END, "31"),
    "green": _Style("\ufdd9", _END, "32"),
    "yellow": _Style("\ufdda", _END, "33"),
    "cyan": _Style("\ufddb", _END, "36"),
}
# What a match in a text begins and ends with.
MARKS: Final = (_STYLES["match"].begin, _STYLES["match"].end)
_COLOURED: Final = {
    **{ord(each.begin): f"\x1b[{each.colour}m" for each in _STYLES.values()},
    **{ord(each.end): "\x1b[m" for each in _STYLES.values()},
}
_PLAIN: Final = {
    **{ord(each.begin): each.plain[0] for each in _STYLES.values()},
    **{ord(each.end): each.plain[1] for each in _STYLES.values()},
}
_NO_MARKS: Final = dict.fromkeys(_COLOURED, None)


def paint(style: str, text: str) -> str:
    """Return a text in a style, which `say` shows as the place allows."""
    return f"{_STYLES[style].begin}{text}{_STYLES[style].end}" if text else ""


def end_of(mark: str) -> str:
    """Return the mark that ends what another one begins."""
    return next((each.end for each in _STYLES.values() if each.begin == mark), "")


def bare(text: str) -> str:
    """Return a painted text without its paint."""
    return text.translate(_NO_MARKS)


def legible(text: str) -> str:
    """Return a painted text as standard output shows it, without what colours it."""
    return text.translate(_NO_MARKS if has_colour(sys.stdout) else _PLAIN)


def has_colour(stream: TextIO) -> bool:
    """Whether colours are wanted there: on a terminal, unless the environment says otherwise."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def say(text: str, *, err: bool = False, painted: bool = False) -> None:
    """Print a line; a pipe and a file get it as it is, a terminal what cannot steer it."""
    stream = sys.stderr if err else sys.stdout
    line = rendered(text, stream) if painted else shown(text, stream)
    put(_HALVES.sub(_escaped, line) + "\n", stream)


class OutputError(StorageError):
    """What was to be said could not be: the disk is full, or the output is closed."""


def put(text: str, stream: TextIO) -> None:
    """Write a text; raise OutputError if that fails. What nobody hears on stderr is no error."""
    with _heard(stream):
        stream.write(text)
        stream.flush()


def put_all(pieces: Iterable[str]) -> None:
    """Write pieces of one text to standard output, as they come; raise OutputError as `put` does."""
    for piece in pieces:
        # A piece may end within a line.
        PROGRESS.stop()
        with _heard(sys.stdout):
            sys.stdout.write(shown(piece, sys.stdout))
    put("", sys.stdout)


@contextmanager
def _heard(stream: TextIO) -> Iterator[None]:
    try:
        with PROGRESS.hidden():
            yield
    except BrokenPipeError:
        if stream is sys.stdout:
            raise
        drop(stream)
    except OSError as error:
        drop(stream)
        if stream is sys.stdout:
            raise OutputError(f"cannot write the output: {error.strerror}") from None


def shown(text: str, stream: TextIO) -> str:
    """Return a text as it can be shown there."""
    return visible(text) if stream.isatty() else text


def rendered(text: str, stream: TextIO) -> str:
    """Return a painted text as it can be shown there."""
    return shown(text, stream).translate(_COLOURED if has_colour(stream) else _PLAIN)


def ready() -> None:
    """Make the three streams fit to be used, whatever the program was started with.

    A closed one would be given to the next file that is opened, perhaps one of a session,
    into which a command of Git would then write.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Not to be written: what is said there is lost, and that is told.
            os.open(os.devnull, os.O_RDONLY)
    sys.stdin = sys.stdin or open(0)  # noqa: SIM115 - as the interpreter opens it
    sys.stdout = sys.stdout or open(1, "w")  # noqa: SIM115 - as above
    sys.stderr = sys.stderr or open(2, "w")  # noqa: SIM115 - as above
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Names of files may be of any bytes, and a terminal of any character set.
            is_utf8 = stream.encoding.lower() == "utf-8"
            stream.reconfigure(errors="surrogateescape" if is_utf8 else "backslashreplace")


def drop(stream: TextIO) -> None:
    """Write nothing more: the interpreter would complain about what is left at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


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
    message = "\n".join(map(_without_middle, error.message.split("\n")))
    if as_json:
        told = {**error.as_json(), "message": message}
        say(json.dumps({"error": told}, ensure_ascii=False), err=True)
        return
    say(f"{paint('red', 'smp:')} {message}", err=True, painted=True)
    if error.hint:
        say(f"{paint('cyan', 'hint:')} {error.hint}", err=True, painted=True)


def _without_middle(line: str) -> str:
    """Return a line of an error, cut so that how it begins and what is wrong at its end stay."""
    if len(line) <= _LONGEST:
        return line
    return f"{line[: _LONGEST // 2]} … {line[-_LONGEST // 2 :]}"


def counted(number: int, noun: str) -> str:
    """Return a number of things."""
    several = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else several}"


def listed(lines: Sequence[str]) -> str:
    """Return lines as one text, and of many the first and how many more."""
    if len(lines) <= MOST:
        return "\n".join(lines)
    return "\n".join([*lines[:MOST], f"and {len(lines) - MOST:,} more"])


def in_counts(done: Iterable[tuple[str, str]]) -> str:
    """Return what was done to each memory, by verb and id; of many the counts."""
    found = [*done]
    if len(found) <= MOST:
        return "\n".join(f"{verb} {name}" for verb, name in found)
    groups: dict[tuple[str, str], list[str]] = {}
    for verb, name in found:
        groups.setdefault((verb, name.partition("-")[0]), []).append(name)
    return "\n".join(
        f"{verb} {counted(len(names), 'memory')}: {names[0]} to {names[-1]}"
        if names[1:]
        else f"{verb} {names[0]}"
        for (verb, _), names in groups.items()
    )


def visible(text: str) -> str:
    """Return `text` with control characters written out, as JSON writes them."""
    return _STEERING.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
