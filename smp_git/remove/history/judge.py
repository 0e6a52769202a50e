"""Judge of dead lives, and the parts of files, index pages and messages that go with them.

Everything that removes, proves or looks about asks here, so that there is one reader of
a memory's id and one answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final, NamedTuple

from smp_git.format import messages, readme
from smp_git.format.document import life_of
from smp_git.format.messages import BEGAN
from smp_git.format.records import Tombstones
from smp_git.model.ids import FIRST, NOTHING, Lives, of_generation, parse_id

_JSON_ID = re.compile(rb'"id"\s*:\s*"([^"\\]*)"')
_JSON_LIFE = re.compile(rb'"(?:life"\s*:\s*"([^"\\]*)"|gen"\s*:\s*(\d{1,7})(?=\s*[,}]))')
_YAML_ID = re.compile(
    rb"^(?:-[ \t]+|[ \t]+)[\"']?id[\"']?[ \t]*:[ \t]*[\"']?([A-Za-z0-9_-]+)[\"']?[ \t]*(?:#.*)?\r?$",
    re.MULTILINE,
)
_YAML_LIFE = re.compile(
    rb"^(?:-[ \t]+|[ \t]+)[\"']?(?:life[\"']?[ \t]*:[ \t]*[\"']?([a-z0-9-]+)|gen[\"']?[ \t]*:[ \t]*(\d{1,7}))",
    re.MULTILINE,
)
_TOMBSTONE = re.compile(rb'- \{"id":"[^"]*","(?:first|generation|lives)":[^\n]*\}\s*')
_OWN_ID = re.compile(rb"(?:---\r?\n)?id:[ \t]*[\"']?([A-Za-z0-9_-]+)")


def path_of(memory_id: bytes) -> str:
    """Return the path of the file of an id."""
    return parse_id(memory_id.decode()).path


class IndexItem(NamedTuple):
    """One item of an index: its bytes, whose it is, and of which life."""

    text: bytes
    id: bytes
    life: str


def plain_lines(index: bytes) -> list[bytes] | None:
    """Return the lines of an index if each is one item, else None."""
    lines = index.split(b"\n")
    return lines if lines.pop() == b"" else None


def items(index: bytes) -> tuple[bytes, list[IndexItem]]:
    """Return what is before the first item of an index, and the items."""
    head: list[bytes] = []
    found: list[list[bytes]] = []
    for line in _lines(index):
        if line.startswith(b"-"):
            found.append([line])
        else:
            (found[-1] if found else head).append(line)
    return b"".join(head), [item(b"".join(each)) for each in found]


def _lines(index: bytes) -> list[bytes]:
    parts = index.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def item(text: bytes) -> IndexItem:
    """Return an item of an index taken apart."""
    in_json = text.startswith(b"- {")
    if in_json and _TOMBSTONE.fullmatch(text):
        return IndexItem(text, b"", FIRST)
    name = (_JSON_ID if in_json else _YAML_ID).search(text)
    life = (_JSON_LIFE if in_json else _YAML_LIFE).search(text)
    return IndexItem(text, name[1] if name else b"", _life(life))


def _life(found: re.Match[bytes] | None) -> str:
    if found is None:
        return FIRST
    return (
        found[1].decode("utf-8", "replace")
        if found[1] is not None
        else of_generation(int(found[2]))
    )


def without_counts(counts: bytes, named: Callable[[bytes], bool]) -> bytes:
    """Return access counts (lines of JSON maps by id) without those of memories with records."""
    return b"".join(_uncounted(line, named) for line in counts.splitlines(keepends=True))


def _uncounted(line: bytes, named: Callable[[bytes], bool]) -> bytes:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return line
    gone = (
        [name for name in found if named(name.encode("utf-8", "replace"))]
        if isinstance(found, dict)
        else []
    )
    if not gone:
        return line
    kept = {name: value for name, value in found.items() if name not in gone}
    return json.dumps(kept, separators=(",", ":")).encode() + b"\n"


_BOM: Final = b"\xef\xbb\xbf"
# An id in the first column, wherever it is: a person may write a comment above it.
_ID: Final = re.compile(
    rb"^[\"']?id[\"']?[ \t]*:[ \t]*[\"']?([A-Za-z0-9_-]{1,64})[\"']?[ \t]*(?:#.*)?\r?$",
    re.MULTILINE,
)
_MARKS: Final = (b"\nid", b'\n"id', b"\n'id")
_ABOVE: Final = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\r?\n)*")


class Judge:
    """Answers for one set of tombstones."""

    def __init__(self, known: Tombstones) -> None:
        self._known = known
        self._lives: dict[bytes, Lives] = {}

    def concerns(self, memory_id: bytes) -> bool:
        """Whether any life of a memory is over."""
        return self._of(memory_id) is not NOTHING

    def is_dead_file(self, data: bytes) -> bool:
        """Whether bytes are a version of a memory's file that must be gone."""
        name = own_id(data)
        known = self._of(name) if name else NOTHING
        return known is not NOTHING and known.is_dead(_life_of_file(data))

    def is_in_readme(self, data: bytes) -> bool:
        """Whether bytes are a README that names a life that must be gone."""
        return any(self._of(name).is_dead(life) for name, life in readme.named(data))

    def is_dead_item(self, item: IndexItem) -> bool:
        """Whether an item of an index is of a life that must be gone."""
        return bool(item.id) and self._of(item.id).is_dead(item.life)

    def _of(self, memory_id: bytes) -> Lives:
        found = self._lives.get(memory_id)
        if found is None:
            found = self._lives[memory_id] = self._known.lives_of_text(memory_id)
        return found


