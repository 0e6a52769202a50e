"""Commands that read memories and their history."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from smp_git.cli.app import command, emit
from smp_git.cli.place import session_of
from smp_git.cli.write import Id
from smp_git.format import document
from smp_git.model.memory import Memory
from smp_git.model.times import format_time
from smp_git.read.history import MemoryDiff, Version

At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="REV|TIME",
        help="As of this revision or time: HEAD~3, a commit, '2 days ago'",
    ),
]


@command(example="smp show DEC-42 --at '2 days ago'")
def show(ctx: typer.Context, memory: Id, at: At = None) -> None:
    """Show a memory"""
    with session_of(ctx) as session:
        found = session.get(memory, at=at)
    emit(ctx, found.as_json(), lambda: document.encode(found).decode().removesuffix("\n"))


@command("list", example="smp list --kind decision")
def list_(
    ctx: typer.Context,
    kind: Annotated[
        str | None, typer.Option("-k", "--kind", help="Only memories of this kind")
    ] = None,
    at: At = None,
) -> None:
    """List memories"""
    with session_of(ctx) as session:
        found = session.memories(kind, at=at)
    value: dict[str, object] = {
        "memories": [memory.as_json() for memory in found],
        "total": len(found),
    }
    emit(ctx, value, lambda: "\n".join(map(_line, found)))


def _line(memory: Memory) -> str:
    tags = f"  [{', '.join(memory.tags)}]" if memory.tags else ""
    status = f"  ({memory.status})" if memory.status in ("superseded", "resolved") else ""
    return f"{memory.id}  {_short(format_time(memory.created_at))}  {memory.agent}  {memory.title}{tags}{status}"


def _short(time: str) -> str:
    """Return a time to the minute, as a list shows it."""
    return time[:16].replace("T", " ")


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
    return f"{version.commit[:9]}  {_short(format_time(version.at))}  {version.agent}  {version.subject}{more}"


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
            f"  {name}: {_value(before)} -> {_value(after)}" for name, before, after in item.fields
        ]
    return "\n".join(lines)


def _value(value: object) -> str:
    if value is None:
        return "(none)"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


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
            f"{item.commit[:9]}  {_short(format_time(item.at))}  {item.agent}  {item.field}: {_value(item.value)}"
            for item in found
        ),
    )


@command(example="$EDITOR $(smp path DEC-42)")
def path(ctx: typer.Context, memory: Id) -> None:
    """Print the path of a memory's file, to edit by hand"""
    with session_of(ctx) as session:
        found = session.file(memory)
    emit(ctx, {"path": str(found)}, str(found))
