"""The command that finds the write which broke an expectation."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smp_git.cli.app import build, command
from smp_git.cli.common import common_in, emit
from smp_git.cli.filters import parts_of, specification
from smp_git.cli.inputs import in_utc
from smp_git.cli.place import session_of
from smp_git.cli.screen import when
from smp_git.cli.terminal import paint
from smp_git.model.errors import InvalidQueryError

if TYPE_CHECKING:
    from smp_git.ask.bisect import Condition, Culprit, View


# What a query at one commit of one session cannot take.
_ELSEWHERE = ("at", "all_sessions", "explain", "measure", "offset")


@command(example="smp bisect --expect 'query \"session timeout\" --kind decision --tag database'")
def bisect(
    ctx: typer.Context,
    expect: Annotated[
        str | None,
        typer.Option(
            "--expect",
            metavar="QUERY",
            help="This query should have an answer; written as query [TEXT] with the options of smp query",
        ),
    ] = None,
    expect_none: Annotated[
        str | None,
        typer.Option("--expect-none", metavar="QUERY", help="This query should have no answer"),
    ] = None,
    expect_count: Annotated[
        int | None,
        typer.Option(
            "--expect-count",
            metavar="N",
            min=1,
            help="With --expect: there should be at least this many answers",
        ),
    ] = None,
    good: Annotated[
        str | None,
        typer.Option(
            "--good",
            metavar="REV|TIME",
            help="Last known good revision; found by searching back if omitted",
        ),
    ] = None,
    bad: Annotated[
        str, typer.Option("--bad", metavar="REV|TIME", help="Known bad revision")
    ] = "HEAD",
) -> None:
    """Find the write that broke an expectation

    Between the two ends with n writes, tests about log2(n) of them. A merge counts as
    one write.
    """
    condition = _asked_condition(expect, expect_none, expect_count)
    with session_of(ctx) as session:
        found = session.bisect(condition, good=good, bad=bad)
    emit(ctx, found.as_json(), lambda: _culprit_text(found))


def _asked_condition(expect: str | None, expect_none: str | None, count: int | None) -> Condition:
    if (expect is None) == (expect_none is None):
        raise InvalidQueryError(
            "give either --expect or --expect-none",
            hint="e.g. --expect 'query --kind decision --tag database'",
        )
    if expect_none is not None:
        if count is not None:
            raise InvalidQueryError(
                "--expect-count counts the answers to --expect", hint="leave --expect-none out"
            )
        none = _total(expect_none)
        return lambda view: none(view) == 0
    total, least = _total(expect or ""), count or 1
    return lambda view: total(view) >= least


def _total(text: str) -> Callable[[View], int]:
    """Return what counts the answers to a query that is written as a command."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InvalidQueryError(
            f"{text!r} cannot be read: {error}", hint="close the quotation mark"
        ) from None
    if words[:1] != ["query"]:
        raise InvalidQueryError(
            f"{text!r} is not a query", hint="it begins with query, e.g. 'query --kind decision'"
        )
    group: Any = typer.main.get_command(build("query"))
    inner = group.commands["query"].make_context("query", words[1:])
    params = inner.params
    _refuse_options([name for name in _ELSEWHERE if params[name]])
    _refuse_options([name for name in common_in(params) if name != "branch"])
    params |= {name: in_utc(params[name], is_end=name == "until") for name in ("since", "until")}
    parts, spec = parts_of(params), specification(params["spec"])
    return lambda view: view.query(params["text"], spec=spec, **parts).total


def _refuse_options(names: list[str]) -> None:
    for name in names:
        raise InvalidQueryError(
            f"--{name.replace('_', '-')} cannot be part of the expected query", hint="leave it out"
        )


def _culprit_text(found: Culprit) -> str:
    lines = [
        f"{paint('yellow', found.commit[:9])}  {when(found.at)}  {found.agent}  {found.subject}"
    ]
    if found.touched:
        lines.append(f"touched  {', '.join(found.touched)}")
    return "\n".join([*lines, f"found in {found.steps} steps"])
