"""Undo and rollback: the past brought back as a new commit, deletions left alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from smp_git.format import messages
from smp_git.format.document import life_of
from smp_git.git.objects import Commit, ObjectId
from smp_git.model.errors import InvalidFileError, MemoryNotFoundError, RefusedError
from smp_git.model.ids import parse_id, parse_path
from smp_git.model.memory import MemoryId
from smp_git.read.snapshot import Snapshot
from smp_git.write.stage import Stage


def undo(stage: Stage) -> None:
    """Stage the reversal of the latest write that is not undone yet; raise RefusedError."""
    target = _latest_standing(stage.base)
    repository = stage.base.repository
    parent = repository.commit(target.parents[0])
    changes = [
        (path, before)
        for path, before, _ in repository.changes(parent.tree, target.tree)
        if parse_path(path) is not None
    ]
    _bring_back(stage, changes, "undo")


def _latest_standing(base: Snapshot) -> Commit:
    """Return the latest commit that no later undo has reversed."""
    undone = 0
    commit = base.commit
    while commit.parents:
        if len(commit.parents) > 1:
            raise RefusedError(
                f"the latest write is a merge ({commit.id[:12]}), which is not undone",
                hint="roll back to the revision before it",
            )
        if not undone and (verb := _lasting(commit)):
            raise RefusedError(
                f"the latest write is a {verb} ({commit.id[:12]}), which is not undone",
                hint="smp show and smp edit bring single values back",
            )
        if _is_undo(commit):
            undone += 1
        elif _touches_memories(base, commit):
            if not undone:
                return commit
            undone -= 1
        commit = base.repository.commit(commit.parents[0])
    raise RefusedError("there is nothing to undo")


# What begins a life leaves nothing behind it that could stand again.
_LASTING: Final = {"redact": "redaction", "carry": "sync with a redaction"}


def _lasting(commit: Commit) -> str | None:
    """Return what a commit is called if it is never undone."""
    for touch in messages.read(commit.message).touches:
        if touch.verb in _LASTING:
            return _LASTING[touch.verb]
    return _LASTING.get(commit.message.partition(" ")[0])


def _is_undo(commit: Commit) -> bool:
    message = messages.read(commit.message)
    return message.subject.startswith("undo ") and (
        message.subject == UNDO_BATCH or any(touch.verb == "undo" for touch in message.touches)
    )


UNDO_BATCH = "undo batch"


def _touches_memories(base: Snapshot, commit: Commit) -> bool:
    parent = base.repository.commit(commit.parents[0])
    changes = base.repository.changes(parent.tree, commit.tree)
    return any(parse_path(path) is not None for path, _, _ in changes)


def rollback(stage: Stage, target: Snapshot, memory_id: MemoryId | None) -> None:
    """Stage the session, or one memory, as it was at `target`."""
    repository = stage.base.repository
    if memory_id is not None:
        _rollback_one(stage, target, memory_id)
        return
    changes = [
        (path, then)
        for path, _, then in repository.changes(stage.base.tree, target.tree)
        if parse_path(path) is not None
    ]
    _bring_back(stage, changes, "rollback")


def _rollback_one(stage: Stage, target: Snapshot, memory_id: MemoryId) -> None:
    then = target.blob(memory_id)
    if _is_deleted(stage.base, parse_id(memory_id).path, then):
        raise RefusedError(f"{memory_id} was deleted", hint="smp restore brings it back")
    if then is None:
        raise MemoryNotFoundError(f"{memory_id} is not there at {target.id[:12]}")
    if then != stage.base.blob(memory_id):
        _bring_back(stage, [(parse_id(memory_id).path, then)], "rollback")


def _bring_back(stage: Stage, changes: Iterable[tuple[str, ObjectId | None]], verb: str) -> None:
    for path, blob in changes:
        if blob is not None and _is_deleted(stage.base, path, blob):
            continue
        try:
            stage.put_file(path, stage.base.repository.blob(blob) if blob else None, verb)
        except InvalidFileError as error:
            raise RefusedError(
                f"the version to bring back cannot be read: {error.message}",
                hint="bring back single memories instead",
            ) from error


def _is_deleted(base: Snapshot, path: str, blob: ObjectId | None) -> bool:
    """Whether a version, or None for what is in no version any more, must not come back."""
    place = parse_path(path)
    if place is None or not base.tombstones.names(place.text):
        return False
    if blob is None:
        return True
    return base.tombstones.is_dead(place.text, life_of(base.repository.blob(blob), path))
