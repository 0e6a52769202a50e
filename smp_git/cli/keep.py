"""Commands that keep a session small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from smp_git.cli.app import command
from smp_git.cli.common import asker, emit
from smp_git.cli.place import session_of

if TYPE_CHECKING:
    from smp_git.keep.compact import Compaction
    from smp_git.keep.recall import RecallResult
    from smp_git.keep.usage import SizeReport


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
        str | None,
        typer.Option(
            "--preset", metavar="default|relevance|threshold", help="Which rules decide what goes"
        ),
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


@command(example="smp recall 'Which database?' DEC-1 --first 5")
def recall(
    ctx: typer.Context,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question")],
    memory: Annotated[list[str], typer.Argument(metavar="ID...", help="What must be found")],
    first: Annotated[int, typer.Option("--first", metavar="N", help="Among how many answers")] = 10,
    agent: Annotated[
        str | None, typer.Option("-a", "--agent", metavar="AGENT", help="Agent making the write")
    ] = None,
) -> None:
    """Note a question that some memories must answer

    Compaction keeps them, and smp recall-test asks it. The same question replaces the
    one before; a memory that is deleted takes its questions with it.
    """
    with session_of(ctx) as session:
        made = session.recall(question, memory, first=first, agent=asker(ctx, agent))
    emit(ctx, made.as_json(), made.id)


@command("recall-test", example="smp recall-test")
def recall_test(ctx: typer.Context) -> None:
    """Ask the questions of smp recall

    Exits with 9 if a memory is not found where it must be.
    """
    with session_of(ctx) as session:
        found = session.recall_test()
    value: dict[str, object] = {
        "questions": [each.as_json() for each in found],
        "total": len(found),
    }
    emit(ctx, value, lambda: "\n".join(map(_answered, found)) or "no questions")
    if any(each.missing for each in found):
        raise typer.Exit(9)


def _answered(each: RecallResult) -> str:
    if not each.missing:
        return f"found    {each.question}"
    return f"MISSING  {each.question}: {', '.join(each.missing)} not among the first {each.first}"
