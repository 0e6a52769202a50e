"""A session as a whole: what is in it, what is open, what happened last, what it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from smp_git.ask.answer import Hit
from smp_git.ask.overviews import AgentActivity, Topic
from smp_git.format.metadata import Metadata
from smp_git.keep.compact import Compaction
from smp_git.keep.compacted import Compacted
from smp_git.keep.quota import SizeReport
from smp_git.model.memory import KINDS
from smp_git.web.charts import Strip, strip
from smp_git.web.look import Look

_OPEN: Final = 6
_DECISIONS: Final = 6
_LATEST: Final = 8
_TOPICS: Final = 14


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
    latest: tuple[Hit, ...]
    topics: tuple[Topic, ...]
    agents: tuple[AgentActivity, ...]
    contested: int
    problems: tuple[str, ...]

    @property
    def total(self) -> int:
        """How many memories there are."""
        return sum(self.counts.values())


def overview(look: Look) -> Overview:
    """Return the first page of a session."""
    session, at, now = look.session, look.at, look.now
    counts = cast("Mapping[str, int]", session.aggregate("count:kind", at=at)["count:kind"])
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
    latest = session.query(at=at, now=now, sort=["-created_at"], limit=_LATEST)
    contested = session.query(at=at, now=now, where=[("contested", "exists", True)], limit=0)
    return Overview(
        metadata=session.metadata,
        counts={kind: counts[kind] for kind in KINDS if kind in counts},
        activity=strip(session.timeline(by="day", at=at)),
        findings=findings.hits,
        open_findings=findings.total,
        decisions=decisions.hits,
        active_decisions=decisions.total,
        latest=latest.hits,
        topics=session.topics(limit=_TOPICS, at=at),
        agents=session.agents(at=at),
        contested=contested.total,
        problems=(*latest.problems, *session.passed_over),
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