def how_many(known: Tombstones) -> int:
    """Return of how many memories a life is over."""
    return sum(each.last.number - each.first.number + 1 for each in known.items)


def own_id(data: bytes) -> bytes:
    """Return the id that a file says of itself, whatever is above it, or nothing."""
    if found := _OWN_ID.match(data):
        return found[1]
    data = data.removeprefix(_BOM)
    if not data.startswith((b"id", b'"id', b"'id")) and not any(mark in data for mark in _MARKS):
        return b""
    match = _ID.search(data)
    return match[1] if match else b""


def _life_of_file(data: bytes) -> str | None:
    """Return the life that a file says, whatever is above it; None if that cannot be told."""
    body = data.removeprefix(_BOM)
    above = _ABOVE.match(body)
    body = body[above.end() :] if above else body
    return life_of(body, "x.md" if body.startswith(b"---") else "x.yaml")


GENERIC: Final = messages.BATCH.encode()

_NAMED = re.compile(
    rb"(?:([a-z]+) )?(?:%s) ([A-Za-z0-9_-]{1,64})(: .*)?\r?" % messages.KIND.encode()
)
_TRAILER = re.compile(rb"(Memory|Agent|Turn): (.*?)\r?")
_LASTING: Final = tuple(verb.encode() for verb in messages.LASTING)
_SUBJECTS: Final = frozenset(subject.encode() for subject in messages.SUBJECTS)
_MENTION = re.compile(
    rb"^(?:Memory: |(?:[a-z]+ )?(?:%s) )([A-Za-z0-9_-]{1,64})" % messages.KIND.encode(),
    re.MULTILINE,
)
_KINDS_AND_IDS: Final = re.compile(rb"\b(?:%s) ([A-Za-z0-9_-]{1,64})" % messages.KIND.encode())
# What `git stash` makes its messages from: a branch, a commit, that commit's subject.
_STASHED: Final = (b"WIP on", b"index on", b"untracked files on")
_DERIVED = re.compile(rb"(WIP on|index on|untracked files on) (.+?): ([0-9a-f]{4,40})(?: .*)?")


class PageOrigin(NamedTuple):
    """The rewritten commit that a stash's message speaks of."""

    id: bytes
    subject: bytes


def mentions(message: bytes) -> list[bytes]:
    """Return the ids that lines or `Memory:` trailers of a message name."""
    return _MENTION.findall(message)


def named(line: bytes) -> list[bytes]:
    """Return the ids that a line names anywhere, as one does that quotes another message."""
    return _KINDS_AND_IDS.findall(line)


def is_derived(message: bytes) -> bool:
    """Whether a message is one that `git stash` made from a commit."""
    return message.startswith(_STASHED) and _DERIVED.fullmatch(subject(message)) is not None


def subject(message: bytes) -> bytes:
    """Return the first line of a message."""
    return message.partition(b"\n")[0]


def without(
    message: bytes, is_gone: Callable[[bytes], bool], *, touches: bool, generic: bytes = GENERIC
) -> bytes:
    """Return a message without what it says of gone memories.

    With `touches` the free lines go too. Nothing to take away leaves it as it is.
    """
    lines = message.split(b"\n")
    first = lines[0] if _DERIVED.fullmatch(lines[0]) else None
    kept = [
        line
        if not line.strip() or line is first or _stays(line, is_gone, touches, generic)
        else None
        for line in lines
    ]
    if None not in kept:
        return message
    return _joined(kept, generic)


def _stays(line: bytes, is_gone: Callable[[bytes], bool], touches: bool, generic: bytes) -> bool:  # noqa: FBT001 - private
    if match := _NAMED.fullmatch(line):
        lasting = match[1] in _LASTING and match[3] is None
        return lasting or not is_gone(match[2])
    if match := _TRAILER.fullmatch(line):
        return match[1] != b"Memory" or not is_gone(match[2])
    return not touches or _is_subject(line, generic) or BEGAN.fullmatch(line) is not None


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


def renamed(message: bytes, origin: PageOrigin) -> bytes:
    """Return a stash's message with the commit it was made from as it is now."""
    first, _, rest = message.partition(b"\n")
    match = _DERIVED.fullmatch(first)
    if match is None:
        return message
    head = b"%s %s: %s %s" % (match[1], match[2], origin.id[: len(match[3])], origin.subject)
    return b"%s\n%s" % (head, rest)
