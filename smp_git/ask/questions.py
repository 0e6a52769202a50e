"""What a session can be asked: queries, similarity, overviews, context."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, Unpack

from smp_git.format.config import Settings
from smp_git.model import times
from smp_git.model.errors import (
    InvalidError,
    InvalidQueryError,
    InvalidRevisionError,
)
from smp_git.model.memory import MemoryId, agent_name, aware
from smp_git.read import history
from smp_git.read.counts import Accesses
from smp_git.read.snapshot import Reader, Snapshot

if TYPE_CHECKING:
    from smp_git.ask import overviews
    from smp_git.ask.answer import Answer, Hit
    from smp_git.ask.bisect import Condition, Culprit
    from smp_git.ask.context import Context
    from smp_git.ask.desk import Desk
    from smp_git.ask.request import QueryParts

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MANY_TURNS = 10_000
_LEAST_BUDGET = 50

_T = TypeVar("_T")


class Questions:
    """The asking half of a session. Reading takes no lock and is never torn."""

    def __init__(
        self,
        reader: Reader,
        settings: Settings,
        clock: Callable[[], datetime],
        *,
        shared: Path | None,
        project: str,
    ) -> None:
        self._project = project
        self._reader = reader
        self._clock = clock
        self._settings = settings
        self._accesses = Accesses(reader)
        self._known_desk: Desk | None = None
        self._shared = shared

    @property
    def _desk(self) -> Desk:
        """Where questions are answered, opened at the first one."""
        if self._known_desk is None:
            from smp_git.ask.desk import Desk  # noqa: PLC0415 - most commands ask nothing

            self._known_desk = Desk(self._reader, self._settings, self._clock, self._accesses)
        return self._known_desk

    @property
    def written_at(self) -> datetime:
        """When the session was last written to."""
        return self._reader.snapshot().commit.time

    # Queries

    def query(
        self,
        text: str | None = None,
        *,
        at: str | datetime | None = None,
        now: datetime | None = None,
        spec: Mapping[str, object] | None = None,
        **parts: Unpack[QueryParts],
    ) -> Answer:
        """Return the memories that answer, the best first, with why.

        `parts` are those of a query: kinds, tags (all, each with its subtree), any_tags,
        not_tags, agents, since, until, where, min_priority, include_superseded, sort,
        limit, offset, explain and the others; `spec` is the same as a mapping.
        """
        moment = now or self._clock()
        asked = self._desk.asked(text, spec, parts, moment)
        return self._read(at, lambda snapshot: self._desk.answer(snapshot, asked, moment))

    def similar(
        self,
        text_or_id: str,
        *,
        limit: int = 10,
        at: str | datetime | None = None,
        now: datetime | None = None,
    ) -> Answer:
        """Return the memories most like a memory, or like a text."""
        if not text_or_id.strip():
            raise InvalidQueryError("similar asks for a text or an id")
        if not 1 <= limit <= _MANY_TURNS:
            raise InvalidQueryError(
                f"limit is a whole number from 1 to {_MANY_TURNS}, not {limit!r}"
            )

        def answer(snapshot: Snapshot) -> Answer:
            name = _named(snapshot, text_or_id)
            text = self._desk.text_of(snapshot, name) if name else text_or_id
            return self._desk.similar(snapshot, text, name, limit, now or self._clock())

        return self._read(at, answer)

    def related(
        self, memory_id: str, *, depth: int = 2, at: str | datetime | None = None
    ) -> tuple[overviews.Related, ...]:
        """Return the memories that links lead to from one, in both directions, nearest first."""
        return self._read(at, lambda now: self._desk.related(now, now.find(memory_id), depth))

    def topics(
        self, *, limit: int | None = None, at: str | datetime | None = None
    ) -> tuple[overviews.Topic, ...]:
        """Return the tags of the session with their subtrees, the weightiest first."""
        return self._read(at, lambda now: self._desk.topics(now, limit))

    def timeline(
        self, *, by: str = "hour", at: str | datetime | None = None
    ) -> tuple[overviews.Bucket, ...]:
        """Return what came about, by hour, day or month, oldest first."""
        return self._read(at, lambda now: self._desk.timeline(now, by))

    def agents(self, *, at: str | datetime | None = None) -> tuple[overviews.AgentActivity, ...]:
        """Return the agents that wrote, the busiest first."""
        return self._read(at, lambda now: self._desk.agents(now))

    def summary(
        self, *, at: str | datetime | None = None, now: datetime | None = None
    ) -> overviews.Summary:
        """Return the session in a few lines of its own words."""
        return self._read(at, lambda then: self._desk.summary(then, now or self._clock()))

    def aggregate(
        self,
        *measures: str,
        text: str | None = None,
        at: str | datetime | None = None,
        **parts: Unpack[QueryParts],
    ) -> Mapping[str, object]:
        """Return counts and measures such as `"count:kind"` or `"avg:size_bytes"` of what matches."""
        wanted = measures or ("count:kind",)
        asked: QueryParts = {**parts, "aggregations": wanted, "limit": 0}
        return self.query(text, at=at, **asked).aggregations

    def explain(
        self, memory_id: str, *, now: datetime | None = None
    ) -> tuple[float, tuple[str, ...]]:
        """Return a memory's priority and, line by line, its arithmetic."""
        return self._read(
            None,
            lambda then: self._desk.explained(then, then.find(memory_id), now or self._clock()),
        )

    def watch(
        self,
        text: str | None = None,
        *,
        after: str | None = None,
        stop: Callable[[], bool] = lambda: False,
        **parts: Unpack[QueryParts],
    ) -> Iterator[Hit]:
        """Yield memories that match, as they are written by anybody; `stop` ends it."""
        asked = self._desk.asked(text, None, {"limit": None, **parts}, self._clock())
        start = self._at(after).id if after else self._reader.snapshot().id
        return self._desk.watch(asked, after=start, stop=stop)

    # Context

    def context(
        self,
        agent: str | None = None,
        *,
        topic: str | None = None,
        turns: int = 20,
        budget: int = 4000,
        at: str | datetime | None = None,
        now: datetime | None = None,
    ) -> Context:
        """Return what an agent is told before it goes on, within a budget of tokens.

        Pinned memories and the newest turns are the last to be left out; the receipt
        says what was, and why.
        """
        if budget < _LEAST_BUDGET:
            raise InvalidQueryError(
                f"budget is a whole number of tokens from {_LEAST_BUDGET}, not {budget!r}"
            )
        if not 0 <= turns <= _MANY_TURNS:
            raise InvalidQueryError(
                f"turns is a whole number from 0 to {_MANY_TURNS}, not {turns!r}"
            )
        from smp_git.ask.context import brief  # noqa: PLC0415 - most commands ask for no context

        moment = now or self._clock()
        name = agent_name(agent) if agent else None
        project, shared = self._project, self._shared
        made = self._read(
            at,
            lambda snapshot: brief(
                self._desk,
                snapshot,
                agent=name,
                topic=topic,
                turns=turns,
                budget_tokens=budget,
                now=moment,
                project=project,
                shared=shared,
            ),
        )
        if at is None:
            self._accesses.note([piece.id for piece in made.pieces if not piece.session], moment)
        return made

    # Bisection

    def bisect(
        self,
        condition: Condition,
        *,
        good: str | datetime | None = None,
        bad: str | datetime = "HEAD",
    ) -> Culprit:
        """Return the first write after which `condition`, true before, is no longer true.

        The condition is given the session as it was after a commit, with `query`, `get`,
        `memories`, `aggregate` and `summary`. It must hold at `good` and fail at `bad`;
        without `good` a place where it holds is searched backwards.
        """
        from smp_git.ask.bisect import View, culprit  # noqa: PLC0415 - few programs search the past

        moment = self._clock()

        def answer(_: Snapshot) -> Culprit:
            start = self._at(good) if good is not None else None
            return culprit(
                start,
                self._at(bad),
                lambda name: View(self._reader.at(name), self._desk, moment),
                condition,
            )

        return self._read(None, answer)

    # Revisions

    def _read(self, at: str | datetime | None, answer: Callable[[Snapshot], _T]) -> _T:
        if at is None:
            return self._reader.read(answer)
        return self._reader.read(lambda _: answer(self._at(at)))

    def _at(self, revision: str | datetime) -> Snapshot:
        now = self._reader.snapshot()
        text = revision if isinstance(revision, str) else None
        if text is not None and not (times.is_relative(text) or _DATE.match(text)):
            return self._reader.at(self._reader.repository.resolve(text, self._reader.ref))
        found = history.at_time(now, self._moment(revision))
        if found is None:
            first = list(history.log(now))[-1]
            raise InvalidRevisionError(
                f"session {self._reader.path.name} did not exist at {revision}",
                hint=f"it was created at {times.format_time(first.at)}",
            )
        return self._reader.at(found)

    def _moment(self, at: datetime | str) -> datetime:
        if isinstance(at, datetime):
            return aware(at)
        try:
            return times.parse_time(str(at), self._clock())
        except ValueError as error:
            raise InvalidRevisionError(str(error)) from None


def _named(snapshot: Snapshot, text: str) -> MemoryId | None:
    """Return the id that a text is, or None if it is no id."""
    try:
        return snapshot.find(text)
    except InvalidError:
        return None
