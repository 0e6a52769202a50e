"""Commands that ask: query, similar, related, overviews, context, bisect."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smp_git.ask.answer import Answer, Hit
from smp_git.cli.app import command
from smp_git.cli.common import emit
from smp_git.cli.filters import (
    Agents,
    Kinds,
    Limit,
    MinImportance,
    MinPriority,
    NoSuperseded,
    Since,
    TagsAll,
    TagsAny,
    TagsNot,
    Until,
    Where,
    Words,
    conditions_of,
    filters_of,
    parts_of,
    specification,
)
from smp_git.cli.options import At, Id
from smp_git.cli.place import session_of, store_of, tell_beginning
from smp_git.cli.progress import PROGRESS
from smp_git.cli.screen import fitted, table, when
from smp_git.cli.terminal import MARKS, note, paint, say
from smp_git.cli.values import measures
from smp_git.model.errors import InvalidQueryError
from smp_git.model.given import as_kinds

if TYPE_CHECKING:
    from smp_git.ask.vectors import Indexed


@command(example='smp query "session timeout" --kind finding --where severity=critical --explain')
def query(
    ctx: typer.Context,
    text: Words = None,
    kind: Kinds = [],  # noqa: B006 - typer copies it
    tag: TagsAll = [],  # noqa: B006
    any_tag: TagsAny = [],  # noqa: B006
    not_tag: TagsNot = [],  # noqa: B006
    agent: Agents = [],  # noqa: B006
    since: Since = None,
    until: Until = None,
    where: Where = [],  # noqa: B006
    min_priority: MinPriority = None,
    min_importance: MinImportance = None,
    min_relevance: Annotated[
        float | None,
        typer.Option(
            "--min-relevance",
            metavar="SHARE",
            help="Only with at least this relevance, with a text",
        ),
    ] = None,
    include_decayed: Annotated[
        bool, typer.Option("--include-decayed", help="Ignore --min-priority")
    ] = False,
    no_superseded: NoSuperseded = False,
    related: Annotated[
        bool, typer.Option("--related", help="Include the memories that the hits link to")
    ] = False,
    archived: Annotated[
        bool, typer.Option("--archived", help="Include the findings that compactions archived")
    ] = False,
    sort: Annotated[
        list[str],
        typer.Option(
            "--sort", metavar="[-]FIELD", help="Sort by this field; prefix - for descending"
        ),
    ] = [],  # noqa: B006
    measure: Annotated[
        list[str],
        typer.Option(
            "--measure", metavar="MEASURE:FIELD", help="E.g. count:kind or avg:size_bytes"
        ),
    ] = [],  # noqa: B006
    limit: Limit = 20,
    offset: Annotated[int, typer.Option(metavar="N", min=0, help="Number of results to skip")] = 0,
    at: At = None,
    all_sessions: Annotated[
        bool, typer.Option("--all-sessions", help="Search every session in the store")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show how each score was computed")
    ] = False,
    spec: Annotated[
        Path | None,
        typer.Option(
            "--spec",
            metavar="FILE|-",
            help="Take the query from this JSON or YAML file; - for standard input",
        ),
    ] = None,
) -> None:
    """Search memories, best matches first

    A --where condition is FIELD=VALUE with =, !=, >, < or ~ (a regular expression), or
    FIELD OPERATOR VALUE with an operator from the query specification, e.g. 'tags
    contains security' or 'confidence between [0.5, 1]'.
    """
    parts = parts_of(ctx.params)
    given = specification(spec)
    if all_sessions:
        if at is not None:
            raise InvalidQueryError(
                "--at works on one session only", hint="leave --all-sessions out"
            )
        store = store_of(ctx)
        try:
            _show(ctx, store.query(text, spec=given, **parts), explain=explain)
        finally:
            store.close()
        return
    with session_of(ctx) as session:
        tell_beginning(session, at)
        _show(ctx, session.query(text, at=at, spec=given, **parts), explain=explain)


def _show(ctx: typer.Context, answer: Answer, *, explain: bool) -> None:
    emit(
        ctx,
        answer.as_json(),
        lambda: _text(answer, explain=explain),
        empty="nothing found",
        paged=True,
    )
    for problem in answer.problems:
        note(problem)
    if answer and (answer.total > len(answer) or answer.is_least):
        more = "+" if answer.is_least else ""
        note(f"{len(answer)} of {answer.total:,}{more}; --limit N shows more")


def _text(answer: Answer, *, explain: bool) -> str:
    head = ("SESSION", "ID", "SCORE", "WHEN", "AGENT", "TITLE")
    rows = [_row(hit, explain=explain) for hit in answer]
    first = table(head, rows, heads=False, spare=("AGENT", "WHEN", "SCORE")).splitlines()
    lines: list[str] = []
    for row, hit in zip(first, answer, strict=True):
        lines += [row, *_below(hit, explain=explain)]
    lines += measures(answer.aggregations)
    for each in answer.archived:
        lines.append(
            f"archived {each.session}: {each.total} in its summary; smp unarchive {each.session}"
        )
        lines += [f"    {line}" for line in each.lines]
    return "\n".join(lines)


def _row(hit: Hit, *, explain: bool) -> tuple[str, ...]:
    notes = [line for line in hit.why if line.startswith(("superseded", "archived: "))]
    # A snippet shows which words match; what else leads to a memory has to be said.
    if not explain and hit.why and not hit.why[0].startswith(("matches ", "text ")):
        notes = list(dict.fromkeys((hit.why[0], *notes)))
    mark = paint("dim", f"  ({', '.join(notes)})") if notes else ""
    return (
        hit.session,
        paint("cyan", hit.id),
        paint("dim", f"{hit.score:.2f}"),
        when(hit.memory.created_at),
        hit.memory.agent,
        f"{hit.title}{mark}",
    )


def _below(hit: Hit, *, explain: bool) -> list[str]:
    """Return the lines below a hit: where it matches, and how it was scored."""
    lines = []
    if hit.snippet and hit.snippet != hit.title:
        lines.append(fitted(f"    {' '.join(hit.marked(MARKS).split())}"))
    return lines + [paint("dim", f"      {line}") for line in hit.why if explain]


@command(example="smp similar FIND-1")
def similar(
    ctx: typer.Context,
    text: Annotated[str, typer.Argument(metavar="TEXT|ID", help="A text, or a memory")],
    limit: Limit = 10,
    kind: Kinds = [],  # noqa: B006
    tag: TagsAll = [],  # noqa: B006
    any_tag: TagsAny = [],  # noqa: B006
    not_tag: TagsNot = [],  # noqa: B006
    agent: Agents = [],  # noqa: B006
    since: Since = None,
    until: Until = None,
    where: Where = [],  # noqa: B006
    min_priority: MinPriority = None,
    min_importance: MinImportance = None,
    no_superseded: NoSuperseded = False,
    at: At = None,
) -> None:
    """Find the memories most similar to a text or a memory"""
    filters = filters_of(ctx)
    with session_of(ctx) as session:
        tell_beginning(session, at)
        found = session.similar(text, limit=max(1, limit), at=at, **filters)
        _show(ctx, found, explain=False)


@command(example="smp related FIND-1 --depth 3")
def related(
    ctx: typer.Context,
    memory: Id,
    depth: Annotated[int, typer.Option(metavar="N", help="Maximum number of links to follow")] = 2,
    kind: Kinds = [],  # noqa: B006
    tag: TagsAll = [],  # noqa: B006
    any_tag: TagsAny = [],  # noqa: B006
    not_tag: TagsNot = [],  # noqa: B006
    agent: Agents = [],  # noqa: B006
    since: Since = None,
    until: Until = None,
    where: Where = [],  # noqa: B006
    min_priority: MinPriority = None,
    min_importance: MinImportance = None,
    no_superseded: NoSuperseded = False,
    at: At = None,
) -> None:
    """Follow the links of a memory in both directions

    The turn of a memory, the memories of a turn, and what a turn or a state refers to
    count as links. Links lead on through memories that do not match.
    """
    with session_of(ctx) as session:
        tell_beginning(session, at)
        found = session.related(memory, depth=depth, at=at, **filters_of(ctx))
    value: dict[str, object] = {"memories": [item._asdict() for item in found], "total": len(found)}
    arrows = {"to": "->", "from": "<-", "both": "--"}
    emit(
        ctx,
        value,
        lambda: "\n".join(
            f"{'  ' * (item.depth - 1)}{arrows[item.direction]} {item.relation}  {item.id}  {item.title}"
            for item in found
        ),
        empty=f"nothing is linked with {memory}",
    )


@command(example="smp index")
def index(ctx: typer.Context) -> None:
    """Prepare the session for questions

    Brings the cache of the text search up to date. With the extra `smp-git[semantic]`,
    also makes the vectors that are missing, which takes some five seconds for a
    thousand memories. Without this, a question does the former itself, and memories
    without a vector are found by their words alone.
    """

    def show(what: str, done: int, total: int) -> None:
        PROGRESS.tell(f"{done:,} of {total:,} {what}")

    with session_of(ctx) as session:
        done = session.index(progress=show)
        emit(ctx, done.as_json(), lambda: _indexed(done))


def _indexed(done: Indexed) -> str:
    memories = "1 memory" if done.memories == 1 else f"{done.memories} memories"
    if not done.semantic:
        return f"{memories} indexed, by words alone"
    vectors = "1 vector" if done.made == 1 else f"{done.made} vectors"
    return f"{memories} indexed, {vectors} made"


@command(example="smp explain DEC-42")
def explain(ctx: typer.Context, memory: Id) -> None:
    """Show how the priority of a memory is computed"""
    with session_of(ctx) as session:
        value, lines = session.explain(memory)
    emit(ctx, {"priority": value, "why": list(lines)}, "\n".join(lines))


# A context names so many memories that were left out.
_NAMED = 20
# More of a prompt than this is not read, however long the input is.
_PROMPT_BYTES = 1_048_576


def _prompt(given: str | None) -> str | None:
    """Return the prompt: as given, or what standard input holds, whatever that is."""
    if given != "-":
        return given
    with PROGRESS.hidden():
        data = sys.stdin.buffer.read(_PROMPT_BYTES)
    return data.decode("utf-8", "replace")


@command(example='smp context --for "Write the login page" --agent veritas --budget 2000')
def context(
    ctx: typer.Context,
    agent: Annotated[
        str | None,
        typer.Option("-a", "--agent", metavar="AGENT", help="Agent to build the context for"),
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="TEXT",
            help="Prompt that the context should answer first; - for standard input",
        ),
    ] = None,
    topic: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Leave out what is not about this topic")
    ] = None,
    turns: Annotated[
        int, typer.Option(metavar="N", min=0, help="Maximum number of turns from the conversation")
    ] = 20,
    budget: Annotated[
        int,
        typer.Option(metavar="N", help="Maximum number of tokens, at about four characters each"),
    ] = 4000,
    at: At = None,
) -> None:
    """Print the context an agent needs to continue

    Markdown for a prompt. What was left out or did not fit the budget is named on
    stderr, and in the JSON with the reason.
    """
    with session_of(ctx) as session:
        tell_beginning(session, at)
        made = session.context(
            agent, prompt=_prompt(prompt), topic=topic, turns=turns, budget=budget, at=at
        )
    emit(ctx, made.as_json(), made.text)
    if made.left_out:
        named = [item.id or item.reason for item in made.left_out]
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        note(f"left out or shortened: {', '.join(named[:_NAMED])}{more}")


@command(example="smp watch --kind finding --where severity=critical")
def watch(
    ctx: typer.Context,
    text: Words = None,
    kind: Kinds = [],  # noqa: B006
    tag: TagsAll = [],  # noqa: B006
    agent: Agents = [],  # noqa: B006
    where: Where = [],  # noqa: B006
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="REV", help="Start after this revision instead of now"),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("-n", "--limit", metavar="N", min=1, help="Stop after this many")
    ] = None,
) -> None:
    """Follow new matching memories, as JSON lines"""
    shown = 0
    with session_of(ctx) as session:
        for hit in session.watch(
            text,
            after=after,
            kinds=as_kinds(kind),
            tags=tag,
            agents=agent,
            where=conditions_of(where),
        ):
            say(json.dumps(hit.as_json(), ensure_ascii=False))
            sys.stdout.flush()
            shown += 1
            if shown == limit:
                return
