"""What the program made from memories that go: it goes with them, and is made again without them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress

from smp_git.format import document
from smp_git.git import references
from smp_git.git.references import HEADS
from smp_git.model.errors import InvalidFileError, MemoryNotFoundError, QuotaExceededError
from smp_git.model.memory import CommitId, Memory, MemoryId
from smp_git.read.derived import (
    AGENT,
    SOURCES,
    made_from,
    questions,
    sources_of,
    summaries,
    without,
)
from smp_git.read.snapshot import Snapshot
from smp_git.remove.history.erase import erase
from smp_git.remove.history.journal import Receipt, RewriteOrder
from smp_git.remove.site import Site, drop_copies
from smp_git.remove.trash import new_deletion
from smp_git.write.stage import Stage
from smp_git.write.writer import Writer


def with_derived(snapshot: Snapshot, names: Collection[MemoryId]) -> tuple[MemoryId, ...]:
    """Return the ids of memories, and of what is about them: summaries, and questions for them."""
    asking = (each.name for each in questions(snapshot) if not set(names).isdisjoint(each.ids))
    return tuple(dict.fromkeys((*names, *made_from(snapshot, names), *asking)))


def remade(snapshot: Snapshot, names: Collection[MemoryId]) -> list[Memory]:
    """Return the summaries made from some of these memories as they are without them."""
    out = []
    for name, sources in made_from(snapshot, names).items():
        if name not in names:
            rest = without(snapshot.get(name), sources, frozenset(names))
            out += [rest] if rest is not None else []
    return out


def put_back(writer: Writer, memories: Iterable[Memory]) -> None:
    """Write summaries that were made again."""
    kept = list(memories)

    def work(stage: Stage) -> None:
        for each in kept:
            rest = _as_it_may_be(stage.base, each)
            if rest is not None:
                stage.put_file(rest.path, document.encode(rest), "")

    # Its turns are in the history all the same.
    with suppress(QuotaExceededError):
        if kept:
            writer.run(AGENT, work)


def _as_it_may_be(now: Snapshot, memory: Memory) -> Memory | None:
    """Return a summary without what was deleted since it was made, None if it is not to be there."""
    sources = sources_of(memory.fields.get(SOURCES))
    gone = frozenset(name for name in sources if now.tombstones.is_unwanted(name))
    rest = without(memory, sources, gone) if gone else memory
    is_free = rest is not None and now.blob(rest.id) is None and not now.tombstones.names(rest.id)
    return rest if is_free else None


def reach(site: Site, by: str) -> tuple[MemoryId, ...]:
    """Erase the summaries that tell what was deleted or redacted, here or elsewhere; return which."""
    reader = site.reader
    tips = {
        CommitId(tip)
        for ref, tip in references.read(reader.repository.git).items()
        if ref.startswith(HEADS)
    }
    stale: dict[MemoryId, None] = {}
    known, again = site.tombstones(), list[Memory]()
    for snapshot in map(reader.at, tips if known else ()):
        for entry in summaries(snapshot):
            with suppress(InvalidFileError, MemoryNotFoundError):
                memory = snapshot.get(entry.id)
                sources = sources_of(memory.fields.get(SOURCES))
                gone = frozenset(name for name in sources if known.is_unwanted(name))
                if gone:
                    stale[entry.id] = None
                    rest = without(memory, sources, gone)
                    again += (
                        [rest] if rest is not None and snapshot.id == reader.snapshot().id else []
                    )
    if not stale:
        return ()

    def settle(receipt: Receipt) -> Receipt:
        drop_copies(site, receipt.ids)
        site.keep_receipt("purge", receipt, "made from what was deleted")
        return receipt

    now = site.writer.clock()
    order = RewriteOrder(by=by, now=now, purge=True, deletion=new_deletion(now), settle=settle)
    erase(site.writer, tuple(stale), order)
    put_back(site.writer, again)
    return tuple(stale)
