"""What compactions took out: brought back, or erased at its deadline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from smp_git.format import messages
from smp_git.format.records import WITH_VALUES
from smp_git.git.objects import Commit
from smp_git.git.references import HEADS
from smp_git.git.repository import Repository
from smp_git.model.errors import ConflictError, MemoryNotFoundError
from smp_git.model.ids import parse_id, parse_path, short_id
from smp_git.model.memory import VALUE, MemoryId
from smp_git.read.compactions import Compacted, compacted
from smp_git.read.snapshot import Snapshot
from smp_git.remove import audit
from smp_git.remove.history.erase import erase
from smp_git.remove.history.journal import RewriteOrder
from smp_git.write.handle import Handle
from smp_git.write.stage import Stage
from smp_git.write.writer import Change


def bring_back(handle: Handle, ids: str | Iterable[str], agent: str | None) -> Change:
    """Bring back what compactions took out, as it was; raise MemoryNotFoundError."""
    wanted = [ids] if isinstance(ids, str) else list(ids)
    seen = handle.reader.snapshot()
    found = _chosen(seen, wanted)

    def work(stage: Stage) -> None:
        # A deletion or redaction meanwhile made another history.
        chosen = found if stage.base.id == seen.id else _chosen(stage.base, wanted)
        for each in chosen:
            if stage.base.blob(each.id) is None:
                data = handle.reader.at(each.before).file(each.id)
                stage.put_file(parse_id(each.id).path, data, "restore")

    return handle.writer.run(handle.actor(agent), work, subject=messages.RESTORE_BATCH)[1]


def _chosen(snapshot: Snapshot, wanted: Iterable[str]) -> list[Compacted]:
    """Return what compactions took out, by ids that may be short; raise MemoryNotFoundError."""
    known = {each.id: each for each in compacted(snapshot)}
    return [known[_named(text, known)] for text in wanted]


def _named(text: str, known: Iterable[MemoryId]) -> MemoryId:
    short = short_id(text)
    name = short.text if short is not None else text
    for each in known:
        if each in (name, text):
            return each
    raise MemoryNotFoundError(
        f"no compaction took out {text}", hint="smp compacted lists what they did"
    )


def removed(snapshot: Snapshot) -> dict[MemoryId, datetime]:
    """Return the values that their programs removed, and when last."""
    found = dict[MemoryId, datetime]()
    if snapshot.metadata.format < WITH_VALUES:
        return found
    for commit in snapshot.walk():
        for name in _removed_by(snapshot.repository, commit):
            if not snapshot.tombstones.is_gone(name):
                found.setdefault(name, commit.time)
    return found


def _absent(repository: Repository, ids: Iterable[MemoryId]) -> Iterator[MemoryId]:
    """Yield which of some memories no branch has."""
    heads = {tip for ref, tip in repository.references().items() if ref.startswith(HEADS)}
    trees = [repository.commit(tip).tree for tip in heads]
    for name in ids:
        path = parse_id(name).path
        if not any(repository.find(tree, path) for tree in trees):
            yield name


def _removed_by(repository: Repository, commit: Commit) -> Iterator[MemoryId]:
    """Yield the values that a commit removed; the message of a large one does not name them."""
    message = messages.read(commit.message)
    if messages.head(message.subject) == messages.BATCH and not message.touches and commit.parents:
        before = repository.commit(commit.parents[0]).tree
        changes = repository.changes(before, commit.tree)
        places = (parse_path(path) for path, _, new in changes if new is None)
        yield from (place.text for place in places if place and place.kind.name == VALUE)
    for touch in message.touches:
        if touch.verb == "remove" and touch.kind == VALUE:
            yield touch.id


_DUE: Final = "removed, and past its deadline"


def due(handle: Handle, now: datetime) -> tuple[MemoryId, ...]:
    """Return what was taken out for good: absent on every branch, and past the time to bring it back."""
    limit = handle.settings.trash_time
    found = handle.reader.read(compacted)
    by_programs = handle.reader.read(removed).items()
    old = (
        *(each.id for each in found if not each.is_archived and now - each.at > limit),
        *(name for name, at in by_programs if now - at > limit),
    )
    return tuple(_absent(handle.reader.repository, old))


def erase_due(handle: Handle, ids: tuple[MemoryId, ...], now: datetime, by: str) -> None:
    """Take out of history what was removed long ago, in one rewrite.

    Nobody wished it gone, so a summary that tells of it stays. Raises ConflictError, with
    nothing changed, if some of it was brought back meanwhile.
    """

    def check(_: object) -> None:
        if set(ids) - set(_absent(handle.reader.repository, ids)):
            raise ConflictError("some of what was due was brought back meanwhile", hint="try again")

    order = RewriteOrder(by=by, now=now, purge=True, expires=True, reason=_DUE, seal=check)
    erase(handle.main_writer, ids, order)
    audit.note(handle.at_home().path, "purge", handle.name, at=now, by=by, ids=ids, reason=_DUE)
