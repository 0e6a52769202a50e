"""Commands that show memories: list, show, path."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from smp_git.cli.app import command
from smp_git.cli.common import emit, setting
from smp_git.cli.filters import (
    Agents,
    Kinds,
    Since,
    TagsAll,
    TagsAny,
    TagsNot,
    Until,
    Where,
    parts_of,
)
from smp_git.cli.options import At, Id
from smp_git.cli.place import session_of, tell_beginning
from smp_git.cli.screen import columns, exact, page, table, when
from smp_git.cli.terminal import note, paint, say
from smp_git.format import document
from smp_git.model.given import as_kinds
from smp_git.model.memory import SEARCHED, Memory
from smp_git.session import Session

# What no longer holds is there, but does not ask for attention.
_SETTLED: Final = ("resolved", "superseded", "rejected", "deprecated", "archived", "closed", "done")
_ALARMS: Final = {"critical": "red", "high": "red", "important": "yellow", "medium": "yellow"}
# A key of the YAML itself: what is in a text is indented.
_KEY: Final = re.compile(r"^(- )?([A-Za-z_][\w.-]*)(?=:)", re.MULTILINE)


@command(example="smp show DEC-42 --at '2 days ago'")
def show(ctx: typer.Context, memory: Id, at: At = None) -> None:
    """Show a memory

    The file as it is; how often the memory was read before is told on stderr.
    """
    with session_of(ctx) as session:
        tell_beginning(session, at)
        found = session.get(memory, at=at)
    if setting(ctx, "json"):
        emit(ctx, found.as_json(), "")
        return
    file = document.encode(found).decode().removesuffix("\n")
    if columns() is None:
        say(file)
    else:
        page(_with_keys(file))
    if at is None and found.last_accessed:
        times = "once" if found.access_count == 1 else f"{found.access_count} times"
        note(f"read {times} before, last on {exact(found.last_accessed)}")


def _with_keys(file: str) -> str:
    """Return a file with its keys painted: all of it, or what stands above a Markdown text."""
    head, dashes, text = file[3:].partition("\n---\n") if file.startswith("---\n") else ("", "", "")
    if dashes:
        return f"---{_KEY.sub(_painted_key, head)}{dashes}{text}"
    return _KEY.sub(_painted_key, file)


def _painted_key(found: re.Match[str]) -> str:
    return f"{found[1] or ''}{paint('cyan', found[2])}"


@command("list", example="smp list --kind finding --status open --since '2 weeks ago'")
def list_(
    ctx: typer.Context,
    kind: Kinds = [],  # noqa: B006 - typer copies it
    tag: TagsAll = [],  # noqa: B006
    any_tag: TagsAny = [],  # noqa: B006
    not_tag: TagsNot = [],  # noqa: B006
    agent: Agents = [],  # noqa: B006
    since: Since = None,
    until: Until = None,
    status: Annotated[
        list[str],
        typer.Option("--status", metavar="STATUS", help="Only with this status, e.g. open"),
    ] = [],  # noqa: B006
    severity: Annotated[
        list[str],
        typer.Option("--severity", metavar="SEVERITY", help="Only findings of this severity"),
    ] = [],  # noqa: B006
    where: Where = [],  # noqa: B006
    sort: Annotated[
        list[str],
        typer.Option("--sort", metavar="[-]FIELD", help="Sort by this field; - for descending"),
    ] = [],  # noqa: B006
    limit: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--limit",
            metavar="N",
            min=1,
            help="Maximum number of results: the newest, or with --sort the first",
        ),
    ] = None,
    at: At = None,
) -> None:
    """List memories, the newest last

    What programs keep under keys of their own is listed by --kind value.
    """
    parts = parts_of(ctx.params)
    for name, given in (("status", status), ("severity", severity)):
        if given:
            parts["where"] = [*parts.get("where", []), (name, "in", list(given))]
    with session_of(ctx) as session:
        tell_beginning(session, at)
        found = _found(session, parts, at)
    if not sort:
        found = sorted(found, key=lambda memory: memory.created_at)
    if limit is not None:
        found = found[:limit] if sort else found[-limit:]
    value: dict[str, object] = {
        "memories": [memory.as_json() for memory in found],
        "total": len(found),
    }
    emit(ctx, value, lambda: _table(found), empty="no memories", paged=True, newest_last=not sort)


def _found(session: Session, parts: dict[str, Any], at: str | None) -> Sequence[Memory]:
    """Return what matches: of all that there is no question is asked."""
    parts.pop("limit", None)
    if not parts:
        return [each for kind in as_kinds(SEARCHED) for each in session.memories(kind, at=at)]
    answer = session.query(at=at, **{**parts, "limit": None})
    for problem in answer.problems:
        note(problem)
    return [hit.memory for hit in answer]


def _table(found: Sequence[Memory]) -> str:
    rows = [
        (
            paint("cyan", each.id),
            when(each.created_at),
            each.agent,
            state_of(each),
            f"{each.title}{tags_of(each)}",
        )
        for each in found
    ]
    head = ("ID", "CREATED", "AGENT", "STATUS", "TITLE")
    return table(head, rows, spare=("AGENT", "CREATED", "STATUS")) if rows else ""


def state_of(memory: Memory) -> str:
    """Return the severity and the status of a memory, painted by how much they matter."""
    severity, status = memory.fields.get("severity"), memory.status
    text = ", ".join(each for each in (severity, status) if isinstance(each, str))
    style = "dim" if status in _SETTLED else _ALARMS.get(str(severity))
    return paint(style, text) if style else text


def tags_of(memory: Memory) -> str:
    """Return the tags of a memory as they stand behind its title."""
    return paint("dim", f"  [{', '.join(memory.tags)}]") if memory.tags else ""


@command(example="$EDITOR $(smp path DEC-42)")
def path(ctx: typer.Context, memory: Id) -> None:
    """Print the path of a memory's file, to edit by hand"""
    with session_of(ctx) as session:
        found = session.file(memory)
    emit(ctx, {"path": str(found)}, str(found), copied=True)
