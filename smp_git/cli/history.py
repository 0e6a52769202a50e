"""Commands about history: show, log, diff, blame, branches, merges, tags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from smp_git.cli.app import command
from smp_git.cli.common import emit
from smp_git.cli.options import Id
from smp_git.cli.place import session_of
from smp_git.cli.terminal import to_minute
from smp_git.cli.values import as_words
from smp_git.model.times import format_time
from smp_git.read.history import MemoryDiff, Version

if TYPE_CHECKING:
    pass


@command(example="smp log DEC-42")
def log(
    ctx: typer.Context,
    memory: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Only commits that changed this memory")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("-n", "--limit", min=1, help="Maximum number of results")
    ] = None,
) -> None:
    """Show commits, newest first"""
    with session_of(ctx) as session:
        found = session.log(memory, limit=limit)
    value: dict[str, object] = {
        "versions": [version.as_json() for version in found],
        "total": len(found),
    }
    emit(ctx, value, lambda: "\n".join(map(_version, found)))


def _version(version: Version) -> str:
    more = f" (and {len(version.touches) - 1} more)" if len(version.touches) > 1 else ""
    return f"{version.commit[:9]}  {to_minute(format_time(version.at))}  {version.agent}  {version.subject}{more}"


@command(example="smp diff HEAD~3 HEAD")
def diff(
    ctx: typer.Context,
    old: Annotated[str, typer.Argument(metavar="[OLD]", help="Revision or time before")] = "HEAD~1",
    new: Annotated[str, typer.Argument(metavar="[NEW]", help="Revision or time after")] = "HEAD",
) -> None:
    """Show how memories changed, field by field"""
    with session_of(ctx) as session:
        found = session.diff(old, new)
    value: dict[str, object] = {"memories": [item.as_json() for item in found], "total": len(found)}
    emit(ctx, value, lambda: "\n".join(map(_difference, found)) or "no difference")


def _difference(item: MemoryDiff) -> str:
    lines = [f"{item.change} {item.kind} {item.id}: {item.title}"]
    if item.change == "changed":
        lines += [
            f"  {name}: {as_words(before)} -> {as_words(after)}"
            for name, before, after in item.fields
        ]
    return "\n".join(lines)


@command(example="smp blame DEC-42")
def blame(ctx: typer.Context, memory: Id) -> None:
    """Show who set each field, and when"""
    with session_of(ctx) as session:
        found = session.blame(memory)
    value: dict[str, object] = {"fields": [item.as_json() for item in found], "total": len(found)}
    emit(
        ctx,
        value,
        lambda: "\n".join(
            f"{item.commit[:9]}  {to_minute(format_time(item.at))}  {item.agent}  {item.field}: {as_words(item.value)}"
            for item in found
        ),
    )
