"""A user's own questions, and the memories that must be among the first that answer them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from smp_git.ask.desk import Desk
from smp_git.format import document
from smp_git.model.errors import InvalidError
from smp_git.model.ids import Id
from smp_git.model.memory import KINDS, RECALL, Memory, MemoryId, check_text, title_of
from smp_git.model.results import Result
from smp_git.read.derived import AGENT, RecallQuestion, questions, tag_of
from smp_git.read.snapshot import Snapshot
from smp_git.write.handle import Handle
from smp_git.write.stage import Stage
from smp_git.write.writer import Work

_MOST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallResult(Result):
    """A question, what must answer it, and what of that is not among the first.

    >>> noted = session.recall("second factor", "FIND-0001")
    >>> [(each.question, each.missing) for each in session.recall_test()]
    [('second factor', ())]
    """

    question: str
    first: int
    expected: tuple[MemoryId, ...]
    missing: tuple[MemoryId, ...]


def ask_for(
    handle: Handle, question: str, ids: str | Iterable[str], first: int, agent: str | None
) -> Memory:
    """Note a question and what must be among the first answers; the same question is replaced."""
    text, _ = handle.rules.text(check_text(question, "a question").strip())
    if not text:
        raise InvalidError("a question cannot be empty")
    if not 1 <= first <= _MOST:
        raise InvalidError(f"first must be a number from 1 to {_MOST}, not {first}")
    named = [ids] if isinstance(ids, str) else list(ids)
    if not named:
        raise InvalidError("no memory is expected", hint="name the ids that must be found")

    def begin(stage: Stage) -> None:
        place = _place(stage.base, text)
        # The same bytes on every replica: one question is one memory, with what each says of it.
        if stage.base.blob(place.text) is None:
            made = Memory(
                id=place.text,
                kind="artifact",
                created_at=stage.base.metadata.created_at,
                agent=AGENT,
                content=text,
                title=title_of(text, {}),
                fields={"type": RECALL},
                path=place.path,
            )
            stage.put_file(made.path, document.encode(made), "")

    def say(stage: Stage) -> None:
        refs = [stage.find(name) for name in named]
        stage.edit(_place(stage.base, text).text, fields={"memory_refs": refs, "first": first})

    snapshot = handle.reader.snapshot()
    for name in named:
        snapshot.get(snapshot.find(name))
    who = handle.actor(agent)
    handle.writer.run_all([Work(who, begin), Work(who, say)])
    return handle.read(None, lambda now: now.get(_place(now, text).text))


def _place(snapshot: Snapshot, text: str) -> Id:
    """Return where a question is, or is to be: under a number of its own once it was deleted."""
    tag, number = tag_of([text.casefold()]), 1
    while True:
        place = Id(KINDS["artifact"], number, tag)
        there = snapshot.readable(place.text)
        is_free = snapshot.blob(place.text) is None and not snapshot.tombstones.names(place.text)
        if is_free or (there is not None and there.content.strip().casefold() == text.casefold()):
            return place
        number += 1


def test(desk: Desk) -> tuple[RecallResult, ...]:
    """Ask every question, and return what was found."""
    handle = desk.handle
    now = handle.clock()

    def answer(snapshot: Snapshot) -> tuple[RecallResult, ...]:
        return tuple(_asked(desk, snapshot, each, now) for each in questions(snapshot))

    return handle.read(None, answer)


def _asked(desk: Desk, snapshot: Snapshot, each: RecallQuestion, now: datetime) -> RecallResult:
    query = desk.asked(each.question, None, {"limit": each.first}, now)
    found = {hit.id for hit in desk.answer(snapshot, query, now).hits}
    return RecallResult(
        question=each.question,
        first=each.first,
        expected=each.ids,
        missing=tuple(name for name in each.ids if name not in found),
    )
