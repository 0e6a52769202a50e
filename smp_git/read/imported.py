"""Memories of other programs in a session: those it has, and those it had and shall not get again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from smp_git.format import document, imports, messages
from smp_git.format.records import Tombstones
from smp_git.git.objects import Commit
from smp_git.model.errors import InvalidFileError, SmpError
from smp_git.model.ids import parse_path
from smp_git.model.memory import MemoryId
from smp_git.read.snapshot import Snapshot

# Subjects of commits that take memories out without deleting them.
_TAKEN_OUT: Final = frozenset(
    (*messages.COMPACTED.values(), messages.EDITS, messages.LASTING_BATCHES["redact"])
)


class Taken(NamedTuple):
    """What a session knows of other programs' memories, by what they are called there."""

    ids: Mapping[str, MemoryId] = {}
    removed: frozenset[str] = frozenset()
    # Digests: by this uid, and by none.
    digests: frozenset[str] = frozenset()
    uid: str = ""
    # The commit that tells it, where one does.
    head: str = ""
    # Its own memories, those that were taken out, and those that were deleted.
    here: frozenset[MemoryId] = frozenset()
    out: frozenset[MemoryId] = frozenset()
    buried: Tombstones | None = None

    def has_had_own(self, memory_id: str) -> bool:
        """Whether it had a memory of its own under an id that was deleted or taken out."""
        is_buried = self.buried is not None and self.buried.names_text(memory_id.encode())
        return is_buried or memory_id in self.out

    def has_had(self, source: str) -> bool:
        """Whether it had a memory that was deleted or taken out."""
        return source in self.removed or is_among(self.digests, self.uid, source)


def is_among(digests: frozenset[str], uid: str, source: str) -> bool:
    """Whether a source is among digests, made with a session's uid or for a whole store."""
    return bool(digests) and not digests.isdisjoint(
        (imports.digest(uid, source), imports.digest("", source))
    )


def digests(snapshot: Snapshot) -> frozenset[str]:
    """Return the digests of what no import brings in again."""
    blob = snapshot.repository.find(snapshot.tree, imports.PATH)
    return imports.read(snapshot.repository.blob(blob)) if blob else frozenset()


def taken(snapshot: Snapshot) -> Taken:
    """Return what a session has of other programs, and what is gone of it."""
    here, gone = snapshot.memories(), dict(_removed(snapshot))
    ids = {
        source: memory.id for memory in here if (source := imports.source_of(memory)) is not None
    }
    return Taken(
        ids=ids,
        removed=frozenset(_sources(gone.items())) - ids.keys(),
        digests=digests(snapshot),
        uid=snapshot.metadata.uid,
        head=snapshot.id,
        here=frozenset(memory.id for memory in here),
        out=frozenset(place.text for path in gone if (place := parse_path(path)) is not None),
        buried=snapshot.tombstones,
    )


def file_of(known: Taken) -> bytes:
    """Return the digests of everything that a session has or had, to keep beside it."""
    own = {imports.digest("", source) for source in (*known.ids, *known.removed)}
    return imports.write(own | known.digests)


def _removed(snapshot: Snapshot) -> Iterator[tuple[str, bytes]]:
    """Yield the files that a compaction or a person took out: they are in the history still."""
    repository = snapshot.repository
    with suppress(SmpError):
        for commit in snapshot.walk():
            if len(commit.parents) != 1 or not _takes_out(commit):
                continue
            before = repository.commit(commit.parents[0]).tree
            for path, old, new in repository.changes(before, commit.tree):
                if old is not None and new is None and parse_path(path) is not None:
                    yield path, repository.blob(old)


def _takes_out(commit: Commit) -> bool:
    said = messages.read(commit.message)
    return (
        said.agent is None
        or messages.head(said.subject) in _TAKEN_OUT
        or any(touch.verb == "remove" for touch in said.touches)
    )


def _sources(files: Iterable[tuple[str, bytes]]) -> Iterator[str]:
    for path, data in files:
        with suppress(InvalidFileError):
            source = imports.source_of(document.decode(data, path))
            if source is not None:
                yield source
