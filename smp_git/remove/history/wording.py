"""What a commit message loses when memories go, line by line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

GENERIC: Final = b"batch"

_NAMED = re.compile(
    rb"(?:([a-z]+) )?(?:turn|decision|finding|preference|learning|state|artifact) "
    rb"([A-Za-z0-9_-]{1,64})(: .*)?\r?"
)
_TRAILER = re.compile(rb"(Memory|Agent|Turn): (.*?)\r?")
_LASTING: Final = (b"delete", b"purge", b"redact")
_SUBJECTS: Final = frozenset(
    b"batch;undo batch;rollback batch;delete batch;purge batch;redact batch;restore batch;carry batch;upgrade to format 2;edits by hand;create session;"
    b"register replica;merge;settings;mend indexes".split(b";")
)
_MENTION = re.compile(
    rb"^(?:Memory: |(?:[a-z]+ )?(?:turn|decision|finding|preference|learning|state|artifact) )"
    rb"([A-Za-z0-9_-]{1,64})",
    re.MULTILINE,
)
# What `git stash` makes its messages from: a branch, a commit, that commit's subject.
_STASHED: Final = (b"WIP on", b"index on", b"untracked files on")
_DERIVED = re.compile(rb"(WIP on|index on|untracked files on) (.+?): ([0-9a-f]{4,40})(?: .*)?")


class Origin(NamedTuple):
    """The rewritten commit that a stash's message speaks of."""

    id: bytes
    subject: bytes


def mentions(message: bytes) -> list[bytes]:
    """Return the ids that lines or `Memory:` trailers of a message name."""
    return _MENTION.findall(message)


def is_derived(message: bytes) -> bool:
    """Whether a message is one that `git stash` made from a commit."""
    return message.startswith(_STASHED) and _DERIVED.fullmatch(subject(message)) is not None


def subject(message: bytes) -> bytes:
    """Return the first line of a message."""
    return message.partition(b"\n")[0]


def without(message: bytes, is_gone: Callable[[bytes], bool], *, touches: bool, generic: bytes = GENERIC) -> bytes:  # fmt: skip
    """Return a message without what it says of gone memories.

    With `touches` the free lines go too. Nothing to take away leaves it as it is.
    """
    lines = message.split(b"\n")
    first = lines[0] if _DERIVED.fullmatch(lines[0]) else None
    kept = [
        line if not line.strip() or line is first or _stays(line, is_gone, touches, generic) else None
        for line in lines
    ]  # fmt: skip
    if None not in kept:
        return message
    return _joined(kept, generic)


def _stays(line: bytes, is_gone: Callable[[bytes], bool], touches: bool, generic: bytes) -> bool:  # noqa: FBT001 - private
    if match := _NAMED.fullmatch(line):
        lasting = match[1] in _LASTING and match[3] is None
        return lasting or not is_gone(match[2])
    if match := _TRAILER.fullmatch(line):
        return match[1] != b"Memory" or not is_gone(match[2])
    return not touches or _is_subject(line, generic)


def _is_subject(line: bytes, generic: bytes) -> bool:
    return line.rstrip(b"\r") in _SUBJECTS or line == generic


def _joined(lines: list[bytes | None], generic: bytes) -> bytes:
    """Return what is left as paragraphs, with a subject."""
    paragraphs: list[list[bytes]] = [[]]
    had_text = False
    for line in lines:
        if line is not None and not line.strip():
            if had_text:
                paragraphs.append([])
            had_text = False
            continue
        had_text = True
        if line is not None:
            paragraphs[-1].append(line)
    if not paragraphs[0]:
        paragraphs[0] = [_promoted(paragraphs, generic)]
    return b"\n\n".join(b"\n".join(each) for each in paragraphs if each) + b"\n"


def _promoted(paragraphs: list[list[bytes]], generic: bytes) -> bytes:
    """Take the first line of an id, or a known subject, out of the rest."""
    for each in paragraphs:
        for place, line in enumerate(each):
            if _NAMED.fullmatch(line) or _is_subject(line, generic):
                return each.pop(place)
    return generic


def renamed(message: bytes, origin: Origin) -> bytes:
    """Return a stash's message with the commit it was made from as it is now."""
    first, _, rest = message.partition(b"\n")
    match = _DERIVED.fullmatch(first)
    if match is None:
        return message
    head = b"%s %s: %s %s" % (match[1], match[2], origin.id[: len(match[3])], origin.subject)
    return b"%s\n%s" % (head, rest)
