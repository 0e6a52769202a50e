"""The README of a session: what a forge shows of it, in counts and ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from smp_git.format.lines import Entry
from smp_git.model.ids import parse_id
from smp_git.model.memory import KINDS

PATH: Final = "README.md"
# The first line tells it from a README that a person wrote.
_MARK: Final = (
    "<!-- smp-git: `smp maintain` makes this page anew; without this line it is yours. -->"
)
_MARKED: Final = _MARK.encode() + b"\n"
_TEXT: Final = """\
# A memory of AI agents

This repository is a session of smp-git: what agents said, found and decided, one file for each memory and one commit for each change.
`smp clone ADDRESS` makes a copy that `smp` searches, changes and syncs; `smp log` and `smp diff` tell its history.
What is deleted goes from the history too, so delete with `smp delete`, not with plain Git.
"""
_SHOWN: Final = 20
_LINE: Final = re.compile(
    rb"- \[([A-Za-z0-9-]{1,64})\]\([^()\n]*\)(?: <!-- life ([a-z0-9-]{1,64}) -->)?"
)


class Told(NamedTuple):
    """What a README tells of a session: how many of each kind, and the newest of what matters."""

    counts: Mapping[str, int]
    decisions: Sequence[Entry]
    findings: Sequence[Entry]


def is_made(data: bytes) -> bool:
    """Whether a README is one that the program made."""
    return data.startswith(_MARKED)


def is_alike(name: str) -> bool:
    """Whether a file is a README in other letters, which some systems take for the same one."""
    return name != PATH and name.casefold() == PATH.casefold()


def write(told: Told) -> bytes:
    """Return the README; decisions and findings come newest first."""
    parts = [f"{_MARK}\n{_TEXT}", _table(told)]
    parts += _listed("Newest decisions", told.decisions)
    parts += _listed("Open findings", told.findings)
    return "\n".join(parts).encode()


def _table(told: Told) -> str:
    rows = ["| kind | memories |", "|---|--:|"]
    for name, count in told.counts.items():
        if count:
            rows.append(f"| [{KINDS[name].folder}]({KINDS[name].folder}) | {count:,} |")
    return "\n".join(rows) + "\n"


def _listed(title: str, entries: Sequence[Entry]) -> Iterator[str]:
    if not entries:
        return
    lines = [_line(each) for each in entries[:_SHOWN]]
    rest = len(entries) - _SHOWN
    more = f"\n{rest:,} more are older.\n" if rest > 0 else ""
    yield f"## {title}\n\n" + "".join(lines) + more


def _line(entry: Entry) -> str:
    life = f" <!-- life {entry.life} -->" if entry.life else ""
    return f"- [{entry.id}]({parse_id(entry.id).path}){life}\n"


def named(data: bytes) -> Iterator[tuple[bytes, str]]:
    """Yield each memory that a README names, and its life."""
    for line in data.split(b"\n") if is_made(data) else ():
        if found := _LINE.fullmatch(line):
            yield found[1], _life(found)


def without(data: bytes, is_dead: Callable[[bytes, str], bool]) -> bytes:
    """Return a README without the lines of memories whose lives are over."""
    if not is_made(data):
        return data
    lines = data.split(b"\n")
    found = (_LINE.fullmatch(line) for line in lines)
    return b"\n".join(
        line
        for line, match in zip(lines, found, strict=True)
        if match is None or not is_dead(match[1], _life(match))
    )


def _life(found: re.Match[bytes]) -> str:
    return (found[2] or b"").decode()


def merged(left: bytes, right: bytes) -> bytes | None:
    """Return which of two versions stays, whoever asks; None if a person wrote both."""
    if is_made(left) and is_made(right):
        return max(left, right)
    if is_made(left):
        return right
    return left if is_made(right) else None
