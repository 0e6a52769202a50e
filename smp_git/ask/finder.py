"""Text search in a session, through its local cache."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.ask.answer import Allowed, Findings, Found
from smp_git.ask.text.batches import Document
from smp_git.ask.text.cache import Followed, SearchCache, search
from smp_git.ask.text.meanings import Meanings, meaning_text
from smp_git.ask.text.ranking import Reason
from smp_git.format.lines import Entry
from smp_git.model.ids import parse_id
from smp_git.model.memory import (
    COMMON_FIELDS,
    CONTESTED,
    SEARCHED,
    CommitId,
    Memory,
    Value,
)
from smp_git.read.snapshot import Snapshot

# The same filter comes with many questions.
_KEPT_PLACES = 32


class Sought(NamedTuple):
    """A place to search, and who may answer: a set of memories, or all that are there."""

    finder: Finder
    snapshot: Snapshot
    allowed: Allowed | None


class Finder:
    """Full text and similarity over snapshots; the cache only saves time, and is never believed."""

    def __init__(self, place: Path | None, meanings: Meanings | None = None) -> None:
        self._place = place
        self._cache = SearchCache(place)
        # Tells whether what was followed last may be kept.
        self._is_current: Callable[[], bool] = bool
        self._meanings = meanings
        self._blobs: list[str] = []
        self._asking = threading.Lock()
        self._followed: CommitId | None = None
        self._known_places: dict[tuple[int, int], list[int]] = {}

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems with the cache, and how each was got around."""
        of_meanings = () if self._meanings is None else self._meanings.problems
        return (*self._cache.problems, *of_meanings)

    @property
    def missing(self) -> int:
        """The number of memories without a vector at the last question."""
        return 0 if self._meanings is None else len(self._meanings.lacking(self._blobs))

    @staticmethod
    def find(
        wanted: Sequence[Sought], text: str, limit: int, now: datetime, weak: Collection[str] = ()
    ) -> Findings:
        """Return the memories whose words answer best in all sessions, session by session.

        Scores are relative to the best answer of all that are there. Words in `weak` count
        little.
        """
        finders = [each.finder for each in wanted]
        with ExitStack() as stack:
            for finder in finders:
                stack.enter_context(finder._asking)  # noqa: SLF001 - of its own kind
            for each in wanted:
                each.finder.follow(each.snapshot)
            likeness = [finder._likeness(text) for finder in finders]  # noqa: SLF001 - as above
            caches = [finder._cache for finder in finders]  # noqa: SLF001 - as above
            answers = search(caches, text, now=now, weak=weak, likeness=likeness)
            allowed = [each.finder._places(each.allowed) for each in wanted]  # noqa: SLF001 - as above
            out: list[list[Found]] = [[] for _ in wanted]
            for number, hit in answers.hits(limit, allowed):
                out[number].append(Found(*hit))
        return Findings(out, answers.reason)

    def similar(
        self, snapshot: Snapshot, text: str, limit: int, exclude: str | None
    ) -> list[tuple[Found, Reason]]:
        """Return the memories most like a text."""
        with self._asking:
            self.follow(snapshot)
            hits = self._cache.similar(text, self._likeness(text))
        others = (each for each in hits if each[0].id != exclude)
        return [(Found(*hit), reason) for hit, reason in islice(others, limit)]

    def follow(
        self, snapshot: Snapshot, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Make a snapshot what is searched; `progress` is called with pages read, and all."""
        if snapshot.id != self._followed:
            if not self._is_current():
                # What is held of before a deletion must not be written after it.
                self._cache = SearchCache(self._place)
            self._is_current = snapshot.is_current
            self._follow_pages(snapshot, progress)
            self._followed = snapshot.id
            self._known_places.clear()
            if self._meanings is not None:
                self._blobs = self._cache.blobs
        if self._meanings is not None:
            self._meanings.refresh()

    def _follow_pages(
        self, snapshot: Snapshot, progress: Callable[[int, int], None] | None
    ) -> None:
        """Index the pages under names that say what of them is lost, which reading them shows."""
        names: dict[str, str] | None = None
        while names != (now := _searched_pages(snapshot)):
            names = now
            still = partial(_are_names, snapshot, names)
            pages = Followed(names, partial(_documents, snapshot), self._is_current, still)
            self._cache.follow(pages._replace(progress=progress) if progress else pages)

    def _likeness(self, text: str) -> list[float | None] | None:
        """Return how near each memory comes in meaning, None where nobody knows."""
        return None if self._meanings is None else self._meanings.scores(text, self._blobs)

    def _places(self, allowed: Allowed | None) -> list[int] | None:
        """Return who may answer, as the search knows them; None if everybody may."""
        # A filter that all pass is none.
        if allowed is None or allowed.key[1].bit_count() == len(self._cache.index.ids):
            return None
        known = self._known_places.get(allowed.key)
        if known is None:
            if len(self._known_places) >= _KEPT_PLACES:
                self._known_places.clear()
            known = self._known_places[allowed.key] = self._cache.members(allowed.ids())
        return known


def shown_entries(snapshot: Snapshot) -> Iterator[Entry]:
    """Yield the index entries of the memories that are searched."""
    for path in _searched_pages(snapshot):
        yield from _entries(snapshot, path)


def _entries(snapshot: Snapshot, path: str) -> Iterable[Entry]:
    page = snapshot.shown_page(path)
    return page.entries.values() if page else ()


def _searched_pages(snapshot: Snapshot) -> dict[str, str]:
    """Return the pages whose memories answer questions, as they are shown."""
    return {path: name for kind in SEARCHED for path, name in snapshot.shown_pages(kind).items()}


def _are_names(snapshot: Snapshot, names: dict[str, str]) -> bool:
    return _searched_pages(snapshot) == names


def _documents(snapshot: Snapshot, path: str) -> Iterator[Document]:
    for entry in _entries(snapshot, path):
        yield _document(snapshot, entry)


def text_of_meaning(snapshot: Snapshot, entry: Entry) -> str | None:
    """Return the text whose vector stands for a memory, None if its file cannot be read."""
    if snapshot.readable(entry.id) is None:
        return None
    return meaning_text(_document(snapshot, entry))


def _document(snapshot: Snapshot, entry: Entry) -> Document:
    memory = snapshot.shown(entry)
    return Document(
        id=memory.id,
        kind=memory.kind,
        at=entry.at,
        text=searched_text(memory),
        speaker=entry.speaker or memory.agent,
        role=entry.role or "",
        title=memory.title,
        tags=memory.tags,
        sitting=entry.conversation or "",
        blob=entry.blob,
    )


# Who and where, which is not what; and what a merge has decided against.
_UNSEARCHED: Final = ("speaker", "role", "conversation_id", "turn_ref", "parent", CONTESTED)


def searched_text(memory: Memory) -> str:
    """Return everything of a memory that a text query looks at.

    Names that the writer gave, of fields and in a state, say something too, e.g. `blocked_by`.
    """
    kind = parse_id(memory.id).kind
    parts = [memory.content]
    for name, value in memory.fields.items():
        if name not in _UNSEARCHED:
            is_own = name not in kind.fields and name not in COMMON_FIELDS
            parts += [name] * is_own
            parts += _texts(value, named=is_own or kind.name == "state")
    if memory.content and memory.title and not memory.content.startswith(memory.title.rstrip("…")):
        parts.insert(0, memory.title)
    return "\n".join(part for part in parts if part) or kind.name


def _texts(value: Value, *, named: bool) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, named=named)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from [name] * named
            yield from _texts(item, named=named)
