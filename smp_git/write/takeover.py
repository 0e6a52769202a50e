"""Memories taken over from another session, with the ids and times that they have there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from smp_git.format import document
from smp_git.model.errors import AlreadyExistsError
from smp_git.model.ids import parse_id
from smp_git.model.memory import Memory
from smp_git.write.stage import Stage
from smp_git.write.writer import Writer


def take_over(writer: Writer, memories: Sequence[Memory]) -> int:
    """Add memories, each run of one agent's as one commit; raise AlreadyExistsError if one is there."""
    head = writer.reader.snapshot()
    taken = [memory.id for memory in memories if head.blob(memory.id) is not None]
    if taken:
        raise AlreadyExistsError(f"{taken[0]} exists", hint="take over into a new session")
    for agent, run in groupby(memories, key=lambda memory: memory.agent):
        writer.run(agent, _staging(list(run)))
    return len(memories)


def _staging(memories: Sequence[Memory]) -> Callable[[Stage], None]:
    def work(stage: Stage) -> None:
        for memory in memories:
            path = parse_id(memory.id).path
            stage.put_file(path, document.encode(replace(memory, path=path)), "")

    return work
