"""A session as a whole: what is in it, what is open, what happened last, what it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from smp_git.ask.answer import Hit
from smp_git.ask.overviews import AgentActivity, Topic
from smp_git.format.metadata import Metadata
from smp_git.keep.compact import Compaction
from smp_git.keep.usage import SizeReport
from smp_git.model.memory import KINDS, Memory
from smp_git.read.compactions import Compacted
from smp_git.web.charts import Strip
from smp_git.web.look import Look
from smp_git.web.views.memory import readable
from smp_git.web.views.timeline import activity

_OPEN: Final = 6
_DECISIONS: Final = 6
_LATEST: Final = 8
_TOPICS: Final = 14
# So many files are read before anybody has to wait.
_FEW: Final = 1_500


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What a session holds, what waits for somebody, and what happened last."""

    metadata: Metadata
    counts: Mapping[str, int]
    activity: Strip | None
    findings: tuple[Hit, ...]
    open_findings: int
    decisions: tuple[Hit, ...]
    active_decisions: int
    latest: tuple[Memory, ...]
    topics: tuple[Topic, ...]
    agents: tuple[AgentActivity, ...]
    # None where that was not looked for.
    contested: int | None
    problems: tuple[str, ...]

    @property
    def total(self) -> int:
        """How many memories there are."""
        return sum(self.counts.values())


def overview(look: Look, *, is_warm: bool = True) -> Overview:
    """Return the first page of a session.

    What is contested stands in the files alone: as long as a large session is not warm, it
    is not looked for.
    """
    session, at, now = look.session, look.at, look.now
    by_day = session.timeline(by="day", at=at)
    counts = sum((Counter(each.counts) for each in by_day), Counter[str]())
    findings = session.query(
        at=at,
        now=now,
        kinds=["finding"],
        where=[("status", "equals", "open")],
        sort=["-severity", "-created_at"],
        limit=_OPEN,
    )
    decisions = session.query(
        at=at,
        now=now,
        kinds=["decision"],
        where=[("status", "equals", "active")],
        sort=["-created_at"],
        limit=_DECISIONS,
    )
    newest = chain.from_iterable(reversed(each.memories) for each in reversed(by_day))
    contested = None
    if is_warm or counts.total() <= _FEW:
        contested = session.query(at=at, now=now, where=[("contested", "exists", True)], limit=0)
    return Overview(
        metadata=session.metadata,
        counts={kind: counts[kind] for kind in KINDS if kind in counts},
        activity=activity(look, by_day),
        findings=findings.hits,
        open_findings=findings.total,
        decisions=decisions.hits,
        active_decisions=decisions.total,
        latest=tuple(readable(look, each) for each in islice(newest, _LATEST)),
        topics=session.topics(limit=_TOPICS, at=at),
        agents=session.agents(at=at),
        contested=contested.total if contested else None,
        problems=(*decisions.problems, *session.passed_over),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The size of a session, a plan of compaction, and what compactions took out before."""

    report: SizeReport
    plan: Compaction
    compacted: tuple[Compacted, ...]


def sizes(look: Look) -> Sizes:
    """Return the size of a session, and what compaction would gain."""
    session = look.session
    report = session.size()
    return Sizes(
        report=report,
        plan=session.compact(max(report.bytes, 1), dry_run=True),
        compacted=session.compacted(),
    )
