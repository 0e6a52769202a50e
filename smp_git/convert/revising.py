"""Memories that their source changed since they were taken in: changed here too, unless they were already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from smp_git.convert import drafts
from smp_git.convert.entries import ForeignMemory, Trouble, storable
from smp_git.convert.report import Imported
from smp_git.format import document
from smp_git.model.errors import InvalidError, InvalidFileError
from smp_git.model.ids import parse_id
from smp_git.model.memory import Memory, MemoryId, is_same
from smp_git.read import history
from smp_git.read.snapshot import Snapshot
from smp_git.write.handle import Handle
from smp_git.write.stage import Draft
from smp_git.write.transaction import Transaction

# How the reason begins of a commit that takes memories in.
REASON: Final = "import from"


class KnownEntry(NamedTuple):
    """An entry that is here already: what it is called in its source, and its id."""

    entry: ForeignMemory
    source: str
    id: MemoryId


class Revision(NamedTuple):
    """What a memory becomes: a draft, or the fields of a state."""

    memory: Memory
    draft: Draft | None
    fields: Mapping[str, object]

    def stage(self, tx: Transaction) -> None:
        """Stage the change."""
        if self.draft is None:
            tx.set_state(self.memory.agent, self.fields)
        else:
            tx.edit(
                self.memory.id,
                text=self.draft.content,
                tags=self.draft.tags,
                links=self.draft.links,
                **dict[str, Any](self.fields),
            )


def revisions(
    handle: Handle,
    known: Iterable[KnownEntry],
    ids: Mapping[str, MemoryId],
    elsewhere: Mapping[str, str],
    report: Imported,
) -> Iterator[Revision]:
    """Yield the changes of a source; what was changed here as well stays, and is named."""
    snapshot = handle.reader.snapshot()
    for each in known:
        memory = snapshot.readable(each.id)
        if memory is None or memory.kind != each.entry.kind:
            continue
        if drafts.is_plainly_the_same(each.entry, memory):
            continue
        try:
            revision = _revision(handle, each, memory, ids, elsewhere)
        except InvalidError as error:
            report.problems.append(Trouble(where=each.entry.where, reason=error.message))
            continue
        if _says(memory, revision):
            continue
        base, is_untouched = _as_imported(snapshot, memory.id)
        if is_untouched:
            yield revision
        elif base is not None and not _says(base, revision):
            why = f"changed there and here since it was imported; {memory.id} stays as it is"
            report.problems.append(Trouble(where=each.entry.where, reason=why))
        elif base is None and memory.kind == "state":
            why = f"{memory.id} is here already, and stays as it is"
            report.problems.append(Trouble(where=each.entry.where, reason=why))


def _revision(
    handle: Handle,
    known: KnownEntry,
    memory: Memory,
    ids: Mapping[str, MemoryId],
    elsewhere: Mapping[str, str],
) -> Revision:
    if memory.kind == "state":
        fields = drafts.state_fields(known.entry, known.source, ids)
        return Revision(memory, None, handle.rules.cleaned(None, fields).fields)
    made = drafts.draft_of(handle, known.entry, known.source)
    draft = drafts.linked(made, known.entry, ids, elsewhere)
    return Revision(memory, draft, drafts.changed_fields(draft, memory))


def _says(memory: Memory, revision: Revision) -> bool:
    """Whether a memory, or an earlier version of it, says what it would become."""
    if revision.draft is not None:
        return drafts.is_the_same(revision.draft, memory)
    return all(
        name in memory.fields and is_same(memory.fields[name], storable(value))
        for name, value in revision.fields.items()
    )


def _as_imported(snapshot: Snapshot, memory_id: MemoryId) -> tuple[Memory | None, bool]:
    """Return what an import made of a memory last, and whether nobody changed it since.

    It is None where a redaction or deletion took that version out of the history.
    """
    path = parse_id(memory_id).path
    for number, (version, blob) in enumerate(history.versions(snapshot, memory_id)):
        if blob is not None and (version.reason or "").startswith(REASON):
            try:
                return document.decode(snapshot.repository.blob(blob), path), number == 0
            except InvalidFileError:
                return None, False
    return None, False
