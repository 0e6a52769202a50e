"""Questions to archived sessions, answered by their summaries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from smp_git.ask.answer import ArchivedHit
from smp_git.ask.request import Query
from smp_git.ask.text.words import STOP_WORDS, stem, words
from smp_git.model.times import format_time
from smp_git.read.archives import Archived, Line, every

_MOST_LINES: Final = 5
_MOST_SESSIONS: Final = 10


def search(store: Path, query: Query) -> tuple[tuple[ArchivedHit, ...], list[str]]:
    """Return the archived sessions that answer, the best first, and which cannot be read.

    A summary tells kind, tags, agent and time of a memory; where a query asks for more than
    these and a text, it cannot answer.
    """
    if query.where or query.min_priority or query.min_importance or not _asks(query):
        return (), []
    archived, problems = every(store)
    wanted = {stem(word) for word in words(query.text or "") if word not in STOP_WORDS}
    found = [pair for each in archived if (pair := _matched(each, query, wanted))]
    found.sort(key=lambda pair: pair[1].session)
    found.sort(key=lambda pair: pair[0], reverse=True)
    return tuple(hit for _, hit in found[:_MOST_SESSIONS]), problems


def _asks(query: Query) -> bool:
    return bool(query.text or query.kinds or query.tags or query.any_tags or query.agents)


def _matched(
    archived: Archived, query: Query, wanted: set[str]
) -> tuple[tuple[int, int], ArchivedHit] | None:
    """Return a session as a hit, and how well it answers; None if it does not."""
    lines = [
        (count, line)
        for line in archived.lines
        if _fits(line, query) and (count := _count(line, wanted)) >= min(1, len(wanted))
    ]
    about = [topic for topic in _topics(archived) if wanted & _stems(topic)]
    if not lines and (not about or query.kinds or query.agents):
        return None
    lines.sort(key=lambda pair: -pair[0])
    best = lines[0][0] if lines else 0
    said = [f"{line.id} {line.title}" for _, line in lines[:_MOST_LINES]]
    said += [f"topic {topic}" for topic in about[: _MOST_LINES - len(said)]]
    return (best, len(lines)), ArchivedHit(
        session=archived.session,
        archived_at=archived.text("archived_at") or "",
        lines=tuple(said),
        total=len(lines),
    )


def _topics(archived: Archived) -> Iterator[str]:
    found = archived.said.get("topics")
    yield from map(str, found if isinstance(found, list) else ())


def _fits(line: Line, query: Query) -> bool:
    """Whether what is kept of a memory has the tags, the kind, the agent and the time asked for."""

    def has(tag: str) -> bool:
        return any(own == tag or own.startswith(f"{tag}.") for own in line.tags)

    return (
        (not query.kinds or line.kind in query.kinds)
        and (not query.agents or line.agent in query.agents)
        and all(map(has, query.tags))
        and (not query.any_tags or any(map(has, query.any_tags)))
        and not any(map(has, query.not_tags))
        and (query.since is None or line.at >= format_time(query.since))
        and (query.until is None or line.at <= format_time(query.until))
    )


def _count(line: Line, wanted: set[str]) -> int:
    """Return how many of the words asked for stand in what is kept of a memory."""
    return len(wanted & _stems(" ".join((line.title, line.id, *line.tags))))


def _stems(text: str) -> set[str]:
    return {stem(word) for word in words(text)}
