"""The text of a session, searched through its local cache."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from smp_git.errors import InvalidFileError
from smp_git.format.ids import parse_id
from smp_git.memory import Memory, Value
from smp_git.query.answer import Found
from smp_git.search import Document, SearchCache, find_encoder, snippet
from smp_git.snapshot import Snapshot

CACHE = "search.db"
_WIDTH = 160


class Finder:
    """Full text and similarity over snapshots; the cache only saves time, and is never believed."""

    def __init__(self, place: Path | None, *, semantic: bool = False) -> None:
        self._cache = SearchCache.open(place, encoder=find_encoder() if semantic else None)
        self._asking = threading.Lock()

    @property
    def problems(self) -> tuple[str, ...]:
        """What was wrong with the cache, and how it was got around."""
        return self._cache.problems

    def find(self, snapshot: Snapshot, text: str, limit: int, allowed: set[str] | None, now: datetime, *, explain: bool) -> Sequence[Found]:  # fmt: skip
        """Return the memories whose words answer, the best first."""
        with self._asking:
            self._follow(snapshot)
            hits = self._cache.search(text, limit=limit, allowed=allowed, now=now, explain=explain)
        return [Found(hit.id, hit.score, hit.parts) for hit in hits]

    def similar(self, snapshot: Snapshot, text: str, limit: int, exclude: str | None) -> Sequence[Found]:  # fmt: skip
        """Return the memories most like a text."""
        with self._asking:
            self._follow(snapshot)
            hits = self._cache.similar(text, limit=limit, exclude=exclude)
        return [Found(hit.id, hit.score, hit.parts) for hit in hits]

    def cut(self, content: str, text: str) -> str:
        """Return the part of a text that answers a question, matches marked."""
        return snippet(content, text, _WIDTH)

    def _follow(self, snapshot: Snapshot) -> None:
        self._cache.follow(snapshot.page_ids(), lambda path: _documents(snapshot, path))


def _documents(snapshot: Snapshot, path: str) -> Iterator[Document]:
    page = snapshot.page(path)
    for entry in page.entries.values() if page else ():
        try:
            memory = snapshot.get(entry.id)
        except InvalidFileError:
            continue
        yield Document(
            id=memory.id,
            kind=memory.kind,
            at=entry.at,
            text=searched_text(memory),
            speaker=entry.speaker or memory.agent,
            role=entry.role or "",
            title=memory.title,
            tags=memory.tags,
            sitting=entry.conversation or "",
        )


def searched_text(memory: Memory) -> str:
    """Return everything of a memory that a text query looks at."""
    kind = parse_id(memory.id).kind
    parts = [memory.content]
    for name, value in memory.fields.items():
        if name not in ("speaker", "role", "conversation_id", "turn_ref", "parent"):
            parts += _texts(value)
    if memory.content and memory.title and not memory.content.startswith(memory.title.rstrip("…")):
        parts.insert(0, memory.title)
    return "\n".join(part for part in parts if part) or kind.name


def _texts(value: Value) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
