"""Answers to a query: the memories found, and what the text search says of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from typing import Final, NamedTuple, overload

from smp_git.ask.request import Query
from smp_git.ask.text.ranking import Reason
from smp_git.model.memory import Link, Memory, MemoryId, Value
from smp_git.model.results import Result


class Found(NamedTuple):
    """A memory that the text search found."""

    id: str
    score: float
    source: str = ""  # the neighbour by whose words it was found, if it says none itself


class Findings(NamedTuple):
    """Results of a text search, session by session, with the reason for each."""

    found: Sequence[Sequence[Found]]
    reason: Callable[[int, str], Reason]


class Allowed(NamedTuple):
    """A set of memories; the same key stands for the same set."""

    key: tuple[int, int]
    ids: Callable[[], set[str]]


Find = Callable[[Query, Allowed | None, Collection[str]], Findings]
Explain = Callable[[str], Reason]
Marks = tuple[str, str]
# So many hits are named where an answer is looked at.
_SHOWN: Final = 5


@dataclass(frozen=True, kw_only=True, repr=False)
class Hit:
    """One memory that answers: how well, and why. Its content is read when asked for.

    What the memory says is told by the hit too: `hit.content` is `hit.memory.content`.

    >>> hit = session.query("second factor")[0]
    >>> (hit.id, hit.content, hit.tags)
    ('FIND-0001', 'No second factor', ('security.login',))
    """

    id: MemoryId
    kind: str
    title: str
    score: float
    priority: float
    why: tuple[str, ...]
    session: str = ""
    # Whether a compaction archived it; `Session.bring_back` brings it back.
    is_archived: bool = False
    _load: Callable[[], Memory] = field(repr=False, compare=False)
    _cut: Callable[[Memory, Marks], str] = field(repr=False, compare=False)

    def __repr__(self) -> str:
        return f"Hit({self.id!r}, {self.title!r}, score={self.score:.3f})"

    def __getstate__(self) -> dict[str, object]:
        """Return what is pickled: with the memory, which was perhaps not read yet."""
        return {
            **self.__dict__,
            "_load": partial(_itself, self.memory),
            "_cut": partial(_marked_again, self.snippet),
        }

    @cached_property
    def memory(self) -> Memory:
        """The memory itself."""
        return self._load()

    # What the memory says, as if the hit were it.

    @property
    def content(self) -> str:
        """The main text of the memory."""
        return self.memory.content

    @property
    def agent(self) -> str:
        """Who wrote the memory."""
        return self.memory.agent

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the memory."""
        return self.memory.tags

    @property
    def links(self) -> tuple[Link, ...]:
        """The links of the memory."""
        return self.memory.links

    @property
    def fields(self) -> Mapping[str, Value]:
        """The fields of the memory."""
        return self.memory.fields

    @property
    def status(self) -> str | None:
        """The status of the memory."""
        return self.memory.status

    @property
    def pinned(self) -> bool:
        """Whether decay and compaction leave the memory alone."""
        return self.memory.pinned

    @property
    def created_at(self) -> datetime:
        """When the memory was made, or what it tells happened."""
        return self.memory.created_at

    @property
    def updated_at(self) -> datetime | None:
        """When the memory was changed last."""
        return self.memory.updated_at

    @property
    def access_count(self) -> int | None:
        """How often the memory was read."""
        return self.memory.access_count

    @property
    def last_accessed(self) -> datetime | None:
        """When the memory was read last."""
        return self.memory.last_accessed

    @cached_property
    def snippet(self) -> str:
        """The part of the text that answers, matches between `**`; the title without a text."""
        return self._cut(self.memory, ("**", "**"))

    def marked(self, marks: Marks) -> str:
        """Return the snippet with other marks before and after what matches."""
        return self._cut(self.memory, marks)

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        out = self.memory.as_json()
        out |= {
            "score": round(self.score, 6),
            "priority": round(self.priority, 6),
            "snippet": self.snippet,
            "why": list(self.why),
        }
        if self.session:
            out["session"] = self.session
        if self.is_archived:
            out["archived"] = True
        return out


def _itself(memory: Memory) -> Memory:
    return memory


def _marked_again(snippet: str, _: Memory, marks: Marks) -> str:
    """Return a snippet, once cut, with other marks."""
    parts = snippet.split("**")
    return "".join(part + (marks[n % 2] if parts[n + 1 :] else "") for n, part in enumerate(parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedHit(Result):
    """An archived session whose summary answers: what of it matches, the best first."""

    session: str
    archived_at: str
    lines: tuple[str, ...]
    total: int


@dataclass(frozen=True, kw_only=True, repr=False)
class Answer(Sequence[Hit]):
    """The hits of one page, how many match in all, and what was counted.

    >>> answer = session.query("second factor")
    >>> (answer.total, [hit.id for hit in answer])
    (1, ['FIND-0001'])
    """

    hits: tuple[Hit, ...]
    total: int
    aggregations: Mapping[str, object] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    # Whether more match by their words than were looked at, so that the total is the least.
    is_least: bool = False
    # Of a query over all sessions: which archived ones answer by their summaries.
    archived: tuple[ArchivedHit, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[index]

    def __len__(self) -> int:
        return len(self.hits)

    def __repr__(self) -> str:
        shown = ", ".join(hit.id for hit in self.hits[:_SHOWN])
        more = ", …" if len(self) > _SHOWN else ""
        return f"Answer({len(self)} of {self.total}: {shown}{more})"

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "memories": [hit.as_json() for hit in self.hits],
            "total": self.total,
            "total_is_least": self.is_least,
            "aggregations": dict(self.aggregations),
            "problems": list(self.problems),
            **({"archived": [each.as_json() for each in self.archived]} if self.archived else {}),
        }
