"""Answers for one session: its catalogue, text search and reads, kept between questions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, NamedTuple

from smp_git.ask import catalogue as disk_cache
from smp_git.ask.answer import Allowed, Answer, Findings, Found, Hit
from smp_git.ask.catalogue import Catalogue, Row
from smp_git.ask.engine import Engine, most_by_text
from smp_git.ask.finder import Finder, Sought, searched_text
from smp_git.ask.links import Links, Related
from smp_git.ask.ranking import Ranking, Scale
from smp_git.ask.request import Query, QueryParts, from_specification, named_parts
from smp_git.ask.text.ranking import Reason
from smp_git.ask.text.snippets import snippet
from smp_git.ask.vectors import VectorKeeper, meanings_of
from smp_git.model.errors import DamagedError, InvalidQueryError, SmpError
from smp_git.model.ids import parse_path
from smp_git.model.memory import KINDS, SEARCHED, CommitId, MemoryId
from smp_git.model.relevance import Scales, scales
from smp_git.model.settings import Settings
from smp_git.read.counts import with_access
from smp_git.read.replica import CATALOGUE, SEARCH
from smp_git.read.snapshot import Snapshot
from smp_git.write.handle import Handle

if TYPE_CHECKING:
    from smp_git.ask import overviews

_DEEPEST = 10
# Reading fewer rows than this costs less than writing them all.
_WORTH_KEEPING = 500
_WATCH_SECONDS = 0.2


class Side(NamedTuple):
    """One session in a question to several."""

    desk: Desk
    snapshot: Snapshot
    catalogue: Catalogue
    engine: Engine

    def problems(self, query: Query) -> tuple[str, ...]:
        """Say what was wrong with the indexes and the cache that were looked at."""
        of_text = self.desk.text_problems(is_explained=query.explain and query.text is not None)
        kinds = query.kinds or SEARCHED
        of_pages = (*self.catalogue.problems(kinds), *self.snapshot.damage(kinds))
        return (*dict.fromkeys(of_pages), *of_text)


class Desk:
    """Keeps what answers need between questions: the catalogue, the text, the accesses.

    One that is not kept answers of what is beside the session, and leaves nothing on the disk.
    """

    def __init__(
        self, handle: Handle, known: Catalogue | None = None, *, is_kept: bool = True
    ) -> None:
        self.handle = handle
        self.is_kept = is_kept
        self._reader = handle.reader
        self._known_scales: tuple[Settings, Scales] | None = None
        self._clock = handle.clock
        self._lock = threading.RLock()
        self._cache = _place(handle)
        self._head_catalogue = known
        self._past_catalogue: tuple[CommitId, Catalogue] | None = None
        self._has_left = False
        self._finder: Finder | None = None
        self._keeper: VectorKeeper | None = None
        self._accesses = handle.accesses

    @property
    def _scales(self) -> Scales:
        """How priorities fall and what counts, as the store and the session say now."""
        said, known = self.handle.settings, self._known_scales
        if known is None or known[0] is not said:
            known = said, scales(said.decay, said.relevance, said.file)
            self._known_scales = known
        return known[1]

    @property
    def inactive_factor(self) -> float:
        """The weight of the session among others once it is no longer written to."""
        return self._scales.inactive

    @property
    def finder(self) -> Finder:
        """The text search, opened at the first question that needs it."""
        if self._finder is None and not self.is_kept:
            self._finder = Finder(None)
        if self._finder is None:
            meanings = meanings_of(self.handle)
            self._finder = Finder(self._reader.local.folder / SEARCH, meanings)
            # What a lens hides keeps its vectors.
            if meanings is not None and self._reader.lens is None:
                self._keeper = VectorKeeper(self.handle, meanings)
        if self._keeper is not None:
            self._keeper.note_question()
        return self._finder

    def text_problems(self, *, is_explained: bool = False) -> tuple[str, ...]:
        """Return what was wrong with the text search, if that was asked."""
        if self._finder is None:
            return ()
        missing = self._finder.missing if is_explained else 0
        one = "1 memory has" if missing == 1 else f"{missing} memories have"
        told = f"{one} no vector yet, so words alone count there: smp index makes them"
        return (*self._finder.problems, *([told] if missing else []))

    def _drop_finder(self) -> None:
        if self._keeper is not None:
            self._keeper.stop()
        self._finder = self._keeper = None

    def close(self) -> None:
        """Leave for the next process what took long to read."""
        with self._lock, suppress(SmpError, OSError):
            known = self._head_catalogue
            if self._has_left and known is not None:
                # What was written since is left, too.
                known.follow(self._reader.snapshot(), KINDS)
            # Where they were in packs, the next one need not load libgit2 for them.
            self._leave(1 if self._reader.repository.looks_into_packs else _WORTH_KEEPING)
        with self._lock:
            self._drop_finder()

    def _leave(self, least: int, now: Snapshot | None = None) -> bool:
        """Write the catalogue to its cache, as the session is now, if so much would be read anew."""
        known = self._head_catalogue
        if not self.is_kept or known is None:
            return False
        # A deletion takes the file away.
        if (known.read if self._cache.exists() else len(known.by_id)) < least:
            return False
        with suppress(SmpError, OSError):
            # Without what a lens hid, which the next one may see.
            is_whole = self._reader.lens is None
            whole = known if is_whole else kept(self.handle) or Catalogue()
            now = now or (self._reader if is_whole else self.handle.writer.reader).snapshot()
            # What was read of a kind that nobody asks again may be of the deleted.
            whole.follow(now, KINDS)
            disk_cache.save(self._cache, whole, now.is_current)
            known.read = 0
        return True

    def answer(
        self, snapshot: Snapshot, query: Query, now: datetime, only: set[MemoryId] | None = None
    ) -> Answer:
        """Return the answer to a query on a snapshot."""
        with self.asking(snapshot, now) as side:
            answer = side.engine.answer(query, only)
            return replace(answer, problems=side.problems(query))

    @contextmanager
    def asking(self, snapshot: Snapshot, now: datetime) -> Iterator[Side]:
        """Keep what answers a question on a snapshot from changing meanwhile."""
        with self._lock:
            catalogue = self._catalogue(snapshot)

            def find(query: Query, allowed: Allowed | None, weak: Collection[str]) -> Findings:
                wanted = [Sought(self.finder, snapshot, allowed)]
                return Finder.find(wanted, query.text or "", most_by_text(query), now, weak)

            engine = Engine(catalogue, snapshot, self._scale(now), find)
            yield Side(self, snapshot, catalogue, engine)
            is_whole = catalogue is self._head_catalogue and self._reader.lens is None
            if is_whole and not self._has_left:
                # A process may end without closing anything.
                self._has_left = self._leave(_WORTH_KEEPING, snapshot)

    def similar(
        self, snapshot: Snapshot, text: str, exclude: MemoryId | None, limit: int, now: datetime
    ) -> Answer:
        """Return the memories most like a text, however old."""
        with self._lock:
            found = self.finder.similar(snapshot, text, limit, exclude)
            catalogue = self._catalogue(snapshot)
            catalogue.follow(snapshot, SEARCHED)
            ranking = Ranking(catalogue, self._scale(now))
            hits = [self._like(snapshot, catalogue, ranking, *item, text) for item in found]
        return Answer(hits=tuple(hits), total=len(hits))

    def _like(
        self,
        snapshot: Snapshot,
        catalogue: Catalogue,
        ranking: Ranking,
        found: Found,
        reason: Reason,
        text: str,
    ) -> Hit:
        row = catalogue.row(catalogue.by_id[MemoryId(found.id)])
        name, access = row.entry.id, ranking.access(row)
        return Hit(
            id=name,
            kind=row.kind,
            title=row.entry.title,
            score=found.score,
            priority=ranking.decayed(row).value,
            why=tuple(f"{part} {value:.3f}" for part, value in reason.parts.items()),
            _load=lambda: with_access(snapshot.shown(row.entry), access),
            _cut=lambda memory, marks: snippet(memory.content or memory.title, text, marks=marks),
        )

    def text_of(self, snapshot: Snapshot, memory_id: MemoryId) -> str:
        """Return the text of a memory, as it is compared with others."""
        return searched_text(snapshot.get(memory_id))

    def related(self, snapshot: Snapshot, memory_id: MemoryId, depth: int) -> tuple[Related, ...]:
        """Return what links lead to from a memory."""
        if not 1 <= depth <= _DEEPEST:
            raise InvalidQueryError(
                f"depth must be a whole number from 1 to {_DEEPEST}, not {depth!r}"
            )
        with self._lock:
            return Links.of(self._catalogue(snapshot), snapshot).related(memory_id, depth)

    def asked(
        self, text: str | None, spec: Mapping[str, object] | None, parts: QueryParts, now: datetime
    ) -> Query:
        """Return the checked query that keywords or a specification ask for."""
        given = {} if spec is None else named_parts(spec)
        given |= named_parts(parts)
        if text is not None:
            given["text"] = text
        return from_specification(given, now)

    def topics(self, snapshot: Snapshot, limit: int | None) -> tuple[overviews.Topic, ...]:
        """Return the tags of the session, the weightiest first."""
        from smp_git.ask import overviews  # noqa: PLC0415 - few ask for one

        with self._lock:
            return overviews.topics(self.whole(snapshot), limit)

    def timeline(self, snapshot: Snapshot, by: str) -> tuple[overviews.Bucket, ...]:
        """Return what came about, stretch by stretch."""
        from smp_git.ask import overviews  # noqa: PLC0415 - few ask for one

        with self._lock:
            return overviews.timeline(self.whole(snapshot), by)

    def agents(self, snapshot: Snapshot) -> tuple[overviews.AgentActivity, ...]:
        """Return the agents that wrote, the busiest first."""
        from smp_git.ask import overviews  # noqa: PLC0415 - few ask for one

        with self._lock:
            return overviews.agents(self.whole(snapshot))

    def whole(self, snapshot: Snapshot) -> Catalogue:
        """Return the catalogue with every kind loaded."""
        catalogue = self._catalogue(snapshot)
        catalogue.follow(snapshot, KINDS)
        return catalogue

    def summary(self, snapshot: Snapshot, now: datetime) -> overviews.Summary:
        """Return the session in a few lines."""
        from smp_git.ask import overviews  # noqa: PLC0415 - few ask for one

        with self._lock:
            catalogue = self.whole(snapshot)
            return overviews.summary(catalogue, self.by_priority(catalogue, now))

    def by_priority(self, catalogue: Catalogue, now: datetime) -> list[Row]:
        """Return every memory, the one of highest priority first."""
        everything = 0
        for kind in SEARCHED:
            everything |= catalogue.sets.get(("kind", kind))
        return [row for row, _ in Ranking(catalogue, self._scale(now)).by_priority(everything)]

    def explained(
        self, snapshot: Snapshot, memory_id: MemoryId, now: datetime
    ) -> tuple[float, tuple[str, ...]]:
        """Return a memory's priority and the arithmetic of it."""
        with self._lock:
            catalogue = self.whole(snapshot)
            row = catalogue.row(catalogue.by_id[memory_id])
            decayed = Ranking(catalogue, self._scale(now)).decayed(row)
        return decayed.value, tuple(
            f"{step.name} {step.value:.4f}: {step.note}" for step in decayed.steps
        )

    def watch(
        self, query: Query, *, after: CommitId | None, stop: Callable[[], bool]
    ) -> Iterator[Hit]:
        """Yield memories that match as they are written; only changed pages are looked at."""
        seen = after or self._reader.snapshot().id
        while not stop():
            snapshot = self._reader.snapshot()
            if snapshot.id == seen:
                sleep(_WATCH_SECONDS)
                continue
            written = _written(snapshot, seen)
            seen = snapshot.id
            if written:
                yield from sorted(
                    self.answer(snapshot, query, self._clock(), written),
                    key=lambda hit: (hit.memory.created_at, hit.id),
                )

    def _scale(self, now: datetime) -> Scale:
        scales, accesses = self._scales, self._accesses.totals()
        return Scale(
            now=now,
            preset=scales.preset,
            weights=scales.weights,
            product=scales.product,
            accesses=accesses,
        )

    def _catalogue(self, snapshot: Snapshot) -> Catalogue:
        """Return the catalogue that follows the present, or one of the past."""
        if snapshot.id == self._reader.snapshot().id:
            if self._head_catalogue is None:
                found = kept(self.handle) if self.is_kept else None
                self._head_catalogue = found or Catalogue()
            return self._head_catalogue
        if self._past_catalogue is None or self._past_catalogue[0] != snapshot.id:
            self._past_catalogue = snapshot.id, Catalogue()
        return self._past_catalogue[1]


def kept(handle: Handle) -> Catalogue | None:
    """Return the catalogue of a session that the last process left, if there is one."""
    return disk_cache.load(_place(handle))


def _place(handle: Handle) -> Path:
    return handle.reader.local.folder / CATALOGUE


def _written(snapshot: Snapshot, before: CommitId) -> set[MemoryId]:
    """Return the memories that are new or changed since a commit."""
    repository = snapshot.repository
    try:
        changes = list(repository.changes(repository.commit(before).tree, snapshot.tree))
    except DamagedError:
        # The history was rewritten, and what was before is gone.
        return set()
    places = (parse_path(path) for path, _, new in changes if new is not None)
    return {place.text for place in places if place is not None}
