"""The screen: its width, tables that fit it, times as a person reads them, a pager for what is long."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from smp_git.cli.progress import PROGRESS
from smp_git.cli.terminal import bare, end_of, legible, paint, put, rendered, visible
from smp_git.model.times import format_time

_GAP: Final = "  "
# What a line of a list or of a change begins with.
_SIGNS: Final = ("- ", "+ ", "~ ", "* ")
# The last column of a table gets so much, if it can use it, before others are left out.
_ROOM: Final = 24
_PAGER: Final = "less"
# As git has it: colours shown, long lines not folded, nothing kept if it fits one screen.
_LESS: Final = "FRX"


def columns() -> int | None:
    """Return how wide the terminal is, or None where output goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    plain = legible(text)
    return len(plain) if plain.isascii() else sum(map(_width, plain))


def _width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def clipped(text: str, room: int) -> str:
    """Return a text that takes no more than `room` columns."""
    if width(text) <= room:
        return text
    out, used, begun = [], 0, ""
    for char in text:
        wide = width(char)
        ends = begun if bare(char) else "" if char == begun else end_of(char)
        if used + wide + width(ends) > room - 1:
            break
        out.append(char)
        used += wide
        begun = ends
    return "".join((*out, "…", begun))


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    spare: Sequence[str] = (),
    heads: bool = True,
    edge: int = 0,
) -> str:
    """Return painted rows in columns; the last one is what gives way on a terminal.

    Where it is narrow, the columns that `spare` names are left out, one after the other.
    A pipe gets no heads, and nothing is cut. `edge` is what else stands on each line.
    """
    full = columns()
    room = None if full is None else full - edge
    lines = [[visible(cell) for cell in row] for row in rows]
    if room is not None and heads:
        lines.insert(0, [paint("dim", name) for name in head])
    keep = [at for at in range(len(head)) if any(row[at] for row in rows)]
    widths = {at: max(width(line[at]) for line in lines) for at in keep} if lines else {}
    if room is not None:
        keep = _kept(head, keep, widths, spare, room)
    return "\n".join(
        _line([line[at] for at in keep], [widths[at] for at in keep], room) for line in lines
    )


def _kept(
    head: Sequence[str], keep: list[int], widths: dict[int, int], spare: Sequence[str], room: int
) -> list[int]:
    """Return the columns that have room."""
    for name in spare:
        rest = room - sum(widths[at] + len(_GAP) for at in keep[:-1])
        if keep and rest < min(_ROOM, widths[keep[-1]]):
            keep = [at for at in keep if head[at] != name]
    return keep


def _line(cells: Sequence[str], widths: Sequence[int], room: int | None) -> str:
    parts = [cell + " " * (wide - width(cell)) for cell, wide in zip(cells, widths, strict=True)]
    text = _GAP.join(parts)
    return _unspaced(text) if room is None else _unspaced(clipped(text.rstrip(), room))


def _unspaced(text: str) -> str:
    return text.rstrip()


def fitted(text: str, edge: int = 0) -> str:
    """Return a painted line, cut to the terminal if there is one; `edge` is what else stands on it."""
    room = columns()
    return text if room is None else clipped(visible(text), room - edge)


def folded(text: str) -> str:
    """Return a painted text of which a terminal breaks no word; a pipe gets it as it is."""
    room = columns()
    if room is None:
        return text
    return "\n".join(
        line if width(line) <= room else wrapped(line, 0, _hanging(line))
        for line in text.split("\n")
    )


def _hanging(line: str) -> int:
    """Return how far the rest of a line that is folded stands from the edge: clear of its sign."""
    plain = bare(line)
    text = plain.lstrip()
    return len(plain) - len(text) + (4 if text[:2] in _SIGNS else 2)


def pairs(rows: Sequence[tuple[str, str]]) -> str:
    """Return names with what belongs to each beside it, folded to the terminal."""
    wide = max((width(name) for name, _ in rows), default=0)
    return "\n".join(
        wrapped(f"{name}{' ' * (wide - width(name))}{_GAP}{text}", 0, wide + len(_GAP))
        for name, text in rows
    )


