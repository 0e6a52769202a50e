"""The command that finds the write after which an answer was wrong."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Annotated, Any

import typer

from smp_git.ask.bisect import Condition, Culprit, View
from smp_git.cli.app import app, command, emit
from smp_git.cli.ask import parts_of, specification
from smp_git.cli.place import session_of
from smp_git.model.errors import InvalidQueryError
from smp_git.model.times import format_time

# What a query at one commit of one session cannot take.
_ELSEWHERE = ("at", "all_sessions", "explain", "count", "offset")


@command(example="smp bisect --expect 'query \"session timeout\" --kind decision --tag database'")
def bisect(
    ctx: typer.Context,
    expect: Annotated[str | None, typer.Option("--expect", metavar="QUERY", help="It was right while this query had an answer: query [TEXT] and the options of smp query")] = None,
    expect_none: Annotated[str | None, typer.Option("--expect-none", metavar="QUERY", help="It was right while this query had no answer")] = None,
    expect_count: Annotated[int | None, typer.Option("--expect-count", metavar="N", min=1, help="With --expect: right while there were at least so many answers")] = None,
    good: Annotated[str | None, typer.Option("--good", metavar="REV|TIME", help="It was right then; searched backwards if left out")] = None,
    bad: Annotated[str, typer.Option("--bad", metavar="REV|TIME", help="It was wrong then")] = "HEAD",
) -> None:  # fmt: skip
    """Find the write after which a query was no longer answered as expected

    Looks at about log2 of the writes between the two ends. A merge counts as one write.
    """
    condition = _condition(expect, expect_none, expect_count)
    with session_of(ctx) as session:
        found = session.bisect(condition, good=good, bad=bad)
    emit(ctx, found.as_json(), lambda: _text(found))


def _condition(expect: str | None, expect_none: str | None, count: int | None) -> Condition:
    if (expect is None) == (expect_none is None):
        raise InvalidQueryError("one of --expect and --expect-none says what was right", hint="such as --expect 'query --kind decision --tag database'")  # fmt: skip
    if expect_none is not None:
        if count is not None:
            raise InvalidQueryError("--expect-count counts the answers to --expect", hint="leave --expect-none out")  # fmt: skip
        none = _total(expect_none)
        return lambda view: none(view) == 0
    total, least = _total(expect or ""), count or 1
    return lambda view: total(view) >= least


def _total(text: str) -> Callable[[View], int]:
    """Return what counts the answers to a query that is written as a command."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InvalidQueryError(f"{text!r} cannot be read: {error}", hint="close the quotation mark") from None  # fmt: skip
    if words[:1] != ["query"]:
        raise InvalidQueryError(f"{text!r} is no query", hint="it begins with query, such as 'query --kind decision'")  # fmt: skip
    group: Any = typer.main.get_command(app)
    inner = group.commands["query"].make_context("query", words[1:])
    params = inner.params
    _refuse_options([name for name in _ELSEWHERE if params[name]])
    _refuse_options([name for name in ("session", "root", "folder", "json") if name in inner.meta])
    parts, spec = parts_of(params), specification(params["spec"])
    return lambda view: view.query(params["text"], spec=spec, **parts).total


def _refuse_options(names: list[str]) -> None:
    for name in names:
        raise InvalidQueryError(f"--{name.replace('_', '-')} is no part of what is expected", hint="leave it out")  # fmt: skip


def _text(found: Culprit) -> str:
    time = format_time(found.at)[:16].replace("T", " ")
    lines = [f"{found.commit[:9]}  {time}  {found.agent}  {found.subject}"]
    if found.touched:
        lines.append(f"touched  {', '.join(found.touched)}")
    return "\n".join([*lines, f"found in {found.steps} steps"])
