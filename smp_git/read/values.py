"""Values by their keys: found, listed by prefix, and how they came about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from types import MappingProxyType
from typing import Final, NamedTuple

from smp_git.format import document
from smp_git.format.lines import Entry
from smp_git.git.objects import ObjectId
from smp_git.model.ids import Id, parse_id, value_id
from smp_git.model.memory import (
    CONTESTED,
    KINDS,
    VALUE,
    CommitId,
    Memory,
    MemoryId,
    Value,
    check_key,
)
from smp_git.model.results import Result
from smp_git.read import history
from smp_git.read.snapshot import Snapshot

Key = tuple[str, ...]
_OWN_FIELDS: Final = frozenset((*KINDS[VALUE].fields, CONTESTED))


class ValuePlace(NamedTuple):
    """Where the value of a key is, or would be next; `again` is how often it was erased before."""

    id: Id
    again: int
    entry: Entry | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedValue(Result):
    """A value as the index tells it; `revision` changes with every change of it.

    >>> written = session.values("app").put(("user", "ada"), {"name": "Ada"})
    >>> [each.key for each in session.values("app").list(("user",))]
    [('user', 'ada')]
    """

    key: Key
    id: MemoryId
    revision: str
    size_bytes: int
    created_at: datetime
    updated_at: datetime
    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredValue(Result):
    """What is kept under a key; `revision` changes with every change of it.

    `redacted` says which secrets were taken out when it was stored, by pattern and count:
    then it is not exactly what was given. `beside` is what else is known of it.

    >>> written = session.values("app").put(("user", "ada"), {"name": "Ada"})
    >>> session.values("app").get(("user", "ada")).value
    {'name': 'Ada'}
    """

    key: Key
    value: Value
    id: MemoryId
    revision: str
    created_at: datetime
    updated_at: datetime
    agent: str
    redacted: Mapping[str, Value] = field(default_factory=dict)
    beside: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueVersion(Result):
    """A key after one of the commits that changed it; without a value it was removed there.

    >>> values = session.values("app")
    >>> written = (values.put("theme", "dark"), values.put("theme", "light"))
    >>> [each.stored.value for each in values.history("theme")]
    ['light', 'dark']
    """

    commit: CommitId
    at: datetime
    agent: str
    stored: StoredValue | None


def place_of(snapshot: Snapshot, key: Key) -> ValuePlace:
    """Return where a key is: under the id of its last erasure, where it is or will be.

    An erased id never holds anything again, so a key that is written anew takes another.
    """
    places = list(places_of(snapshot, key))
    there = [place for place in places if place.entry is not None]
    return (there or places)[-1]


def places_of(snapshot: Snapshot, key: Key) -> Iterator[ValuePlace]:
    """Yield where a key was, is or would be; one that was restored is there twice if others wrote it."""
    for again in count():
        place = value_id(key, again)
        yield ValuePlace(place, again, snapshot.entry(place.text))
        if not snapshot.tombstones.names(place.text):
            return


class SeenValues:
    """The values of a session at one commit.

    >>> written = session.values("app").put(("user", "ada"), 1)
    >>> session.values("app").read(lambda seen: seen.get(("user", "ada")).value)
    1
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def get(self, key: Key) -> StoredValue | None:
        """Return what is kept under a key, None if nothing is."""
        place = place_of(self.snapshot, key)
        return self._read(place.id, place.entry.blob) if place.entry is not None else None

    def list(self, prefix: Key = ()) -> list[ListedValue]:
        """Return what is kept under keys that begin so, sorted by key."""
        found, length = self._by_key, len(prefix)
        keys = sorted(key for key in found if key[:length] == prefix)
        return [_listed(key, found[key]) for key in keys]

    @property
    def _by_key(self) -> Mapping[Key, Entry]:
        """All entries by their keys, gathered once: who lists a prefix soon lists another."""
        found = self.snapshot.by_key
        if found is None:
            found = {}
            for path in self.snapshot.page_ids(VALUE):
                page = self.snapshot.shown_page(path)
                for entry in page.entries.values() if page else ():
                    key = tuple(entry.parts)
                    found[key] = entry if key not in found else self._last(key, entry)
            self.snapshot.by_key = found
        return found

    def keys(self, prefix: Key = ()) -> Sequence[Key]:
        """Return the keys that begin so, sorted."""
        return [each.key for each in self.list(prefix)]

    def items(self, prefix: Key = ()) -> Iterator[StoredValue]:
        """Yield the values under keys that begin so, sorted by key."""
        yield from map(self.read, self.list(prefix))

    def read(self, listed: ListedValue) -> StoredValue:
        """Return a value that is listed."""
        return self._read(parse_id(listed.id), listed.revision)

    def versions(self, key: Key) -> Iterator[ValueVersion]:
        """Yield the versions of a key that history has, newest first."""
        place = place_of(self.snapshot, key).id
        for version, blob in history.versions(self.snapshot, place.text):
            yield ValueVersion(
                commit=version.commit,
                at=version.at,
                agent=version.agent,
                stored=self._read(place, blob) if blob else None,
            )

    def _last(self, key: Key, entry: Entry) -> Entry:
        """Return which of two values of one key holds: one was erased, then restored."""
        return place_of(self.snapshot, key).entry or entry

    def _read(self, place: Id, blob: str) -> StoredValue:
        # Decoded anew for each caller: a copy of what a cache holds costs more.
        data = self.snapshot.repository.blob(ObjectId(blob))
        return stored(document.decode(data, place.path), blob)


def stored(memory: Memory, blob: str) -> StoredValue:
    """Return the value that a memory is."""
    fields, lacking = memory.fields, memory.fields.get("redacted")
    return StoredValue(
        key=check_key(fields["key"]),
        value=memory.content or fields.get("value"),
        id=memory.id,
        revision=blob,
        created_at=memory.created_at,
        updated_at=history.stamp(memory),
        agent=memory.agent,
        redacted=MappingProxyType(lacking if isinstance(lacking, dict) else {}),
        beside=MappingProxyType(
            {name: each for name, each in fields.items() if name not in _OWN_FIELDS}
        ),
    )


def _listed(key: Key, entry: Entry) -> ListedValue:
    return ListedValue(
        key=key,
        id=entry.id,
        revision=entry.blob,
        size_bytes=entry.size,
        created_at=datetime.fromisoformat(entry.at),
        updated_at=datetime.fromisoformat(entry.updated or entry.at),
        agent=entry.agent,
    )
