"""Commits and tags of strangers, taken apart strictly."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from smp_git.model.errors import UntrustedError

# A commit of a hundred memories has a line and a trailer for each.
LARGEST: Final = 1 << 20
_MOST_PARENTS: Final = 64

_ID: Final = rb"[0-9a-f]{40}"
_PERSON: Final = rb"[^\0-\x1f\x7f<>]*<[^\0-\x1f\x7f<>]*> [0-9]{1,10} [+-][0-9]{4}"
# A header line that goes on in the next begins that one with a space.
_MORE: Final = rb"(?:[a-zA-Z][a-zA-Z0-9-]* [^\0\n]*\n(?: [^\0\n]*\n)*)*"
_COMMIT = re.compile(
    rb"tree (%b)\n((?:parent %b\n)*)author (%b)\ncommitter (%b)\n(%b)\n" % (_ID, _ID, _PERSON, _PERSON, _MORE)
)  # fmt: skip
_TAG = re.compile(
    rb"object (%b)\ntype (commit|tag)\ntag ([^\0-\x1f\x7f]+)\n(?:tagger (%b)\n)?(%b)\n" % (_ID, _PERSON, _MORE)
)  # fmt: skip
_REPLICA = re.compile(rb"<([a-z][a-z0-9]{3})@smp>")
_ENCODING = re.compile(rb"^encoding (?!utf-?8$)", re.MULTILINE | re.IGNORECASE)


class Commit(NamedTuple):
    """What a commit leads to, and the tag of the replica that made it, if one did."""

    tree: bytes
    parents: tuple[bytes, ...]
    replica: str = ""


class Tag(NamedTuple):
    """What a tag names."""

    target: bytes
    type: bytes


def commit(data: bytes, where: str) -> Commit:
    """Return a commit's tree and parents; raise UntrustedError if anything is odd about it."""
    match = _COMMIT.match(data)
    if match is None:
        raise UntrustedError(f"{where}: its author, committer or time cannot be read")
    _check_text(data, match[5], match.end(), where)
    parents = tuple(bytes.fromhex(line[7:].decode()) for line in match[2].splitlines())
    if len(parents) > _MOST_PARENTS:
        raise UntrustedError(f"{where}: it has {len(parents)} parents")
    replica = _REPLICA.search(match[4])
    return Commit(bytes.fromhex(match[1].decode()), parents, replica[1].decode() if replica else "")


def tag(data: bytes, where: str) -> Tag:
    """Return what a tag names; raise UntrustedError if anything is odd about it."""
    match = _TAG.match(data)
    if match is None:
        raise UntrustedError(f"{where}: it cannot be read, or names no commit")
    _check_text(data, match[5], match.end(), where)
    return Tag(bytes.fromhex(match[1].decode()), match[2])


def _check_text(data: bytes, more: bytes, message_at: int, where: str) -> None:
    try:
        data.decode()
    except UnicodeDecodeError:
        raise UntrustedError(f"{where}: its message or a name is not UTF-8") from None
    if more and _ENCODING.search(more):
        raise UntrustedError(f"{where}: its message is not UTF-8")
    # Other control characters come from titles: whatever a program printed may be remembered.
    if data.find(b"\0", message_at) >= 0:
        raise UntrustedError(f"{where}: its message holds NUL characters")
