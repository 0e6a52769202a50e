"""Undo, redo and rollback: what commits did to memories, reversed by another commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from smp_git.format import messages
from smp_git.format.document import life_of
from smp_git.git.objects import Commit, ObjectId
from smp_git.model.errors import ConflictError, InvalidFileError, MemoryNotFoundError, RefusedError
from smp_git.model.ids import parse_id, parse_path
from smp_git.model.memory import MemoryId
from smp_git.model.times import When
from smp_git.read.snapshot import Snapshot
from smp_git.write.edits import staged
from smp_git.write.handle import Handle
from smp_git.write.stage import Stage
from smp_git.write.writer import Change

# What cannot be shown again after it, and what to do instead.
_RESTORE: Final = "smp restore {} brings back what was deleted, smp undo ID undoes a write before"
_LASTING: Final = {
    "delete": ("deletion", _RESTORE),
    "purge": ("purge", "smp undo ID undoes a write before"),
    "redact": ("redaction", "smp show and smp edit bring single values back"),
    "carry": ("sync with a redaction", "smp show and smp edit bring single values back"),
}


class _Step(NamedTuple):
    """What a commit did to the file of one memory."""

    path: str
    before: ObjectId | None
    after: ObjectId | None

    @property
    def reverse(self) -> _Step:
        return _Step(self.path, self.after, self.before)


def undo(handle: Handle, memory_id: str | None, revision: When | None, agent: str | None) -> Change:
    """Reverse the latest write that was not undone, perhaps of one memory, or one revision."""
    target = handle.at(revision) if revision is not None else None
    name = handle.reader.snapshot().full(memory_id) if memory_id is not None else None

    def work(stage: Stage) -> None:
        if target:
            _stage_undo_of(stage, target.commit, name)
        else:
            _stage_undo(stage, name)

    return staged(handle, agent, work, messages.UNDO_BATCH)


def redo(handle: Handle, agent: str | None) -> Change:
    """Bring back what the latest undo took back, unless something was written since."""
    return staged(handle, agent, _stage_redo, messages.REDO_BATCH)


def rollback(handle: Handle, revision: When, memory_id: str | None, agent: str | None) -> Change:
    """Bring the session, or one memory, back to how it was; what was deleted stays away."""
    target = handle.at(revision)
    name = _somewhere(handle, memory_id, target) if memory_id is not None else None
    return staged(
        handle,
        agent,
        lambda stage: _stage_rollback(stage, target, name),
        messages.ROLLBACK_BATCH,
    )


def _somewhere(handle: Handle, memory_id: str, target: Snapshot) -> MemoryId:
    """Return the id that a text names now, else at `target`."""
    now = handle.reader.snapshot()
    with suppress(MemoryNotFoundError):
        return now.find(memory_id)
    # A deleted memory is in no revision; whoever asks for it is told so later.
    if now.tombstones.names_text(memory_id.encode()):
        return MemoryId(memory_id)
    return target.find(memory_id)


def _stage_undo(stage: Stage, memory_id: MemoryId | None = None) -> None:
    """Stage the reversal of the latest write, perhaps of one memory, that is not undone yet."""
    base, path = stage.base, parse_id(memory_id).path if memory_id else None
    undone: Counter[_Step] = Counter()
    is_known = memory_id is None
    for commit in _back(base):
        steps = _steps(base, commit, path)
        is_known = is_known or bool(steps)
        if len(commit.parents) > 1 and (steps or not memory_id):
            raise _not_undone(commit, "merge", "roll back to the revision before it")
        if not undone:
            _refuse_lasting(commit, memory_id)
        if _is(commit, "undo"):
            undone.update(step.reverse for step in steps)
        elif left := _effective(base, _less(steps, undone)):
            _bring_back(stage, _befores(left), "undo")
            return
    if not is_known:
        raise MemoryNotFoundError(f"no memory {memory_id}", hint="smp list shows what is there")
    raise RefusedError("there is nothing to undo")


def _stage_undo_of(stage: Stage, commit: Commit, memory_id: MemoryId | None = None) -> None:
    """Stage the reversal of one commit; raise ConflictError if memories changed since."""
    base = stage.base
    if len(commit.parents) != 1:
        what = "merge" if commit.parents else "beginning of the session"
        raise _not_undone(commit, what, "smp rollback returns to a revision", is_latest=False)
    _refuse_lasting(commit, memory_id, is_latest=False)
    left = _effective(base, _steps(base, commit, parse_id(memory_id).path if memory_id else None))
    if changed := [step for step in left if _now(base, step) != step.after]:
        names = ", ".join(_name(step) for step in changed[:3])
        raise ConflictError(
            f"what {commit.id[:12]} wrote was changed since: {names}",
            hint="smp undo ID undoes the latest change of a memory, smp rollback REV ID all since",
        )
    if not left:
        raise RefusedError(f"nothing to undo is left of {commit.id[:12]}")
    _bring_back(stage, _befores(left), "undo")


def _stage_redo(stage: Stage) -> None:
    """Stage what the latest undo took back, unless something was written since."""
    base = stage.base
    redone: Counter[_Step] = Counter()
    for commit in _back(base):
        steps = _steps(base, commit, None)
        if _is(commit, "redo"):
            redone.update(step.reverse for step in steps)
        elif _is(commit, "undo") and (left := _effective(base, _less(steps, redone))):
            _bring_back(stage, _befores(left), "redo")
            return
        elif steps and not _is(commit, "undo"):
            break
    raise RefusedError("there is nothing to redo", hint="smp redo takes back an undo, at once")


def _stage_rollback(stage: Stage, target: Snapshot, memory_id: MemoryId | None) -> None:
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
    """Stage files as they were, but for versions that must not come back."""
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


def _back(base: Snapshot) -> Iterator[Commit]:
    """Yield the commits from the newest on, along first parents, but for the first of all."""
    commit = base.commit
    while commit.parents:
        yield commit
        commit = base.repository.commit(commit.parents[0])


def _steps(base: Snapshot, commit: Commit, path: str | None) -> list[_Step]:
    """Return what a commit did to memories, or to the one at `path`."""
    repository, parent = base.repository, base.repository.commit(commit.parents[0])
    if path is not None:
        step = _Step(path, repository.find(parent.tree, path), repository.find(commit.tree, path))
        return [step] if step.before != step.after else []
    return [
        _Step(*each)
        for each in repository.changes(parent.tree, commit.tree)
        if parse_path(each[0]) is not None
    ]


def _less(steps: Iterable[_Step], reversed_since: Counter[_Step]) -> Iterator[_Step]:
    """Yield the steps that were not reversed since; take the others off what was."""
    for step in steps:
        if reversed_since[step] > 0:
            reversed_since[step] -= 1
            if not reversed_since[step]:
                del reversed_since[step]
        else:
            yield step


def _effective(base: Snapshot, steps: Iterable[_Step]) -> list[_Step]:
    """Return the steps of which the reversal changes something."""
    return [
        step
        for step in steps
        if _now(base, step) != step.before
        and not (step.before is not None and _is_deleted(base, step.path, step.before))
    ]


def _now(base: Snapshot, step: _Step) -> ObjectId | None:
    return base.repository.find(base.tree, step.path)


def _befores(steps: Iterable[_Step]) -> list[tuple[str, ObjectId | None]]:
    return [(step.path, step.before) for step in steps]


def _name(step: _Step) -> str:
    place = parse_path(step.path)
    return place.text if place else step.path


def _is(commit: Commit, verb: str) -> bool:
    """Whether a commit is an undo, or a redo."""
    message = messages.read(commit.message)
    return message.subject.startswith(f"{verb} ") and (
        messages.head(message.subject) == f"{verb} {messages.BATCH}"
        or any(touch.verb == verb for touch in message.touches)
    )


def _refuse_lasting(commit: Commit, memory_id: MemoryId | None, *, is_latest: bool = True) -> None:
    """Raise RefusedError if a commit is never undone; of one memory, if it names that."""
    touches = messages.read(commit.message).touches
    named = [touch for touch in touches if not memory_id or touch.id == memory_id]
    verbs = {touch.verb: touch.id for touch in named}
    if not touches and not memory_id:
        verbs[commit.message.partition(" ")[0].strip()] = MemoryId("ID")
    for verb, (what, hint) in _LASTING.items():
        if verb in verbs:
            raise _not_undone(commit, what, hint.format(verbs[verb]), is_latest=is_latest)


def _not_undone(commit: Commit, what: str, hint: str, *, is_latest: bool = True) -> RefusedError:
    which = "the latest write" if is_latest else commit.id[:12]
    aside = f" ({commit.id[:12]})" if is_latest else ""
    return RefusedError(f"{which} is a {what}{aside}, which is not undone", hint=hint)
