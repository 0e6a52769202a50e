"""Commands that keep a session small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from smp_git.cli.app import command, emit, session_of

if TYPE_CHECKING:
    from smp_git.keep.compact import Compaction
    from smp_git.keep.quota import SizeReport


@command(example="smp size")
def size(ctx: typer.Context) -> None:
    """Show what a session has of its quota, and what takes it"""
    with session_of(ctx) as session:
        found = session.size()
    emit(ctx, found.as_json(), lambda: _sizes(found))


def _sizes(found: SizeReport) -> str:
    until = "" if found.days_until_quota is None else f", full in {found.days_until_quota:g} days"
    rows = [
        f"{found.bytes:>12,} bytes, {found.percent:g} % of {found.quota_bytes:,}{until}",
        *(f"{size:>12,} {name}" for name, size in found.components.items()),
        "largest files",
        *(f"{each.size:>12,} {each.path} ({each.percent:g} %)" for each in found.largest),
        f"{found.compaction_gain:>12,} bytes that a compaction could free",
        f"{found.git_bytes:>12,} bytes of history, in .git",
        *found.advice,
    ]
    return "\n".join(rows)


@command(example="smp compact --target 20% --dry-run")
def compact(
    ctx: typer.Context,
    target: Annotated[
        str | None, typer.Option("--target", metavar="SIZE", help="How much to free: 2MB or 20%")
    ] = None,
    preset: Annotated[
        str | None, typer.Option("--preset", help="default, relevance or threshold")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done, and do nothing")
    ] = False,
) -> None:
    """Make a session smaller

    Takes out what decayed, summarises old conversation, archives resolved findings and
    takes old working memory out of the states of agents, in this order, until a tenth
    or --target is freed. What it takes out stays in the history.
    """
    with session_of(ctx) as session:
        done = session.compact(target, preset=preset, dry_run=dry_run)
    emit(ctx, done.as_json(), lambda: _steps(done))


def _steps(done: Compaction) -> str:
    would = "would free" if done.dry_run else "freed"
    lines = [
        f"{step.freed:>12,} {step.name}: {len(step.removals)} taken out"
        + (f", {len(step.made)} made or changed" if step.made else "")
        for step in done.steps
    ]
    kept = ", ".join(f"{count} {reason}" for reason, count in done.kept.items())
    short = "" if done.reached else f"; {done.target_bytes:,} were wanted, the rules keep the rest"
    total = f"{would} {done.freed_bytes:,} of {done.before_bytes:,} bytes{short}"
    return "\n".join([*lines, total, *([f"kept: {kept}"] if kept else [])])


@command(example="smp compacted")
def compacted(ctx: typer.Context) -> None:
    """List what compactions took out, and archived

    Each can be brought back with smp bring-back.
    """
    with session_of(ctx) as session:
        found = session.compacted()
    value: dict[str, object] = {
        "compacted": [each.as_json() for each in found],
        "total": len(found),
    }
    emit(
        ctx,
        value,
        lambda: "\n".join(
            f"{each.as_json()['at']}  {each.id}" + ("  archived" if each.is_archived else "")
            for each in found
        ),
    )


@command("bring-back", example="smp bring-back FIND-0001")
def bring_back(
    ctx: typer.Context,
    memory: Annotated[list[str], typer.Argument(metavar="ID...", help="Memories to bring back")],
) -> None:
    """Bring back what a compaction took out"""
    with session_of(ctx) as session:
        change = session.bring_back(memory)
    emit(ctx, change.as_json(), lambda: "\n".join(touch.id for touch in change.touches))
