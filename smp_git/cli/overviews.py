"""Commands that give an overview: topics, timeline, agents, summary, counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from smp_git.cli.app import command
from smp_git.cli.common import emit
from smp_git.cli.filters import (
    Agents,
    Kinds,
    Since,
    TagsAll,
    Until,
    Where,
    conditions_of,
    filters_of,
)
from smp_git.cli.options import At
from smp_git.cli.place import session_of, tell_beginning
from smp_git.cli.screen import exact, table
from smp_git.cli.terminal import counted, paint
from smp_git.cli.values import measures
from smp_git.model.errors import InvalidQueryError
from smp_git.model.given import as_kinds

if TYPE_CHECKING:
    pass


def _listed(
    ctx: typer.Context,
    name: str,
    found: tuple[Any, ...],
    line: Callable[[Any], tuple[str, ...]],
    head: tuple[str, ...],
) -> None:
    value: dict[str, object] = {name: [item.as_json() for item in found], "total": len(found)}
    emit(ctx, value, lambda: table(head, [*map(line, found)], heads=False), empty=f"no {name}")


@command(example="smp topics --limit 10")
def topics(
    ctx: typer.Context,
    limit: Annotated[
        int | None,
        typer.Option("-n", "--limit", metavar="N", min=1, help="Maximum number of results"),
    ] = None,
    at: At = None,
) -> None:
    """List the topics of a session, most important first"""
    with session_of(ctx) as session:
        tell_beginning(session, at)
        found = session.topics(limit=limit, at=at)
    _listed(
        ctx,
        "topics",
        found,
        lambda item: (
            item.topic,
            f"{item.weight:.2f}",
            str(item.mentions),
            _span(item.first_at, item.last_at),
        ),
        ("TOPIC", "WEIGHT", "MENTIONS", "WHEN"),
    )


@command(example="smp timeline --per day")
def timeline(
    ctx: typer.Context,
    per: Annotated[
        str, typer.Option("--per", metavar="hour|day|month", help="What is counted together")
    ] = "hour",
    events: Annotated[
        bool, typer.Option("--events", help="One line for each memory, instead of counts")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option("-n", "--limit", metavar="N", min=1, help="With --events: only the newest"),
    ] = None,
    kind: Kinds = [],  # noqa: B006
    tag: TagsAll = [],  # noqa: B006
    agent: Agents = [],  # noqa: B006
    since: Since = None,
    until: Until = None,
    where: Where = [],  # noqa: B006
    at: At = None,
) -> None:
    """Show what happened when

    The filters go with --events.
    """
    filters = filters_of(ctx)
    if not events and (filters or limit):
        raise InvalidQueryError("filters and --limit go with --events", hint="add --events")
    with session_of(ctx) as session:
        tell_beginning(session, at)
        if events:
            _listed(ctx, "events", session.events(limit=limit, at=at, **filters), _event, _EVENT)
        else:
            _listed(ctx, "buckets", session.timeline(by=per, at=at), _bucket, ("START", "COUNTS"))


_EVENT: Final = ("WHEN", "ID", "WHO", "SEVERITY", "TITLE")


def _event(item: Any) -> tuple[str, ...]:
    topics = paint("dim", f"  [{', '.join(item.topics)}]") if item.topics else ""
    people = ", ".join(item.participants)
    row = (exact(item.at), paint("cyan", item.ref), people, item.severity or "")
    return *row, f"{item.title}{topics}"


def _bucket(item: Any) -> tuple[str, ...]:
    return item.start, _counts(item.counts)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(counted(count, kind) for kind, count in counts.items())


def _span(first: str, last: str) -> str:
    return paint("dim", f"{exact(first)[:10]} to {exact(last)[:10]}")


@command(example="smp agents")
def agents(ctx: typer.Context, at: At = None) -> None:
    """List the agents of a session, busiest first"""
    with session_of(ctx) as session:
        tell_beginning(session, at)
        found = session.agents(at=at)
    _listed(
        ctx,
        "agents",
        found,
        lambda item: (item.agent, _counts(item.counts), _span(item.first_at, item.last_at)),
        ("AGENT", "MEMORIES", "WHEN"),
    )


@command(example="smp summary")
def summary(ctx: typer.Context, at: At = None) -> None:
    """Summarize a session in its own words"""
    with session_of(ctx) as session:
        tell_beginning(session, at)
        found = session.summary(at=at)
    emit(ctx, found.as_json(), found.text)


@command(example="smp aggregate count:agent --kind decision")
def aggregate(
    ctx: typer.Context,
    measure: Annotated[
        list[str],
        typer.Argument(
            metavar="MEASURE:FIELD", help="E.g. count:kind, count:tag or avg:size_bytes"
        ),
    ] = ["count:kind"],  # noqa: B006
    kind: Kinds = [],  # noqa: B006
    tag: TagsAll = [],  # noqa: B006
    agent: Agents = [],  # noqa: B006
    since: Since = None,
    until: Until = None,
    where: Where = [],  # noqa: B006
    at: At = None,
) -> None:
    """Count and measure memories"""
    with session_of(ctx) as session:
        tell_beginning(session, at)
        found = session.aggregate(
            *measure,
            at=at,
            kinds=as_kinds(kind),
            tags=tag,
            agents=agent,
            since=since,
            until=until,
            where=conditions_of(where),
        )
    emit(ctx, {"aggregations": dict(found)}, lambda: "\n".join(measures(found)))
