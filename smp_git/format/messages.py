"""Commit messages: what a commit says of the memories it touches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from smp_git.model.memory import KIND_ORDER, MemoryId
from smp_git.model.times import format_time

MOST_LINES: Final = 100
# Of more than this the counts come first.
_FEW: Final = 10
TITLED: Final = ("", "edit")
CARRY: Final = "carry"
# These verbs outlive what they name: no trailer repeats the id.
LASTING: Final = ("delete", "purge", "redact")

# Subjects of commits that are not named after their first memory.
BATCH: Final = "batch"
UNDO_BATCH: Final = f"undo {BATCH}"
REDO_BATCH: Final = f"redo {BATCH}"
ROLLBACK_BATCH: Final = f"rollback {BATCH}"
RESTORE_BATCH: Final = f"restore {BATCH}"
CARRY_BATCH: Final = f"{CARRY} {BATCH}"
LASTING_BATCHES: Final = {verb: f"{verb} {BATCH}" for verb in LASTING}
CREATE: Final = "create session"
EDITS: Final = "edits by hand"
MEND: Final = "mend indexes"
MERGE: Final = "merge"
RECORDS: Final = "bring back records"
SETTINGS: Final = "settings"
IMPORTS: Final = "imports"
README: Final = "describe session"
UPGRADE: Final = "upgrade to format 2"
# What a step of a compaction does; no memory is named, for all that it takes is in the history.
COMPACTED: Final = {
    "decayed": "compact decayed memories",
    "conversation": "compact conversation",
    "findings": "archive resolved findings",
    "states": "compact agent states",
    "relevance": "compact the least relevant memories",
}
_REGISTER: Final = "register replica"  # of earlier versions
# All of them: a rewrite lets a line be that is one of these.
SUBJECTS: Final = frozenset(
    {
        BATCH,
        UNDO_BATCH,
        REDO_BATCH,
        ROLLBACK_BATCH,
        RESTORE_BATCH,
        CARRY_BATCH,
        *LASTING_BATCHES.values(),
    }
    | {CREATE, EDITS, IMPORTS, MEND, MERGE, README, RECORDS, SETTINGS, UPGRADE, _REGISTER}
    | {*COMPACTED.values()}
)
# The same on every replica, and after a rewrite as if made after it: these count nothing.
_DERIVED: Final = (CARRY_BATCH, MEND)
# The whole message of a commit of read counts, which no branch has.
ACCESSES: Final = "accesses\n"

# The word in a line that an id follows; "value" is one only before the id of a value, as it
# always is in what a person writes.
KIND: Final = r"turn|decision|finding|preference|learning|state|artifact|value(?= VAL-)"

_LINE = re.compile(
    r"(?:(edit|resolve|supersede|pin|unpin|link|unlink|undo|redo|rollback|remove|restore|carry|delete|purge|redact) )?"
    rf"({KIND}) "
    r"([A-Za-z0-9_-]{1,64})(?:: (.*))?"
)
_TRAILER = re.compile(r"(Memory|Agent|Turn|Reason): (.*)")
# When a memory that was deleted or redacted had been added: with its id that tells it from
# another that was given the same id. It holds no content.
BEGAN: Final = re.compile(rb"Began: ([A-Za-z]{1,16}-[A-Za-z0-9-]{1,64}) ([0-9T:.Z-]{20,32})")
# A commit of more bytes than a replica takes in would be the end of all syncs.
_MOST_BEGAN: Final = 10_000
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class Touch(NamedTuple):
    """One memory in a commit message: what was done to it.

    >>> [(touch.verb, touch.id) for touch in session.undo().touches]
    [('undo', 'DEC-0001')]
    """

    verb: str
    kind: str
    id: MemoryId
    title: str = ""


class Message(NamedTuple):
    """A commit message taken apart."""

    subject: str
    touches: tuple[Touch, ...]
    agent: str | None
    turn: str | None
    reason: str | None


def write(
    touches: Sequence[Touch],
    agent: str,
    turn: str | None = None,
    reason: str | None = None,
    subject: str | None = None,
) -> str:
    """Return the message of a commit that does `touches`; of many it tells the counts.

    The `subject` is told if it names more than one line can, or no memory.
    """
    trailers = [f"Agent: {agent}"]
    if turn:
        trailers.append(f"Turn: {turn}")
    if reason := _one_line(reason or ""):
        trailers.append(f"Reason: {reason}")
    head = subject or (BATCH if touches else SETTINGS)
    counts = _counts(touches, head) if len(touches) > _FEW and head not in _DERIVED else ""
    if not 0 < len(touches) <= MOST_LINES:
        return f"{_told(head, head, counts)}\n\n" + "\n".join(trailers) + "\n"
    lines = [f"{head}: {counts}\n"] if counts else []
    lines += [_line(touch) for touch in touches]
    named = [f"Memory: {touch.id}" for touch in touches if touch.verb not in LASTING]
    rest = "\n".join(lines[1:]) + "\n\n" if lines[1:] else ""
    return f"{lines[0]}\n\n{rest}" + "\n".join(named + trailers) + "\n"


def merge_of(branch: str, touches: Iterable[Touch]) -> str:
    """Return the subject of a merge that an agent asked for, with what it changed here."""
    return _told(MERGE, f"{MERGE} {branch}", _counts(touches))


def settings_of(names: Iterable[str]) -> str:
    """Return the subject of a change of settings."""
    return f"{SETTINGS}: {', '.join(sorted(names))}"


def _told(head: str, named: str, counts: str) -> str:
    """Return a subject with counts, and below it what takes its place when they get wrong.

    A rewrite takes the first line out if a memory goes that the commit touched.
    """
    first = f"{named}: {counts}" if counts else named
    return first if head in (BATCH, first) else f"{first}\n\n{head}"


def _counts(touches: Iterable[Touch], head: str = "") -> str:
    """Return how many memories of each kind were touched, what was added first, and how else."""
    found = Counter(
        ("" if head.startswith(touch.verb) else touch.verb, KIND_ORDER[touch.kind], touch.kind)
        for touch in touches
    )
    return ", ".join(
        f"{f'{verb} ' if verb else ''}{count:,} {kind}{'s' if count > 1 else ''}"
        for (verb, _, kind), count in sorted(found.items())
    )


def head(subject: str) -> str:
    """Return a subject without what is counted in it."""
    first = subject.partition(": ")[0]
    return first if first in SUBJECTS else subject


def with_began(message: str, began: Iterable[tuple[MemoryId, datetime]]) -> str:
    """Return a message that says when the memories that it ends had been added."""
    lines = sorted({f"Began: {name} {format_time(at)}" for name, at in began})[:_MOST_BEGAN]
    return message + "".join(f"{line}\n" for line in lines)


def read_began(message: bytes) -> Iterator[tuple[MemoryId, str]]:
    """Yield which memories a message ends, and when each had been added."""
    for line in message.splitlines():
        if match := BEGAN.fullmatch(line):
            yield MemoryId(match[1].decode()), match[2].decode()


def _line(touch: Touch) -> str:
    verb = f"{touch.verb} " if touch.verb else ""
    title = _one_line(touch.title) if touch.verb in TITLED else ""
    return f"{verb}{touch.kind} {touch.id}" + (f": {title}" if title else "")


def _one_line(text: str) -> str:
    return " ".join(_CONTROL.sub(" ", text).split())


def read(text: str) -> Message:
    """Return the parts of a message; a person's free message has no touches."""
    touches: list[Touch] = []
    trailers: dict[str, str] = {}
    for line in text.splitlines():
        if match := _LINE.fullmatch(line):
            touches.append(Touch(match[1] or "", match[2], MemoryId(match[3]), match[4] or ""))
        elif match := _TRAILER.fullmatch(line):
            trailers[match[1]] = match[2]
    subject = text.partition("\n")[0]
    return Message(
        subject, tuple(touches), trailers.get("Agent"), trailers.get("Turn"), trailers.get("Reason")
    )
