"""Commands that show memories: show, list, path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from smp_git.cli.app import command
from smp_git.cli.common import emit, setting
from smp_git.cli.options import At, Id
from smp_git.cli.place import session_of
from smp_git.cli.terminal import note, to_minute
from smp_git.format import document
from smp_git.model.memory import Memory
from smp_git.model.times import format_time

if TYPE_CHECKING:
    pass


@command(example="smp show DEC-42 --at '2 days ago'")
def show(ctx: typer.Context, memory: Id, at: At = None) -> None:
    """Show a memory

    The file as it is; how often the memory was read before is told on stderr.
    """
    with session_of(ctx) as session:
        found = session.get(memory, at=at)
    emit(ctx, found.as_json(), lambda: document.encode(found).decode().removesuffix("\n"))
    if at is None and found.last_accessed and not setting(ctx, "json"):
        times = "once" if found.access_count == 1 else f"{found.access_count} times"
        note(f"read {times} before, last on {to_minute(format_time(found.last_accessed))}")


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
    return f"{memory.id}  {to_minute(format_time(memory.created_at))}  {memory.agent}  {memory.title}{tags}{status}"


@command(example="$EDITOR $(smp path DEC-42)")
def path(ctx: typer.Context, memory: Id) -> None:
    """Print the path of a memory's file, to edit by hand"""
    with session_of(ctx) as session:
        found = session.file(memory)
    emit(ctx, {"path": str(found)}, str(found))
