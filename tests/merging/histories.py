"""Histories with several replicas, made commit by commit, for what merges must hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from smp_git import Session
from smp_git.format import document
from smp_git.format.records import Tombstones
from smp_git.git.objects import COMMIT, Object, Signature, write_commit
from smp_git.model.ids import FIRST, is_index, parse_id
from smp_git.model.memory import CommitId, Memory, Value, check_fields
from smp_git.read.snapshot import Reader
from smp_git.write.commit import assemble
from smp_git.write.merge.trees import Merged, merge

EPOCH = datetime(2026, 1, 11, 14, 30, tzinfo=UTC)
NONE = Tombstones()


def at(minutes: int) -> datetime:
    """A moment some minutes after the beginning."""
    return EPOCH + timedelta(minutes=minutes)


def memory(
    memory_id: str, text: str = "text", *, minutes: int | None = None, life: str = FIRST,
    tags: Iterable[str] = (), links: Iterable[object] = (), agent: str = "ada", **fields: Any,
) -> Memory:  # fmt: skip
    """A memory as a replica writes it, changed so many minutes after the beginning."""
    place = parse_id(memory_id)
    checked: dict[str, Value] = check_fields(place.kind, fields)
    return Memory(
        id=place.text,
        kind=place.kind.name,
        created_at=EPOCH,
        updated_at=at(minutes) if minutes is not None else None,
        agent=place.name or agent,
        content=text,
        title=document.title(place, text, checked),
        tags=tuple(tags),
        links=document.check_links(list(links)),
        fields=MappingProxyType(checked),
        life=life,
        path=place.path,
    )


def changed(old: Memory, minutes: int, **fields: Any) -> Memory:
    """The memory with other fields; None removes one."""
    kept = {**old.fields, **fields}
    said = check_fields(parse_id(old.id).kind, {k: v for k, v in kept.items() if v is not None})
    return replace(old, fields=MappingProxyType(said), updated_at=at(minutes))


class History:
    """Commits of several replicas on top of one session, on no branch."""

    def __init__(self, session: Session) -> None:
        self.reader: Reader = session._handle.reader
        self.repository = self.reader.repository
        self.root = session.head
        self._minutes = 0

    def commit(
        self, parents: CommitId | tuple[CommitId, ...], files: Mapping[str, bytes | None],
        tag: str = "aaaa", unread: Iterable[str] = (),
    ) -> CommitId:  # fmt: skip
        """Make a commit with files changed against its first parent."""
        above = parents if isinstance(parents, tuple) else (parents,)
        made = assemble(self.reader.at(above[0]), files, set(unread))
        self._minutes += 1
        who = Signature("a person", "person@example.com", at(self._minutes))
        signed = Signature(f"smp-{tag}", f"{tag}@smp", at(self._minutes)) if tag else who
        data = write_commit(made.tree, above, who, signed, f"commit {self._minutes}\n")
        commit = Object(COMMIT, data)
        with self.repository.store([*made.objects, commit]):
            return CommitId(commit.id)

    def put(self, parent: CommitId, *memories: Memory, tag: str = "aaaa") -> CommitId:
        """Make a commit that writes memories."""
        return self.commit(parent, {each.path: document.encode(each) for each in memories}, tag)

    def remove(self, parent: CommitId, *ids: str, tag: str = "aaaa") -> CommitId:
        """Make a commit that removes memories."""
        return self.commit(parent, {parse_id(name).path: None for name in ids}, tag)

    def merge(self, ours: CommitId, theirs: CommitId, known: Tombstones = NONE) -> Merged:
        """Merge without a commit."""
        return merge(self.repository, ours, theirs, known)

    def merged(
        self, ours: CommitId, theirs: CommitId, tag: str = "mmmm", known: Tombstones = NONE
    ) -> CommitId:
        """Make the commit of a merge, after making sure that the other way round is the same."""
        there, back = self.merge(ours, theirs, known), self.merge(theirs, ours, known)
        commit = self.commit((ours, theirs), there.files, tag, there.unread)
        other = self.commit((theirs, ours), back.files, tag, back.unread)
        assert self.files(commit) == self.files(other)
        assert self.repository.commit(commit).tree == self.repository.commit(other).tree
        assert there.contested == back.contested
        return commit

    def files(self, commit: CommitId) -> dict[str, bytes]:
        """Return the files of a commit, page indexes left out."""
        tree = self.repository.commit(commit).tree
        blob = self.repository.blob
        return {p: blob(name) for p, name in self.repository.files(tree) if not is_index(p)}

    def get(self, commit: CommitId, memory_id: str) -> Memory:
        """Return a memory at a commit."""
        return self.reader.at(commit).get(memory_id)

    def lost(self, commit: CommitId, memory_id: str) -> list[tuple[str, Value, str]]:
        """Return what is contested: field, value, replica."""
        found: Any = self.get(commit, memory_id).fields.get("contested", [])
        return [(item["field"], item.get("value", "(none)"), item["replica"]) for item in found]