def wrapped(text: str, indent: int, hanging: int) -> str:
    """Return a painted text on lines that fit the terminal; a pipe gets one line."""
    room = columns()
    words = text.split(" ")
    lines, used = [" " * indent + words[0]], indent + width(words[0])
    for word in words[1:]:
        # A word that is longer than a line stays where it is, e.g. a path.
        if room is not None and room - hanging >= width(word) > room - used - 1:
            lines.append(" " * hanging + word)
            used = hanging + width(word)
        else:
            lines[-1] += f" {word}"
            used += 1 + width(word)
    return "\n".join(lines)


# Up to how many seconds a unit is used, and how long it is: as git has it.
_UNITS: Final = (
    (90, 1, "second"),
    (90 * 60, 60, "minute"),
    (36 * 3600, 3600, "hour"),
    (14 * 86400, 86400, "day"),
    (10 * 7 * 86400, 7 * 86400, "week"),
    (365 * 86400, 30.44 * 86400, "month"),
)
_YEAR: Final = 365.25 * 86400


def ago(moment: datetime, now: datetime | None = None) -> str:
    """Return how long ago a time is, or in how long it will be."""
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    size = abs(seconds)
    length, unit = next(
        ((long, name) for most, long, name in _UNITS if size < most), (_YEAR, "year")
    )
    count = int(size / length)
    amount = f"{count} {unit}{'' if count == 1 else 's'}"
    return f"in {amount}" if seconds < 0 else f"{amount} ago"


def when(moment: datetime | str) -> str:
    """Return a time: how long ago it is on a terminal, the time itself elsewhere."""
    return paint("dim", ago(_moment(moment))) if columns() is not None else exact(moment)


def exact(moment: datetime | str) -> str:
    """Return a time: by the clock on the wall on a terminal, in UTC elsewhere."""
    at = _moment(moment)
    if columns() is None:
        return format_time(at.replace(microsecond=0))
    return at.astimezone().strftime("%Y-%m-%d %H:%M")


def due(moment: datetime | str) -> str:
    """Return a deadline, with how far it is on a terminal."""
    return exact(moment) if columns() is None else f"{exact(moment)} ({ago(_moment(moment))})"


def _moment(given: datetime | str) -> datetime:
    return datetime.fromisoformat(given) if isinstance(given, str) else given


def in_bytes(size: int) -> str:
    """Return a size as a person reads it."""
    for unit, length in (("GB", 1024**3), ("MB", 1024**2), ("KB", 1024)):
        if size >= length:
            return f"{size / length:.1f}".removesuffix(".0") + f" {unit}"
    return f"{size} bytes"


def page(text: str, *, newest_last: bool = False) -> None:
    """Show a painted text, in a pager if it is longer than the terminal.

    The pager is `SMP_PAGER`, `PAGER` or less; `cat`, or nothing, shows the text at once.
    """
    shown = rendered(text, sys.stdout) + "\n"
    PROGRESS.stop()
    program = _pager() if sys.stdout.isatty() and sys.stdin.isatty() else []
    if (
        not program
        or shown.count("\n") < shutil.get_terminal_size().lines
        or not _paged(program, shown, newest_last)
    ):
        put(shown, sys.stdout)


def _pager() -> list[str]:
    """Return the pager as a command; empty if there is none, or none is wanted."""
    given = next(
        (os.environ[name] for name in ("SMP_PAGER", "PAGER") if name in os.environ), _PAGER
    )
    try:
        words = shlex.split(given)
    except ValueError:
        return []
    return words if words and words != ["cat"] and shutil.which(words[0]) else []


def _paged(program: list[str], text: str, newest_last: bool) -> bool:
    """Show a text in a pager; return whether that was possible."""
    import signal  # noqa: PLC0415 - few commands page
    import subprocess  # noqa: PLC0415 - as above

    # With +G less begins at the end, where the newest are.
    environment = {"LESS": _LESS + ("+G" if newest_last else ""), "LV": "-c", **os.environ}
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with subprocess.Popen(program, stdin=subprocess.PIPE, env=environment) as process:  # noqa: S603 - the person's own pager
            process.communicate(text.encode("utf-8", "backslashreplace"))
    except OSError:
        return False
    finally:
        signal.signal(signal.SIGINT, before)
    return True
