"""Links between memories, with what fields say of them: followed both ways, cycles safe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from smp_git.ask.catalogue import Catalogue, Row
from smp_git.model.errors import AccessError, InvalidError, MemoryNotFoundError
from smp_git.model.ids import is_elsewhere, parse_id
from smp_git.model.memory import KINDS, MemoryId, ids_in
from smp_git.read.snapshot import Snapshot

_TURN: Final = "turn_ref"
_REFS: Final = "memory_refs"
_SIBLINGS: Final = "same_turn"


class Relation(NamedTuple):
    """One relation of a memory to another; `both` ways if neither names the other."""

    other: MemoryId
    relation: str
    direction: str

    def told(self, name: MemoryId) -> str:
        """Return what the other has to do with `name`, whose edge this is."""
        if self.direction == "both":
            return f"of the same turn as {name}"
        return f"{name} {self.relation} it" if self.direction == "to" else f"{self.relation} {name}"


class Related(NamedTuple):
    """A memory that another leads to over links: how far, over which, in which direction.

    One of another session is SESSION:ID, without a title, and leads no further.

    >>> [(each.id, each.relation) for each in session.related("DEC-0001")]
    [('FIND-0001', 'resolves')]
    """

    id: MemoryId
    kind: str
    title: str
    depth: int
    relation: str
    direction: str
    via: MemoryId


class Links:
    """The links of one session at one commit."""

    def __init__(self, catalogue: Catalogue, snapshot: Snapshot) -> None:
        catalogue.follow(snapshot, KINDS)
        self._catalogue = catalogue
        self._snapshot = snapshot
        # By turn, and by what refers to it; both as the catalogue was at this version.
        self.version = catalogue.version
        self._of_turn: dict[str, list[MemoryId]] = {}
        self._referring: dict[str, list[MemoryId]] = {}
        for row in catalogue.rows:
            if row.entry.turn:
                self._of_turn.setdefault(row.entry.turn, []).append(row.entry.id)
            if _REFS in KINDS[row.kind].fields:
                for name in self._refs(row):
                    self._referring.setdefault(name, []).append(row.entry.id)

    @classmethod
    def of(cls, catalogue: Catalogue, snapshot: Snapshot) -> Links:
        """Return the links of a session, gathered anew only after a change."""
        catalogue.follow(snapshot, KINDS)
        known = catalogue.links
        if not isinstance(known, Links) or known.version != catalogue.version:
            known = catalogue.links = Links(catalogue, snapshot)
        return known

    def edges(self, name: MemoryId) -> list[Relation]:
        """Return the relations of a memory, its own first, as far as the others are there.

        A memory of another session counts as there: nobody looks.
        """
        row, known = self._row(name), self._catalogue.by_id
        found = [Relation(MemoryId(target), relation, "to") for relation, target in row.entry.links]
        incoming = sorted(self._catalogue.incoming.get(name, ()))
        found += [Relation(source, relation, "from") for source, relation in incoming]
        turn = row.entry.turn
        if turn:
            found.append(Relation(MemoryId(turn), _TURN, "to"))
        found += [Relation(other, _TURN, "from") for other in self._of_turn.get(name, ())]
        found += [Relation(other, _REFS, "to") for other in self._refs(row)]
        found += [Relation(other, _REFS, "from") for other in self._referring.get(name, ())]
        siblings = self._of_turn.get(turn, ()) if turn else ()
        found += [Relation(other, _SIBLINGS, "both") for other in siblings]
        return [
            each
            for each in dict.fromkeys(found)
            if (each.other in known or is_elsewhere(each.other)) and each.other != name
        ]

    def related(self, start: MemoryId, depth: int) -> tuple[Related, ...]:
        """Return what links lead to from a memory, nearest first, with every relation there is."""
        seen, edge = {start}, [start]
        out: list[Related] = []
        for distance in range(1, depth + 1):
            following: dict[MemoryId, MemoryId] = {}
            for name in edge:
                out += [
                    self._related(each, distance, name)
                    for each in self.edges(name)
                    if each.other not in seen and following.setdefault(each.other, name) == name
                ]
            seen.update(following)
            edge = [name for name in following if not is_elsewhere(name)]
        return tuple(out)

    def _related(self, edge: Relation, depth: int, via: MemoryId) -> Related:
        if is_elsewhere(edge.other):
            kind, title = parse_id(edge.other.rpartition(":")[2]).kind.name, ""
        else:
            row = self._row(edge.other)
            kind, title = row.kind, row.entry.title
        return Related(edge.other, kind, title, depth, edge.relation, edge.direction, via)

    def _row(self, name: MemoryId) -> Row:
        return self._catalogue.row(self._catalogue.by_id[name])

    def _refs(self, row: Row) -> Iterator[MemoryId]:
        """Yield the memories that a memory names in its field, as far as they are there."""
        for ref in self._said(row):
            try:
                yield self._snapshot.find(ref)
            except (AccessError, InvalidError, MemoryNotFoundError):
                continue

    def _said(self, row: Row) -> tuple[str, ...]:
        """Return what a memory's field says, known by its file."""
        known = self._catalogue.refs.get(row.entry.blob)
        if known is None:
            known = self._catalogue.refs[row.entry.blob] = tuple(self._read(row.entry.id))
        return known

    def _read(self, name: MemoryId) -> list[str]:
        # Looking for a word costs far less than reading the file.
        if _REFS.encode() not in (self._snapshot.readable_file(name) or b""):
            return []
        memory = self._snapshot.readable(name)
        return ids_in(memory.fields.get(_REFS)) if memory is not None else []
